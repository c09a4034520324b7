"""The columns of each table with their types, for statements from which PostgreSQL cannot infer them."""

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
    OutboxRow,
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
    "outbox": _typed(OutboxRow),
}


def slots(table: str, used: int = 0) -> str:
    """List the parameters of one row, numbered after those that are used already."""
    kinds = COLUMNS[table].values()
    return ", ".join(f"${number}::{kind}" for number, kind in enumerate(kinds, used + 1))
