"""The stores that the kit of tests/store/test_store.py is run on; a new store joins with one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.store.protocol import Store
from interlock.store.sqlite.store import open_store
from support import postgres_server
from support.memory_store import MemoryStore

StoreFactory = Callable[[], Store]
STORES: dict[str, Callable[[Path], Store]] = {
    "sqlite": open_store,
    "memory": MemoryStore,
    "postgres": postgres_server.open_in,
}
SHARED = {  # what processes share, by import path
    "sqlite": "interlock.store.sqlite.store.open_store",
    "postgres": "support.postgres_server.open_in",
}


@pytest.fixture(params=STORES)
def store_factory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFactory]:
    """Open the same store again, as another process would."""
    opened: list[Store] = []

    def open_again() -> Store:
        opened.append(STORES[request.param](tmp_path))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(store_factory: StoreFactory) -> Store:
    return store_factory()


@pytest.fixture(params=SHARED)
def shared_store(request: pytest.FixtureRequest) -> str:
    """The import path of a store that several processes can open."""
    return SHARED[request.param]
