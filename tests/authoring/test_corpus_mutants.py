"""Real workflow files with something wrong in them: diagnostics at a line of a file, never an exception."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toon_format

from interlock.authoring.library import Library, Loaded, Source
from interlock.authoring.text.yaml_writer import as_yaml
from support.corpus import needs_corpus
from support.paths import CORPUS

pytestmark = [pytest.mark.slow, needs_corpus]

MUTANTS = 4
WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e300,
    "",
    "{{",
    "../x",
    [],
    [[]],
    [None],
    {},
    {"var": "x"},
    [{"id": "x"}],
)
KEYS = (
    "condition",
    "loop",
    "body",
    "type",
    "templateCall",
    "output",
    "effect",
    "triggers",
    "skills",
    "steps",
)


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in entries:
        yield (*path, key)
        yield from paths_in(child, (*path, key))


def spoil(value: Any, chance: random.Random) -> None:
    """Drop, retype, rename, repeat or add one thing anywhere in a file's value."""
    path = chance.choice(list(paths_in(value)))
    for key in path[:-1]:
        value = value[key]
    last = path[-1]
    match chance.choice(["drop", "retype", "other"]):
        case "drop":
            del value[last]
        case "retype":
            value[last] = chance.choice(WRONG)
        case _ if isinstance(value, list):
            value.insert(0, value[last])
        case _:
            value[chance.choice([*KEYS, f"{last}s"])] = value.pop(last)


def check(folder: Path) -> None:
    library = Library([Source("configured", folder, "mutant")])
    listing = library.listing()
    for diagnostic in listing.diagnostics:
        lines = (
            (folder / diagnostic.file).read_text(encoding="utf-8").split("\n") if diagnostic.file else [""]
        )
        assert 1 <= diagnostic.line <= len(lines), diagnostic
        assert diagnostic.next_action, diagnostic
    assert listing.entries or listing.diagnostics
    for entry in listing.entries:
        assert isinstance(library.load(entry.id), Loaded)


@pytest.mark.parametrize("name", ["steps", "steps-v1"])
def test_a_spoiled_step_workflow_is_read_or_reported(tmp_path: Path, name: str) -> None:
    for path in sorted((CORPUS / name).glob("*.json")):
        for number in range(MUTANTS):
            chance, value = random.Random(f"{path.name} {number}"), json.loads(path.read_text("utf-8"))
            spoil(value, chance)
            written = {"w.json": json.dumps(value, indent=1), "w.yaml": as_yaml(value)}
            folder = tmp_path / f"{path.stem}-{number}"
            folder.mkdir()
            file = chance.choice(list(written))
            (folder / file).write_text(written[file], encoding="utf-8")
            check(folder)


def test_a_spoiled_file_of_a_workflow_folder_is_read_or_reported(tmp_path: Path) -> None:
    home = shutil.copytree(CORPUS / "activities" / "prism-evaluate", tmp_path / "prism-evaluate")
    for path in sorted(home.rglob("*.toon")):
        text = path.read_text(encoding="utf-8")
        chance, value = random.Random(path.name), toon_format.decode(text, strict=False)
        for number in range(MUTANTS):
            if number % 2:
                path.write_text(text[: chance.randrange(len(text))], encoding="utf-8")
            else:
                spoil(value, chance)
                path.write_text(toon_format.encode(value), encoding="utf-8")
            check(tmp_path)
        path.write_text(text, encoding="utf-8")
