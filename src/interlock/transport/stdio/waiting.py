"""Calls that wait for the user: each is made again once a second, until it has an answer or its time is over.

Nothing is held meanwhile, and other calls are answered. In the same rhythm clients hear of changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from interlock.surfaces.call import Call, Wait
from interlock.transport.rpc import Params, RequestId, notification_line

LOOK_SECONDS = 1.0


class WaitingTurn(Struct):
    """A call to make again; `again` returns no lines while it still waits."""

    call: Call
    again: Callable[[Call], list[bytes]]
    began: float
    seconds: float
    progress_token: int | str | None
    looked_at: float
    message: str


class Watch(Struct):
    """A look that is made once a second until it is cancelled; it returns what there is to send.

    Without one there is nothing to look for. `last` is sent when the server stops.
    """

    look: Callable[[], list[bytes]] | None
    last: list[bytes]
    looked_at: float


class WaitingTurns:
    """The calls of one connection that wait for the user, and what its client wants to hear of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turns: dict[RequestId, WaitingTurn] = {}
        self._watches: dict[RequestId, Watch] = {}

    def add(
        self, id: RequestId, wait: Wait, call: Call, params: Params, again: Callable[[Call], list[bytes]]
    ) -> list[bytes]:
        """Let a call wait; one that waits already keeps its time, but for work. Nothing is to be sent yet."""
        now = self._clock()
        if id not in self._turns:
            token = progress_token(params)
            self._turns[id] = WaitingTurn(call, again, now, wait.seconds, token, now, wait.message)
        turn = self._turns[id]
        if wait.works:
            turn.seconds, turn.message = now - turn.began + wait.seconds, wait.message
        return []

    def __contains__(self, id: RequestId) -> bool:
        """Tell whether a request with this id is not answered yet."""
        return id in self._turns or id in self._watches

    def watch(self, id: RequestId, look: Callable[[], list[bytes]] | None, *last: bytes) -> None:
        """Look once a second from now on, and send the last lines when the server stops."""
        if id not in self._watches:
            self._watches[id] = Watch(look, list(last), self._clock())

    def end(self) -> list[bytes]:
        """Return the last lines of all watches."""
        return [line for watch in self._watches.values() for line in watch.last]

    def cancel(self, id: object) -> None:
        """Forget a call or a watch that the client no longer waits for."""
        if id is None or isinstance(id, (int, float, str)):
            self._turns.pop(id, None)
            self._watches.pop(id, None)

    def patience(self) -> float | None:
        """Return the seconds until the next look; None if nothing waits."""
        looked_at = [turn.looked_at for turn in self._turns.values()]
        looked_at += [watch.looked_at for watch in self._watches.values() if watch.look is not None]
        return max(0.0, min(looked_at) + LOOK_SECONDS - self._clock()) if looked_at else None

    def look(self) -> list[bytes]:
        """Make the calls again whose second is over; return what there is to send."""
        lines: list[bytes] = []
        now = self._clock()
        for id, turn in list(self._turns.items()):
            if now - turn.looked_at < LOOK_SECONDS:
                continue
            turn.looked_at = now
            waited = now - turn.began
            is_over = waited >= turn.seconds
            answers = turn.again(replace(turn.call, may_wait=not is_over))
            if answers or is_over:
                self._turns.pop(id, None)
            elif turn.progress_token is not None:
                params = progress_params(turn.progress_token, waited, turn.seconds, turn.message)
                answers = [notification_line("notifications/progress", params)]
            lines += answers
        for watch in list(self._watches.values()):
            if watch.look is not None and now - watch.looked_at >= LOOK_SECONDS:
                watch.looked_at = now
                lines += watch.look()
        return lines


def progress_token(params: Params) -> int | str | None:
    """Return the token that a request asks for progress with."""
    match params:
        case {"_meta": {"progressToken": int() | str() as token}}:
            return token
        case _:
            return None


def progress_params(token: int | str, waited: float, seconds: float, message: str) -> Params:
    """Return the parameters of a notification about a call that waits."""
    return {"progressToken": token, "progress": round(waited, 1), "total": seconds, "message": message}
