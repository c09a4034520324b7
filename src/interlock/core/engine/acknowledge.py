"""Closing the pending item: a step, a gate's question, or input that a loop or an exit needs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import assert_never

from msgspec.structs import replace

from interlock.core.definition.program import LOOP_CONTROL, Plan, confirmation, step_key
from interlock.core.definition.prompts import UNAVAILABLE, text_of
from interlock.core.definition.workflow import TERMINAL, Step
from interlock.core.engine.decisions import (
    asked_how,
    counts,
    decision_missing,
    reported,
    undecided_gap,
    unknown_option,
    waits_for_user,
)
from interlock.core.engine.draft import Draft
from interlock.core.engine.gates import needs_confirmation
from interlock.core.engine.paths.exits import exits
from interlock.core.engine.requirements import (
    CAPABILITIES,
    DIVERGENCE,
    NOTHING_LACKS,
    OBSERVATION,
    STATUSES,
    Verdict,
    examine,
    observations,
)
from interlock.core.engine.settle import (
    CIRCLE,
    REST,
    asked_for_again,
    consequences,
    due_roots,
    lacks_unset,
    sets_of,
)
from interlock.core.run import events as e
from interlock.core.run.commands import AcknowledgeStep, Decision, EnterActivity, Terms
from interlock.core.run.notices import Notice, Notices
from interlock.core.run.outcomes import (
    Awaited,
    Code,
    Decided,
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
    Refusal,
)
from interlock.core.run.output import Output
from interlock.core.run.questions import Unanswered
from interlock.core.run.reasons import Blocker, BlockerCode, ContextKey, Severity, WorkflowStep, ordered
from interlock.core.run.state import RunState, instance, waits_alike
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json, Variables, set_names
from interlock.core.variables.writes import brought_with, may_set, unowned

GAPS = ("wr.gaps", "wr.contracts.gaps")
QUESTION_FIRST = "Step '{}' is not done: its question is put to the user now. Send the output again then."
NOT_OBSERVED = (
    "The capability observation was not taken: its capability must be one of "
    f"{', '.join(CAPABILITIES)}, its status one of {', '.join(STATUSES)}."
)
ONLY_GAPS = "The run has ended: its open gaps can be resolved, nothing else of the call was taken."


def acknowledge(plan: Plan, state: RunState, ack: AcknowledgeStep) -> Decided | Refusal:
    """Close whatever is pending; the node fixes what that is (rule 12)."""
    if state.finished:
        return resolve_late(plan, state, ack, ack.output)
    draft = Draft(plan, state, ack.policy, ack.now, ack.decisions)
    for workflow in state.children.values():  # navigation waits for them instead (rule 35)
        draft.notice("CHILD_RUNNING", f"Child '{workflow}' is still running; this run goes on without it.")
    pending = draft.settle()
    settled = draft.state
    if ack.step is not None:
        draft.take_expired_open()
        pending = draft.skip_optional(until=ack.step) if ack.policy.exits == "offered" else draft.settle()
    # what comes with an answer changes nothing that was asked
    if not isinstance(pending, (NeedAnswer, Done)):
        draft.take(ack.variables)
    draft.receive(ack.output)
    match pending:
        case NeedStep():
            return _close_step(draft, settled, pending, ack)
        case NeedAnswer():
            return _answer_gate(draft, settled, pending, ack)
        case NeedInput():
            return _supply_input(draft, settled, pending, ack)
        case Done():
            return draft.decided()  # only the end was left, which another surface takes by a call of its own
        case NeedLoop() | NeedExit() | NeedEntry():
            return _other_step(draft, {"step": ack.step or ""})
        case _:
            assert_never(pending)


def _blocked(
    draft: Draft,
    settled: RunState,
    pending: NeedStep | NeedAnswer | NeedInput,
    *blockers: Blocker,
    questions: tuple[e.Event, ...] = (),
    verdict: Verdict = NOTHING_LACKS,
) -> Decided | Refusal:
    """Record an attempt that did not pass, or refuse it on a surface that keeps no blocked attempts.

    `questions` are the step's own, as they are put. A rejection is thereby used: the user is asked again. A
    run that stays elsewhere than at the step (a gate was passed over, another surface began it) puts none.
    """
    listed = ordered(blockers)
    if not waits_alike(draft.found, draft.state):
        questions = ()
    elif questions:  # put as the variables of the call make them, which therefore come first
        questions = (*(event for event in draft.events if isinstance(event, e.ContextSet)), *questions)
    if draft.policy.exits != "offered":
        key = pending.subject if isinstance(pending, NeedInput) else pending.key
        events = (e.ValidationPerformed(key, False, listed), *verdict.ran, *questions)
        return Decided(
            events, settled, pending, listed, draft.disclosed(), verdict.unanswered, verdict.unchecked
        )
    code = Code.USER_MUST_DECIDE if listed[0].waits_for_user else Code.OUTPUT_REQUIRED
    examples = [blocker.example for blocker in listed if blocker.example is not None]
    about: dict[str, Json] = {"reason": " ".join(blocker.message for blocker in listed), "examples": examples}
    refusal = verdict.check_refusal or Refusal(code, about)
    return replace(
        refusal,
        kept=(*verdict.ran, *questions),
        unanswered=verdict.unanswered,
        unchecked=verdict.unchecked,
    )


def kept_when_blocked(
    plan: Plan, state: RunState, need: Awaited, variables: Variables, terms: Terms
) -> tuple[dict[str, Json], list[Notice]]:
    """Separate what a blocked call has sent for the next one from what is ignored, and say so (rule 19)."""
    later: set[str] = set()
    match need:
        case NeedAnswer(gate=gate, key=key) if not waits_for_user(state, key, terms, gate):
            later.update(brought_with(plan, state, gate, variables))
        case NeedStep(step=step):
            later.update(name for name in variables if may_set(plan, state, step, name))
            later.update(wanted.key for wanted in step.user_input if wanted.key)
    kept = {name: value for name, value in variables.items() if name in later}
    rest = {name: variables[name] for name in variables.keys() - later}
    due, again = due_roots(plan, state, EXECUTION), asked_for_again(plan, state, EXECUTION)
    free, notices = unowned(plan, state, rest, due, again)
    return {**kept, **free}, notices


def input_required(need: NeedInput, code: Code = Code.INPUT_REQUIRED) -> Refusal:
    """Refuse until the variables are sent that only the agent can supply."""
    about: dict[str, Json] = {"variables": list(need.variables), "example": dict(need.example)}
    return Refusal(code, {**about, "reason": need.message})


def _close_step(draft: Draft, settled: RunState, need: NeedStep, ack: AcknowledgeStep) -> Decided | Refusal:
    if ack.step is not None and ack.step not in (need.step.id, need.key):
        return _other_step(draft, {"step": ack.step, "pending_step": need.step.id})
    if ack.step is None and not need.step.required and ack.output == Output():
        draft.skip(need)
        return draft.decided()
    submission = draft.submission(need.step, ack.output, ack)
    verdict = examine(draft.plan, draft.state, need.step, need.key, submission)
    if verdict.stopping:
        if verdict.unanswered and draft.policy.exits == "taken" and not waits_alike(draft.found, settled):
            draft.notice("QUESTION_FIRST", QUESTION_FIRST.format(need.step.id))
            # no attempt is blocked at a node where the run had not come to the step
            return replace(draft.decided(), unanswered=verdict.unanswered)
        questions = tuple(draft.put_to_user(verdict.unanswered, verdict.rejections))
        return _blocked(draft, settled, need, *verdict.stopping, questions=questions, verdict=verdict)
    accept(draft, ack.output, verdict)
    if need.step.wants_notes and not ack.output.has_content:
        text = f"Nothing was written down about step '{need.step.id}'."
        draft.record(e.GapRecorded("warning", "unexpected", "no_notes", text, need.key))
    digest = ack.output.digest if draft.state.visit.frames else ""
    complete(draft, need, digest, verdict, claimed=False)
    _report_confirmation(draft, need.step, ack)
    return draft.decided()


def _other_step(draft: Draft, about: Mapping[str, str]) -> Refusal:
    """Refuse a step that is not the pending one."""
    activity, step = draft.plan.workflow.activity(draft.state.activity), about["step"]
    if activity is None or activity.step(step) is None:
        return Refusal(Code.STEP_NOT_FOUND, about)
    if instance(draft.state, step) in draft.state.visit.done:
        return Refusal(Code.STEP_ALREADY_COMPLETE, about)
    return Refusal(Code.STEP_NOT_PENDING, about)


def accept(draft: Draft, output: Output, verdict: Verdict) -> None:
    """Record what was examined and passed: checks, answers, what the artifacts tell, gaps made and closed."""
    draft.record(*verdict.ran, *draft.put(verdict.answers), *_learned(output), *verdict.gaps)
    if len([*observations(output)]) < len([*output.of_kind(*OBSERVATION)]):
        draft.notice("OBSERVATION_NOT_TAKEN", NOT_OBSERVED)
    for artifact in output.of_kind(*GAPS):
        for gap in _members(artifact, "open"):
            severity: Severity = "critical" if gap.get("severity") == "critical" else "warning"
            text = str(gap.get("summary") or "")
            draft.record(e.GapRecorded(severity, "unexpected", "reported", text))
    _resolve_gaps(draft, output)


def _learned(output: Output) -> Iterator[e.Event]:
    """Read from the artifacts which capabilities were seen, which divergence, and how a loop is steered."""
    yield from observations(output)
    for artifact in output.of_kind(*DIVERGENCE):
        related = artifact.get("relatedStepId")
        yield e.DivergenceRecorded(
            str(artifact.get("reason") or "unspecified"),
            str(artifact.get("summary") or ""),
            related if isinstance(related, str) else None,
        )
    for artifact in output.of_kind(LOOP_CONTROL, "wr.contracts.loop_control"):
        match artifact.get("decision"):
            case "continue":
                yield e.LoopSteered("continue")
            case "stop":
                yield e.LoopSteered("stop")


def resolves_gaps(output: Output) -> bool:
    """Say whether the output closes gaps."""
    return any(_members(artifact, "resolved") for artifact in output.of_kind(*GAPS))


def resolve_late(
    plan: Plan, state: RunState, command: AcknowledgeStep | EnterActivity, *outputs: Output
) -> Decided | Refusal:
    """Close gaps of a run that has ended; nothing else changes it any more."""
    draft = Draft(plan, state, command.policy, command.now)
    for output in outputs:
        _resolve_gaps(draft, output)
    if not draft.events:
        return Refusal(Code.RUN_FINISHED, notices=Notices(tuple(draft.notices)))
    if command.variables or any(
        _members(gaps, "open") for output in outputs for gaps in output.of_kind(*GAPS)
    ):
        draft.notice("ARGUMENTS_IGNORED", ONLY_GAPS)
    return draft.decided()


def _resolve_gaps(draft: Draft, output: Output) -> None:
    for artifact in output.of_kind(*GAPS):
        for gap in _members(artifact, "resolved"):
            number = gap.get("gap")
            known = {listed.number: listed for listed in draft.state.gaps.newest if not listed.resolved}
            if not isinstance(number, int) or number not in known:
                draft.notice("NO_SUCH_GAP", f"There is no open gap {text_of(number)} to resolve.")
            elif known[number].users:
                text = f"Gap {number} stays open: it was decided without the user, who alone can resolve it."
                draft.notice("USERS_GAP", text)
            else:
                draft.record(e.GapResolved(number, str(gap.get("summary") or "resolved"), "agent"))


def _members(artifact: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    members = artifact.get(name)
    return [gap for gap in members if isinstance(gap, Mapping)] if isinstance(members, (list, tuple)) else []


def complete(draft: Draft, need: NeedStep, output: str, verdict: Verdict, *, claimed: bool) -> None:
    """Record that the step is done, with what its actions write and what was handed in for it.

    `output` is the digest of what must not be recorded again (rule 14); empty if nothing came, or nothing
    new, or if the step is acknowledged outside loops, where it is done only once a visit.
    """
    assert draft.state.activity is not None
    following = draft.plan.program(draft.state.activity).after(step_key(need.step.id))
    sets = sets_of(draft.plan, draft.state, need.step.actions)
    brought, artifacts = verdict.handed_in, verdict.quoted
    draft.record(
        e.StepCompleted(need.key, need.step.id, following, claimed, sets, output, brought, artifacts)
    )
    draft.write_by(need.step)
    may_lack = claimed and draft.plan.workflow.dialect.claims_may_lack_variables
    _notice_omissions(draft, need.step, has_gaps=draft.state.preferences.never_stops and not may_lack)


def _report_confirmation(draft: Draft, step: Step, ack: AcknowledgeStep) -> None:
    """Through execution a bare acknowledgement is the agent's report of a confirmation (rule 25)."""
    if not step.may_confirm or not draft.state.preferences.guided:
        return
    if not needs_confirmation(draft.plan, draft.state, step):
        return
    gate = confirmation(step)
    need = NeedAnswer(instance(draft.state, gate.id), gate, draft.now, step)
    decision = ack.decisions.get(draft.question(need).digest)
    decision = decision or reported(ack.output, ack.client, gate.id, step.id)
    if decision is None and ack.reports:
        decision = Decision("proceed", "agent", ack.client)
    if decision and counts(decision, draft.state, need.key, ack.terms) and gate.option(decision.option):
        draft.show(need)
        draft.record(draft.resolved(need, decision))


def _notice_omissions(draft: Draft, step: Step, *, has_gaps: bool) -> None:
    """Tell the caller which variables a step should have set, and which capability is missing.

    `has_gaps` says that what the step must set and has not is told as a gap.
    """
    suffices = draft.plan.defaults.keys() - draft.plan.decisive.keys()
    known = {*set_names(draft.state.variables), *suffices}
    known |= {*draft.plan.produced(step, draft.plan.scope(draft.state.variables))} if has_gaps else set()
    for action in step.actions:
        if action.produces and action.produces not in known:
            text = f"Step '{step.id}' should set '{action.produces}'; it is not set."
            draft.notice("VARIABLE_NOT_SET", text)
    unset = [name for name in step.inferred if name not in {*known, *draft.state.variables}]
    if names := ", ".join(f"'{name}'" for name in unset if may_set(draft.plan, draft.state, step, name)):
        text = f"The text of step '{step.id}' says to set {names}, and nobody has."
        draft.notice("VARIABLE_NOT_SET", text)
    for event in itertools.islice(reversed(draft.events), 1, None):
        if isinstance(event, e.StepCompleted):  # what came before belongs to another step
            break
        if isinstance(event, e.CapabilityObserved) and event.status == "unavailable":
            wanted = draft.plan.workflow.capabilities.get(event.capability)
            if wanted == "preferred":
                draft.notice("CAPABILITY_DEGRADED", UNAVAILABLE[event.capability])


def _answer_gate(
    draft: Draft, settled: RunState, need: NeedAnswer, ack: AcknowledgeStep
) -> Decided | Refusal:
    if ack.step is not None:
        about = {"checkpoint": need.gate.id, "step": ack.step}
        return Refusal(
            Code.DECISION_PENDING, {**about, **asked_how(draft.state, need.key, ack.terms, need.gate)}
        )
    decision = _decision_on(draft, need, ack)
    if isinstance(decision, Blocker) and draft.events and draft.policy.exits == "taken":
        draft.take(ack.variables)
        return draft.decided()  # the call has come to a question of another surface's run, which is now put
    if isinstance(decision, Blocker):
        if not draft.take_expired(need):
            _, ignored = kept_when_blocked(draft.plan, settled, need, ack.variables, ack.terms)
            draft.notices.extend(ignored)
            verdict = Verdict(unanswered=(Unanswered(need.key, draft.question(need)),))
            return _blocked(draft, settled, need, decision, verdict=verdict)
        draft.take(ack.variables)
        return draft.decided()
    if decision is None:
        draft.pass_optional(need)
        draft.take(ack.variables)
        return draft.decided()
    by_server: e.Resolved = "assumed" if need.confirms else "auto_advanced"
    how: e.Resolved = by_server if decision.channel == "server" else "chosen"
    answer = draft.resolved(need, decision, how=how, brings=ack.variables)
    gaps = consequences(answer) or undecided_gap(draft.state, answer, need)
    draft.record(answer, *gaps)
    draft.take(ack.variables)
    return draft.decided()


def _decision_on(draft: Draft, need: NeedAnswer, ack: AcknowledgeStep) -> Decision | Blocker | None:
    """The decision that counts; a blocker where there is none; None where an optional gate is passed."""
    gate, decision = need.gate, _offered(draft, need, ack)
    question = draft.question(need)
    if draft.state.preferences.never_stops and (decision is None or gate.option(decision.option) is None):
        return Decision(gate.default_option or gate.options[0].id, "server")
    if decision is None and not gate.required:
        return None
    if decision is None:
        return decision_missing(question, waits=waits_for_user(draft.state, need.key, ack.terms, gate))
    if not counts(decision, draft.state, need.key, ack.terms, gate):
        return decision_missing(question, waits=True)
    if gate.option(decision.option) is None:
        return unknown_option(question, decision.option)
    return decision


def _offered(draft: Draft, need: NeedAnswer, ack: AcknowledgeStep) -> Decision | None:
    """The answer that came with the call, the user's own first."""
    names = (need.gate.id, need.confirms.id) if need.confirms else (need.gate.id,)
    decision = ack.decisions.get(draft.question(need).digest)
    decision = decision or reported(ack.output, ack.client, *names)
    if decision is not None or need.confirms is None:
        return decision
    if not draft.state.preferences.guided:
        return Decision("proceed", "server")
    if ack.reports and ack.terms.takes_reports:
        return Decision("proceed", "agent", ack.client)
    return None


def _supply_input(
    draft: Draft, settled: RunState, need: NeedInput, ack: AcknowledgeStep
) -> Decided | Refusal:
    if ack.step is not None:
        return input_required(need)
    still = draft.settle()
    if not isinstance(still, NeedInput) or still.subject != need.subject or need.subject.startswith(REST):
        return draft.decided()
    if draft.state.preferences.never_stops:
        draft.record(*without_input(draft, need))
        return draft.decided()
    missing = [
        Blocker(BlockerCode.MISSING_REQUIRED_OUTPUT, ContextKey(name), need.message, example={name: value})
        for name, value in still.example.items()
    ]
    pointer = WorkflowStep(draft.state.activity or "")
    endless = Blocker(BlockerCode.INVARIANT_VIOLATION, pointer, need.message)
    return _blocked(draft, settled, need, *(missing or [endless]))


def without_input(draft: Draft, need: NeedInput) -> Iterator[e.Event]:
    """In never-stop mode go on without it, and disclose that as a gap.

    What is unset stays so, the loop is left, an exit is taken that is not known to be closed, or an endless
    run ends.
    """
    if lacks_unset(need):
        yield e.GapRecorded("warning", "unexpected", "missing_input", need.message, need.subject)
        yield e.ContextSet(dict.fromkeys(need.variables))
        return
    yield e.GapRecorded("critical", "unexpected", "missing_input", need.message, need.subject)
    assert draft.state.activity is not None
    if need.loop is not None:
        head = draft.plan.program(draft.state.activity).head(need.loop.id)
        yield e.LoopLeft(need.loop.id, head.after, "gap")
        return
    endless = need.subject.startswith(CIRCLE)
    undecided = (exit_.to for exit_ in exits(draft.plan, draft.state) if not exit_.decided)
    yield e.ActivityLeft(draft.state.activity, TERMINAL if endless else next(undecided), "gap")
