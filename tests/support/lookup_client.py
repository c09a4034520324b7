"""An agent's side of the lookup surface, and small workflow files for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from interlock.authoring.library import Library, Source
from interlock.surfaces.call import Call, Reply, RpcError
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.tool import call_tool

CAP = 25


SCHEMA = {"type": "object", "required": ["verdict"]}


Ask = Callable[..., Any]


def lookup_client(library: Library) -> Ask:
    """Return a function that calls a tool in process and returns its JSON, or its error as it is."""
    surface = LookupSurface(library)

    def ask(tool: str, **arguments: Any) -> Any:
        outcome = call_tool(surface, tool, arguments, Call())
        if isinstance(outcome, RpcError):
            return outcome
        assert isinstance(outcome, Reply)
        assert msgspec.json.decode(outcome.text) == outcome.structured
        return outcome.structured

    return ask


def save(folder: Path, *documents: dict[str, Any]) -> Library:
    """Write step workflows into a folder, and return a library of that folder."""
    for workflow in documents:
        (folder / f"{workflow['id']}.json").write_bytes(msgspec.json.encode(workflow))
    return Library([Source("configured", folder)])


def save_folder(folder: Path, files: dict[str, str]) -> Library:
    """Write an activity workflow into a folder, and return a library of that folder."""
    (folder / "activities").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return Library([Source("configured", folder)])


def step(id: str, **more: Any) -> dict[str, Any]:
    """Return a step of a step workflow file."""
    return {"id": id, "title": id.title(), "prompt": f"Do {id}.", **more}


def loop(id: str, body: list[Any], **terms: Any) -> dict[str, Any]:
    """Return a loop of a step workflow file."""
    config = {"maxIterations": 3, **terms}
    return {"id": id, "type": "loop", "title": id.title(), "loop": config, "body": body}


def gate(id: str, **effect: Any) -> dict[str, Any]:
    """Return a gate whose first option has the effect."""
    options = [{"id": "first", "label": "First", "effect": effect}, {"id": "other", "label": "Other"}]
    return {"id": id, "type": "gate", "message": "Which?", "options": options}


def document(*steps: Any, id: str = "team.some_flow", **more: Any) -> dict[str, Any]:
    """Return a step workflow file."""
    head = {"id": id, "name": "Some flow", "description": "For a test", "version": "1.0.0"}
    return {**head, **more, "steps": list(steps)}


def walk(ask: Ask, workflow: str = "team-some-flow", cap: int = CAP, **context: Any) -> list[str]:
    """Complete the offered step until there is none, and return the ids in that order."""
    done: list[str] = []
    while len(done) < cap:
        answer = ask("workflow_next", workflowId=workflow, completedSteps=done, context=context)
        if answer["isComplete"]:
            assert answer["step"] == {}
            break
        done.append(answer["step"]["id"])
    return done
