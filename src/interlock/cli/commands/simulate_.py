"""`interlock simulate PATH|ID`: try every way through a workflow, or follow one, without an agent."""

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
from interlock.cli.exits import CHECK_FAILED, NOT_FOUND, USAGE
from interlock.cli.given import loaded_of
from interlock.cli.options import config_of, data_options, json_option, print_json
from interlock.cli.screen import Tone, line_of, paint, paragraph, say, stop, width
from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import text_of
from interlock.core.values import Json

ARROW = " → "


@click.command(epilog="Example: interlock simulate ./flows/release.yaml")
@click.argument("given", metavar="PATH|ID")
@click.option("--answers", metavar="FILE", help="Follow this script (a scenario file) and print its way.")
@click.option("--most", type=click.IntRange(1), default=MOST_STATES, help="Look at no more states than this.")
@click.option("--strict", is_flag=True, help="Fail also on what nothing reaches.")
@data_options
@json_option
def command(
    given: str,
    answers: str | None,
    most: int,
    strict: bool,
    data_dir: str | None,
    project: str | None,
    workflows: tuple[str, ...],
    as_json: bool,
) -> None:
    """Explore a workflow: dead ends, unreachable parts, the longest way, the bytes an agent reads."""
    loaded = loaded_of(config_of(data_dir, project, workflows), given)
    if answers is not None:
        _follow(loaded, _script(answers), as_json)
        return
    found = simulate(loaded.workflow, most)
    if as_json:
        print_json(_as_json(found))
    else:
        _show(loaded, found)
    if found.broken or (strict and not found.sound):
        raise click.exceptions.Exit(CHECK_FAILED)


def _script(answers: str) -> Scenario:
    path = Path(answers).expanduser()
    if not path.is_file():
        stop(NOT_FOUND, f"there is no file {path}.")
    script = read_answers(path)
    if isinstance(script, Scenario):
        return script
    fault = script[0]
    return stop(
        USAGE, f"{path}:{fault.line}:{fault.column} {fault.code} {fault.message}; {fault.next_action}."
    )


def _follow(loaded: Loaded, script: Scenario, as_json: bool) -> None:
    played = play(Plan(loaded.workflow), loaded.hash, script)
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
        say(f"  {visit.id}{_taken(visit)}")
    tone: Tone = "good" if played.end == "complete" else "warn"
    say(f"{paint(played.end.replace('_', ' '), tone)} after {len(played.visits)} items")
    if played.reason:
        say(paragraph(f"{played.reason} {_codes(played)}".rstrip()))


def _taken(visit: Visit) -> str:
    if visit.option is not None:
        return f" = {visit.option}"
    sets = (f"{name} = {line_of(text_of(value))[:40]}" for name, value in visit.context.items())
    return f"  ({', '.join(sets)})" if visit.context else ""


def _codes(played: Played) -> str:
    return f"({', '.join(played.blockers)})" if played.blockers else ""


def _show(loaded: Loaded, found: Simulated) -> None:
    extent = "every one looked at" if found.whole else "the bound was reached; raise it with --most"
    say(f"{paint(found.workflow, 'strong')}  {found.states} states, {extent}")
    for heading, tone, line in _findings(found):
        say(f"  {paint(f'{heading:15}', tone)} {line_of(line)}")
    say(f"  {paint('longest way', 'quiet')}     {len(found.longest)} items, each loop a few times")
    say(_wrapped(ARROW.join(found.longest), " " * 18))
    if found.least_bytes == found.most_bytes:
        size = f"{found.most_bytes:,}"
    else:
        size = f"{found.least_bytes:,} to {found.most_bytes:,}"
    say(f"  {paint('instructions', 'quiet')}    {size} bytes a run")


def _wrapped(text: str, indent: str) -> str:
    """Ids stay whole, so that they can be found again."""
    limit = width()
    if limit is None:
        return indent + text
    return textwrap.fill(text, limit, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _findings(found: Simulated) -> Iterator[tuple[str, Tone, str]]:
    if not found.ends:
        yield "never ends", "bad", "no way that was tried leads to the end"
    for one in found.dead_ends:
        yield "dead end", "bad", f"{one.position}: {one.reason}"
    for gate in found.impassable:
        yield "impassable", "bad", f"gate {gate}: no option leads to the end"
    for loop in found.limited:
        yield "only by limit", "warn", f"loop {loop} never ends before maxIterations"
    word = "unreachable" if found.whole else "not reached"
    for part in found.unreached:
        yield word, "warn", str(part)


def _as_json(found: Simulated) -> Json:
    return {
        "workflow": found.workflow,
        "states": found.states,
        "whole": found.whole,
        "ends": found.ends,
        "sound": found.sound,
        "deadEnds": [{"place": one.position, "reason": one.reason} for one in found.dead_ends],
        "impassable": list(found.impassable),
        "unreached": [
            {
                "kind": "way" if part.kind == "transition" else part.kind,
                "activity": part.activity,
                "id": part.id,
                "detail": part.detail,
            }
            for part in found.unreached
        ],
        "onlyByLimit": list(found.limited),
        "longest": list(found.longest),
        "bytes": {"least": found.least_bytes, "most": found.most_bytes},
    }


def _played_json(played: Played) -> Json:
    return {
        "path": [
            {"id": one.id, "activity": one.activity, "option": one.option, "context": dict(one.context)}
            for one in played.visits
        ],
        "end": played.end,
        "blockers": list(played.blockers),
        "reason": played.reason,
    }
