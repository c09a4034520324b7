"""A workflow's JSON checked before it is saved: syntax, then shape, then references, as loading would.

Whatever is wrong with the text is the answer, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from interlock.authoring.compile.ids import check_id, mounted
from interlock.authoring.compile.steps import compile_steps
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.lint.structure import lint
from interlock.authoring.sources.sources import Source
from interlock.authoring.text.formats import decode, parse
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.core.values import Json

_FILE = "workflow.json"
_NOWHERE = Source("configured", Path())


def checked(text: str) -> dict[str, Json]:
    """Say whether the text is a workflow that can be loaded, and what is wrong where."""
    report = Report()
    decoded = decode(_FILE, text.encode(errors="surrogatepass"), report)
    parsed = None if decoded is None else parse(_FILE, decoded, "json", report)
    if parsed is not None:
        _compile(parsed, report)
    diagnostics = report.diagnostics()
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    issues: list[Json] = [_located(error, error.message) for error in errors]
    suggestions: list[Json] = [_located(diagnostic, _advice(diagnostic)) for diagnostic in diagnostics]
    return {"valid": not issues, "issues": issues, "suggestions": suggestions}


def _compile(parsed: Parsed, report: Report) -> None:
    value, at = parsed.value, SourceLocation(parsed)
    check_id(value.get("id") if isinstance(value, Mapping) else None, "steps", at, report)
    made = compile_steps(value, at, report)
    if made is not None:
        lint(made[0], at, made[1])
        mounted(made[0], _NOWHERE, at, report)


def _advice(diagnostic: Diagnostic) -> str:
    return (
        diagnostic.next_action
        if diagnostic.severity == "error"
        else f"{diagnostic.message}: {diagnostic.next_action}"
    )


def _located(diagnostic: Diagnostic, text: str) -> str:
    return f"line {diagnostic.line}, column {diagnostic.column}: {text}"
