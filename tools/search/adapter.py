"""The engine as the search drives it: a position, what the user is shown there, what comes of a command.

Everything that depends on the engine's present state, outcomes and inbox is here; commands are in `alphabet`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from interlock.core.definition.program import Plan
from interlock.core.engine.decide import decide
from interlock.core.engine.decisions import given
from interlock.core.engine.evolve import evolved
from interlock.core.engine.gates import question_of
from interlock.core.engine.requirements import input_question
from interlock.core.engine.settle import awaited
from interlock.core.guard.audit import Audit, learned
from interlock.core.run.commands import Answerable, CheckResult, Command, Decision, DueCheck, StartRun, Terms
from interlock.core.run.events import CheckRan, Event, GateResolved, QuestionDeclined
from interlock.core.run.outcomes import (
    Ask,
    Awaited,
    Code,
    Decided,
    NeedAnswer,
    NeedStep,
    Refusal,
    RunChecks,
)
from interlock.core.run.preferences import PRESETS, DecisionPolicy, Enforcement, Mode
from interlock.core.run.questions import Question
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import POLICIES, SurfacePolicy
from interlock.core.values import Json
from interlock.core.variables.typed_values import sound
from interlock.ledger.decisions.recorded import approved
from tools.search.workflows import STARTER

NOW = 1_000_000
LATER = 2_000_000  # after the time of every non-blocking gate
MOST_TIMES = 20  # that one call is decided again, with forms answered or checks run
FILES = SOUND, EDITED, BROKEN = "sha256:sound", "sha256:edited", "sha256:broken"  # digests of the project

Surface = Literal["execution", "session", "gated", "navigation"]
Form: TypeAlias = Literal["", "first", "last", "declined"]  # how the forms of a call are answered

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
    """A node: its state, the user's answers recorded at it by digest, and what blocked attempts have sent.

    `files` is the digest of the project, which an agent edits beside the run.
    """

    state: RunState
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    kept: Mapping[str, Json] = field(default_factory=dict)
    audit: Audit = field(default_factory=Audit)  # the guard's, which the same events lead to
    files: str = SOUND

    @cached_property
    def decided_from(self) -> bytes:
        """All that an outcome depends on but the workflow and the command."""
        return _packed((self.state, self.audit))


@dataclass(frozen=True)
class Sent:
    """What came of a command: the position then, the events, and the refusal or the blockers.

    `read_files` says that a check was asked for: with other files something else may come of it.
    """

    position: Position
    recorded: Sequence[Event] = ()
    refused: str = ""
    read_files: bool = False

    @property
    def told(self) -> Hashable:
        """What distinguishes it from what else may come of commands at the same position."""
        position = self.position
        return self.refused, _packed((self.recorded, dict(position.decisions), dict(position.kept)))

    @cached_property
    def events(self) -> tuple[dict[str, Any], ...]:
        """The events as JSON."""
        return tuple(msgspec.to_builtins(event) for event in self.recorded)


class Engine:
    """One workflow, ready to be driven under one setting."""

    def __init__(self, plan: Plan, setting: Setting) -> None:
        self.plan = plan
        self.setting = setting
        steps = (step for activity in plan.workflow.activities for step in activity.steps())
        self.has_inputs = any(step.user_input for step in steps)
        self._known: dict[Hashable, Decided | Refusal | Ask | RunChecks] = {}

    def starting(self, variables: Mapping[str, Json]) -> StartRun:
        """Return the command that begins a run."""
        setting = self.setting
        return StartRun(
            policy=setting.policy,
            now=NOW,
            workflow_hash="sha256:0",
            source="search",
            preferences=PRESETS[setting.mode],
            variables=variables,
            terms=setting.terms,
            by=STARTER,
        )

    def start(self, variables: Mapping[str, Json]) -> Sent:
        """Begin a run."""
        return self.send(Position(RunState()), self.starting(variables))

    def asks(self, position: Position, command: Command) -> bool:
        """Say whether the user is asked first, where the client can show a form."""
        if not isinstance(command, Answerable):
            return False
        outcome, _ = self._decided(position, _by_form(command))
        return isinstance(outcome, Ask)

    def send(self, position: Position, command: Command, form: Form = "") -> Sent:
        """Decide a command as a surface does; what a refused one keeps is recorded."""
        outcome, read_files = self._outcome(position, command, form)
        if isinstance(outcome, Refusal):
            return self._refused(position, outcome, read_files=read_files)
        if outcome.blockers:
            kept = self._kept({**position.kept, **getattr(command, "variables", {})}, position.state)
            declines = [event for event in outcome.events if isinstance(event, QuestionDeclined)]
            left = _without_used(position.decisions, outcome.events)
            audit = learned(position.audit, declines)
            after = Position(evolved(position.state, declines), left, kept, audit, position.files)
            return Sent(after, outcome.events, str(outcome.blockers[0].code), read_files)
        assert outcome.audit is not None
        after = self._reached(position, outcome.state, outcome.audit)
        return Sent(after, outcome.events, read_files=read_files)

    def _reached(self, position: Position, state: RunState, audit: Audit) -> Position:
        """Return the node that events lead to, with the decision that approvers have come to there."""
        return Position(state, approved(self.plan, state), audit=audit, files=position.files)

    def _kept(self, variables: Mapping[str, Json], state: RunState) -> dict[str, Json]:
        """Return what a blocked attempt has sent and a later one could still write."""
        taken, _ = sound(self.plan, variables)
        return {name: value for name, value in taken.items() if state.variables.get(name) != value}

    def _outcome(self, position: Position, command: Command, form: Form) -> tuple[Decided | Refusal, bool]:
        """Decide a command, again with the answers where the user is asked first; say if files were read."""
        read_files = False
        if form:
            assert isinstance(command, Answerable)
            command = _by_form(command)
        for _ in range(MOST_TIMES):
            outcome, has_read = self._decided(position, command)
            read_files |= has_read
            if not isinstance(outcome, Ask):
                return outcome, read_files
            assert isinstance(command, Answerable)
            command = _with_forms(command, outcome.questions, form)
        raise AssertionError("a call asks for ever")

    def _decided(self, position: Position, command: Command) -> tuple[Decided | Refusal | Ask, bool]:
        """Decide a command, again with the results of the checks that it needs; say if it needs any."""
        for number in range(MOST_TIMES):
            outcome = self._decided_once(position, command)
            if not isinstance(outcome, RunChecks):
                return outcome, number > 0
            assert isinstance(command, Answerable)
            results = (_checked(due, position.files) for due in outcome.checks)
            command = msgspec.structs.replace(command, checked=(*command.checked, *results))
        raise AssertionError("a call has checks run for ever")

    def _decided_once(self, position: Position, command: Command) -> Decided | Refusal | Ask | RunChecks:
        """Decide a command, or return what it came to before: the core is a function of its arguments.

        What a blocked attempt has sent comes again with the next, so that many commands are equal.
        """
        asked = position.decided_from, type(command), _packed(command)
        outcome = self._known.get(asked)
        if outcome is None:
            outcome = self._known[asked] = decide(self.plan, position.state, command, position.audit)
        return outcome

    def _refused(self, position: Position, refusal: Refusal, *, read_files: bool) -> Sent:
        """Return what is kept of a refused call; execution keeps blocked attempts only."""
        is_kept = self.setting.surface != "execution" and not position.state.finished
        state = evolved(position.state, refusal.kept) if is_kept and refusal.kept else position.state
        if state == position.state:
            return Sent(position, refused=_why(refusal), read_files=read_files)
        after = self._reached(position, state, learned(position.audit, refusal.kept))
        return Sent(after, refusal.kept, str(refusal.code), read_files)

    def awaited(self, position: Position) -> Awaited:
        """Return what the run waits for."""
        return awaited(self.plan, position.state, self.setting.policy)

    def questions(self, position: Position) -> list[Question]:
        """Return what the user's inbox asks at a position: what is open, and inputs that nobody has given."""
        state = position.state
        if state.visit.open is None and not self.has_inputs:
            return []
        pending = self.awaited(position)
        if state.visit.open is not None and isinstance(pending, NeedAnswer):
            return [question_of(self.plan, state, pending.gate, pending.confirms)]
        return list(self._inputs(state, pending))

    def _inputs(self, state: RunState, pending: Awaited) -> Iterator[Question]:
        if isinstance(pending, NeedStep):
            for need in pending.step.user_input:
                if need.is_approval or given(state, need) is None:
                    yield input_question(self.plan, state, pending.step, need)


def _why(refusal: Refusal) -> str:
    """Return the code; the guard's refusal with what it names."""
    if refusal.code is not Code.GUARD_REFUSED:
        return str(refusal.code)
    return " ".join([str(refusal.code), *map(str, refusal.about.values())])


def _checked(due: DueCheck, files: str) -> CheckResult:
    """Run a check on the project's files, unless an earlier result is still valid for them."""
    if due.again and due.valid_for == files:
        return CheckResult(due, None)
    passed = files != BROKEN
    ran = CheckRan(
        due.key,
        due.check.id,
        due.definition,
        (due.check.run,),
        due.check.folder,
        "exited",
        NOW,
        passed=passed,
        exit=0 if passed else 1,
        tree_before=files,
        tree_after=files,
        reason="" if passed else "exit 1",
        trusted_by="cli:local",
    )
    return CheckResult(due, ran)


def _by_form(command: Answerable) -> Answerable:
    """Return the command of a client that can show forms."""
    terms = msgspec.structs.replace(command.terms, asks_by="elicitation")
    return msgspec.structs.replace(command, terms=terms)


def _with_forms(command: Answerable, questions: Sequence[Question], form: Form) -> Answerable:
    """Return the command with what was answered on its forms."""
    if form == "declined":
        declined = (*command.declined, *(question.digest for question in questions))
        return msgspec.structs.replace(command, declined=declined)
    at = 0 if form == "first" else -1
    answers = {
        question.digest: Decision(question.options[at].id if question.options else "given", "elicitation")
        for question in questions
    }
    return msgspec.structs.replace(command, decisions={**command.decisions, **answers})


def _without_used(decisions: Mapping[str, Decision], events: Sequence[Event]) -> dict[str, Decision]:
    """Return the recorded answers but for rejections, which are used by the attempt that they stop."""
    used = {event.shown for event in events if isinstance(event, GateResolved)}
    return {digest: decision for digest, decision in decisions.items() if digest not in used}


def answered(position: Position, question: Question, option: str, channel: Any = "console") -> Position:
    """Return the position with the user's answer recorded at it."""
    decisions = {**position.decisions, question.digest: Decision(option, channel)}
    return replace(position, decisions=decisions)


def is_complete(position: Position) -> bool:
    return position.state.status in ("complete", "complete_with_gaps")
