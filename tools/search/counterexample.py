"""A violation as a short story: the fewest moves that still lead to it, and what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from interlock.core.run.state import RunState
from tools.search.adapter import Position
from tools.search.alphabet import Move, alphabets
from tools.search.explore import Found, beside_the_log
from tools.search.oracle import Oracle, Violation
from tools.search.seen import Seen
from tools.search.workflows import GateData, ItemData, LoopData, StepData, WorkflowData

QUIET = ("question_shown", "gate_passed", "run_started")
TOLD = (
    "gate",
    "step",
    "loop",
    "activity",
    "to",
    "option",
    "channel",
    "delta",
    "because",
    "question",
    "approval",
    "check",
    "passed",
    "status",
)


def minimised(found: Found) -> Found:
    """Drop moves while the same rule is still broken."""
    moves, index = list(found.moves), 0
    while index < len(moves):
        fewer = [*moves[:index], *moves[index + 1 :]]
        played = list(play(found, fewer))
        if played and any(violation.rule == found.violation.rule for violation in played[-1][2]):
            moves = fewer
        else:
            index += 1
    return replace(found, moves=tuple(moves))


def play(
    found: Found, moves: Sequence[Move]
) -> Iterator[tuple[str, Sequence[dict[str, Any]], Sequence[Violation]]]:
    """Yield each move that can be made, with its events and what is wrong with them; end at a violation."""
    surfaces, oracle = alphabets(found.data, found.setting), Oracle(found.data)
    position, seen = Position(RunState()), Seen()
    for wanted in moves:
        listed = (
            (alphabet.engine, move)
            for alphabet in surfaces
            for move in (*alphabet.edits(position), *alphabet.moves(position))
        )
        engine, move = next(((it, move) for it, move in listed if move.label == wanted.label), (None, None))
        if engine is None or move is None:
            return
        if move.command is None:
            assert move.position is not None
            position = move.position
            yield move.label, (), ()
            continue
        sent = engine.send(position, move.command, move.form)
        beside = beside_the_log(position, move, sent)
        seen, violations = oracle.read(seen, sent.events, position.files)
        position = sent.position
        yield move.label, sent.events, [*violations, *beside]
        if violations or beside:
            return


def story(found: Found) -> str:
    """Tell a violation in a few lines."""
    setting = found.setting
    also = f" and {setting.also}" if setting.also else ""
    terms = f"{setting.surface}{also}, policy {setting.decisions}, {setting.enforcement}, {setting.mode}"
    lines = [f"{found.violation.rule}: {terms}", *outline(found.data)]
    for number, (label, events, violations) in enumerate(play(found, found.moves), 1):
        lines.append(f"{number}. {label}")
        lines += [f"     {_told(event)}" for event in events if event["kind"] not in QUIET]
        lines += [f"   VIOLATION {violation.rule}: {violation.text}" for violation in violations]
    return "\n".join(lines)


def _told(event: dict[str, Any]) -> str:
    return " ".join([event["kind"], *(f"{name}={event[name]!r}" for name in TOLD if event.get(name))])


def outline(data: WorkflowData) -> Iterator[str]:
    """Yield the workflow, an item a line."""
    yield f"workflow {data.name}"
    for activity in data.activities:
        exits = ", ".join(
            f"{leads.to}{f' if {leads.when[0]}={leads.when[1]}' if leads.when else ''}"
            for leads in activity.exits
        )
        yield f"  activity {activity.id}{f' -> {exits}' if exits else ''}"
        yield from _lines(activity.items, "    ")


def _lines(items: Sequence[ItemData], indent: str) -> Iterator[str]:
    for item in items:
        match item:
            case StepData():
                flags = [name for name in ("contract", "confirm", "checked") if getattr(item, name)]
                flags += [f"asks {item.asks}"] if item.asks else []
                flags += [f"sets {', '.join(item.sets)}"] if item.sets else []
                flags += [f"text: never set {item.mentions}"] if item.mentions else []
                flags += [] if item.required else ["optional"]
                flags += [f"when {item.when[0]}={item.when[1]}"] if item.when else []
                about = f" ({'; '.join(flags)})" if flags else ""
                yield f"{indent}step {item.id}{about}"
            case GateData():
                options = "; ".join(_option(option) for option in item.options)
                shows = "".join(f" {{{{{name}}}}}" for name in item.shows)
                when = f" when {item.when[0]}={item.when[1]}" if item.when else ""
                optional = "" if item.required else " optional"
                by = f" by {', '.join(item.approvers)}" if item.approvers else ""
                yield f"{indent}gate {item.id}{optional}{when}{by}:{shows} ({options})"
            case LoopData():
                head = (
                    f"for each of {item.over}" if item.over else f"while {item.test[0]}" if item.test else ""
                )
                yield f"{indent}loop {item.id} {head}"
                yield from _lines(item.body, f"{indent}  ")


def _option(option: Any) -> str:
    sets = "".join(f" sets {name}={value}" for name, value in option.sets)
    return f"{option.id}{sets}{f' goes to {option.to}' if option.to else ''}"
