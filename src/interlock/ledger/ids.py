"""Ids that people see: a prefix and 26 lowercase base32 characters. They open nothing."""

from __future__ import annotations

import os

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_id(prefix: str) -> str:
    """Draw a new id, such as `sess_…` or `run_…`."""
    number = int.from_bytes(os.urandom(17), "big") >> 6
    return prefix + "_" + "".join(_ALPHABET[(number >> (5 * place)) & 31] for place in range(26))
