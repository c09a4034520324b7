"""The list of runs that people look at: filtered, paged, each with how far it is and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.ledger.log.health import damage_of
from interlock.ledger.log.projection import state_of
from interlock.ledger.queries.indexing import catch_up
from interlock.ledger.queries.search import words_of
from interlock.ledger.queries.status import Shown, head_run, ref_of, referred
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import Reader, SessionFilter, SessionRow

MOST_MATCHES = 500
TITLE = ("title", "notes", "workflows")


class RunsWanted(Struct, frozen=True):
    """Which sessions to list. `status` is that of a run, or `waiting` for those that wait for the user."""

    status: str = ""
    workflow: str = ""
    text: str = ""
    offset: int = 0
    limit: int = 50


class RunLine(Shown, frozen=True):
    """A session in the list, with the run that work continues with."""

    session_id: str
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


class RunsPage(Shown, frozen=True):
    """One page of the list; `more` says that another one follows."""

    lines: tuple[RunLine, ...]
    offset: int
    limit: int
    more: bool


def runs_page(positions: Positions, wanted: RunsWanted) -> RunsPage:
    """Return one page of the sessions that are wanted, newest activity first."""
    if wanted.text.strip():
        catch_up(positions.store, positions.pins)
    with positions.store.reading() as reader:
        lines = [run_line(reader, session) for session in matching(reader, positions.owner, wanted)]
    more = len(lines) > wanted.limit
    return RunsPage(tuple(lines[: wanted.limit]), wanted.offset, wanted.limit, more)


def matching(reader: Reader, owner: str, wanted: RunsWanted) -> Iterator[SessionRow]:
    """Yield the sessions of a page, and one more if another page follows."""
    is_waiting = wanted.status == "waiting"
    status = None if is_waiting else wanted.status or None
    if not wanted.text.strip():
        yield from reader.sessions(
            SessionFilter(
                owner,
                status=status,
                workflow=wanted.workflow or None,
                awaiting=is_waiting,
                limit=wanted.limit + 1,
                offset=wanted.offset,
            )
        )
        return
    words, text = words_of(wanted.text), wanted.text.strip()
    found = [match.session_id for match in referred(reader, text, owner)]
    found += reader.search(words, owner=owner, columns=TITLE, limit=MOST_MATCHES)
    sessions = (reader.session(session_id) for session_id in dict.fromkeys(found))
    rows = [session for session in sessions if session is not None]
    kept: list[SessionRow] = []
    for session in sorted(rows, key=lambda row: (-row.updated_at, row.session_id)):
        run = head_run(session, reader.runs(session.session_id))
        is_wanted = (
            (not wanted.workflow or (run is not None and run.workflow_id == wanted.workflow))
            and (status is None or (run is not None and run.status == status))
            and (not is_waiting or (run is not None and bool(run.awaiting)))
        )
        if is_wanted:
            kept.append(session)
    yield from kept[wanted.offset : wanted.offset + wanted.limit + 1]


def run_line(reader: Reader, session: SessionRow) -> RunLine:
    """Describe one session in a line."""
    runs = reader.runs(session.session_id)
    run = head_run(session, runs)
    node = reader.node(session.session_id, session.head_node) if session.head_node is not None else None
    is_damaged = damage_of(reader, session) is not None
    observed = reader.observations(session.session_id)
    return RunLine(
        session_id=session.session_id,
        ref=ref_of(session.session_id),
        title=session.title,
        status="damaged" if is_damaged else run.status if run else "no run",
        workflow_id=run.workflow_id if run else "",
        awaiting=run.awaiting if run else "",
        runs=len(runs),
        steps=node.depth if node else 0,
        gaps=state_of(node).gaps if node and not is_damaged else 0,
        branch=observed.get("git_branch", ""),
        project=observed.get("repo_root", ""),
        created_at=session.created_at,
        updated_at=session.updated_at,
        keep=session.keep,
    )
