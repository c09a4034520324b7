"""Break core and ledger in places chosen by chance, one at a time, and count what the tests notice.

    python -m tools.sampled_mutants [--seed N] [--sample 60] [--least 56] [--processes 2]

A mutant turns one condition around. The tests that name its module run first, then those of its room, then
those of the surfaces; the first failure ends it. What was found is kept in `build/`, so that a run that was
stopped goes on with the same seed. The exit code is 1 if fewer than `--least` were noticed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random, randrange
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from tools.mutants import ROOT
from tools.search.engine_mutants import turned_around

ROOMS = ("core", "ledger")
SOURCES = Path("src/interlock")
KEPT = ROOT / "build"
SECONDS = 900  # for the tests of one stage
SURVIVED, TIME = "SURVIVED", "time"
IGNORED = shutil.ignore_patterns(".git", ".venv", "build", "node_modules", "__pycache__", ".*_cache")


class SampledMutant(Struct, frozen=True):
    """One condition, turned around: the module within the sources, its line, and what the condition says."""

    module: str
    line: int
    condition: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} not ({self.condition})"

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


def stages(mutant: SampledMutant) -> Iterator[tuple[str, ...]]:
    """Yield the tests to run, the most related first."""
    dotted = f"interlock.{mutant.module.removesuffix('.py').replace('/', '.')}"
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    naming = tuple(str(it.relative_to(ROOT)) for it in tests if dotted in it.read_text("utf-8"))
    if naming:
        yield naming
    yield (f"tests/{mutant.module.partition('/')[0]}",)
    yield "tests/surfaces", "tests/attacks", "tests/cli"


def noticed_by(mutant: SampledMutant) -> str:
    """Make a mutant in a copy of the project; return the test that notices it first."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=IGNORED)
        return next(filter(None, (_noticed(copy, mutant, tests) for tests in stages(mutant))), SURVIVED)


def _noticed(copy: Path, mutant: SampledMutant, tests: Sequence[str]) -> str:
    """Return the first of these tests that fails with the mutant and passes without it."""
    file, excused = copy / SOURCES / mutant.module, list[str]()
    sound, broken = (ROOT / SOURCES / mutant.module).read_text("utf-8"), mutant.source()
    while True:
        file.write_text(broken, "utf-8")
        name = _failed(copy, tests, excused)
        file.write_text(sound, "utf-8")
        if name in ("", TIME) or not _failed(copy, (name,), ()):
            return name
        excused.append(name)


def _failed(copy: Path, tests: Sequence[str], excused: Sequence[str]) -> str:
    """Run tests in a copy until one fails, and name it; those that take for ever have noticed too."""
    chosen = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
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
        return TIME
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
    known = _known(options.seed)
    left = [mutant for mutant in chosen if mutant.name not in known]
    with ProcessPoolExecutor(options.processes) as pool:
        for mutant, by in zip(left, pool.map(noticed_by, left), strict=True):
            known[mutant.name] = by
            _keep(options.seed, known)
            print(f"{SURVIVED if by == SURVIVED else 'noticed '}  {mutant.name}", flush=True)
    survivors = [mutant.name for mutant in chosen if known[mutant.name] == SURVIVED]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were noticed by the quick tests")
    for name in survivors:
        print(f"{SURVIVED}  {name}")
    sys.exit(len(chosen) - len(survivors) < options.least)


def _file(seed: int) -> Path:
    return KEPT / f"sampled-mutants-{seed}.json"


def _known(seed: int) -> dict[str, str]:
    """Return who noticed the mutants that an earlier run has come to."""
    return msgspec.json.decode(_file(seed).read_bytes(), type=dict[str, str]) if _file(seed).exists() else {}


def _keep(seed: int, known: dict[str, str]) -> None:
    KEPT.mkdir(exist_ok=True)
    _file(seed).write_bytes(msgspec.json.encode(known))


if __name__ == "__main__":
    main()
