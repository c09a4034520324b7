"""The bundled skills and resources name only tools of the surface that reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.surfaces.shared.documents import Documents, for_surface
from support.harness import STATEFUL, Bench, compile_cache

READERS = ("session", "gated", "navigation")
ONE_SURFACE_ONLY = {
    "session-protocol": ("session", "gated"),
    "orchestrator-management": ("session",),
    "worker-management": ("session",),
    "execute-activity": ("session", "gated"),
    "worker-brief": ("session",),
    "bootstrap": ("session", "gated"),
}


def texts(surface: str) -> Iterator[tuple[str, str]]:
    """Yield the bundled texts as a surface reads them, without those about another one."""
    library = Library([BUNDLED], compile_cache())
    loaded = library.load("meta")
    assert isinstance(loaded, Loaded)
    documents = Documents.of(loaded, library, surface)
    for document in loaded.workflow.documents:
        found = documents.find(document.kind, document.ref)
        assert found is not None
        if surface in ONE_SURFACE_ONLY.get(document.id, READERS):
            yield document.id, found.text


@pytest.mark.parametrize("surface", READERS)
def test_bundled_texts_name_only_tools_of_the_surface_that_reads_them(bench: Bench, surface: str) -> None:
    tools = {name: set(serve(bench.ledger()).tools) for name, serve in STATEFUL.items()}
    others = set().union(*tools.values()) - tools[surface]
    for name, text in texts(surface):
        assert not others & set(re.findall(r"\w+", text)), name
        assert not re.search(r"^\s*(?:- )?\"?(?:session|gated|navigation): ", text, re.MULTILINE), name


def test_entries_lines_and_tools_of_other_surfaces_are_left_out() -> None:
    entries = 'steps[2]: "session: yield.","gated and navigation: ask."\n'
    toon = f'{entries}tools:\n  a:\n    when: "Session: now"\n    params: x\n'
    assert for_surface(toon, "gated", is_toon=True) == "steps[1]: ask.\ntools:\n"
    lines = "1. Begin.\n   - session: yield\n   - gated: ask\n- Note: session: is a word\n"
    assert (
        for_surface(lines, "session", is_toon=False) == "1. Begin.\n   - yield\n- Note: session: is a word\n"
    )
