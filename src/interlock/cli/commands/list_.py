"""`interlock list`: what can be run, and what could not be loaded."""

from __future__ import annotations

import click

from interlock.authoring.library import Diagnostic, Listed, Listing
from interlock.cli.compose import library_of
from interlock.cli.options import config_of, data_options, json_option, print_json
from interlock.cli.screen import line_of, say, table, talk
from interlock.core.values import Json


@click.command(epilog="Example: interlock list --workflows ./flows")
@click.option("--all", "everything", is_flag=True, help="Also those that agents do not see listed.")
@data_options
@json_option
def command(
    data_dir: str | None, project: str | None, workflows: tuple[str, ...], everything: bool, as_json: bool
) -> None:
    """List the workflows that can be run."""
    listing = library_of(config_of(data_dir, project, workflows)).listing()
    entries = [one for one in listing.entries if everything or not one.hidden]
    if as_json:
        problems = [_problem(diagnostic) for diagnostic in _errors(listing)]
        print_json({"workflows": [_fields(one) for one in entries], "problems": problems})
        return
    _show(entries)
    for diagnostic in _errors(listing):
        talk(f"{diagnostic.file}:{diagnostic.line}: {diagnostic.message}")
    if _errors(listing):
        talk("Run `interlock validate PATH` for every fault in a file.")


def _fields(entry: Listed) -> dict[str, Json]:
    return {
        "workflowId": entry.id,
        "name": entry.name,
        "description": entry.description,
        "version": entry.version,
        "kind": entry.kind,
        "form": entry.form,
        "category": entry.category,
        "tags": list(entry.tags),
        "source": entry.source,
        "workflowHash": entry.hash,
        "idStatus": entry.id_status,
        "suggestedId": entry.suggested_id,
    }


def _problem(diagnostic: Diagnostic) -> Json:
    return {
        "code": diagnostic.code,
        "message": diagnostic.message,
        "fix": diagnostic.next_action,
        "file": diagnostic.file,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "severity": diagnostic.severity,
        "workflow_id": diagnostic.workflow_id,
        "suggestions": list(diagnostic.suggestions),
    }


def _show(entries: list[Listed]) -> None:
    if not entries:
        say("No workflows are available.")
    rows = [(one.id, line_of(one.description or one.name)) for one in entries]
    table(rows, [("accent", "plain")] * len(rows))


def _errors(listing: Listing) -> list[Diagnostic]:
    return [one for one in listing.diagnostics if one.severity == "error"]
