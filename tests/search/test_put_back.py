"""Each exception that the engine once had is found by the search as soon as it is put back."""

from __future__ import annotations

import pytest

from tools.search.put_back import EXCEPTIONS, PutBack, probe, put_back


@pytest.mark.parametrize("case", EXCEPTIONS, ids=lambda case: case.name)
def test_it_still_fits_its_module(case: PutBack) -> None:
    assert case.source()


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("case", EXCEPTIONS, ids=lambda case: case.name)
def test_it_is_found(case: PutBack) -> None:
    assert not probe(case, guarded=True).broken, "the engine as it is breaks the rule already"
    found = put_back(case, guarded=False)
    assert found.broken
    is_held = not put_back(case, guarded=True).broken
    assert is_held is not bool(case.unseen), "the guard lets it pass"
    held = f"not seen by the guard ({case.unseen})" if case.unseen else "held by the guard"
    print(f"\nproof: put back: found after {found}, {held}: {case.name} ({case.rule})")
