"""Agents at the session and gated surfaces without a process, and a workflow folder for them to walk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from interlock.core.run.commands import Terms
from interlock.ledger.ledger import Ledger
from interlock.ledger.tokens.keyring import SECRET_BYTES, Key, Keyring, Keys
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
    required: true
    defaultValue: it
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


class Answer(Struct, frozen=True):
    """One tool result as an agent sees it."""

    text: str
    meta: dict[str, Any]
    error: bool
    fields: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self.text)
        return fields

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


class SessionAgent:
    """An agent that calls the tools of one surface and keeps the newest token."""

    def __init__(self, surface: Surface, client: Client = CLIENT) -> None:
        self.surface = surface
        self.client = client
        self.token = ""

    @property
    def ledger(self) -> Ledger:
        assert isinstance(self.surface, (SessionSurface, GatedSurface))
        return self.surface.ledger

    def call(self, tool: str, **arguments: Any) -> Answer:
        reply = call_tool(self.surface, tool, arguments, Call(self.client))
        assert isinstance(reply, Reply), reply
        fields = dict(reply.structured) if isinstance(reply.structured, Mapping) else {}
        answer = Answer(reply.text, dict(reply.meta), reply.is_error, fields)
        self.token = answer.meta.get("session_token") or self.token
        return answer

    def tell(self, tool: str, **arguments: Any) -> Answer:
        """Call with the newest token."""
        return self.call(tool, session_token=self.token, **arguments)

    def go(self, activity: str, **arguments: Any) -> Answer:
        return self.tell("next_activity", activity_id=activity, **arguments)


def write_flow(bench: Bench, files: Mapping[str, str] = FLOW) -> Path:
    """Write the workflow folders where the library of the bench finds them."""
    return write(bench.workflows, files)


def session(bench: Bench, terms: Terms = QUICK, **settings: Any) -> SessionAgent:
    """Return an agent at the session surface, with a ledger of its own."""
    return SessionAgent(SessionSurface(bench.ledger(terms=terms, **settings)))


def gated(bench: Bench, terms: Terms = QUICK, **settings: Any) -> SessionAgent:
    """Return an agent at the gated surface, with a ledger of its own."""
    return SessionAgent(GatedSurface(bench.ledger(terms=terms, **settings)))


def start_flow(bench: Bench, terms: Terms = QUICK, **settings: Any) -> SessionAgent:
    """Return an orchestrator that has started the flow and entered its first activity."""
    write_flow(bench)
    agent = session(bench, terms, **settings)
    agent.call("start_session", agent_id="orchestrator", workflow_id="flow")
    agent.go("gather")
    return agent


def join_session(lead: SessionAgent, agent_id: str = "worker") -> SessionAgent:
    """Return a second agent on the same session and ledger."""
    worker = SessionAgent(type(lead.surface)(lead.ledger))  # type: ignore[call-arg]
    worker.call("start_session", agent_id=agent_id, session_token=lead.token)
    return worker


def answer_checkpoint(
    worker: SessionAgent, lead: SessionAgent, gate: str, option: str, **arguments: Any
) -> Answer:
    """Yield as the worker, respond as the lead, resume as the worker; return the lead's answer."""
    handle = worker.tell("yield_checkpoint", checkpoint_id=gate, **arguments).body["checkpoint_handle"]
    answer = lead.call(
        "respond_checkpoint", checkpoint_handle=handle, session_token=lead.token, option_id=option
    )
    assert not answer.error, answer.text
    resumed = worker.tell("resume_checkpoint")
    assert not resumed.error, resumed.text
    return answer


def walk_to_finish(lead: SessionAgent) -> SessionAgent:
    """Go through gather and build into finish, the last activity of the flow."""
    worker = join_session(lead)
    answer_checkpoint(worker, lead, "scope", "yes", variables={"goal": "bread"})
    lead.go("build", step_manifest=manifest("look", "weigh"), variables={"parts": ["crust"]})
    worker.token = join_session(lead).token
    answer_checkpoint(worker, lead, "fit", "fits")
    lead.go("finish", step_manifest=manifest("begin", "make", "check"))
    return lead


def manifest(*steps: str) -> list[dict[str, str]]:
    """Return a step manifest with a short output for each step."""
    return [{"step_id": step, "output": f"{step} done"} for step in steps]


def session_id_of(agent: SessionAgent) -> str:
    """Return the session's id, which tokens do not show."""
    session_id = agent.tell("get_workflow_status").body["session_id"]
    assert isinstance(session_id, str)
    return session_id


def lose_keyring(bench: Bench) -> None:
    """Let a new keyring take the place of the one that has signed everything so far."""
    bench.clock.pass_seconds(1)
    keyring = Keyring(Key("key_new", os.urandom(SECRET_BYTES)), made_at=bench.clock())
    Keys(bench.folder).path.write_bytes(msgspec.json.encode(keyring))
