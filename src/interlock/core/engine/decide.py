"""The decider: the outcome of a command in a state. Surfaces only translate calls into these commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from interlock.core.definition.conditions import holds
from interlock.core.definition.program import Plan, loop_key
from interlock.core.engine.acknowledge import acknowledge, input_required, without_input
from interlock.core.engine.asking import kept_with, unanswered, with_declines
from interlock.core.engine.checkpoints import (
    approve,
    escalate,
    open_checkpoint,
    resolve_checkpoint,
    resume_checkpoint,
)
from interlock.core.engine.claims import gate_open
from interlock.core.engine.draft import Draft
from interlock.core.engine.evolve import evolve, evolved
from interlock.core.engine.gates import find_gate, loops_around, question_shown
from interlock.core.engine.paths.loops import again, begun, extent_of, items_of
from interlock.core.engine.paths.transitions import enter
from interlock.core.engine.run_checks import check_gap, check_refusal, checks_shown, failed_check
from interlock.core.engine.settle import asked_for_again, awaited, due_roots, entered, settle
from interlock.core.guard.audit import Audit, learn
from interlock.core.guard.hearing import Violation
from interlock.core.guard.inspection import judge
from interlock.core.run import events as e
from interlock.core.run.commands import (
    AbandonRun,
    AcknowledgeStep,
    AdvanceLoop,
    Answerable,
    Approve,
    Checkable,
    Command,
    EnterActivity,
    Escalate,
    OpenCheckpoint,
    ResolveCheckpoint,
    ResolveGap,
    ResumeWorker,
    ReturnChild,
    StartChild,
    StartRun,
)
from interlock.core.run.keys import gate_in
from interlock.core.run.notices import NO_NOTICES, VARIABLES_UNREAD, Notice
from interlock.core.run.outcomes import (
    Ask,
    Awaited,
    Code,
    Decided,
    Done,
    NeedAnswer,
    NeedInput,
    NeedLoop,
    NeedStep,
    Refusal,
    RunChecks,
    run_abandoned,
)
from interlock.core.run.reasons import ordered
from interlock.core.run.state import RunState, instance
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Variables, set_names, with_member
from interlock.core.variables.inheritance import Passed, passed_on
from interlock.core.variables.roots import unset_in_question
from interlock.core.variables.typed_values import NOT_TAKEN, sound
from interlock.core.variables.writes import KEPT, owners, unowned

VARIABLES_BYTES = 256 * 1024

_Progress: TypeAlias = (
    AcknowledgeStep | EnterActivity | OpenCheckpoint | ResolveCheckpoint | ResumeWorker | AdvanceLoop
)

_encode = msgspec.json.Encoder().encode


def decide(
    plan: Plan, state: RunState, command: Command, audit: Audit
) -> Decided | Refusal | Ask | RunChecks:
    """Return the events of the command and what is awaited then, or why it is refused.

    `audit` is what the guard has learned of the run: it has the last word.
    """
    outcome = _outcome_or_ask(plan, state, command)
    if isinstance(outcome, (Ask, RunChecks)):
        return outcome
    outcome = _with_advice(plan, state, command, outcome)
    return guarded(plan, audit, command, _under_terms(audit, state, command, outcome))


def guarded(plan: Plan, audit: Audit, command: Command, outcome: Decided | Refusal) -> Decided | Refusal:
    """Return the outcome, unless its events break what Interlock promises: then nothing of it is kept."""
    events = outcome.events if isinstance(outcome, Decided) else outcome.kept
    verdict = judge(plan, audit, events, command)
    if isinstance(verdict, Violation):
        return Refusal(Code.GUARD_REFUSED, {"invariant": verdict.invariant, "detail": verdict.detail})
    return replace(outcome, audit=verdict) if isinstance(outcome, Decided) else outcome


def _under_terms(
    audit: Audit, state: RunState, command: Command, outcome: Decided | Refusal
) -> Decided | Refusal:
    """Record first the terms that the command was decided under, if they have changed.

    After the end only gaps are closed, which no terms decide.
    """
    if state.finished or isinstance(command, ResumeWorker) or not isinstance(command, _Progress):
        return outcome
    terms, asks_by = command.terms, None if isinstance(command, AdvanceLoop) else command.terms.asks_by
    applied = e.TermsApplied(terms.decisions, terms.enforcement, state.preferences.autonomy, asks_by)
    is_known = learn(audit, applied) == audit
    has_events = isinstance(outcome, Decided) or bool(outcome.kept)
    return outcome if is_known or not has_events else kept_with(outcome, (applied,))


def _outcome_or_ask(plan: Plan, state: RunState, command: Command) -> Decided | Refusal | Ask | RunChecks:
    """Decide a command that answers for a user who can be asked again, once the user was asked.

    Who then declines is not answered for by the agent (rule 27).
    """
    if isinstance(command, Approve):
        return _checked(plan, state, command)
    if not isinstance(command, Answerable):
        return outcome_of(plan, state, command)
    outcome = _checked(plan, state, command)
    if isinstance(outcome, RunChecks):
        return outcome
    missing = unanswered(plan, state, command, outcome)
    unasked = [asked.question for asked in missing if asked.question.digest not in command.declined]
    if unasked:
        return Ask(tuple(unasked), command.terms.asks_by or "elicitation")
    if not missing or command.terms.asks_by == "inbox":  # who is told where to answer has declined nothing
        return outcome
    entering = _entering(plan, state, command)
    declined, events = with_declines(evolved(state, entering), command, missing)
    refused = _checked(plan, replace(state, replies=declined.replies), command)
    return refused if isinstance(refused, RunChecks) else _kept_after(entering, events, refused)


def _entering(plan: Plan, state: RunState, command: Answerable) -> tuple[e.Event, ...]:
    """Return the events by which a command comes to another activity before it meets a question.

    So it is where another surface has begun the run, or has left it at the end of an activity.
    """
    draft = Draft(plan, state, command.policy, command.now)
    draft.settle()
    entered = [isinstance(event, e.ActivityEntered) for event in draft.events]
    return tuple(draft.events[: len(entered) - entered[::-1].index(True)]) if any(entered) else ()


def _kept_after(
    entering: tuple[e.Event, ...], events: tuple[e.Event, ...], outcome: Decided | Refusal
) -> Decided | Refusal:
    """Return the outcome with events of the activity that it comes to, right after that is entered."""
    recorded = outcome.kept if isinstance(outcome, Refusal) else outcome.events
    if recorded[: len(entering)] == entering:
        recorded = recorded[len(entering) :]
    recorded = (*entering, *events, *recorded)
    if isinstance(outcome, Refusal):
        return replace(outcome, kept=recorded)
    return replace(outcome, events=recorded)


def _checked(plan: Plan, state: RunState, command: Checkable) -> Decided | Refusal | RunChecks:
    """Decide a command once the checks have run that its outcome needs or shows."""
    again = tuple(result.ran for result in command.checked if result.due.again and result.ran is not None)
    outcome = _after_rechecks(plan, state, command, again) if again else outcome_of(plan, state, command)
    due = outcome.unchecked or tuple(checks_shown(plan, state, command, outcome) if state.checks else ())
    return RunChecks(due) if due else outcome


def _after_rechecks(
    plan: Plan, state: RunState, command: Checkable, again: tuple[e.CheckRan, ...]
) -> Decided | Refusal:
    """Decide a command after checks were run again, because the files they held for have changed.

    A question that is open is put again with the new result; nothing else of the call is done. One that
    failed holds the call up.
    """
    failed = [ran for ran in again if not ran.passed]
    if failed and not state.preferences.never_stops:
        return _held_by_check(plan, state, command, again, failed)
    draft = Draft(plan, state, command.policy, command.now)
    draft.record(*again, *map(check_gap, failed))
    opened = state.visit.open
    found = find_gate(plan, state, opened.gate) if opened is not None else None
    if opened is not None and found is not None:
        need = NeedAnswer(opened.key, found.gate, command.now, found.confirms)
        if draft.question(need).digest != opened.shown:
            draft.show(need, opened.agent)
            text = f"Files have changed since checkpoint '{opened.gate}' was put. Its checks were run again, "
            text += "and it is asked again with their results. Nothing else of the call was done."
            if command.policy.exits != "taken":
                return Refusal(Code.CHECKED_AGAIN, {"reason": text}, tuple(draft.events))
            draft.notice("ASKED_AGAIN", text)
            return draft.decided()
    return kept_with(outcome_of(plan, draft.state, command), tuple(draft.events))


def _held_by_check(
    plan: Plan,
    state: RunState,
    command: Checkable,
    again: tuple[e.CheckRan, ...],
    failed: list[e.CheckRan],
) -> Decided | Refusal:
    """Hold up a command because a check has failed that a question shows."""
    if command.policy.exits != "taken":
        return replace(check_refusal(failed[0]), kept=again)
    blockers = ordered(map(failed_check, failed))
    performed = e.ValidationPerformed(failed[0].key, False, blockers)
    return Decided((performed, *again), state, awaited(plan, state, command.policy), blockers)


def outcome_of(plan: Plan, state: RunState, command: Command) -> Decided | Refusal:
    """Decide a command of a caller who cannot ask the user."""
    if (how := state.abandoned) is not None:
        return run_abandoned(how)
    if not isinstance(command, _Progress):
        return _outcome(plan, state, command)
    sent = command.variables
    if (sent or command.reask) and (
        refusal := _outgrown(state.variables, {**state.variables, **sent, **command.reask})
    ) is not None:
        return refusal
    outcome = _outcome(plan, state, command) if not command.reask else _asked_again(plan, state, command)
    if isinstance(outcome, Decided) and outcome.state.variables is not state.variables:
        return _outgrown(state.variables, outcome.state.variables) or outcome
    return outcome


def _outgrown(before: Variables, after: Variables) -> Refusal | None:
    """Refuse what makes the variables of a run larger than they may be in all (rule 19)."""
    size = len(_encode(after))
    if size <= VARIABLES_BYTES or size <= len(_encode(before)):
        return None
    return Refusal(Code.VARIABLES_TOO_LARGE, {"bytes": size, "most": VARIABLES_BYTES})


def _outcome(plan: Plan, state: RunState, command: Command) -> Decided | Refusal:
    if state.children and isinstance(
        command, (AcknowledgeStep, EnterActivity, ResolveCheckpoint, AdvanceLoop)
    ):
        if command.abandons:
            return _abandoning(plan, state, command)
        if command.policy.exits == "offered":  # on navigation a parent waits for its children (rule 35)
            return Refusal(Code.CHILD_RUNNING, {"children": list(state.children.values())})
    match command:
        case StartRun():
            return _start(plan, command)
        case AcknowledgeStep():
            return _keeping(acknowledge(plan, state, command), plan, state, command)
        case EnterActivity() if command.policy.exits == "claimed":
            return enter(plan, state, command)  # a walk keeps what it has passed
        case EnterActivity():
            return _keeping(enter(plan, state, command), plan, state, command)
        case OpenCheckpoint():
            return open_checkpoint(plan, state, command)
        case ResolveCheckpoint() if command.policy.gates == "pending":
            return resolve_checkpoint(plan, state, command)
        case ResolveCheckpoint():
            return _keeping(resolve_checkpoint(plan, state, command), plan, state, command)
        case Approve():
            return approve(plan, state, command)
        case Escalate():
            return escalate(plan, state, command)
        case ResumeWorker():
            return _keeping(resume_checkpoint(plan, state, command), plan, state, command)
        case AdvanceLoop():
            return _keeping(_advance_loop(plan, state, command), plan, state, command)
        case StartChild() | ReturnChild() | AbandonRun() if state.finished:
            return Refusal(Code.RUN_FINISHED)
        case StartChild():
            passed = passed_on(plan, state, command.workflow) or Passed()
            child = (command.workflow, command.session, state.activity, passed.variables)
            return _recorded(plan, state, e.ChildStarted(*child))
        case ReturnChild():
            declared = {variable.name for variable in plan.workflow.variables}
            known = declared & set_names(command.variables)
            sent = {name: value for name, value in command.variables.items() if name in known}
            returned, kept = unowned(plan, state, sent)
            outcome: Literal["completed", "abandoned"] = "completed" if command.completed else "abandoned"
            event = e.ChildReturned(command.workflow, command.session, outcome, returned)
            return replace(_recorded(plan, state, event), notices=NO_NOTICES.plus(kept))
        case ResolveGap():
            return _recorded(plan, state, e.GapResolved(command.gap, command.summary, command.channel))
        case AbandonRun():
            draft = Draft(plan, state, EXECUTION, command.now)
            draft.abandon_children()
            draft.record(e.RunAbandoned(command.channel, command.now, command.by, command.reason))
            notices = NO_NOTICES.plus([*draft.notices, *([VARIABLES_UNREAD] if command.variables else [])])
            return Decided(tuple(draft.events), draft.state, Done(), notices=notices)
        case _:
            assert_never(command)


def _asked_again(plan: Plan, state: RunState, command: _Progress) -> Decided | Refusal:
    """Ask a question again with new values of what it owns (rule 26); nothing else of the call is done.

    What cannot be asked is refused: the call would otherwise go on with the values as they were.
    """
    if state.finished:
        return Refusal(Code.RUN_FINISHED)
    values, notices = sound(plan, command.reask)
    draft = Draft(plan, state, command.policy, command.now)
    shown = _shown_again(draft, values, command) if not notices else notices[0].message
    if isinstance(shown, str):
        return Refusal(Code.REASK_IMPOSSIBLE, {"reason": shown, "variables": list(command.reask)})
    draft.record(e.ContextSet(values, "reask"), shown)
    text = f"Checkpoint '{shown.gate}' is asked again. Nothing else of the call was done: send it once more"
    draft.notice("ASKED_AGAIN", f"{text} after the answer.")
    return draft.decided()


def _shown_again(draft: Draft, values: Variables, command: _Progress) -> e.QuestionShown | str:
    """The question that owns all of these, as it is with the new values; or why it cannot be asked here.

    It is the only owner, of this visit and round, and still applies: what was shown is changed by asking.
    What only its answers set is not, nor what would be unset: nobody would see the new value.
    """
    plan, state, owned = draft.plan, draft.state, owners(draft.state)
    if unknown := [name for name in values if name not in owned]:
        known = f"Those of a question: {', '.join(owned)}" if owned else "No question was put yet"
        return f"No question shows '{unknown[0]}'. {known}."
    if inherited := [name for name in values if name in state.ownership.inherited]:
        return f"'{inherited[0]}' belongs to a question of the parent."
    named, paths = _listed(values), {path for name in values for path, _ in owned[name]}
    questions = _listed(gate_in(path) for path in paths)
    if len(paths) != 1:
        return f"{named} belongs to more than one question: {questions}."
    path = paths.pop()
    activity, _, gate_id = path.partition("/")
    owner, found = state.ownership.shown.get(path), find_gate(plan, state, gate_id)
    if isinstance(command, OpenCheckpoint) and command.gate != gate_id:
        return f"{named} belongs to checkpoint {questions}, and not to '{command.gate}'."
    if found is not None and not values.keys().isdisjoint(found.gate.only_sets):
        return f"{named} is set by the answer to checkpoint {questions}, and by nothing else."
    if owner is None or owner.visit != state.visit.number or found is None or state.visit.exit_to is not None:
        return (
            f"{named} belongs to checkpoint {questions} of activity '{activity}', which cannot ask again now."
        )
    if (opened := state.visit.open) is not None and opened.key != owner.key:
        return f"Checkpoint '{opened.gate}' is open, and is answered first."
    if opened is not None and isinstance(command, Answerable) and opened.shown in command.decisions:
        return f"The user has answered checkpoint {questions}: go on with that answer first."
    here = state.within(frames=state.visit.frames[: len(loops_around(plan, state, found))])
    if instance(here, found.gate.id) != owner.key:
        return f"{named} belongs to checkpoint {questions} of a round that is over."
    changed = evolve(state, e.ContextSet(values))
    scope = plan.scope(changed.variables)
    if not holds(found.gate.condition, scope):
        return f"With this value of {named} checkpoint {questions} would not be asked at all."
    if None in values.values() or unset_in_question(scope, found.gate):
        return f"Checkpoint {questions} shows {named}: it cannot be asked without a value."
    if changed.variables == state.variables:
        return f"{named} has this value already."
    agent = command.agent if isinstance(command, OpenCheckpoint) else ""
    need = NeedAnswer(owner.key, found.gate, draft.now, found.confirms)
    yielded_by = agent or (opened.agent if opened else "")
    return question_shown(plan, changed, need, draft.now, draft.policy.name, yielded_by)


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in ids)


def _with_advice(
    plan: Plan, state: RunState, command: Command, outcome: Decided | Refusal
) -> Decided | Refusal:
    """Say which of the values that were kept can be sent in `reask`, where the tool has that parameter."""
    if not isinstance(command, _Progress):
        return outcome
    if command.policy.exits == "claimed" and not isinstance(command, OpenCheckpoint):
        return outcome
    after = outcome.state if isinstance(outcome, Decided) else evolved(state, outcome.kept)
    if not command.variables or after.finished:
        return outcome
    sent, owned = sound(plan, command.variables)[0], owners(after)
    draft = Draft(plan, after, command.policy, command.now)
    askable = [
        name
        for name, value in sent.items()
        if name in owned
        and after.variables.get(name) != value
        and not isinstance(_shown_again(draft, {name: value}, command), str)
    ]
    if not askable:
        return outcome
    text = f"Sent in reask, {_listed(askable)} is taken and its question is asked again."
    return replace(outcome, notices=outcome.notices.plus([Notice("REASK", text)]))


def _abandoning(
    plan: Plan, state: RunState, command: AcknowledgeStep | EnterActivity | ResolveCheckpoint | AdvanceLoop
) -> Decided | Refusal:
    """Abandon the children that still run, then decide the command (rule 35)."""
    draft = Draft(plan, state, command.policy, command.now)
    draft.abandon_children()
    outcome = outcome_of(plan, draft.state, replace(command, abandons=False))
    if isinstance(outcome, Refusal):
        return outcome
    notices = NO_NOTICES.plus((*draft.notices, *outcome.notices.listed))
    return replace(outcome, events=(*draft.events, *outcome.events), notices=notices)


def _keeping(
    outcome: Decided | Refusal, plan: Plan, state: RunState, command: _Progress
) -> Decided | Refusal:
    """Keep what came with a refused command, but for what a question owns (rule 19).

    A question that the run has come to on another surface is put by the refusal (rule 23).
    """
    if not isinstance(outcome, Refusal) or state.finished:
        return outcome
    put = settle(plan, state, command.policy, command.now)[0] if command.policy.gates == "opened" else ()
    state = evolved(state, put)
    due, again = due_roots(plan, state, command.policy), asked_for_again(plan, state, command.policy)
    taken, notices = unowned(plan, state, command.variables, due, again)
    kept = (e.ContextSet(taken),) if taken else ()
    return replace(outcome, kept=(*put, *outcome.kept, *kept), notices=outcome.notices.plus(notices))


def _start(plan: Plan, start: StartRun) -> Decided:
    draft = Draft(plan, RunState(), start.policy, start.now)
    draft.record(
        e.RunStarted(
            workflow_id=plan.workflow.id,
            workflow_hash=start.workflow_hash,
            source=start.source,
            preferences=start.preferences,
            at=start.now,
            surface=start.policy.name,
            policy=start.terms.decisions,
            enforcement=start.terms.enforcement,
            inherited=start.inherited,
            by=start.by,
        )
    )
    parents, unfit = unowned(plan, RunState(), start.passed)
    if parents:
        draft.record(e.ContextSet(parents, "parent"))
    sent = {name: value for name, value in start.variables.items() if start.passed.get(name, value) != value}
    draft.notices += (Notice(KEPT, f"'{name}' is what the parent passes on, and stays so.") for name in sent)
    own = {name: value for name, value in start.variables.items() if name not in start.passed}
    initial, notices = unowned(plan, draft.state, own)
    draft.notices += (*unfit, *notices)
    if initial:
        draft.record(e.ContextSet(initial, "initial"))
    if start.activity is not None:
        draft.record(entered(plan, draft.state, start.activity, start.now))
    return draft.decided()


def _advance_loop(plan: Plan, state: RunState, command: AdvanceLoop) -> Decided | Refusal:
    draft = Draft(plan, state, command.policy, command.now, command.decisions)
    draft.take(command.variables)
    draft.take_expired_open()
    pending = _with_items(draft, draft.skip_optional(), command)
    if command.variables and any(
        isinstance(it, e.LoopLeft) and it.loop == command.loop for it in draft.events
    ):
        bare = _advance_loop(plan, state, replace(command, variables={}))
        if not isinstance(bare, Refusal) or bare.code is not Code.LOOP_NOT_FOUND:
            return draft.decided()  # the loop was waiting, and these variables have ended it
    if draft.state.visit.open is not None:
        return gate_open(draft.plan, draft.state, {}, command.terms)
    if not isinstance(pending, (NeedLoop, NeedInput)) or pending.loop is None:
        about = {"pending_step": pending.step.id} if isinstance(pending, NeedStep) else {}
        return Refusal(Code.LOOP_NOT_FOUND, {"loop": command.loop, **about})
    if pending.loop.id != command.loop:
        return Refusal(Code.LOOP_NOT_FOUND, {"loop": command.loop, "pending_loop": pending.loop.id})
    if isinstance(pending, NeedLoop) and not pending.needs_items:
        draft.record(_advanced(draft, pending))
        return draft.decided()
    if not state.preferences.never_stops:
        code = Code.LOOP_ITEMS_REQUIRED if isinstance(pending, NeedLoop) else Code.INPUT_REQUIRED
        return input_required(_lacking(plan, state, pending, draft.notices), code)
    draft.record(*without_input(draft, _lacking(plan, state, pending)))
    return draft.decided()


def _with_items(draft: Draft, pending: Awaited, command: AdvanceLoop) -> Awaited:
    """Record the items that came with the call in the variable that the loop reads."""
    if command.items is None or not isinstance(pending, NeedLoop):
        return pending
    loop = pending.loop
    if loop.kind != "forEach" or loop.id != command.loop or pending.iteration:
        return pending
    name, *members = (loop.items or "items").split(".")
    whole = draft.plan.scope(draft.state.variables).value(name)
    draft.take({name: with_member(whole, members, list(command.items))})
    lacks = isinstance(extent_of(draft.plan, draft.state, loop), NeedInput)
    return pending if lacks else NeedLoop(loop, 0, None)


def _lacking(
    plan: Plan, state: RunState, pending: NeedLoop | NeedInput, notices: Sequence[Notice] = ()
) -> NeedInput:
    """The input that keeps the loop from starting; a notice says why items that were sent do not do."""
    if isinstance(pending, NeedInput):
        return pending
    loop, name = pending.loop, pending.loop.items or "items"
    unfit = (notice.message for notice in notices if notice.code == NOT_TAKEN)
    text = f"Loop '{loop.id}' needs its items: {next(unfit, f'the list {name!r} is not set')}"
    return NeedInput(loop_key(loop.id), (name,), text, items_of(plan, state, name), loop)


def _advanced(draft: Draft, need: NeedLoop) -> e.Event:
    assert draft.state.activity is not None
    program = draft.plan.program(draft.state.activity)
    if need.iteration > 0:
        return again(draft.plan, program.tail(need.loop.id), draft.state.visit.frames[-1])
    extent = extent_of(draft.plan, draft.state, need.loop)
    assert not isinstance(extent, NeedInput), "a loop that lacks its input does not wait to be started"
    if extent is not None and extent.total == 0:
        return e.LoopLeft(need.loop.id, program.head(need.loop.id).after, "empty")
    return begun(draft.plan, need.loop, program.after(loop_key(need.loop.id)), extent)


def _recorded(plan: Plan, state: RunState, event: e.Event) -> Decided:
    """Record only the event; what follows from it happens with the parent's own next call."""
    after = evolve(state, event)
    return Decided((event,), after, awaited(plan, after, EXECUTION))
