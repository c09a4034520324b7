"""A run as a sequence of acknowledged positions, and nothing else: what one call after the other would do."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tools.history.record import RecordedCall

Answer: TypeAlias = tuple[object, ...]
DONE, IGNORED = "done", "ignored"  # now or before; a repeat with other words


class ModelRun(Struct, frozen=True):
    """A run with a gate after `gate` steps. `notes` are those that it was advanced with, in order.

    `asked` are the attempts at the gate that were told to wait, `passed` is the one that passed it.
    """

    gate: int
    begun: bool = False
    notes: tuple[str, ...] = ()
    asked: frozenset[str] = frozenset()
    decided: bool = False
    passed: str = ""

    def after(self, call: RecordedCall) -> tuple[Answer, ModelRun] | None:
        """Return what a call is told and the run after it; None if it cannot be made now."""
        if call.kind == "start":
            return ("at", 0, DONE), replace(self, begun=True)
        if not self.begun:
            return None
        match call.kind:
            case "advance":
                return self._advance(call.at, call.text)
            case "ask":
                return self._ask(call.text)
            case "answer":
                return self._answer()
            case "read":
                return ("at", len(self.notes)), self
            case "log":
                return tuple(note for number, note in enumerate(self.notes) if number != self.gate), self
        raise AssertionError(call.kind)

    def _advance(self, at: int, note: str) -> tuple[Answer, ModelRun] | None:
        if at < len(self.notes):
            how = DONE if self.notes[at] == note else IGNORED
            return ("at", at + 1, how), self
        if at > len(self.notes):
            return None
        return ("at", at + 1, DONE), replace(self, notes=(*self.notes, note))

    def _ask(self, attempt: str) -> tuple[Answer, ModelRun] | None:
        if attempt in self.asked:
            return ("waits", DONE), self
        if attempt == self.passed:
            return ("at", self.gate + 1, DONE), self
        if len(self.notes) != self.gate:
            return None
        if not self.decided:
            return ("waits", DONE), replace(self, asked=self.asked | {attempt})
        return ("at", self.gate + 1, DONE), replace(self, notes=(*self.notes, ""), passed=attempt)

    def _answer(self) -> tuple[Answer, ModelRun]:
        if len(self.notes) != self.gate or self.decided:
            return ("refused",), self
        return ("decided",), replace(self, decided=True)
