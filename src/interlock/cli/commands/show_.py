"""`interlock show ID`: what a workflow is for, and what its run will ask."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from interlock.authoring.library import Diagnostic, Loaded
from interlock.cli.compose import library_of
from interlock.cli.exits import NOT_FOUND
from interlock.cli.options import config_of, data_options, json_option
from interlock.cli.reach import workflow_argument
from interlock.cli.screen import fit, line_of, paint, paragraph, say, stop, talk, width
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow
from interlock.surfaces.execution.catalogue import described


@click.command(epilog="Example: interlock show wr.small_task")
@workflow_argument
@data_options
@json_option
def command(
    data_dir: str | None, project: str | None, workflows: tuple[str, ...], workflow_id: str, as_json: bool
) -> None:
    """Show a workflow: its steps, loops and decisions."""
    loaded = library_of(config_of(data_dir, project, workflows)).load(workflow_id)
    if isinstance(loaded, Diagnostic):
        stop(NOT_FOUND, f"{loaded.message}; {loaded.next_action or 'see `interlock list`'}.")
    if as_json:
        body = msgspec.json.encode(described(loaded, "preview").structured)
        click.echo(msgspec.json.format(body, indent=2).decode())
        return
    _show(loaded)


def _show(loaded: Loaded) -> None:
    workflow = loaded.workflow
    say(f"{paint(line_of(workflow.name), 'strong')}  {paint(f'{workflow.id} {workflow.version}', 'quiet')}")
    say(paragraph(workflow.description))
    for heading, lines in _guidance(workflow):
        say()
        say(paint(heading, "strong"))
        for line in lines:
            say(_bulleted(line))
    say()
    for line in _outline(workflow):
        say(fit(line, width()))
    for diagnostic in loaded.diagnostics:
        talk(f"{diagnostic.file}:{diagnostic.line}: {diagnostic.message}")


def _bulleted(line: str) -> str:
    return f"- {paragraph(line, '  ')[2:]}"


def _guidance(workflow: Workflow) -> Iterator[tuple[str, tuple[str, ...]]]:
    found = (
        ("Throughout", workflow.rules),
        ("Before you begin", workflow.preconditions),
        ("Clarify first", workflow.clarifications),
    )
    return ((heading, lines) for heading, lines in found if lines)


def _outline(workflow: Workflow) -> Iterator[str]:
    for activity in workflow.activities:
        indent = ""
        if len(workflow.activities) > 1:
            yield f"{line_of(activity.name)}  {activity.id}"
            indent = "  "
        yield from _items(activity.items, indent)
        yield from _ways(activity, indent)


def _items(items: tuple[Item, ...], indent: str) -> Iterator[str]:
    for item in items:
        match item:
            case Step():
                note = " (conditional)" if item.condition is not None else ""
                yield f"{indent}• {item.id}  {line_of(item.title)}{note}"
            case Gate():
                options = " | ".join(one.id for one in item.options)
                yield f"{indent}◆ {item.id}  {line_of(item.name)}: {options}"
            case Loop():
                yield f"{indent}↻ {item.id}  {line_of(item.title)}, at most {item.max_iterations} times"
                yield from _items(item.body, f"{indent}  ")


def _ways(activity: Activity, indent: str) -> Iterator[str]:
    for exit_ in activity.transitions:
        yield f"{indent}→ {exit_.to}{'' if exit_.condition is None else ' (conditional)'}"
