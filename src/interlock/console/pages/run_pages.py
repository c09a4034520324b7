"""The list of runs as a page, and what is done to several of them at once: keep, export, delete."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from interlock.console.answers import Answer, json_answer, refused
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.run_lines import (
    HOUR,
    RunLine,
    RunPoint,
    RunsWanted,
    lines_of,
    projects,
    run_lines,
    run_points,
)
from interlock.ledger.queries.status import Shown, find_session
from interlock.ledger.retention import collect, set_keep, stale
from interlock.ledger.saved_views import SavedView, saved_views
from interlock.ledger.transfer.export_import import export_session

MOST_LINES = 200
SPAN = re.compile(r"([0-9]{1,4})([hd])", re.ASCII)


class RunsPage(Shown, frozen=True):
    """One page of the list; `more` says that another one follows. `points` are the newest of all pages."""

    lines: tuple[RunLine, ...]
    offset: int
    limit: int
    more: bool
    points: tuple[RunPoint, ...]
    projects: tuple[str, ...]
    views: tuple[SavedView, ...]
    stale_hours: int
    left_out: bool = False


class RemovalLine(Shown, frozen=True):
    """A session that is to be deleted, and what becomes of it.

    `kept` stays, because of its mark; `waiting` stays unless its user says that those go too.
    """

    session_id: str
    ref: str
    title: str
    status: str
    outcome: Literal["deleted", "waiting", "kept"]


class RemovalPage(Shown, frozen=True):
    """What deleting some sessions would do. `at` goes back with the request: what moves later stays."""

    at: int
    lines: tuple[RemovalLine, ...]


class KeepRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """Whether sessions are kept whatever their age."""

    session_ids: tuple[str, ...]
    keep: bool


class RemoveRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """Sessions to delete as they were at the time of the preview; `waiting` says that those go too."""

    session_ids: tuple[str, ...]
    at: int
    waiting: bool = False


class ViewRequest(Shown, frozen=True, forbid_unknown_fields=True):
    """A list of runs to keep under a name; without a query, to forget."""

    name: str
    query: str | None = None


class RunsChanged(Shown, frozen=True):
    """What was done to several sessions, in a sentence, and how many there were."""

    message: str
    sessions: int


def runs_page(ledger: Ledger, query: Mapping[str, str]) -> RunsPage:
    """Return the page of the list that an address asks for."""
    wanted = runs_wanted(query)
    listed = run_lines(ledger, wanted)
    return RunsPage(
        lines=listed.lines,
        offset=wanted.offset,
        limit=wanted.limit,
        more=listed.more,
        points=run_points(ledger, wanted),
        projects=projects(ledger),
        views=saved_views(ledger.store, ledger.owner),
        stale_hours=ledger.settings.stale_hours,
        left_out=listed.left_out,
    )


def runs_wanted(query: Mapping[str, str]) -> RunsWanted:
    """Read the filters of the list from an address."""
    return RunsWanted(
        status=query.get("status", ""),
        workflow=query.get("workflow", ""),
        project=query.get("project", ""),
        active=span(query.get("active", "")),
        idle=span(query.get("idle", "")),
        text=query.get("q", ""),
        offset=max(number_in(query, "offset") or 0, 0),
        limit=min(max(number_in(query, "limit") or 50, 1), MOST_LINES),
    )


def number_in(query: Mapping[str, str], name: str) -> int | None:
    """Read a number from an address; anything else counts as absent."""
    value = query.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def span(text: str) -> int | None:
    """Read a time such as `24h` or `7d`, in milliseconds; anything else counts as absent."""
    found = SPAN.fullmatch(text)
    return int(found[1]) * HOUR * (24 if found[2] == "d" else 1) if found else None


def keep_runs(ledger: Ledger, request: KeepRequest) -> Answer:
    """Mark sessions to be kept, or take the marks away."""
    lines = lines_of(ledger, request.session_ids[:MOST_LINES])
    if not lines:
        return refused(404, "NOT_FOUND", "There is no such session.", "Reload the page.")
    for line in lines:
        set_keep(ledger.store, line.session_id, request.keep)
    how = "kept whatever the age" if request.keep else "kept no longer than others"
    return json_answer(RunsChanged(f"{counted_sessions(len(lines))} {how}.", len(lines)))


def removal_page(ledger: Ledger, session_ids: Sequence[str]) -> RemovalPage:
    """Say what deleting these sessions would do."""
    now, lines = ledger.clock(), lines_of(ledger, session_ids[:MOST_LINES])
    among = [line.session_id for line in lines]
    free, removable = (
        {*stale(ledger.store, now + 1, waiting=waiting, among=among)} for waiting in (False, True)
    )
    return RemovalPage(
        now,
        tuple(
            RemovalLine(
                line.session_id,
                line.ref,
                line.title,
                line.status,
                "deleted"
                if line.session_id in free
                else "waiting"
                if line.session_id in removable
                else "kept",
            )
            for line in lines
        ),
    )


def remove_runs(ledger: Ledger, request: RemoveRequest) -> Answer:
    """Delete sessions by the rules of `interlock gc`; one that has moved since the preview stays."""
    among = [line.session_id for line in lines_of(ledger, request.session_ids[:MOST_LINES])]
    now = ledger.clock()
    before = min(request.at, now) + 1
    removed = collect(ledger.store, before, now, waiting=request.waiting, among=among).total()
    stayed = f"; {len(among) - removed} stayed" if removed < len(among) else ""
    return json_answer(RunsChanged(f"{counted_sessions(removed)} deleted{stayed}.", removed))


def counted_sessions(sessions: int) -> str:
    return "1 session" if sessions == 1 else f"{sessions} sessions"


def exported_runs(ledger: Ledger, session_ids: Sequence[str]) -> Answer:
    """Return the bundles of several sessions in one archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for session_id in dict.fromkeys(session_ids[:MOST_LINES]):
            session = find_session(ledger, session_id)
            bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
            archive.writestr(f"{session.session_id}.json", msgspec.json.encode(bundle))
    return Answer(packed.getvalue(), media="application/zip", filename="interlock-sessions.zip")
