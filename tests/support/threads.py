"""Threads that get in each other's way as often as they can."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")


def together(action: Callable[[int], T], threads: int = 8) -> list[T]:
    """Run an action in threads that begin at the same time and are switched all the time."""
    start, before = Barrier(threads), sys.getswitchinterval()

    def begin(number: int) -> T:
        start.wait()
        return action(number)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(begin, range(threads)))
    finally:
        sys.setswitchinterval(before)
