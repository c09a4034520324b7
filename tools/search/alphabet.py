"""Everything that can be sent to a run at a position: by an agent on each surface, and by an honest user.

A user answers a question that the inbox shows. On execution and navigation, and for what a step asks, the
answer is recorded at the node and the agent's next call uses it; elsewhere a gate is answered at once. Where
the user is asked by form, the form is accepted or declined, by whoever holds the client. A gate with
approvers is answered by each of them, by a stranger and by stand-ins. An agent edits the files that are
checked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.gates import find_gate
from interlock.core.run import commands as c
from interlock.core.run.outcomes import NeedAnswer, NeedStep
from interlock.core.run.output import Output
from interlock.core.run.polls import Approver
from interlock.core.run.questions import Question
from interlock.core.run.state import RunState
from interlock.core.variables.typed_values import sound
from tools.search.adapter import FILES, LATER, NOW, Engine, Form, Position, Setting, answered
from tools.search.compiled import ARTIFACT, CHILD, compiled
from tools.search.workflows import (
    APPROVERS,
    END,
    START,
    TYPES,
    ActivityData,
    GateData,
    LoopData,
    StepData,
    WorkflowData,
    flat,
)

AGENT = "worker"
VALUES: Mapping[str, Sequence[Any]] = {
    "boolean": (True, False, "true", None),
    "string": ("PRODUCTION", None, ["PRODUCTION"]),
    "any": ("PRODUCTION", None),
    "number": (7, "many", None),
    "array": (["PRODUCTION"], [], "PRODUCTION"),
    "object": ({"host": "PRODUCTION"}, {}, None),
}
PEOPLE = (
    *map(Approver, (*APPROVERS, "eve")),
    Approver("dan", stands_in_for=(Approver("ann"),)),
    Approver("fay", stands_in_for=(Approver("bob"),)),
    Approver("bob", stands_in_for=(Approver("cy"),)),
)
FORMS: Mapping[Form, str] = {
    "first": "the form is accepted with its first option",
    "last": "the form is accepted with its last option",
    "declined": "the user declines the form",
}


@dataclass(frozen=True)
class Move:
    """One thing that is sent: the agent's command, or the user's answer that is recorded at the node."""

    label: str
    command: c.Command | None = None
    position: Position | None = None
    by_user: bool = False
    form: Form = ""

    @property
    def writes(self) -> bool:
        """Say whether the agent sends variables: the label then names them."""
        return "=" in self.label


def alphabets(data: WorkflowData, setting: Setting) -> tuple[Alphabet, ...]:
    """Return what can be sent to a workflow's runs, for each surface that the setting names."""
    plan = Plan(compiled(data))
    surfaces = [setting.surface, *([setting.also] if setting.also else [])]
    settings = [dataclasses.replace(setting, surface=surface) for surface in surfaces]
    return tuple(Alphabet(data, Engine(plan, each)) for each in settings)


class Alphabet:
    """What can be sent to the runs of one workflow on one surface."""

    def __init__(self, data: WorkflowData, engine: Engine, *, writes: bool = True) -> None:
        self.data = data
        self.engine = engine
        self.deltas = [{}, *(deltas(data) if writes else ())]
        self.taken = list(_taken(engine.plan, self.deltas))
        self.has_checks = any(isinstance(item, StepData) and item.checked for item in data.items())
        self.has_forms = engine.setting.terms.asks_by_form
        self.timed = {
            activity.id
            for activity in data.activities
            if any(isinstance(item, GateData) and item.waits_ms for item in flat(activity.items))
        }

    @cached_property
    def without_writes(self) -> Alphabet:
        """The same without the commands that bring variables."""
        return Alphabet(self.data, self.engine, writes=False)

    def edits(self, position: Position) -> Iterator[Move]:
        """Yield the edits of the files that are checked, once a run has begun; they are no commands."""
        for files in FILES if self.has_checks and position.state != RunState() else ():
            if files != position.files:
                yield Move(f"edit: {files}", position=dataclasses.replace(position, files=files))

    def moves(self, position: Position) -> Iterator[Move]:
        """Yield every move at a position, the user's first; where a gate waits for a time, later ones too."""
        for move in self._moves(position):
            prefix = f"on {self.engine.setting.surface}: " if self.engine.setting.also else ""
            yield dataclasses.replace(move, label=f"{prefix}{move.label}") if prefix else move

    def _moves(self, position: Position) -> Iterator[Move]:
        if position.state == RunState():
            yield from self._starts()
            return
        yield from self._user_moves(position)
        has_timer = position.state.activity in self.timed
        for move in self._agent_moves(position):
            yield move
            match move.command:
                case c.AcknowledgeStep() | c.EnterActivity() | c.ResolveCheckpoint() if has_timer:
                    if not move.writes:
                        yield Move(f"later: {move.label}", replace(move.command, now=LATER))
            if self.has_forms and move.command is not None and not move.writes:
                yield from self._by_form(position, move, move.command)

    def _starts(self) -> Iterator[Move]:
        """Begin the run as an honest agent does, and with what nobody has asked the agent for."""
        yield Move("start", self.engine.starting(START))
        for delta in self.taken:
            if not delta.keys() & START.keys():
                yield Move(f"start{_with(delta)}", self.engine.starting({**START, **delta}))

    def _by_form(self, position: Position, move: Move, command: c.Command) -> Iterator[Move]:
        """The same call from a client that can show forms, where it is asked something."""
        if self.engine.asks(position, command):
            for form, words in FORMS.items():
                yield Move(f"{move.label}, and {words}", command, form=form)

    def _agent_moves(self, position: Position) -> Iterator[Move]:
        if self.data.child and not position.state.children:
            yield Move("start a child", c.StartChild(CHILD, "child"))
        for delta in self.deltas if position.state.children else ():
            child = c.ReturnChild(CHILD, "child", completed=True, variables=delta)
            yield Move(f"the child returns{_with(delta)}", child)
        match self.engine.setting.surface:
            case "execution":
                yield from self._acknowledgements(position)
            case "session" | "gated":
                yield from self._session_calls(position)
            case "navigation":
                yield from self._actions(position)

    def _brought(self, position: Position, *, is_first: bool) -> Sequence[dict[str, Any]]:
        """Return the writes that may come with a call: all with the first of several that are alike.

        The others bring those that are taken and change something.
        """
        if is_first:
            return self.deltas
        known = position.state.variables
        return [{}, *(it for it in self.taken if any(known.get(name) != value for name, value in it.items()))]

    def _user_moves(self, position: Position) -> Iterator[Move]:
        setting, state = self.engine.setting, position.state
        for question in self.engine.questions(position):
            options = [option.id for option in question.options] or ["given"]
            options += ["3"] if question.id.endswith("_count") else []  # what was given is not a number
            found = find_gate(self.engine.plan, state, question.id)
            is_gate = found is not None
            if found is not None and found.gate.decide is not None:
                yield from self._approvals(question, options)
                continue
            for option in options:
                label = f"user answers {question.text!r} with {option}"
                if is_gate and setting.policy.exits == "claimed":
                    answer = c.ResolveCheckpoint(
                        setting.policy, NOW, setting.terms, "console", question.id, option
                    )
                    yield Move(label, answer, by_user=True)
                elif question.digest not in position.decisions:
                    yield Move(label, position=answered(position, question, option), by_user=True)
                    form = f"agent answers its own form {question.text!r} with {option}"
                    yield Move(form, position=answered(position, question, option, "elicitation"))

    def _approvals(self, question: Question, options: Sequence[str]) -> Iterator[Move]:
        policy = self.engine.setting.policy
        for approver in PEOPLE:
            places = "".join(f" in place of {holder.name}" for holder in approver.stands_in_for)
            for option in options if approver.name == "bob" else options[:1]:
                approve = c.Approve(policy, NOW, "console", approver, question.id, question.digest, option)
                label = f"{approver.name}{places} answers {question.text!r} with {option}"
                yield Move(label, approve, by_user=True)

    def _acknowledgements(self, position: Position) -> Iterator[Move]:
        setting, pending = self.engine.setting, self.engine.awaited(position)
        outputs = [*self._outputs(pending), *_closing_gaps(position)]
        for index, (words, output) in enumerate(outputs):
            for delta in self._brought(position, is_first=index == 0):
                yield Move(
                    f"ack {words}{_with(delta)}",
                    c.AcknowledgeStep(
                        setting.policy,
                        NOW,
                        setting.terms,
                        output,
                        {**position.kept, **delta},
                        decisions=position.decisions,
                    ),
                )
        for again in self._asked_again(position):
            yield Move(
                f"ack, asking again{_with(again)}",
                c.AcknowledgeStep(setting.policy, NOW, setting.terms, reask=again),
            )

    def _asked_again(self, position: Position) -> Iterator[dict[str, Any]]:
        """Yield new values of what questions own."""
        owned = {name for owner in position.state.ownership.shown.values() for name in owner.roots}
        for delta in self.deltas[1:]:
            (name, value), *_ = delta.items()
            if name in owned and position.state.variables.get(name) != value:
                yield delta

    def _outputs(self, pending: Any) -> Iterator[tuple[str, Output]]:
        yield "without output", Output()
        if isinstance(pending, NeedStep):
            yield "with output", honest_output(pending.step.id, self.data)
            for asked in self._asked_by(pending.step.id):
                yield f"reporting {asked}", _report(asked, "approve" if "approval" in asked else "proceed")
        elif isinstance(pending, NeedAnswer):
            for option in pending.gate.options:
                yield f"reporting {option.id}", _report(pending.gate.id, option.id)

    def _asked_by(self, step_id: str) -> Iterator[str]:
        step = next(item for item in self.data.items() if isinstance(item, StepData) and item.id == step_id)
        if step.asks:
            yield step.input_id
        if step.confirm:
            yield step.confirmation_id

    def _session_calls(self, position: Position) -> Iterator[Move]:
        setting, state = self.engine.setting, position.state
        activity = self.data.activity(state.activity)
        targets = [*(each.id for each in self.data.activities), END]
        manifests = list(_manifests(activity))
        for target in targets:
            for words, claimed in manifests:
                is_first = target == targets[0] and not words
                for delta in self._brought(position, is_first=is_first):
                    call = c.EnterActivity(
                        setting.policy,
                        NOW,
                        setting.terms,
                        target,
                        claimed,
                        variables=delta,
                        decisions=position.decisions,
                    )
                    yield Move(f"next_activity {target}{words}{_with(delta)}", call)
        for again in self._asked_again(position):
            call = c.EnterActivity(setting.policy, NOW, setting.terms, targets[0], reask=again)
            yield Move(f"next_activity {targets[0]}, asking again{_with(again)}", call)
        if activity is None:
            return
        asked = list(gates(activity))
        yield from self._openings(position, asked, manifests)
        if setting.surface == "session":
            for delta in self.deltas if state.visit.yielded else ():
                yield Move(
                    f"resume_checkpoint{_with(delta)}", c.ResumeWorker(setting.policy, NOW, AGENT, delta)
                )
        opened = [state.visit.open.gate] if state.visit.open is not None else asked
        for gate in opened if setting.surface == "gated" or state.visit.open is not None else ():
            yield from self._responses(position, gate, manifests)

    def _openings(self, position: Position, asked: Sequence[str], manifests: Sequence[Any]) -> Iterator[Move]:
        """To yield a gate on session, to get one on gated."""
        setting = self.engine.setting
        is_session = setting.surface == "session"
        verb, agent = ("yield_checkpoint", AGENT) if is_session else ("get_checkpoint", "")
        for gate in asked if position.state.active is None else ():
            for words, claimed in manifests:
                for delta in self._brought(position, is_first=not words):
                    call = c.OpenCheckpoint(
                        setting.policy,
                        NOW,
                        setting.terms,
                        gate,
                        agent,
                        claims=claimed,
                        variables=delta,
                        decisions=position.decisions,
                    )
                    yield Move(f"{verb} {gate}{words}{_with(delta)}", call)
                    if not delta and is_session:
                        yield Move(f"{verb} {gate} round 2{words}", replace(call, iteration=2))

    def _responses(self, position: Position, gate: str, manifests: Sequence[Any]) -> Iterator[Move]:
        """Answers that the agent sends, in all three ways, and as if they came from its own form."""
        setting = self.engine.setting
        found = find_gate(self.engine.plan, position.state, gate)
        answer = c.ResolveCheckpoint(
            setting.policy, NOW, setting.terms, "agent", gate, decisions=position.decisions
        )
        digests = [it.digest for it in self.engine.questions(position) if it.id == gate]
        for number, option in enumerate(found.gate.options if found else ()):
            chosen = replace(answer, option=option.id)
            for words, claimed in manifests if setting.surface == "gated" else [("", ())]:
                for delta in self._brought(position, is_first=not number and not words):
                    label = f"respond_checkpoint {gate} {option.id}{words}{_with(delta)}"
                    yield Move(label, replace(chosen, variables=delta, claims=claimed))
            forged = {digest: c.Decision(option.id, "elicitation") for digest in digests}
            if forged:
                label = f"agent answers its own form of {gate} with {option.id}"
                # what a person has recorded is stronger than a form
                yield Move(label, replace(chosen, decisions={**forged, **position.decisions}))
        yield Move(f"respond_checkpoint {gate} condition_not_met", replace(answer, condition_not_met=True))
        yield Move(f"respond_checkpoint {gate} auto_advance", replace(answer, auto_advance=True))

    def _actions(self, position: Position) -> Iterator[Move]:
        setting, state = self.engine.setting, position.state
        activity = self.data.activity(state.activity)
        policy, terms, decisions = setting.policy, setting.terms, position.decisions
        brought = self._brought(position, is_first=False)
        for delta in self.deltas:
            for item in flat(activity.items) if activity else ():
                match item:
                    case StepData():
                        for words, output in (
                            ("", Output()),
                            (" with output", honest_output(item.id, self.data)),
                        ):
                            if words and delta not in brought:
                                continue
                            step = c.AcknowledgeStep(
                                policy, NOW, terms, output, delta, item.id, decisions, reports=False
                            )
                            yield Move(f"complete_step {item.id}{words}{_with(delta)}", step)
                    case LoopData():
                        yield Move(
                            f"advance_loop {item.id}{_with(delta)}",
                            c.AdvanceLoop(policy, NOW, terms, item.id, None, delta),
                        )
            for gate in gates(activity) if activity else ():
                found = find_gate(self.engine.plan, state, gate)
                for number, option in enumerate(found.gate.options if found else ()):
                    if number and delta not in brought:
                        continue
                    answer = c.ResolveCheckpoint(
                        policy, NOW, terms, "agent", gate, option.id, variables=delta, decisions=decisions
                    )
                    yield Move(f"respond_to_checkpoint {gate} {option.id}{_with(delta)}", answer)
            for number, target in enumerate((*(each.id for each in self.data.activities), END)):
                if number and delta not in brought:
                    continue
                yield Move(
                    f"transition {target}{_with(delta)}",
                    c.EnterActivity(policy, NOW, terms, target, variables=delta),
                )
        for again in self._asked_again(position):
            step = c.AcknowledgeStep(policy, NOW, terms, reports=False, reask=again)
            yield Move(f"complete_step, asking again{_with(again)}", step)
        for item in flat(activity.items) if activity else ():
            if isinstance(item, LoopData) and item.over:
                items = c.AdvanceLoop(policy, NOW, terms, item.id, ("PRODUCTION",))
                yield Move(f"advance_loop {item.id} over PRODUCTION", items)


def gates(activity: ActivityData) -> Iterator[str]:
    """Yield the ids of the gates and confirmations of an activity."""
    for item in flat(activity.items):
        if isinstance(item, GateData):
            yield item.id
        elif isinstance(item, StepData) and item.confirm:
            yield item.confirmation_id


def claims(activity: ActivityData, rounds: int = 1) -> tuple[c.Claim, ...]:
    """Claim every step of an activity, with its output; those of its while loops for several rounds."""
    repeated = {
        item.id
        for loop in flat(activity.items)
        if isinstance(loop, LoopData) and loop.test
        for item in flat(loop.body)
    }
    steps = (item for item in flat(activity.items) if isinstance(item, StepData))
    return tuple(
        c.Claim(step.id, _output(step, number))
        for step in steps
        for number in range(rounds if step.id in repeated else 1)
    )


def _manifests(activity: ActivityData | None) -> Iterator[tuple[str, tuple[c.Claim, ...]]]:
    """Yield no manifest, and those that make a difference: to optional steps, contracts and while loops."""
    yield "", ()
    items = list(flat(activity.items)) if activity is not None else []
    if activity is None:
        return
    if any(isinstance(item, StepData) and (item.contract or not item.required) for item in items):
        yield " with manifest", claims(activity)
    if any(isinstance(item, LoopData) and item.test for item in items):
        yield " with a manifest of two rounds", claims(activity, 2)


def honest_output(step_id: str, data: WorkflowData) -> Output:
    """Return what a step requires."""
    step = next(item for item in data.items() if isinstance(item, StepData) and item.id == step_id)
    return _output(step)


def _output(step: StepData, number: int = 0) -> Output:
    artifacts = (ARTIFACT,) if step.contract else ()
    return Output(f"did {step.id}{f' in round {number + 1}' if number else ''}", artifacts)


def _report(gate: str, option: str) -> Output:
    return Output("", ({"kind": "wr.decision", "checkpointId": gate, "optionId": option},))


def _closing_gaps(position: Position) -> Iterator[tuple[str, Output]]:
    """Yield an output that closes every gap which is open."""
    numbers = [gap.number for gap in position.state.gaps.newest if not gap.resolved]
    closed: list[Mapping[str, Any]] = [{"gap": number, "summary": "fine"} for number in numbers]
    if closed:
        yield "closing gaps", Output("", ({"kind": "wr.gaps", "resolved": closed},))


def deltas(data: WorkflowData) -> Iterator[dict[str, Any]]:
    """Yield what an agent may write to the variables that questions and loops show, read or set."""
    for name in dict.fromkeys(_names(data)):
        for value in VALUES[TYPES.get(name, "any")]:
            yield {name: value}
        if TYPES.get(name) != "array":
            yield {f"{name}.host": "PRODUCTION"}


def _taken(plan: Plan, sent: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the different values that writes lead to."""
    known = list[dict[str, Any]]()
    for delta in sent:
        written, _ = sound(plan, delta)
        if written and written not in known:
            known.append(written)
            yield delta


def _names(data: WorkflowData) -> Iterator[str]:
    for item in data.items():
        match item:
            case GateData():
                yield from (name.partition(".")[0] for name in item.shows)
                yield from (name for option in item.options for name, _ in option.sets)
                yield from (item.when[0],) if item.when else ()
            case LoopData():
                yield from (item.over, item.item or "currentItem") if item.over else ("currentIteration",)
                yield from (item.test[0],) if item.test else ()
            case StepData():
                yield from (item.when[0],) if item.when else ()
                yield from ("target", item.input_id) if item.asks else ()
                yield from item.sets
    for activity in data.activities:
        yield from (leads.when[0] for leads in activity.exits if leads.when)
    yield from (data.mode[0],) if data.mode else ()


def _with(delta: Mapping[str, Any]) -> str:
    return "".join(f" {name}={value!r}" for name, value in delta.items())
