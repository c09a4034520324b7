"""The engine is broken in one place at a time: nothing gets past the guard that the second oracle sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.proof import FULL, SEED

ROOT = Path(__file__).parent.parent.parent
SAMPLE = 60 if FULL else 2


@pytest.mark.slow
@pytest.mark.proof
def test_the_guard_holds_what_a_broken_engine_does() -> None:
    sample = ["--seed", str(SEED), "--sample", str(SAMPLE)]
    command = [sys.executable, "-m", "tools.search.engine_mutants", *sample]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    for text in ran.stdout.splitlines():
        if text.startswith("proof: "):
            print(f"\n{text}")
    assert ran.returncode == 0, ran.stdout
