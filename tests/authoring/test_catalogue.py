"""The catalogue of what is built in: every text to insert compiles where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.authoring.catalogue import Builtin, catalogue
from interlock.authoring.library import Library, Loaded
from interlock.authoring.sources.sources import Source

HEAD = "id: test.flow\nname: Flow\ndescription: For a test.\nversion: 1.0.0\n"
STEP = "steps:\n  - id: first-step\n    title: First\n"
PROMPT = "    prompt: Do it.\n"


def inserted(entry: Builtin) -> str:
    """Return a workflow with the text at its place."""
    match entry.kind:
        case "contract":
            return HEAD + STEP + PROMPT + indented(entry.insert, 4)
        case "template":
            return HEAD + "steps:\n  - id: first-step\n" + indented(entry.insert, 4)
        case "feature" | "capability":
            return HEAD + entry.insert + STEP + PROMPT
        case "ref":
            blocks = "    promptBlocks:\n      goal: Do it.\n      procedure:\n"
            return HEAD + STEP + blocks + indented(entry.insert, 8)


def indented(text: str, width: int) -> str:
    return "".join(f"{' ' * width}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("entry", list(catalogue()), ids=lambda entry: entry.ref)
def test_a_text_to_insert_compiles_where_it_belongs(entry: Builtin, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(inserted(entry))
    loaded = Library([Source("project", tmp_path)]).load("test.flow")
    assert isinstance(loaded, Loaded), loaded
    assert loaded.diagnostics == ()


def test_every_kind_is_in_the_catalogue_and_has_details() -> None:
    entries = list(catalogue())
    assert {entry.kind for entry in entries} == {"contract", "template", "feature", "capability", "ref"}
    assert all(entry.details and entry.title and entry.insert for entry in entries)
