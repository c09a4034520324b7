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


class Ownership(Struct, frozen=True, array_like=True):
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


class Audit(Struct, frozen=True, omit_defaults=True):
    """Everything that the guard needs to judge the next command.

    `next` is the operation that is due. `passed` are the gates that a false condition let pass, and which
    are judged again. `led` says where the last answer to a gate leads. `shown_by` and `set_by` say which
    question owns which roots. All three are by activity and gate. `inherited` are the roots of a child that
    questions of its parent own. `path` are the activities that led here,
    `left_out` is what was left out of them. `terms` are the session's; `applied` those
    that the last command was decided under, which may be tighter, and `asks_by` the channel by which the user
    could be asked. `declined` has the channel of each decline, `polls` the answers of named approvers to
    questions that they have not decided; `started_by` is who started the run. `gaps` are the numbers of the
    open ones that count, `users` of those that only the user closes.
    """

    status: Status | None = None
    activity: str | None = None
    visit: int = 0
    next: str = ""
    rounds: tuple[Round, ...] = ()
    variables: Variables = {}
    answers: Mapping[str, str] = {}
    showings: Mapping[str, Showing] = {}
    open: str = ""
    passed: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    declined: Mapping[str, Channel] = {}
    polls: Mapping[str, Poll] = {}
    started_by: str = ""
    shown_by: Mapping[str, Ownership] = {}
    set_by: Mapping[str, Ownership] = {}
    inherited: tuple[str, ...] = ()
    led: Mapping[str, str] = {}
    exit_to: str | None = None
    left_to: str | None = None
    skipped: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = {}
    steer: LoopDecision | None = None
    checks: Mapping[str, LastCheck] = {}
    terms: SessionTerms = SessionTerms(Preferences())
    applied: Applied = Applied()
    gaps: tuple[int, ...] = ()
    users: tuple[int, ...] = ()
    gaps_ever: int = 0
    older_gaps: int = 0

    @property
    def round(self) -> str:
        """The rounds that the run is in, as they begin the key of an instance."""
        return "/".join(f"{round_.loop}@{round_.number}" for round_ in self.rounds)

    def instance(self, item_id: str) -> str:
        """The key of an item in the current rounds."""
        return f"{self.round}::{item_id}" if self.rounds else item_id

    def poll(self, key: str) -> Poll:
        """What approvers have answered to a question since it was last shown in other words."""
        showing, poll = self.showings.get(key, Showing("", 0)), self.polls.get(question_path(self, key))
        is_its = poll is not None and (poll.shown, poll.since) == (showing.digest, showing.at)
        return poll if poll is not None and is_its else Poll(showing.digest, showing.at)

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
            left = replace(audit, next=END, rounds=(), exit_to=None, left_to=event.to)
            unanswered = {event.activity: event.unanswered} if event.unanswered else {}
            left_out = {**audit.left_out, **unanswered}
            return _set(replace(left, path=(*audit.path, event.activity), left_out=left_out), event.sets)
        case e.StepCompleted():
            artifacts = with_artifacts(audit.variables, event.artifacts)
            return _set(replace(audit, next=event.next), {**artifacts, **event.sets})
        case e.StepSkipped():
            return replace(audit, next=event.next)
        case e.QuestionShown():
            return _shown(audit, event)
        case e.GateResolved():
            return _resolved(audit, event)
        case e.QuestionDeclined():
            declined = {**audit.declined, question_path(audit, event.key): event.channel}
            return replace(audit, declined=declined)
        case e.ApprovalGiven() | e.QuestionEscalated():
            return _polled(audit, event)
        case e.GatePassed():
            passed = (*audit.passed, event.key) if event.because == "condition" else audit.passed
            waived = (*audit.waived, event.key) if event.because == "advisory" else audit.waived
            return replace(audit, next=event.next, open="", passed=passed, waived=waived)
        case e.LoopEntered():
            entered = Round(event.loop, 0, event.total, event.items, steered=event.steered, outer=audit.steer)
            return _in_round(audit, (*audit.rounds, entered), event)
        case e.LoopIterated():
            again = tuple(replace(last, number=event.iteration, asked=False) for last in audit.rounds[-1:])
            return _in_round(_without_round(audit), (*audit.rounds[:-1], *again), event)
        case e.LoopLeft():
            return _loop_left(audit, event)
        case e.LoopSteered():
            return replace(audit, steer=event.decision)
        case e.CheckRan():
            ran = {**audit.checks, event.check: LastCheck(event.definition, event.tree, event.passed)}
            results = with_result(audit.variables, event.check, event.line)
            return _set(replace(audit, checks=ran), results)
        case e.GapRecorded():
            return _with_gap(audit, event)
        case e.GapResolved():
            gaps, users = (
                tuple(number for number in numbers if number != event.gap)
                for numbers in (audit.gaps, audit.users)
            )
            is_last = audit.status == "complete_with_gaps" and not (gaps or audit.older_gaps)
            status = "complete" if is_last else audit.status
            return replace(audit, gaps=gaps, users=users, status=status)
        case e.ChildReturned():
            return _set(audit, event.sets)
        case e.RunCompleted():
            return replace(audit, status=event.status, open="")
        case e.RunAbandoned():
            return replace(audit, status="abandoned", open="")
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
    own, ends = f"{event.activity}/", (event.activity, event.before)
    path = tuple(itertools.takewhile(lambda earlier: earlier not in ends, audit.path))
    fresh = replace(
        audit,
        activity=event.activity,
        visit=event.visit,
        next=event.next,
        rounds=(),
        answers={},
        showings={},
        open="",
        passed=(),
        waived=(),
        exit_to=None,
        left_to=None,
        steer=None,
        shown_by={path: owner for path, owner in audit.shown_by.items() if not path.startswith(own)},
        path=path,
        left_out={name: ids for name, ids in audit.left_out.items() if name in path},
    )
    return _set(fresh, event.sets)


def _shown(audit: Audit, event: e.QuestionShown) -> Audit:
    showings = {**audit.showings, event.key: Showing(event.shown, event.at)}
    shown_by = {**audit.shown_by, question_path(audit, event.gate): Ownership(event.key, event.roots)}
    audit = replace(_asked(audit), showings=showings, shown_by=shown_by)
    if event.input:
        return audit
    answers = {key: option for key, option in audit.answers.items() if key != event.key}
    return replace(audit, open=event.key, answers=answers)


def _polled(audit: Audit, event: e.ApprovalGiven | e.QuestionEscalated) -> Audit:
    """Note an answer of one of several people, or who else may answer; other words begin a new poll."""
    poll = audit.poll(event.key)
    if isinstance(event, e.ApprovalGiven):
        poll = poll.with_approval(event.approval)
    else:
        poll = replace(poll, escalated_to=event.to)
    return replace(audit, polls={**audit.polls, question_path(audit, event.key): poll})


def _resolved(audit: Audit, event: e.GateResolved) -> Audit:
    path = question_path(audit, event.gate)
    before, earlier = merged(audit.variables, event.restores), audit.set_by.get(path)
    undo = {name: before.get(name) for name in event.sets}
    undo |= {name: earlier.undo[name] for name in undo if name in earlier.undo} if earlier else {}
    audit = _set(_asked(audit), {**event.restores, **event.sets})
    shown_by, set_by = dict(audit.shown_by), dict(audit.set_by)
    if not decides(audit, event) or event.next is not None:
        shown_by.pop(path, None)  # nobody decided by what was shown, or the step is done again
    if event.how != "dismissed":
        set_by.pop(path, None)
    if event.sets:
        set_by[path] = Ownership(event.key, tuple(undo) if decides(audit, event) else (), undo)
    declined, asked = dict(audit.declined), question_path(audit, event.key)
    if asked in declined and is_at_least(event.channel, strength(declined[asked])):
        del declined[asked]
    polls = {path: poll for path, poll in audit.polls.items() if path != asked}
    audit = replace(
        audit,
        open="" if audit.open == event.key else audit.open,
        declined=declined,
        polls=polls,
        shown_by=shown_by,
        set_by=set_by,
    )
    if event.next is not None:  # the step that it confirms is to be revised, and then confirmed anew
        showings = {key: showing for key, showing in audit.showings.items() if key != event.key}
        return replace(audit, next=event.next, showings=showings)
    led = {path: event.transition_to} if event.transition_to else {}
    return replace(
        audit,
        answers={**audit.answers, event.key: event.option or ""},
        led={**{known: to for known, to in audit.led.items() if known != path}, **led},
        skipped=tuple(dict.fromkeys((*audit.skipped, *event.skip_activities))),
        exit_to=event.transition_to or audit.exit_to,
    )


def decides(audit: Audit, event: e.GateResolved) -> bool:
    """Say whether an answer is the user's, who was asked, or let the time pass; a dismissal is none."""
    asks = not audit.applied.never_stops or is_at_least(event.channel, "client")
    return asks and event.how not in ("dismissed", "assumed")


def question_path(audit: Audit, gate: str) -> str:
    """A gate in its activity, whichever round it is asked in."""
    return f"{audit.activity or ''}/{gate}"


def _asked(audit: Audit) -> Audit:
    return replace(audit, rounds=tuple(replace(round_, asked=True) for round_ in audit.rounds))


def _in_round(audit: Audit, rounds: tuple[Round, ...], event: e.LoopEntered | e.LoopIterated) -> Audit:
    """A round begins: the questions around which it goes are asked anew, and what steers it is open."""
    outer = "".join(f"{round_.loop}@{round_.number}/" for round_ in rounds[:-1])
    inside, own = f"{audit.activity}/", f"{outer}{event.loop}@"
    shown_by = {
        path: owner
        for path, owner in audit.shown_by.items()
        if not (path.startswith(inside) and owner.key.startswith(own))
    }
    steer = None if rounds and rounds[-1].steered else audit.steer
    return _set(replace(audit, rounds=rounds, next=event.next, steer=steer, shown_by=shown_by), event.sets)


def _loop_left(audit: Audit, event: e.LoopLeft) -> Audit:
    if not audit.rounds or audit.rounds[-1].loop != event.loop:
        return replace(audit, next=event.next)
    last = audit.rounds[-1]
    left = replace(_without_round(audit), rounds=audit.rounds[:-1], next=event.next)
    return _set(replace(left, steer=last.outer if last.steered else audit.steer), event.sets)


def _without_round(audit: Audit) -> Audit:
    """Forget the instances of the round that ends; nothing asks for them any more."""
    if not (audit.answers or audit.showings or audit.passed or audit.waived):
        return audit
    ended = (f"{audit.round}::", f"{audit.round}/")

    def kept(known: Mapping[str, T]) -> dict[str, T]:
        return {key: value for key, value in known.items() if not key.startswith(ended)}

    return replace(
        audit,
        answers=kept(audit.answers),
        showings=kept(audit.showings),
        passed=tuple(key for key in audit.passed if not key.startswith(ended)),
        waived=tuple(key for key in audit.waived if not key.startswith(ended)),
    )


def _with_gap(audit: Audit, event: e.GapRecorded) -> Audit:
    number = audit.gaps_ever + 1
    gaps = (*audit.gaps, number) if event.severity != "info" else audit.gaps
    users = (*audit.users, number) if event.category == "user_only_dependency" else audit.users
    older = audit.older_gaps + max(len(gaps) - MOST_GAPS, 0)
    return replace(
        audit,
        gaps=gaps[-MOST_GAPS:],
        users=users[-MOST_GAPS:],
        gaps_ever=number,
        older_gaps=older,
    )
