"""The inbox: every question that waits as a line of a list, and one of them with all that belongs to it.

The list has to be true with 10,000 questions, and to read a question its run must be loaded. So lines are
remembered while their session has the same head, and an answer examines what is new for a second at most:
until all is examined, the page says that it is still counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from threading import Lock
from time import monotonic

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from interlock.core.principals import Principal
from interlock.ledger.decisions.approvals import Approving
from interlock.ledger.decisions.inbox import (
    AskedQuestion,
    Asking,
    LocatedQuestion,
    WaitingQuestion,
    asking_sessions,
    questions,
    questions_by_session,
)
from interlock.ledger.decisions.substance import Substance, substance_of
from interlock.ledger.decisions.user_pin import has_pin
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import Shown, find_session_of
from interlock.ledger.queries.story import last_handed_in
from interlock.ledger.runs.position import Position

PAGE = 100
MOST_ASKED_ABOUT = 500
MOST_REMEMBERED = 50_000  # sessions, a line of about a kilobyte each
EXAMINE_SECONDS = 1.0  # a page of the console shows what is known, and asks again
EXAMINE_ALL_SECONDS = 20.0  # a program wants all of it
LONGEST_EXCERPT = 160
HOUR = 3_600_000
DUE = {"hour": HOUR, "day": 24 * HOUR}
ANYBODY = "*"  # who decides where a gate names nobody
MYSELF = "*me"  # no principal can be called so


class InboxLine(Shown, frozen=True):
    """A question in the list. `place` stays the same while its words change; `question` names both.

    Equal questions have the same text, options and report, so that one answer can be meant for all:
    `equals` counts those that wait. `due_at` is when its time is over, or the default is taken. `decide` says
    who decides it and who has answered, where the gate names them; `may_decide` is about whoever looks.
    """

    place: str
    question: AskedQuestion
    owner: str
    ref: str
    title: str
    name: str
    excerpt: str
    since: int
    due_at: int
    workflow_id: str
    project: str
    equal: str
    decide: Approving | None
    equals: int = 1
    may_decide: bool = True

    def deciders(self, viewer: str) -> Iterator[str]:
        """Yield who is to answer: those who are named and have not, anybody, and who looks."""
        answered = () if self.decide is None else {each.by for each in self.decide.answered}
        yield from (ANYBODY,) if self.decide is None else self.decide.missing
        if self.may_decide and viewer not in answered:
            yield MYSELF


class InboxChoice(Shown, frozen=True):
    """A value that the list can be narrowed to, and how many questions it leaves."""

    value: str
    count: int


class InboxPage(Shown, frozen=True):
    """A part of what waits for the user.

    `total` counts everything, `matching` what the filters leave, `rows` the lines that this makes. `fresh`
    counts what has come since `newest` of an earlier page; `counting` says that the counts still grow.
    `deciders` are who is to answer: those whom gates name, `*` where they name nobody, `*me` for who looks.
    `needs_pin` says that deciding asks for the PIN, `can_decide` that this principal may decide at all.
    """

    questions: tuple[InboxLine, ...]
    total: int
    matching: int
    rows: int
    offset: int
    fresh: int
    newest: int
    counting: bool
    workflows: tuple[InboxChoice, ...]
    projects: tuple[InboxChoice, ...]
    owners: tuple[InboxChoice, ...]
    deciders: tuple[InboxChoice, ...]
    needs_pin: bool
    can_decide: bool


class InboxQuestion(Shown, frozen=True):
    """A question as its user must see it, with its substance."""

    line: InboxLine
    question: WaitingQuestion
    substance: Substance


class InboxPart(Shown, frozen=True):
    """Whole questions, oldest first, each with its owner, and how many wait in all. `counting`: maybe more.

    `after` is where the next part begins, empty at the end.
    """

    questions: tuple[tuple[str, WaitingQuestion], ...]
    total: int
    counting: bool
    after: str


class InboxWanted(Struct, frozen=True):
    """Which lines to show. With `known` places it is these, whatever else has come."""

    workflow: str = ""
    project: str = ""
    owner: str = ""
    decider: str = ""
    due: str = ""
    equal: str = ""
    order: str = "oldest"
    grouped: str = ""
    offset: int = 0
    limit: int = PAGE
    seen: int = 0
    known: str = ""


class WaitingQuestions:
    """The questions of sessions, remembered for as long as a session has the same head."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, tuple[bytes, tuple[InboxLine, ...]]] = {}
        self._turn = Lock()
        self._examining = Lock()

    def page(self, principal: Principal, wanted: InboxWanted) -> InboxPage:
        """Return what a principal is asked: its own questions, and others' if it decides for others."""
        lines, counting = self._lines(principal, EXAMINE_SECONDS)
        matching = [line for line in lines if self._fits(line, wanted, principal.name)]
        matching.sort(key=lambda line: (line.since, line.place), reverse=wanted.order == "newest")
        equal = Counter(line.equal for line in matching)
        rows = first_of_each(matching) if wanted.grouped else matching
        if wanted.known:
            places = set(wanted.known.split(",")[:MOST_ASKED_ABOUT])
            shown = [line for line in lines if line.place in places]
        else:
            shown = rows[wanted.offset : wanted.offset + min(wanted.limit, MOST_ASKED_ABOUT)]
        return InboxPage(
            questions=tuple(replace(line, equals=equal[line.equal] or 1) for line in shown),
            total=len(lines),
            matching=len(matching),
            rows=len(rows),
            offset=wanted.offset,
            fresh=sum(line.since > wanted.seen for line in matching) if wanted.seen else 0,
            newest=max((line.since for line in matching), default=0),
            counting=counting,
            workflows=choices(line.workflow_id for line in lines),
            projects=choices(line.project for line in lines),
            owners=choices(line.owner for line in lines),
            deciders=choices(name for line in lines for name in line.deciders(principal.name)),
            needs_pin=has_pin(self._ledger.store, principal.name),
            can_decide=principal.decides,
        )

    def part(self, principal: Principal, after: str, limit: int) -> InboxPart:
        """Return so many questions after a mark; what comes or is answered meanwhile moves no other."""
        lines, counting = self._lines(principal, EXAMINE_ALL_SECONDS)
        later = sorted((line for line in lines if _mark(line) > after), key=_mark)
        shown = later[:limit]
        return InboxPart(
            questions=tuple(self._whole(shown)),
            total=len(lines),
            counting=counting,
            after=_mark(shown[-1]) if shown and (len(later) > limit or counting) else "",
        )

    def _whole(self, lines: Iterable[InboxLine]) -> Iterator[tuple[str, WaitingQuestion]]:
        """Yield the questions of lines; one that was answered meanwhile is left out."""
        for line in lines:
            with self._ledger.store.reading() as reader:
                session = reader.session(line.question.session_id)
            asked = questions(self._ledger.of(line.owner), session) if session is not None else ()
            place = (line.question.run_id, line.question.node, line.question.key)
            for question in (each.question for each in asked):
                if (question.run_id, question.node, question.key) == place:
                    yield line.owner, question

    def question(self, principal: Principal, session_id: str, place: str, shown: str) -> InboxQuestion:
        """Return the question at a place, or the one that was shown, with all that belongs to it."""
        owner = None if principal.decides else principal.name
        session = find_session_of(self._ledger.store, session_id, owner)
        ledger = self._ledger.of(session.owner)
        for position, question, line in _lines_of(ledger, questions(ledger, session)):
            if place == line.place or shown == question.shown:
                (seen,) = self._seen_by(principal, [line])
                return InboxQuestion(seen, question, substance_of(ledger, position, question))
        message = "This question no longer waits: it was answered, or the run went on."
        raise LedgerError("NOT_FOUND", message, "The list shows what waits now.")

    def _lines(self, principal: Principal, seconds: float) -> tuple[list[InboxLine], bool]:
        """Return all lines that are known, and whether there is more to examine."""
        whose = None if principal.decides else principal.name
        asking = asking_sessions(self._ledger.of(principal.name), whose)
        unknown = [row for row in asking if not self._is_known(row)]
        counting = bool(unknown) and not self._examine(unknown, seconds)
        known = (self._known.get(row.session_id, (b"", ())) for row in asking)
        lines = chain.from_iterable(lines for _, lines in known)
        return self._seen_by(principal, lines), counting

    def _seen_by(self, principal: Principal, lines: Iterable[InboxLine]) -> list[InboxLine]:
        """Say which of these questions somebody may decide."""
        if not principal.decides:
            return [replace(line, may_decide=False) for line in lines]
        person = self._ledger.approvers(principal.name)
        return [
            line if line.decide is None else replace(line, may_decide=line.decide.admits(person))
            for line in lines
        ]

    def _is_known(self, row: Asking) -> bool:
        return row.session_id in self._known and self._known[row.session_id][0] == row.head_digest

    def _examine(self, asking: Sequence[Asking], seconds: float) -> bool:
        """Read what sessions ask until the time is over, one caller at a time; say whether all were read."""
        ends = monotonic() + seconds
        if not self._examining.acquire(timeout=seconds):
            return False
        try:
            return self._examine_until(ends, [row for row in asking if not self._is_known(row)])
        finally:
            self._examining.release()

    def _examine_until(self, ends: float, asking: Sequence[Asking]) -> bool:
        for session, asked in questions_by_session(self._ledger, asking):
            lines = tuple(line for _, _, line in _lines_of(self._ledger.of(session.owner), asked))
            with self._turn:
                self._known.pop(session.session_id, None)
                self._known[session.session_id] = session.head_digest, lines
                while len(self._known) > MOST_REMEMBERED:
                    self._known.pop(next(iter(self._known)))
            if monotonic() >= ends:
                return session.session_id == asking[-1].session_id
        return True

    def _fits(self, line: InboxLine, wanted: InboxWanted, viewer: str) -> bool:
        due = DUE.get(wanted.due)
        return (
            wanted.workflow in ("", line.workflow_id)
            and wanted.project in ("", line.project)
            and wanted.owner in ("", line.owner)
            and (not wanted.decider or wanted.decider in line.deciders(viewer))
            and wanted.equal in ("", line.equal)
            and (not wanted.due or line.due_at > 0)
            and (due is None or line.due_at <= self._ledger.clock() + due)
        )


def wanted_lines(query: Mapping[str, str]) -> InboxWanted:
    """Read which lines an address asks for; what is not a number counts as absent."""
    texts = {name: query[name] for name in InboxWanted.__struct_fields__ if name in query}
    numbers = {
        name: int(text)
        for name in ("offset", "limit", "seen")
        if (text := texts.pop(name, "")).isascii() and text.isdigit() and len(text) < 16
    }
    return InboxWanted(**texts, **numbers)  # type: ignore[arg-type]


def _mark(line: InboxLine) -> str:
    """Return where a line stands among all, oldest first."""
    return f"{line.since:015}.{line.place}"


def first_of_each(lines: Iterable[InboxLine]) -> list[InboxLine]:
    """Keep the first of equal questions."""
    first: dict[str, InboxLine] = {}
    for line in lines:
        first.setdefault(line.equal, line)
    return list(first.values())


def choices(values: Iterable[str]) -> tuple[InboxChoice, ...]:
    """Count the values that occur, the most frequent first."""
    return tuple(InboxChoice(value, count) for value, count in Counter(filter(None, values)).most_common())


def _lines_of(
    ledger: Ledger, asked: Sequence[LocatedQuestion]
) -> Iterator[tuple[Position, WaitingQuestion, InboxLine]]:
    """Yield what a session asks, each with its line."""
    instances = Counter((each.question.run_id, each.question.key) for each in asked)
    project = ""
    if asked:
        with ledger.store.reading() as reader:
            project = reader.observations(asked[0].position.session_id).get("repo_root", "")
    for position, question in ((each.position, each.question) for each in asked):
        report = last_handed_in(position)
        node = question.node if instances[question.run_id, question.key] > 1 else None
        yield (
            position,
            question,
            InboxLine(
                place=_digest([question.session_id, question.run_id, question.key, node]),
                question=AskedQuestion(
                    **{name: asdict(question)[name] for name in AskedQuestion.__struct_fields__}
                ),
                owner=ledger.owner,
                ref=question.ref,
                title=question.title,
                name=question.name,
                excerpt=" ".join(question.message.split())[:LONGEST_EXCERPT],
                since=question.since,
                due_at=(question.decide and question.decide.until) or question.default_at,
                workflow_id=position.run.workflow_id,
                project=project,
                decide=question.decide,
                equal=_digest(
                    [
                        position.run.workflow_hash,
                        question.id,
                        question.name,
                        question.message,
                        question.options,
                        (report.notes, report.artifacts) if report is not None else (),
                    ]
                ),
            ),
        )


def _digest(parts: object) -> str:
    return sha256(msgspec.json.encode(parts)).hexdigest()[:16]
