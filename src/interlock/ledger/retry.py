"""Running a call again when another one was faster: every call reads first and writes once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from interlock.store.protocol import StoreBusy, StoreConflict

__all__ = ["StoreConflict", "until_recorded"]

MOST_TRIES = 100

T = TypeVar("T")


def until_recorded(call: Callable[[], T]) -> T:
    """Run a call again from its read as often as the session has moved meanwhile, within bounds."""
    for _ in range(MOST_TRIES):
        try:
            return call()
        except StoreConflict:
            continue
    raise StoreBusy(f"other calls changed the same session {MOST_TRIES} times in a row")
