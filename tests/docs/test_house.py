"""The house of DESIGN: who may import whom, and what the core must not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import SOURCE

MAY_IMPORT = {
    "core": {"core"},
    "authoring": {"authoring", "core"},
    "store": {"store", "core"},
    "ledger": {"ledger", "core", "store", "authoring"},
    "surfaces": {"surfaces", "ledger", "authoring", "core"},
    "transport": {"transport", "surfaces", "core"},
    "cli": {"cli", "surfaces", "transport", "ledger", "store", "authoring", "core"},
    "library": set(),
}
CORE_STANDARD = {
    "__future__", "collections", "enum", "functools", "hashlib", "json", "re", "typing", "math", "difflib",
    "itertools", "operator", "string", "unicodedata",
}  # fmt: skip
CORE_LIBRARIES = {"msgspec", "re2", "regex", "jsonschema_rs", "rfc8785"}
LATE = {"re2", "regex", "jsonschema_rs", "rfc8785", "yaml", "toon_format", "click", "rich", "platformdirs"}

MODULES = sorted(SOURCE.rglob("*.py"))


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str() as module, level=0):
                yield module


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_its_neighbours(path: Path) -> None:
    if room(path) not in MAY_IMPORT:
        return
    used = {name.split(".")[1] for name in imports(path) if name.startswith("interlock.")}
    assert used & set(MAY_IMPORT) <= MAY_IMPORT[room(path)]


@pytest.mark.parametrize("path", sorted((SOURCE / "core").glob("*.py")), ids=lambda path: path.name)
def test_the_core_knows_no_clock_disk_or_threads(path: Path) -> None:
    used = {name.split(".")[0] for name in imports(path)}
    assert used <= CORE_STANDARD | CORE_LIBRARIES | {"interlock"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_what_a_server_does_not_need_at_start_up_is_imported_late(path: Path) -> None:
    if path.is_relative_to(SOURCE / "cli"):
        return
    used = {name.split(".")[0] for name in imports(path, top_level_only=True)}
    assert not used & LATE


def test_only_the_transport_knows_mcp() -> None:
    users = {room(path) for path in MODULES if any(name.split(".")[0] == "mcp" for name in imports(path))}
    assert users <= {"transport"}
