"""The state after an event. Nothing is decided here: the event already says what follows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec.structs import replace

from interlock.core.definition.program import END
from interlock.core.run import events as e
from interlock.core.run.channels import is_at_least, strength
from interlock.core.run.state import (
    Abandonment,
    Chosen,
    Frame,
    KnownGap,
    LastCheck,
    OpenGate,
    Owner,
    Remark,
    Reported,
    Resolution,
    RunState,
    instance,
    question_path,
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
            return replace(
                state,
                preferences=event.preferences,
                policy=event.policy,
                enforcement=event.enforcement,
                inherited=event.inherited,
                started_by=event.by,
            )
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
            return replace(state, next_key=event.next)
        case e.QuestionShown():
            return _shown(state, event)
        case e.GateResolved():
            return _resolved(state, event)
        case e.QuestionDeclined():
            return replace(state, declined={**state.declined, f"{state.activity}/{event.key}": event.channel})
        case e.ApprovalGiven() | e.QuestionEscalated():
            return _polled(state, event)
        case e.GatePassed():
            return _passed(state, event)
        case e.GateResumed():
            resumed = {**state.resumed, event.agent: state.yielded[event.agent]}
            return replace(state, yielded=_without_agent(state.yielded, event.agent), resumed=resumed)
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
            return replace(
                state, preferences=event.effective, policy=event.policy, enforcement=event.enforcement
            )
        case e.ChildStarted():
            return replace(state, children={**state.children, event.session: event.workflow})
        case e.ChildReturned():
            children = {key: name for key, name in state.children.items() if key != event.session}
            return _with(replace(state, children=children), event.sets)
        case e.RunCompleted():
            return replace(state, status=event.status, finished_at=event.at, next_key=END, open=None)
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
    return replace(
        state, status="abandoned", finished_at=how.at, open=None, yielded={}, children={}, abandoned=how
    )


def _completed(state: RunState, event: e.StepCompleted) -> RunState:
    state = replace(state, done=(*state.done, event.key), next_key=event.next)
    if event.output:
        state = _with_report(state, event.step, event.output, claimed=event.claimed)
    elif event.claimed and event.step not in (*state.reported, *state.unreported):
        state = replace(state, unreported=(*state.unreported, event.step))
    return _with(state, {**with_artifacts(state.variables, event.artifacts), **event.sets})


def _with_report(state: RunState, step: str, output: str, *, claimed: bool) -> RunState:
    outputs = state.reported.get(step, Reported()).with_output(output, claimed=claimed)
    return replace(state, reported={**state.reported, step: outputs})


def _with_check(state: RunState, event: e.CheckRan) -> RunState:
    last = LastCheck(event.definition, event.tree, event.passed)
    state = replace(state, checks={**state.checks, event.check: last})
    return _with(state, with_result(state.variables, event.check, event.line))


def _with_gap(state: RunState, event: e.GapRecorded) -> RunState:
    """Number a gap and keep the newest ones, assumptions last (the log has them all)."""
    number = state.gaps_ever + 1
    users = event.category == "user_only_dependency"
    summary = cut(event.summary, MOST_SUMMARY, "…")
    listed = (*state.gap_list, KnownGap(number, event.severity, summary, users=users))
    if len(listed) > MOST_GAPS:
        dropped = next((gap for gap in listed if gap.severity == "info" or gap.resolved), listed[0])
        listed = tuple(gap for gap in listed if gap is not dropped)
    gaps = state.gaps + (event.severity != "info")
    return replace(state, gaps=gaps, gaps_ever=number, gap_list=listed)


def _without_gap(state: RunState, event: e.GapResolved) -> RunState:
    """Mark a gap as resolved; one that is resolved already, or that is not listed, changes nothing.

    A run that ended with gaps is complete when the last of them is closed.
    """
    gap = next((gap for gap in state.gap_list if gap.number == event.gap and not gap.resolved), None)
    if gap is None:
        return state
    resolved = replace(gap, resolved=cut(event.summary, MOST_SUMMARY, "…"))
    listed = tuple(resolved if known is gap else known for known in state.gap_list)
    gaps = state.gaps - (gap.severity != "info")
    status = "complete" if state.status == "complete_with_gaps" and not gaps else state.status
    return replace(state, gaps=gaps, gap_list=listed, status=status)


def _with(state: RunState, delta: Variables) -> RunState:
    """Write variables: whoever owns them still does, and an answer no longer takes back what it had set."""
    if not delta:
        return state
    decided = {
        path: replace(owner, undo={name: value for name, value in owner.undo.items() if name not in delta})
        for path, owner in state.decided.items()
    }
    return replace(state, variables=merged(state.variables, delta), decided=decided)


def _entered(state: RunState, event: e.ActivityEntered) -> RunState:
    ends = (event.activity, event.before)
    path = tuple(itertools.takewhile(lambda earlier: earlier not in ends, state.path))
    fresh = replace(
        state,
        activity=event.activity,
        visit=event.visit,
        next_key=event.next,
        entered_at=event.at,
        frames=(),
        answers={},
        answered=0,
        done=(),
        open=None,
        yielded={},
        resumed={},
        reported={},
        unreported=(),
        exit_to=None,
        left_to=None,
        steer=None,
        shown={
            path: owner for path, owner in state.shown.items() if not path.startswith(f"{event.activity}/")
        },
        asked={},
        waived=(),
        passed=(),
        path=path,
        unanswered={activity: ids for activity, ids in state.unanswered.items() if activity in path},
    )
    return _with(fresh, event.sets)


def _shown(state: RunState, event: e.QuestionShown) -> RunState:
    """A gate's question is open from now on; a step's own question leaves the step pending."""
    state = _owning(_asked(state), event)
    if event.input:
        return replace(state, asked={**state.asked, event.key: event.shown})
    opened = OpenGate(event.key, event.gate, event.at, event.shown, event.question, event.agent)
    answers = {key: option for key, option in state.answers.items() if key != event.key}
    return replace(state, open=opened, yielded=_without_agent(state.yielded, event.agent), answers=answers)


def _passed(state: RunState, event: e.GatePassed) -> RunState:
    waived = (*state.waived, event.key) if event.because == "advisory" else state.waived
    passed = (*state.passed, event.key) if event.because == "condition" else state.passed
    return replace(state, next_key=event.next, open=None, waived=waived, passed=passed)


def _polled(state: RunState, event: e.ApprovalGiven | e.QuestionEscalated) -> RunState:
    assert state.open is not None, "only an open question is answered or escalated"
    poll = state.poll(state.open)
    if isinstance(event, e.ApprovalGiven):
        poll = poll.with_approval(event.approval)
    else:
        poll = replace(poll, escalated_to=event.to)
    return replace(state, polls={**state.polls, f"{state.activity}/{event.key}": poll})


def _asked(state: RunState) -> RunState:
    """Remember in every loop around it that the round has put or answered a question (rule 30)."""
    if all(frame.asked for frame in state.frames):
        return state
    return replace(state, frames=tuple(replace(frame, asked=True) for frame in state.frames))


def _left(state: RunState, event: e.ActivityLeft) -> RunState:
    others = (activity for activity in state.completed if activity != event.activity)
    unanswered = {**state.unanswered, event.activity: event.unanswered}
    left = replace(
        state,
        next_key=END,
        exit_to=None,
        left_to=event.to,
        frames=(),
        completed=(*others, event.activity),
        path=(*state.path, event.activity),
        unanswered=unanswered if event.unanswered else state.unanswered,
    )
    return _with(left, event.sets)


def _resolved(state: RunState, event: e.GateResolved) -> RunState:
    state = _asked(state)
    declined = state.declined
    by = state.declined_by(event.key)
    if by is not None and is_at_least(event.channel, strength(by)):
        answered_now = f"{state.activity}/{event.key}"
        declined = {key: channel for key, channel in declined.items() if key != answered_now}
    polls = {path: poll for path, poll in state.polls.items() if path != f"{state.activity}/{event.key}"}
    opened = None if state.open is None or state.open.key == event.key else state.open
    chosen = {gate: answer for gate, answer in state.chosen.items() if gate != event.gate}
    chosen[event.gate] = Chosen(cut(event.option or "", MOST_SUMMARY, "…"), event.channel)
    answered = state.answered + 1
    asked = {key: shown for key, shown in state.asked.items() if key != event.key}
    state = replace(state, open=opened, declined=declined, polls=polls, chosen=chosen)
    state = replace(state, answered=answered, asked=asked)
    state = _with_answer(state, event)
    if event.resumable:
        answer = Resolution(event.key, event.gate, event.option)
        state = replace(state, yielded={**state.yielded, event.agent: answer})
    if event.binds and event.note:
        state = replace(state, remark=Remark(event.gate, event.option, cut(event.note, MOST_REMARK)))
    elif state.remark is not None and state.remark.gate == event.gate:
        state = replace(state, remark=None)
    if event.next is not None:
        revised = event.gate.removeprefix("confirm-")
        reported = {step: outputs for step, outputs in state.reported.items() if step != revised}
        unreported = tuple(step for step in state.unreported if step != revised)
        state = replace(state, reported=reported, unreported=unreported)
        done = tuple(key for key in state.done if key != instance(state, revised))
        return replace(state, next_key=event.next, done=done)
    answers = {**state.answers, event.key: event.option or ""}
    skipped = tuple(dict.fromkeys((*state.skipped, *event.skip_activities)))
    return replace(state, answers=answers, skipped=skipped, exit_to=event.transition_to or state.exit_to)


def _with_answer(state: RunState, event: e.GateResolved) -> RunState:
    """Write what the answer sets, take back what the one before had set, and note what the question owns.

    A question that is dismissed, or answered without the user, no longer owns what it showed; nor does the
    confirmation of a step that is to be revised.
    """
    path = question_path(state, event.gate)
    unshown = {known: owner for known, owner in state.shown.items() if known != path}
    if event.how == "dismissed":
        return replace(state, shown=unshown)
    before, earlier = merged(state.variables, event.restores), state.decided.get(path)
    undo = {name: before.get(name) for name in event.sets}
    if earlier is not None:
        undo |= {name: value for name, value in earlier.undo.items() if name in event.sets}
    state = _with(state, {**event.restores, **event.sets})
    others = {known: owner for known, owner in state.decided.items() if known != path}
    if event.sets:
        roots = tuple(event.sets) if event.binds else ()
        others[path] = Owner(event.key, state.visit, roots, undo)
    state = replace(state, decided=others)
    if event.binds and event.next is None:
        return _owning(state, event)
    return replace(state, shown=unshown)


def _owning(state: RunState, event: e.QuestionShown | e.GateResolved) -> RunState:
    """Note what a question owns from its showing on."""
    if not event.roots:
        return state
    owner = Owner(event.key, state.visit, event.roots)
    return replace(state, shown={**state.shown, question_path(state, event.gate): owner})


def _without_agent(answers: Mapping[str, Resolution], agent: str) -> dict[str, Resolution]:
    return {name: answer for name, answer in answers.items() if name != agent}


def _looped(state: RunState, event: e.LoopEntered | e.LoopIterated | e.LoopLeft | e.LoopSteered) -> RunState:
    match event:
        case e.LoopEntered(loop=loop):
            frame = Frame(loop, 0, event.total, event.items, event.limited, event.steered, outer=state.steer)
            return _in_round(state, (*state.frames, frame), event)
        case e.LoopIterated():
            frame = replace(state.frames[-1], iteration=event.iteration, asked=False)
            return _in_round(_without_iteration(state), (*state.frames[:-1], frame), event)
        case e.LoopLeft():
            return _loop_left(state, event)
        case e.LoopSteered():
            return replace(state, steer=event.decision)


def _loop_left(state: RunState, event: e.LoopLeft) -> RunState:
    if not state.frames or state.frames[-1].loop != event.loop:
        return replace(state, next_key=event.next)
    outer = state.frames[-1].outer if state.frames[-1].steered else state.steer
    state = replace(_without_iteration(state), frames=state.frames[:-1], next_key=event.next)
    if not state.frames:
        claimed = {step: outputs for step, outputs in state.reported.items() if outputs.claimed}
        state = replace(state, reported=claimed)
    return _with(replace(state, steer=outer), event.sets)


def _in_round(state: RunState, frames: tuple[Frame, ...], event: e.LoopEntered | e.LoopIterated) -> RunState:
    """Begin a round of the innermost loop: its questions are asked anew (rule 26), what steers it is open."""
    rounds = "".join(f"{frame.loop}@{frame.iteration}/" for frame in frames[:-1]) + f"{event.loop}@"
    inside = f"{state.activity}/"
    shown = {
        path: owner
        for path, owner in state.shown.items()
        if not (path.startswith(inside) and owner.key.startswith(rounds))
    }
    steer = None if frames[-1].steered else state.steer
    return _with(replace(state, frames=frames, next_key=event.next, steer=steer, shown=shown), event.sets)


def _without_iteration(state: RunState) -> RunState:
    """Drop what belongs to the iteration that ends: it is in the log, and must not pile up in the state."""
    path = "/".join(f"{frame.loop}@{frame.iteration}" for frame in state.frames)
    ended = (f"{path}::", f"{path}/")
    done, waived, passed = (
        tuple([key for key in keys if not key.startswith(ended)])
        for keys in (state.done, state.waived, state.passed)
    )
    answers, asked = (
        {key: value for key, value in known.items() if not key.startswith(ended)}
        for known in (state.answers, state.asked)
    )
    return replace(state, answers=answers, asked=asked, done=done, waived=waived, passed=passed)
