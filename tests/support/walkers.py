"""Scripted agents that walk any workflow to its end, one class per surface.

They supply what only an agent can know, when a refusal names it: variables, lists and artifacts.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import Activity, Loop, Workflow, walk
from support.harness import Agent, filled
from support.session_agents import Answer, SessionAgent

MOST_CALLS = 2000


class Walker(ABC):
    """Counts how often each option and exit was taken, so that none is taken for ever."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.read: Counter[str] = Counter()
        self.reported: list[str] = []

    @abstractmethod
    def run(self) -> dict[str, Any]:
        """Walk from the start to the end, and return the last answer."""

    def pick(self, candidates: Sequence[str], where: str) -> str:
        """Return the first of those that were taken least often."""
        chosen = min(candidates, key=lambda candidate: self.taken[f"{where}:{candidate}"])
        self.taken[f"{where}:{chosen}"] += 1
        return chosen


OF_TYPE: dict[str, Any] = {
    "boolean": True,
    "number": 1,
    "array": ["one"],
    "object": {"name": "one"},
    "string": "yes",
}


def value_for(name: str, workflow: Workflow, shape: Any = None) -> Any:
    """Return a value of the shape or list that was shown, or of the declared type; else by its name."""
    if isinstance(shape, (dict, list)) or " | " in str(shape):
        return filled(shape)
    kind = next((variable.type for variable in workflow.variables if variable.name == name), None)
    if kind is not None:
        return OF_TYPE[kind]
    return ["one"] if re.search(r"s$|list|queue|units|items", name) else "yes"


class ClaimingWalker(Walker):
    """An agent at a surface that claims steps: it takes along what the refusals ask for."""

    def __init__(self, agent: SessionAgent, workflow: Workflow) -> None:
        super().__init__()
        self.agent = agent
        self.workflow = workflow
        self.manifest: list[dict[str, Any]] = []
        self.variables: dict[str, Any] = {}

    def progress(self, tool: str, **arguments: Any) -> Answer:
        """Make a call with the work so far, again and again while it is refused for lack of something."""
        for _ in range(100):
            answer = self.agent.tell(
                tool, step_manifest=self.manifest or None, variables=self.variables or None, **arguments
            )
            if not self.supply(answer):
                return answer
        raise AssertionError(answer.text)

    def supply(self, answer: Answer) -> bool:
        """Take in what a refusal asks for; say whether it asks for anything."""
        match answer.code:
            case "INPUT_REQUIRED":
                self.variables |= {
                    name: value_for(name, self.workflow, answer.fields.get("example", {}).get(name))
                    for name in answer.fields["variables"]
                }
            case "OUTPUT_REQUIRED":
                output = {"notesMarkdown": "did it", "artifacts": _examples(answer)}
                self.manifest.append({"step_id": answer.fields["step"], "output": output})
            case "ROUND_DUE":
                self.manifest += [self.another_round(step) for step in answer.fields["steps"]]
                self.variables |= end_of_loop(answer.text)
            case _:
                return False
        return True

    def another_round(self, step: str) -> dict[str, Any]:
        """Return what a step of a loop hands in once more, which ends the loop if its decisions do."""
        sent = [entry["output"] for entry in self.manifest if entry["step_id"] == step]
        artifacts = sent[-1]["artifacts"] if sent else []
        stopped = [{**it, "decision": "stop"} if it["kind"] == "wr.loop_control" else it for it in artifacts]
        return {
            "step_id": step,
            "output": {"notesMarkdown": f"did it again, {len(sent)}", "artifacts": stopped},
        }


def end_of_loop(told: str) -> dict[str, Any]:
    """Return the variable that ends a loop whose next round is due; none if a decision ends it."""
    due = re.search(r"it goes on (while|until) ([\w-]+) (==|!=) (\S+?)[.;]?(?: |$)", told, re.MULTILINE)
    if due is None:
        return {}
    value = json.loads(due[4])
    if (due[1] == "until") == (due[3] == "=="):
        return {due[2]: value}
    return {due[2]: not value if isinstance(value, bool) else "another"}


class SessionWalker(ClaimingWalker):
    """An agent alone at the session surface: orchestrator and worker at once."""

    def run(self) -> dict[str, Any]:
        self.agent.call("start_session", agent_id="a", workflow_id=self.workflow.id)
        self.agent.tell("get_workflow")
        self.agent.tell("get_skills")
        first = self.workflow.initial or self.workflow.activities[0].id
        assert not self.agent.go(first).error
        for _ in range(MOST_CALLS):
            status = self.agent.tell("get_workflow_status").body
            if status["status"] == "completed":
                return status
            self.visit(status["current_activity"])
        raise AssertionError("the walk did not end")

    def visit(self, activity_id: str) -> None:
        answer = self.agent.tell("get_activity")
        assert not answer.error, answer.text
        self.consult(activity_id)
        self.manifest, self.variables = [], {}
        target = self.choose_exit(answer.text, activity_id)
        for _ in range(100):
            answer = self.progress("next_activity", activity_id=target)
            if not answer.error:
                return
            assert answer.code == "GATE_UNANSWERED", answer.text
            first = answer.fields.get("first")
            target = first or self.answer(answer.fields["checkpoint"], activity_id) or target
        raise AssertionError(answer.text)

    def consult(self, activity_id: str) -> None:
        """Load every skill that a step of the activity names, once, or report it."""
        activity = self.workflow.activity(activity_id)
        assert activity is not None
        for step in activity.steps():
            if step.skill and not self.read[f"{activity_id}:{step.id}"]:
                self.read[f"{activity_id}:{step.id}"] += 1
                answer = self.agent.tell("get_skill", step_id=step.id)
                if answer.error:
                    assert answer.code == "NOT_FOUND"
                    self.reported.append(step.skill)

    def choose_exit(self, text: str, activity_id: str) -> str:
        line = re.search(r"^exits: (.+)$", text, re.MULTILINE)
        exits = line[1].split("; ") if line else ["__terminal__"]
        expected = [shown.split(" ")[0] for shown in exits if "(expected)" in shown]
        if expected and self.taken[f"{activity_id}:{expected[0]}"] < 3:
            self.taken[f"{activity_id}:{expected[0]}"] += 1
            return expected[0]
        return self.pick([shown.split(" ")[0] for shown in exits], activity_id)

    def answer(self, gate: str, activity_id: str) -> str | None:
        """Have a checkpoint answered; return where the answer leads, if it does."""
        answer = self.progress("yield_checkpoint", checkpoint_id=gate)
        assert not answer.error, answer.text
        handle = answer.body["checkpoint_handle"]
        shown = self.agent.call("present_checkpoint", checkpoint_handle=handle).text
        options = re.findall(r"^  (?:- id: |  )?\"?([\w-]+)", shown.partition("options[")[2], re.MULTILINE)
        activity = self.workflow.activity(activity_id)
        assert activity is not None
        real = activity.gate(gate)
        listed = [option.id for option in real.options] if real else ["proceed"]
        assert set(listed) & set(options) or real is None
        answer = self.agent.call(
            "respond_checkpoint",
            checkpoint_handle=handle,
            option_id=self.pick(listed, f"{activity_id}:{gate}"),
        )
        assert not answer.error, answer.text
        assert not self.agent.tell("resume_checkpoint").error
        target = answer.body.get("effect", {}).get("transitionTo")
        return target if isinstance(target, str) else None


class GatedWalker(ClaimingWalker):
    """An agent at the gated surface: it answers what is pending, then goes on."""

    def run(self) -> dict[str, Any]:
        self.agent.call("start_session", workflow_id=self.workflow.id)
        answer = self.agent.go(self.workflow.initial or self.workflow.activities[0].id)
        for _ in range(MOST_CALLS):
            assert not answer.error, answer.text
            if answer.body.get("status") == "completed":
                return answer.body
            answer = self.leave(answer.body)
        raise AssertionError("the walk did not end")

    def leave(self, body: dict[str, Any]) -> Any:
        self.manifest, self.variables = [], {}
        target = self.answer_all(body)
        for _ in range(100):
            answer = self.progress("next_activity", activity_id=target)
            if answer.code != "GATE_UNANSWERED":
                return answer
            first = answer.fields.get("first")
            target = first or self.answer_all({**body, "pending_checkpoints": answer.fields["pending"]})
        raise AssertionError(answer.text)

    def answer_all(self, body: dict[str, Any]) -> str:
        pending = list(body["pending_checkpoints"])
        for _ in range(100):
            if not pending:
                break
            answer = self.answer(body["id"], pending[0])
            pending = answer["remaining_checkpoints"]
            target = answer.get("effect", {}).get("transitionTo")
            if target:
                return str(target)
        return self.pick(list(dict.fromkeys(_targets(body))) or ["__terminal__"], body["id"])

    def answer(self, activity_id: str, gate: str) -> dict[str, Any]:
        answer = self.progress("respond_checkpoint", checkpoint_id=gate, condition_not_met=True)
        if not answer.error:
            return answer.body
        assert answer.code in ("NOT_CONDITIONAL", "CONDITION_HOLDS"), answer.text
        shown = self.agent.tell("get_checkpoint", activity_id=activity_id, checkpoint_id=gate).body[
            "checkpoint"
        ]
        option = self.pick([option["id"] for option in shown["options"]], f"{activity_id}:{gate}")
        answer = self.progress("respond_checkpoint", checkpoint_id=gate, option_id=option)
        assert not answer.error, answer.text
        return answer.body


def _examples(answer: Answer) -> list[Any]:
    return [filled(answer.fields["example"])] if "example" in answer.fields else []


def _targets(body: dict[str, Any]) -> Iterator[str]:
    for transition in body.get("transitions", []):
        yield transition["to"]
    for decision in body.get("decisions", []):
        for branch in decision["branches"]:
            if branch.get("transitionTo"):
                yield branch["transitionTo"]


class ExecutionWalker(Walker):
    """An agent at the execution surface: one step or question at a time."""

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
            options = [option["id"] for option in pending["decision"]["options"]]
            return self.agent.decide(self.pick(options, pending["stepId"]))
        artifacts = [
            filled(blocker["example"])
            for blocker in answer.get("blockers", [])
            if "example" in blocker and "kind" in blocker["example"]
        ]
        context = {
            blocker["pointer"]["key"]: value_for(
                blocker["pointer"]["key"], self.workflow, blocker["example"][blocker["pointer"]["key"]]
            )
            for blocker in answer.get("blockers", [])
            if "key" in blocker["pointer"]
        }
        self.taken[pending["stepId"]] += 1
        if self.taken[pending["stepId"]] > 3:
            context |= self.other_values(self.taken[pending["stepId"]])
        return self.agent.ack("did it", artifacts=artifacts, **context)

    def other_values(self, turn: int) -> dict[str, Any]:
        """Return what an agent would learn in the end: a value that a transition or a loop compares with."""
        activities = self.workflow.activities
        conditions = [
            *(transition.condition for activity in activities for transition in activity.transitions),
            *(loop.break_condition for activity in activities for loop in _loops(activity)),
        ]
        asked = [test for test in conditions if isinstance(test, Compare) and test.operator == "=="]
        chosen = asked[turn % len(asked)] if asked else None
        return {chosen.variable: chosen.value} if chosen and "." not in chosen.variable else {}


def _loops(activity: Activity) -> Iterator[Loop]:
    return (item for item in walk(activity.items) if isinstance(item, Loop))
