"""A reply as it is recorded and as it is sent: rendered once, the same but for the tokens (rule 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from interlock.core.values import Json
from interlock.ledger.decoders import LazyDecoder
from interlock.ledger.repeatable import Repeatable, Replayed, start_key
from interlock.ledger.runs.positions import Positions
from interlock.surfaces.call import Reply
from interlock.surfaces.parameters import Params

STARTED_BEFORE = (
    "This requestId was used before, with other arguments: what follows is the answer to that start, and "
    "nothing was started now. For another start, send another requestId."
)


class RecordedReply(Struct, frozen=True):
    """A reply as it was recorded; its JSON is passed on unchanged, never decoded and encoded again."""

    text: str
    structured: msgspec.Raw = msgspec.Raw()
    meta: Mapping[str, Json] = {}
    is_error: bool = False


_recorded = LazyDecoder(RecordedReply)
_encode = msgspec.json.Encoder().encode


def body_of(reply: Reply) -> bytes:
    """A reply as it is recorded, with slots for its tokens."""
    return _encode(reply)


def live(body: bytes, positions: Positions, handle: bytes, lines: Mapping[int, bytes]) -> Reply:
    """A recorded reply as it is sent, with the caller's tokens in its slots."""
    recorded = _recorded.decode(positions.filled(body, handle, lines))
    return Reply(recorded.text, recorded.structured or None, recorded.meta, recorded.is_error)


def repeatable(
    positions: Positions,
    tool: str,
    request_id: str | None,
    params: Params,
    told: Callable[[Reply, str], Reply],
) -> Repeatable | Reply | None:
    """Return the key of a new start that has an id, or the answer that the same start was given.

    `told` adds to it that other arguments were sent.
    """
    match start_key(positions, tool, request_id, params):
        case Replayed() as before:
            reply = replayed(before, positions)
            return told(reply, STARTED_BEFORE) if before.differs else reply
        case key:
            return key


def replayed(replay: Replayed, positions: Positions) -> Reply:
    """The recorded reply of an earlier call, with the caller's tokens in its slots."""
    return live(replay.body, positions, replay.handle, replay.lines)
