"""A workflow that has every kind of item, and an agent's side of the navigation surface."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from interlock.core.run.commands import Terms
from interlock.core.run.preferences import Mode
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.tool import call_tool
from support.authored import write
from support.harness import Bench
from support.log import logged_events

Payload = dict[str, Any]

WORKFLOW = """
id: build
version: 1.0.0
title: Build
description: For a test.
initialActivity: plan
variables:
  - { name: tasks, type: array, description: What to do }
  - { name: size, type: string, description: How large, defaultValue: any }
  - { name: result, type: string, description: What came of it }
  - { name: approved, type: boolean }
  - { name: external, type: boolean }
  - { name: enough, type: boolean }
"""
PLAN = """
id: plan
version: 1.0.0
name: Planning
steps:
  - { id: analyze, name: Analyze, description: Look at it., skill: looking }
  - { id: decide, name: Decide, checkpoint: approve, description: Decide it. }
checkpoints:
  - id: approve
    name: Approve
    message: "Approve the plan of size {{size}}?"
    options:
      - { id: "yes", label: "Yes", effect: { setVariable: { approved: true } } }
      - { id: redo, label: Redo, description: Begin again, effect: { transitionTo: plan } }
      - { id: stop, label: Stop, effect: { transitionTo: __terminal__ } }
transitions:
  - { to: build, condition: { type: simple, variable: approved, operator: "==", value: true } }
  - { to: review, condition: { type: simple, variable: external, operator: "==", value: true } }
"""
BUILD = """
id: build
version: 1.0.0
name: Building
steps:
  - { id: prepare, name: Prepare, description: Make ready. }
loops:
  - id: task-loop
    name: Tasks
    type: forEach
    variable: task
    over: tasks
    breakCondition: { type: simple, variable: enough, operator: "==", value: true }
    steps:
      - { id: code, name: Write Code, description: "Write {{task}}." }
      - { id: test, name: Test, description: "Test {{task}}." }
transitions:
  - { to: review, isDefault: true }
triggers:
  - { workflow: helper, passContext: [tasks], description: Get help }
"""
REVIEW = """
id: review
version: 1.0.0
name: Review
steps:
  - { id: read, name: Read, description: Read it. }
"""
HELPER = """
id: helper
version: 1.0.0
title: Helper
description: Helps.
initialActivity: help
variables:
  - { name: tasks, type: array }
"""
HELP = """
id: help
version: 1.0.0
name: Help
steps:
  - { id: aid, name: Aid, description: "Help with {{tasks}}." }
"""
LOOSE = """
id: loose
version: 1.0.0
title: Loose
description: Independent activities.
"""


def entry(name: str) -> str:
    return f"""
id: {name}
version: 1.0.0
name: {name.title()}
problem: The user wants to {name}
recognition: ["{name.title()} It", please {name}]
skills: {{ primary: looking }}
steps:
  - {{ id: do-{name}, name: Do, description: Do it. }}
"""


FILES = {
    "build/workflow.yaml": WORKFLOW,
    "build/activities/00-plan.yaml": PLAN,
    "build/activities/01-build.yaml": BUILD,
    "build/activities/02-review.yaml": REVIEW,
    "build/skills/00-looking.yaml": "id: looking\nversion: 1.0.0\ncapability: See what is there\n",
    "build/resources/03-notes.md": "# Notes\nRead me.\n",
    "build/templates/00-report.md": "# Report: <name>\n",
    "helper/workflow.yaml": HELPER,
    "helper/activities/00-help.yaml": HELP,
    "loose/workflow.yaml": LOOSE,
    "loose/activities/00-open.yaml": entry("open"),
    "loose/activities/01-close.yaml": entry("close"),
}


PLAIN = Call()


class NavigationClient:
    """Calls the surface's tools, and remembers the newest state as an agent's chat would."""

    def __init__(self, surface: NavigationSurface) -> None:
        self.surface = surface
        self.state = ""

    def raw(self, tool: str, call: Call = PLAIN, **arguments: Any) -> Outcome:
        return call_tool(self.surface, tool, arguments, call)

    def call(self, tool: str, **arguments: Any) -> Payload:
        reply = self.raw(tool, **arguments)
        assert isinstance(reply, Reply)
        answer: Payload = json.loads(reply.text)
        if answer.get("success"):
            self.state = answer["state"]
        return {**answer, "_error": reply.is_error}

    def start(self, workflow_id: str = "build", **variables: Any) -> Payload:
        return self.call("nav_start", workflow_id=workflow_id, initial_variables=variables)

    def act(self, action: str, state: str | None = None, **arguments: Any) -> Payload:
        return self.call("nav_action", state=state or self.state, action=action, **arguments)

    def done(self, *step_ids: str, **more: Any) -> Payload:
        more = {"output": {"notesMarkdown": "done"}, **more}
        answers = [self.act("complete_step", step_id=step_id, **more) for step_id in step_ids]
        return answers[-1]

    def respond(self, option: str, checkpoint: str = "approve", **more: Any) -> Payload:
        return self.act("respond_to_checkpoint", checkpoint_id=checkpoint, option_id=option, **more)

    def go(self, activity: str, **more: Any) -> Payload:
        return self.act("transition", activity_id=activity, **more)

    def loop(self, loop_id: str = "task-loop", **more: Any) -> Payload:
        return self.act("advance_loop", loop_id=loop_id, **more)

    def situation(self, state: str | None = None) -> Payload:
        return self.call("nav_situation", state=state or self.state)

    def into_build(self) -> Payload:
        """Walk to the step before the loop."""
        self.start(size="small")
        self.done("analyze")
        self.respond("yes")
        self.done("decide")
        return self.go("build")


def opened(bench: Bench, mode: Mode | None = None, terms: Terms | None = None) -> NavigationClient:
    write(bench.workflows, FILES)
    return NavigationClient(NavigationSurface(bench.ledger(mode, terms)))


def listed(answer: Payload, kind: str = "required") -> list[tuple[str, str]]:
    names = ("step", "checkpoint", "activity", "loop")
    offers = answer["availableActions"][kind]
    return [
        (offer["action"], next(offer[name] for name in names if name in offer))
        for offer in offers
        if _move(offer)
    ]


def _move(offer: Payload) -> bool:
    return not offer["action"].startswith(("get_", "nav_", "abandon"))


def events(bench: Bench, *kinds: str) -> list[Payload]:
    """The events of every session, of these kinds or of all."""
    store = bench.ledger().store
    with store.reading() as reader:
        sessions = [session.session_id for session in reader.sessions(SessionFilter())]
    rows = [row for session_id in sessions for row in logged_events(store, session_id, *kinds)]
    return [json.loads(msgspec.json.encode(row.event)) for row in rows]


def text(client: NavigationClient, tool: str, **arguments: Any) -> str:
    reply = client.raw(tool, **arguments)
    assert isinstance(reply, Reply)
    assert not reply.is_error
    return reply.text
