"""The list of runs that people look at: filtered, paged, each with how far it is and what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.ledger.ledger import Ledger
from interlock.ledger.log.health import damage_of
from interlock.ledger.log.projection import state_of
from interlock.ledger.queries.run_words import marked
from interlock.ledger.queries.search import FINISHED, Candidate, FreshWords, find, words_of
from interlock.ledger.queries.status import Shown, head_run, ref_of, referred
from interlock.store.protocol import Reader, RunRow, SessionFilter, SessionRow

HOUR = 3_600_000
MOST_MATCHES = 500
MOST_POINTS = 200
MOST_PROJECTS = 100
# What `shown_status` returns, and what the list is filtered by.
SHOWN_STATUSES = ("waiting", "in_progress", "blocked", "stale", "complete", "complete_with_gaps", "abandoned")


class RunsWanted(Struct, frozen=True):
    """Which sessions to list. `status` is one of SHOWN_STATUSES.

    `active` and `idle` are milliseconds: with activity within that time, without any for that time.
    `everybody` lists the sessions of all owners; `text` finds only the ledger's own.
    """

    status: str = ""
    workflow: str = ""
    project: str = ""
    active: int | None = None
    idle: int | None = None
    text: str = ""
    offset: int = 0
    limit: int = 50
    everybody: bool = False


class RunLine(Shown, frozen=True):
    """A session in the list, with the run that work continues with."""

    session_id: str
    owner: str
    ref: str
    title: str
    status: str
    workflow_id: str
    awaiting: str
    runs: int
    steps: int
    gaps: int
    branch: str
    project: str
    created_at: int
    updated_at: int
    keep: bool


class RunPoint(Shown, frozen=True):
    """A session as a point in a scatter plot: when it began, and how long until its last activity."""

    session_id: str
    ref: str
    title: str
    status: str
    started_at: int
    milliseconds: int


class RunLines(Shown, frozen=True):
    """One page of the list; `more` says that another one follows.

    `left_out` says that some of the newest sessions were not searched for words.
    """

    lines: tuple[RunLine, ...]
    more: bool
    left_out: bool = False


class ShortLine(Struct, frozen=True):
    """A session as a search lists it: without what costs reading its state."""

    session_id: str
    ref: str
    title: str
    status: str
    workflow_id: str
    updated_at: int


class SessionsWith(Struct, frozen=True):
    """The sessions that have some words. `more` and `left_out` are those of a list of runs."""

    best: tuple[Candidate, ...]
    others: tuple[ShortLine, ...]
    more: bool
    left_out: bool


class WorkflowUser(Shown, frozen=True):
    """Whose sessions follow a workflow: how many of the newest, and when the last of them was active."""

    name: str
    sessions: int
    updated_at: int


def shown_status(run: RunRow, active_at: int, stale_before: int) -> str:
    """Return a run's status as people see it: one that waits for the user, or is stale, is not running.

    A run is stale that is in progress, waits for nobody, and had no activity for the time in the settings.
    """
    if run.awaiting and run.status not in FINISHED:
        return "waiting"
    if run.status == "in_progress" and active_at < stale_before:
        return "stale"
    return run.status


def stale_before(ledger: Ledger) -> int:
    """Return the time before which the last activity of a stale run lies."""
    return ledger.clock() - ledger.settings.stale_hours * HOUR


def run_lines(ledger: Ledger, wanted: RunsWanted) -> RunLines:
    """Return one page of the sessions that are wanted, newest activity first."""
    with ledger.store.reading() as reader:
        index = FreshWords(reader, ledger.pins, ledger.owner) if wanted.text.strip() else None
        matched = matching(reader, ledger, wanted, index)
        listed = [run_line(reader, session, stale_before(ledger)) for session in matched]
    left_out = index is not None and index.left_out
    return RunLines(tuple(listed[: wanted.limit]), len(listed) > wanted.limit, left_out)


def sessions_with(ledger: Ledger, text: str, most: int) -> SessionsWith:
    """Return the sessions that have some words: the best as an agent's search, and others, newest first."""
    with ledger.store.reading() as reader:
        index = FreshWords(reader, ledger.pins, ledger.owner)
        best = find(ledger, text, index=index).candidates
        rows = list(matching(reader, ledger, RunsWanted(text=text, limit=most), index))
        others = tuple(_short_line(reader, row, stale_before(ledger)) for row in rows[:most])
    return SessionsWith(best, others, len(rows) > most, index.left_out)


def _short_line(reader: Reader, session: SessionRow, before: int) -> ShortLine:
    run = head_run(session, reader.runs(session.session_id))
    status = shown_status(run, session.updated_at, before) if run else "no run"
    return ShortLine(
        session_id=session.session_id,
        ref=ref_of(session.session_id),
        title=session.title,
        status=status if damage_of(reader, session) is None else "damaged",
        workflow_id=run.workflow_id if run else "",
        updated_at=session.updated_at,
    )


def lines_of(ledger: Ledger, session_ids: Iterable[str]) -> tuple[RunLine, ...]:
    """Return those of the owner's sessions that are named, in the order in which they are named."""
    with ledger.store.reading() as reader:
        rows = (reader.session(session_id) for session_id in dict.fromkeys(session_ids))
        own = [row for row in rows if row is not None and row.owner == ledger.owner]
        return tuple(run_line(reader, session, stale_before(ledger)) for session in own)


def run_points(ledger: Ledger, wanted: RunsWanted) -> tuple[RunPoint, ...]:
    """Return the newest of all sessions that are wanted, on whichever page they are."""
    before = stale_before(ledger)
    with ledger.store.reading() as reader:
        index = FreshWords(reader, ledger.pins, ledger.owner) if wanted.text.strip() else None
        newest = matching(reader, ledger, replace(wanted, offset=0, limit=MOST_POINTS), index)
        return tuple(
            RunPoint(
                session_id=session.session_id,
                ref=ref_of(session.session_id),
                title=session.title,
                status=shown_status(run, session.updated_at, before) if run else "no run",
                started_at=session.created_at,
                milliseconds=session.updated_at - session.created_at,
            )
            for session in newest
            for run in [head_run(session, reader.runs(session.session_id))]
        )


def workflow_users(ledger: Ledger, workflow_id: str, newest: int) -> tuple[WorkflowUser, ...]:
    """Return whose the newest sessions of a workflow are, among those of all owners."""
    with ledger.store.reading() as reader:
        rows = reader.sessions(SessionFilter(workflow=workflow_id, of_head=True, limit=newest))
    sessions = Counter(row.owner for row in rows)
    last = {row.owner: row.updated_at for row in reversed(rows)}
    return tuple(WorkflowUser(name, count, last[name]) for name, count in sessions.most_common())


def projects(ledger: Ledger) -> tuple[str, ...]:
    """Return the project folders in which sessions of this owner were started."""
    with ledger.store.reading() as reader:
        return tuple(reader.observed_values("repo_root", owner=ledger.owner, limit=MOST_PROJECTS))


def matching(
    reader: Reader, ledger: Ledger, wanted: RunsWanted, index: FreshWords | None
) -> Iterator[SessionRow]:
    """Yield the sessions of a page, and one more if another page follows; with an index, those of a text."""
    filtered = session_filter(ledger, wanted)
    if index is None:
        yield from reader.sessions(filtered)
        return
    words, owner = words_of(wanted.text), ledger.owner
    named = {match.session_id for match in referred(reader, wanted.text.strip(), owner)}
    named |= {*index.search(words, ("title", "notes"), MOST_MATCHES)}
    named |= {*index.search(marked(" ".join(words)), ("workflows",), MOST_MATCHES)}
    everywhere = replace(filtered, limit=MOST_MATCHES, offset=0)
    rows = sorted(reader.sessions_among([*named]), key=lambda row: (-row.updated_at, row.session_id))
    fitting = (row for row in rows if fits(reader, row, everywhere))
    yield from islice(fitting, wanted.offset, wanted.offset + wanted.limit + 1)


def session_filter(ledger: Ledger, wanted: RunsWanted) -> SessionFilter:
    """Turn what is wanted into what a store is asked; `shown_status` tells the same of each session."""
    now, before = ledger.clock(), stale_before(ledger)
    filtered = SessionFilter(
        None if wanted.everybody else ledger.owner,
        workflow=wanted.workflow or None,
        of_head=True,
        repo_root=wanted.project or None,
        active_since=None if wanted.active is None else now - wanted.active,
        active_before=None if wanted.idle is None else now - wanted.idle,
        limit=wanted.limit + 1,
        offset=wanted.offset,
    )
    match wanted.status:
        case "":
            return filtered
        case "waiting":
            return replace(filtered, awaiting=True)
        case "stale":
            idle = filtered.active_before
            until = before if idle is None else min(idle, before)
            return replace(filtered, status="in_progress", awaiting=False, active_before=until)
        case "in_progress":
            since = max(filtered.active_since or 0, before)
            return replace(filtered, status="in_progress", awaiting=False, active_since=since)
        case "blocked":
            return replace(filtered, status="blocked", awaiting=False)
        case status:
            return replace(filtered, status=status)


def fits(reader: Reader, session: SessionRow, wanted: SessionFilter) -> bool:
    """Tell whether a session that words have found is one that a store would list."""
    asks_for_run = (wanted.status, wanted.workflow, wanted.awaiting) != (None, None, None)
    run = head_run(session, reader.runs(session.session_id)) if asks_for_run else None
    root = reader.observations(session.session_id).get("repo_root") if wanted.repo_root else None
    tests: list[tuple[Any, Any]] = [
        (wanted.status, run.status if run else ""),
        (wanted.workflow, run.workflow_id if run else ""),
        (wanted.awaiting, bool(run and run.awaiting)),
        (wanted.repo_root, root),
    ]
    since, before = wanted.active_since, wanted.active_before
    is_in_time = (since is None or session.updated_at >= since) and (
        before is None or session.updated_at < before
    )
    return is_in_time and all(expected in (None, actual) for expected, actual in tests)


def run_line(reader: Reader, session: SessionRow, stale_before: int) -> RunLine:
    """Describe one session in a line."""
    runs = reader.runs(session.session_id)
    run = head_run(session, runs)
    node = reader.node(session.session_id, session.head_node) if session.head_node is not None else None
    is_damaged = damage_of(reader, session) is not None
    observed = reader.observations(session.session_id)
    status = shown_status(run, session.updated_at, stale_before) if run else "no run"
    return RunLine(
        session_id=session.session_id,
        owner=session.owner,
        ref=ref_of(session.session_id),
        title=session.title,
        status="damaged" if is_damaged else status,
        workflow_id=run.workflow_id if run else "",
        awaiting=run.awaiting if run else "",
        runs=len(runs),
        steps=node.depth if node else 0,
        gaps=state_of(node).gaps.open if node and not is_damaged else 0,
        branch=observed.get("git_branch", ""),
        project=observed.get("repo_root", ""),
        created_at=session.created_at,
        updated_at=session.updated_at,
        keep=session.keep,
    )
