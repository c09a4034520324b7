"""Decisions: whose answer counts (rule 27), the record it leaves (rule 26), what it protects (rule 19)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from interlock.core.definition.conditions import variables_of
from interlock.core.definition.program import DoStep, EnterLoop, Plan
from interlock.core.definition.prompts import text_of, unset_in_effect, variables_in
from interlock.core.definition.workflow import Gate, Step, UserInput
from interlock.core.engine.gates import find_gate, question_of, roots_of
from interlock.core.engine.loops import extent_of
from interlock.core.run import events as e
from interlock.core.run.channels import is_at_least, strength
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.notices import Notice
from interlock.core.run.outcomes import NeedInput
from interlock.core.run.output import Output
from interlock.core.run.preferences import Preferences
from interlock.core.run.questions import Question
from interlock.core.run.reasons import Blocker, BlockerCode, ContractPointer, Severity
from interlock.core.run.state import RunState, instance
from interlock.core.values import MISSING, Json, Variables

DECISION = "wr.decision"
DECISION_REF = "wr.contracts.decision"
KEPT = "USER_VALUE_KEPT"
CHANGED = "USER_VALUE_CHANGED"


def counts(decision: Decision, state: RunState, key: str, terms: Terms) -> bool:
    """Say whether this channel may answer the question; the mode outranks the policy.

    A user who was asked and did not answer is not answered for by a weaker channel. The server answers only
    where the mode or the time that has passed says so.
    """
    if state.preferences.never_stops or decision.channel == "server":
        return True
    declined = state.declined_by(key)
    is_too_weak = declined is not None and not is_at_least(decision.channel, strength(declined))
    return not is_too_weak and is_at_least(decision.channel, terms.weakest)


def waits_for_user(state: RunState, key: str, terms: Terms) -> bool:
    """Say whether nothing that the agent could send would answer the question."""
    return not counts(Decision("", "agent"), state, key, terms)


def inbox_only(state: RunState, key: str, terms: Terms) -> dict[str, Json]:
    """What a refusal says beside its names where only the user can answer: no surface then says how to."""
    return {"inbox": True} if waits_for_user(state, key, terms) else {}


def reported(output: Output, client: str, *gate_ids: str) -> Decision | None:
    """The agent's report of a decision, as an artifact of contract `wr.contracts.decision`."""
    for artifact in output.of_kind(DECISION, DECISION_REF):
        option = artifact.get("optionId")
        if artifact.get("checkpointId") in gate_ids and isinstance(option, str):
            return Decision(option, "agent", client, str(artifact.get("note") or ""))
    return None


def resolved(
    plan: Plan,
    state: RunState,
    gate: Gate,
    key: str,
    decision: Decision | None,
    now: int,
    *,
    how: e.Resolved = "chosen",
    confirms: Step | None = None,
    agent: str = "",
    resumable: bool = False,
) -> e.GateResolved:
    """The record of a decision, with the effects of the chosen option.

    `revise` makes the step pending again; before the step was done, the run stays where it is.
    """
    question = question_of(plan, state, gate, confirms)
    option = question.option(decision.option) if decision else None
    effect = option.effect if option else None
    declared = gate.option(decision.option) if decision else None
    scope = plan.scope(state.variables)
    values = declared.effect.set_variables.values() if declared else ()
    following = None
    if confirms is not None and decision is not None and decision.option == "revise":
        is_done = instance(state, confirms.id) in state.done
        following = f"step:{confirms.id}" if is_done else state.next_key
    return e.GateResolved(
        key=key,
        gate=gate.id,
        how=how,
        at=now,
        channel=decision.channel if decision else "server",
        shown=question.digest,
        question=question.text,
        options=tuple(listed.id for listed in gate.options),
        option=option.id if option else None,
        client=decision.client if decision else "",
        note=decision.note if decision else "",
        agent=agent,
        next=following,
        sets=effect.set_variables if effect else {},
        transition_to=effect.transition_to if effect else None,
        skip_activities=effect.skip_activities if effect else (),
        resumable=resumable,
        reads=question.roots,
        binds=decision is not None and is_the_users(decision, state.preferences),
        unset=tuple(name for value in values for name in unset_in_effect(value, scope)),
    )


def is_the_users(decision: Decision, preferences: Preferences) -> bool:
    """Say whether the user decided: through a channel of the user's, or reported by the agent."""
    reports = decision.channel == "agent" and not preferences.never_stops
    return reports or is_at_least(decision.channel, "client")


def given(state: RunState, need: UserInput, used: Mapping[str, str] | None = None) -> Json:
    """The value of the context key, if it answers this question; a decision is used once (rule 26).

    An approval counts for one step, and an answer to a question that shows variables for one round. `used`
    are the variables of decisions that were used before the call, with their gates.
    """
    where = (state.decided if used is None else used).get(need.key or "", "")
    is_used = where.rpartition("::")[2] == need.key
    other = where != instance(state, need.key or "") and any(variables_in(need.question))
    return None if is_used and (need.is_approval or other) else state.variables.get(need.key or "")


def input_id(step: Step, need: UserInput) -> str:
    """The name under which the user's answer to a dependency is recorded."""
    return need.key or f"{step.id}:{need.reason}"


def bound_by_answers(
    state: RunState,
    steps: Iterable[Step],
    decisions: Mapping[str, Decision],
    variables: Variables,
    outputs: Iterable[Output],
) -> set[str]:
    """Name what the questions of these steps show, where the call brings their answers (rule 26).

    What nobody has set is bound by the user's own answer only: an agent may report it with the answer.
    """
    reports = not state.preferences.never_stops  # there an agent's answer is not the user's
    artifacts = [artifact for output in outputs for artifact in output.of_kind(DECISION, DECISION_REF)]
    answered = [*variables, *(artifact.get("checkpointId") for artifact in artifacts)]
    return {
        name
        for step in steps
        for need in step.user_input
        if decisions or input_id(step, need) in answered
        for name in roots_of(variables_in(need.question))
        if name != need.key and (decisions or (reports and name in state.variables))
    }


def admitted(
    plan: Plan,
    state: RunState,
    variables: Variables,
    completing: Iterable[Step] = (),
    bound: Collection[str] = (),
) -> tuple[dict[str, Json], list[Notice]]:
    """Separate what an agent may write from what is the user's (rule 19); say what was kept or changed.

    `completing` are the steps that the call completes: one that is declared to set a variable may, but for
    what is `bound` by an answer that comes with the call.
    """
    kept = _protected(plan, state)
    kept |= dict.fromkeys(bound, "the user was shown it with the question that this call answers")
    kept |= {name: kept[root] for name in variables if (root := name.partition(".")[0]) in kept}
    taken: dict[str, Json] = {}
    notices: list[Notice] = []
    steps = list(completing)
    needs = [need for step in steps for need in step.user_input if need.key in state.variables]
    asked_anew = {need.key for need in needs if need.key not in bound and given(state, need) is None}
    for name, value in variables.items():
        protected = name in kept and name not in bound
        setters = [step.id for step in steps if protected and step.sets(name.partition(".")[0])]
        current = state.variables.get(name, MISSING)
        if name not in kept or name in asked_anew:
            taken[name] = value
        elif current == value or (current is MISSING and value is None):
            continue
        elif name not in bound and (needed := _needed_by(plan, state, name)):
            taken[name] = value
            text = f"'{name}' has changed, because {needed} needs it, although {kept[name]}."
            notices.append(Notice(CHANGED, text))
        elif setters:
            taken[name] = value
            text = f"Step '{setters[0]}' has changed '{name}', although {kept[name]}."
            notices.append(Notice(CHANGED, text))
        else:
            stays = "unset" if current is MISSING else text_of(state.variables[name])
            text = f"'{name}' stays {stays}: {kept[name]}. The value that was sent is ignored."
            notices.append(Notice(KEPT, text))
    return taken, notices


def _protected(plan: Plan, state: RunState) -> dict[str, str]:
    """The variables that an agent does not change by the way, each with why."""
    kept: dict[str, str] = {}
    found = find_gate(plan, state, state.open.gate) if state.open else None
    if found is not None:
        text = f"checkpoint '{found.gate.id}' is open because of it"
        kept.update(dict.fromkeys(roots_of(variables_of(found.gate.condition)), text))
    for name, where in state.shown.items():
        kept[name] = f"the user was shown it when deciding checkpoint '{_gate_in(where)}'"
    for name, key in state.decided.items():
        kept[name] = f"the user has decided it at checkpoint '{_gate_in(key)}'"
    return kept


def _needed_by(plan: Plan, state: RunState, name: str) -> str | None:
    """Name the loop or step of the current activity that cannot go on for lack of this variable."""
    for op in plan.program(state.activity).ops.values() if state.activity else ():
        match op:
            case EnterLoop(loop=loop):
                extent = extent_of(plan, state, loop)
                if isinstance(extent, NeedInput) and name in roots_of(extent.variables):
                    return f"loop '{loop.id}'"
            case DoStep(step=step) if name not in state.variables:
                if any(wanted.key == name for wanted in step.user_input):
                    return f"step '{step.id}'"
    return None


def _gate_in(key: str) -> str:
    return key.rpartition("::")[2].rpartition("/")[2]


def undecided_gap(
    preferences: Preferences, answer: e.GateResolved, confirms: Step | None
) -> Iterator[e.GapRecorded]:
    """Record a gap where never-stop mode decides without the user (rule 27)."""
    if not preferences.never_stops or is_at_least(answer.channel, "client") or answer.option is None:
        return
    severity: Severity = "info" if confirms else "critical"
    text = f"'{answer.question}' was decided without the user: {answer.option}."
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
