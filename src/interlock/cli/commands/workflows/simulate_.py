"""`interlock simulate PATH|ID`: explore every path through a workflow, or follow one, without an agent."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click

from interlock.authoring.filetypes.scenario_file import Scenario, read_answers
from interlock.authoring.library import Loaded
from interlock.authoring.simulate.explore import MOST_STATES
from interlock.authoring.simulate.findings import Simulated, simulate
from interlock.authoring.simulate.play import Played, play
from interlock.cli.config import Config
from interlock.cli.options import json_option, with_config
from interlock.cli.references import workflow_at
from interlock.cli.screen import (
    CHECK_FAILED,
    NOT_FOUND,
    USAGE,
    Tone,
    line_of,
    paint,
    paragraph,
    print_json,
    say,
    status_words,
    stop,
    width,
)
from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import text_of
from interlock.core.values import Json

ARROW = " → "


@click.command(epilog="Example: interlock simulate ./flows/release.yaml")
@click.argument("workflow", metavar="PATH|ID")
@click.option("--answers", metavar="FILE", help="Follow this scenario file and print the path taken.")
@click.option(
    "--most",
    type=click.IntRange(1),
    default=MOST_STATES,
    metavar="N",
    help="Explore at most this many states.",
)
@click.option("--strict", is_flag=True, help="Fail on unreachable parts too.")
@json_option
@with_config
def command(
    config: Config,
    workflow: str,
    answers: str | None,
    most: int,
    strict: bool,
    as_json: bool,
) -> None:
    """Explore every branch of a workflow, without an agent.

    Finds dead ends, unreachable parts, the longest path and the size of the instructions.
    """
    loaded = workflow_at(config, workflow)
    if answers is not None:
        _follow(loaded, Path(answers).expanduser(), as_json)
        return
    simulated = simulate(loaded.workflow, most)
    if as_json:
        unreached: list[Json] = [
            {
                "kind": "way" if part.kind == "transition" else part.kind,
                "activity": part.activity,
                "id": part.id,
                "detail": part.detail,
            }
            for part in simulated.unreached
        ]
        print_json(
            {
                "workflow": simulated.workflow,
                "states": simulated.states,
                "whole": simulated.whole,
                "ends": simulated.ends,
                "sound": simulated.sound,
                "deadEnds": [{"place": end.position, "reason": end.reason} for end in simulated.dead_ends],
                "impassable": list(simulated.impassable),
                "unreached": unreached,
                "onlyByLimit": list(simulated.limited),
                "longest": list(simulated.longest),
                "bytes": {"least": simulated.least_bytes, "most": simulated.most_bytes},
            }
        )
    else:
        _show(simulated)
    if simulated.broken or (strict and not simulated.sound):
        raise click.exceptions.Exit(CHECK_FAILED)


def _follow(loaded: Loaded, path: Path, as_json: bool) -> None:
    """Play one scenario and print the path that was taken."""
    if not path.is_file():
        stop(NOT_FOUND, f"There is no file {path}.")
    scenario = read_answers(path)
    if not isinstance(scenario, Scenario):
        error = scenario[0]
        location = f"{path}:{error.line}:{error.column}"
        stop(USAGE, f"{location} {error.code} {error.message}; {error.next_action}.")
    played = play(Plan(loaded.workflow), loaded.hash, scenario)
    if as_json:
        visits: list[Json] = [
            {
                "id": visit.id,
                "activity": visit.activity,
                "option": visit.option,
                "context": dict(visit.context),
            }
            for visit in played.visits
        ]
        blockers = list(played.blockers)
        print_json({"path": visits, "end": played.end, "blockers": blockers, "reason": played.reason})
    else:
        _show_played(loaded, played)
    if played.end not in ("complete", "complete_with_gaps"):
        raise click.exceptions.Exit(CHECK_FAILED)


def _show_played(loaded: Loaded, played: Played) -> None:
    activity = None
    for visit in played.visits:
        if visit.activity != activity and len(loaded.workflow.activities) > 1:
            activity = visit.activity
            say(paint(activity or loaded.workflow.id, "strong"))
        outcome = f" = {visit.option}" if visit.option is not None else ""
        if visit.option is None and visit.context:
            sets = (f"{name} = {line_of(text_of(value))[:40]}" for name, value in visit.context.items())
            outcome = f"  ({', '.join(sets)})"
        say(f"  {visit.id}{outcome}")
    tone: Tone = "good" if played.end == "complete" else "warn"
    say(f"{paint(status_words(played.end), tone)} after {len(played.visits)} items")
    if played.reason:
        codes = f" ({', '.join(played.blockers)})" if played.blockers else ""
        say(paragraph(f"{played.reason}{codes}"))


def _show(simulated: Simulated) -> None:
    extent = "all explored" if simulated.whole else "stopped at the limit; raise it with --most"
    say(f"{paint(simulated.workflow, 'strong')}  {simulated.states} states, {extent}")
    if not simulated.ends:
        _finding("never ends", "bad", "no path that was explored reaches the end")
    for dead_end in simulated.dead_ends:
        _finding("dead end", "bad", f"{dead_end.position}: {dead_end.reason}")
    for gate in simulated.impassable:
        _finding("impassable", "bad", f"gate {gate}: no option leads to the end")
    for loop in simulated.limited:
        _finding("only by limit", "warn", f"loop {loop} never ends before maxIterations")
    for part in simulated.unreached:
        _finding("unreachable" if simulated.whole else "not reached", "warn", str(part))
    say(f"  {paint('longest path', 'quiet')}    {len(simulated.longest)} items, each loop a few times")
    path, indent, limit = ARROW.join(simulated.longest), " " * 18, width()
    if limit is not None:
        # Do not break ids at their hyphens: readers search for them.
        path = textwrap.fill(
            path, limit, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        ).removeprefix(indent)
    say(indent + path)
    if simulated.least_bytes == simulated.most_bytes:
        size = f"{simulated.most_bytes:,}"
    else:
        size = f"{simulated.least_bytes:,} to {simulated.most_bytes:,}"
    say(f"  {paint('instructions', 'quiet')}    {size} bytes per run")


def _finding(heading: str, tone: Tone, text: str) -> None:
    say(f"  {paint(f'{heading:15}', tone)} {line_of(text)}")
