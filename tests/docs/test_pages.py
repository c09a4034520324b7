"""The generated pages of the documentation are those of the tables and packs they speak of."""

from __future__ import annotations

import pytest

from interlock.authoring.compile.builtins import contracts, features, references, templates
from interlock.authoring.diagnostics.codes import CODES
from support.paths import DOCS
from tools.pages.diagnostics import FAMILIES, pages


@pytest.mark.parametrize("name", ["diagnostics.md", "builtins.md"])
def test_a_page_is_what_would_be_generated_now(name: str) -> None:
    """Write them anew with: python -m tools.pages docs"""
    assert (DOCS / name).read_text("utf-8") == pages()[name]


def test_every_code_is_on_its_page() -> None:
    text = pages()["diagnostics.md"]
    assert [code for code in CODES if f"### {code}: " not in text] == []
    assert {code[:3] for code in CODES} == set(FAMILIES)


def test_everything_built_in_is_on_its_page() -> None:
    text = pages()["builtins.md"]
    refs = [*contracts(), *templates(), *features(), *references()]
    assert [ref for ref in refs if f"### {ref}" not in text] == []
