"""The engine without its guard; as a plugin of pytest (`-p tools.search.unguarded`), for a whole suite."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.engine import decide
from interlock.core.guard.audit import Audit, learned
from interlock.core.run.events import Event


def unguard() -> None:
    """Let the guard find nothing from now on in this process: it only learns."""

    def judge(_plan: object, audit: Audit, events: Sequence[Event], _command: object) -> Audit:
        return learned(audit, events)

    if "judge" not in vars(decide):  # a name that nobody calls would leave the guard on, and say nothing
        raise AssertionError("decide does not call the guard's judge")
    vars(decide)["judge"] = judge


def pytest_configure() -> None:
    unguard()
