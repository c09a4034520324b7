"""A store that fails at a chosen point: before a transaction, at any write, at COMMIT, or just after it.

The last is the worst: the write has happened and the caller hears of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from interlock.store.protocol import Reader, Store, StoreUnavailable, Writer

Strike = Callable[[str], None]
WRITES = ("add_", "set_", "remove_", "cut_", "clear_")


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
    """A store whose every crash point is passed by name."""

    def __init__(self, store: Store, strike: Strike) -> None:
        self.store = store
        self.strike = strike

    def reading(self) -> AbstractContextManager[Reader]:
        return self.store.reading()

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        self.strike("begin")
        with self.store.writing() as tx:
            yield cast(Writer, Watching(tx, self.strike))
            self.strike("commit")
        self.strike("committed")

    def close(self) -> None:
        self.store.close()


class Watching:
    """A transaction whose every write passes a crash point first."""

    def __init__(self, tx: Writer, strike: Strike) -> None:
        self._tx = tx
        self._strike = strike

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._tx, name)
        if not name.startswith(WRITES):
            return method

        def watched(*arguments: Any) -> None:
            self._strike(name)
            method(*arguments)

        return watched
