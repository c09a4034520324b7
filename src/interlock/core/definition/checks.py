"""Checks: commands that the server itself runs, so that a result is not only claimed."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.definition.conditions import Condition

CHECK_SECONDS = 600
ONLY_CLAIMED = "not run by the server, only claimed by the agent"


class Expectation(Struct, frozen=True, omit_defaults=True):
    """What a check must bring: its exit status, a text in its output, files that are there afterwards."""

    exit: int = 0
    stdout: str = ""
    files: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is expected, in a line."""
        parts = [f"exit {self.exit}"]
        parts += [f"'{self.stdout}' in its output"] if self.stdout else []
        parts += [f"the file {name}" for name in self.files]
        return ", ".join(parts)


class CommandCheck(Struct, frozen=True, omit_defaults=True):
    """A command that must succeed before its step is done.

    One without a command is the name of a check that no project has defined: it is only claimed.
    """

    id: str
    run: str = ""
    folder: str = "."
    timeout: int = CHECK_SECONDS
    expected: Expectation = Expectation()
    condition: Condition | None = None
