"""Everything that a command needs, in one statement: one round trip and one snapshot, without a lock.

It is a union of parts, whose columns are grouped by type and padded to the widest part. Each part has an
order that only the right index gives: a plan that was cached on empty tables sees no other difference. Each
partitioned table is named as seldom as possible: a cached plan locks every partition each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, count
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlock.store.postgres.columns import COLUMNS
from interlock.store.protocol import (
    BlockedRow,
    CommitRow,
    LoadedRows,
    NodeRow,
    Recorded,
    RunRow,
    SessionRow,
    with_attempts,
)

Column: TypeAlias = tuple[str, str]  # an expression and its type


def _columns(table: str, prefix: str = "", **written: str) -> list[Column]:
    """Return a table's columns but the session's id; those that are named are written as given."""
    columns = COLUMNS[table].items()
    return [(written.get(name, prefix + name), kind) for name, kind in columns if name != "session_id"]


ASKED = "attempt = $3::int8"  # the attempt that may have been made before
NOT_OF_STEPS = ("state", "state_digest", "request_digest", "response_digest", "outputs")

SESSION = [("s.session_id", "text"), *_columns("sessions", "s.")]
AGENT = [("h.agent", "text")]
RUN = _columns("runs", "r.")
NODE = _columns("nodes", "n.", response="''")
CHILD = _columns(
    "nodes",
    **{name: f"CASE WHEN kind = 'note' OR {ASKED} THEN {name} ELSE '' END" for name in NOT_OF_STEPS},
    response=f"CASE WHEN {ASKED} THEN response ELSE '' END",
)
BLOCKED = _columns("blocked", response=f"CASE WHEN {ASKED} THEN response ELSE '' END")
COMMIT = _columns("commits")

PARTS = ([*SESSION, *AGENT, *RUN], COMMIT, [*NODE, *RUN], CHILD, BLOCKED, [("preferences", "bytea")], COMMIT)
WIDTHS = {
    kind: max(sum(kind == other for _, other in part) for part in PARTS)
    for kind in ("int8", "text", "bytea", "bool")
}


def _statement(key: str, session_source: str) -> str:
    """Write the statement; `key` is how it knows the session's id. $2 is the node, $3 the attempt."""
    number = f"coalesce($2::int8, (SELECT head_node FROM sessions WHERE session_id = {key}))"
    sources = (
        f"{session_source} LEFT JOIN runs AS r ON r.session_id = {key} AND r.run = s.head_run"
        f" WHERE s.session_id = {key}",
        f"commits WHERE session_id = {key} ORDER BY last DESC LIMIT 2",
        f"nodes AS n LEFT JOIN runs AS r ON r.session_id = {key} AND r.run = n.run"
        f" WHERE n.session_id = {key} AND n.node = {number}",
        f"nodes WHERE session_id = {key} AND parent = {number} ORDER BY attempt",
        f"blocked WHERE session_id = {key} AND node = {number}",
        f"modes WHERE session_id = {key} AND node = {number} ORDER BY event_index DESC LIMIT 1",
        f"commits WHERE session_id = {key} AND key >= 'decision:' || {number} || ':'"
        f" AND key < 'decision:' || {number} || ';' ORDER BY key",
    )
    parts: list[str] = []
    for tag, source in enumerate(sources):
        columns = [f"{tag} AS tag"]
        for kind, width in WIDTHS.items():
            own = [expression for expression, other in PARTS[tag] if other == kind]
            columns += [f"({expression})::{kind}" for expression in (*own, *["NULL"] * (width - len(own)))]
        parts.append(f"(SELECT {', '.join(columns)} FROM {source})")
    return " UNION ALL ".join(parts)


_BY_HANDLE = "handles AS h JOIN sessions AS s ON s.session_id = h.session_id AND h.handle = "
LOAD_BY_ID = _statement("$1", "(SELECT ''::text AS agent) AS h CROSS JOIN sessions AS s")
LOAD_BY_HANDLE = _statement("(SELECT session_id FROM handles WHERE handle = $1)", _BY_HANDLE + "$1")
# A handle leads to the same session for good, so a process that knows the way names both: a plan that gets
# the id as a parameter looks into one partition, one that has to find it opens all of them.
LOAD_BY_BOTH = _statement("$1", _BY_HANDLE + "$4")


def _picked(tag: int, columns: Sequence[Column], after: int = 0) -> Callable[[Sequence[Any]], Any]:
    """Return what picks these columns, in their order, from a row of a part."""
    begins = accumulate(WIDTHS.values(), initial=1)
    free = {kind: count(begin) for kind, begin in zip(WIDTHS, begins, strict=False)}
    places = [next(free[kind]) for _, kind in PARTS[tag]]
    return itemgetter(*places[after : after + len(columns)])


_OF_SESSION = _picked(0, SESSION)
_AGENT = _picked(0, AGENT, len(SESSION))
_HEAD_RUN = _picked(0, RUN, len(SESSION) + len(AGENT))
_OF_COMMIT = _picked(1, COMMIT)
_OF_NODE = _picked(2, NODE)
_ITS_RUN = _picked(2, RUN, len(NODE))
_OF_BLOCKED = _picked(4, BLOCKED)
_PREFERENCES = _picked(5, PARTS[5])


def loaded_rows(rows: Sequence[Sequence[Any]], attempt: int | None) -> LoadedRows | None:
    """Put the parts of the union together."""
    parts: tuple[list[Sequence[Any]], ...] = tuple([] for _ in PARTS)
    for row in rows:
        parts[row[0]].append(row)
    heads, commits, nodes, child_rows, blocked_rows, modes, decided = parts
    if not heads:
        return None
    session = SessionRow(*_OF_SESSION(heads[0]))
    session_id = session.session_id

    def in_order(found: list[Sequence[Any]]) -> list[CommitRow]:
        return sorted((CommitRow(session_id, *_OF_COMMIT(row)) for row in found), key=attrgetter("last"))

    last = in_order(commits)
    loaded = LoadedRows(
        session=session,
        agent=_AGENT(heads[0]),
        last=last[-1] if last else None,
        previous_digest=last[-2].digest if len(last) > 1 else bytes(32),
    )
    if not nodes:
        return loaded
    node = NodeRow(session_id, *_OF_NODE(nodes[0]))
    children = sorted((NodeRow(session_id, *_OF_NODE(row)) for row in child_rows), key=attrgetter("node"))
    blocked = sorted(
        (BlockedRow(session_id, *_OF_BLOCKED(row)) for row in blocked_rows), key=attrgetter("event_index")
    )
    recorded: Recorded | None = None
    if attempt is not None:
        made: list[Recorded] = [*children, *blocked]
        recorded = next((row for row in made if row.attempt == attempt), None)
    elsewhere = session.head_run is not None and session.head_run != node.run
    loaded = replace(
        loaded,
        head_run=_run(session_id, _HEAD_RUN(heads[0])) if elsewhere else None,
        node=node,
        run=_run(session_id, _ITS_RUN(nodes[0])),
        recorded=recorded,
        mode=_PREFERENCES(modes[0]) if modes else None,
    )
    light = [replace(child, response=b"") for child in children]
    return with_attempts(loaded, light, [replace(row, response=b"") for row in blocked], in_order(decided))


def _run(session_id: str, columns: Sequence[Any]) -> RunRow | None:
    return None if columns[0] is None else RunRow(session_id, *columns)
