"""Questions: put as the variables make them, and answered by who may, with what was shown (I1 to I4)."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.definition.program import AskGate, ConfirmStep, DoStep
from interlock.core.definition.workflow import Effect, Gate, Step, UserInput
from interlock.core.guard import approving
from interlock.core.guard.audit import question_path
from interlock.core.guard.hearing import I1, I2, I3, I4, Hearing, Verdict, confirmed_step
from interlock.core.guard.rendered import entrance, gate_question, input_question, lacking
from interlock.core.run import events as e
from interlock.core.run.channels import Channel, Strength, is_at_least, strength
from interlock.core.run.commands import Answerable, ResolveCheckpoint
from interlock.core.run.questions import Question
from interlock.core.values import set_names
from interlock.core.variables.roots import wanted_by_absence
from interlock.core.variables.typed_values import fitting


class Askable(Struct, frozen=True):
    """A question that a run may be asked where it is: its gate, or what a step needs of the user."""

    question: Question
    source: Gate | UserInput
    confirms: Step | None = None

    @property
    def gate(self) -> Gate | None:
        return self.source if isinstance(self.source, Gate) else None


def shown(hearing: Hearing, event: e.QuestionShown) -> Verdict:
    """A question is put where it is due, in the words that the variables make, and whole."""
    asked = _asked(hearing, event)
    if asked is None:
        yield I1(f"question '{event.key}' is shown where '{hearing.audit.next}' is due")
        return
    question = asked.question
    if (event.shown, event.question) != (question.digest, question.text):
        yield I2(f"question '{event.key}' is not shown as the variables make it")
    if set(event.roots) != set(question.roots):
        yield I2(f"question '{event.key}' does not own what it shows, reads and sets")
    if event.input is not (asked.gate is None):
        yield I2(f"question '{event.key}' is not of the kind that is shown")
    unset = [] if hearing.audit.applied.never_stops else lacking(hearing.scope, asked.source)
    if unset:
        yield I2(f"question '{event.key}' shows {', '.join(unset)}, which nobody has set")


def resolved(hearing: Hearing, event: e.GateResolved) -> Verdict:
    """A question is answered as it was shown, by a channel that may, with the effect that is declared."""
    asked = _asked(hearing, event)
    if asked is None:
        yield I1(f"'{event.key}' is answered where '{hearing.audit.next}' is due")
        return
    question = asked.question
    if event.shown != question.digest or event.question != question.text:
        yield I2(f"the answer to '{event.key}' is to another question than the variables make")
    if (event.how == "given") is not (asked.gate is None):
        yield I1(f"'{event.key}' is recorded as '{event.how}', and is a question of another kind")
    if event.how in ("dismissed", "assumed", "auto_advanced") and event.channel not in ("server", "time"):
        yield I1(f"'{event.key}' is recorded as '{event.how}', and was answered by '{event.channel}'")
    yield from approving.decided(hearing, event, asked.gate)
    if event.channel in ("server", "time"):
        yield from _without_user(hearing, event, asked)
    else:
        yield from _was_shown(hearing, event)
        yield from _channel(hearing, event)
        yield from _came(hearing, event)
    yield from _effects(hearing, event, asked)
    hearing.completed = ""  # a step sets what a question owns only if it is completed after the answer
    if event.how == "given":
        hearing.given[event.key] = event.option


def _asked(hearing: Hearing, event: e.QuestionShown | e.GateResolved) -> Askable | None:
    """Find the question that an event is about; None where the run may not be asked it.

    A gate is asked where it stands, and again if its false condition let it pass.
    """
    audit, op = hearing.audit, hearing.due()
    if audit.activity is None:
        gate = entrance(hearing.plan.workflow)
        return _of_gate(hearing, gate) if event.key == gate.id else None
    if isinstance(op, DoStep):
        for need in op.step.user_input:
            key = audit.instance(op.step.input_id(need))
            question = input_question(hearing.plan, hearing.scope, op.step, need, key)
            if event.key == key and (event.shown == question.digest or _is_input(event)):
                return Askable(question, need)
    if isinstance(op, (AskGate, ConfirmStep)) and event.key == audit.instance(op.gate.id):
        return _of_gate(hearing, op.gate, op.step if isinstance(op, ConfirmStep) else None)
    if event.key in (*audit.passed, audit.open, *audit.answers):
        found = hearing.find(event.key)
        return _of_gate(hearing, found.gate, confirmed_step(found)) if found is not None else None
    return None


def _is_input(event: e.QuestionShown | e.GateResolved) -> bool:
    return event.input if isinstance(event, e.QuestionShown) else event.how == "given"


def _of_gate(hearing: Hearing, gate: Gate, confirms: Step | None = None) -> Askable:
    return Askable(gate_question(hearing.plan, hearing.scope, gate, confirms), gate, confirms)


def _was_shown(hearing: Hearing, event: e.GateResolved) -> Verdict:
    showing = hearing.audit.showings.get(event.key)
    if showing is None or showing.digest != event.shown:
        yield I2(f"'{event.key}' is answered, and what was answered was not shown before")


def _channel(hearing: Hearing, event: e.GateResolved) -> Verdict:
    audit = hearing.audit
    if audit.applied.never_stops:
        if event.channel == "agent" and event.how != "given":
            yield from hearing.needs_gap("needs_user_choice", event.key)
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


def _came(hearing: Hearing, event: e.GateResolved) -> Verdict:
    """A user's answer is one that the call brought: by the digest of its question, or to its gate."""
    if hearing.command is None or event.channel in ("agent", "approvers"):
        return
    brought = set[tuple[str, str | None, Channel]]()
    if isinstance(hearing.command, Answerable):
        answers = hearing.command.decisions.items()
        brought |= {(digest, answer.option, answer.channel) for digest, answer in answers}
    if isinstance(hearing.command, ResolveCheckpoint):
        gate = hearing.command.gate or hearing.audit.open.rpartition("::")[2]
        brought.add((gate, hearing.command.option, hearing.command.channel))
    if brought.isdisjoint((name, event.option, event.channel) for name in (event.shown, event.gate)):
        yield I3(f"'{event.channel}' answers '{event.key}', and the call has no such answer to it")


def _without_user(hearing: Hearing, event: e.GateResolved, asked: Askable) -> Verdict:
    """A server answers a gate that does not apply, by its default in time, or where the mode says so."""
    gate, preferences = asked.gate, hearing.audit.applied
    if gate is None:
        yield I1(f"the server answered '{event.key}', which only the user can give")
        return
    if event.how == "dismissed":
        if event.option is not None or hearing.applies(gate, asked.confirms):
            yield I1(f"'{event.key}' was dismissed, and its condition holds")
        return
    if event.how == "assumed":
        if asked.confirms is None or preferences.guided or event.option != "proceed":
            yield I1(f"'{event.key}' was assumed in a mode that asks for it")
        yield from hearing.needs_gap("needs_user_approval", event.key)
        return
    showing = hearing.audit.showings.get(event.key)
    is_timed = not gate.blocking and gate.default_option == event.option is not None
    if is_timed and showing is not None and event.at - showing.at >= (gate.auto_advance_ms or 0):
        return
    if preferences.never_stops:
        yield from hearing.needs_gap("needs_user_choice", event.key)
    else:
        yield I1(f"the server answered '{event.key}' before its time, or with another option")


def _effects(hearing: Hearing, event: e.GateResolved, asked: Askable) -> Verdict:
    """An answer does what its option declares, and nothing else."""
    where = f"the answer to '{event.key}'"
    earlier = hearing.audit.set_by.get(question_path(hearing.audit, event.gate))
    undo = earlier.undo if earlier is not None and event.option is not None else {}
    if event.restores != {name: undo[name] for name in undo if name not in event.sets}:
        yield I4(f"{where} does not take back what the earlier one has set, as it was before")
    if isinstance(asked.source, UserInput):
        more = event.transition_to or event.next or event.skip_activities
        if more or not {asked.source.key}.issuperset(event.sets):
            yield I4(f"{where} does more than set its variable")
        is_typed = asked.source.key in hearing.plan.types and not asked.source.options
        if is_typed and asked.source.key not in event.sets:
            yield I4(f"{where} does not set its variable")
        return
    option = asked.question.option(event.option) if event.option is not None else None
    if option is None and event.how != "dismissed":
        yield I2(f"{where} is none of its options")
    effect = option.effect if option else Effect()
    declared = fitting(hearing.plan, effect.set_variables)
    brought = event.sets.keys() - declared.keys()  # what the question asks for by its absence
    asks_for = wanted_by_absence(asked.source.condition) - set_names(hearing.audit.variables)
    if brought and event.channel != "agent":
        yield I4(f"{where} comes with what only the agent has brought")
    did = ({name: event.sets[name] for name in event.sets if name not in brought}, event.transition_to)
    if not brought <= asks_for or did != (declared, effect.transition_to):
        yield I4(f"{where} does something else than its option declares")
    if event.skip_activities != effect.skip_activities:
        yield I4(f"{where} does something else than its option declares")
    revises = asked.confirms is not None and event.option == "revise"
    allowed = (f"step:{asked.confirms.id}", hearing.audit.next) if asked.confirms and revises else (None,)
    if event.next not in allowed:
        yield I1(f"{where} moves the run to '{event.next}'")
