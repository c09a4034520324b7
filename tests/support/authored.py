"""Small workflows written to disk and compiled, for tests of the formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from interlock.authoring.library import Diagnostic, Library, Loaded, Source
from interlock.core.definition.workflow import Activity, Step
from interlock.core.values import Json

ASK: Json = {"id": "ask", "title": "Ask", "prompt": "Ask."}


def head(*steps: Json, **fields: Json) -> dict[str, Json]:
    """A step workflow that is right but for what the test adds."""
    base = {"id": "t.w", "name": "W", "description": "d", "version": "1.0.0"}
    return {**base, "steps": list(steps) or [ASK], **fields}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def library(folder: Path, namespace: str | None = None) -> Library:
    return Library([Source("configured", folder, namespace)])


def compiled(folder: Path, value: Json) -> Loaded:
    """Compile a step workflow; a broken one fails the test with its reason."""
    write(folder, {"w.json": json.dumps(value, indent=2)})
    loaded = library(folder).load("t.w")
    assert isinstance(loaded, Loaded), loaded
    return loaded


def diagnostics(folder: Path) -> list[Diagnostic]:
    return list(library(folder).listing().diagnostics)


def main(loaded: Loaded) -> Activity:
    activity = loaded.workflow.activity("main")
    assert activity is not None
    return activity


def step(loaded: Loaded, step_id: str) -> Step:
    step = next(
        (step for activity in loaded.workflow.activities for step in activity.steps() if step.id == step_id),
        None,
    )
    assert step is not None
    return step


def words(step: Step) -> str:
    """Return the whole prompt of a step."""
    return "\n\n".join(fragment.text for fragment in step.prompt)
