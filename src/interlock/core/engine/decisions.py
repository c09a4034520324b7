"""Decisions: whose answer counts (rule 27), and the record it leaves (rule 26)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from interlock.core.definition.expressions import variables_in
from interlock.core.definition.program import Plan, step_key
from interlock.core.definition.prompts import unset_in_effect
from interlock.core.definition.workflow import Approvers, Gate, UserInput
from interlock.core.engine.gates import question_of
from interlock.core.run import events as e
from interlock.core.run.channels import Channel, is_at_least, strength
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.keys import gate_in
from interlock.core.run.outcomes import NeedAnswer
from interlock.core.run.output import Output
from interlock.core.run.polls import Poll
from interlock.core.run.preferences import Preferences
from interlock.core.run.questions import DECISION, DECISION_REF, Question
from interlock.core.run.reasons import Blocker, BlockerCode, ContractPointer, Severity
from interlock.core.run.state import RunState, instance
from interlock.core.secrets import note_without_secret
from interlock.core.values import Json
from interlock.core.variables.typed_values import fitting
from interlock.core.variables.writes import brought_with, restored

AskedThrough: TypeAlias = Literal["agent", "form", "address", "inbox"]


def counts(decision: Decision, state: RunState, key: str, terms: Terms, gate: Gate | None = None) -> bool:
    """Say whether this channel may answer the question; the mode outranks the policy.

    A user who was asked and did not answer is not answered for by a weaker channel, nor does that replace
    what the user has answered. The server answers only where the mode or the time that has passed says so. A
    gate that names its approvers is theirs.
    """
    if state.preferences.never_stops or decision.channel in ("server", "time"):
        return True
    if gate is not None and gate.decide is not None:
        return decision.channel == "approvers"
    users = (state.declined_by(key), state.replaced_by(key))
    is_too_weak = any(by and not is_at_least(decision.channel, strength(by)) for by in users)
    return not is_too_weak and is_at_least(decision.channel, terms.weakest)


def waits_for_user(state: RunState, key: str, terms: Terms, gate: Gate | None = None) -> bool:
    """Say whether nothing that the agent could send would answer the question, by a form neither.

    Who has closed a form is not sent it again by an agent that only follows the text.
    """
    channel: Channel = "elicitation" if _is_put_by_form(state, key, terms) else "agent"
    return not counts(Decision("", channel), state, key, terms, gate)


def asked_through(state: RunState, key: str, terms: Terms, gate: Gate | None = None) -> AskedThrough:
    """Return how the question comes to the user in the next call that answers it."""
    if not waits_for_user(state, key, terms, gate):
        return "form" if _is_put_by_form(state, key, terms) else "agent"
    at_address = Decision("", "inbox")
    is_shown = terms.asks_by == "inbox" and terms.decisions == "user"
    return "address" if is_shown and counts(at_address, state, key, terms, gate) else "inbox"


def _is_put_by_form(state: RunState, key: str, terms: Terms) -> bool:
    can_show = terms.asks_by == "elicitation" and terms.asks_by_form
    return can_show and not state.preferences.never_stops and state.declined_by(key) is None


def asked_how(state: RunState, key: str, terms: Terms, gate: Gate | None = None) -> dict[str, Json]:
    """What a refusal says beside its names where the agent does not ask the user itself."""
    through = asked_through(state, key, terms, gate)
    return {} if through == "agent" else {through: True}


def taken_in_time(gate: Gate) -> Decision:
    """The default of a gate, after its time."""
    channel: Channel = "time" if gate.decide is not None else "server"
    return Decision(gate.default_option or "", channel, note="the time to answer has passed")


def quorum(rule: Approvers, poll: Poll) -> Decision | None:
    """Return the decision that enough people agree on, if they do."""
    counted = Counter(approval.option for approval in poll.approvals)
    agreed = next((option for option, votes in counted.items() if votes >= rule.at_least), None)
    if agreed is None:
        return None
    agreeing = [approval for approval in poll.approvals if approval.option == agreed]
    notes = "\n".join(f"{approval.by}: {approval.note}" for approval in agreeing if approval.note)
    return Decision(agreed, "approvers", ", ".join(approval.by for approval in agreeing), notes)


def reported(output: Output, client: str, *gate_ids: str) -> Decision | None:
    """The agent's report of a decision, as an artifact of contract `wr.contracts.decision`."""
    for artifact in output.of_kind(DECISION, DECISION_REF):
        option = artifact.get("optionId")
        if artifact.get("checkpointId") in gate_ids and isinstance(option, str):
            return Decision(option, "agent", client, str(artifact.get("note") or ""))
    return None


def contradicted(output: Output) -> str | None:
    """Name a question that an output reports two different decisions on (rule 24)."""
    options: dict[str, Json] = {}
    for artifact in output.of_kind(DECISION, DECISION_REF):
        question, option = artifact.get("checkpointId"), artifact.get("optionId")
        if isinstance(question, str) and options.setdefault(question, option) != option:
            return question
    return None


def reports(output: Output) -> list[Json]:
    """Name the questions that an output reports decisions on."""
    return [artifact.get("checkpointId") for artifact in output.of_kind(DECISION, DECISION_REF)]


def resolved(
    plan: Plan,
    state: RunState,
    need: NeedAnswer,
    decision: Decision | None,
    now: int,
    *,
    how: e.Resolved = "chosen",
    brings: Mapping[str, Json] = {},
) -> e.GateResolved:
    """The record of a decision, with the effects of the chosen option.

    `brings` are the variables that came with the call: those whose absence it asks for belong to the answer
    that an agent reports. A user who answers sees none of them. Whoever yielded the question may resume.
    `revise` makes the step pending again; before the step was done, the run stays where it is.
    """
    gate, confirms, question = need.gate, need.confirms, question_of(plan, state, need.gate, need.confirms)
    option = question.option(decision.option) if decision else None
    effect = option.effect if option else None
    declared = gate.option(decision.option) if decision else None
    scope = plan.scope(state.variables)
    effects = effect.set_variables if effect else {}
    is_reported = option is not None and decision is not None and decision.channel == "agent"
    sets = {**(brought_with(plan, state, gate, brings) if is_reported else {}), **fitting(plan, effects)}
    values = declared.effect.set_variables.values() if declared else ()
    agent = yielded_by(state, need.key)
    following = None
    if confirms is not None and decision is not None and decision.option == "revise":
        is_done = instance(state, confirms.id) in state.visit.done
        following = step_key(confirms.id) if is_done else state.visit.next_key
    return e.GateResolved(
        key=need.key,
        gate=gate.id,
        how=how,
        at=now,
        channel=decision.channel if decision else "server",
        shown=question.digest,
        question=question.text,
        options=tuple(listed.id for listed in gate.options),
        option=option.id if option else None,
        client=decision.client if decision else "",
        note=note_without_secret(decision.note) if decision else "",
        agent=agent,
        next=following,
        sets=sets,
        restores=restored(state, gate.id, sets) if option else {},
        transition_to=effect.transition_to if effect else None,
        skip_activities=effect.skip_activities if effect else (),
        resumable=bool(agent),
        roots=question.roots,
        binds=how != "assumed" and decision is not None and is_the_users(decision, state.preferences),
        unset=tuple(name for value in values for name in unset_in_effect(value, scope)),
        unfit=tuple(name for name in effects if name not in sets),
    )


def yielded_by(state: RunState, key: str) -> str:
    """Name the worker that yielded the question; empty if nobody did."""
    return state.visit.open.agent if state.visit.open is not None and state.visit.open.key == key else ""


def is_the_users(decision: Decision, preferences: Preferences) -> bool:
    """Say whether the user decided, or let the time pass; in never-stop mode nobody asks the user."""
    return not preferences.never_stops or is_at_least(decision.channel, "client")


def given(state: RunState, need: UserInput) -> Json:
    """The value of the context key, if it answers this question; a decision is used once (rule 26).

    An approval counts for one step, and an answer to a question that shows variables for one round.
    """
    key = need.key or ""
    used = [
        owner
        for path, owner in state.ownership.decided.items()
        if gate_in(path) == key and key in owner.roots
    ]
    here = any(owner.key == instance(state, key) for owner in used)
    is_spent = need.is_approval or (not here and any(variables_in(need.question)))
    return None if used and is_spent else state.variables.get(key)


def undecided_gap(
    state: RunState, answer: e.GateResolved, need: NeedAnswer | None = None
) -> Iterator[e.GapRecorded]:
    """Record a gap where never-stop mode decides without the user, or a gate's approvers (rule 27)."""
    is_the_users_own = is_at_least(answer.channel, "user" if state.terms.policy == "user" else "client")
    if need is not None and need.gate.decide is not None:
        is_the_users_own = answer.channel == "approvers"
    if not state.preferences.never_stops or is_the_users_own or answer.option is None:
        return
    severity: Severity = "info" if need is not None and need.confirms else "critical"
    # a value is not repeated: it may be a secret
    decided = f"decided without the user: {answer.option}" if answer.options else "answered without the user"
    text = f"'{answer.question}' was {decided}."
    yield e.GapRecorded(severity, "user_only_dependency", "needs_user_choice", text, answer.key)


def example_decision(gate: Gate | Question) -> Mapping[str, Json]:
    """The payload that would answer the gate."""
    choices = [option.id for option in gate.options]
    choice = choices[0] if len(choices) == 1 else f"<{' | '.join(choices)}>"
    return {"kind": DECISION, "checkpointId": gate.id, "optionId": choice}


def decision_missing(question: Question, *, waits: bool) -> Blocker:
    """Block an acknowledgement that needs the user's decision and has none."""
    if waits:
        text = f"'{question.name}' waits for the user's own decision: {question.text}"
        return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, ContractPointer(DECISION_REF), text)
    return Blocker(
        BlockerCode.USER_ONLY_DEPENDENCY,
        ContractPointer(DECISION_REF),
        f"'{question.name}' needs the user's decision: {question.text}",
        example=example_decision(question),
    )


def unknown_option(question: Question, option: str) -> Blocker:
    """Block an acknowledgement whose decision names an option that the gate does not have."""
    valid = ", ".join(listed.id for listed in question.options)
    return Blocker(
        BlockerCode.INVALID_REQUIRED_OUTPUT,
        ContractPointer(DECISION_REF),
        f"'{option}' is not an option of '{question.name}'. Valid options: {valid}.",
        example=example_decision(question),
    )
