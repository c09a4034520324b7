"""One fault in one place: what validation prints, and what a list says about files that cannot be used."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning"]


class Diagnostic(Struct, frozen=True):
    """A fault. The file is named relative to its source, never by an absolute path."""

    code: str
    message: str
    fix: str
    file: str
    line: int
    column: int
    severity: Severity
    workflow_id: str | None = None
    suggestions: tuple[str, ...] = ()


class Mention(Struct, frozen=True, array_like=True):
    """Another workflow that is named in a file, and where; only a list of all can tell whether it exists."""

    workflow: str
    file: str
    line: int
    column: int


def in_reading_order(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    return diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.code, diagnostic.message
