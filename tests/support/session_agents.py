"""Agents at the session surfaces without a process: a folder of workflows, a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from interlock.ledger.ledger import Ledger
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import Surface, call_tool
from support.authored import write
from support.harness import Bench

PATIENT = Terms()
QUICK = Terms(min_response_ms=0)
CLIENT = Client("test-client")

HEAD = """\
id: flow
version: 1.2.0
title: Flow
description: Gathers, builds in rounds, ends.
tags[2]: one,two
rules[1]:
  - Be brief.
skills:
  primary: lead
variables[4]:
  - name: goal
    type: string
  - name: parts
    type: array
  - name: risky
    type: boolean
    defaultValue: false
  - name: verdict
    type: string
modes[1]:
  - id: short
    name: Short
    activationVariable: short_mode
    skipActivities[1]: build
initialActivity: gather
"""
GATHER = """\
id: gather
version: 1.0.0
name: Gather
skills:
  primary: lead
steps[3]:
  - id: look
    name: Look
    description: Look at it.
    skill: looking
  - id: weigh
    name: Weigh
    description: Weigh at it.
    checkpoint: scope
    actions[1]:
      - action: set
        target: goal
  - id: warn
    name: Warn
    description: Warn at it.
    condition:
      type: simple
      variable: risky
      operator: ==
      value: true
checkpoints[2]:
  - id: scope
    name: Scope
    message: "Is {{goal}} the goal?"
    options[3]:
      - id: "yes"
        label: "Yes"
        effect:
          setVariable:
            verdict: agreed
      - id: skip
        label: Skip the building
        effect:
          transitionTo: finish
      - id: redo
        label: Once more
        effect:
          transitionTo: gather
  - id: danger
    name: Danger
    message: Is it worth it?
    condition:
      type: simple
      variable: risky
      operator: ==
      value: true
    options[1]:
      - id: go
        label: Go
transitions[2]:
  - to: build
    isDefault: true
  - to: finish
    condition:
      type: simple
      variable: parts
      operator: ==
      value: none
"""
BUILD = """\
id: build
version: 1.0.0
name: Build
steps[1]:
  - id: begin
    name: Begin
    description: Begin at it.
loops[1]:
  - id: each
    name: Each part
    type: forEach
    variable: part
    over: parts
    steps[2]:
      - id: make
        name: Make
        description: Make at it.
        skill: meta/session-protocol
      - id: check
        name: Check
        description: Check at it.
        checkpoint: fit
checkpoints[1]:
  - id: fit
    name: Fit
    message: "Does {{part}} fit?"
    blocking: false
    defaultOption: fits
    autoAdvanceMs: 30000
    options[2]:
      - id: fits
        label: Fits
      - id: bad
        label: Bad
transitions[1]:
  - to: finish
    isDefault: true
"""
FINISH = """\
id: finish
version: 1.0.0
name: Finish
triggers[1]:
  - workflow: child
    passContext[1]: goal
steps[1]:
  - id: close
    name: Close
    description: Close at it.
"""
LEAD = 'id: lead\nversion: 1.0.0\ncapability: Lead\nresources[1]:\n  - "00"\n'
LOOKING = "id: looking\nversion: 2.0.0\ncapability: Look\n"
GUIDE = "---\nid: guide\nversion: 3.0.0\n---\n# Guide\n\nRead me.\n"
CHILD = {
    "child/workflow.yaml": "id: child\nversion: 0.1.0\ntitle: Child\ninitialActivity: only\n"
    "variables: [{name: goal, type: string}, {name: verdict, type: string}, {name: private, type: string}]\n",
    "child/activities/00-only.yaml": "id: only\nversion: 1.0.0\nname: Only\n"
    "steps: [{id: work, name: Work, description: Work at it.}]\n",
}
FLOW = {
    "flow/workflow.toon": HEAD,
    "flow/activities/00-gather.toon": GATHER,
    "flow/activities/01-build.toon": BUILD,
    "flow/activities/02-finish.toon": FINISH,
    "flow/skills/00-lead.toon": LEAD,
    "flow/skills/01-looking.toon": LOOKING,
    "flow/resources/00-guide.md": GUIDE,
    **CHILD,
}


class Told(Struct, frozen=True):
    """One answer as an agent sees it."""

    text: str
    meta: dict[str, Any]
    error: bool
    fields: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def token(self) -> str:
        token = self.meta["session_token"]
        assert isinstance(token, str)
        return token

    @property
    def code(self) -> str | None:
        return self.fields.get("code")

    @property
    def warnings(self) -> list[str]:
        listed: list[str] = self.meta["validation"]["warnings"]
        return listed


class Talk:
    """One agent's chat with one surface; it keeps the newest token."""

    def __init__(self, surface: Surface, client: Client = CLIENT) -> None:
        self.surface = surface
        self.client = client
        self.token = ""

    @property
    def ledger(self) -> Ledger:
        assert isinstance(self.surface, (SessionSurface, GatedSurface))
        return self.surface.ledger

    def call(self, tool: str, **arguments: Any) -> Told:
        reply = call_tool(self.surface, tool, arguments, Call(self.client))
        assert isinstance(reply, Reply), reply
        fields = dict(reply.structured) if isinstance(reply.structured, Mapping) else {}
        told = Told(reply.text, dict(reply.meta), reply.is_error, fields)
        self.token = told.meta.get("session_token") or self.token
        return told

    def tell(self, tool: str, **arguments: Any) -> Told:
        """Call with the newest token."""
        return self.call(tool, session_token=self.token, **arguments)

    def go(self, activity: str, **arguments: Any) -> Told:
        return self.tell("next_activity", activity_id=activity, **arguments)


def prepare(bench: Bench, files: Mapping[str, str] = FLOW) -> Path:
    return write(bench.workflows, files)


def session(bench: Bench, terms: Terms = QUICK, **more: Any) -> Talk:
    return Talk(SessionSurface(opened(bench, terms, **more)))


def gated(bench: Bench, terms: Terms = QUICK, **more: Any) -> Talk:
    return Talk(GatedSurface(opened(bench, terms, **more)))


def opened(bench: Bench, terms: Terms, **more: Any) -> Ledger:
    """A ledger as another process would open it; what is bundled is compiled once for all tests."""
    ledger = bench.ledger(terms=terms, **more)
    ledger.library = Library([BUNDLED, Source("configured", bench.workflows)], Path(compiled_once().name))
    return ledger


@cache
def compiled_once() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


def started(bench: Bench, terms: Terms = QUICK, **more: Any) -> Talk:
    """An orchestrator that has begun the flow and stands in its first activity."""
    prepare(bench)
    talk = session(bench, terms, **more)
    talk.call("start_session", agent_id="orchestrator", workflow_id="flow")
    talk.go("gather")
    return talk


def joined(talk: Talk, agent: str = "worker") -> Talk:
    """A second agent on the same session, with a store of its own."""
    other = Talk(type(talk.surface)(talk.ledger))  # type: ignore[call-arg]
    other.call("start_session", agent_id=agent, session_token=talk.token)
    return other


def answered(worker: Talk, lead: Talk, gate: str, option: str, **arguments: Any) -> Told:
    """Yield, respond and resume."""
    handle = worker.tell("yield_checkpoint", checkpoint_id=gate, **arguments).body["checkpoint_handle"]
    told = lead.call(
        "respond_checkpoint", checkpoint_handle=handle, session_token=lead.token, option_id=option
    )
    assert not told.error, told.text
    resumed = worker.tell("resume_checkpoint")
    assert not resumed.error, resumed.text
    return told


def manifest(*steps: str) -> list[dict[str, str]]:
    return [{"step_id": step, "output": f"{step} done"} for step in steps]
