"""Repetition of a call that lost a race: every call reads first and writes once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from interlock.store.protocol import StoreBusy, StoreConflict

__all__ = ["StoreConflict", "until_recorded"]

MOST_TRIES = 100

P = ParamSpec("P")
T = TypeVar("T")


def until_recorded(call: Callable[P, T]) -> Callable[P, T]:
    """Run a call again from its read as often as the session has moved meanwhile, within bounds."""

    @wraps(call)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(MOST_TRIES):
            try:
                return call(*args, **kwargs)
            except StoreConflict:
                continue
        raise StoreBusy(f"other calls changed the same session {MOST_TRIES} times in a row")

    return repeated
