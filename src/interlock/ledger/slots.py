"""Slots for tokens in recorded responses (rule 7): no live token lies in the database or in a bundle.

A slot is delimited by NUL characters, which no input may contain, so that nobody can forge one in a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

from interlock.ledger.tokens import Kind

_KINDS = "|".join(get_args(Kind))
_SLOT = re.compile(rf"\\u0000({_KINDS}):(\d+):(\d+)\\u0000".encode())


def slot(kind: Kind, node: int, attempt: int = 0) -> str:
    """A place for a token, to be written into a response."""
    return f"\0{kind}:{node}:{attempt}\0"


def fill(encoded: bytes, mint: Callable[[Kind, int, int], str]) -> bytes:
    """Put live tokens into an encoded response."""
    return _SLOT.sub(lambda found: _minted(found, mint), encoded)


def _minted(found: re.Match[bytes], mint: Callable[[Kind, int, int], str]) -> bytes:
    kind = found.group(1).decode()
    assert kind in get_args(Kind)
    return mint(kind, int(found.group(2)), int(found.group(3))).encode()  # type: ignore[arg-type]
