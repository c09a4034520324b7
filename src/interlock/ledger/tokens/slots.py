"""Slots in recorded responses (rule 7): no live token is stored in the database or in a bundle.

A slot is delimited by NUL characters, which no input may contain, so that nobody can forge one in a note.
The ids of the session and its runs have slots too, so that a response fits the session it is imported as.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast, get_args

from interlock.ledger.ids import run_id
from interlock.ledger.tokens.tokens import Kind
from interlock.store.protocol import RunRow

_KINDS = "|".join(get_args(Kind))
_SLOT = re.compile(rf"\\u0000({_KINDS}):(\d+):(\d+)\\u0000".encode())
_TEXT_SLOT = re.compile(rf"\0({_KINDS}):(\d+):(\d+)\0")
_NAME = re.compile(rb"\\u0000(session|run):(\d+)\\u0000")


def slot(kind: Kind, node: int, attempt: int = 0) -> str:
    """Return what stands for a token in a response until it is sent."""
    return f"\0{kind}:{node}:{attempt}\0"


def fill_text(text: str, mint: Callable[[Kind, int, int], str]) -> str:
    """Put live tokens into a text."""

    def minted(slot: re.Match[str]) -> str:
        return mint(cast(Kind, slot[1]), int(slot[2]), int(slot[3]))

    return _TEXT_SLOT.sub(minted, text) if "\0" in text else text


def fill(encoded: bytes, mint: Callable[[Kind, int, int], str]) -> bytes:
    """Put live tokens into an encoded response."""

    def minted(slot: re.Match[bytes]) -> bytes:
        return mint(cast(Kind, slot[1].decode()), int(slot[2]), int(slot[3])).encode()

    return _SLOT.sub(minted, encoded)


def unnamed(encoded: bytes, run: RunRow) -> bytes:
    """Put slots where a response names its run and the session of it."""
    blank = encoded.replace(run.session_id.encode(), b"\\u0000session:0\\u0000")
    return blank.replace(run.run_id.encode(), b"\\u0000run:%d\\u0000" % run.run)


def named(encoded: bytes, session_id: str) -> bytes:
    """Put the ids of this session and its runs into a recorded response."""

    def name(slot: re.Match[bytes]) -> bytes:
        return (session_id if slot[1] == b"session" else run_id(session_id, int(slot[2]))).encode()

    return _NAME.sub(name, encoded)
