"""A workflow's JSON checked before it is saved: syntax, then shape, then references, as loading would.

Whatever is wrong with the text is the answer, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from interlock.authoring.compile.ids import check_id, mounted
from interlock.authoring.compile.steps import compile_steps
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.lint.structure import lint
from interlock.authoring.sources.sources import Source
from interlock.authoring.text.formats import decode, parse_text
from interlock.authoring.text.locations import SourceLocation
from interlock.core.values import Json

_FILE = "workflow.json"
_NOWHERE = Source("configured", Path())


def checked(text: str) -> dict[str, Json]:
    """Say whether the text is a workflow that can be loaded, and what is wrong where."""
    report = Report()
    decoded = decode(_FILE, text.encode(errors="surrogatepass"), report)
    parsed = None if decoded is None else parse_text(_FILE, decoded, "json", report)
    if parsed is not None:
        value, at = parsed.value, SourceLocation(parsed)
        check_id(value.get("id") if isinstance(value, Mapping) else None, "steps", at, report)
        compiled = compile_steps(value, at, report)
        if compiled is not None:
            lint(compiled[0], at, compiled[1])
            mounted(compiled[0], _NOWHERE, at, report)
    issues: list[Json] = []
    suggestions: list[Json] = []
    for diagnostic in report.diagnostics():
        where = f"line {diagnostic.line}, column {diagnostic.column}"
        if diagnostic.severity == "error":
            issues.append(f"{where}: {diagnostic.message}")
            suggestions.append(f"{where}: {diagnostic.next_action}")
        elif diagnostic.severity == "warning":
            suggestions.append(f"{where}: {diagnostic.message}: {diagnostic.next_action}")
    return {"valid": not issues, "issues": issues, "suggestions": suggestions}
