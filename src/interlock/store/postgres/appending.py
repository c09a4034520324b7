"""One command as one statement: the head is compared and set, and every other row hangs on that.

The statement depends only on how many rows of each kind there are, so it is prepared once for each shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from interlock.store.portable_sql import MOVED, OF_A_RUN, TABLES, or_set
from interlock.store.postgres.columns import COLUMNS, slots
from interlock.store.postgres.tables import IS_KNOWN
from interlock.store.protocol import Changes

ON_CONFLICT = {
    "runs": or_set("session_id, run", *OF_A_RUN),
    "contents": " ON CONFLICT (digest) DO NOTHING",
}


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
    kinds: tuple[Sequence[Struct], ...] = (
        *([changes.commit], changes.nodes, changes.runs, changes.blocked, changes.modes),
        *(changes.handles, changes.starts, changes.outbox),
    )
    for rows in filter(None, kinds):
        yield TABLES[type(rows[0])], list(map(astuple, rows))
    session_id = changes.session.session_id
    yield "observations", [(session_id, key, value) for key, value in changes.observations.items()]
    # In one order for all commands, so that no two wait for each other.
    yield "contents", sorted(changes.contents.items())


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
        parts.append(f"{table}_ AS ({added}{ON_CONFLICT.get(table, '')})")
    return f"WITH {', '.join(parts)} SELECT 1 FROM head"
