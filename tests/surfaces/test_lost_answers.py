"""A call whose answer was lost is sent again: the next process repeats the answer, and does nothing twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import postgres_server
from support.authored import write
from support.server import Server

FLOW = {
    "flow/workflow.yaml": "{id: flow, version: 1.0.0, title: Flow, initialActivity: plan}",
    "flow/activities/01-plan.yaml": """
id: plan
version: 1.0.0
name: Plan
steps: [{id: read, name: Read, description: Read it.}]
transitions: [{to: work, isDefault: true}]
""",
    "flow/activities/02-work.yaml": """
id: work
version: 1.0.0
name: Work
steps: [{id: change, name: Change, description: Change it.}]
""",
}

Body = dict[str, Any]


class Surface(NamedTuple):
    """A start, the call that follows it, what another caller sends beside, and how it is told."""

    start: tuple[str, Body]
    progress: Callable[[Body], tuple[str, Body]]
    beside: Body
    told: str


def acknowledge(started: Body) -> tuple[str, Body]:
    tokens = {name: started[name] for name in ("stateToken", "ackToken")}
    return "continue_workflow", {**tokens, "output": {"notesMarkdown": "Read."}}


def enter(started: Body) -> tuple[str, Body]:
    return "next_activity", {"session_token": started["session_token"], "activity_id": "plan"}


def complete(started: Body) -> tuple[str, Body]:
    return "nav_action", {"state": started["state"], "action": "complete_step", "step_id": "read"}


SURFACES: Mapping[str, Surface] = {
    "execution": Surface(
        ("start_workflow", {"workflowId": "flow"}),
        acknowledge,
        {"output": {"notesMarkdown": "Something else."}},
        "This call was made before with other arguments",
    ),
    "session": Surface(
        ("start_session", {"workflow_id": "flow", "agent_id": "lead"}),
        enter,
        {"variables": {"found": 1}},
        "This call was made before: this is its recorded answer",
    ),
    "gated": Surface(
        ("start_session", {"workflow_id": "flow"}),
        enter,
        {"variables": {"found": 1}},
        "This call was made before: this is its recorded answer",
    ),
    "navigation": Surface(
        ("nav_start", {"workflow_id": "flow"}),
        complete,
        {"note": "Something else."},
        "This action was taken from this state before: this is its recorded answer",
    ),
}


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    if request.param == "sqlite":
        yield ()
        return
    postgres_server.open_in(tmp_path).close()
    yield "--store", os.environ[postgres_server.URL]


@pytest.mark.slow
@pytest.mark.parametrize("name", SURFACES)
def test_what_a_killed_server_answered_is_answered_again_by_the_next_process(
    tmp_path: Path, storage: tuple[str, ...], name: str
) -> None:
    surface, workflows = SURFACES[name], write(tmp_path / "workflows", FLOW)
    arguments = ("--workflows", str(workflows), "--surface", name, *storage)
    tool, sent = surface.start
    with Server(tmp_path, *arguments) as first:
        started = first.call(tool, **sent, requestId="a")
        step, call = surface.progress(started)
        answered = first.call(step, **call)
        first.kill()
    with Server(tmp_path, *arguments) as second:
        assert second.call(tool, **sent, requestId="a") == started
        assert second.call(step, **call) == answered
        assert surface.told in second.call(step, **{**call, **surface.beside})["_text"]
        assert second.call(step, **call) == answered
