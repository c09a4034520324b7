"""Repetition of a call that lost a race: every call reads first and writes once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import monotonic
from typing import ParamSpec, TypeVar

from interlock.store.protocol import StoreBusy, StoreConflict

__all__ = ["StoreBusy", "StoreConflict", "until_recorded"]

MOST_TRIES = 100
RETRY_SECONDS = 4.0  # a slow database must not make 100 tries of a call out of one

P = ParamSpec("P")
T = TypeVar("T")


def until_recorded(call: Callable[P, T]) -> Callable[P, T]:
    """Run a call again from its read as often as the session has moved meanwhile, within bounds."""

    @wraps(call)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> T:
        ends = monotonic() + RETRY_SECONDS
        for _ in range(MOST_TRIES):
            try:
                return call(*args, **kwargs)
            except StoreConflict:
                if monotonic() > ends:
                    break
        raise StoreBusy("other calls have changed the same session again and again")

    return repeated
