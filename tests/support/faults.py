"""A store that fails at a chosen point: before a transaction, at any write, at COMMIT, or just after it.

The last is the worst: the write has happened and the caller hears of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from interlock.store.protocol import Changes, LoadedRows, Reader, StoreUnavailable, TraceRow, Writer
from interlock.store.sqlite.store import SqliteStore

Strike = Callable[[str], None]
WRITES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT")


class Struck(StoreUnavailable):
    """The failure that a test asked for."""


class At:
    """Strikes once, at the n-th point that is passed; counts them all."""

    def __init__(self, number: int, blow: Callable[[str], None] | None = None) -> None:
        self.number = number
        self.passed = 0
        self.struck = ""
        self.blow = blow or _raise

    def __call__(self, point: str) -> None:
        self.passed += 1
        if self.passed == self.number:
            self.struck = point
            self.blow(point)


def _raise(point: str) -> None:
    raise Struck(f"the disk failed at {point}")


class Watched:
    """A store whose every crash point is passed by name: each statement that writes, and what follows."""

    def __init__(self, store: SqliteStore, strike: Strike) -> None:
        self.store = store
        self.strike = strike

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        return self.store.load(handle, node=node, attempt=attempt)

    def append(self, *changes: Changes) -> None:
        with self._watched():
            self.store.append(*changes)

    def trace(self, rows: Sequence[TraceRow]) -> None:
        with self._watched():
            self.store.trace(rows)

    def reading(self) -> AbstractContextManager[Reader]:
        return self.store.reading()

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        with self._watched(), self.store.writing() as writer:
            yield writer

    @contextmanager
    def _watched(self) -> Iterator[None]:
        connection: Any = self.store._connection
        connection.exec_trace = self._passed
        try:
            yield
        finally:
            connection.exec_trace = None
        self.strike("committed")

    def _passed(self, _cursor: object, sql: str, _bindings: object) -> bool:
        if sql.startswith(WRITES):
            self.strike(" ".join(sql.split()[:3]))
        return True

    def close(self) -> None:
        self.store.close()
