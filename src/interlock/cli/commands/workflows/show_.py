"""`interlock show ID`: what a workflow is for, and what its steps and gates are."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from interlock.cli.compose import library_of
from interlock.cli.config import Config
from interlock.cli.options import json_option, with_config, workflow_argument
from interlock.cli.references import workflow_of
from interlock.cli.screen import fit, inform, line_of, paint, paragraph, print_json, say, width
from interlock.core.definition.workflow import Gate, Item, Loop, Step
from interlock.surfaces.execution.catalogue import described


@click.command(epilog="Example: interlock show wr.small_task")
@workflow_argument
@json_option
@with_config
def command(config: Config, workflow_id: str, as_json: bool) -> None:
    """Show the steps, loops and gates of a workflow."""
    loaded = workflow_of(library_of(config), workflow_id)
    if as_json:
        print_json(msgspec.to_builtins(described(loaded, "preview").structured))
        return
    workflow = loaded.workflow
    say(f"{paint(line_of(workflow.name), 'strong')}  {paint(f'{workflow.id} {workflow.version}', 'quiet')}")
    say(paragraph(workflow.description))
    guidance = {
        "Throughout": workflow.rules,
        "Before you begin": workflow.preconditions,
        "Clarify first": workflow.clarifications,
    }
    for heading, lines in guidance.items():
        if lines:
            say()
            say(paint(heading, "strong"))
        for line in lines:
            say(f"- {paragraph(line, '  ')[2:]}")
    say()
    for activity in workflow.activities:
        indent = "  " if len(workflow.activities) > 1 else ""
        if indent:
            say(fit(f"{line_of(activity.name)}  {activity.id}", width()))
        for line in _items(activity.items, indent):
            say(fit(line, width()))
        for transition in activity.transitions:
            remark = "" if transition.condition is None else " (conditional)"
            say(fit(f"{indent}→ {transition.to}{remark}", width()))
    for diagnostic in loaded.diagnostics:
        if diagnostic.severity == "info":  # shown with its item
            continue
        inform(f"{diagnostic.file}:{diagnostic.line}: {diagnostic.message}")


def _items(items: tuple[Item, ...], indent: str) -> Iterator[str]:
    for item in items:
        match item:
            case Step():
                note = " (conditional)" if item.condition is not None else ""
                note += "".join(f" ({stop})" for stop in item.asks)
                note += f" (by its text sets {', '.join(item.inferred)})" if item.inferred else ""
                yield f"{indent}• {item.id}  {line_of(item.title)}{note}"
            case Gate():
                options = " | ".join(option.id for option in item.options)
                place = f" ({item.place})" if item.place else ""
                yield f"{indent}◆ {item.id}  {line_of(item.name)}: {options}{place}"
            case Loop():
                yield f"{indent}↻ {item.id}  {line_of(item.title)}, at most {item.max_iterations} times"
                yield from _items(item.body, f"{indent}  ")
