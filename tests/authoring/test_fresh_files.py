"""Folders with unusual entries: one of them never stops or hides the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.authored import write
from support.cli_process import Ran, interlock

pytestmark = pytest.mark.slow

GOOD = "id: t.good\nname: Good\nversion: 1.0.0\nsteps:\n  - {id: ask, title: Ask, prompt: Ask.}\n"

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def validate(folder: Path) -> Ran:
    return interlock(folder.parent / "data", "validate", str(folder), "--json")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def name_a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("lay", [link_to_itself, pytest.param(name_a_pipe, marks=needs_pipes)])
@pytest.mark.parametrize("name", ["odd.json", "odd.yaml", "odd.toon"])
def test_an_entry_that_is_not_a_file_is_reported_and_the_rest_is_usable(
    tmp_path: Path, lay: Callable[[Path], None], name: str
) -> None:
    folder = write(tmp_path / "flows", {"good.yaml": GOOD})
    lay(folder / name)
    found = validate(folder).json
    assert found["workflows"] == 1
    assert [(problem["code"], Path(problem["file"]).name) for problem in found["problems"]] == [
        ("IL001", name)
    ]


def test_a_bundle_nested_without_end_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"deep.json": '{"bundleSchemaVersion": 1, "x": ' + "[" * 100_000 + "]" * 100_000 + "}"})
    ran = interlock(tmp_path / "data", "import", str(tmp_path / "deep.json"))
    assert ran.err.startswith("interlock: BUNDLE_INVALID_FORMAT: ")
    assert ran.code == 1


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_gc_takes_any_number_of_days(tmp_path: Path, more: tuple[str, ...]) -> None:
    ran = interlock(tmp_path / "data", "gc", "--days", "9" * 30, *more)
    assert (ran.code, ran.err) == (0, "")


def test_show_prints_nothing_that_steers_a_terminal(tmp_path: Path) -> None:
    text = GOOD.replace("name: Good", 'name: "\\e]0;taken\\aGood"')
    folder = write(tmp_path / "flows", {"good.yaml": text})
    ran = interlock(tmp_path / "data", "show", "t.good", "--workflows", str(folder))
    assert ran.out.splitlines()[0] == "]0;takenGood  t.good 1.0.0"


def test_doctor_reports_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"data": ""})
    ran = interlock(tmp_path / "data", "doctor", "--json")
    assert ran.code == 1
    assert [check["detail"] for check in ran.json["checks"]] == [f"{tmp_path / 'data'} is not a folder"]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "9" * 5000])
def test_a_number_that_json_cannot_hold_is_reported_at_its_location(tmp_path: Path, number: str) -> None:
    text = '{"id": "t.w", "name": "W", "version": "1.0.0", "steps": [\n {"id": "a", "x":\n   %s}]}'
    found = validate(write(tmp_path / "flows", {"w.json": text % number})).json["problems"]
    assert [(item["code"], item["line"], item["column"]) for item in found] == [("IL010", 3, 4)]


def test_a_control_character_in_yaml_is_reported_at_its_location(tmp_path: Path) -> None:
    text = "# é\n" + GOOD.replace("Good", "\a")
    found = validate(write(tmp_path / "flows", {"w.yaml": text})).json["problems"]
    assert [(item["code"], item["line"], item["column"]) for item in found] == [("IL004", 3, 7)]
