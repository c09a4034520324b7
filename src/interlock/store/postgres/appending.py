"""One command as one statement: the head is compared and set, and every other row hangs on that.

The statement depends only on how many rows of each kind there are, so it is prepared once for each shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec.structs import astuple

from interlock.store.postgres.columns import cast_of
from interlock.store.protocol import (
    BlockedRow,
    Changes,
    CommitRow,
    HandleRow,
    ModeRow,
    NodeRow,
    RunRow,
    SessionRow,
    StartRow,
)

MOVED = (
    "updated_at",
    "head_index",
    "head_digest",
    "next_node",
    "head_run",
    "head_node",
    "visit_index",
    "visit_node",
)
SET_RUN = (
    "ON CONFLICT (session_id, run) DO UPDATE SET status = excluded.status, tip = excluded.tip,"
    " updated_at = excluded.updated_at, awaiting = excluded.awaiting"
)
COLUMNS: dict[str, tuple[str, ...]] = {
    "commits": CommitRow.__struct_fields__,
    "nodes": NodeRow.__struct_fields__,
    "runs": RunRow.__struct_fields__,
    "blocked": BlockedRow.__struct_fields__,
    "modes": ModeRow.__struct_fields__,
    "handles": HandleRow.__struct_fields__,
    "starts": StartRow.__struct_fields__,
    "observations": ("session_id", "key", "value"),
    "contents": ("digest", "body"),
}
ON_CONFLICT = {"runs": SET_RUN, "contents": "ON CONFLICT (digest) DO NOTHING"}


def append_statement(changes: Changes) -> tuple[str, list[Any]]:
    """Return the statement that stores a command and its parameters; it returns a row if the head matched."""
    session = changes.session
    if changes.before is None:
        values = list(astuple(session))
    else:
        values = [session.session_id, changes.before, *(getattr(session, name) for name in MOVED)]
    counts: list[tuple[str, int]] = []
    for table, rows in _rows(changes):
        if rows:
            counts.append((table, len(rows)))
            for row in rows:
                values += row
    return _sql(changes.before is None, tuple(counts)), values


def _rows(changes: Changes) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    yield "commits", [astuple(changes.commit)]
    yield "nodes", [astuple(row) for row in changes.nodes]
    yield "runs", [astuple(row) for row in changes.runs]
    yield "blocked", [astuple(row) for row in changes.blocked]
    yield "modes", [astuple(row) for row in changes.modes]
    yield "handles", [astuple(row) for row in changes.handles]
    yield "starts", [astuple(row) for row in changes.starts]
    session_id = changes.session.session_id
    yield "observations", [(session_id, key, value) for key, value in changes.observations.items()]
    yield (
        "contents",
        sorted(changes.contents.items()),
    )  # one order for all, so that no two wait for each other


@lru_cache(maxsize=256)
def _sql(new: bool, counts: tuple[tuple[str, int], ...]) -> str:
    if new:
        fields = SessionRow.__struct_fields__
        slots = ", ".join(f"${number}{cast_of('sessions', name)}" for number, name in enumerate(fields, 1))
        head = f"INSERT INTO sessions ({', '.join(fields)}) VALUES ({slots}) RETURNING session_id"
        used = len(fields)
    else:
        moved = ", ".join(
            f"{name} = ${number}{cast_of('sessions', name)}" for number, name in enumerate(MOVED, 3)
        )
        head = (
            f"UPDATE sessions SET {moved}, unindexed = true"
            " WHERE session_id = $1 AND head_digest = $2 RETURNING session_id"
        )
        used = 2 + len(MOVED)
    parts = [f"head AS ({head})"]
    for table, count in counts:
        columns = COLUMNS[table]
        rows = []
        for _ in range(count):
            slots = ", ".join(f"${used + n}{cast_of(table, name)}" for n, name in enumerate(columns, 1))
            rows.append(f"SELECT {slots} FROM head")
            used += len(columns)
        insert = f"INSERT INTO {table} ({', '.join(columns)}) {' UNION ALL '.join(rows)}"
        parts.append(f"{table}_ AS ({insert} {ON_CONFLICT.get(table, '')})")
    return f"WITH {', '.join(parts)} SELECT 1 FROM head"
