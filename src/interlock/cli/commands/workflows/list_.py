"""`interlock list`: the workflows that can be run, and the files that cannot be used."""

from __future__ import annotations

import click

from interlock.authoring.diagnostics.diagnostic import diagnostic_json
from interlock.cli.compose import library_of
from interlock.cli.config import Config
from interlock.cli.options import json_option, with_config
from interlock.cli.screen import inform, line_of, print_json, say, table
from interlock.core.values import Json


@click.command(epilog="Example: interlock list --workflows ./flows")
@click.option("--all", "with_hidden", is_flag=True, help="Include workflows that are hidden from agents.")
@json_option
@with_config
def command(config: Config, with_hidden: bool, as_json: bool) -> None:
    """List the workflows that can be run."""
    listing = library_of(config).listing()
    entries = [entry for entry in listing.entries if with_hidden or not entry.hidden]
    errors = [diagnostic for diagnostic in listing.diagnostics if diagnostic.severity == "error"]
    if as_json:
        usable: list[Json] = [
            {
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
            for entry in entries
        ]
        problems = list(map(diagnostic_json, errors))
        shadowed: list[Json] = [
            {
                "workflowId": workflow.workflow_id,
                "source": workflow.source,
                "file": workflow.file,
                "shadowedBy": {"source": workflow.by_source, "file": workflow.by_file},
            }
            for workflow in listing.shadowed
        ]
        print_json({"workflows": usable, "problems": problems, "shadowed": shadowed})
        return
    if not entries:
        say("No workflows are available.")
    rows = [(entry.id, line_of(entry.description or entry.name)) for entry in entries]
    table(rows, [("accent", "plain")] * len(rows))
    for error in errors:
        inform(f"{error.file}:{error.line}: {error.message}")
    for workflow in listing.shadowed:
        inform(workflow.message)
    if errors:
        inform("Run `interlock validate PATH` to see every error in a file.")
