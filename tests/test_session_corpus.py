"""Real activity folders, and our bundled ones, walked to their end by a scripted agent through three doors.

The agent supplies what only an agent can know: variables, lists and artifacts, when a refusal names them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from authored import write
from corpus import CORPUS, needs_corpus
from harness import Agent, Bench
from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.sources import Source
from interlock.core.commands import Terms
from interlock.core.conditions import Compare
from interlock.core.workflow import Activity, Loop, Workflow, walk
from interlock.surfaces.execution import ExecutionSurface
from session_agents import QUICK, Talk, compiled_once, gated, session

pytestmark = pytest.mark.slow

ACTIVITIES = CORPUS / "activities"
FOLDERS = ["cicd-pipeline-security-audit", "meta", "prism", "prism-evaluate", "work-packages"]
OURS = ["meta", "work-package", "work-packages"]
STEPS = ["wr.bug_investigation", "wr.code_review", "wr.feature", "wr.release", "wr.research", "wr.small_task"]
MOST_CALLS = 2000

BORROWER = {
    "lender/workflow.yaml": "id: lender\nversion: 1.0.0\ntitle: Lender\ninitialActivity: one\n",
    "lender/activities/01-one.yaml": "id: one\nversion: 1.0.0\nname: One\n"
    "steps: [{id: a, name: A, description: Do a., skill: lent}]\n"
    "transitions: [{to: two, isDefault: true}]\n",
    "lender/activities/02-two.yaml": "id: two\nversion: 1.0.0\nname: Two\n"
    "steps: [{id: b, name: B, description: Do b.}]\n",
    "lender/skills/00-lent.yaml": "id: lent\nversion: 1.0.0\ncapability: Lend\n",
    "borrower/workflow.yaml": "id: borrower\nversion: 1.0.0\ntitle: Borrower\ninitialActivity: own\n"
    "activities: [lender/01-one.yaml, lender/activities/02-two.yaml]\n",
    "borrower/activities/00-own.yaml": "id: own\nversion: 1.0.0\nname: Own\n"
    "steps: [{id: c, name: C, description: Do c.}]\ntransitions: [{to: one, isDefault: true}]\n",
}


class Walk:
    """What all walks share: how often each option and way was taken, so that none is taken for ever."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.read: Counter[str] = Counter()
        self.reported: list[str] = []

    def pick(self, among: Sequence[str], where: str) -> str:
        """The first of those that were taken least often."""
        chosen = min(among, key=lambda one: self.taken[f"{where}:{one}"])
        self.taken[f"{where}:{chosen}"] += 1
        return chosen


def value_for(name: str) -> Any:
    return ["one"] if re.search(r"s$|list|queue|units|items", name) else "yes"


class SessionWalk(Walk):
    """An agent alone at the session door: orchestrator and worker at once."""

    def __init__(self, talk: Talk, workflow: Workflow) -> None:
        super().__init__()
        self.talk = talk
        self.workflow = workflow
        self.manifest: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        self.talk.call("start_session", agent_id="a", workflow_id=self.workflow.id)
        self.talk.tell("get_workflow")
        self.talk.tell("get_skills")
        first = self.workflow.initial or self.workflow.activities[0].id
        assert not self.talk.go(first).error
        for _ in range(MOST_CALLS):
            status = self.talk.tell("get_workflow_status").body
            if status["status"] == "completed":
                return status
            self.visit(status["current_activity"])
        raise AssertionError("the walk did not end")

    def visit(self, activity_id: str) -> None:
        told = self.talk.tell("get_activity")
        assert not told.error, told.text
        self.consult(activity_id)
        self.manifest = []
        target = self.way(told.text, activity_id)
        for _ in range(100):
            told = self.talk.go(target, step_manifest=self.manifest or None)
            if not told.error:
                return
            target = self.put_right(told, activity_id) or target
        raise AssertionError(told.text)

    def consult(self, activity_id: str) -> None:
        """Load every skill that a step of the activity names, once, or report it."""
        activity = self.workflow.activity(activity_id)
        assert activity is not None
        for step in activity.steps():
            if step.skill and not self.read[f"{activity_id}:{step.id}"]:
                self.read[f"{activity_id}:{step.id}"] += 1
                told = self.talk.tell("get_skill", step_id=step.id)
                if told.error:
                    assert told.code == "NOT_FOUND"
                    self.reported.append(step.skill)

    def way(self, text: str, activity_id: str) -> str:
        line = re.search(r"^ways: (.*)$", text, re.MULTILINE)
        listed = [one.split(" ")[0] for one in line[1].split("; ")] if line and line[1] else ["__terminal__"]
        expected = [one.split(" ")[0] for one in line[1].split("; ") if "(expected)" in one] if line else []
        if expected and self.taken[f"{activity_id}:{expected[0]}"] < 3:
            self.taken[f"{activity_id}:{expected[0]}"] += 1
            return expected[0]
        return self.pick(listed, activity_id)

    def put_right(self, told: Any, activity_id: str) -> str | None:
        match told.code:
            case "GATE_UNANSWERED":
                return self.answer(told.fields["checkpoint"], activity_id)
            case "INPUT_REQUIRED":
                self.talk.go(
                    "no-such-activity", variables={n: value_for(n) for n in told.fields["variables"]}
                )
                return None
            case "OUTPUT_REQUIRED":
                output = {"artifacts": [told.fields["example"]]}
                self.manifest.append({"step_id": told.fields["step"], "output": output})
                return None
            case _:
                raise AssertionError(told.text)

    def answer(self, gate: str, activity_id: str) -> str | None:
        told = self.talk.tell("yield_checkpoint", checkpoint_id=gate, step_manifest=self.manifest or None)
        assert not told.error, told.text
        handle = told.body["checkpoint_handle"]
        shown = self.talk.call("present_checkpoint", checkpoint_handle=handle).text
        options = re.findall(r"^  (?:- id: |  )?\"?([\w-]+)", shown.partition("options[")[2], re.MULTILINE)
        found = self.workflow.activity(activity_id)
        assert found is not None
        real = found.gate(gate)
        listed = [one.id for one in real.options] if real else ["proceed"]
        assert set(listed) & set(options) or real is None
        told = self.talk.call(
            "respond_checkpoint",
            checkpoint_handle=handle,
            option_id=self.pick(listed, f"{activity_id}:{gate}"),
        )
        assert not told.error, told.text
        assert not self.talk.tell("resume_checkpoint").error
        target = told.body.get("effect", {}).get("transitionTo")
        return target if isinstance(target, str) else None


class GatedWalk(Walk):
    """An agent at the gated door: it answers what is pending, then goes on."""

    def __init__(self, talk: Talk, workflow: Workflow) -> None:
        super().__init__()
        self.talk = talk
        self.workflow = workflow

    def run(self) -> dict[str, Any]:
        self.talk.call("start_session", workflow_id=self.workflow.id)
        told = self.talk.go(self.workflow.initial or self.workflow.activities[0].id)
        for _ in range(MOST_CALLS):
            assert not told.error, told.text
            if told.body.get("status") == "completed":
                return told.body
            told = self.leave(told.body)
        raise AssertionError("the walk did not end")

    def leave(self, body: dict[str, Any]) -> Any:
        target = self.answer_all(body)
        manifest: list[dict[str, Any]] = []
        variables: dict[str, Any] = {}
        for _ in range(100):
            told = self.talk.go(target, variables=variables, step_manifest=manifest or None)
            match told.code:
                case "INPUT_REQUIRED":
                    variables = {name: value_for(name) for name in told.fields["variables"]}
                case "OUTPUT_REQUIRED":
                    output = {"artifacts": [told.fields["example"]]}
                    manifest.append({"step_id": told.fields["step"], "output": output})
                case "GATE_UNANSWERED":
                    target = self.answer_all({**body, "pending_checkpoints": told.fields["pending"]})
                case _:
                    return told
        raise AssertionError(told.text)

    def answer_all(self, body: dict[str, Any]) -> str:
        pending = list(body["pending_checkpoints"])
        while pending:
            told = self.answer(body["id"], pending[0])
            pending = told["remaining_checkpoints"]
            target = told.get("effect", {}).get("transitionTo")
            if target:
                return str(target)
        return self.pick(list(dict.fromkeys(_targets(body))) or ["__terminal__"], body["id"])

    def answer(self, activity_id: str, gate: str) -> dict[str, Any]:
        told = self.talk.tell("respond_checkpoint", checkpoint_id=gate, condition_not_met=True)
        if not told.error:
            return told.body
        assert told.code in ("NOT_CONDITIONAL", "CONDITION_HOLDS"), told.text
        shown = self.talk.tell("get_checkpoint", activity_id=activity_id, checkpoint_id=gate).body[
            "checkpoint"
        ]
        option = self.pick([one["id"] for one in shown["options"]], f"{activity_id}:{gate}")
        told = self.talk.tell("respond_checkpoint", checkpoint_id=gate, option_id=option)
        assert not told.error, told.text
        return told.body


def _targets(body: dict[str, Any]) -> Iterator[str]:
    for one in body.get("transitions", []):
        yield one["to"]
    for decision in body.get("decisions", []):
        for branch in decision["branches"]:
            if branch.get("transitionTo"):
                yield branch["transitionTo"]


class ExecutionWalk(Walk):
    """An agent at the execution door: one step or question at a time."""

    def __init__(self, agent: Agent, workflow: Workflow) -> None:
        super().__init__()
        self.agent = agent
        self.workflow = workflow

    def run(self) -> dict[str, Any]:
        answer = self.agent.start(self.workflow.id)
        for _ in range(MOST_CALLS):
            assert not answer["_error"], answer
            if answer["isComplete"]:
                return answer
            answer = self.step(answer)
        raise AssertionError("the walk did not end")

    def step(self, answer: dict[str, Any]) -> dict[str, Any]:
        pending = answer["pending"]
        if "decision" in pending:
            options = [one["id"] for one in pending["decision"]["options"]]
            return self.agent.decide(self.pick(options, pending["stepId"]))
        artifacts = [
            one["example"]
            for one in answer.get("blockers", [])
            if "example" in one and "kind" in one["example"]
        ]
        context = {
            one["pointer"]["key"]: value_for(one["pointer"]["key"])
            for one in answer.get("blockers", [])
            if "key" in one["pointer"]
        }
        self.taken[pending["stepId"]] += 1
        if self.taken[pending["stepId"]] > 3:
            context |= self.other_values(self.taken[pending["stepId"]])
        return self.agent.ack("did it", artifacts=artifacts, **context)

    def other_values(self, turn: int) -> dict[str, Any]:
        """What an agent would learn in the end: a value that one of the ways asks for."""
        ways = [way.condition for one in self.workflow.activities for way in one.transitions]
        loops = [item.break_condition for one in self.workflow.activities for item in _loops(one)]
        asked = [one for one in (*ways, *loops) if isinstance(one, Compare) and one.operator == "=="]
        chosen = asked[turn % len(asked)] if asked else None
        return {chosen.variable: chosen.value} if chosen and "." not in chosen.variable else {}


def _loops(activity: Activity) -> Iterator[Loop]:
    return (item for item in walk(activity.items) if isinstance(item, Loop))


def library(folder: Path | None) -> Library:
    sources = [BUNDLED, *([Source("configured", folder)] if folder else [])]
    return Library(sources, Path(compiled_once().name))


def walks(bench: Bench, name: str, folder: Path | None) -> tuple[Workflow, list[Walk]]:
    found = library(folder)
    loaded = found.load(name)
    assert isinstance(loaded, Loaded), loaded
    talks = (session(bench), gated(bench))
    for talk in talks:
        talk.ledger.library = found
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    ledger.library = found
    flow = loaded.workflow
    agent = Agent(ExecutionSurface(ledger))
    return flow, [SessionWalk(talks[0], flow), GatedWalk(talks[1], flow), ExecutionWalk(agent, flow)]


def check(bench: Bench, name: str, folder: Path | None) -> list[Walk]:
    _, three = walks(bench, name, folder)
    for one in three:
        ended = one.run()  # type: ignore[attr-defined]
        assert ended.get("isComplete") or ended["status"] == "completed"
    return three


@needs_corpus
@pytest.mark.parametrize("name", FOLDERS)
def test_a_real_folder_is_walked_to_its_end_through_three_doors(bench: Bench, name: str) -> None:
    check(bench, name, ACTIVITIES)


@pytest.mark.parametrize("name", OURS)
def test_a_bundled_folder_is_walked_to_its_end_with_every_skill_there(bench: Bench, name: str) -> None:
    three = check(bench, name, None)
    assert three[0].reported == []


@pytest.mark.parametrize("name", STEPS)
def test_a_bundled_step_workflow_is_walked_to_its_end_as_one_activity(bench: Bench, name: str) -> None:
    check(bench, name, None)


def test_a_folder_that_borrows_activities_is_walked_with_what_they_need(bench: Bench) -> None:
    write(bench.workflows, BORROWER)
    three = check(bench, "borrower", bench.workflows)
    assert three[0].read["one:a"] == 1
    assert three[0].reported == []


@needs_corpus
@pytest.mark.parametrize("name", FOLDERS)
def test_every_skill_and_resource_that_a_folder_names_is_loaded_or_reported(bench: Bench, name: str) -> None:
    found = library(ACTIVITIES)
    loaded = found.load(name)
    assert isinstance(loaded, Loaded), loaded
    talk = session(bench, QUICK)
    talk.ledger.library = found
    talk.call("start_session", agent_id="a", workflow_id=name)
    said = " ".join(one.message for one in loaded.problems)
    refs = {step.skill for one in loaded.workflow.activities for step in one.steps() if step.skill}
    kept = {one.ref for one in loaded.workflow.documents}
    assert all(ref in kept or f"'{ref}'" in said for ref in refs)
    for document in loaded.workflow.documents:
        if document.kind == "resource":
            assert not talk.tell("get_resource", resource_id=document.ref).error, document.ref
