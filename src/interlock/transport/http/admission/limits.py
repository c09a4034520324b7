"""How much one caller may ask for at a time, so that others are served.

A caller is a principal; somebody who is not known yet is told apart by the address.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.transport.http.responses import refusal
from interlock.transport.http.service import record_in

MOST_CALLERS = 10_000
ALIVE = "/healthz"  # whoever asks this restarts a server that does not answer

Caller: TypeAlias = tuple[str, str]  # a principal's name, or an address


class Allowance(Struct):
    """What a caller has left: requests that it may send at once, and requests in flight."""

    tokens: float
    at: float
    in_flight: int = 0


class Limits:
    """Refuses requests over a rate or over a number in flight, and says when to send them again."""

    def __init__(
        self,
        app: ASGIApp,
        per_second: float,
        in_flight: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app
        self._rate = per_second
        self._burst = max(1.0, per_second * 2)
        self._most = in_flight
        self._clock = clock
        self._allowances: OrderedDict[Caller, Allowance] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == ALIVE:
            await self.app(scope, receive, send)
            return
        name, (address, *_) = record_in(scope).principal.name, scope.get("client") or ("",)
        allowance = self._allowance((name, "" if name else address))
        wait = 0.0 if allowance.tokens >= 1 else (1 - allowance.tokens) / self._rate
        if wait or allowance.in_flight >= self._most:
            message = f"At most {self._rate:g} requests a second and {self._most} at a time."
            headers = {"Retry-After": str(max(1, math.ceil(wait)))}
            await refusal(429, "TOO_MANY_REQUESTS", message, headers)(scope, receive, send)
            return
        allowance.tokens -= 1
        allowance.in_flight += 1
        try:
            await self.app(scope, receive, send)
        finally:
            allowance.in_flight -= 1

    def _allowance(self, caller: Caller) -> Allowance:
        """Return what a caller has left now."""
        now = self._clock()
        allowance = self._allowances.get(caller)
        if allowance is None:
            allowance = self._allowances[caller] = Allowance(self._burst, now)
            while len(self._allowances) > MOST_CALLERS:
                self._allowances.popitem(last=False)
        self._allowances.move_to_end(caller)
        allowance.tokens = min(self._burst, allowance.tokens + (now - allowance.at) * self._rate)
        allowance.at = now
        return allowance
