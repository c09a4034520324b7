"""What is broken on purpose, by hand and by chance, keeps up with the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutants import MUTANTS, ROOT, Mutant
from tools.sampled_mutants import QUICK, ROOMS, mutants


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise)
def test_a_mutant_finds_what_it_replaces_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.before) == 1
    assert all((ROOT / Path(tests)).exists() for tests in mutant.tests)


@pytest.mark.slow
def test_a_sample_is_taken_of_every_condition_of_its_rooms_and_can_be_made() -> None:
    every = list(mutants())
    assert {mutant.module.partition("/")[0] for mutant in every} == set(ROOMS)
    for mutant in every[:: len(every) // 20]:
        compile(mutant.source(), mutant.module, "exec")
    assert all((ROOT / tests).exists() for stage in QUICK for tests in stage)
