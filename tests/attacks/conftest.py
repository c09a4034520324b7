"""Each attack is made in this process, and then on real servers of both eras and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from support.attacker import EVERY
from support.harness import Bench
from support.killed_servers import AlternatingBench, HttpBench, ServerBench

HERE = Path(__file__).parent
BENCHES = {
    "in process": Bench,
    "killed servers": ServerBench,
    "two processes": AlternatingBench,
    "http": HttpBench,
}
IN_TURN = (AlternatingBench, HttpBench, AlternatingBench, ServerBench)  # a process for each call is slow


@pytest.fixture(
    params=[
        pytest.param(kind, marks=[] if kind is Bench else pytest.mark.slow, id=name)
        for name, kind in BENCHES.items()
    ]
)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench: Bench = request.param(tmp_path)
    yield bench
    bench.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make each attack once on a real server through each surface: in one variant, on one kind of server."""
    seen: dict[tuple[object, ...], pytest.Item] = {}
    for item in items:
        seen.setdefault(_on_a_server(item), item)
    items[:] = [
        item for item in items if not (case := _on_a_server(item)) or _is_made(case, seen[case], item)
    ]


def _on_a_server(item: pytest.Item) -> tuple[object, ...]:
    """Return which attack on which real server this is; nothing if it is none, or none of ours."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec") or item.path.parent != HERE:
        return ()
    values = item.callspec.params
    bench = values.get("bench", Bench)
    return () if bench is Bench else (item.originalname, bench, values["surface"])


def _is_made(case: tuple[object, ...], first: pytest.Item, item: pytest.Item) -> bool:
    """Say whether this is the first variant, on the kind of server whose turn it is for the surface."""
    name, bench, surface = case
    turn = crc32(str(name).encode()) + EVERY.index(str(surface))
    return first is item and bench is IN_TURN[turn % len(IN_TURN)]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Bench]:
    """A bench in this process only: for what people do at a terminal, in the console or with a file."""
    bench = Bench(tmp_path)
    yield bench
    bench.close()
