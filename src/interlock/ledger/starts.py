"""Starts that can be repeated: a call whose answer was lost is sent again with the same id (rule 13a)."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.ledger.attempt import Replayed, request_digest
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.health import start_digest
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import StartRow

REMEMBERED = 86_400_000


class StartKey(Struct, frozen=True):
    """What a start is remembered by: whose it is, the digest of its id, and that of its arguments."""

    owner: str
    request_id: bytes
    request_digest: bytes

    def row(self, session_id: str, handle: bytes, response: bytes, now: int) -> StartRow:
        """Return the start as it is stored, in the transaction that begins the run."""
        row = StartRow(self.owner, self.request_id, self.request_digest, session_id, handle, response, now)
        return replace(row, digest=start_digest(row))


def start_key(
    positions: Positions, tool: str, request_id: str | None, params: Struct
) -> StartKey | Replayed | None:
    """Return the recorded answer of the same start, or the key to remember a new one by, if it has an id."""
    if request_id is None:
        return None
    arguments = {**msgspec.to_builtins(params), "requestId": tool}
    key = StartKey(positions.owner, sha256(request_id.encode()).digest(), request_digest(arguments))
    with positions.store.reading() as reader:
        known = reader.start(key.owner, key.request_id)
    if known is None:
        return key
    if known.digest != start_digest(known) or not known.response:
        raise LedgerError(
            "CONFLICT",
            "This start was made before, and its recorded answer was lost to damage. Nothing was started.",
            "Look for the session that it began, or use another requestId for another start.",
        )
    if positions.clock() - known.started_at >= REMEMBERED:
        with positions.store.writing() as writer:
            writer.drop_start(known)
        return key
    if known.request_digest != key.request_digest:
        raise LedgerError(
            "CONFLICT",
            f"requestId was used before, with other arguments, to start session {known.session_id}. "
            "Nothing was started.",
            "Send the same arguments again to get its answer, or use another requestId for another start.",
        )
    return Replayed(known.response, known.handle)
