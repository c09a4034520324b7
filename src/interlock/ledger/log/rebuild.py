"""Everything that is not an event, built again from events: the proof that the log is the truth (rule 44)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.engine.evolve import evolved
from interlock.core.run.events import RunEvent
from interlock.core.run.state import RunState
from interlock.core.values import TRUNCATED
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.health import intact
from interlock.ledger.log.projection import Rows, projected
from interlock.ledger.log.records import AdvanceRecorded, OutputAppended
from interlock.store.protocol import CommitRow, Reader, Recorded, RunRow, SessionRow, SessionRows


class Answered(Struct, frozen=True):
    """What an attempt was answered about: enough to render the response again."""

    event: AdvanceRecorded
    run: int
    state: RunState
    notes_cut: bool


def recorded_in(rows: Rows) -> list[tuple[int, Recorded]]:
    """Every attempt of a session with the node that it was made on."""
    made = [(node.parent or 0, node) for node in rows.nodes.values() if node.attempt is not None]
    return [*made, *((row.node, row) for row in rows.all_blocked())]


def answered_in(rows: Rows, commits: Iterable[CommitRow]) -> dict[tuple[int, int], Answered]:
    """What each attempt was answered about, by node and attempt."""
    answered: dict[tuple[int, int], Answered] = {}
    for row in commits:
        entries = entries_of(row)
        notes = [entry.event.notes for entry in entries if isinstance(entry.event, OutputAppended)]
        loose = [entry.event for entry in entries if entry.node is None and isinstance(entry.event, RunEvent)]
        for entry in entries:
            if isinstance(entry.event, AdvanceRecorded) and entry.run is not None:
                event = entry.event
                at = event.child if event.outcome == "advanced" and event.child is not None else event.node
                state = evolved(rows.states[at], loose)
                cut = any(text.endswith(TRUNCATED) for text in notes)
                answered[event.node, event.attempt] = Answered(event, entry.run, state, cut)
    return answered


def session_rows(
    rows: Rows, commits: Iterable[CommitRow], responses: Mapping[tuple[int, int], bytes]
) -> SessionRows:
    """All rows of a session with its responses, ready to be written."""
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
    return projected(session_id, commits)


def differences(reader: Reader, rows: Rows) -> Iterator[str]:
    """Say where the stored rows differ from those that the events make."""
    session_id = rows.session.session_id
    stored = reader.session(session_id)
    if stored is None or _bare(stored) != _bare(rows.session):
        yield "session row"
    if reader.runs(session_id) != _with_lagging_tips(rows, reader.runs(session_id)):
        yield "runs"
    if dict(reader.observations(session_id)) != rows.observations:
        yield "observations"
    if reader.modes(session_id) != rows.modes:
        yield "modes"
    yield from _wrong_nodes(reader, rows)
    yield from _wrong_blocked(reader, rows)


def _wrong_nodes(reader: Reader, rows: Rows) -> Iterator[str]:
    """Nodes with their responses, one by one: a long session is never held as a whole."""
    missing = dict(rows.nodes)
    for node in reader.nodes(rows.session.session_id):
        if missing.pop(node.node, None) != replace(node, response=b""):
            yield f"node {node.node}"
        if node.attempt is not None and not intact(node.response, node.response_digest):
            yield f"response to attempt {node.attempt} on node {node.parent}"
    yield from (f"node {number}" for number in missing)


def _wrong_blocked(reader: Reader, rows: Rows) -> Iterator[str]:
    missing = {(row.node, row.attempt): row for row in rows.all_blocked()}
    for row in reader.blocked(rows.session.session_id):
        if missing.pop((row.node, row.attempt), None) != replace(row, response=b""):
            yield f"attempt {row.attempt} on node {row.node}"
        if not intact(row.response, row.response_digest):
            yield f"response to attempt {row.attempt} on node {row.node}"
    yield from (f"attempt {attempt} on node {node}" for node, attempt in missing)


def _with_lagging_tips(rows: Rows, stored: list[RunRow]) -> list[RunRow]:
    """The runs as the events make them; the tip of the head run may lag behind in its row."""
    lagging = {run.run: run.tip for run in stored if run.run == rows.session.head_run}
    return [replace(run, tip=lagging.get(run.run, run.tip)) for run in rows.runs.values()]


def _bare(row: SessionRow) -> SessionRow:
    """A session row without what the user or an import sets beside the log."""
    return replace(row, owner="", keep=False, health="healthy", health_reason="")
