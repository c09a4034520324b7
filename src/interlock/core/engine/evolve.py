"""The state after an event. Nothing is decided here: the event already says what follows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec.structs import replace

from interlock.core.definition.program import END
from interlock.core.run import events as e
from interlock.core.run.channels import is_at_least, strength
from interlock.core.run.keys import beginning_in, beginnings, question_path
from interlock.core.run.preferences import SessionTerms
from interlock.core.run.state import (
    Abandonment,
    Chosen,
    Frame,
    Gaps,
    KnownGap,
    LastCheck,
    OpenGate,
    Owner,
    Remark,
    Replies,
    Reported,
    Resolution,
    RunState,
    Visit,
    instance,
)
from interlock.core.values import Variables, cut, merged
from interlock.core.variables.reserved import with_artifacts, with_result

MOST_REMARK = 2048
MOST_GAPS = 50
MOST_SUMMARY = 200


def evolve(state: RunState, event: e.Event) -> RunState:
    """Apply one event."""
    match event:
        case e.RunStarted():
            terms = SessionTerms(event.preferences, event.policy, event.enforcement)
            ownership = replace(state.ownership, inherited=event.inherited)
            return replace(state, terms=terms, ownership=ownership, started_by=event.by)
        case e.ContextSet():
            state = _with(state, event.delta)
            return replace(state, variables={**state.variables, **event.delta})  # null stays: it is not known
        case e.ActivityEntered():
            return _entered(state, event)
        case e.ActivityLeft():
            return _left(state, event)
        case e.StepCompleted():
            return _completed(state, event)
        case e.StepReported():
            return _with_report(state, event.step, event.output, claimed=True)
        case e.StepSkipped():
            return state.within(next_key=event.next)
        case e.QuestionShown():
            return _shown(state, event)
        case e.GateResolved():
            return _resolved(state, event)
        case e.QuestionDeclined():
            return _declined(state, event)
        case e.ApprovalGiven() | e.QuestionEscalated():
            return _polled(state, event)
        case e.GatePassed():
            return _passed(state, event)
        case e.GateResumed():
            return _resumed(state, event)
        case e.LoopEntered() | e.LoopIterated() | e.LoopLeft() | e.LoopSteered():
            return _looped(state, event)
        case e.CapabilityObserved():
            believed = event.strong or event.status == "unavailable"
            status = event.status if believed else state.capabilities.get(event.capability, "unknown")
            return replace(state, capabilities={**state.capabilities, event.capability: status})
        case e.CheckRan():
            return _with_check(state, event)
        case e.GapRecorded():
            return _with_gap(state, event)
        case e.GapResolved():
            return _without_gap(state, event)
        case e.PreferencesChanged():
            return replace(state, terms=SessionTerms(event.effective, event.policy, event.enforcement))
        case e.ChildStarted():
            started = replace(state, children={**state.children, event.session: event.workflow})
            return started.within(triggered=(*dict.fromkeys((*state.visit.triggered, event.workflow)),))
        case e.ChildReturned():
            children = {key: name for key, name in state.children.items() if key != event.session}
            return _with(replace(state, children=children), event.sets)
        case e.RunCompleted():
            ended = replace(state, status=event.status, finished_at=event.at)
            return ended.within(next_key=END, open=None)
        case e.RunAbandoned():
            return abandoned(state, event.how)
        case e.TermsApplied() | e.DivergenceRecorded() | e.ValidationPerformed():
            return state
        case _:
            assert_never(event)


def evolved(state: RunState, events: Iterable[e.Event]) -> RunState:
    """Apply events in order."""
    for event in events:
        state = evolve(state, event)
    return state


def abandoned(state: RunState, how: Abandonment) -> RunState:
    """Return a state of a run that was given up: nothing is asked there, and no child is waited for."""
    given_up = replace(state, status="abandoned", finished_at=how.at, children={}, abandoned=how)
    return given_up.within(open=None, yielded={})


def _completed(state: RunState, event: e.StepCompleted) -> RunState:
    visit = state.visit
    state = state.within(done=(*visit.done, event.key), next_key=event.next)
    if event.output:
        state = _with_report(state, event.step, event.output, claimed=event.claimed)
    elif event.claimed and event.step not in (*visit.reported, *visit.unreported):
        state = state.within(unreported=(*visit.unreported, event.step))
    return _with(state, {**with_artifacts(state.variables, event.artifacts), **event.sets})


def _with_report(state: RunState, step: str, output: str, *, claimed: bool) -> RunState:
    reported = state.visit.reported
    outputs = reported.get(step, Reported()).with_output(output, claimed=claimed)
    return state.within(reported={**reported, step: outputs})


def _with_check(state: RunState, event: e.CheckRan) -> RunState:
    last = LastCheck(event.definition, event.tree, event.passed)
    state = replace(state, checks={**state.checks, event.check: last})
    return _with(state, with_result(state.variables, event.check, event.line))


def _with_gap(state: RunState, event: e.GapRecorded) -> RunState:
    """Number a gap and keep the newest ones, assumptions last (the log has them all)."""
    number = state.gaps.ever + 1
    users = event.category == "user_only_dependency"
    summary = cut(event.summary, MOST_SUMMARY, "…")
    newest = (*state.gaps.newest, KnownGap(number, event.severity, summary, users=users))
    if len(newest) > MOST_GAPS:
        dropped = next((gap for gap in newest if gap.severity == "info" or gap.resolved), newest[0])
        newest = tuple(gap for gap in newest if gap is not dropped)
    return replace(state, gaps=Gaps(state.gaps.open + (event.severity != "info"), number, newest))


def _without_gap(state: RunState, event: e.GapResolved) -> RunState:
    """Mark a gap as resolved; one that is resolved already, or that is not listed, changes nothing.

    A run that ended with gaps is complete when the last of them is closed.
    """
    gaps = state.gaps
    gap = next((gap for gap in gaps.newest if gap.number == event.gap and not gap.resolved), None)
    if gap is None:
        return state
    resolved = replace(gap, resolved=cut(event.summary, MOST_SUMMARY, "…"))
    newest = tuple(resolved if known is gap else known for known in gaps.newest)
    still_open = gaps.open - (gap.severity != "info")
    status = "complete" if state.status == "complete_with_gaps" and not still_open else state.status
    return replace(state, gaps=Gaps(still_open, gaps.ever, newest), status=status)


def _with(state: RunState, delta: Variables) -> RunState:
    """Write variables: whoever owns them still does, and an answer no longer takes back what it had set."""
    if not delta:
        return state
    decided = {
        path: replace(owner, undo={name: value for name, value in owner.undo.items() if name not in delta})
        for path, owner in state.ownership.decided.items()
    }
    ownership = replace(state.ownership, decided=decided)
    return replace(state, variables=merged(state.variables, delta), ownership=ownership)


def _entered(state: RunState, event: e.ActivityEntered) -> RunState:
    ends, own = (event.activity, event.before), question_path(event.activity, "")
    path = tuple(itertools.takewhile(lambda earlier: earlier not in ends, state.route.path))
    unanswered = {activity: ids for activity, ids in state.route.unanswered.items() if activity in path}
    shown = {key: owner for key, owner in state.ownership.shown.items() if not key.startswith(own)}
    fresh = replace(
        state,
        visit=Visit(event.activity, event.visit, event.at, event.next),
        ownership=replace(state.ownership, shown=shown),
        route=replace(state.route, path=path, unanswered=unanswered),
    )
    return _with(fresh, event.sets)


def _shown(state: RunState, event: e.QuestionShown) -> RunState:
    """A gate's question is open from now on; a step's own question leaves the step pending."""
    state = _owning(_asked(state), event)
    if event.input:
        return state.within(asked={**state.visit.asked, event.key: event.shown})
    replaces = state.replaced_by(event.key)
    if event.key in state.visit.answers:
        answered_by = state.replies.chosen[event.gate].channel
        replaces = answered_by if is_at_least(answered_by, "client") else None
    put = event.question, event.agent, replaces, event.surface
    opened = OpenGate(event.key, event.gate, event.at, event.shown, *put)
    answers = {key: option for key, option in state.visit.answers.items() if key != event.key}
    return state.within(
        open=opened, yielded=_without_agent(state.visit.yielded, event.agent), answers=answers
    )


def _declined(state: RunState, event: e.QuestionDeclined) -> RunState:
    declined = {**state.replies.declined, question_path(state.activity, event.key): event.channel}
    return replace(state, replies=replace(state.replies, declined=declined))


def _resumed(state: RunState, event: e.GateResumed) -> RunState:
    visit = state.visit
    resumed = {**visit.resumed, event.agent: visit.yielded[event.agent]}
    return state.within(yielded=_without_agent(visit.yielded, event.agent), resumed=resumed)


def _passed(state: RunState, event: e.GatePassed) -> RunState:
    visit = state.visit
    waived = (*visit.waived, event.key) if event.because == "advisory" else visit.waived
    passed = (*visit.passed, event.key) if event.because == "condition" else visit.passed
    return state.within(next_key=event.next, open=None, waived=waived, passed=passed)


def _polled(state: RunState, event: e.ApprovalGiven | e.QuestionEscalated) -> RunState:
    assert state.visit.open is not None, "only an open question is answered or escalated"
    poll = state.poll(state.visit.open)
    if isinstance(event, e.ApprovalGiven):
        poll = poll.with_approval(event.approval)
    else:
        poll = replace(poll, escalated_to=event.to)
    polls = {**state.replies.polls, question_path(state.activity, event.key): poll}
    return replace(state, replies=replace(state.replies, polls=polls))


def _asked(state: RunState) -> RunState:
    """Remember in every loop around it that the round has put or answered a question (rule 30)."""
    frames = state.visit.frames
    if all(frame.asked for frame in frames):
        return state
    return state.within(frames=tuple(replace(frame, asked=True) for frame in frames))


def _left(state: RunState, event: e.ActivityLeft) -> RunState:
    route = state.route
    others = (activity for activity in route.completed if activity != event.activity)
    unanswered = {event.activity: event.unanswered} if event.unanswered else {}
    route = replace(
        route,
        path=(*route.path, event.activity),
        completed=(*others, event.activity),
        unanswered={**route.unanswered, **unanswered},
    )
    left = state.within(next_key=END, exit_to=None, left_to=event.to, frames=())
    return _with(replace(left, route=route), event.sets)


def _resolved(state: RunState, event: e.GateResolved) -> RunState:
    state = replace(_asked(state), replies=_replied(state, event))
    visit = state.visit
    state = state.within(
        open=None if visit.open is None or visit.open.key == event.key else visit.open,
        answered=visit.answered + 1,
        asked={key: shown for key, shown in visit.asked.items() if key != event.key},
    )
    state = _with_answer(state, event)
    if event.resumable:
        answer = Resolution(event.key, event.gate, event.option)
        state = state.within(yielded={**state.visit.yielded, event.agent: answer})
    if event.next is not None:
        return _revised(state, event.gate.removeprefix("confirm-"), event.next)
    skipped = tuple(dict.fromkeys((*state.route.skipped, *event.skip_activities)))
    state = replace(state, route=replace(state.route, skipped=skipped))
    return state.within(
        answers={**state.visit.answers, event.key: event.option or ""},
        exit_to=event.transition_to or state.visit.exit_to,
    )


def _replied(state: RunState, event: e.GateResolved) -> Replies:
    """Note an answer: it ends a poll, and a decline if its channel is as strong as that one's."""
    replies, question = state.replies, question_path(state.activity, event.key)
    declined, remark = dict(replies.declined), replies.remark
    if question in declined and is_at_least(event.channel, strength(declined[question])):
        del declined[question]
    if event.binds and event.note:
        remark = Remark(event.gate, event.option, cut(event.note, MOST_REMARK))
    elif remark is not None and remark.gate == event.gate:
        remark = None
    chosen = {gate: answer for gate, answer in replies.chosen.items() if gate != event.gate}
    chosen[event.gate] = Chosen(cut(event.option or "", MOST_SUMMARY, "…"), event.channel)
    polls = {path: poll for path, poll in replies.polls.items() if path != question}
    notes = {gate: note for gate, note in replies.notes.items() if gate != event.gate}
    if event.binds and event.note:
        notes[event.gate] = cut(event.note, MOST_SUMMARY, "…")
    return Replies(chosen, declined, polls, remark, notes)


def _revised(state: RunState, step: str, next_key: str) -> RunState:
    """Go back to a step that its confirmation wants done again: what it reported no longer counts."""
    visit = state.visit
    return state.within(
        next_key=next_key,
        done=tuple(key for key in visit.done if key != instance(state, step)),
        reported={known: outputs for known, outputs in visit.reported.items() if known != step},
        unreported=tuple(known for known in visit.unreported if known != step),
    )


def _with_answer(state: RunState, event: e.GateResolved) -> RunState:
    """Write what the answer sets, take back what the one before had set, and note what the question owns.

    A question that is dismissed, or answered without the user, no longer owns what it showed; nor does the
    confirmation of a step that is to be revised.
    """
    path = question_path(state.activity, event.gate)
    unshown = {known: owner for known, owner in state.ownership.shown.items() if known != path}
    if event.how == "dismissed":
        return _owned(state, shown=unshown)
    before, earlier = merged(state.variables, event.restores), state.ownership.decided.get(path)
    undo = {name: before.get(name) for name in event.sets}
    if earlier is not None:
        undo |= {name: value for name, value in earlier.undo.items() if name in event.sets}
    state = _with(state, {**event.restores, **event.sets})
    decided = {known: owner for known, owner in state.ownership.decided.items() if known != path}
    if event.sets:
        roots = tuple(event.sets) if event.binds else ()
        decided[path] = Owner(event.key, state.visit.number, roots, undo)
    state = _owned(state, decided=decided)
    if event.binds and event.next is None:
        return _owning(state, event)
    return _owned(state, shown=unshown)


def _owning(state: RunState, event: e.QuestionShown | e.GateResolved) -> RunState:
    """Note what a question owns from its showing on."""
    if not event.roots:
        return state
    owner = Owner(event.key, state.visit.number, event.roots)
    return _owned(state, shown={**state.ownership.shown, question_path(state.activity, event.gate): owner})


def _owned(state: RunState, **changes: Mapping[str, Owner]) -> RunState:
    return replace(state, ownership=replace(state.ownership, **changes))


def _without_agent(answers: Mapping[str, Resolution], agent: str) -> dict[str, Resolution]:
    return {name: answer for name, answer in answers.items() if name != agent}


def _looped(state: RunState, event: e.LoopEntered | e.LoopIterated | e.LoopLeft | e.LoopSteered) -> RunState:
    frames, steer = state.visit.frames, state.visit.steer
    match event:
        case e.LoopEntered(loop=loop):
            frame = Frame(loop, 0, event.total, event.items, event.limited, event.steered, outer=steer)
            return _in_round(state, (*frames, frame), event)
        case e.LoopIterated():
            frame = replace(frames[-1], iteration=event.iteration, asked=False)
            return _in_round(_without_iteration(state), (*frames[:-1], frame), event)
        case e.LoopLeft():
            return _loop_left(state, event)
        case e.LoopSteered():
            return state.within(steer=event.decision)


def _loop_left(state: RunState, event: e.LoopLeft) -> RunState:
    frames, steer = state.visit.frames, state.visit.steer
    if not frames or frames[-1].loop != event.loop:
        return state.within(next_key=event.next)
    steer = frames[-1].outer if frames[-1].steered else steer
    state = _without_iteration(state).within(frames=frames[:-1], next_key=event.next, steer=steer)
    if len(frames) == 1:
        claimed = {step: outputs for step, outputs in state.visit.reported.items() if outputs.claimed}
        state = state.within(reported=claimed)
    return _with(state, event.sets)


def _in_round(state: RunState, frames: tuple[Frame, ...], event: e.LoopEntered | e.LoopIterated) -> RunState:
    """Begin a round of the innermost loop: its questions are asked anew (rule 26), what steers it is open."""
    outer = [(frame.loop, frame.iteration) for frame in frames[:-1]]
    rounds, inside = beginning_in(outer, event.loop), question_path(state.activity, "")
    shown = {
        path: owner
        for path, owner in state.ownership.shown.items()
        if not (path.startswith(inside) and owner.key.startswith(rounds))
    }
    steer = None if frames[-1].steered else state.visit.steer
    begun = state.within(frames=frames, next_key=event.next, steer=steer)
    return _with(_owned(begun, shown=shown), event.sets)


def _without_iteration(state: RunState) -> RunState:
    """Drop what belongs to the iteration that ends: it is in the log, and must not pile up in the state."""
    visit = state.visit
    ended = beginnings(visit.rounds)
    done, waived, passed = (
        tuple([key for key in keys if not key.startswith(ended)])
        for keys in (visit.done, visit.waived, visit.passed)
    )
    answers, asked = (
        {key: value for key, value in known.items() if not key.startswith(ended)}
        for known in (visit.answers, visit.asked)
    )
    return state.within(answers=answers, asked=asked, done=done, waived=waived, passed=passed)
