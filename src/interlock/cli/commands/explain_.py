"""`interlock explain CODE`: what a diagnostic means, why it matters, and what usually mends it."""

from __future__ import annotations

import click

from interlock.authoring.diagnostics.codes import CODES, DiagnosticKind, did_you_mean
from interlock.cli.commands.validate_ import SEVERITY_TONES
from interlock.cli.exits import NOT_FOUND
from interlock.cli.options import json_option, print_json
from interlock.cli.screen import paint, paragraph, say, stop, table
from interlock.core.values import Json


@click.command(epilog="Example: interlock explain IL503")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """Explain a diagnostic code; without one, list them all."""
    if code is None:
        _list(as_json)
        return
    found = CODES.get(code.upper())
    if found is None:
        hint = did_you_mean(code.upper(), CODES) or "`interlock explain` lists all of them"
        stop(NOT_FOUND, f"there is no code {code}; {hint}.")
    if as_json:
        print_json(_fields(found))
        return
    _show(found)


def _list(as_json: bool) -> None:
    if as_json:
        print_json([_fields(kind) for kind in CODES.values()])
        return
    rows = [(one.code, one.severity, one.title) for one in CODES.values()]
    table(rows, [("strong", SEVERITY_TONES[one.severity], "plain") for one in CODES.values()])


def _fields(kind: DiagnosticKind) -> Json:
    return {
        "code": kind.code,
        "title": kind.title,
        "severity": kind.severity,
        "explanation": kind.explanation,
        "fix": kind.next_action,
    }


def _show(found: DiagnosticKind) -> None:
    severity = paint(found.severity, SEVERITY_TONES[found.severity])
    say(f"{paint(found.code, 'strong')} {found.title} ({severity})")
    say()
    say(paragraph(found.explanation))
    say(paragraph(f"Fix: {found.next_action}"))
