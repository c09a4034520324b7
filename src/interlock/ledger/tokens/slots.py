"""Slots in recorded responses (rule 7): no live token lies in the database or in a bundle.

A slot is delimited by NUL characters, which no input may contain, so that nobody can forge one in a note.
The ids of the session and its runs have slots too, so that a response fits the session it is imported as.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import get_args

from interlock.ledger.ids import run_id
from interlock.ledger.tokens.tokens import Kind

_KINDS = "|".join(get_args(Kind))
_SLOT = re.compile(rf"\\u0000({_KINDS}):(\d+):(\d+)\\u0000".encode())
_TEXT_SLOT = re.compile(rf"\0({_KINDS}):(\d+):(\d+)\0")
_NAME = re.compile(rb"\\u0000(session|run):(\d+)\\u0000")


def slot(kind: Kind, node: int, attempt: int = 0) -> str:
    """A place for a token, to be written into a response."""
    return f"\0{kind}:{node}:{attempt}\0"


def fill_text(text: str, mint: Callable[[Kind, int, int], str]) -> str:
    """Put live tokens into a text."""
    if "\0" not in text:
        return text
    return _TEXT_SLOT.sub(lambda found: mint(found[1], int(found[2]), int(found[3])), text)  # type: ignore[arg-type]


def fill(encoded: bytes, mint: Callable[[Kind, int, int], str]) -> bytes:
    """Put live tokens into an encoded response."""
    return _SLOT.sub(lambda found: _minted(found, mint), encoded)


def unnamed(encoded: bytes, session_id: str, run: int) -> bytes:
    """Put slots where a response names its session and its run."""
    blank = encoded.replace(session_id.encode(), b"\\u0000session:0\\u0000")
    return blank.replace(run_id(session_id, run).encode(), b"\\u0000run:%d\\u0000" % run)


def named(encoded: bytes, session_id: str) -> bytes:
    """Put the ids of this session and its run into a recorded response."""
    return _NAME.sub(lambda found: _name(found, session_id).encode(), encoded)


def _name(found: re.Match[bytes], session_id: str) -> str:
    return session_id if found.group(1) == b"session" else run_id(session_id, int(found.group(2)))


def _minted(found: re.Match[bytes], mint: Callable[[Kind, int, int], str]) -> bytes:
    kind = found.group(1).decode()
    assert kind in get_args(Kind)
    return mint(kind, int(found.group(2)), int(found.group(3))).encode()  # type: ignore[arg-type]
