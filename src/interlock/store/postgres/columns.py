"""Column lists and row readers: columns carry the names of the row structs' fields, in their order."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from interlock.store.protocol import (
    BlockedRow,
    CommitRow,
    HandleRow,
    ModeRow,
    NodeRow,
    RunRow,
    SearchRow,
    SessionRow,
    StartRow,
    TraceRow,
)


def columns_of(row: type[Struct], *without: str, prefix: str = "") -> str:
    """List the columns of a row; those left out are empty bytes."""
    return ", ".join(
        f"''::bytea AS {name}" if name in without else prefix + name for name in row.__struct_fields__
    )


def select(row: type[Struct], table: str, *without: str) -> str:
    return f"SELECT {columns_of(row, *without)} FROM {table} "


SESSION = select(SessionRow, "sessions")
HANDLE = select(HandleRow, "handles")
RUN = select(RunRow, "runs")
NODE = select(NodeRow, "nodes")
LIGHT_NODE = select(NodeRow, "nodes", "response")
BLOCKED = select(BlockedRow, "blocked")
LIGHT_BLOCKED = select(BlockedRow, "blocked", "response")
MODE = select(ModeRow, "modes")
COMMIT = select(CommitRow, "commits")
START = select(StartRow, "starts")
TRACE = select(TraceRow, "traces")
SEARCH = select(SearchRow, "search")

_INTEGERS = frozenset(
    "created_at updated_at head_index next_node head_run head_node visit_index visit_node run tip started_at"
    " node parent depth entries event_index attempt successor recorded_at first last after_index at"
    " indexed_to removed_at number".split()
)


def cast_of(table: str, column: str) -> str:
    """The cast of a parameter: values are sent without types, so that one prepared statement serves all."""
    if (table, column) == ("contents", "digest"):  # a name; everywhere else a digest is bytes
        return "::text"
    if column in _INTEGERS:
        return "::int8"
    return {"keep": "::bool", "words": "::tsvector"}.get(column, "::bytea" if column in _BYTES else "::text")


_BYTES = frozenset(
    "head_digest handle request_id request_digest response_digest response state state_digest outputs kept"
    " preferences digest body".split()
)


def insert(table: str, columns: tuple[str, ...]) -> str:
    """Write an INSERT of one row."""
    slots = ", ".join(f"${number}{cast_of(table, name)}" for number, name in enumerate(columns, 1))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({slots})"


def insert_row(row: type[Struct], table: str) -> str:
    return insert(table, row.__struct_fields__)


Values = tuple[Any, ...]
