"""The published JSON Schemas are those of the source types, and they accept what the compiler accepts."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from interlock.authoring.compile.builtins import LIBRARY
from interlock.authoring.filetypes.published_schemas import published
from support.paths import SCHEMAS

BUNDLED = sorted(path for path in (LIBRARY / "workflows").glob("*.yaml") if ".scenario." not in path.name)
HEADS = sorted((LIBRARY / "workflows").glob("*/workflow.yaml"))
ACTIVITIES = sorted((LIBRARY / "workflows").glob("*/activities/*.yaml"))


def test_the_files_are_the_generated_schemas() -> None:
    """Write them anew with: python -m interlock.authoring.filetypes.published_schemas schemas"""
    kept = {path.name: json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")}
    assert kept == published()


def accepts(name: str, path: Path) -> None:
    value = yaml.safe_load(path.read_text("utf-8"))
    errors = jsonschema_rs.validator_for(published()[name]).iter_errors(value)
    assert [(error.instance_path, error.message) for error in errors] == []


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_bundled_step_workflows_pass(path: Path) -> None:
    accepts("step-workflow.schema.json", path)


@pytest.mark.parametrize("path", HEADS, ids=lambda path: path.parent.name)
def test_bundled_heads_pass(path: Path) -> None:
    accepts("activity-workflow.schema.json", path)


@pytest.mark.parametrize("path", ACTIVITIES, ids=lambda path: path.stem)
def test_bundled_activities_pass(path: Path) -> None:
    accepts("activity.schema.json", path)


@pytest.mark.parametrize(
    "value",
    [
        {"id": "t.w", "name": "W", "version": "1.0.0", "steps": []},
        {"id": "t.w", "name": 7, "version": "1.0.0", "steps": ["a"]},
        {"id": "t.w", "name": "W", "version": "1.0.0", "steps": [{"title": "no id"}]},
        {"name": "W", "version": "1.0.0", "steps": ["a"]},
    ],
)
def test_what_the_compiler_refuses_the_schema_refuses(value: object) -> None:
    assert not jsonschema_rs.validator_for(published()["step-workflow.schema.json"]).is_valid(value)
