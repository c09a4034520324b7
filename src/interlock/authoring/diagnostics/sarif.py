"""Diagnostics as SARIF 2.1.0, which code scanning tools and editors read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from interlock import __version__
from interlock.authoring.diagnostics.codes import CODES
from interlock.authoring.diagnostics.diagnostic import Diagnostic, Severity
from interlock.core.values import Json

LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_of(diagnostics: Sequence[Diagnostic]) -> dict[str, Json]:
    """Return one run with a result per diagnostic; files are named as `validate` prints them."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    rules: list[Json] = [
        {
            "id": code,
            "name": CODES[code].title,
            "shortDescription": {"text": CODES[code].title},
            "fullDescription": {"text": CODES[code].explanation},
            "help": {"text": CODES[code].next_action},
            "defaultConfiguration": {"level": LEVELS[CODES[code].severity]},
        }
        for code in codes
    ]
    results: list[Json] = [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in diagnostics]
    driver: Json = {"name": "interlock", "version": __version__, "rules": rules}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(diagnostic: Diagnostic, rule: int) -> Json:
    next_action = f" Fix: {diagnostic.next_action}." if diagnostic.next_action else ""
    region: Json = {"startLine": diagnostic.line, "startColumn": diagnostic.column}
    location: Json = {"artifactLocation": {"uri": quote(diagnostic.file)}, "region": region}
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": LEVELS[diagnostic.severity],
        "message": {"text": f"{diagnostic.message}.{next_action}"},
        "locations": [{"physicalLocation": location}],
    }
