"""The engine is broken in one place at a time: nothing gets past the guard that the second oracle sees."""

from __future__ import annotations

import pytest

from support.proof import FULL, SEED
from tools.search.engine_mutants import ORACLE, Noticed

SAMPLE = 60 if FULL else 2


@pytest.mark.slow
@pytest.mark.proof
def test_the_guard_holds_what_a_broken_engine_does() -> None:
    noticed = Noticed(SEED)
    told = [f"\n{text}" for text in noticed.probed(SAMPLE)]
    for text in noticed.lines():
        print(f"\nproof: {text}")
    assert not noticed.by["on"][ORACLE], "".join(told)
