"""What clients sent and what they were told, with the order in which that happened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Literal

import msgspec
from msgspec import Struct

Kind = Literal["start", "advance", "ask", "answer", "read", "log"]


class RecordedCall(Struct, frozen=True, omit_defaults=True):
    """One call on one run. Without `returned` its answer was lost: it may have had its effect, or not.

    `at` and `text` are what was sent: a position of the run and a note, the attempt at a gate, an option.
    """

    client: str
    kind: Kind
    invoked: int
    at: int = 0
    text: str = ""
    returned: int | None = None
    answer: tuple[object, ...] = ()

    def __str__(self) -> str:
        sent = " ".join(filter(None, (self.kind, str(self.at), self.text)))
        told = "lost" if self.returned is None else " ".join(map(str, self.answer))
        return f"{self.invoked:>6}-{self.returned or '':<6} {self.client:<10} {sent:<28} → {told}"


class History:
    """The calls on one run, numbered in the order in which they began and ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[RecordedCall] = []
        self._turn = Lock()
        self._now = 0

    def invoke(self, client: str, kind: Kind, at: int = 0, text: str = "") -> int:
        """Record that a call is being sent; return its number."""
        with self._turn:
            self._now += 1
            self.calls.append(RecordedCall(client, kind, self._now, at, text))
            return len(self.calls) - 1

    def answered(self, number: int, *answer: object) -> None:
        """Record what a call was told."""
        with self._turn:
            self._now += 1
            call = self.calls[number]
            self.calls[number] = msgspec.structs.replace(call, returned=self._now, answer=answer)

    def write(self, path: Path) -> None:
        """Keep the history, so that it can be checked again."""
        path.write_bytes(msgspec.json.encode(self.calls))


def read_history(path: Path) -> Sequence[RecordedCall]:
    """Read a history that was kept."""
    return msgspec.json.decode(path.read_bytes(), type=list[RecordedCall])
