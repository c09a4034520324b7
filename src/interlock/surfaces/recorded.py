"""A reply as it is recorded and as it is sent: rendered once, the same but for the tokens (rule 7)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.ledger.attempt import Replayed
from interlock.ledger.runs.positions import Positions
from interlock.ledger.starts import StartKey, start_key
from interlock.surfaces.call import Reply, recorded_reply
from interlock.surfaces.strict_params import Params

_encode = msgspec.json.Encoder().encode


def body_of(reply: Reply) -> bytes:
    """A reply as it is recorded, with slots for its tokens."""
    return _encode(reply)


def live(body: bytes, positions: Positions, handle: bytes, lines: Mapping[int, bytes]) -> Reply:
    """A recorded reply as it is sent, with the caller's tokens in its slots."""
    return recorded_reply(positions.filled(body, handle, lines))


def repeatable(
    positions: Positions,
    tool: str,
    request_id: str | None,
    params: Params,
) -> StartKey | Reply | None:
    """Return the key of a new start that has an id, or the answer that the same start was given."""
    match start_key(positions, tool, request_id, params):
        case Replayed() as before:
            return replayed(before, positions)
        case key:
            return key


def replayed(replay: Replayed, positions: Positions) -> Reply:
    """The recorded reply of an earlier call, with the caller's tokens in its slots."""
    return live(replay.body, positions, replay.handle, replay.lines)
