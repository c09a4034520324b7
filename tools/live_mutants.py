"""Break functions of the running process, one at a time, and name the test that notices each first.

The tests are collected once. One process runs them all and notes which functions each test enters; then each
mutant is made in a process of its own, which runs the tests that enter the broken function, quick ones first,
until one fails. Tests that start servers do not break their servers: what survives here is not yet unnoticed.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from types import CodeType, FrameType, FunctionType
from typing import Protocol, TypeAlias

import msgspec
import pytest
from _pytest.runner import runtestprotocol
from msgspec import Struct

Function: TypeAlias = tuple[str, str, int]  # file, qualified name, first line
SURVIVED, UNREACHED, HANGS = "SURVIVED", "UNREACHED", "hangs"
MOST_CPU = 120  # seconds for the tests of one mutant


class Breakable(Protocol):
    """A change of one module."""

    @property
    def dotted(self) -> str: ...

    def source(self) -> str: ...


class Entered(Struct, array_like=True):
    """What one test entered, and how many seconds of the processor it took."""

    test: str
    passed: bool
    seconds: float
    functions: list[Function]


class LiveMutants:
    """A plugin of pytest that runs the collected tests against mutants instead of once.

    `told` is called with the number of each mutant and the test that noticed it. `entered` is a file that
    keeps what the tests of these sources enter. `prepare` is called in each process that runs tests.
    """

    def __init__(
        self,
        mutants: Sequence[Breakable],
        watched: Path,
        entered: Path,
        folder: Path,
        told: Callable[[int, str], None],
        processes: int = 1,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self.mutants, self.watched, self.told = mutants, str(watched), told
        self.entered, self.folder, self.processes = entered, folder, processes
        self.prepare = prepare

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests once to see what they enter, then those that enter what is broken."""
        items = {item.nodeid: item for item in session.items}
        entered = self._entered(items)
        running: dict[int, int] = {}
        for number, mutant in enumerate(self.mutants):
            broken = broken_functions(mutant)
            tests = sorted((it for it in entered if broken & set(it.functions)), key=lambda it: it.seconds)
            if not tests:
                self.told(number, UNREACHED)
                continue
            if len(running) == self.processes:
                self._finish(running)
            running[_forked(lambda: self._probe(mutant, [items[it.test] for it in tests], number))] = number  # noqa: B023 - called at once
        while running:
            self._finish(running)
        return True

    def _entered(self, items: Mapping[str, pytest.Item]) -> list[Entered]:
        """Run tests in another process, and return what each enters; what an earlier run has seen is kept."""
        unknown = items.keys() - {it.test for it in self._known()}
        os.waitpid(_forked(lambda: self._watch(it for name, it in items.items() if name in unknown)), 0)
        return [it for it in self._known() if it.passed and it.test in items]

    def _known(self) -> list[Entered]:
        lines = self.entered.read_bytes().splitlines() if self.entered.exists() else []
        return [msgspec.json.decode(line, type=Entered) for line in lines]

    def _watch(self, items: Iterable[pytest.Item]) -> None:
        self.prepare()
        codes = set[CodeType]()

        def enter(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(self.watched):
                codes.add(frame.f_code)

        threading.setprofile(enter)
        with self.entered.open("ab", buffering=0) as file:
            for item in items:
                codes.clear()
                began = process_time()
                sys.setprofile(enter)
                passed = passes(item)
                sys.setprofile(None)
                functions = [function_of(code) for code in list(codes)]
                entered = Entered(item.nodeid, passed, process_time() - began, functions)
                file.write(msgspec.json.encode(entered) + b"\n")

    def _probe(self, mutant: Breakable, items: Sequence[pytest.Item], number: int) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, MOST_CPU))
        self.prepare()
        break_functions(mutant)
        failed = next((item.nodeid for item in items if not passes(item)), SURVIVED)
        self._result(number).write_text(failed, "utf-8")

    def _finish(self, running: dict[int, int]) -> None:
        """Wait until one of the processes is over, and tell of its mutant; one that was stopped hangs."""
        process, _ = os.wait()
        number = running.pop(process)
        file = self._result(number)
        self.told(number, file.read_text("utf-8") if file.exists() else HANGS)

    def _result(self, number: int) -> Path:
        return self.folder / f"{number}.txt"


def outcome_of(mutant: Breakable, work: Callable[[], str], seconds: int) -> str | None:
    """Return what some work comes to in a process with the mutant; None if it takes more processor time."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "outcome"

        def broken() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            break_functions(mutant)
            file.write_text(work(), "utf-8")

        os.waitpid(_forked(broken), 0)
        return file.read_text("utf-8") if file.exists() else None


def passes(item: pytest.Item) -> bool:
    """Run one test, and say whether nothing of it failed."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def _forked(work: Callable[[], None]) -> int:
    """Do something in another process, and return its number.

    That process ends at once: what the tests have left open is not closed. A broken engine may raise
    anything; the parent sees that nothing was told.
    """
    process = os.fork()
    if not process:
        with suppress(BaseException):
            work()
        os._exit(0)
    return process


def function_of(code: CodeType) -> Function:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def broken_functions(mutant: Breakable) -> set[Function]:
    """Return the innermost functions that a mutant changes; those of the module itself run on import."""
    sound, broken = _compiled(mutant)
    return {function_of(code) for code in _changed(sound, broken) if code.co_name != "<module>"}


def break_functions(mutant: Breakable) -> None:
    """Give every function of a module the code that the mutant has for it."""
    codes = {function_of(code): code for code in _nested(_compiled(mutant)[1])}
    for function in [it for it in gc.get_objects() if isinstance(it, FunctionType)]:
        code = codes.get(function_of(function.__code__))
        if code is not None:
            function.__code__ = code


def _compiled(mutant: Breakable) -> tuple[CodeType, CodeType]:
    file = importlib.import_module(mutant.dotted).__file__
    assert file is not None
    return (
        compile(Path(file).read_text("utf-8"), file, "exec"),
        compile(mutant.source(), file, "exec"),
    )


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in _inside(code):
        yield from _nested(inner)


def _inside(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _changed(sound: CodeType, broken: CodeType) -> Iterator[CodeType]:
    """Yield the innermost code objects that differ by more than where their text stands."""
    both = zip(_inside(sound), _inside(broken), strict=True)
    pairs = [(one, other) for one, other in both if _unplaced(one) != _unplaced(other)]
    if not pairs:
        yield broken
    for one, other in pairs:
        yield from _changed(one, other)


def _unplaced(code: CodeType) -> CodeType:
    """Return code without the columns of its text."""
    constants = (_unplaced(it) if isinstance(it, CodeType) else it for it in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(constants))
