"""All rows of a session built again from its events, and compared with the stored ones (rule 44)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.engine.evolve import evolved
from interlock.core.run.events import RunEvent
from interlock.core.run.state import RunState
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.health import intact, start_digest
from interlock.ledger.log.projection import Rows
from interlock.ledger.log.records import AdvanceRecorded
from interlock.store.protocol import CommitRow, Reader, Recorded, SessionRow, SessionRows


class Answered(Struct, frozen=True):
    """What an attempt was answered about: enough to render the response again."""

    event: AdvanceRecorded
    run: int
    state: RunState


def recorded_in(rows: Rows) -> list[tuple[int, Recorded]]:
    """Return every attempt of a session with the node that it was made on."""
    made = [(node.parent or 0, node) for node in rows.nodes.values() if node.attempt is not None]
    return [*made, *((row.node, row) for row in rows.all_blocked())]


def answered_in(rows: Rows, commits: Iterable[CommitRow]) -> dict[tuple[int, int], Answered]:
    """Return what each attempt was answered about, by node and attempt."""
    answered: dict[tuple[int, int], Answered] = {}
    for row in commits:
        entries = entries_of(row)
        loose = [entry.event for entry in entries if entry.node is None and isinstance(entry.event, RunEvent)]
        for entry in entries:
            if isinstance(entry.event, AdvanceRecorded) and entry.run is not None:
                event = entry.event
                node = event.child if event.outcome == "advanced" and event.child is not None else event.node
                state = evolved(rows.states[node], loose)
                answered[event.node, event.attempt] = Answered(event, entry.run, state)
    return answered


def session_rows(
    rows: Rows, commits: Iterable[CommitRow], responses: Mapping[tuple[int, int], bytes]
) -> SessionRows:
    """Return all rows of a session with its responses, ready to be written."""
    return SessionRows(
        session=rows.session,
        commits=list(commits),
        runs=list(rows.runs.values()),
        nodes=[
            node
            if node.attempt is None
            else replace(node, response=responses.get((node.parent or 0, node.attempt), b""))
            for node in rows.nodes.values()
        ],
        blocked=[
            replace(row, response=responses.get((row.node, row.attempt), b"")) for row in rows.all_blocked()
        ],
        modes=rows.modes,
        observations=rows.observations,
    )


def rebuild(session_id: str, commits: Iterable[CommitRow]) -> Rows:
    """Fold a session's commits, oldest first, into its rows."""
    rows = Rows.empty(session_id)
    for commit in commits:
        rows.apply_commit(commit)
    return rows


def differences(reader: Reader, rows: Rows) -> Iterator[str]:
    """Yield where the stored rows differ from those that the events make.

    Nodes and attempts are compared one by one, so that a long session is never read as a whole.
    """
    session_id = rows.session.session_id
    session, runs = reader.session(session_id), reader.runs(session_id)
    if session is None or _bare(session) != _bare(rows.session):
        yield "session row"
    # The tip of the head run may lag behind in its row.
    lagging = {run.run: run.tip for run in runs if run.run == rows.session.head_run}
    if runs != [replace(run, tip=lagging.get(run.run, run.tip)) for run in rows.runs.values()]:
        yield "runs"
    if dict(reader.observations(session_id)) != rows.observations:
        yield "observations"
    if reader.modes(session_id) != rows.modes:
        yield "modes"
    nodes = dict(rows.nodes)
    for node in reader.nodes(session_id):
        if nodes.pop(node.node, None) != replace(node, response=b""):
            yield f"node {node.node}"
        if node.attempt is not None and not intact(node.response, node.response_digest):
            yield f"response to attempt {node.attempt} on node {node.parent}"
    yield from (f"node {number}" for number in nodes)
    attempts = {(row.node, row.attempt): row for row in rows.all_blocked()}
    for row in reader.blocked(session_id):
        if attempts.pop((row.node, row.attempt), None) != replace(row, response=b""):
            yield f"attempt {row.attempt} on node {row.node}"
        if not intact(row.response, row.response_digest):
            yield f"response to attempt {row.attempt} on node {row.node}"
    yield from (f"attempt {attempt} on node {node}" for node, attempt in attempts)
    yield from ("answer of its start" for row in reader.starts(session_id) if row.digest != start_digest(row))


def _bare(row: SessionRow) -> SessionRow:
    """Return a session row without what is set outside the log."""
    return replace(row, keep=False, health="healthy", health_reason="")
