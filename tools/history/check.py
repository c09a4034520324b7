"""Whether calls that overlapped can be put in one order that explains every answer (Wing and Gong, 1993).

The order keeps what clients saw: a call that ended before another began comes first. A call without an answer
may stand anywhere after it began, or nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tools.history.model import ModelRun
from tools.history.record import RecordedCall


class Unexplained(Struct, frozen=True):
    """A history that no order explains: the longest order that was found, and the calls that fit nowhere."""

    run: ModelRun
    explained: int
    stuck: tuple[RecordedCall, ...]

    def __str__(self) -> str:
        lines = [f"{self.explained} calls are explained, and none of these fits next after {self.run}:"]
        return "\n".join([*lines, *map(str, self.stuck)])


def unexplained(calls: Sequence[RecordedCall], run: ModelRun) -> Unexplained | None:
    """Search for an order that explains all answers; return why there is none."""
    calls = sorted(calls, key=lambda call: call.invoked)
    answered = sum(1 << number for number, call in enumerate(calls) if call.returned is not None)
    waiting, seen = [(0, run)], set[tuple[int, ModelRun]]()
    furthest = (0, run)
    while waiting:
        done, run = waiting.pop()
        if done & answered == answered:
            return None
        if (done, run) in seen:
            continue
        seen.add((done, run))
        furthest = max(furthest, (done, run), key=lambda found: (found[0] & answered).bit_count())
        for number in reversed(_possible(calls, done)):
            told, after = run.after(calls[number]) or ((), None)
            if after is not None and _fits(calls[number], told, is_effective=after != run):
                waiting.append((done | 1 << number, after))
    done, run = furthest
    stuck = tuple(calls[number] for number in _possible(calls, done) if calls[number].returned is not None)
    return Unexplained(run, (done & answered).bit_count(), stuck)


def _possible(calls: Sequence[RecordedCall], done: int) -> list[int]:
    """Return the calls that may come next: those that began before any of the others had ended."""
    left = [number for number in range(len(calls)) if not done >> number & 1]
    ends = (calls[number].returned for number in left)
    first = min(end for end in ends if end is not None)
    return [number for number in left if calls[number].invoked < first]


def _fits(call: RecordedCall, told: tuple[object, ...], *, is_effective: bool) -> bool:
    """Tell whether a call may stand here; one without an answer and without an effect may stand nowhere."""
    return is_effective if call.returned is None else told == tuple(call.answer)
