"""Break core and ledger in places chosen by chance, one at a time, and count what the tests notice.

    python -m tools.sampled_mutants [--seed N] [--sample 60] [--least 56] [--processes 2]

A mutant turns one condition around. First come the quick tests that enter the broken function, in this
process; if they leave too many, the whole suite runs against each that is left, in a copy of the project.
What was found is kept in `build/`, so that a run that was stopped goes on with the same seed. The exit code
is 1 if fewer than `--least` were noticed.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random, randrange
from tempfile import TemporaryDirectory

import msgspec
import pytest
from msgspec import Struct

from tools.live_mutants import SURVIVED, UNREACHED, LiveMutants
from tools.mutants import ROOT
from tools.search.engine_mutants import turned_around

ROOMS = ("core", "ledger")
SOURCES = Path("src/interlock")
QUICK = (("tests/core", "tests/ledger"), ("tests/surfaces", "tests/attacks", "tests/cli"))
KEPT = ROOT / "build"
SECONDS = 3600  # for the whole suite
IGNORED = shutil.ignore_patterns(".git", ".venv", "build", "node_modules", "__pycache__", ".*_cache")


class SampledMutant(Struct, frozen=True):
    """One condition, turned around: the module within the sources, its line, and what the condition says."""

    module: str
    line: int
    condition: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} not ({self.condition})"

    @property
    def dotted(self) -> str:
        return f"interlock.{self.module.removesuffix('.py').replace('/', '.')}"

    def difference(self) -> str:
        """Return the changed lines."""
        sound = (ROOT / SOURCES / self.module).read_text("utf-8")
        lines = difflib.unified_diff(
            sound.splitlines(), self.source().splitlines(), self.module, n=1, lineterm=""
        )
        return "\n".join(lines)

    def source(self) -> str:
        """Return the module with the condition turned around."""
        text = (ROOT / SOURCES / self.module).read_text("utf-8")
        sources = (it[2] for it in turned_around(text) if it[:2] == (self.line, self.condition))
        return next(sources)


def mutants() -> Iterator[SampledMutant]:
    """Yield every mutant of the rooms, in order."""
    for room in ROOMS:
        for file in sorted((ROOT / SOURCES / room).rglob("*.py")):
            module = str(file.relative_to(ROOT / SOURCES))
            for line, condition, _ in turned_around(file.read_text("utf-8")):
                yield SampledMutant(module, line, condition)


def noticed_by(mutant: SampledMutant) -> str:
    """Make a mutant in a copy of the project; return the test of the whole suite that notices it first."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=IGNORED)
        return _noticed(copy, mutant) or SURVIVED


def _noticed(copy: Path, mutant: SampledMutant) -> str:
    """Return the first test that fails with the mutant and passes without it."""
    file, excused = copy / SOURCES / mutant.module, list[str]()
    sound, broken = (ROOT / SOURCES / mutant.module).read_text("utf-8"), mutant.source()
    while True:
        file.write_text(broken, "utf-8")
        name = _failed(copy, ("tests",), excused)
        file.write_text(sound, "utf-8")
        if not name or not _failed(copy, (name,), ()):
            return name
        excused.append(name)


def _failed(copy: Path, tests: Sequence[str], excused: Sequence[str]) -> str:
    """Run tests in a copy until one fails, and name it; those that take too long have noticed nothing."""
    chosen = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    chosen += [f"--deselect={name}" for name in excused]
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy / 'tests'}"}
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *chosen, *tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0].split(" - ")[0].split(maxsplit=1)[1] if failed else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PROOF_SEED", randrange(10**6))))
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--least", type=int, default=56)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    every = list(mutants())
    chosen = Random(options.seed).sample(every, options.sample)
    print(
        f"seed {options.seed}: {len(chosen)} of {len(every)} conditions of {' and '.join(ROOMS)}", flush=True
    )
    found = Found(options.seed, chosen)
    for tests in QUICK:
        found.ask_quick_tests(tests, options.processes)
    found.ask_whole_suite(options.least)
    survivors = found.survivors()
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were noticed")
    for mutant in survivors:
        print(f"{SURVIVED}  {mutant.name}\n{mutant.difference()}")
    sys.exit(len(chosen) - len(survivors) < options.least)


class Found:
    """Who noticed the mutants of a sample; kept in a file, for a run that goes on."""

    def __init__(self, seed: int, chosen: Sequence[SampledMutant]) -> None:
        self.chosen = chosen
        self.file = KEPT / f"sampled-mutants-{seed}.json"
        known = self.file.read_bytes() if self.file.exists() else b"{}"
        self.by = msgspec.json.decode(known, type=dict[str, str])
        self.output = os.fdopen(os.dup(1), "w", buffering=1)  # pytest takes the other

    def survivors(self) -> list[SampledMutant]:
        return [mutant for mutant in self.chosen if self.by[mutant.name] in (SURVIVED, UNREACHED)]

    def keep(self, mutant: SampledMutant, by: str) -> None:
        self.by[mutant.name] = by
        KEPT.mkdir(exist_ok=True)
        self.file.write_bytes(msgspec.json.encode(self.by))
        print(f"{mutant.name}\n          by {by}", file=self.output)

    def ask_quick_tests(self, tests: Sequence[str], processes: int) -> None:
        """Run those of the tests that enter what is broken and was not noticed yet; laws take too long."""
        left = [it for it in self.chosen if self.by.get(it.name, SURVIVED) in (SURVIVED, UNREACHED)]
        chosen = ["-q", "-m", "not slow and not hypothesis", "-p", "no:cacheprovider", "-p", "no:xdist"]
        with TemporaryDirectory() as folder:
            told = lambda number, by: self.keep(left[number], by)  # noqa: E731
            plugin = LiveMutants(left, ROOT / SOURCES, _entered(), Path(folder), told, processes)
            pytest.main([*chosen, *tests], plugins=[plugin])

    def ask_whole_suite(self, least: int) -> None:
        """Run everything against those that are left, until enough were noticed."""
        for mutant in self.survivors():
            if len(self.chosen) - len(self.survivors()) >= least:
                return
            self.keep(mutant, noticed_by(mutant))


def _entered() -> Path:
    """Return the file that keeps what the tests of these sources enter."""
    KEPT.mkdir(exist_ok=True)
    files = sorted(file for room in ("src", "tests") for file in (ROOT / room).rglob("*.py"))
    digest = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return KEPT / f"entered-{digest[:12]}.jsonl"


if __name__ == "__main__":
    main()
