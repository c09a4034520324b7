"""Calls that may be sent again: what was recorded is answered again, and nothing is done twice.

A call is known by its key: the attempt that a token names, what it asks for within a visit, or the id of a
start. All that it has sent is its fingerprint: a repeat with other arguments gets the recorded answer too,
and is told so (rules 7, 9, 13 and 13a).
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from interlock.core.values import Json
from interlock.ledger.errors import LedgerError, not_healthy, response_lost
from interlock.ledger.log.health import intact, start_digest
from interlock.ledger.runs.positions import Positions
from interlock.ledger.tokens.slots import named
from interlock.store.protocol import Recorded, StartRow

REMEMBERED = 86_400_000
KEY_BYTES = 16  # of a key, where it is stored before the fingerprint


class Replayed(Struct, frozen=True):
    """The recorded response of a call that was made before. `differs`: this one has sent something else.

    `lines` are the time lines of the nodes in it that are known.
    """

    body: bytes
    handle: bytes
    differs: bool = False
    lines: Mapping[int, bytes] = {}


class Repeatable(Struct, frozen=True):
    """What a call is known by, and the digest of what it has sent; a token's attempt needs no other key."""

    fingerprint: bytes
    key: bytes = b""

    @property
    def request(self) -> bytes:
        """Both, as the record of the call holds them."""
        return self.key[:KEY_BYTES] + self.fingerprint[KEY_BYTES:] if self.key else self.fingerprint

    def is_known_as(self, request: bytes) -> bool:
        """Tell whether a recorded request is of this call, whatever it has sent."""
        return request[:KEY_BYTES] == self.key[:KEY_BYTES]

    def replayed(self, made: Recorded, handle: bytes, lines: Mapping[int, bytes]) -> Replayed:
        """Return the recorded response of this call."""
        if not intact(made.response, made.response_digest):
            raise not_healthy(made.session_id, "a recorded response does not match its digest")
        if not made.response:
            raise response_lost()
        response = named(made.response, made.session_id)
        return Replayed(response, handle, made.request_digest != self.request, lines)


def digest_of_request(request: Mapping[str, Json]) -> bytes:
    """Return what a repeated call is compared by."""
    return sha256(msgspec.json.encode(request, order="deterministic")).digest()


def start_key(
    positions: Positions, tool: str, request_id: str | None, params: Struct
) -> Repeatable | Replayed | None:
    """Return the recorded answer of the same start, or the key to remember a new one by, if it has an id."""
    if request_id is None:
        return None
    key = sha256(f"{tool}\0{request_id}".encode()).digest()
    start = Repeatable(digest_of_request(msgspec.to_builtins(params)), key)
    with positions.store.reading() as reader:
        known = reader.start(positions.owner, key)
    if known is None:
        return start
    if known.digest != start_digest(known) or not known.response:
        raise LedgerError(
            "CONFLICT",
            "This start was made before, and its recorded answer was lost to damage. Nothing was started.",
            "Look for the session that it began, or use another requestId for another start.",
        )
    if positions.clock() - known.started_at >= REMEMBERED:
        with positions.store.writing() as writer:
            writer.drop_start(known)
        return start
    return Replayed(known.response, known.handle, known.request_digest != start.fingerprint)


def start_row(
    owner: str, start: Repeatable, session_id: str, handle: bytes, response: bytes, now: int
) -> StartRow:
    """Return a start as it is stored, in the transaction that begins the run."""
    row = StartRow(owner, start.key, start.fingerprint, session_id, handle, response, now)
    return msgspec.structs.replace(row, digest=start_digest(row))
