"""The columns of each table with their types, for statements from which PostgreSQL cannot infer them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import fields

from interlock.store.portable_sql import TABLES

TYPES: Mapping[object, str] = {int: "int8", int | None: "int8", bytes: "bytea", bool: "bool"}

# Parameters are sent without types and cast in the statement: one prepared statement serves all values.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    **{
        table: {field.name: TYPES.get(field.type, "text") for field in fields(row)}
        for row, table in TABLES.items()
    },
    "observations": {"session_id": "text", "key": "text", "value": "text"},
    "contents": {"digest": "text", "body": "bytea"},
}


def slots(table: str, used: int = 0) -> str:
    """List the parameters of one row, numbered after those that are used already."""
    kinds = COLUMNS[table].values()
    return ", ".join(f"${number}::{kind}" for number, kind in enumerate(kinds, used + 1))
