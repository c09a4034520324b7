"""A store with thousands of sessions, made within seconds: rows of a few real ones, copied by the database.

Only what lists read is copied: of the nodes the heads alone, and no words to search for.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from interlock.store.sqlite.schema import FILE

HOUR = 3_600_000
LETTERS = "abcdefghij"
OTHER_VALUES = {
    "session_id": "'sess_0' || letters || substr(session_id, 11)",  # no other id has a 0
    "run_id": "'run_0' || letters || substr(run_id, 10)",
    "handle": "randomblob(length(handle))",
    "title": "title || ', copy ' || number",
    "created_at": f"created_at - number * {HOUR}",
    "unindexed": "0",
    "recent_at": f"updated_at - number * {HOUR}",
}
COPIED = ("nodes", "observations", "handles", "commits", "sessions", "runs")  # the first read the last two
FINISHED = "status LIKE 'complete%'"
WAITING = "awaiting <> ''"
HEADS = " AND (session_id, node) IN (SELECT session_id, head_node FROM sessions)"


def multiply_sessions(folder: Path, copies: int, which: str = FINISHED) -> None:
    """Add copies of sessions of a store that nobody has open, finished ones or others; each an hour older."""
    database = apsw.Connection(str(folder / FILE))
    database.execute("PRAGMA synchronous = OFF")
    letters = "||".join(f"substr('{LETTERS}', number / {power} % 10 + 1, 1)" for power in (1000, 100, 10, 1))
    database.execute(
        "CREATE TEMP TABLE copies AS WITH RECURSIVE counted (number) AS"
        " (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < ?)"
        f" SELECT number, {letters} AS letters FROM counted",
        (copies,),
    )
    chosen = f"WHERE session_id IN (SELECT session_id FROM runs WHERE {which} AND run_id NOT LIKE 'run_0%')"
    with database:
        for table in COPIED:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            other = {**OTHER_VALUES}
            if table == "sessions":
                other["updated_at"] = f"updated_at - number * {HOUR}"
            values = ", ".join(other.get(column, column) for column in columns)
            where = chosen + HEADS if table == "nodes" else chosen
            database.execute(f"INSERT INTO {table} SELECT {values} FROM {table} CROSS JOIN copies {where}")
    database.close()
