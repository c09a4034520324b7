"""What the second oracle has learned from a run's events; a value that is copied, never shared."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Rounds: TypeAlias = tuple[tuple[str, int], ...]
Checked: TypeAlias = tuple[bool, str]  # whether it passed, and on which files
Approval: TypeAlias = tuple[str, str, str]  # by whom, for whom, which option
Instance: TypeAlias = tuple[Rounds, str]  # in the current visit


@dataclass(frozen=True)
class Showing:
    """A question as it was last shown; `bent` says that an agent has made its condition false since."""

    digest: str
    at: int
    bent: bool = False
    answered: bool = False


@dataclass(frozen=True)
class Owner:
    """The question that a variable belongs to; its instance is None once the question is asked anew."""

    question: str
    instance: Instance | None
    is_set: bool


@dataclass
class Seen:
    """What the events so far have said.

    `done` are the steps and loops of this visit, `weak` the answers by a channel that does not count, `away`
    the gate whose option leads out of the activity, with its target. `answered` are the questions of the
    whole run, `missed` what was passed by where the terms allow it. `checked` says that a check has run,
    `ran` are the results for steps of this visit, with the files that they were run on; `polls` is what
    approvers have answered: who, for whom, which option.
    """

    mode: str = "guided"
    policy: str = "user"
    strict: bool = True
    variables: dict[str, Any] = field(default_factory=dict)
    activity: str = ""
    trail: frozenset[str] = frozenset()
    rounds: Rounds = ()
    totals: tuple[int | None, ...] = ()
    done: frozenset[Instance] = frozenset()
    shown: dict[Instance, Showing] = field(default_factory=dict)
    answers: dict[Instance, str] = field(default_factory=dict)
    weak: dict[Instance, str] = field(default_factory=dict)
    answered: frozenset[str] = frozenset()
    declined: dict[Instance, str] = field(default_factory=dict)
    owners: dict[str, Owner] = field(default_factory=dict)
    away: tuple[str, str] = ("", "")
    missed: frozenset[str] = frozenset()
    gaps: tuple[str, ...] = ()
    disclosed: frozenset[str] = frozenset()
    checked: bool = False
    ran: dict[str, Checked] = field(default_factory=dict)
    polls: dict[Instance, tuple[Approval, ...]] = field(default_factory=dict)
    status: str = ""

    def key(self) -> str:
        """What tells apart two logs from which different things were learned."""
        return repr([_ordered(value) for value in vars(self).values()])

    def copied(self) -> Seen:
        """Return a copy that can be written to."""
        fresh = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict):
                setattr(fresh, name, dict(value))
        return fresh


def _ordered(value: Any) -> Any:
    match value:
        case dict():
            return sorted(value.items())
        case frozenset():
            return sorted(value)
        case _:
            return value
