"""What the guard remembers of a run: a program counter of its own, folded from events without the plan."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.program import END
from interlock.core.run import events as e
from interlock.core.run.channels import Channel, is_at_least, strength
from interlock.core.run.keys import beginning_in, beginnings, instance_key, question_path
from interlock.core.run.polls import Poll
from interlock.core.run.preferences import Autonomy, DecisionPolicy, Enforcement, Preferences, SessionTerms
from interlock.core.run.state import LastCheck, LoopDecision, Status
from interlock.core.values import Json, Variables, merged
from interlock.core.variables.reserved import with_artifacts, with_result

MOST_GAPS = 50  # whose numbers are remembered; older ones cannot be resolved

T = TypeVar("T")


class Round(Struct, frozen=True, omit_defaults=True):
    """A loop that the run is inside of, and its current round; `asked` says that a question came up in it."""

    loop: str
    number: int = 0
    total: int | None = None
    items: tuple[Json, ...] = ()
    asked: bool = False
    steered: bool = False
    outer: LoopDecision | None = None


class Showing(Struct, frozen=True, array_like=True):
    """A question as it was put: its digest, and when."""

    digest: str
    at: int


class Owned(Struct, frozen=True, array_like=True):
    """The instance of a question, and the roots that belong to it.

    `undo` has what its answer set and nobody has written since, as it was before.
    """

    key: str
    roots: tuple[str, ...]
    undo: Variables = {}


class Applied(Struct, frozen=True, array_like=True):
    """The terms of a command, and the channel by which the user could be asked."""

    decisions: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    autonomy: Autonomy = "guided"
    asks_by: Channel | None = None

    @property
    def guided(self) -> bool:
        return self.autonomy == "guided"

    @property
    def never_stops(self) -> bool:
        return self.autonomy == "full_auto_never_stop"


class GuardedVisit(Struct, frozen=True, omit_defaults=True):
    """What the guard knows of the current visit of an activity: its program counter, and what was answered.

    `next` is the operation that is due. `passed` are the gates that a false condition let pass, and which
    are judged again; `waived` those that advisory enforcement did. `by` has the channels by which the user
    has answered.
    """

    activity: str | None = None
    number: int = 0
    next: str = ""
    rounds: tuple[Round, ...] = ()
    steer: LoopDecision | None = None
    open: str = ""
    showings: Mapping[str, Showing] = {}
    answers: Mapping[str, str] = {}
    by: Mapping[str, Channel] = {}
    passed: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    exit_to: str | None = None
    left_to: str | None = None

    @property
    def around(self) -> list[tuple[str, int]]:
        """The loops that the run is in, outer ones first, each with its round."""
        return [(round_.loop, round_.number) for round_ in self.rounds]


class Audit(Struct, frozen=True, omit_defaults=True):
    """Everything that the guard needs to judge the next command.

    `led` says where the last answer to a gate leads. `shown_by` and `set_by` say which question owns which
    roots. All three are by activity and gate. `inherited` are the roots of a child that questions of its
    parent own. `path` are the activities that led here, `left_out` is what was left out of them. `terms` are
    the session's; `applied` those that the last command was decided under, which may be tighter, and
    `asks_by` the channel by which the user could be asked. `declined` has the channel of each decline,
    `polls` the answers of named approvers to questions that they have not decided; `started_by` is who
    started the run. `gaps` are the numbers of the open ones that count, `users` of those that only the user
    closes.
    """

    status: Status | None = None
    visit: GuardedVisit = GuardedVisit()
    variables: Variables = {}
    declined: Mapping[str, Channel] = {}
    polls: Mapping[str, Poll] = {}
    started_by: str = ""
    shown_by: Mapping[str, Owned] = {}
    set_by: Mapping[str, Owned] = {}
    inherited: tuple[str, ...] = ()
    led: Mapping[str, str] = {}
    skipped: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = {}
    checks: Mapping[str, LastCheck] = {}
    terms: SessionTerms = SessionTerms(Preferences())
    applied: Applied = Applied()
    gaps: tuple[int, ...] = ()
    users: tuple[int, ...] = ()
    gaps_ever: int = 0
    older_gaps: int = 0

    @property
    def activity(self) -> str | None:
        return self.visit.activity

    def within(self, **changes: object) -> Audit:
        """Return this audit with something changed in its visit."""
        return replace(self, visit=replace(self.visit, **changes))

    def instance(self, item_id: str) -> str:
        """The key of an item in the current rounds."""
        return instance_key(self.visit.around, item_id)

    def poll(self, key: str) -> Poll:
        """What approvers have answered to a question since it was last shown in other words."""
        showing = self.visit.showings.get(key, Showing("", 0))
        fresh = Poll(showing.digest, showing.at)
        poll = self.polls.get(question_path(self.activity, key), fresh)
        return poll if (poll.shown, poll.since) == (fresh.shown, fresh.since) else fresh

    def owner_of(self, root: str) -> str | None:
        """The question that owns a root, by activity and gate; None if it is free."""
        owners = itertools.chain(self.set_by.items(), self.shown_by.items())
        return next((path for path, owner in owners if root in owner.roots), None)


def learn(audit: Audit, event: e.Event) -> Audit:
    """Fold one event into what the guard knows."""
    match event:
        case e.RunStarted():
            started = SessionTerms(event.preferences, event.policy, event.enforcement)
            begun = replace(audit, status="in_progress", inherited=event.inherited, started_by=event.by)
            return _under(begun, started)
        case e.TermsApplied():
            applied = Applied(event.decisions, event.enforcement, event.autonomy, event.asks_by)
            return replace(audit, applied=applied)
        case e.PreferencesChanged():
            return _under(audit, SessionTerms(event.effective, event.policy, event.enforcement))
        case e.ContextSet():
            audit = _set(audit, event.delta)
            return replace(audit, variables={**audit.variables, **event.delta})  # with nulls: not known
        case e.ActivityEntered():
            return _entered(audit, event)
        case e.ActivityLeft():
            left = audit.within(next=END, rounds=(), exit_to=None, left_to=event.to)
            unanswered = {event.activity: event.unanswered} if event.unanswered else {}
            left_out = {**audit.left_out, **unanswered}
            return _set(replace(left, path=(*audit.path, event.activity), left_out=left_out), event.sets)
        case e.StepCompleted():
            artifacts = with_artifacts(audit.variables, event.artifacts)
            return _set(audit.within(next=event.next), {**artifacts, **event.sets})
        case e.StepSkipped():
            return audit.within(next=event.next)
        case e.QuestionShown():
            return _shown(audit, event)
        case e.GateResolved():
            return _resolved(audit, event)
        case e.QuestionDeclined():
            declined = {**audit.declined, question_path(audit.activity, event.key): event.channel}
            return replace(audit, declined=declined)
        case e.ApprovalGiven():
            return _polled(audit, event.key, audit.poll(event.key).with_approval(event.approval))
        case e.QuestionEscalated():
            return _polled(audit, event.key, replace(audit.poll(event.key), escalated_to=event.to))
        case e.GatePassed():
            passed = audit.visit.passed + ((event.key,) if event.because == "condition" else ())
            waived = audit.visit.waived + ((event.key,) if event.because == "advisory" else ())
            return audit.within(next=event.next, open="", passed=passed, waived=waived)
        case e.LoopEntered():
            entered = Round(
                event.loop, 0, event.total, event.items, steered=event.steered, outer=audit.visit.steer
            )
            return _in_round(audit, (*audit.visit.rounds, entered), event)
        case e.LoopIterated():
            rounds = audit.visit.rounds
            again = (replace(last, number=event.iteration, asked=False) for last in rounds[-1:])
            return _in_round(_without_round(audit), (*rounds[:-1], *again), event)
        case e.LoopLeft():
            return _loop_left(audit, event)
        case e.LoopSteered():
            return audit.within(steer=event.decision)
        case e.CheckRan():
            ran = {**audit.checks, event.check: LastCheck(event.definition, event.tree, event.passed)}
            results = with_result(audit.variables, event.check, event.line)
            return _set(replace(audit, checks=ran), results)
        case e.GapRecorded():
            return _with_gap(audit, event)
        case e.GapResolved():
            gaps = tuple(number for number in audit.gaps if number != event.gap)
            users = tuple(number for number in audit.users if number != event.gap)
            is_last = audit.status == "complete_with_gaps" and not (gaps or audit.older_gaps)
            status = "complete" if is_last else audit.status
            return replace(audit, gaps=gaps, users=users, status=status)
        case e.ChildReturned():
            return _set(audit, event.sets)
        case e.RunCompleted():
            return replace(audit, status=event.status).within(open="")
        case e.RunAbandoned():
            return replace(audit, status="abandoned").within(open="")
        case _:
            return audit


def learned(audit: Audit, events: Iterable[e.Event]) -> Audit:
    """Fold events in order."""
    for event in events:
        audit = learn(audit, event)
    return audit


def _under(audit: Audit, terms: SessionTerms) -> Audit:
    applied = Applied(terms.policy, terms.enforcement, terms.preferences.autonomy, audit.applied.asks_by)
    return replace(audit, terms=terms, applied=applied)


def _set(audit: Audit, delta: Variables) -> Audit:
    if not delta:
        return audit
    set_by = {
        path: replace(owner, undo={name: value for name, value in owner.undo.items() if name not in delta})
        for path, owner in audit.set_by.items()
    }
    return replace(audit, variables=merged(audit.variables, delta), set_by=set_by)


def _entered(audit: Audit, event: e.ActivityEntered) -> Audit:
    """A visit begins: its questions are asked anew, and own nothing of an earlier one but what they set."""
    own, ends = question_path(event.activity, ""), (event.activity, event.before)
    path = tuple(itertools.takewhile(lambda earlier: earlier not in ends, audit.path))
    fresh = replace(
        audit,
        visit=GuardedVisit(event.activity, event.visit, event.next),
        shown_by={path: owner for path, owner in audit.shown_by.items() if not path.startswith(own)},
        path=path,
        left_out={name: ids for name, ids in audit.left_out.items() if name in path},
    )
    return _set(fresh, event.sets)


def _shown(audit: Audit, event: e.QuestionShown) -> Audit:
    showings = {**audit.visit.showings, event.key: Showing(event.shown, event.at)}
    shown_by = {**audit.shown_by, question_path(audit.activity, event.gate): Owned(event.key, event.roots)}
    audit = replace(_asked(audit), shown_by=shown_by).within(showings=showings)
    if event.input:
        return audit
    return audit.within(open=event.key, answers=_without(audit.visit.answers, event.key))


def _polled(audit: Audit, key: str, poll: Poll) -> Audit:
    return replace(audit, polls={**audit.polls, question_path(audit.activity, key): poll})


def _resolved(audit: Audit, event: e.GateResolved) -> Audit:
    path = question_path(audit.activity, event.gate)
    before, earlier = merged(audit.variables, event.restores), audit.set_by.get(path)
    undo = {name: before.get(name) for name in event.sets}
    undo |= {name: earlier.undo[name] for name in undo if name in earlier.undo} if earlier else {}
    audit = _set(_asked(audit), {**event.restores, **event.sets})
    shown_by, set_by, is_decided = audit.shown_by, audit.set_by, _decides(audit, event)
    if not is_decided or event.next is not None:
        shown_by = _without(shown_by, path)  # nobody decided by what was shown, or the step is done again
    if event.how != "dismissed":
        set_by = _without(set_by, path)
    if event.sets:
        set_by = {**set_by, path: Owned(event.key, tuple(undo) if is_decided else (), undo)}
    declined, asked = audit.declined, question_path(audit.activity, event.key)
    if asked in declined and is_at_least(event.channel, strength(declined[asked])):
        declined = _without(declined, asked)
    polls, visit = _without(audit.polls, asked), audit.visit
    audit = replace(audit, declined=declined, polls=polls, shown_by=shown_by, set_by=set_by)
    audit = audit.within(open="" if visit.open == event.key else visit.open)
    if event.next is not None:  # the step that it confirms is to be revised, and then confirmed anew
        return audit.within(next=event.next, showings=_without(visit.showings, event.key))
    led = _without(audit.led, path) | ({path: event.transition_to} if event.transition_to else {})
    skipped = tuple(dict.fromkeys((*audit.skipped, *event.skip_activities)))
    answers = {**visit.answers, event.key: event.option or ""}
    by = _without(visit.by, event.key)
    if event.how != "given" and is_at_least(event.channel, "client"):
        by[event.key] = event.channel
    audit = replace(audit, led=led, skipped=skipped)
    return audit.within(answers=answers, by=by, exit_to=event.transition_to or visit.exit_to)


def _without(known: Mapping[str, T], name: str) -> dict[str, T]:
    return {key: value for key, value in known.items() if key != name}


def _decides(audit: Audit, event: e.GateResolved) -> bool:
    """Say whether an answer is the user's, who was asked, or let the time pass; a dismissal is none."""
    asks = not audit.applied.never_stops or is_at_least(event.channel, "client")
    return asks and event.how not in ("dismissed", "assumed")


def _asked(audit: Audit) -> Audit:
    return audit.within(rounds=tuple(replace(round_, asked=True) for round_ in audit.visit.rounds))


def _in_round(audit: Audit, rounds: tuple[Round, ...], event: e.LoopEntered | e.LoopIterated) -> Audit:
    """A round begins: the questions around which it goes are asked anew, and what steers it is open."""
    outer = [(round_.loop, round_.number) for round_ in rounds[:-1]]
    inside, own = question_path(audit.activity, ""), beginning_in(outer, event.loop)
    shown_by = {
        path: owner
        for path, owner in audit.shown_by.items()
        if not (path.startswith(inside) and owner.key.startswith(own))
    }
    steer = None if rounds and rounds[-1].steered else audit.visit.steer
    begun = replace(audit, shown_by=shown_by).within(rounds=rounds, next=event.next, steer=steer)
    return _set(begun, event.sets)


def _loop_left(audit: Audit, event: e.LoopLeft) -> Audit:
    rounds = audit.visit.rounds
    if not rounds or rounds[-1].loop != event.loop:
        return audit.within(next=event.next)
    steer = rounds[-1].outer if rounds[-1].steered else audit.visit.steer
    left = _without_round(audit).within(rounds=rounds[:-1], next=event.next, steer=steer)
    return _set(left, event.sets)


def _without_round(audit: Audit) -> Audit:
    """Forget the instances of the round that ends; nothing asks for them any more."""
    visit = audit.visit
    if not (visit.answers or visit.showings or visit.passed or visit.waived):
        return audit
    ended = beginnings(visit.around)

    def kept(known: Mapping[str, T]) -> dict[str, T]:
        return {key: value for key, value in known.items() if not key.startswith(ended)}

    return audit.within(
        answers=kept(visit.answers),
        by=kept(visit.by),
        showings=kept(visit.showings),
        passed=tuple(key for key in visit.passed if not key.startswith(ended)),
        waived=tuple(key for key in visit.waived if not key.startswith(ended)),
    )


def _with_gap(audit: Audit, event: e.GapRecorded) -> Audit:
    number = audit.gaps_ever + 1
    gaps = (*audit.gaps, number) if event.severity != "info" else audit.gaps
    users = (*audit.users, number) if event.category == "user_only_dependency" else audit.users
    older, newest = audit.older_gaps + max(len(gaps) - MOST_GAPS, 0), slice(-MOST_GAPS, None)
    return replace(audit, gaps=gaps[newest], users=users[newest], gaps_ever=number, older_gaps=older)
