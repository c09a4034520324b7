"""Break the engine in one place at a time, and see who notices: the second oracle, honest agents, the tests.

    python -m tools.search.engine_mutants [--seed N] [--sample 60]

A mutant turns one condition of a module around. It is made in a process of its own and probed by a short
search and honest walks, with the guard and without it; what nobody notices without it is left to the tests of
the core, without the guard too. The exit code is 1 if the oracle sees a violation that the guard let pass.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random, randrange
from tempfile import TemporaryDirectory

import pytest
from msgspec import Struct

from tools.live_mutants import HANGS, SURVIVED, UNREACHED, LiveMutants, outcome_of
from tools.search.adapter import Setting
from tools.search.explore import MAIN, Figures, explore
from tools.search.honest import walk
from tools.search.unguarded import unguard
from tools.search.workflows import WorkflowData, workflow_of

ROOT = Path(__file__).parent.parent.parent
ENGINE = Path("src/interlock/core/engine")
BROKEN = (
    "gates",
    "claims",
    "settle",
    "evolve",
    "decisions",
    "checkpoints",
    "requirements",
    "run_checks",
    "paths/loops",
    "paths/exits",
    "paths/jumps",
    "paths/transitions",
)
PROBED = (
    (("setter", "gate"), Setting("execution", "auto")),
    (("confirm", "each-step"), Setting("gated", "client")),
    (("conditional", "away"), Setting("session", "user", "strict", "never-stop")),
    (("while", "approval"), Setting("session", "auto")),
    (("each-approval", "deploy"), Setting("execution", "user", "strict", "never-stop")),
    (("waiting", "gate"), Setting("navigation", "auto", "advisory")),
    (("checked", "approvers"), Setting("gated", "client", "strict", "never-stop")),
    (("each-reporting",), Setting("execution", "auto")),
)
STATES = 30
MOST_CPU = 15  # seconds of a probe; a sound engine takes three
ORACLE, SILENT = "seen by the oracle", "silent"
TESTS = ("tests/core", "--ignore", "tests/core/guard", "-m", "not slow and not hypothesis")


class EngineMutant(Struct, frozen=True):
    """One condition, turned around."""

    module: str
    line: int
    text: str
    broken: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} not ({self.text})"

    @property
    def dotted(self) -> str:
        return f"interlock.core.engine.{self.module.replace('/', '.')}"

    def source(self) -> str:
        """Return the module with the condition turned around."""
        return self.broken


def engine_mutants(module: str) -> Iterator[EngineMutant]:
    """Yield a module's mutants, in order."""
    text = (ROOT / ENGINE / f"{module}.py").read_text("utf-8")
    for line, condition, source in turned_around(text):
        yield EngineMutant(module, line, condition, source)


def turned_around(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each condition of a source: its line, what it says, and the source with it turned around."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        tests = [node.test] if isinstance(node, (ast.If, ast.IfExp)) else []
        tests += node.ifs if isinstance(node, ast.comprehension) else []
        for test in tests:
            segment = ast.get_source_segment(text, test)
            if segment is None or ":=" in segment:
                continue
            begin = starts[test.lineno - 1] + test.col_offset
            source = f"{text[:begin]}(not ({segment})){text[begin + len(segment) :]}"
            yield test.lineno, " ".join(segment.split()), source


def probe() -> set[str]:
    """Search and walk a few workflows with the engine as it is imported, and name all that is wrong."""
    wrong: set[str] = set()
    for kinds, other in PROBED:
        data = workflow_of(kinds, "two" if "away" in kinds else "one")
        for setting in (*MAIN, other):
            wrong |= {f"{what} in {data.name} on {setting.surface}" for what in _probed(data, setting)}
    return wrong


def _probed(data: WorkflowData, setting: Setting) -> Iterator[str]:
    """Search a workflow and walk it, and name what is wrong; what crashes may still do harm elsewhere."""
    figures = Figures()
    try:
        explore(data, setting, figures, most=STATES)
        if setting in MAIN and not walk(data, setting).ended:
            yield "stuck"
    except Exception:  # whatever a broken engine raises
        yield "crashes"
    yield from figures.violations


def probed(mutant: EngineMutant, *, guarded: bool) -> str:
    """Probe a mutant in a process of its own, and say who notices it."""

    def told() -> str:
        if not guarded:
            unguard()
        return "\n".join(text.split()[0] for text in probe())

    words = outcome_of(mutant, told, MOST_CPU)
    return HANGS if words is None else _noticed_by(set(words.splitlines()))


def seen_by_tests(mutants: Sequence[EngineMutant]) -> set[str]:
    """Run the tests of the core without the guard; return the mutants that one of them notices."""
    seen = set[str]()

    def told(number: int, by: str) -> None:
        if by not in (SURVIVED, UNREACHED):
            seen.add(mutants[number].name)

    with TemporaryDirectory() as folder:
        plugin = LiveMutants(
            mutants, ROOT / ENGINE, Path(folder) / "entered", Path(folder), told, prepare=unguard
        )
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *TESTS], plugins=[plugin])
    return seen


def _noticed_by(wrong: set[str]) -> str:
    if wrong - {"stuck", "guard", "crashes"}:
        return ORACLE
    names = {"guard": "refused by the guard", "crashes": "crashes", "stuck": "stuck"}
    return next((told for name, told in names.items() if name in wrong), SILENT)


class Noticed:
    """Who has noticed the mutants of a sample that a seed gives."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.mutants = [mutant for module in BROKEN for mutant in engine_mutants(module)]
        self.by = {"on": Counter[str](), "off": Counter[str]()}
        Random(seed).shuffle(self.mutants)

    def probed(self, sample: int) -> Iterator[str]:
        """Probe the first of the mutants, and tell of each."""
        silent = list[EngineMutant]()
        for mutant in self.mutants[:sample]:
            on, off = probed(mutant, guarded=True), probed(mutant, guarded=False)
            self.by["on"][on] += 1
            self.by["off"][off] += 1
            silent += [mutant] if off == SILENT else []
            yield f"{on:22}{off:22}{mutant.name}"
        seen = seen_by_tests(silent) if silent else set()
        self.by["off"] += Counter({SILENT: -len(seen), "seen by the tests": len(seen)})
        yield from (f"not seen by the tests  {mutant.name}" for mutant in silent if mutant.name not in seen)

    def lines(self) -> Iterator[str]:
        """Tell the figures."""
        count = self.by["on"].total()
        yield f"mutants of the engine: {count} of {len(self.mutants)}, seed {self.seed}"
        for guard, noticed in self.by.items():
            listed = ", ".join(f"{name} {number}" for name, number in sorted(noticed.items()))
            yield f"guard {guard}: {listed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PROOF_SEED") or randrange(10**6)))
    parser.add_argument("--sample", type=int, default=60)
    options = parser.parse_args()
    noticed = Noticed(options.seed)
    for text in noticed.probed(options.sample):
        print(text, flush=True)
    for text in noticed.lines():
        print(f"proof: {text}")
    sys.exit(bool(noticed.by["on"][ORACLE]))


if __name__ == "__main__":
    main()
