"""The development environment: what it is made from, and who may make it."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from support.node_clients import SCRIPTS
from support.paths import ROOT

LOCK = ROOT / "requirements-dev.lock"


@pytest.fixture
def set_up() -> ModuleType:
    spec = spec_from_file_location("set_up", ROOT / "tools" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_python_that_is_too_old_is_told_before_anything_is_made(
    set_up: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    assert set_up.main(tmp_path / "venv", "test") == 1
    told = capsys.readouterr().err
    assert "needs Python 3.11 or newer" in told
    assert re.search(r"make PYTHON=python3\.1[1-4] test$", told, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    locked = {name(line) for line in LOCK.read_text().splitlines() if "==" in line}
    assert {name(line) for line in wanted} <= locked


def name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return found[0].lower().replace("_", "-")


def test_the_locks_name_no_registry() -> None:
    assert "://" not in LOCK.read_text()
    assert '"resolved"' not in (SCRIPTS / "package-lock.json").read_text()
