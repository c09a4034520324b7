"""One session as pages: its runs and notes, one run as a tree and as the story of one branch, its events."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from interlock.console.pages.lanes import LaneTree, in_lanes
from interlock.console.pages.timelines import RunTimeline, SessionLane, SessionMark, run_timeline
from interlock.console.pages.trust_pages import untrusted_checks
from interlock.core.run.outcomes import PendingLine, pending_line
from interlock.core.run.preferences import mode_of
from interlock.core.run.state import KnownGap
from interlock.core.values import Json
from interlock.ledger.decisions.inbox import WaitingQuestion
from interlock.ledger.decisions.modes import ModeLine, session_modes
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import kind_of
from interlock.ledger.queries.log_lines import EVENT_KINDS, event_line, event_lines
from interlock.ledger.queries.run_lines import shown_status, stale_before
from interlock.ledger.queries.run_words import named
from interlock.ledger.queries.search import FINISHED
from interlock.ledger.queries.status import (
    RunStatus,
    SessionStatus,
    Shown,
    find_session,
    handle_of,
    notes_of,
    ref_of,
    session_status,
)
from interlock.ledger.queries.story import RunStory, story_of
from interlock.ledger.queries.tree import trees_of
from interlock.ledger.runs.whole_session import WholeSession

MOST_EVENTS = 200
LOOKED_AT = 2000


class SessionRun(Shown, frozen=True):
    """A run in the sidebar of its session."""

    run_id: str
    workflow_id: str
    title: str
    status: str
    branches: int
    started_at: int
    updated_at: int


class Fork(Shown, frozen=True):
    """Another branch that leaves the shown one at a node, and how it came about."""

    node: int
    child: int
    branch: int
    label: str
    cause: Literal["first", "rewound"]


class SessionPage(Shown, frozen=True):
    """A session: its notes, its runs, and one run as a tree and as a story of one branch.

    `untrusted` are the checks of the run that the server does not run, because nobody has trusted them.
    """

    status: SessionStatus
    notes: tuple[str, ...]
    modes: tuple[ModeLine, ...]
    runs: tuple[SessionRun, ...]
    lanes: tuple[SessionLane, ...]
    trees: tuple[LaneTree, ...]
    run_id: str
    story: RunStory | None
    forks: tuple[Fork, ...]
    timeline: RunTimeline | None
    questions: tuple[WaitingQuestion, ...]
    untrusted: tuple[str, ...]


class NodePage(Shown, frozen=True):
    """What held at one node: the variables, the mode, the gaps so far."""

    node: int
    parent: int | None
    kind: str
    created_at: int
    activity: str
    pending: PendingLine
    mode: str
    variables: dict[str, Json]
    gaps: tuple[KnownGap, ...]


class ForkText(Shown, frozen=True):
    """What to say to an agent so that it goes on from a node."""

    text: str


class EventRow(Shown, frozen=True):
    """One event with its summary and its JSON."""

    index: int
    kind: str
    at: int
    run: int | None
    node: int | None
    principal: str
    summary: str
    event: dict[str, Json]


class EventsPage(Shown, frozen=True):
    """Events of a session, newest first. `start` is where the next older ones end; 0 means no more."""

    session_id: str
    total: int
    start: int
    kinds: tuple[str, ...]
    events: tuple[EventRow, ...]


def session_page(
    ledger: Ledger, ref: str, run_id: str, node: int | None, questions: tuple[WaitingQuestion, ...] = ()
) -> SessionPage:
    """Return a session with one of its runs; the one that work continues with if none is named."""
    session = find_session(ledger, ref)
    reading, notes = WholeSession(ledger, session), notes_of(ledger, session)
    trees = trees_of(reading)
    head = next((tree for tree in trees if session.head_node in {each.node for each in tree.nodes}), None)
    shown = next((tree for tree in trees if tree.run_id == run_id), head)
    if run_id and (shown is None or shown.run_id != run_id):
        message = f"Session {ref_of(session.session_id)} has no run {run_id}."
        raise LedgerError("NOT_FOUND", message, "Choose one of its runs.")
    story = story_of(reading, shown.run_id, node) if shown is not None else None
    status = session_status(reading)
    tip = shown.tip if shown is not None and shown.status not in FINISHED else None
    is_waited_for = story is not None and story.tip == tip
    drawn = tuple(in_lanes(tree, story.tip if story and tree is shown else None) for tree in trees)
    runs = tuple(session_run(ledger, session.session_id, run) for run in status.runs)
    lanes = [SessionLane(run.run_id, run.title, run.status, run.started_at, run.updated_at) for run in runs]
    events = [row for row in reading.log if row.run is None and kind_of(row.event) in SESSION_KINDS]
    lines = [event_line(row, reading.imported) for row in events]
    marks = [SessionMark(line.at, line.summary(ledger.owner) or line.kind) for line in lines]
    whole = SessionLane("", "Session", "", session.created_at, session.updated_at, tuple(marks))
    return SessionPage(
        status=status,
        notes=notes.session,
        modes=session_modes(ledger, session),
        runs=runs,
        lanes=(whole, *lanes),
        trees=drawn,
        run_id=shown.run_id if shown else "",
        story=story,
        forks=tuple(
            fork for tree in drawn if story and tree.run_id == story.run_id for fork in forks_of(tree)
        ),
        timeline=run_timeline(story, ledger.clock() if is_waited_for else None) if story else None,
        questions=questions,
        untrusted=untrusted_checks_of(ledger, status, story) if tip is not None else (),
    )


SESSION_KINDS = ("node_output_appended", "preferences_changed", "session_imported", "repair_recorded")


def untrusted_checks_of(ledger: Ledger, status: SessionStatus, story: RunStory | None) -> tuple[str, ...]:
    """Return the checks of the run that a page shows which the server does not run."""
    runs = [run for run in status.runs if story is not None and run.run_id == story.run_id]
    plans = (ledger.pins.plan(ledger.content, run.workflow_hash) for run in runs)
    return tuple(name for plan in plans for name in untrusted_checks(ledger, plan.workflow))


def session_run(ledger: Ledger, session_id: str, run: RunStatus) -> SessionRun:
    """Describe a run in the list of its session; what the run calls its work is its title."""
    title, status = run.workflow_id, run.status
    with suppress(LedgerError):  # of a damaged run only what its row says
        position = ledger.position(session_id, run.tip)
        title = next(iter(named(position.state.variables)), position.plan.workflow.name)
        status = shown_status(position.run, run.updated_at, stale_before(ledger))
    return SessionRun(
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        title=title,
        status=status,
        branches=run.branches,
        started_at=run.started_at,
        updated_at=run.updated_at,
    )


def forks_of(tree: LaneTree) -> list[Fork]:
    """Return the branches that leave the shown one, in the order in which they were made."""
    on_path = {each.node.node for each in tree.nodes if each.on_path}
    return [
        Fork(
            node=each.node.parent,
            child=each.node.node,
            branch=each.branch,
            label=each.node.label,
            cause="rewound" if each.node.cause == "non_tip_advance" else "first",
        )
        for each in tree.nodes
        if each.node.kind == "step" and not each.on_path and each.node.parent in on_path
        if each.node.parent is not None
    ]


def node_page(ledger: Ledger, ref: str, node: int | None) -> NodePage:
    """Return what held at a node, or at the head."""
    session = find_session(ledger, ref)
    position = ledger.position(session.session_id, node)
    row, state = position.node, position.state
    return NodePage(
        node=row.node,
        parent=row.parent,
        kind=row.kind,
        created_at=row.created_at,
        activity=state.visit.activity or "",
        pending=pending_line(position.pending, position.plan.scope(state.variables)),
        mode=mode_of(state.terms.preferences),
        variables=dict(state.variables),
        gaps=state.gaps.newest,
    )


def fork_text(ledger: Ledger, session_id: str, node: int) -> ForkText:
    """Return a sentence for a chat that leads an agent to a node; what was done after it stays as it is."""
    session = find_session(ledger, session_id)
    ledger.position(session.session_id, node)  # which must exist
    token = ledger.mint("st", handle_of(ledger, session.session_id), node)
    return ForkText(
        f"Go back to node {node} of the workflow session {ref_of(session.session_id)} and take another way "
        f"from there: call continue_workflow with stateToken {token} and without an ackToken, then work on "
        "from the step that it returns. What was done after that node stays on its own branch."
    )


def events_page(
    ledger: Ledger, ref: str, before: int | None, kinds: tuple[str, ...], text: str = ""
) -> EventsPage:
    """Return the events before an index, newest first; with a filter, those that match among the next."""
    session = find_session(ledger, ref)
    total = session.head_index + 1
    end = total if before is None else min(before, total)
    is_filtered = bool(kinds or text)
    start = max(end - (LOOKED_AT if is_filtered else MOST_EVENTS), 0)
    lines = event_lines(ledger, session.session_id, kinds, start=start, end=end)
    rows = [
        EventRow(
            line.index,
            line.kind,
            line.at,
            line.run,
            line.node,
            line.principal,
            line.summary(ledger.owner),
            dict(line.event),
        )
        for line in reversed(lines)
    ]
    matched = tuple(row for row in rows if text.casefold() in f"{row.kind} {row.summary}".casefold())
    return EventsPage(session.session_id, total, start, EVENT_KINDS, matched)
