"""`interlock simulate PATH|ID`: explore every path through a workflow, or follow one, without an agent."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from interlock.authoring.filetypes.scenario_file import Scenario, read_answers
from interlock.authoring.library import Loaded
from interlock.authoring.simulate.explore import MOST_STATES
from interlock.authoring.simulate.findings import Simulated, simulate
from interlock.authoring.simulate.play import Played, Visit, play
from interlock.cli.options import config_of, data_options, json_option
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
    stop,
    width,
    words,
)
from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import text_of
from interlock.core.values import Json

ARROW = " → "


@click.command(epilog="Example: interlock simulate ./flows/release.yaml")
@click.argument("workflow", metavar="PATH|ID")
@click.option("--answers", metavar="FILE", help="Follow this scenario file and print the path taken.")
@click.option("--most", type=click.IntRange(1), default=MOST_STATES, help="Explore at most this many states.")
@click.option("--strict", is_flag=True, help="Fail on unreachable parts too.")
@data_options
@json_option
def command(
    workflow: str,
    answers: str | None,
    most: int,
    strict: bool,
    data_dir: str | None,
    project: str | None,
    workflows: tuple[str, ...],
    as_json: bool,
) -> None:
    """Explore a workflow: dead ends, unreachable parts, the longest path, the size of its instructions."""
    loaded = workflow_at(config_of(data_dir, project, workflows), workflow)
    if answers is not None:
        _follow(loaded, _scenario(Path(answers).expanduser()), as_json)
        return
    simulated = simulate(loaded.workflow, most)
    if as_json:
        print_json(_as_json(simulated))
    else:
        _show(simulated)
    if simulated.broken or (strict and not simulated.sound):
        raise click.exceptions.Exit(CHECK_FAILED)


def _scenario(path: Path) -> Scenario:
    if not path.is_file():
        stop(NOT_FOUND, f"there is no file {path}.")
    scenario = read_answers(path)
    if isinstance(scenario, Scenario):
        return scenario
    error = scenario[0]
    return stop(
        USAGE, f"{path}:{error.line}:{error.column} {error.code} {error.message}; {error.next_action}."
    )


def _follow(loaded: Loaded, scenario: Scenario, as_json: bool) -> None:
    played = play(Plan(loaded.workflow), loaded.hash, scenario)
    if as_json:
        print_json(_played_json(played))
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
        say(f"  {visit.id}{_outcome(visit)}")
    tone: Tone = "good" if played.end == "complete" else "warn"
    say(f"{paint(words(played.end), tone)} after {len(played.visits)} items")
    if played.reason:
        codes = f" ({', '.join(played.blockers)})" if played.blockers else ""
        say(paragraph(f"{played.reason}{codes}"))


def _outcome(visit: Visit) -> str:
    if visit.option is not None:
        return f" = {visit.option}"
    sets = (f"{name} = {line_of(text_of(value))[:40]}" for name, value in visit.context.items())
    return f"  ({', '.join(sets)})" if visit.context else ""


def _show(simulated: Simulated) -> None:
    extent = "all explored" if simulated.whole else "stopped at the limit; raise it with --most"
    say(f"{paint(simulated.workflow, 'strong')}  {simulated.states} states, {extent}")
    for heading, tone, text in _findings(simulated):
        say(f"  {paint(f'{heading:15}', tone)} {line_of(text)}")
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


def _findings(simulated: Simulated) -> Iterator[tuple[str, Tone, str]]:
    if not simulated.ends:
        yield "never ends", "bad", "no path that was explored reaches the end"
    for dead_end in simulated.dead_ends:
        yield "dead end", "bad", f"{dead_end.position}: {dead_end.reason}"
    for gate in simulated.impassable:
        yield "impassable", "bad", f"gate {gate}: no option leads to the end"
    for loop in simulated.limited:
        yield "only by limit", "warn", f"loop {loop} never ends before maxIterations"
    heading = "unreachable" if simulated.whole else "not reached"
    for part in simulated.unreached:
        yield heading, "warn", str(part)


def _as_json(simulated: Simulated) -> Json:
    return {
        "workflow": simulated.workflow,
        "states": simulated.states,
        "whole": simulated.whole,
        "ends": simulated.ends,
        "sound": simulated.sound,
        "deadEnds": [{"place": end.position, "reason": end.reason} for end in simulated.dead_ends],
        "impassable": list(simulated.impassable),
        "unreached": [
            {
                "kind": "way" if part.kind == "transition" else part.kind,
                "activity": part.activity,
                "id": part.id,
                "detail": part.detail,
            }
            for part in simulated.unreached
        ],
        "onlyByLimit": list(simulated.limited),
        "longest": list(simulated.longest),
        "bytes": {"least": simulated.least_bytes, "most": simulated.most_bytes},
    }


def _played_json(played: Played) -> Json:
    return {
        "path": [
            {
                "id": visit.id,
                "activity": visit.activity,
                "option": visit.option,
                "context": dict(visit.context),
            }
            for visit in played.visits
        ],
        "end": played.end,
        "blockers": list(played.blockers),
        "reason": played.reason,
    }
