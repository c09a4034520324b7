"""Each exception that the engine once had is found by the search as soon as it is put back."""

from __future__ import annotations

import pytest

from tools.search.put_back import EXCEPTIONS, PutBack, broken, is_found


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("case", EXCEPTIONS, ids=lambda case: case.name)
def test_it_is_found(case: PutBack) -> None:
    assert broken(case, guarded=True) == 0, "the engine as it is breaks the rule already"
    assert is_found(case, guarded=False)
    assert not is_found(case, guarded=True), "the guard lets it pass"
    print(f"\nproof: put back, and found by '{case.rule}': {case.name}")
