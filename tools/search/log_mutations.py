"""Honest logs with one thing changed, each of which a verifier of logs should name.

A log is what each command recorded, as JSON. The changes are those that a hand in the store could make: an
event dropped, doubled, moved behind the next, given to another instance, or worded otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

Event: TypeAlias = Mapping[str, Any]
Log: TypeAlias = tuple[tuple[Event, ...], ...]

WORDS: Mapping[str, tuple[str, ...]] = {
    "re-keyed": ("key", "gate", "step", "loop", "activity"),
    "re-worded": (
        "shown",
        "question",
        "option",
        "channel",
        "delta",
        "sets",
        "next",
        "to",
        "status",
        "because",
    ),
}


@dataclass(frozen=True)
class Mutation:
    """A changed log; `what` says how, and on which event."""

    kind: str
    what: str
    log: Log


def mutations(log: Log) -> Iterator[Mutation]:
    """Yield the log with one event dropped, doubled, reordered, re-keyed or re-worded, in every way."""
    for row, command in enumerate(log):
        for kind, what, changed in _changes(command):
            yield Mutation(kind, what, (*log[:row], changed, *log[row + 1 :]))
    for row, (command, following) in enumerate(pairwise(log)):
        if command != following:
            swapped = (*log[:row], following, command, *log[row + 2 :])
            yield Mutation("reordered", f"commands {row} and {row + 1}", swapped)


def _changes(command: tuple[Event, ...]) -> Iterator[tuple[str, str, tuple[Event, ...]]]:
    """Yield what can be done to the events of one command."""
    for column, event in enumerate(command):
        name, before, after = event["kind"], command[:column], command[column + 1 :]
        yield "dropped", name, (*before, *after)
        yield "doubled", name, (*before, event, event, *after)
        if after and after[0] != event:
            yield "reordered", f"{name} and {after[0]['kind']}", (*before, after[0], event, *after[1:])
        for kind, fields in WORDS.items():
            for field in fields:
                if event.get(field):
                    other = {**event, field: _other(event[field])}
                    yield kind, f"{field} of {name}", (*before, other, *after)


def _other(value: Any) -> Any:
    """Return another value of the same type."""
    match value:
        case "console" | "cli":
            return "agent"
        case "agent" | "server" | "elicitation":
            return "console"
        case str():
            return f"{value}-other"
        case Mapping():
            return {name: _other(member) for name, member in value.items()}
        case bool():
            return not value
        case int():
            return value + 1
        case _:
            return None
