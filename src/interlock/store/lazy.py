"""A store that is opened when it is first needed, so that a server can start and answer without it."""

from __future__ import annotations

from _thread import allocate_lock  # threading costs start-up and adds nothing here
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from interlock.store.protocol import Changes, LoadedRows, Reader, Store, TraceRow, Writer


class LazyStore:
    """A store behind the function that opens it. A failed attempt to open it is repeated at the next use."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._turn = allocate_lock()
        self._open_store = open_store
        self._store: Store | None = None
        self._failures: tuple[int, Exception | None] = (0, None)

    def open(self) -> Store:
        """Return the store, opening it unless it is open; raise what opening raises.

        Of several threads one opens it and all use it. If that fails, it has failed for all that waited:
        they do not wait for one attempt after another.
        """
        if self._store is None:
            before, _ = self._failures
            with self._turn:
                failures, error = self._failures
                if self._store is None and error is not None and failures > before:
                    raise error
                if self._store is None:
                    self._store = self._opened()
        return self._store

    def _opened(self) -> Store:
        try:
            return self._open_store()
        except Exception as error:
            self._failures = (self._failures[0] + 1, error)
            raise

    @property
    def is_open(self) -> bool:
        return self._store is not None

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        return self.open().load(handle, node=node, attempt=attempt)

    def append(self, *changes: Changes) -> None:
        self.open().append(*changes)

    def trace(self, rows: Sequence[TraceRow]) -> None:
        self.open().trace(rows)

    def reading(self) -> AbstractContextManager[Reader]:
        return self.open().reading()

    def writing(self) -> AbstractContextManager[Writer]:
        return self.open().writing()

    def probe(self) -> None:
        self.open().probe()

    def make_room(self) -> None:
        self.open().make_room()

    def give_back(self) -> None:
        self.open().give_back()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
