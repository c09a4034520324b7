"""`interlock explain CODE`: what a diagnostic means, why it matters, and how it is usually fixed."""

from __future__ import annotations

import click

from interlock.authoring.diagnostics.codes import CODES, DiagnosticKind, did_you_mean
from interlock.cli.commands.workflows.validate_ import SEVERITY_TONES
from interlock.cli.options import json_option
from interlock.cli.screen import NOT_FOUND, paint, paragraph, print_json, say, stop, table
from interlock.core.values import Json


@click.command(epilog="Example: interlock explain IL503")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """Explain a diagnostic code, or list all codes."""
    if code is None:
        kinds = list(CODES.values())
        if as_json:
            print_json({"codes": [_fields(kind) for kind in kinds]})
        else:
            rows = [(kind.code, kind.severity, kind.title) for kind in kinds]
            table(rows, [("strong", SEVERITY_TONES[kind.severity], "plain") for kind in kinds])
        return
    if code.upper() not in CODES:
        next_action = did_you_mean(code.upper(), CODES) or "`interlock explain` lists all of them"
        stop(NOT_FOUND, f"There is no code {code}; {next_action}.")
    kind = CODES[code.upper()]
    if as_json:
        print_json(_fields(kind))
        return
    say(f"{paint(kind.code, 'strong')} {kind.title} ({paint(kind.severity, SEVERITY_TONES[kind.severity])})")
    say()
    say(paragraph(kind.explanation))
    say(paragraph(f"Fix: {kind.next_action}"))


def _fields(kind: DiagnosticKind) -> Json:
    return {
        "code": kind.code,
        "title": kind.title,
        "severity": kind.severity,
        "explanation": kind.explanation,
        "fix": kind.next_action,
    }
