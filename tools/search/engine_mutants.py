"""Break the engine in one place at a time, and see who notices: the second oracle, honest agents, or nobody.

    python -m tools.search.engine_mutants [--seed N] [--sample 40]

A mutant turns one condition of a module around. It is made in a copy of the sources and probed by a short
search and honest walks, without the guard and with it. The exit code is 1 if the oracle sees a violation that
the guard let pass.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random, randrange
from tempfile import TemporaryDirectory

from interlock.core.engine import decide
from tools.search.explore import MAIN, Figures, explore
from tools.search.honest import walk
from tools.search.workflows import workflow_of

ROOT = Path(__file__).parent.parent.parent
ENGINE = Path("src/interlock/core/engine")
BROKEN = (
    "gates",
    "claims",
    "settle",
    "evolve",
    "decisions",
    "checkpoints",
    "loops",
    "paths/exits",
    "paths/jumps",
    "paths/transitions",
)
PROBED = (("setter", "gate"), ("confirm", "each-step"), ("conditional", "away"), ("while", "approval"))
STATES = 60
SECONDS = 300
ORACLE = "seen by the oracle"


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
            yield EngineMutant(module, test.lineno, " ".join(segment.split()), source)


def probe(*, guarded: bool) -> set[str]:
    """Search and walk a few workflows with the engine as it is imported, and name all that is wrong."""
    if not guarded:
        decide.inspect = lambda plan, audit, events, command: None  # type: ignore[attr-defined]
    wrong: set[str] = set()
    for kinds in PROBED:
        data = workflow_of(kinds, "two" if "away" in kinds else "one")
        for setting in MAIN:
            figures = Figures()
            explore(data, setting, figures, most=STATES)
            wrong |= {f"{rule} in {data.name} on {setting.surface}" for rule in figures.violations}
            honest = walk(data, setting)
            wrong |= set() if honest.ended else {f"stuck in {data.name} on {setting.surface}"}
    return wrong


def outcome(mutant: EngineMutant, *, guarded: bool) -> str:
    """Say who notices a mutant."""
    with TemporaryDirectory() as folder:
        copied = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copied, ignore=shutil.ignore_patterns("__pycache__"))
        (copied.parent / ENGINE / f"{mutant.module}.py").write_text(mutant.source, "utf-8")
        environment = {**os.environ, "PYTHONPATH": f"{copied}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "tools.search.engine_mutants", "--probe"]
        command += ["--guarded"] if guarded else []
        try:
            ran = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return "hangs"
    return "crashes" if ran.returncode else _noticed_by({text.split()[0] for text in ran.stdout.splitlines()})


def _noticed_by(wrong: set[str]) -> str:
    if wrong - {"stuck", "guard"}:
        return ORACLE
    return "refused by the guard" if "guard" in wrong else "stuck" if wrong else "silent"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--guarded", action="store_true")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PROOF_SEED") or randrange(10**6)))
    parser.add_argument("--sample", type=int, default=40)
    options = parser.parse_args()
    if options.probe:
        for text in sorted(probe(guarded=options.guarded)):
            print(text)
        return
    mutants = [mutant for module in BROKEN for mutant in engine_mutants(module)]
    counts = {"off": Counter[str](), "on": Counter[str]()}
    for mutant in Random(options.seed).sample(mutants, min(options.sample, len(mutants))):
        off, on = outcome(mutant, guarded=False), outcome(mutant, guarded=True)
        counts["off"][off] += 1
        counts["on"][on] += 1
        print(f"{off:22}{on:22}{mutant.module}:{mutant.line} not ({mutant.text})", flush=True)
    print(f"proof: {len(mutants)} mutants of the engine, seed {options.seed}")
    for guard, noticed in counts.items():
        listed = ", ".join(f"{name} {count}" for name, count in sorted(noticed.items()))
        print(f"proof: guard {guard}, {noticed.total()} probed: {listed}")
    sys.exit(bool(counts["on"][ORACLE]))


if __name__ == "__main__":
    main()
