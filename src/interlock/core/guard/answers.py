"""Questions: put as the variables make them, and answered by who may, with what was shown (I1 to I4)."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.definition.program import AskGate, ConfirmStep, DoStep, step_key
from interlock.core.definition.workflow import Effect, Gate, UserInput
from interlock.core.guard.hearing import I1, I2, I3, I4, GateOp, Hearing, Verdict
from interlock.core.guard.rendered import gate_question, input_question, lacking
from interlock.core.run import events as e
from interlock.core.run.channels import Channel, Strength, is_at_least, strength
from interlock.core.run.commands import Answerable, ResolveCheckpoint
from interlock.core.run.keys import item_of, question_path
from interlock.core.run.polls import ApproverAnswer
from interlock.core.run.questions import Question
from interlock.core.values import set_names
from interlock.core.variables.roots import wanted_by_absence
from interlock.core.variables.typed_values import fitting


class Askable(Struct, frozen=True):
    """A question that a run may be asked where it is: its gate, or what a step needs of the user."""

    question: Question
    source: GateOp | UserInput

    @property
    def gate(self) -> Gate | None:
        return None if isinstance(self.source, UserInput) else self.source.gate


def shown(hearing: Hearing, event: e.QuestionShown) -> Verdict:
    """A question is put where it is due, in the words that the variables make, and whole."""
    asked = _asked(hearing, event, is_input=event.input)
    if asked is None:
        yield I1(f"question '{event.key}' is shown where '{hearing.visit.next}' is due")
        return
    question, source = asked.question, asked.source
    if (event.shown, event.question) != (question.digest, question.text):
        yield I2(f"question '{event.key}' is not shown as the variables make it")
    if set(event.roots) != set(question.roots):
        yield I2(f"question '{event.key}' does not own what it shows, reads and sets")
    if event.input is not (asked.gate is None):
        yield I2(f"question '{event.key}' is not of the kind that is shown")
    texts = source if isinstance(source, UserInput) else source.gate
    if not hearing.terms.never_stops and (unset := lacking(hearing.scope, texts)):
        yield I2(f"question '{event.key}' shows {', '.join(unset)}, which nobody has set")
    if _by_user(hearing, event) and (event.key, event.shown) not in hearing.answered:
        yield I3(f"question '{event.key}' is put again, and the user has answered it")


def resolved(hearing: Hearing, event: e.GateResolved) -> Verdict:
    """A question is answered as it was shown, by a channel that may, with the effect that is declared."""
    asked = _asked(hearing, event, is_input=event.how == "given")
    if asked is None:
        yield I1(f"'{event.key}' is answered where '{hearing.visit.next}' is due")
        return
    question, by_server = asked.question, event.channel in ("server", "time")
    if _by_user(hearing, event) and not is_at_least(event.channel, "user"):
        yield I3(f"'{event.channel}' answers '{event.key}', and the user has answered it")
    if (event.shown, event.question) != (question.digest, question.text):
        yield I2(f"the answer to '{event.key}' is to another question than the variables make")
    if (event.how == "given") is not (asked.gate is None):
        yield I1(f"'{event.key}' is recorded as '{event.how}', and is a question of another kind")
    if event.how in ("dismissed", "assumed", "auto_advanced") and not by_server:
        yield I1(f"'{event.key}' is recorded as '{event.how}', and was answered by '{event.channel}'")
    if by_server:
        yield from _without_user(hearing, event, asked)
    else:
        yield from _approved(hearing, event, asked.gate)
        if not _was_shown(hearing, event.key, event.shown):
            yield I2(f"'{event.key}' is answered, and what was answered was not shown before")
        yield from _channel(hearing, event)
        yield from _came(hearing, event)
    yield from _effects(hearing, event, asked)
    hearing.completed = ""  # a step sets what a question owns only if it is completed after the answer
    if event.how == "given":
        hearing.given[event.key] = event.option


def approved(hearing: Hearing, event: e.ApprovalGiven) -> Verdict:
    """One person answers an open question as it was shown, by a channel of the user, if the gate lists it."""
    op, approval, by = hearing.find(event.key), event.approval, event.approval.by
    if op is None or op.gate.decide is None or hearing.visit.open != event.key:
        yield I1(f"'{event.key}' is answered by '{by}', and does not wait for approvers")
        return
    rule, escalated_to = op.gate.decide, hearing.audit.poll(event.key).escalated_to
    if not _was_shown(hearing, event.key, event.shown):
        yield I2(f"'{by}' answered '{event.key}', which was not shown so")
    if approval.entitled not in rule.by and (not escalated_to or approval.entitled != escalated_to):
        yield I3(f"'{by}' answered '{event.key}' as '{approval.entitled}', which is not listed")
    if rule.not_by_starter and hearing.audit.started_by in (by, approval.seat):
        yield I3(f"'{by}' answered '{event.key}' and started the run")
    if not is_at_least(approval.channel, "user"):
        yield I3(f"'{approval.channel}' answered '{event.key}', which only people may")


def escalated(hearing: Hearing, event: e.QuestionEscalated) -> Verdict:
    """An open question is escalated to the group that its gate names, after its time."""
    op = hearing.find(event.key)
    rule = op.gate.decide if op is not None else None
    is_asked = hearing.visit.open == event.key and _was_shown(hearing, event.key, event.shown)
    waited = event.at - hearing.visit.showings[event.key].at if is_asked else 0
    is_named = rule is not None and rule.escalate_to == event.to
    if rule is None or rule.within_ms is None or not is_named or not is_asked or waited < rule.within_ms:
        yield I3(f"'{event.key}' is escalated to '{event.to}' before its time, or to another group")


def _asked(hearing: Hearing, event: e.QuestionShown | e.GateResolved, *, is_input: bool) -> Askable | None:
    """Find the question that an event is about; None where the run may not be asked it.

    A gate is asked where it stands, and again if its false condition let it pass.
    """
    visit, op, scope = hearing.visit, hearing.due(), hearing.scope
    if isinstance(op, DoStep):
        for need in op.step.user_input:
            key = hearing.audit.instance(op.step.input_id(need))
            question = input_question(hearing.plan, scope, op.step, need, key)
            if event.key == key and (event.shown == question.digest or is_input):
                return Askable(question, need)
    found = hearing.gate_at(event.key, (*visit.passed, visit.open, *visit.answers))
    return Askable(gate_question(hearing.plan, scope, found), found) if found is not None else None


def _was_shown(hearing: Hearing, key: str, digest: str) -> bool:
    return key in hearing.visit.showings and hearing.visit.showings[key].digest == digest


def _by_user(hearing: Hearing, event: e.QuestionShown | e.GateResolved) -> bool:
    """Say whether the call brings an answer that a person gave to this question by a channel of their own.

    Only what was shown before the call can have been answered: later rounds may ask in the same words.
    """
    command, showing = hearing.command, hearing.found.visit.showings.get(event.key)
    was_shown = showing is not None and showing.digest == event.shown
    answer = command.decisions.get(event.shown) if was_shown and isinstance(command, Answerable) else None
    return answer is not None and is_at_least(answer.channel, "user")


def _approved(hearing: Hearing, event: e.GateResolved, gate: Gate | None) -> Verdict:
    """A gate with named approvers is decided by as many of them as it wants, and they agree.

    In never-stop mode it is a gap, like every decision without the user.
    """
    rule = gate.decide if gate is not None else None
    if rule is None and event.channel == "approvers":
        yield I3(f"'{event.key}' is decided by approvers, and names none")
    elif rule is not None and event.channel == "approvers":
        agreeing = [it for it in _newest(hearing, event.key) if it.option == event.option]
        if len(agreeing) < rule.at_least:
            yield I3(f"'{event.key}' is decided by {len(agreeing)} of {rule.at_least} approvers")
    elif rule is not None and hearing.terms.never_stops:
        yield from hearing.needs_gap("needs_user_choice", event.key)
    elif rule is not None:
        yield I3(f"'{event.channel}' answered '{event.key}', which its approvers decide")


def _newest(hearing: Hearing, key: str) -> list[ApproverAnswer]:
    """Return the answers that count: the newest of each person and of each seat.

    The poll keeps no others; whoever counts must not rely on that.
    """
    counted: list[ApproverAnswer] = []
    for approval in hearing.audit.poll(key).approvals:
        others = (it for it in counted if it.by != approval.by and it.seat != approval.seat)
        counted = [*others, approval]
    return counted


def _channel(hearing: Hearing, event: e.GateResolved) -> Verdict:
    """The channel is as strong as the terms want; the agent's not where the user declined or can be asked."""
    terms, channel = hearing.terms, event.channel
    if terms.never_stops:
        own: Strength = "user" if hearing.audit.terms.policy == "user" else "client"
        if not is_at_least(channel, own):
            yield from hearing.needs_gap("needs_user_choice", event.key)
        return
    weakest: Strength = terms.decisions if terms.decisions in ("client", "user") else "agent"
    if not is_at_least(channel, weakest):
        yield I3(f"'{channel}' answered '{event.key}', which only '{weakest}' may")
    declined = hearing.audit.declined.get(question_path(hearing.visit.activity, event.key))
    if declined is not None and not is_at_least(channel, strength(declined)):
        yield I3(f"'{channel}' answered '{event.key}', which the user declined to answer")
    before = hearing.visit.by.get(event.key)
    if before is not None and not is_at_least(channel, strength(before)):
        yield I3(f"'{channel}' replaces the answer to '{event.key}' that came by '{before}'")
    is_asked = terms.asks_by is not None and (terms.asks_by != "elicitation" or terms.decisions == "auto")
    if channel == "agent" and is_asked:
        yield I3(f"the agent answered '{event.key}' for a user who could be asked")


def _came(hearing: Hearing, event: e.GateResolved) -> Verdict:
    """A user's answer is one that the call brought: by the digest of its question, or to its gate."""
    command = hearing.command
    if command is None or event.channel in ("agent", "approvers"):
        return
    brought = set[tuple[str, str | None, Channel]]()
    if isinstance(command, Answerable):
        brought |= {(digest, it.option, it.channel) for digest, it in command.decisions.items()}
    if isinstance(command, ResolveCheckpoint):
        gate = command.gate or item_of(hearing.visit.open)
        brought.add((gate, command.option, command.channel))
    if brought.isdisjoint((name, event.option, event.channel) for name in (event.shown, event.gate)):
        yield I3(f"'{event.channel}' answers '{event.key}', and the call has no such answer to it")


def _without_user(hearing: Hearing, event: e.GateResolved, asked: Askable) -> Verdict:
    """A server answers a gate that does not apply, by its default in time, or where the mode says so."""
    if isinstance(asked.source, UserInput):
        yield I1(f"the server answered '{event.key}', which only the user can give")
    elif event.how == "dismissed":
        if event.option is not None or hearing.applies(asked.source):
            yield I1(f"'{event.key}' was dismissed, and its condition holds")
    elif event.how == "assumed":
        if isinstance(asked.source, AskGate) or hearing.terms.guided or event.option != "proceed":
            yield I1(f"'{event.key}' was assumed in a mode that asks for it")
        yield from hearing.needs_gap("needs_user_approval", event.key)
    elif not _is_in_time(hearing, event, asked.source.gate):
        if hearing.terms.never_stops:
            yield from hearing.needs_gap("needs_user_choice", event.key)
        else:
            yield I1(f"the server answered '{event.key}' before its time, or with another option")


def _is_in_time(hearing: Hearing, event: e.GateResolved, gate: Gate) -> bool:
    """Say whether it is the default of a gate that does not block, whose time ran since it was shown."""
    showing = hearing.visit.showings.get(event.key)
    is_default = not gate.blocking and gate.default_option == event.option is not None
    return is_default and showing is not None and event.at - showing.at >= (gate.auto_advance_ms or 0)


def _effects(hearing: Hearing, event: e.GateResolved, asked: Askable) -> Verdict:
    """An answer does what its option declares, and nothing else."""
    where, source = f"the answer to '{event.key}'", asked.source
    earlier = hearing.audit.set_by.get(question_path(hearing.visit.activity, event.gate))
    undo = earlier.undo if earlier is not None and event.option is not None else {}
    if event.restores != {name: undo[name] for name in undo if name not in event.sets}:
        yield I4(f"{where} does not take back what the earlier one has set, as it was before")
    if isinstance(source, UserInput):
        more = event.transition_to or event.next or event.skip_activities
        if more or not {source.key}.issuperset(event.sets):
            yield I4(f"{where} does more than set its variable")
        constrained = {*hearing.plan.types, *hearing.plan.legal}
        if source.key in constrained and not source.options and source.key not in event.sets:
            yield I4(f"{where} does not set its variable")
        return
    option = asked.question.option(event.option) if event.option is not None else None
    if option is None and event.how != "dismissed":
        yield I2(f"{where} is none of its options")
    effect = option.effect if option else Effect()
    declared = fitting(hearing.plan, effect.set_variables)
    brought = event.sets.keys() - declared.keys()  # what the question asks for by its absence
    if brought and event.channel != "agent":
        yield I4(f"{where} comes with what only the agent has brought")
    did = ({name: event.sets[name] for name in event.sets if name not in brought}, event.transition_to)
    asks_for = wanted_by_absence(source.gate.condition) - set_names(hearing.audit.variables)
    is_declared = did == (declared, effect.transition_to) and brought <= asks_for
    if not is_declared or event.skip_activities != effect.skip_activities:
        yield I4(f"{where} does something else than its option declares")
    is_revised = isinstance(source, ConfirmStep) and event.option == "revise"
    again = (step_key(source.step.id), hearing.visit.next) if isinstance(source, ConfirmStep) else ()
    if event.next not in (again if is_revised else (None,)):
        yield I1(f"{where} moves the run to '{event.next}'")
