"""Real workflow files: all load, and their diagnostics are those that a person checked.

The golden lists were checked by hand against the files; a change in them must be checked by hand again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import toon_format

from interlock.authoring.library import Diagnostic, Library, Loaded, Source
from interlock.authoring.text.yaml_writer import as_yaml
from interlock.core.definition.dialects import WORKFLOW_SERVER
from support.corpus import needs_corpus
from support.paths import CORPUS, GOLDEN

FOLDERS = ("activities", "steps", "steps-v1")

pytestmark = needs_corpus


def corpus(folder: str) -> Library:
    return Library([Source("configured", CORPUS / folder, "corpus")])


def line(diagnostic: Diagnostic) -> str:
    where = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}"
    return f"{where} {diagnostic.code} {diagnostic.message} [{diagnostic.next_action}]"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_diagnostics_are_those_that_were_checked_by_hand(folder: str) -> None:
    found = [line(diagnostic) for diagnostic in corpus(folder).listing().diagnostics]
    assert found == (GOLDEN / f"diagnostics-{folder}.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("folder", "count"), [("activities", 5), ("steps", 18), ("steps-v1", 4)])
def test_every_valid_file_loads(folder: str, count: int) -> None:
    one = corpus(folder)
    entries = one.listing().entries
    assert len(entries) == count
    for entry in entries:
        loaded = one.load(entry.id)
        assert isinstance(loaded, Loaded)
        assert all(loaded.text(document.digest) for document in loaded.workflow.documents)
        assert loaded.workflow.activities


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_same_files_load_as_yaml(tmp_path: Path, folder: str) -> None:
    """YAML that others wrote for their servers is refused no more than their JSON and TOON."""
    for path in (CORPUS / folder).rglob("*"):
        target = tmp_path / path.relative_to(CORPUS / folder)
        if path.suffix in (".json", ".toon"):
            text = path.read_text(encoding="utf-8")
            value = json.loads(text) if path.suffix == ".json" else toon_format.decode(text, strict=False)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.with_suffix(".yaml").write_text(as_yaml(value), encoding="utf-8")
    found = Library([Source("configured", tmp_path, "corpus")]).listing().entries
    assert {entry.id for entry in found} == {entry.id for entry in corpus(folder).listing().entries}


def test_the_invalid_file_is_refused_with_location_and_reason() -> None:
    found = corpus("steps-v1").load("INVALID_ID_WITH_CAPS")
    assert isinstance(found, Diagnostic)
    assert (found.file, found.line, found.code) == ("invalid-workflow.json", 2, "IL401")


def test_folders_of_activities_have_the_dialect_of_their_server() -> None:
    loaded = corpus("activities").load("work-packages")
    assert isinstance(loaded, Loaded)
    assert loaded.workflow.dialect == WORKFLOW_SERVER
    assert loaded.workflow.dialect.claims_may_lack_variables


def test_ids_are_mounted_under_the_name() -> None:
    """Rule 38."""
    assert all(entry.id.startswith("corpus.") for entry in corpus("steps").listing().entries)
    assert {entry.id for entry in corpus("activities").listing().entries} == {
        "cicd-pipeline-security-audit", "meta", "prism", "prism-evaluate", "work-packages",
    }  # fmt: skip


def test_without_a_mount_the_reserved_names_are_refused() -> None:
    """Rule 38."""
    found = Library([Source("configured", CORPUS / "steps")]).listing()
    assert [diagnostic.code for diagnostic in found.diagnostics if diagnostic.severity == "error"].count(
        "IL403"
    ) > 0
    assert all(not entry.id.startswith("wr.") for entry in found.entries)
