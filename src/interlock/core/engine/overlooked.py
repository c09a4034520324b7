"""What was passed over only because nobody has set a variable: never silently (rule 20)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.core.run import events as e
from interlock.core.run.outcomes import Notice

PASSED_OVER = "PASSED_OVER"


def overlooked(events: Iterable[e.Event]) -> Iterator[Notice]:
    """Name each step, gate or loop that was passed over, and the variables that nobody has set."""
    for event in events:
        match event:
            case e.StepSkipped(unset=unset) if unset:
                yield _notice(f"Step “{event.step}”", unset)
            case e.GatePassed(unset=unset) if unset:
                yield _notice(f"Checkpoint “{event.gate}”", unset)
            case e.LoopLeft(unset=unset) if unset:
                yield _notice(f"Loop “{event.loop}”", unset)
            case _:
                continue


def _notice(what: str, unset: tuple[str, ...]) -> Notice:
    return Notice(PASSED_OVER, f"{what} was passed over; nobody has set: {', '.join(unset)}.")
