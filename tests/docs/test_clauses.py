"""Every clause of the five documents names a test that exists, or says why it holds only partly."""

from __future__ import annotations

import pytest

from support.paths import DOCS
from tools.pages import clauses

LEAST = {
    "execution": 210,
    "lookup": 65,
    "navigation": 85,
    "gated": 84,
    "session": 120,
    "answers": 40,
    "protocol": 20,
}

every = pytest.mark.parametrize("name", clauses.DOCUMENTS)


def test_the_page_is_what_would_be_generated_now() -> None:
    """Write it anew with: python -m tools.pages docs"""
    assert (DOCS / "clauses.md").read_text("utf-8") == clauses.pages(DOCS)["clauses.md"]


@every
def test_every_named_test_exists(name: str) -> None:
    known = clauses.test_names()
    named = [test for _, test, _ in clauses.document(DOCS, name).listed() if test]
    assert [test for test in named if test not in known] == []


@every
def test_every_clause_has_a_test_or_a_reason(name: str) -> None:
    listed = list(clauses.document(DOCS, name).listed())
    assert [clause for clause, test, reason in listed if not (test or reason.strip())] == []
    assert len(listed) >= LEAST[name], "clauses are added, and none is dropped"


@every
def test_a_clause_stands_once(name: str) -> None:
    listed = [clause for clause, _, _ in clauses.document(DOCS, name).listed()]
    assert len(listed) == len(set(listed))


def test_every_document_is_on_the_page() -> None:
    assert {path.stem for path in (DOCS / "clauses").glob("*.yaml")} == set(clauses.DOCUMENTS)
