"""Everything that a command needs, in one statement: one round trip and one snapshot, without a lock.

Each part of the union has an order that only the right index gives, because a plan that was cached on empty
tables sees no other difference. Each partitioned table is named as seldom as possible: a cached plan locks
every partition each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from interlock.store.protocol import (
    BlockedRow,
    CommitRow,
    LoadedRows,
    NodeRow,
    Recorded,
    RunRow,
    SessionRow,
)

INTEGERS, TEXTS, BODIES = 13, 12, 6

_SESSION = (
    ("s.created_at", "s.updated_at", "s.head_index", "s.next_node", "s.head_run", "s.head_node"),
    ("s.visit_index", "s.visit_node", "s.keep::int", "r.run", "r.tip", "r.started_at", "r.updated_at"),
    ("s.session_id", "s.owner", "s.title", "s.parent_session", "s.health", "s.health_reason"),
    ("r.run_id", "r.workflow_id", "r.workflow_hash", "r.surface", "r.status", "r.awaiting"),
)
_OF_NODE = ("node", "run", "parent", "depth", "entries", "event_index", "created_at", "attempt")
_RUN_INTEGERS = ("r.run", "r.tip", "r.started_at", "r.updated_at")
_RUN_TEXTS = ("r.run_id", "r.workflow_id", "r.workflow_hash", "r.surface", "r.status", "r.awaiting")
_NODE_BODIES = ("state", "state_digest", "request_digest", "response_digest", "response", "outputs")


def _part(tag: int, integers: Sequence[str], texts: Sequence[str], bodies: Sequence[str], source: str) -> str:
    """One part of the union: its columns, padded to those of all parts."""
    columns = [f"{tag} AS tag"]
    for kind, wanted, width in (
        ("int8", integers, INTEGERS),
        ("text", texts, TEXTS),
        ("bytea", bodies, BODIES),
    ):
        padded = [*wanted, *["NULL"] * (width - len(wanted))]
        columns += [f"({column})::{kind}" for column in padded]
    return f"(SELECT {', '.join(columns)} FROM {source})"


def _statement(key: str, session_source: str, agent: str) -> str:
    """Write the statement; `key` is how it knows the session's id. $2 is the node, $3 the attempt."""
    number = f"coalesce($2::int8, (SELECT head_node FROM sessions WHERE session_id = {key}))"
    asked = "attempt = $3::int8"
    child_bodies = [
        f"CASE WHEN kind = 'note' OR {asked} THEN {name} ELSE '' END"
        for name in _NODE_BODIES
        if name != "response"
    ]
    child_bodies.insert(4, f"CASE WHEN {asked} THEN response ELSE '' END")
    commit = (("first", "last", "recorded_at"), ("key",), ("digest", "body"))
    return " UNION ALL ".join(
        (
            _part(
                0,
                (*_SESSION[0], *_SESSION[1]),
                (*_SESSION[2], *_SESSION[3]),
                ("s.head_digest", f"convert_to({agent}, 'UTF8')"),
                f"{session_source} LEFT JOIN runs AS r ON r.session_id = {key} AND r.run = s.head_run"
                f" WHERE s.session_id = {key}",
            ),
            _part(1, *commit, f"commits WHERE session_id = {key} ORDER BY last DESC LIMIT 2"),
            _part(
                2,
                (*(f"n.{name}" for name in _OF_NODE), *_RUN_INTEGERS),
                ("n.kind", *_RUN_TEXTS),
                tuple("''" if name == "response" else f"n.{name}" for name in _NODE_BODIES),
                f"nodes AS n LEFT JOIN runs AS r ON r.session_id = {key} AND r.run = n.run"
                f" WHERE n.session_id = {key} AND n.node = {number}",
            ),
            _part(
                3,
                _OF_NODE,
                ("kind",),
                child_bodies,
                f"nodes WHERE session_id = {key} AND parent = {number} ORDER BY attempt",
            ),
            _part(
                4,
                ("node", "attempt", "successor", "event_index", "recorded_at"),
                (),
                (
                    "request_digest",
                    "response_digest",
                    f"CASE WHEN {asked} THEN response ELSE '' END",
                    "kept",
                    "outputs",
                ),
                f"blocked WHERE session_id = {key} AND node = {number}",
            ),
            _part(
                5,
                (),
                (),
                ("preferences",),
                f"modes WHERE session_id = {key} AND node = {number} ORDER BY event_index DESC LIMIT 1",
            ),
            _part(
                6,
                *commit,
                f"commits WHERE session_id = {key} AND key >= 'decision:' || {number} || ':'"
                f" AND key < 'decision:' || {number} || ';' ORDER BY key",
            ),
        )
    )


_BY_HANDLE = "(SELECT session_id FROM handles WHERE handle = $1)"
LOAD_BY_ID = _statement("$1", "sessions AS s", "''::text")
LOAD_BY_HANDLE = _statement(
    _BY_HANDLE, "handles AS h JOIN sessions AS s ON s.session_id = h.session_id AND h.handle = $1", "h.agent"
)
# A handle leads to the same session for good, so a process that knows the way names both: a plan that gets
# the id as a parameter looks into one partition, one that has to find it opens all of them.
LOAD_BY_BOTH = _statement(
    "$1", "handles AS h JOIN sessions AS s ON s.session_id = h.session_id AND h.handle = $4", "h.agent"
)

_I, _T, _B = 1, 1 + INTEGERS, 1 + INTEGERS + TEXTS  # where the columns of each kind begin


def loaded_rows(rows: Sequence[Sequence[Any]], attempt: int | None) -> LoadedRows | None:
    """Put the parts of the union together."""
    parts: dict[int, list[Sequence[Any]]] = {}
    for row in rows:
        parts.setdefault(row[0], []).append(row)
    if 0 not in parts:
        return None
    head = parts[0][0]
    session = _session(head)
    session_id = session.session_id
    newest = sorted((_commit(session_id, row) for row in parts.get(1, ())), key=_last, reverse=True)
    last = newest[0] if newest else None
    previous = newest[1].digest if len(newest) > 1 else bytes(32)
    agent = head[_B + 1].decode()
    loaded = LoadedRows(session=session, agent=agent, last=last, previous_digest=previous)
    if 2 not in parts:
        return loaded
    row = parts[2][0]
    node = _node(session_id, row)
    children = sorted((_node(session_id, child) for child in parts.get(3, ())), key=lambda child: child.node)
    blocked = sorted(
        (_blocked(session_id, row) for row in parts.get(4, ())), key=lambda blocked: blocked.event_index
    )
    steps = [child for child in children if child.kind == "step"]
    beside = [child.node for child in steps if child.attempt is None]
    recorded: Recorded | None = None
    if attempt is not None:
        made: list[Recorded] = [*children, *blocked]
        recorded = next((row for row in made if row.attempt == attempt), None)
    elsewhere = session.head_run is not None and session.head_run != node.run
    return replace(
        loaded,
        head_run=_run(session_id, head, 9, 6) if elsewhere else None,
        node=node,
        run=_run(session_id, row, 8, 1),
        recorded=recorded,
        blocked=[replace(row, response=b"") for row in blocked],
        notes=[replace(child, response=b"") for child in children if child.kind == "note"],
        branches=len(steps),
        carried_to=beside[-1] if beside else None,
        mode=parts[5][0][_B] if 5 in parts else None,
        decisions=sorted((_commit(session_id, row) for row in parts.get(6, ())), key=_last),
    )


def _last(commit: CommitRow) -> int:
    return commit.last


def _session(row: Sequence[Any]) -> SessionRow:
    created_at, updated_at, head_index, next_node, head_run, head_node, visit_index, visit_node, keep = row[
        _I : _I + 9
    ]
    session_id, owner, title, parent_session, health, health_reason = row[_T : _T + 6]
    return SessionRow(
        session_id,
        owner,
        title,
        created_at,
        updated_at,
        head_index,
        row[_B],
        next_node,
        head_run,
        head_node,
        visit_index,
        visit_node,
        parent_session,
        health,
        health_reason,
        bool(keep),
    )


def _run(session_id: str, row: Sequence[Any], integers: int, texts: int) -> RunRow | None:
    """The run that lies beside a session or a node in the same row."""
    run, tip, started_at, updated_at = row[_I + integers : _I + integers + 4]
    if run is None:
        return None
    run_id, workflow_id, workflow_hash, surface, status, awaiting = row[_T + texts : _T + texts + 6]
    return RunRow(
        session_id,
        run,
        run_id,
        workflow_id,
        workflow_hash,
        surface,
        status,
        tip,
        started_at,
        updated_at,
        awaiting,
    )


def _node(session_id: str, row: Sequence[Any]) -> NodeRow:
    node, run, parent, depth, entries, event_index, created_at, attempt = row[_I : _I + 8]
    state, state_digest, request_digest, response_digest, response, outputs = row[_B : _B + 6]
    return NodeRow(
        session_id,
        node,
        run,
        parent,
        row[_T],
        depth,
        entries,
        state,
        state_digest,
        event_index,
        created_at,
        attempt,
        request_digest,
        response_digest,
        response,
        outputs,
    )


def _blocked(session_id: str, row: Sequence[Any]) -> BlockedRow:
    return BlockedRow(session_id, *row[_I : _I + 5], *row[_B : _B + 5])


def _commit(session_id: str, row: Sequence[Any]) -> CommitRow:
    first, last, recorded_at = row[_I : _I + 3]
    return CommitRow(session_id, first, last, recorded_at, row[_B], row[_B + 1], row[_T])
