"""A diagnostic of a file: what validation prints, and why a listed file cannot be used."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from interlock.core.values import Json

Severity = Literal["error", "warning", "info"]


class Diagnostic(Struct, frozen=True):
    """What is wrong, where, and what to do. The file is relative to its source, never an absolute path."""

    code: str
    message: str
    next_action: str
    file: str
    line: int
    column: int
    severity: Severity
    workflow_id: str | None = None
    suggestions: tuple[str, ...] = ()


ABSENT = "IL512"  # there is no such workflow


def located(diagnostic: Diagnostic) -> str:
    """Say what is wrong in which file, with the code that explains it."""
    return f"{diagnostic.file}:{diagnostic.line}: {diagnostic.message} ({diagnostic.code})"


def diagnostic_json(diagnostic: Diagnostic) -> Json:
    """Return all that is known of a diagnostic, for programs."""
    return {
        "file": diagnostic.file,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "fix": diagnostic.next_action,
        "workflowId": diagnostic.workflow_id,
        "suggestions": list(diagnostic.suggestions),
    }


def absence(diagnostic: Diagnostic) -> str:
    """Say that there is no such workflow, and which one is spelled like it."""
    similar = f"; {diagnostic.next_action}" if diagnostic.next_action else "."
    return f"{diagnostic.message[0].upper()}{diagnostic.message[1:]}{similar}"


class Mention(Struct, frozen=True, array_like=True):
    """A workflow that a file names, and where; only a listing of all sources shows whether it exists."""

    workflow: str
    file: str
    line: int
    column: int


def in_reading_order(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    """Return a sort key: by file and location."""
    return diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.code, diagnostic.message
