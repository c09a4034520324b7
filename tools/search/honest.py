"""Honest agents: each does what is pending and asks the user, who answers; it always comes to the end.

The agent does each step with its output, sends what a step is declared to set and what it is told is missing,
and waits for the user where only the user can answer. The user chooses the option that goes on, or at first
another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from interlock.core.definition.program import Plan
from interlock.core.run import commands as c
from interlock.core.run.outcomes import (
    Awaited,
    Code,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
)
from interlock.core.run.output import Output
from interlock.core.run.polls import Approver
from interlock.core.run.questions import Question
from tools.search.adapter import NOW, Engine, Position, Sent, Setting, answered, is_complete
from tools.search.alphabet import AGENT, Move, claims, gates, honest_output
from tools.search.compiled import compiled
from tools.search.oracle import Oracle, Violation
from tools.search.seen import Seen
from tools.search.workflows import APPROVERS, END, START, GateData, StepData, WorkflowData

MOST_CALLS = 60
GOES_ON = ("yes", "on", "done", "proceed", "approve")


@dataclass(frozen=True)
class Walk:
    """What came of an honest agent's run."""

    data: WorkflowData
    setting: Setting
    moves: tuple[Move, ...]
    ended: bool
    refused: str
    violations: tuple[Violation, ...]
    log: tuple[tuple[dict[str, Any], ...], ...]


def walk(data: WorkflowData, setting: Setting, *, contrary: bool = False) -> Walk:
    """Let an honest agent run a workflow on one surface; a contrary user first says no to each question."""
    return _Walker(data, setting, contrary).run()


class _Walker:
    def __init__(self, data: WorkflowData, setting: Setting, contrary: bool) -> None:
        self.data, self.setting, self.contrary = data, setting, contrary
        self.refused_once = set[str]()
        self.rounds = 1  # of while loops that the agent's manifest tells of
        self.engine = Engine(Plan(compiled(data)), setting)
        self.oracle, self.seen = Oracle(data), Seen()
        self.moves: list[Move] = []
        self.log: list[tuple[dict[str, Any], ...]] = []
        self.violations: list[Violation] = []
        self.refused = ""
        self.position = self._learned(self.engine.start(START))

    def run(self) -> Walk:
        for _ in range(MOST_CALLS):
            if is_complete(self.position):
                break
            if not self.user_answers():
                self.agent_goes_on()
        ended = is_complete(self.position)
        return Walk(
            self.data,
            self.setting,
            tuple(self.moves),
            ended,
            "" if ended else self.refused,
            tuple(self.violations),
            tuple(self.log),
        )

    def _learned(self, sent: Sent) -> Position:
        self.seen, violations = self.oracle.read(self.seen, sent.events, sent.position.files)
        self.violations += violations
        self.log.append(sent.events)
        self.refused = sent.refused
        return sent.position

    def send(self, label: str, command: c.Command) -> None:
        self.moves.append(Move(label, command))
        self.position = self._learned(self.engine.send(self.position, command))

    def user_answers(self) -> bool:
        """Let the user answer the first question that the inbox shows and that has no answer yet."""
        policy = self.setting.policy
        for question in self.engine.questions(self.position):
            option = self.answer_to(question)
            is_gate = any(question.id == gate for gate in self._gates())
            if question.digest not in self.position.decisions:
                self.refused_once.add(question.id)
            label = f"user answers {question.text!r} with {option}"
            if is_gate and any(gate.id == question.id and gate.approvers for gate in self._own_gates()):
                if question.digest in self.position.decisions:
                    continue
                for name in APPROVERS[1:]:
                    approver, shown = Approver(name), question.digest
                    answer = c.Approve(policy, NOW, "console", approver, question.id, shown, option)
                    self.send(f"{name} answers {question.text!r} with {option}", answer)
                return True
            if is_gate and policy.exits == "claimed":
                terms = self.setting.terms
                self.send(label, c.ResolveCheckpoint(policy, NOW, terms, "console", question.id, option))
                return True
            if question.digest not in self.position.decisions:
                self.position = answered(self.position, question, option)
                self.moves.append(Move(label, position=self.position))
                return True
        return False

    def answer_to(self, question: Question) -> str:
        """Choose the option that goes on; a contrary user chooses another at first."""
        text = "3" if question.id.endswith("_count") else "given"
        options = [option.id for option in question.options] or [text]
        going_on = next((name for name in options if name in GOES_ON), options[0])
        other = next((name for name in options if name != going_on), going_on)
        return other if self.contrary and question.id not in self.refused_once else going_on

    def _own_gates(self) -> Iterator[GateData]:
        return (item for item in self.data.items() if isinstance(item, GateData))

    def _gates(self) -> Iterator[str]:
        activity = self.data.activity(self.position.state.activity)
        return gates(activity) if activity is not None else iter(())

    def agent_goes_on(self) -> None:
        match self.setting.surface:
            case "execution":
                self.acknowledge()
            case "session" | "gated":
                self.go()
            case "navigation":
                self.act()

    def variables_of(self, step_id: str) -> dict[str, Any]:
        """Return what a step is declared to set; the agent has found that it is as it was."""
        step = next(item for item in self.data.items() if isinstance(item, StepData) and item.id == step_id)
        return {name: START[name] for name in step.sets if name in START}

    def acknowledge(self) -> None:
        policy, terms, position = self.setting.policy, self.setting.terms, self.position
        pending = self.engine.awaited(position)
        output, variables = Output(), dict[str, Any]()
        if isinstance(pending, NeedStep):
            output, variables = honest_output(pending.step.id, self.data), self.variables_of(pending.step.id)
        elif isinstance(pending, NeedInput):
            variables = {name: START.get(name, True) for name in pending.variables}
        ack = c.AcknowledgeStep(policy, NOW, terms, output, variables, decisions=position.decisions)
        self.send("ack", ack)

    def go(self) -> None:
        """Resume, or leave the activity with a manifest; yield the gate that is in the way."""
        policy, terms, state = self.setting.policy, self.setting.terms, self.position.state
        decisions = self.position.decisions
        activity = self.data.activity(state.activity)
        if AGENT in state.visit.yielded:
            self.send("resume_checkpoint", c.ResumeWorker(policy, NOW, AGENT))
            return
        pending = self.engine.awaited(self.position)
        if activity is None:
            first = pending.initial if isinstance(pending, NeedEntry) else None
            self.send("enter", c.EnterActivity(policy, NOW, terms, first or self.data.activities[0].id))
            return
        if isinstance(pending, NeedAnswer) and state.active is None:
            agent = AGENT if self.setting.surface == "session" else ""
            ask = c.OpenCheckpoint(policy, NOW, terms, pending.gate.id, agent, decisions=decisions)
            self.send(f"ask {pending.gate.id}", ask)
            if not self.refused:
                return
        target = state.visit.exit_to or (activity.exits[-1].to if activity.exits else END)
        manifest = claims(activity, self.rounds)
        variables = _left_unset(pending) if self.refused == Code.INPUT_REQUIRED else {}
        leave = c.EnterActivity(
            policy, NOW, terms, target, manifest, variables=variables, decisions=decisions
        )
        self.send(f"next_activity {target}", leave)
        self.rounds += self.refused == Code.ROUND_DUE

    def act(self) -> None:
        """Take the action that navigation lists as required."""
        policy, terms, decisions = self.setting.policy, self.setting.terms, self.position.decisions
        pending = self.engine.awaited(self.position)
        match pending:
            case NeedStep(step=step):
                output, variables = honest_output(step.id, self.data), self.variables_of(step.id)
                done = c.AcknowledgeStep(
                    policy, NOW, terms, output, variables, step.id, decisions, reports=False
                )
                self.send(f"complete_step {step.id}", done)
            case NeedAnswer(gate=gate):
                recorded = [decision.option for decision in decisions.values()]
                option = recorded[0] if recorded else gate.options[0].id
                answer = c.ResolveCheckpoint(
                    policy, NOW, terms, "agent", gate.id, option, decisions=decisions
                )
                self.send(f"respond_to_checkpoint {gate.id}", answer)
            case NeedLoop(loop=loop) | NeedInput(loop=loop) if loop is not None:
                self.send(f"advance_loop {loop.id}", c.AdvanceLoop(policy, NOW, terms, loop.id))
            case NeedInput():
                activity = self.data.activity(self.position.state.activity)
                target = activity.exits[-1].to if activity is not None and activity.exits else END
                left = c.EnterActivity(policy, NOW, terms, target, variables=_left_unset(pending))
                self.send(f"transition {target}", left)
            case NeedExit(exits=exits):
                expected = [leads.to for leads in exits if leads.expected] or [exits[-1].to]
                self.send(f"transition {expected[0]}", c.EnterActivity(policy, NOW, terms, expected[0]))
            case _:
                first = self.data.activities[0].id
                self.send(f"transition {first}", c.EnterActivity(policy, NOW, terms, first))


def _left_unset(pending: Awaited) -> dict[str, Any]:
    """Return what the run asks for and the agent does not know: null for each, or what it has found."""
    names = pending.variables if isinstance(pending, NeedInput) else ()
    return {name: START.get(name) for name in names}


@dataclass
class Walked:
    """How honest agents fared."""

    walks: int = 0
    stuck: list[Walk] = field(default_factory=list)
    suspected: list[Walk] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Tell the figures."""
        suspected = f"{len(self.suspected)} wrong by the oracle"
        yield f"{self.walks} honest walks, {len(self.stuck)} stuck, {suspected}"


def walk_all(workflows: Iterable[WorkflowData], settings: Sequence[Setting], seconds: float) -> Walked:
    """Walk workflows on each surface until the time is over."""
    began, walked = perf_counter(), Walked()
    for data in workflows:
        for setting in settings:
            for contrary in (False, True):
                done = walk(data, setting, contrary=contrary)
                walked.walks += 1
                walked.stuck += [] if done.ended else [done]
                walked.suspected += [done] if done.violations else []
        if perf_counter() - began > seconds:
            break
    return walked
