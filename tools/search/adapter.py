"""The engine as the search drives it: a position, what the user is shown there, what comes of a command.

Everything that depends on the engine's present state, outcomes and inbox is here; commands are in `alphabet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from interlock.core.definition.program import Plan
from interlock.core.engine.decide import decide
from interlock.core.engine.decisions import given
from interlock.core.engine.evolve import evolved
from interlock.core.engine.gates import Question, find_gate, pending_gates, question_of
from interlock.core.engine.requirements import input_question
from interlock.core.engine.settle import awaited
from interlock.core.run.commands import Command, Decision, StartRun, Terms
from interlock.core.run.events import Event, GateResolved, QuestionDeclined
from interlock.core.run.outcomes import Awaited, NeedAnswer, NeedStep, Refusal
from interlock.core.run.preferences import PRESETS, DecisionPolicy, Enforcement, Mode
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import POLICIES, SurfacePolicy
from interlock.core.values import Json

NOW = 1_000_000
LATER = 2_000_000  # after the time of every non-blocking gate

INBOX: Mapping[str, Any] = {"by": "inbox"}  # marks what was shown and is not in the log

Surface = Literal["execution", "session", "gated", "navigation"]

_packed = msgspec.msgpack.Encoder(order="deterministic").encode


@dataclass(frozen=True)
class Setting:
    """Under which terms a run is searched, and on which surface; `also` is another that takes it up."""

    surface: Surface = "execution"
    decisions: DecisionPolicy = "user"
    enforcement: Enforcement = "strict"
    mode: Mode = "guided"
    also: Surface | None = None

    @property
    def policy(self) -> SurfacePolicy:
        return POLICIES[self.surface]

    @property
    def terms(self) -> Terms:
        return Terms(self.decisions, self.enforcement, 0)


@dataclass(frozen=True)
class Position:
    """A node: its state, the user's answers recorded at it, and what blocked attempts there have sent."""

    state: RunState
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    kept: Mapping[str, Json] = field(default_factory=dict)

    @property
    def key(self) -> bytes:
        """What tells positions apart."""
        return _packed((self.state, dict(self.decisions), dict(self.kept)))


@dataclass(frozen=True)
class Sent:
    """What came of a command: the position then, the events as JSON, and the refusal or the blockers."""

    position: Position
    events: tuple[dict[str, Any], ...]
    refused: str = ""

    @property
    def recorded(self) -> tuple[dict[str, Any], ...]:
        """The events that are in the log."""
        return tuple(event for event in self.events if event.get("by") != INBOX["by"])


class Engine:
    """One workflow, ready to be driven under one setting."""

    def __init__(self, plan: Plan, setting: Setting) -> None:
        self.plan = plan
        self.setting = setting
        steps = (step for activity in plan.workflow.activities for step in activity.steps())
        self.shows_unrecorded = setting.surface == "gated" or any(step.user_input for step in steps)

    def start(self, variables: Mapping[str, Json]) -> Sent:
        """Begin a run."""
        setting = self.setting
        command = StartRun(
            policy=setting.policy,
            now=NOW,
            workflow_hash="sha256:0",
            source="search",
            preferences=PRESETS[setting.mode],
            variables=variables,
            terms=setting.terms,
        )
        return self.send(Position(RunState()), command)

    def send(self, position: Position, command: Command) -> Sent:
        """Decide a command as a surface does; what a refused one keeps is recorded."""
        outcome = decide(self.plan, position.state, command)
        if isinstance(outcome, Refusal):
            refused = str(outcome.code)
            if not outcome.kept or self.setting.surface == "execution":  # which keeps blocked attempts only
                return Sent(position, (), refused)
            after = Position(evolved(position.state, outcome.kept))
            left = self._still_asked(position, after)
            after = replace(after, decisions=_without_used(left, outcome.kept))
            return Sent(after, self._with_showings(after, outcome.kept), refused)
        if outcome.blockers:
            kept = {**position.kept, **getattr(command, "variables", {})}
            declines = [event for event in outcome.events if isinstance(event, QuestionDeclined)]
            left = _without_used(position.decisions, outcome.events)
            after = Position(evolved(position.state, declines), left, kept)
            return Sent(after, self._with_showings(after, outcome.events), str(outcome.blockers[0].code))
        after = Position(outcome.state)
        return Sent(after, self._with_showings(after, outcome.events))

    def _still_asked(self, before: Position, after: Position) -> dict[str, Decision]:
        """Return the recorded answers to questions that would be shown as they were."""
        if not before.decisions:
            return {}
        digests = {question.id: question.digest for question in self.questions(before)}
        same = [it.id for it in self.questions(after) if digests.get(it.id) == it.digest]
        return {name: decision for name, decision in before.decisions.items() if name in same}

    def awaited(self, position: Position) -> Awaited:
        """Return what the run waits for."""
        return awaited(self.plan, position.state, self.setting.policy)

    def questions(self, position: Position) -> list[Question]:
        """Return what the user's inbox asks at a position."""
        state, policy, pending = position.state, self.setting.policy, self.awaited(position)
        gates: list[str] = []
        if state.finished:
            return []
        if policy.gates == "pending" and state.open is None:
            gates = [gate.id for gate in pending_gates(self.plan, state)]
        elif policy.gates == "yielded":
            gates = [state.open.gate] if state.open else []
        elif isinstance(pending, NeedAnswer):
            gates = [pending.gate.id]
        found = [it for gate in gates if (it := find_gate(self.plan, state, gate)) is not None]
        asked = [question_of(self.plan, state, it.gate, it.confirms) for it in found]
        return [*asked, *self._inputs(state, pending)]

    def _inputs(self, state: RunState, pending: Awaited) -> Iterator[Question]:
        if isinstance(pending, NeedStep):
            for need in pending.step.user_input:
                if need.is_approval or given(state, need) is None:
                    yield input_question(self.plan, state, pending.step, need)

    def _with_showings(self, position: Position, events: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
        """Return events as JSON, then what the inbox shows although no event says so.

        Once every showing is recorded there is nothing to add, and `questions` returns what was recorded.
        """
        listed = [_plain(event) for event in events]
        if self.shows_unrecorded:
            opened = position.state.open
            listed += [
                {"kind": "question_shown", "gate": question.id, "shown": question.digest, "at": NOW, **INBOX}
                for question in self.questions(position)
                if opened is None or question.id != opened.gate
            ]
        return tuple(listed)


def _without_used(decisions: Mapping[str, Decision], events: Sequence[Event]) -> dict[str, Decision]:
    """Return the recorded answers but for rejections, which are used by the attempt that they stop."""
    used = {event.gate for event in events if isinstance(event, GateResolved)}
    return {name: decision for name, decision in decisions.items() if name not in used}


def _plain(event: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(event)
    return plain


def answered(position: Position, question: Question, option: str, channel: Any = "console") -> Position:
    """Return the position with the user's answer recorded at it."""
    decisions = {**position.decisions, question.id: Decision(option, channel)}
    return replace(position, decisions=decisions)


def is_complete(position: Position) -> bool:
    return position.state.status in ("complete", "complete_with_gaps")
