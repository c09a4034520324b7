"""Break the engine in one place at a time, and see who notices: the second oracle, honest agents, the tests.

    python -m tools.search.engine_mutants [--seed N] [--sample 60]

A mutant turns one condition of a module around. It is made in a copy of the sources and probed by a short
search and honest walks, with the guard and without it; what nobody notices without it is left to the tests of
the core, without the guard too. The exit code is 1 if the oracle sees a violation that the guard let pass.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random, randrange
from tempfile import TemporaryDirectory

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
    "loops",
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
SECONDS = 600
MOST_CPU = 30  # seconds of a probe; a sound engine takes four
ORACLE, SILENT = "seen by the oracle", "silent"
TESTS = ("tests/core", "--ignore", "tests/core/guard")
COPIED = ("src", "tests", "tools", "bench", "pyproject.toml")


@dataclass(frozen=True)
class EngineMutant:
    """One condition, turned around."""

    module: str
    line: int
    text: str
    source: str


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


class Copy:
    """A copy of the project, in which one module at a time is broken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("node_modules"))
            else:
                shutil.copy(ROOT / name, folder / name)
        self.known = self.failed()  # tests of the guard within the core's

    def noticed(self, mutant: EngineMutant) -> tuple[str, str]:
        """Say who notices a mutant, with the guard and without it."""
        file = self.folder / ENGINE / f"{mutant.module}.py"
        sound = file.read_text("utf-8")
        file.write_text(mutant.source, "utf-8")
        try:
            guarded, unguarded = self.probed("--guarded"), self.probed()
            if unguarded == SILENT and self.failed("-x", *self.known):
                unguarded = "seen by the tests"
        finally:
            file.write_text(sound, "utf-8")
        return guarded, unguarded

    def probed(self, *options: str) -> str:
        """Probe what is in the copy in a process of its own."""
        ran = self._run("tools.search.engine_mutants", "--probe", *options)
        if ran is None:
            return "hangs"
        if ran.returncode == -signal.SIGXCPU:
            return "hangs"
        words = {text.split()[0] for text in ran.stdout.splitlines()}
        return _noticed_by(words | {"crashes"} if ran.returncode else words)

    def failed(self, *options: str) -> list[str]:
        """Run the tests of the core without the guard; return options that leave out those that fail."""
        plugins = ("-p", "no:xdist", "-p", "no:cacheprovider", "-p", "tools.search.unguarded")
        ran = self._run("pytest", "-q", "-m", "not slow", *plugins, *options, *TESTS)
        if ran is None:
            return ["hangs"]
        failed = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return [f"--deselect={test}" for test in failed]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str] | None:
        environment = {**os.environ, "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}"}
        command = [sys.executable, "-m", *arguments]
        try:
            return subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None


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
        with TemporaryDirectory() as folder:
            copy = Copy(Path(folder))
            for mutant in self.mutants[:sample]:
                on, off = copy.noticed(mutant)
                self.by["on"][on] += 1
                self.by["off"][off] += 1
                yield f"{on:22}{off:22}{mutant.module}:{mutant.line} not ({mutant.text})"

    def lines(self) -> Iterator[str]:
        """Tell the figures."""
        count = self.by["on"].total()
        yield f"mutants of the engine: {count} of {len(self.mutants)}, seed {self.seed}"
        for guard, noticed in self.by.items():
            listed = ", ".join(f"{name} {number}" for name, number in sorted(noticed.items()))
            yield f"guard {guard}: {listed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--guarded", action="store_true")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PROOF_SEED") or randrange(10**6)))
    parser.add_argument("--sample", type=int, default=60)
    options = parser.parse_args()
    if options.probe:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, 2 * MOST_CPU))
        if not options.guarded:
            unguard()
        for text in sorted(probe()):
            print(text)
        return
    noticed = Noticed(options.seed)
    for text in noticed.probed(options.sample):
        print(text, flush=True)
    for text in noticed.lines():
        print(f"proof: {text}")
    sys.exit(bool(noticed.by["on"][ORACLE]))


if __name__ == "__main__":
    main()
