"""Times of actions, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter


def milliseconds(action: Callable[[], object]) -> float:
    """Run an action once and return how long it took."""
    started = perf_counter()
    action()
    return (perf_counter() - started) * 1000


def percentile(times: Sequence[float], share: float) -> float:
    """Return the time that this share of the times does not exceed."""
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]
