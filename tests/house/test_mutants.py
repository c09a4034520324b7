"""The list of broken promises, which is run by hand, keeps up with the code that it breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise)
def test_a_mutant_finds_what_it_replaces_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.before) == 1
    assert all((ROOT / Path(tests)).exists() for tests in mutant.tests)
