"""Checks that a command needs before its outcome counts, and what came of them: the edge runs them."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.definition.checks import CommandCheck
from interlock.core.run.events import CheckRan


class DueCheck(Struct, frozen=True):
    """A check that must be run for an item, by its instance.

    One that a gate shows has run before: unless the project's files have the digest `valid_for`, it is run
    `again`.
    """

    key: str
    check: CommandCheck
    definition: str
    again: bool = False
    valid_for: str = ""


class CheckResult(Struct, frozen=True):
    """What came of a check that was due; None if the earlier result still holds."""

    due: DueCheck
    ran: CheckRan | None
