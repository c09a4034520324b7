"""Which room may import which, what the core must not know, and what is imported late."""

from __future__ import annotations

import pytest

from support.house import (
    MAY_IMPORT,
    SURFACES,
    forbidden_imports,
    imported_names,
    impurities,
    modules,
    parse_module,
    room_of,
)
from support.paths import SOURCE
from tools.shape import Module

LATE = {
    "re2", "regex", "jsonschema_rs", "rfc8785", "yaml", "toon_format", "click", "rich", "platformdirs",
    "cryptography",
}  # fmt: skip


def core() -> list[Module]:
    return [module for module in modules() if room_of(module.name) == "core"]


def test_a_room_imports_only_what_it_may() -> None:
    forbidden = {module.name: forbidden_imports(module) for module in modules()}
    assert {name: names for name, names in forbidden.items() if names} == {}


def test_every_room_is_known() -> None:
    assert {room_of(module.name) for module in modules()} - {""} <= set(MAY_IMPORT)
    assert set(SURFACES) <= {path.name for path in (SOURCE / "surfaces").iterdir()}


@pytest.mark.parametrize(
    "source",
    [
        "from interlock import store",
        "from interlock import core, store as rows",
        "from interlock import *",
        "import interlock.store",
        "import interlock.store.protocol as protocol",
        "from interlock.store import protocol",
        "from interlock.store.protocol import Reader",
        "from ...store import protocol",
        "from ... import store",
        "def run():\n    from interlock import store",
        "def run():\n    import interlock.store.protocol",
        "class Run:\n    from interlock.store import protocol",
        "try:\n    from interlock.store import protocol\nexcept ImportError:\n    pass",
        "import typing\nif typing.TYPE_CHECKING:\n    from interlock.store.protocol import Reader",
        "import interlock\nreader = interlock.store.protocol.Reader",
        "import interlock as package\nreader = package.store",
        "import interlock.core.values\nreader = interlock.store",
        "from importlib import import_module\nimport_module('interlock.store.protocol')",
        "import importlib\nimportlib.import_module(f'interlock.store.{name}')",
        "protocol = __import__('interlock.store.protocol')",
    ],
)
def test_no_form_of_import_escapes_the_rule(source: str) -> None:
    assert forbidden_imports(parse_module("interlock.core.engine.sample", source)) != set()


@pytest.mark.parametrize(
    "source",
    [
        "from interlock import core",
        "from interlock.core.values import Json",
        "from ..run import state",
        "from . import decide",
        "import json, interlock.core.values",
        "store = 'interlock.store'",
    ],
)
def test_a_room_may_import_itself(source: str) -> None:
    assert forbidden_imports(parse_module("interlock.core.engine.sample", source)) == set()


@pytest.mark.parametrize(
    ("module", "source", "allowed"),
    [
        ("interlock.transport.http.app", "from interlock.console import views", True),
        ("interlock.transport.http.app", "from interlock.ledger import ledger", False),
        ("interlock.console.views", "from interlock.ledger import ledger", True),
        ("interlock.console.views", "from interlock.store import protocol", False),
        ("interlock.console.views", "from interlock.surfaces import tool", False),
        ("interlock.surfaces.tool", "from interlock.console import views", False),
        ("interlock.cli.compose", "from interlock.store import protocol", True),
        ("interlock.__main__", "from interlock.ledger import ledger", False),
    ],
)
def test_the_table_of_rooms_is_the_one_of_the_design(module: str, source: str, allowed: bool) -> None:
    assert (forbidden_imports(parse_module(module, source)) == set()) is allowed


def test_the_core_knows_no_clock_disk_or_threads() -> None:
    impure = {module.name: impurities(module) for module in core()}
    assert {name: names for name, names in impure.items() if names} == {}


def test_the_guard_knows_nothing_of_the_engine() -> None:
    guard = [module for module in core() if module.package == "interlock.core.guard"]
    names = {name for module in guard for name in imported_names(module)}
    assert "interlock.core.definition.program" in names
    assert not any(name.startswith("interlock.core.engine") for name in names)


def test_all_packages_of_the_core_are_checked() -> None:
    packages = {module.package for module in core()}
    assert {"interlock.core", "interlock.core.definition", "interlock.core.run", "interlock.core.engine"} <= (
        packages
    )


@pytest.mark.parametrize(
    ("source", "impurity"),
    [
        ("import time", "time"),
        ("from datetime import datetime", "datetime"),
        ("def now():\n    from time import monotonic", "time"),
        ("import threading", "threading"),
        ("import uuid", "uuid"),
        ("from pathlib import Path", "pathlib"),
        ("import os.path", "os"),
        ("import logging", "logging"),
        ("text = open('file').read()", "open"),
        ("print('seen')", "print"),
        ("async def run(): ...", "async"),
    ],
)
def test_clocks_disks_and_threads_are_recognised(source: str, impurity: str) -> None:
    assert impurities(parse_module("interlock.core.engine.sample", source)) == {impurity}


def test_what_a_server_does_not_need_at_start_up_is_imported_late() -> None:
    early = {
        module.name: {name.split(".")[0] for name in imported_names(module, at_start_up=True)} & LATE
        for module in modules()
        if room_of(module.name) != "cli"
    }
    assert {name: names for name, names in early.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "early"),
    [
        ("import regex", True),
        ("try:\n    import regex\nexcept ImportError:\n    pass", True),
        ("class Pattern:\n    import regex", True),
        ("def compiled():\n    import regex", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import regex", False),
    ],
)
def test_an_import_at_start_up_is_recognised(source: str, early: bool) -> None:
    sample = parse_module("interlock.core.sample", source)
    assert ("regex" in imported_names(sample, at_start_up=True)) is early


def test_only_the_transport_knows_mcp() -> None:
    users = [
        module.name
        for module in modules()
        if "mcp" in {name.split(".")[0] for name in imported_names(module)}
        and room_of(module.name) != "transport"
    ]
    assert users == []
