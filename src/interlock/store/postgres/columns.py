"""Columns and INSERTs of each table: columns carry the names of the row structs' fields, in their order."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import fields

from interlock.store.protocol import (
    BlockedRow,
    CommitRow,
    HandleRow,
    ModeRow,
    NodeRow,
    RunRow,
    SearchRow,
    SessionRow,
    SettingRow,
    StartRow,
    TombstoneRow,
    TraceRow,
)

TYPES: Mapping[object, str] = {int: "int8", int | None: "int8", bytes: "bytea", bool: "bool"}


def _typed(row: type[Struct]) -> dict[str, str]:
    return {field.name: TYPES.get(field.type, "text") for field in fields(row)}


# Parameters are sent without types and cast in the statement: one prepared statement serves all values.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "sessions": _typed(SessionRow),
    "commits": _typed(CommitRow),
    "nodes": _typed(NodeRow),
    "runs": _typed(RunRow),
    "blocked": _typed(BlockedRow),
    "modes": _typed(ModeRow),
    "handles": _typed(HandleRow),
    "starts": _typed(StartRow),
    "traces": _typed(TraceRow),
    "observations": {"session_id": "text", "key": "text", "value": "text"},
    "contents": {"digest": "text", "body": "bytea"},
    "search": {**_typed(SearchRow), "words": "tsvector"},
    "indexed_outputs": {"session_id": "text", "owner": "text", "number": "int8", "words": "tsvector"},
    "settings": _typed(SettingRow),
    "tombstones": _typed(TombstoneRow),
}


def slots(table: str, used: int = 0) -> str:
    """List the parameters of one row, numbered after those that are used already."""
    kinds = COLUMNS[table].values()
    return ", ".join(f"${number}::{kind}" for number, kind in enumerate(kinds, used + 1))


def insert(table: str) -> str:
    """Write an INSERT of one row."""
    return f"INSERT INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({slots(table)})"


def columns_of(row: type[Struct], *without: str, prefix: str = "") -> str:
    """List the columns of a row; those left out are empty bytes."""
    return ", ".join(
        f"''::bytea AS {name}" if name in without else prefix + name for name in row.__struct_fields__
    )


def _select(row: type[Struct], table: str, *without: str) -> str:
    return f"SELECT {columns_of(row, *without)} FROM {table} "


SESSION = _select(SessionRow, "sessions")
HANDLE = _select(HandleRow, "handles")
RUN = _select(RunRow, "runs")
NODE = _select(NodeRow, "nodes")
LIGHT_NODE = _select(NodeRow, "nodes", "response")
BLOCKED = _select(BlockedRow, "blocked")
LIGHT_BLOCKED = _select(BlockedRow, "blocked", "response")
MODE = _select(ModeRow, "modes")
COMMIT = _select(CommitRow, "commits")
START = _select(StartRow, "starts")
TRACE = _select(TraceRow, "traces")
SEARCH = _select(SearchRow, "search")
SETTING = _select(SettingRow, "settings")
TOMBSTONE = _select(TombstoneRow, "tombstones")
