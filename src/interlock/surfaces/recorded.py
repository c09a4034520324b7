"""A reply as it is recorded and as it is sent: rendered once, the same but for the tokens (rule 7)."""

from __future__ import annotations

import msgspec

from interlock.ledger.attempt import Replayed
from interlock.ledger.runs.positions import Positions
from interlock.ledger.tokens.slots import fill, fill_text
from interlock.surfaces.call import Reply, recorded_reply

_encode = msgspec.json.Encoder().encode


def encoded(reply: Reply) -> Reply:
    """A reply whose JSON is encoded, so that it is not encoded again for the record and for the wire."""
    if reply.structured is None or isinstance(reply.structured, msgspec.Raw):
        return reply
    return msgspec.structs.replace(reply, structured=msgspec.Raw(_encode(reply.structured)))


def body_of(reply: Reply) -> bytes:
    """A reply as it is recorded, with slots for its tokens."""
    return _encode(reply)


def live(reply: Reply, positions: Positions, handle: bytes) -> Reply:
    """A reply as it is sent, with the caller's tokens in its slots."""
    mint = positions.minter(handle)
    structured = reply.structured
    if isinstance(structured, msgspec.Raw):
        structured = msgspec.Raw(fill(bytes(structured), mint))
    meta = {
        name: fill_text(value, mint) if isinstance(value, str) else value
        for name, value in reply.meta.items()
    }
    return Reply(fill_text(reply.text, mint), structured, meta, reply.is_error)


def replayed(replay: Replayed, positions: Positions) -> Reply:
    """The recorded reply of an earlier call, with the caller's tokens in its slots."""
    return recorded_reply(positions.filled(replay.body, replay.handle))
