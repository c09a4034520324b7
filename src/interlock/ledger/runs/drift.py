"""Drift: the workflow on disk is no longer the one that a run is pinned to. It never stops a run."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from interlock.authoring.library import Library, Loaded
from interlock.core.run.notices import Notice
from interlock.store.protocol import RunRow

INTERVAL = 1000  # milliseconds between two looks at the files of one workflow


class CurrentWorkflow(Struct, frozen=True):
    """A workflow as it was on disk at a time. Without hash and version it could not be loaded."""

    checked_at: int
    hash: str | None = None
    version: str | None = None


class DriftCheck:
    """Compares runs with the library. It looks at a workflow's files at most once a second."""

    def __init__(self, library: Library, clock: Callable[[], int]) -> None:
        self._library = library
        self._clock = clock
        self._current: dict[str, CurrentWorkflow] = {}

    def seen(self, loaded: Loaded) -> None:
        """Remember a workflow that was loaded for another reason just now."""
        current = CurrentWorkflow(self._clock(), loaded.hash, loaded.workflow.version)
        self._current[loaded.workflow.id] = current

    def of(self, run: RunRow) -> CurrentWorkflow | None:
        """Return what has become of the run's workflow, or None if it is unchanged."""
        now, current = self._clock(), self._current.get(run.workflow_id)
        if current is None or not 0 <= now - current.checked_at < INTERVAL:
            loaded = self._library.load(run.workflow_id)
            current = (
                CurrentWorkflow(now, loaded.hash, loaded.workflow.version)
                if isinstance(loaded, Loaded)
                else CurrentWorkflow(now)
            )
            self._current[run.workflow_id] = current
        return None if current.hash == run.workflow_hash else current

    def notices(self, run: RunRow, version: str) -> tuple[Notice, ...]:
        """Return the drift of a run that is pinned to this version."""
        current = self.of(run)
        if current is None:
            return ()
        if current.version is None:
            text = f"Workflow '{run.workflow_id}' can no longer be loaded; the run uses its pinned copy."
            return (Notice("WORKFLOW_GONE", text),)
        if current.version != version:
            text = f"session started with v{version} but current definition is v{current.version}."
            text = f"Workflow version drift: {text} Workflow may have changed mid-session."
        else:
            text = f"Workflow '{run.workflow_id}' has changed on disk; the run uses its pinned copy."
        return (Notice("WORKFLOW_CHANGED", text),)
