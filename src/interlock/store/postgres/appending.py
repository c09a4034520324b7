"""One command as one statement: the head is compared and set, and every other row hangs on that.

The statement depends only on how many rows of each kind there are, so it is prepared once for each shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec.structs import astuple

from interlock.store.postgres.columns import COLUMNS, slots
from interlock.store.postgres.tables import IS_KNOWN
from interlock.store.protocol import Changes

MOVED = (
    "title",
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
    " updated_at = excluded.updated_at, awaiting = excluded.awaiting,"
    " late_notes = excluded.late_notes, declined = excluded.declined, polls = excluded.polls"
)
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
    yield "outbox", [astuple(row) for row in changes.outbox]
    session_id = changes.session.session_id
    yield "observations", [(session_id, key, value) for key, value in changes.observations.items()]
    yield (
        "contents",
        sorted(changes.contents.items()),
    )  # one order for all, so that no two wait for each other


@lru_cache(maxsize=256)
def _sql(new: bool, counts: tuple[tuple[str, int], ...]) -> str:
    kinds = COLUMNS["sessions"]
    if new:
        head = f"INSERT INTO sessions ({', '.join(kinds)}) SELECT {slots('sessions')} WHERE {IS_KNOWN}"
        used = len(kinds)
    else:
        moved = ", ".join(f"{name} = ${number}::{kinds[name]}" for number, name in enumerate(MOVED, 3))
        head = (
            f"UPDATE sessions SET {moved}, unindexed = true"
            f" WHERE session_id = $1 AND head_digest = $2 AND {IS_KNOWN}"
        )
        used = 2 + len(MOVED)
    parts = [f"head AS ({head} RETURNING session_id)"]
    for table, count in counts:
        columns, rows = COLUMNS[table], list[str]()
        for _ in range(count):
            rows.append(f"SELECT {slots(table, used)} FROM head")
            used += len(columns)
        added = f"INSERT INTO {table} ({', '.join(columns)}) {' UNION ALL '.join(rows)}"
        parts.append(f"{table}_ AS ({added} {ON_CONFLICT.get(table, '')})")
    return f"WITH {', '.join(parts)} SELECT 1 FROM head"
