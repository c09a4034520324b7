"""The engine without its guard; as a plugin of pytest (`-p tools.search.unguarded`), for a whole suite."""

from __future__ import annotations

from typing import Any

from interlock.core.engine import decide


def unguard() -> None:
    """Let the guard find nothing from now on in this process."""

    def inspect(*_: Any) -> None:
        return None

    vars(decide)["inspect"] = inspect


def pytest_configure() -> None:
    unguard()
