"""Folders as people and accidents leave them: one odd entry never stops or hides the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from authored import write
from cli_process import Ran, interlock

pytestmark = pytest.mark.slow

GOOD = "id: t.good\nname: Good\nversion: 1.0.0\nsteps:\n  - {id: ask, title: Ask, prompt: Ask.}\n"

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def validate(folder: Path) -> Ran:
    return interlock(folder.parent / "data", "validate", str(folder), "--json")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def name_a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("lay", [link_to_itself, pytest.param(name_a_pipe, marks=needs_pipes)])
@pytest.mark.parametrize("name", ["odd.json", "odd.yaml", "odd.toon"])
def test_an_entry_that_is_no_file_is_told_and_the_rest_is_usable(
    tmp_path: Path, lay: Callable[[Path], None], name: str
) -> None:
    folder = write(tmp_path / "flows", {"good.yaml": GOOD})
    lay(folder / name)
    found = validate(folder).json
    assert found["workflows"] == 1
    assert [(one["code"], Path(one["file"]).name) for one in found["problems"]] == [("IL001", name)]
