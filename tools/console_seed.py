"""Fill a data folder with sessions that show what the console can show: every status, a fork, a gate."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.authoring.library import BUNDLED, Library, Loaded, Source
from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.trust import give_trust, trustable
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from interlock.surfaces.call import Call, Client, Outcome, Reply, Wait
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.tool import call_tool

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
TASK = "wr.small_task"
GOALS = [
    "Make the login test reliable",
    "Speed up the nightly export",
    "Show the branch in the status line",
    "Reject expired invitations",
    "Move the settings page to the new form",
    "Log slow queries with their plan",
    "Round invoices once, at the end",
    "Retry uploads after a lost connection",
]
PLAN = """Read the failing run and the code around it.

- The test **races** the session cookie: it clicks before `setCookie` has returned.
- A fixed sleep hides it on fast machines.

| option | cost | risk |
|---|---|---|
| wait for the cookie | small | low |
| retry the whole test | none | hides faults |
"""
REPORT = {
    "kind": "wr.verification_report",
    "verdict": "pass",
    "summary": "A hundred runs of the login test and the whole suite pass.",
    "checks": [
        {"name": "login test, 100 runs", "result": "pass", "evidence": "100 passed in 4 min 12 s"},
        {"name": "whole suite", "result": "pass", "evidence": "1,204 passed"},
    ],
}
CHANGED = {
    "kind": "mr_review.changed_files",
    "changedFiles": [
        {"path": "tests/login_test.py", "summary": "Wait for the cookie instead of sleeping", "risk": "L"},
        {"path": "src/session.py", "summary": "Return after the cookie is stored", "risk": "M"},
    ],
}
TRIAGE = {
    "kind": "mr_review.phase_0_triage",
    "review": {
        "mrTitle": "fix(start): load plug-ins late",
        "classification": "Standard",
        "focusAreas": ["start-up time", "error paths"],
    },
    "revisionLogEntry": "Read the change; two places need a closer look.",
}
FOUND = {
    "kind": "mr_review.findings",
    "findings": [
        {
            "severity": "Major",
            "location": {"file": "src/plugins.py", "line": 41},
            "title": "A plug-in that fails to load ends the process",
            "rationale": "The import now runs inside the first call, outside the handler of start-up.",
            "suggestion": "Catch it where it is loaded, and name the plug-in in the message.",
        },
        {"severity": "Nit", "location": {"file": "src/session.py", "line": 7}, "title": "An unused import"},
    ],
    "mrComments": [
        {
            "location": {"file": "src/plugins.py", "line": 41},
            "title": "Keep a broken plug-in from ending the process",
            "body": "A plug-in that cannot be imported raises inside the first call. Catch and report it.",
        }
    ],
    "revisionLogEntry": "Found one fault and one nit.",
}


# What steps of the small task and of the refactoring set.
DECLARED: Mapping[str, Mapping[str, Any]] = {
    "agree": {"acceptance": ["The suite passes a hundred times in a row"]},
    "check-result": {"checked": "pass"},
    "name-pain": {"route": "full"},
}


# A project of the person whose console it is: the server runs its tests, and would build its package.
RELEASE = """
id: team.release
name: Release
version: 1.0.0
description: Make a change, have the server run the tests, and publish it once somebody has looked.
variables:
  - { name: release, type: string, description: With which release it is published }
steps:
  - id: change
    title: Make the change
    prompt: Make the change, and have the tests pass.
    checks: [{ id: tests, run: python3 -m unittest -v, timeout: 120 }, style]
  - type: gate
    id: review
    name: Review the change
    message: "The tests: {{checks.tests}}. Shall it be published?"
    options:
      - { id: now, label: Publish, effect: { setVariable: { release: this one } } }
      - { id: later, label: Publish later, effect: { setVariable: { release: the next } } }
  - id: publish
    title: Publish
    prompt: "Publish it with this release: {{release}}."
    checks: [{ id: package, run: python3 -m build, expect: { files: [dist] } }]
"""
TESTS = """import unittest


class Invoices(unittest.TestCase):
    def test_are_rounded_once(self):
        self.assertEqual(round(1.005 * 3, 2), {expected})
"""


class SeededAgent:
    """An agent that works through a workflow with canned answers, at times of its own."""

    def __init__(self, ledger: Ledger, times: list[int]) -> None:
        self._surface = ExecutionSurface(ledger)
        self._times = times
        self.last: dict[str, Any] = {}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self._times[0] += 3 * MINUTE
        while isinstance(reply := self._outcome(tool, arguments), Wait):
            time.sleep(0.1)
        assert isinstance(reply, Reply)
        assert not reply.is_error, reply.text
        raw = reply.structured
        self.last = msgspec.json.decode(bytes(raw)) if isinstance(raw, msgspec.Raw) else dict(raw or {})
        return self.last

    def _outcome(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        return call_tool(self._surface, tool, arguments, Call(Client("demo-agent", "1.0.0")))

    def start(self, goal: str, workflow: str = TASK) -> dict[str, Any]:
        return self.call("start_workflow", workflowId=workflow, context={"goal": goal})

    def ack(self, notes: str, *artifacts: Mapping[str, Any], **context: Any) -> dict[str, Any]:
        """Hand in what a step asks for."""
        tokens = {name: self.last[name] for name in ("stateToken", "ackToken")}
        output = {"notesMarkdown": notes, "artifacts": list(artifacts)}
        declared = DECLARED.get(self.last["pending"]["stepId"], {})
        return self.call("continue_workflow", **tokens, context={**declared, **context}, output=output)

    def decide(self, option: str) -> dict[str, Any]:
        gate = self.last["pending"]["stepId"]
        return self.ack("", {"kind": "wr.decision", "checkpointId": gate, "optionId": option})

    def to_gate(self, goal: str) -> dict[str, Any]:
        """Work up to the gate of the small task; return the answer before the change was made."""
        self.start(goal)
        self.ack(PLAN)
        before = self.last
        self.ack("Waits for the cookie now; the sleep is gone.", CHANGED)
        self.ack("Checked on a slow machine too.", REPORT)
        return before

    def trust(self, workflow: str, check: str, folder: Path) -> None:
        """Let the server run a check, as its user does at a terminal."""
        ledger = self._surface.ledger
        loaded = ledger.library.load(workflow)
        assert isinstance(loaded, Loaded), loaded
        for shown in trustable(ledger, loaded.workflow, folder):
            if shown.check.id == check:
                give_trust(ledger, shown, folder, "cli")

    def rest(self) -> None:
        """Do what a server does while nobody waits for an answer."""
        self._surface.idle()


def seed(folder: Path, now: int) -> None:
    """Make the sessions, the newest of them a few minutes before `now`."""
    times = [now]
    project = make_project(folder)
    library = Library([BUNDLED, Source("project", project / ".interlock" / "workflows")], folder / "cache")

    def agent(before: int, mode: str | None = None) -> SeededAgent:
        times[0] = now - before
        preferences, folders = PRESETS[mode or "guided"], {"local": project}  # type: ignore[index]
        settings = Settings(preferences, mode is not None, check_folders=folders)
        return SeededAgent(Ledger(store, Keys(folder), library, settings, lambda: times[0]), times)

    store = open_store(folder)
    for index, goal in enumerate(GOALS[3:]):
        finished = agent((index + 2) * DAY + index * 5 * HOUR)
        finished.to_gate(goal)
        finished.decide("accept")
        finished.ack("Done, and told the team.")
    unattended = agent(2 * DAY, "never-stop")
    unattended.to_gate(GOALS[1])
    unattended.ack("Nobody was asked.")
    while unattended.last.get("pending"):
        unattended.ack("Went on.", REPORT)
    running = agent(3 * HOUR)
    running.start("Split the billing module", "wr.refactoring")
    running.ack("The module has 41 callers; 12 of them are tests.")
    blocked = agent(2 * HOUR)
    blocked.start(GOALS[2])
    blocked.ack(PLAN)
    blocked.ack("Added it to the status line.")
    blocked.ack("I looked at it and it seems fine.")
    forked = agent(HOUR)
    before = forked.to_gate("Shorten the cold start")
    forked.decide("rework")
    forked.call("continue_workflow", stateToken=before["stateToken"])
    forked.ack("Another way: load the plug-ins late.", CHANGED, TRIAGE)
    forked.ack("Measured again.", REPORT, FOUND)
    forked.decide("accept")
    forked.ack("Closed; the first try stays on its branch.")
    waiting = agent(25 * MINUTE)
    waiting.to_gate(GOALS[0])
    waiting.rest()
    released = agent(9 * MINUTE)
    released.trust("team.release", "tests", project)
    released.start(GOALS[6], "team.release")
    released.ack("Invoices are rounded once now; all tests pass.")
    write_tests(project, 3.01)
    released.ack("Mended the test, which rounded each line.")
    store.close()


def make_project(folder: Path) -> Path:
    """Make a folder with a workflow of its own, and with a test that fails."""
    project = folder / "shop"
    workflows = project / ".interlock" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "release.yaml").write_text(RELEASE)
    write_tests(project, 3.03)
    return project


def write_tests(project: Path, expected: float) -> None:
    (project / "test_invoices.py").write_text(TESTS.format(expected=expected))


if __name__ == "__main__":
    seed(Path(sys.argv[1]), time.time_ns() // 1_000_000)
