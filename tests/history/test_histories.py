"""The checker of histories explains what may happen, and finds lost updates, doubled steps, stale reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.store.protocol import Changes, Recorded
from support.memory_store import MemoryReader, MemoryStore, Tables
from support.proof import SEED, line, times
from tools.history.check import unexplained
from tools.history.model import DONE, IGNORED, ModelRun
from tools.history.record import History, read_history
from tools.history.schedule import checked, simulated

SEEDS = range(SEED * 1000, SEED * 1000 + times(1000))
FEW = range(1, 20)


class Told:
    """A history that a test writes down call by call, each ended before the next begins."""

    def __init__(self) -> None:
        self.history = History("run")
        self.call("start", answer=("at", 0, DONE))

    def call(
        self, kind: str, at: int = 0, text: str = "", *, answer: tuple[object, ...] | None = None
    ) -> int:
        number = self.history.invoke("ada", kind, at, text)  # type: ignore[arg-type]
        if answer is not None:
            self.history.answered(number, *answer)
        return number

    def step(self, at: int, note: str) -> None:
        self.call("advance", at, note, answer=("at", at + 1, DONE))

    def is_explained(self) -> bool:
        return unexplained(self.history.calls, ModelRun(gate=5)) is None


@pytest.fixture
def told() -> Told:
    return Told()


def test_steps_repeats_and_reads_in_order_are_explained(told: Told, tmp_path: Path) -> None:
    told.step(0, "a")
    told.step(0, "a")
    told.call("advance", 0, "b", answer=("at", 1, IGNORED))
    told.call("read", answer=("at", 1))
    told.step(1, "c")
    told.call("log", answer=("a", "c"))
    assert told.is_explained()
    told.history.write(tmp_path / "history.json")
    assert unexplained(read_history(tmp_path / "history.json"), ModelRun(gate=5)) is None


def test_a_gate_opens_after_its_answer_only(told: Told) -> None:
    for at in range(5):
        told.step(at, str(at))
    told.call("ask", 5, "attempt1", answer=("waits", DONE))
    told.call("ask", 5, "attempt1", answer=("waits", DONE))
    told.call("answer", answer=("decided",))
    told.call("answer", answer=("refused",))
    told.call("ask", 5, "attempt1", answer=("waits", DONE))
    told.call("ask", 5, "attempt2", answer=("at", 6, DONE))
    assert told.is_explained()
    told.call("ask", 5, "attempt3", answer=("waits", DONE))
    assert not told.is_explained()


def test_nobody_passes_a_gate_before_its_answer(told: Told) -> None:
    for at in range(5):
        told.step(at, str(at))
    told.call("ask", 5, "attempt1", answer=("at", 6, DONE))
    assert not told.is_explained()


@pytest.mark.parametrize("answer", [("a", "b"), ("a",)])
def test_a_call_without_an_answer_may_have_had_its_effect_or_not(told: Told, answer: tuple[str, ...]) -> None:
    told.step(0, "a")
    told.call("advance", 1, "b")
    told.call("log", answer=answer)
    assert told.is_explained()


def test_of_two_calls_at_once_either_may_come_first(told: Told) -> None:
    first, second = told.call("advance", 0, "a"), told.call("advance", 0, "b")
    told.history.answered(first, "at", 1, IGNORED)
    told.history.answered(second, "at", 1, DONE)
    told.call("log", answer=("b",))
    assert told.is_explained()


def test_a_lost_update_is_found(told: Told) -> None:
    told.step(0, "a")
    told.step(1, "b")
    told.call("log", answer=("a",))
    assert not told.is_explained()


def test_a_doubled_step_is_found(told: Told) -> None:
    told.step(0, "a")
    told.step(0, "a")
    told.call("log", answer=("a", "a"))
    assert not told.is_explained()


def test_two_clients_that_were_both_told_that_they_were_first_are_found(told: Told) -> None:
    told.step(0, "a")
    told.step(0, "b")
    assert not told.is_explained()


def test_a_stale_read_is_found(told: Told) -> None:
    told.step(0, "a")
    told.call("read", answer=("at", 0))
    why = unexplained(told.history.calls, ModelRun(gate=5))
    assert why is not None
    assert [call.kind for call in why.stuck] == ["read"]
    assert "read 0" in str(why)


def test_a_step_that_goes_back_is_found(told: Told) -> None:
    told.step(0, "a")
    told.step(1, "b")
    told.call("read", answer=("at", 2))
    told.call("read", answer=("at", 1))
    assert not told.is_explained()


# The same clients in the order that a seed decides.


def test_a_few_orders_are_explained() -> None:
    assert list(found(FEW)) == []


@pytest.mark.slow
@pytest.mark.proof
def test_every_order_that_a_seed_decides_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {seed: why for seed in SEEDS if (why := checked(seed)) is not None}
    with capsys.disabled():
        print(line("orders of calls in memory", seeds=f"{SEEDS[0]}-{SEEDS[-1]}", unexplained=len(failed)))
    assert not failed, "\n".join(
        f"python -m tools.history --seeds {seed}: {why}" for seed, why in failed.items()
    )


def test_a_seed_names_one_order() -> None:
    def shown(seed: int) -> list[tuple[object, ...]]:
        calls = simulated(seed).history.calls
        return [(c.client, c.kind, c.invoked, c.returned, c.at, c.answer) for c in calls]

    assert shown(7) == shown(7) != shown(8)
    lost = [call for seed in FEW for call in simulated(seed).history.calls if call.returned is None]
    assert {call.kind for call in lost} >= {"start", "advance", "ask", "answer"}, (
        "answers are lost everywhere"
    )


def found(seeds: range) -> Iterator[str]:
    return (str(why) for seed in seeds if (why := checked(seed)) is not None)


def test_an_acknowledged_step_that_was_not_stored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: every ninth command is reported as stored, and forgotten."""
    append, count = MemoryStore.append, iter(range(10**6))

    def forgetful(store: MemoryStore, *changes: Changes) -> None:
        if next(count) % 9 != 8:
            append(store, *changes)

    monkeypatch.setattr(MemoryStore, "append", forgetful)
    assert next(found(FEW), "")


def test_a_repeat_that_is_carried_out_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: attempts are not remembered, so that the same call makes another step."""

    def forgotten(reader: MemoryReader, session_id: str, node: int, attempt: int) -> Recorded | None:
        return None

    monkeypatch.setattr(MemoryReader, "recorded", forgotten)
    assert next(found(FEW), "")


def test_a_read_of_what_was_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is read outside commands comes from a copy that lags behind by a command."""
    writing, reading = MemoryStore.writing, MemoryStore.reading
    before: dict[int, Tables] = {}

    @contextmanager
    def keeping(store: MemoryStore) -> Iterator[object]:
        tables = store._database.tables
        with writing(store) as writer:
            yield writer
        before[id(store._database)] = tables

    @contextmanager
    def lagging(store: MemoryStore) -> Iterator[MemoryReader]:
        with reading(store) as reader:
            yield MemoryReader(before.get(id(store._database), reader.tables))

    def current(store: MemoryStore, handle: bytes | str, **where: int | None) -> object:
        with reading(store) as reader:
            return reader.load(handle, **where)

    for name, planted in (("writing", keeping), ("reading", lagging), ("load", current)):
        monkeypatch.setattr(MemoryStore, name, planted)
    assert next(found(FEW), "")
