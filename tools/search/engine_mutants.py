"""Break the engine in one place at a time, and see who notices: the second oracle, honest agents, or nobody.

    python -m tools.search.engine_mutants [--seed N] [--sample 40]

A mutant turns one condition of a module around. It is made in a copy of the sources and probed by a short
search and honest walks; what it breaks beyond the engine as it is counts as noticed.
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

from tools.search.explore import MAIN, Figures, explore
from tools.search.honest import walk
from tools.search.workflows import workflow_of

ROOT = Path(__file__).parent.parent.parent
ENGINE = Path("src/interlock/core/engine")
BROKEN = ("gates", "claims", "settle", "evolve", "decisions", "exits", "checkpoints", "transitions", "loops")
PROBED = (("setter", "gate"), ("confirm", "each-step"), ("conditional", "away"), ("while", "approval"))
STATES = 60
SECONDS = 120


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


def probe() -> set[str]:
    """Search and walk a few workflows with the engine as it is imported, and name all that is wrong."""
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


def outcome(mutant: EngineMutant, known: set[str]) -> str:
    """Say who notices a mutant."""
    with TemporaryDirectory() as folder:
        copied = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copied, ignore=shutil.ignore_patterns("__pycache__"))
        (copied.parent / ENGINE / f"{mutant.module}.py").write_text(mutant.source, "utf-8")
        environment = {**os.environ, "PYTHONPATH": f"{copied}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "tools.search.engine_mutants", "--probe"]
        try:
            ran = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return "hangs"
    if ran.returncode:
        return "crashes"
    new = set(ran.stdout.splitlines()) - known
    if any(not text.startswith("stuck") for text in new):
        return "seen by the oracle"
    return "stuck" if new else "silent"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PROOF_SEED") or randrange(10**6)))
    parser.add_argument("--sample", type=int, default=40)
    options = parser.parse_args()
    known = probe()
    if options.probe:
        print("\n".join(sorted(known)))
        return
    mutants = [mutant for module in BROKEN for mutant in engine_mutants(module)]
    counts = Counter[str]()
    for mutant in Random(options.seed).sample(mutants, min(options.sample, len(mutants))):
        noticed = outcome(mutant, known)
        counts[noticed] += 1
        print(f"{noticed:20}{mutant.module}:{mutant.line} not ({mutant.text})", flush=True)
    listed = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(
        f"proof: {len(mutants)} mutants of the engine, {counts.total()} probed: {listed}, seed {options.seed}"
    )


if __name__ == "__main__":
    main()
