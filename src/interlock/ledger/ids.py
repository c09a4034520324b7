"""Ids that people see: a prefix and 26 lowercase base32 characters. They open nothing."""

from __future__ import annotations

import os
from hashlib import sha256

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_id(prefix: str) -> str:
    """Draw a new id, such as `sess_…`."""
    return prefix + "_" + _spelled(os.urandom(17))


def run_id(session_id: str, run: int) -> str:
    """Return the id of a run: it follows from session and number, so that no event names it (rule 4)."""
    return "run_" + _spelled(sha256(f"{session_id}:{run}".encode()).digest()[:17])


def _spelled(drawn: bytes) -> str:
    number = int.from_bytes(drawn, "big") >> 6
    return "".join(_ALPHABET[(number >> (5 * position)) & 31] for position in range(26))
