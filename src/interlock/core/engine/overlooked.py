"""What was passed over only because nobody has set a variable: never silently (rule 20)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.core.run import events as e
from interlock.core.run.outcomes import Notice

PASSED_OVER = "PASSED_OVER"


def overlooked(facts: Iterable[e.Event]) -> Iterator[Notice]:
    """Name each step, gate or loop that was passed over, and the variables that nobody has set."""
    for fact in facts:
        match fact:
            case e.StepSkipped(unset=unset) if unset:
                yield _notice(f"Step “{fact.step}”", unset)
            case e.GatePassed(unset=unset) if unset:
                yield _notice(f"Checkpoint “{fact.gate}”", unset)
            case e.LoopLeft(unset=unset) if unset:
                yield _notice(f"Loop “{fact.loop}”", unset)
            case _:
                continue


def _notice(what: str, unset: tuple[str, ...]) -> Notice:
    return Notice(PASSED_OVER, f"{what} was passed over; nobody has set: {', '.join(unset)}.")
