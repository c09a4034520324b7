"""Conversion changes how a workflow is written, and nothing about how it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.authoring.convert import ConversionRefused, Converted, convert, write_files
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.library import BUNDLED, Library, Loaded, Source
from interlock.authoring.simulate.explore import explore
from interlock.authoring.sources.sources import Unit, units
from interlock.authoring.text.formats import parse_text
from interlock.authoring.text.yaml_writer import as_yaml
from interlock.core.definition.workflow import Workflow
from interlock.core.values import Json
from support.authored import head, write
from support.cli_process import Ran, interlock
from support.corpus import needs_corpus
from support.paths import CORPUS

INVALID = "invalid-workflow.json"

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t"), max_size=60)
    | st.sampled_from(
        ["yes", "1e5", "0o7", "007", "~", "", "- a", "a: b", "#", "null", "True", "{{a}}", " x ", "x \n"]
    )
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc-$: ", min_size=1), inner, max_size=4)
    ),
)


@given(st.dictionaries(st.sampled_from(["id", "a b", "yes", "1", "x:"]), values, min_size=1))
def test_what_is_written_is_read_back(value: dict[str, Json]) -> None:
    report = Report()
    read = parse_text("x.yaml", as_yaml(value), "yaml", report)
    assert read is not None, report.diagnostics()
    assert json.dumps(read.value) == json.dumps(value)


def the_only(source: Source) -> Workflow:
    library = Library([source])
    (entry,) = library.listing().entries
    found = library.load(entry.id)
    assert isinstance(found, Loaded)
    return found.workflow


def bare(workflow: Workflow) -> Workflow:
    """The workflow without its name, whose files it is made of, and the texts whose format has changed."""
    activities = tuple(msgspec.structs.replace(activity, document=None) for activity in workflow.activities)
    return msgspec.structs.replace(workflow, id="", documents=(), activities=activities, declares_sets=False)


def converted(path: Path, folder: Path) -> Workflow:
    made = convert(path, None if path.is_dir() else f"t.{path.stem.lower().replace('.', '-')}")
    assert isinstance(made, Converted), made
    target = folder / path.stem if made.folder else folder
    assert not isinstance(write_files(made.files, target), ConversionRefused)
    return the_only(Source("configured", target))


def corpus() -> Iterator[Path]:
    for folder in ("steps", "steps-v1", "activities"):
        found: Iterator[Unit] = units(Source("configured", CORPUS / folder))
        yield from (unit.path for unit in found if unit.path.name != INVALID)


@needs_corpus
@pytest.mark.parametrize("path", list(corpus()), ids=lambda path: path.name)
def test_a_real_workflow_compiles_to_the_same(path: Path, tmp_path: Path) -> None:
    before = the_only(Source("configured", path, "corpus"))
    after = converted(path, tmp_path)
    assert bare(after) == bare(before)
    assert explore(after).parts == explore(before).parts


@pytest.mark.parametrize(
    "path",
    [item for item in sorted(BUNDLED.path.glob("*.yaml")) if ".scenario." not in item.name],
    ids=lambda path: path.stem,
)
def test_a_bundled_workflow_converted_from_json_compiles_to_the_same(path: Path, tmp_path: Path) -> None:
    parsed = parse_text(path.name, path.read_text("utf-8"), "yaml", Report())
    assert parsed is not None
    write(tmp_path, {f"{path.stem}.json": json.dumps(parsed.value), "interlock.yaml": "infer: false\n"})
    after = converted(tmp_path / f"{path.stem}.json", tmp_path / "to")
    assert bare(after) == bare(the_only(Source("bundled", path)))


def test_the_texts_stay_readable(tmp_path: Path) -> None:
    step: Json = {"id": "ask", "title": "Ask", "prompt": "First line.\nSecond line.\n"}
    write(tmp_path, {"w.json": json.dumps(head(step, tags=["a", "b"]))})
    made = convert(tmp_path / "w.json")
    assert isinstance(made, Converted)
    assert made.files["w.yaml"] == (
        "id: t.w\nname: W\ndescription: d\nversion: 1.0.0\nsteps:\n  - id: ask\n    title: Ask\n"
        "    prompt: |\n      First line.\n      Second line.\ntags: [a, b]\n"
    )


def run(folder: Path, *arguments: str) -> Ran:
    return interlock(folder / "data", "convert", *arguments)


@pytest.mark.parametrize(
    ("declared", "chosen", "code"),
    [("plain", None, 1), ("wr.x", None, 1), ("plain", "t.x", 0), ("t.x", None, 0)],
)
def test_an_id_needs_a_namespace(tmp_path: Path, declared: str, chosen: str | None, code: int) -> None:
    """Rule 38."""
    write(tmp_path, {"w.json": json.dumps(head(id=declared))})
    ran = run(tmp_path, str(tmp_path / "w.json"), *(["--id", chosen] if chosen else []))
    assert ran.code == code
    assert ran.out.startswith("id: t.x\n") or "--id team.name" in ran.err


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write(tmp_path, {"w.json": json.dumps(head()), "to/w.yaml": "mine"})
    ran = run(tmp_path, str(tmp_path / "w.json"), "--to", str(tmp_path / "to"))
    assert ran.code == 5
    assert (tmp_path / "to" / "w.yaml").read_text() == "mine"


def test_a_folder_needs_a_target(tmp_path: Path) -> None:
    write(tmp_path, {"w/workflow.toon": "id: w\n"})
    assert run(tmp_path, str(tmp_path / "w")).code == 2


def test_a_folder_in_yaml_is_left_alone(tmp_path: Path) -> None:
    ran = run(tmp_path, str(BUNDLED.path / "meta"), "--to", str(tmp_path / "to"))
    assert (ran.code, ran.err) == (1, "interlock: workflow.yaml is already YAML.\n")


@pytest.mark.parametrize(("path", "code"), [("nowhere", 3), ("broken.json", 1)])
def test_what_cannot_be_read_is_refused(tmp_path: Path, path: str, code: int) -> None:
    write(tmp_path, {"broken.json": "{"})
    assert run(tmp_path, str(tmp_path / path)).code == code
