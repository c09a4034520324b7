"""The names of things in a run, as its state and its log have them. Only this module knows their text.

An instance is an item in the rounds around it: `outer@0/inner@2::step`, the bare id outside loops (rule 37).
A question has one name for all of its rounds, its activity and gate: `plan/deploy`.
"""

from __future__ import annotations

from collections.abc import Iterable

Rounds = Iterable[tuple[str, int]]  # the loops around an item, outer ones first, each with its round from 0


def instance_key(rounds: Rounds, item_id: str) -> str:
    """Name an item in its rounds."""
    path = _path(rounds)
    return f"{path}::{item_id}" if path else item_id


def item_of(key: str) -> str:
    """Return the item of an instance."""
    return key.rpartition("::")[2]


def rounds_in(key: str) -> list[tuple[str, int]]:
    """Return the loops around an instance, outer ones first, each with its round from 0."""
    path = key.rpartition("::")[0]
    parts = (part.rpartition("@") for part in path.split("/")) if path else ()
    return [(loop, int(number)) for loop, _, number in parts]


def beginnings(rounds: Rounds) -> tuple[str, str]:
    """Return what the keys of all instances in these rounds begin with, those of inner loops included."""
    path = _path(rounds)
    return f"{path}::", f"{path}/"


def beginning_in(outer: Rounds, loop: str) -> str:
    """Return what the keys of instances in any round of a loop begin with."""
    path = _path(outer)
    return f"{path}/{loop}@" if path else f"{loop}@"


def question_path(activity: str | None, gate: str) -> str:
    """Name a question, or one instance of it, in its activity."""
    return f"{activity or ''}/{gate}"


def gate_in(path: str) -> str:
    """Return the gate, or the instance, of a question's name."""
    return path.partition("/")[2]


def _path(rounds: Rounds) -> str:
    return "/".join(f"{loop}@{number}" for loop, number in rounds)
