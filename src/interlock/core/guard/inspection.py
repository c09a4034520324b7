"""What Interlock promises: nobody goes past a gate without its decision, even if the engine is wrong.

The engine decides a command. Before its events are written, this module judges them with the definition of
the workflow and with what it has learned from earlier events: an exact program counter. Every operation has
its event, so each event must be the one that is due, and a gate is passed only by the answer to its own
instance, by its false condition, as optional, or by a recorded gap that the user's terms allow. The same
judgement is made of a whole log afterwards (`interlock verify`).

I1  Nothing goes past a required gate, confirmation or input without its own answer, a condition that is
    false, a default whose time ran since it was shown, or a gap that mode or enforcement allows.
I2  What was shown is what was decided: an answer is to the question that the variables make, as shown before,
    and shown whole.
I3  The channel is strong enough for the terms; never the agent's where the user declined or could be asked.
    A user's answer came with the call, for the very question that it answers.
I4  What a question owns changes only by its answer, by effects and loops, or by a step declared to set it.
    What a question of the parent owns, no agent of a child changes, nor the names of a loop's round.
I5  A step with a required output is completed with it, or with its gap.
I6  Terms only tighten, except by the user.
I7  After the end of a run nothing is recorded but the closing of gaps, the user's only by the user.
I8  A loop whose next round is due is not left.
I9  Whatever is written has a plain name and its declared type.

Nothing of `core.engine` is imported. Both share the definition with the places of its gates
(`definition.program`), conditions (`definition.conditions`), rendering (`definition.prompts`), what a
condition asks for by its absence (`variables.roots`), the list of conversions between types
(`variables.typed_values`) and the events.
Not judged here: the content of an output, and who sat at a user's channel. A log does not tell what a call
brought: that is judged before it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias, assert_never, get_args

from msgspec import Struct

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.expressions import RESERVED, root
from interlock.core.definition.program import (
    END,
    AskGate,
    ConfirmStep,
    DoStep,
    EnterLoop,
    Op,
    Plan,
    Program,
    RepeatLoop,
)
from interlock.core.definition.workflow import Action, Effect, Gate, Loop, Step, UserInput
from interlock.core.guard.audit import Audit, learn, question_path
from interlock.core.guard.leaving import (
    gone_back_before,
    is_open,
    leaves_out,
    left_behind,
    past_skipped,
)
from interlock.core.guard.rendered import APPROVE, entrance, gate_question, input_id, input_question, lacking
from interlock.core.guard.rounds import extent, goes_on, is_over, names, outer_names, own_names
from interlock.core.run import events as e
from interlock.core.run.channels import Channel, Strength, is_at_least, strength
from interlock.core.run.commands import Answerable, Command, ResolveCheckpoint, StartRun
from interlock.core.run.preferences import (
    AUTONOMY,
    DECISIONS,
    ENFORCEMENT,
    Autonomy,
    DecisionPolicy,
    Enforcement,
    SessionTerms,
)
from interlock.core.run.questions import Question
from interlock.core.values import Json, Variables
from interlock.core.variables.roots import wanted_by_absence
from interlock.core.variables.typed_values import fitting

Invariant = Literal["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"]


class Violation(Struct, frozen=True):
    """The promise that events break, and how."""

    invariant: Invariant
    detail: str

    @property
    def text(self) -> str:
        """The violation in a line."""
        return f"{self.invariant}: {self.detail}"


Verdict: TypeAlias = Iterator[Violation]

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "number": (int, float),
    "string": str,
    "array": (list, tuple),
    "object": Mapping,
}

MOVES = (
    e.StepCompleted,
    e.StepSkipped,
    e.QuestionShown,
    e.GatePassed,
    e.LoopEntered,
    e.LoopIterated,
    e.LoopLeft,
    e.ActivityLeft,
    e.ActivityEntered,
)

I1, I2, I3, I4, I5, I6, I7, I8, I9 = (partial(Violation, name) for name in get_args(Invariant))


def inspect(
    plan: Plan, audit: Audit, events: Sequence[e.Event], command: Command | None = None
) -> Violation | None:
    """Judge the events of one command, in order; return the first violation. A log has no command."""
    inspection = _Inspection(plan, audit, events, command)
    for event in events:
        violation = next(inspection.judge(event), None)
        if violation is not None:
            return violation
        inspection.audit = learn(inspection.audit, event)
    return I4("a question is not asked again") if inspection.reasked else None


class _Asked(Struct, frozen=True):
    """A question that a run may be asked where it is: its gate, or what a step needs of the user."""

    question: Question
    source: Gate | UserInput
    confirms: Step | None = None

    @property
    def gate(self) -> Gate | None:
        return self.source if isinstance(self.source, Gate) else None


class _Inspection:
    """The state of one judgement. `given` are the inputs that were answered for the step that is due."""

    def __init__(self, plan: Plan, audit: Audit, events: Sequence[e.Event], command: Command | None) -> None:
        self.plan = plan
        self.audit = audit
        self.command = command
        self.gaps = {(event.detail, event.key) for event in events if isinstance(event, e.GapRecorded)}
        self.given: dict[str, str | None] = {}
        self.completed = ""  # the step that was completed last
        self.jumped = False  # whether the activity was left by no open exit
        self.reasked: set[str] = set()  # what was changed and must be asked again at once

    @property
    def scope(self) -> Scope:
        return self.plan.scope(self.audit.variables)

    @property
    def program(self) -> Program:
        return self.plan.program(self.audit.activity or "")

    def due(self) -> Op | None:
        """The operation that the program counter is at; None outside an activity and at its end."""
        if self.audit.activity is None or self.audit.left_to is not None or self.audit.next == END:
            return None
        return self.program.ops.get(self.audit.next)

    def judge(self, event: e.Event) -> Verdict:
        """Yield how an event breaks a promise."""
        if self.reasked and not (isinstance(event, e.QuestionShown) and self.reasked <= {*event.roots}):
            yield I4(f"{', '.join(self.reasked)} was changed, and its question is not asked again")
        self.reasked = set()
        if not isinstance(
            event, (e.GapResolved, e.PreferencesChanged, e.TermsApplied, e.ValidationPerformed)
        ):
            yield from self._runs(event)
        yield from self._typed(_written_by(event))
        match event:
            case e.TermsApplied() | e.PreferencesChanged() | e.GapResolved():
                yield from self._terms(event)
            case e.StepCompleted() | e.StepSkipped():
                yield from self._step(event)
            case e.QuestionShown():
                yield from self._shown(event)
            case e.GateResolved():
                yield from self._resolved(event)
            case e.GatePassed():
                yield from self._passed(event)
            case e.LoopEntered() | e.LoopIterated() | e.LoopLeft():
                yield from self._loop(event)
            case e.ActivityLeft():
                yield from self._left(event)
            case e.ActivityEntered():
                yield from self._entered(event)
            case e.RunCompleted():
                yield from self._ended(event)
            case e.ContextSet():
                yield from self._written(event)
            case e.ChildReturned():
                yield from self._inherited(event.sets)
                yield from self._agents(event.sets)
            case e.RunStarted():
                if isinstance(self.command, StartRun) and event.inherited != self.command.inherited:
                    yield I4("a child begins without what its parent's questions own")
            case _:
                return

    def _runs(self, event: e.Event) -> Verdict:
        """A run starts once and is in progress; nothing moves on while a question is open."""
        is_start, status, opened = isinstance(event, e.RunStarted), self.audit.status, self.audit.open
        if is_start is (status is not None):
            yield I7("a run starts once" if is_start else "the run has not started")
        elif status not in (None, "in_progress"):
            yield I7(f"the run is {status}")
        if opened and isinstance(event, MOVES) and getattr(event, "key", "") != opened:
            yield I1(f"{type(event).__name__} comes while question '{opened}' is open")

    def _terms(self, event: e.TermsApplied | e.PreferencesChanged | e.GapResolved) -> Verdict:
        match event:
            case e.TermsApplied():
                if _is_looser((event.decisions, event.enforcement, event.autonomy), self.audit.terms):
                    yield I6("a command was decided under looser terms than its session has")
            case e.PreferencesChanged():
                changed = (event.policy, event.enforcement, event.effective.autonomy)
                if _is_looser(changed, self.audit.terms) and not is_at_least(event.channel, "user"):
                    yield I6(f"the terms were loosened by channel '{event.channel}'")
            case e.GapResolved(gap=gap, channel=channel):
                if gap in self.audit.users and not is_at_least(channel, "user"):
                    yield I7(f"gap {gap} was decided without the user, and is closed by '{channel}'")

    # Steps

    def _step(self, event: e.StepCompleted | e.StepSkipped) -> Verdict:
        op = self.due()
        if not isinstance(op, DoStep) or event.key != self.audit.instance(op.step.id):
            yield I1(f"step '{event.key}' is passed where '{self.audit.next}' is due")
            return
        step, following = op.step, self.program.after(op.key)
        unconfirmed = self.program.after(following) if following == f"confirm:{step.id}" else following
        if isinstance(event, e.StepSkipped):
            if step.required and holds(step.condition, self.scope):
                yield I1(f"step '{event.key}' is required and was skipped")
            if event.next not in (following, unconfirmed):
                yield I1(f"'{event.next}' does not follow step '{event.key}'")
            return
        if event.next != following:
            yield I1(f"'{event.next}' does not follow step '{event.key}'")
        yield from self._inputs(step, event.key)
        yield from self._outputs(step, event)
        yield from self._actions(step.actions, event.sets, f"step '{event.key}'")
        self.given = {}
        self.completed = step.id

    def _inputs(self, step: Step, key: str) -> Verdict:
        for need in step.user_input:
            asked = self.audit.instance(input_id(step, need))
            preferences = self.audit.applied
            assumed = not preferences.guided and need.is_assumable
            if asked in self.given and (not need.is_approval or self.given[asked] == APPROVE):
                continue
            if (preferences.never_stops or assumed) and (need.reason, key) in self.gaps:
                continue
            yield I1(f"step '{key}' is completed without the answer to '{asked}'")

    def _outputs(self, step: Step, event: e.StepCompleted) -> Verdict:
        required = [contract.artifact for contract in step.contracts if contract.required]
        missing = [name for name in dict.fromkeys([*required, *step.hands_in]) if name not in event.brought]
        if missing and not (
            self.audit.applied.never_stops and ("missing_required_output", event.key) in self.gaps
        ):
            yield I5(f"step '{event.key}' is completed without {', '.join(missing)}")

    def _actions(self, actions: tuple[Action, ...], sets: Variables, where: str) -> Verdict:
        assigned = [action for action in actions if action.assigns]
        if not assigned and not sets:
            return
        declared = {
            action.assigns or "": action.value
            for action in assigned
            if holds(action.condition, self.scope, unknown=False)
        }
        if fitting(self.plan, declared) != sets:
            yield I4(f"{where} sets something else than its actions")

    # Questions

    def _asked(self, event: e.QuestionShown | e.GateResolved) -> _Asked | None:
        """Find the question that an event is about; None where the run may not be asked it.

        A gate is asked where it stands, and again if its false condition let it pass.
        """
        audit, op = self.audit, self.due()
        if audit.activity is None:
            gate = entrance(self.plan.workflow)
            return self._of_gate(gate) if event.key == gate.id else None
        if isinstance(op, DoStep):
            for need in op.step.user_input:
                key = audit.instance(input_id(op.step, need))
                question = input_question(self.plan, self.scope, op.step, need, key)
                if event.key == key and (event.shown == question.digest or self._is_input(event)):
                    return _Asked(question, need)
        if isinstance(op, (AskGate, ConfirmStep)) and event.key == audit.instance(op.gate.id):
            return self._of_gate(op.gate, op.step if isinstance(op, ConfirmStep) else None)
        if event.key in (*audit.passed, audit.open, *audit.answers):
            found = self._find(event.key)
            return self._of_gate(found.gate, _confirms(found)) if found is not None else None
        return None

    @staticmethod
    def _is_input(event: e.QuestionShown | e.GateResolved) -> bool:
        return event.input if isinstance(event, e.QuestionShown) else event.how == "given"

    def _of_gate(self, gate: Gate, confirms: Step | None = None) -> _Asked:
        return _Asked(gate_question(self.plan, self.scope, gate, confirms), gate, confirms)

    def _find(self, key: str) -> AskGate | ConfirmStep | None:
        name = key.rpartition("::")[2]
        ops = (op for op in self.program.ops.values() if isinstance(op, (AskGate, ConfirmStep)))
        return next((op for op in ops if op.gate.id == name), None)

    def _shown(self, event: e.QuestionShown) -> Verdict:
        asked = self._asked(event)
        if asked is None:
            yield I1(f"question '{event.key}' is shown where '{self.audit.next}' is due")
            return
        question = asked.question
        if (event.shown, event.question) != (question.digest, question.text):
            yield I2(f"question '{event.key}' is not shown as the variables make it")
        if set(event.roots) != set(question.roots):
            yield I2(f"question '{event.key}' does not own what it shows, reads and sets")
        if event.input is not (asked.gate is None):
            yield I2(f"question '{event.key}' is not of the kind that is shown")
        unset = [] if self.audit.applied.never_stops else lacking(self.scope, asked.source)
        if unset:
            yield I2(f"question '{event.key}' shows {', '.join(unset)}, which nobody has set")

    def _resolved(self, event: e.GateResolved) -> Verdict:
        asked = self._asked(event)
        if asked is None:
            yield I1(f"'{event.key}' is answered where '{self.audit.next}' is due")
            return
        question = asked.question
        if event.shown != question.digest or event.question != question.text:
            yield I2(f"the answer to '{event.key}' is to another question than the variables make")
        if (event.how == "given") is not (asked.gate is None):
            yield I1(f"'{event.key}' is recorded as '{event.how}', and is a question of another kind")
        if event.how in ("dismissed", "assumed", "auto_advanced") and event.channel != "server":
            yield I1(f"'{event.key}' is recorded as '{event.how}', and was answered by '{event.channel}'")
        if event.channel == "server":
            yield from self._without_user(event, asked)
        else:
            yield from self._was_shown(event)
            yield from self._channel(event)
            yield from self._came(event)
        yield from self._effects(event, asked)
        self.completed = ""  # a step sets what a question owns only if it is completed after the answer
        if event.how == "given":
            self.given[event.key] = event.option

    def _was_shown(self, event: e.GateResolved) -> Verdict:
        showing = self.audit.showings.get(event.key)
        if showing is None or showing.digest != event.shown:
            yield I2(f"'{event.key}' is answered, and what was answered was not shown before")

    def _channel(self, event: e.GateResolved) -> Verdict:
        audit = self.audit
        if audit.applied.never_stops:
            if event.channel == "agent" and event.how != "given":
                yield from self._needs_gap("needs_user_choice", event.key)
            return
        policy, asks_by = audit.applied.decisions, audit.applied.asks_by
        weakest: Strength = policy if policy in ("client", "user") else "agent"
        if not is_at_least(event.channel, weakest):
            yield I3(f"'{event.channel}' answered '{event.key}', which only '{weakest}' may")
        declined = audit.declined.get(question_path(audit, event.key))
        if declined is not None and not is_at_least(event.channel, strength(declined)):
            yield I3(f"'{event.channel}' answered '{event.key}', which the user declined to answer")
        is_asked = asks_by is not None and (asks_by != "elicitation" or policy == "auto")
        if event.channel == "agent" and is_asked:
            yield I3(f"the agent answered '{event.key}' for a user who could be asked")

    def _came(self, event: e.GateResolved) -> Verdict:
        """A user's answer is one that the call brought: by the digest of its question, or to its gate."""
        if self.command is None or event.channel == "agent":
            return
        brought = set[tuple[str, str | None, Channel]]()
        if isinstance(self.command, Answerable):
            answers = self.command.decisions.items()
            brought |= {(digest, answer.option, answer.channel) for digest, answer in answers}
        if isinstance(self.command, ResolveCheckpoint):
            gate = self.command.gate or self.audit.open.rpartition("::")[2]
            brought.add((gate, self.command.option, self.command.channel))
        if brought.isdisjoint((name, event.option, event.channel) for name in (event.shown, event.gate)):
            yield I3(f"'{event.channel}' answers '{event.key}', and the call has no such answer to it")

    def _without_user(self, event: e.GateResolved, asked: _Asked) -> Verdict:
        """A server answers a gate that does not apply, by its default in time, or where the mode says so."""
        gate, preferences = asked.gate, self.audit.applied
        if gate is None:
            yield I1(f"the server answered '{event.key}', which only the user can give")
            return
        if event.how == "dismissed":
            if event.option is not None or self._applies(gate, asked.confirms):
                yield I1(f"'{event.key}' was dismissed, and its condition holds")
            return
        if event.how == "assumed":
            if asked.confirms is None or preferences.guided or event.option != "proceed":
                yield I1(f"'{event.key}' was assumed in a mode that asks for it")
            yield from self._needs_gap("needs_user_approval", event.key)
            return
        showing = self.audit.showings.get(event.key)
        is_timed = not gate.blocking and gate.default_option == event.option is not None
        if is_timed and showing is not None and event.at - showing.at >= (gate.auto_advance_ms or 0):
            return
        if preferences.never_stops:
            yield from self._needs_gap("needs_user_choice", event.key)
        else:
            yield I1(f"the server answered '{event.key}' before its time, or with another option")

    def _needs_gap(self, detail: str, key: str) -> Verdict:
        if (detail, key) not in self.gaps:
            yield I1(f"'{key}' was decided without the user, and no gap says so")

    def _effects(self, event: e.GateResolved, asked: _Asked) -> Verdict:
        """An answer does what its option declares, and nothing else."""
        where = f"the answer to '{event.key}'"
        earlier = self.audit.set_by.get(question_path(self.audit, event.gate))
        undo = earlier.undo if earlier is not None and event.option is not None else {}
        if event.restores != {name: undo[name] for name in undo if name not in event.sets}:
            yield I4(f"{where} does not take back what the earlier one has set, as it was before")
        if isinstance(asked.source, UserInput):
            more = event.transition_to or event.next or event.skip_activities
            if more or not {asked.source.key}.issuperset(event.sets):
                yield I4(f"{where} does more than set its variable")
            return
        option = asked.question.option(event.option) if event.option is not None else None
        if option is None and event.how != "dismissed":
            yield I2(f"{where} is none of its options")
        effect = option.effect if option else Effect()
        declared = fitting(self.plan, effect.set_variables)
        brought = event.sets.keys() - declared.keys()  # what the question asks for by its absence
        asks_for = wanted_by_absence(asked.source.condition) - self.audit.variables.keys()
        if brought and event.channel != "agent":
            yield I4(f"{where} comes with what only the agent has brought")
        did = ({name: event.sets[name] for name in event.sets if name not in brought}, event.transition_to)
        if not brought <= asks_for or did != (declared, effect.transition_to):
            yield I4(f"{where} does something else than its option declares")
        if event.skip_activities != effect.skip_activities:
            yield I4(f"{where} does something else than its option declares")
        revises = asked.confirms is not None and event.option == "revise"
        allowed = (f"step:{asked.confirms.id}", self.audit.next) if asked.confirms and revises else (None,)
        if event.next not in allowed:
            yield I1(f"{where} moves the run to '{event.next}'")

    def _passed(self, event: e.GatePassed) -> Verdict:
        audit, op = self.audit, self.due()
        is_due = isinstance(op, (AskGate, ConfirmStep)) and event.key == audit.instance(op.gate.id)
        found = op if is_due else self._find(event.key) if event.key in (*audit.passed, audit.open) else None
        if not isinstance(found, (AskGate, ConfirmStep)):
            yield I1(f"gate '{event.key}' is passed where '{audit.next}' is due")
            return
        if event.next != (self.program.after(found.key) if is_due else audit.next):
            yield I1(f"'{event.next}' does not follow gate '{event.key}'")
        match event.because:
            case "answered":
                if not audit.answers.get(event.key):
                    yield I1(f"gate '{event.key}' is passed as answered, and has no answer")
            case "condition":
                if self._applies(found.gate, _confirms(found)) or audit.open == event.key:
                    yield I1(f"gate '{event.key}' is passed by its condition, which holds")
            case "optional":
                if found.gate.required:
                    yield I1(f"gate '{event.key}' is required, and is passed as optional")
            case "mode":
                if audit.applied.guided or not isinstance(found, ConfirmStep):
                    yield I1(f"gate '{event.key}' is passed by a mode that stops for it")
            case "advisory":
                yield from self._waived(event.key)
            case _:
                assert_never(event.because)

    def _waived(self, key: str) -> Verdict:
        if self.audit.applied.enforcement != "advisory":
            yield I1(f"gate '{key}' is passed without an answer under strict enforcement")
        if key in self.audit.showings or question_path(self.audit, key) in self.audit.declined:
            yield I1(f"gate '{key}' is passed, although it was put to the user")
        yield from self._needs_gap("gate_passed", key)

    def _applies(self, gate: Gate, confirms: Step | None) -> bool:
        if confirms is None:
            return holds(gate.condition, self.scope)
        return confirms.confirm if isinstance(confirms.confirm, bool) else holds(confirms.confirm, self.scope)

    def _judged_again(self, *, everywhere: bool) -> Verdict:
        """Hold what a false condition let pass, and what applies when its round or its activity is left."""
        for key in self.audit.passed:
            found = self._find(key)
            is_here = everywhere or key.rpartition("::")[0] == self.audit.round
            if found is None or not is_here or not found.gate.required or key in self.audit.waived:
                continue
            unasked = isinstance(found, ConfirmStep) and not self.audit.applied.guided
            if (
                not unasked
                and not self.audit.answers.get(key)
                and self._applies(found.gate, _confirms(found))
            ):
                yield I1(f"gate '{key}' applies by now, and is left behind without an answer")

    # Loops

    def _loop(self, event: e.LoopEntered | e.LoopIterated | e.LoopLeft) -> Verdict:
        op = self.due()
        if not isinstance(op, (EnterLoop, RepeatLoop)) or op.loop.id != event.loop:
            yield I1(f"loop '{event.loop}' is passed where '{self.audit.next}' is due")
        elif isinstance(op, EnterLoop):
            yield from self._entered_loop(op, event)
        else:
            yield from self._judged_again(everywhere=False)
            yield from self._round_over(op, event)

    def _entered_loop(self, op: EnterLoop, event: e.LoopEntered | e.LoopIterated | e.LoopLeft) -> Verdict:
        loop, declared = op.loop, extent(op.loop, self.scope)
        match event:
            case e.LoopEntered():
                if event.next != self.program.after(op.key) or (event.total, event.items) != declared:
                    yield I8(f"loop '{loop.id}' begins with other items than it is declared over")
                yield from self._named(loop, event.sets, names(self.plan, loop, 0, event.items))
            case e.LoopLeft(because="gap"):
                if not self.audit.applied.never_stops:
                    yield I1(f"loop '{loop.id}' is left out in a mode that stops for it")
                if event.next != op.after or declared is not None:
                    yield I8(f"loop '{loop.id}' is left out, and its first round is due")
                yield from self._needs_gap("missing_input", f"loop:{loop.id}")
            case e.LoopLeft():
                is_stopped = self.audit.steer == "stop" if loop.steered else not goes_on(loop, self.scope)
                passed = {
                    "passed": not holds(loop.run_condition, self.scope),
                    "empty": declared is not None and declared[0] == 0,
                    "condition": is_stopped,
                }
                if event.next != op.after or event.sets or not passed.get(event.because, False):
                    yield I8(f"loop '{loop.id}' is passed by, and its first round is due")
            case _:
                yield I8(f"loop '{loop.id}' has not begun")

    def _round_over(self, op: RepeatLoop, event: e.LoopEntered | e.LoopIterated | e.LoopLeft) -> Verdict:
        loop, round_ = op.loop, self.audit.rounds[-1]
        done = round_.number + 1
        match event:
            case e.LoopIterated():
                is_last = round_.total is not None and done >= round_.total
                if event.next != op.first or event.iteration != done or is_last:
                    yield I8(f"loop '{loop.id}' does not continue with round {event.iteration + 1}")
                yield from self._named(loop, event.sets, names(self.plan, loop, done, round_.items))
            case e.LoopLeft():
                if event.next != op.after:
                    yield I8(f"loop '{loop.id}' is not left to what follows it")
                if not is_over(loop, event.because, self.audit, self.scope, self.gaps):
                    yield I8(f"loop '{loop.id}' is left ('{event.because}'), and its next round is due")
                yield from self._named(loop, event.sets, outer_names(self.plan, self.audit, loop))
            case _:
                yield I8(f"loop '{loop.id}' begins while it runs")

    @staticmethod
    def _named(loop: Loop, sets: Variables, names: Variables) -> Verdict:
        if sets != names:
            yield I4(f"loop '{loop.id}' sets other names or values than those of its round, or around it")

    # Activities

    def _left(self, event: e.ActivityLeft) -> Verdict:
        audit, activity = self.audit, self.plan.workflow.activity(event.activity)
        if activity is None or event.activity != audit.activity or audit.left_to is not None:
            yield I1(f"activity '{event.activity}' is left, and the run is not in it")
            return
        is_decided = audit.exit_to is not None and self._leads(audit.exit_to, event.to)
        yield from self._judged_again(everywhere=is_decided)
        by_gap = event.via == "gap" and audit.applied.never_stops
        by_gap = by_gap and any(detail == "missing_input" for detail, _ in self.gaps)
        if not (is_decided or by_gap or (audit.next == END and not audit.rounds)):
            yield I1(f"activity '{event.activity}' is left where '{audit.next}' is due")
        by_gap = by_gap or self._jumps_by_gap()
        self.jumped = not is_decided and not is_open(self.plan, audit, event.to)
        if self.jumped and not by_gap and leaves_out(self.plan, audit, event.to):
            yield I1(f"the way from '{event.activity}' to '{event.to}' leaves out something required")
        if event.via != "gap" and left_behind(self.plan, audit) != {*event.unanswered}:
            yield I1(f"activity '{event.activity}' is left, and what it leaves out is not what is recorded")
        if not (event.via == "gap" and not event.sets):
            yield from self._actions(activity.exit_actions, event.sets, f"activity '{activity.id}'")

    def _jumps_by_gap(self) -> bool:
        applied = self.audit.applied
        may = applied.never_stops or applied.enforcement == "advisory"
        return may and any(detail in ("jump", "left_out") for detail, _ in self.gaps)

    def _leads(self, to: str, target: str) -> bool:
        ends = {past_skipped(self.plan, self.audit, name) for name in (to, target)}
        return len(ends) == 1 or all(map(self.plan.workflow.is_end, ends))

    def _entered(self, event: e.ActivityEntered) -> Verdict:
        audit, workflow = self.audit, self.plan.workflow
        activity = workflow.activity(event.activity)
        if activity is None:
            yield I1(f"activity '{event.activity}' does not exist")
            return
        if audit.activity is None:
            yield from self._begun(event.activity)
        elif audit.left_to != event.activity:
            yield I1(f"activity '{event.activity}' is entered, and the run was not left to it")
        is_back = bool(audit.path) and (self.jumped or audit.path[0] != workflow.initial)
        if event.before != (gone_back_before(self.plan, audit, activity.id) if is_back else ""):
            yield I1(f"activity '{event.activity}' is before the beginning, and that is not recorded")
        if event.next != self.plan.program(activity.id).first or event.visit != audit.visit + 1:
            yield I1(f"activity '{event.activity}' does not begin at its beginning")
        yield from self._actions(activity.entry_actions, event.sets, f"activity '{activity.id}'")

    def _begun(self, target: str) -> Verdict:
        workflow, audit = self.plan.workflow, self.audit
        gate = entrance(workflow).id
        if audit.answers.get(gate, target) != target or audit.open == gate:
            yield I1(f"activity '{target}' is entered, and another was chosen")
        if not self._jumps_by_gap() and leaves_out(self.plan, audit, target):
            yield I1(f"the run begins with '{target}', which leaves out something required")

    def _ended(self, event: e.RunCompleted) -> Verdict:
        audit = self.audit
        if audit.left_to is None or not self.plan.workflow.is_end(audit.left_to):
            yield I1(f"the run ends in activity '{audit.activity}', which was not left to an end")
        is_complete = not audit.gaps and not audit.older_gaps
        if is_complete is (event.status != "complete"):
            yield I1(f"the run ends '{event.status}', and {len(audit.gaps)} gaps are open")

    # Variables

    def _written(self, event: e.ContextSet) -> Verdict:
        """Judge variables that came with a call, or with a step that is declared to set them."""
        if event.source == "parent":
            if self.audit.variables or self.audit.activity is not None:
                yield I4("a parent passes on at the start, and at no other time")
        else:
            yield from self._inherited(event.delta)
        if event.by:
            activity = self.plan.workflow.activity(self.audit.activity)
            step = activity.step(event.by) if activity is not None else None
            if step is None or event.by != self.completed or not all(map(step.sets, event.delta)):
                yield I4(f"step '{event.by}' writes what it is not declared to set, or is not completed here")
            yield from self._of_rounds(event.delta, own_names(self.plan, self.audit))
        elif event.source == "reask":
            self.reasked = {name for name in event.delta if self.audit.owner_of(name) is not None}
        else:
            yield from self._agents(event.delta)

    def _inherited(self, delta: Variables) -> Verdict:
        for name in self.audit.inherited:
            if name in delta and self.audit.variables.get(name) != delta[name]:
                yield I4(f"'{name}' is written, and a question of the parent owns it")

    def _agents(self, delta: Variables) -> Verdict:
        """An agent writes nothing that a question owns, or that only answers or the rounds of loops set."""
        yield from self._of_rounds(delta, own_names(self.plan, self.audit) - self._waited_for())
        for name, value in delta.items():
            owner = self.audit.owner_of(root(name)) or self.plan.decided_only.get(root(name))
            if owner is not None and self.audit.variables.get(name) != value:
                yield I4(f"'{name}' is written, and question '{owner}' owns it")

    def _of_rounds(self, delta: Variables, names: set[str]) -> Verdict:
        for name in names & delta.keys():
            if self.audit.variables.get(name) != delta[name]:
                yield I4(f"'{name}' is written, and a loop sets it for each round")

    def _waited_for(self) -> set[str]:
        """What the question or the loop that is due lacks: an agent sends it, also for a loop's own names."""
        op, late = self.due(), [found.gate for key in self.audit.passed if (found := self._find(key))]
        match op:
            case EnterLoop(loop=loop) if extent(loop, self.scope) is None:
                return {root(str(loop.items or loop.count or "items"))}
            case AskGate(gate=gate) | ConfirmStep(gate=gate):
                asked: Sequence[Gate | UserInput] = (gate,)
            case DoStep(step=step):
                asked = step.user_input
            case _:
                asked = late
        return {root(path) for source in asked for path in lacking(self.scope, source)}

    def _typed(self, written: Variables) -> Verdict:
        for name, value in written.items():
            kind = self.plan.types.get(name, "")
            is_of_type = isinstance(value, _TYPES.get(kind, object))
            is_of_type &= kind != "number" or not isinstance(value, bool)
            if "." in name or name in RESERVED or not (is_of_type or value is None):
                yield I9(f"'{name}' is no plain name, or its value has another type than is declared")


def _written_by(event: e.Event) -> Variables:
    """All variables that an event writes."""
    written: dict[str, Json] = {}
    for field in ("delta", "restores", "sets"):
        written |= getattr(event, field, {})
    return written


def _confirms(op: AskGate | ConfirmStep) -> Step | None:
    return op.step if isinstance(op, ConfirmStep) else None


def _is_looser(chosen: tuple[DecisionPolicy, Enforcement, Autonomy], terms: SessionTerms) -> bool:
    """Say whether terms are looser than a session's; each order has the tightest first."""
    decisions, enforcement, autonomy = chosen
    return (
        DECISIONS.index(decisions) > DECISIONS.index(terms.policy)
        or ENFORCEMENT.index(enforcement) > ENFORCEMENT.index(terms.enforcement)
        or AUTONOMY.index(autonomy) > AUTONOMY.index(terms.preferences.autonomy)
    )
