"""Slots in recorded responses (rule 7): no live token is stored in the database or in a bundle.

A slot is delimited by NUL characters, which no input may contain, so that nobody can forge one in a note.
The ids of the session and its runs have slots too, so that a response fits the session it is imported as.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast, get_args

from interlock.ledger.ids import run_id
from interlock.ledger.tokens.keyring import Key
from interlock.ledger.tokens.tokens import OF_NODES, Kind, Pointer, mint
from interlock.store.protocol import RunRow

_KINDS = "|".join(get_args(Kind))
_SLOT = re.compile(rf"\\u0000({_KINDS}):(\d+):(\d+)\\u0000".encode())
_NAME = re.compile(rb"\\u0000(session|run):(\d+)\\u0000")


def slot(kind: Kind, node: int, attempt: int = 0) -> str:
    """Return what stands for a token in a response until it is sent."""
    return f"\0{kind}:{node}:{attempt}\0"


def fill(encoded: bytes, key: Key, handle: bytes, line_of: Callable[[int], bytes]) -> bytes:
    """Put the live tokens of a handle into an encoded response."""
    for kind, node, attempt in set(_SLOT.findall(encoded)):
        named = cast(Kind, kind.decode())
        line = line_of(int(node)) if named in OF_NODES else b""
        token = mint(key, Pointer(named, handle, int(node), int(attempt), line))
        encoded = encoded.replace(rb"\u0000%b:%b:%b\u0000" % (kind, node, attempt), token.encode())
    return encoded


def unnamed(encoded: bytes, run: RunRow) -> bytes:
    """Put slots where a response names its run and the session of it."""
    blank = encoded.replace(run.session_id.encode(), b"\\u0000session:0\\u0000")
    return blank.replace(run.run_id.encode(), b"\\u0000run:%d\\u0000" % run.run)


def named(encoded: bytes, session_id: str) -> bytes:
    """Put the ids of this session and its runs into a recorded response."""

    def name(slot: re.Match[bytes]) -> bytes:
        return (session_id if slot[1] == b"session" else run_id(session_id, int(slot[2]))).encode()

    return _NAME.sub(name, encoded)
