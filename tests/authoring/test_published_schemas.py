"""The published JSON Schemas are those of the source types, and they accept what the compiler accepts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from interlock.authoring.compile.builtins import LIBRARY
from interlock.authoring.compile.conditions import ACTIVITY_OPERATORS
from interlock.authoring.filetypes.field_types import Camel
from interlock.authoring.filetypes.schemas.field_texts import field_texts
from interlock.authoring.filetypes.schemas.published_schemas import published
from interlock.authoring.filetypes.schemas.raw_definitions import OPERATORS
from interlock.authoring.text.yaml_plain import read_plain
from support.paths import SCHEMAS

BUNDLED = sorted(path for path in (LIBRARY / "workflows").glob("*.yaml") if ".scenario." not in path.name)
HEADS = sorted((LIBRARY / "workflows").glob("*/workflow.yaml"))
ACTIVITIES = sorted((LIBRARY / "workflows").glob("*/activities/*.yaml"))
SCENARIOS = sorted((LIBRARY / "workflows").rglob("*.scenario.yaml"))


PUBLISHED = published()


def test_the_files_are_the_generated_schemas() -> None:
    """Write them anew with: python -m tools.schemas schemas"""
    kept = {path.name: json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")}
    assert kept == PUBLISHED


def source_types(kind: type[Camel] = Camel) -> set[type[Camel]]:
    return {inner for direct in kind.__subclasses__() for inner in {direct, *source_types(direct)}}


def test_every_field_of_a_source_type_is_described() -> None:
    for kind in source_types():
        assert set(field_texts(kind)) == {field.encode_name for field in msgspec.structs.fields(kind)}, kind
    assert set(OPERATORS) == set(ACTIVITY_OPERATORS)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_property_of_a_schema_is_described(name: str) -> None:
    silent = [
        f"{kind}.{field}"
        for kind, definition in PUBLISHED[name]["$defs"].items()
        for field, schema in definition.get("properties", {}).items()
        if not schema.get("description", "").endswith(".")
    ]
    assert silent == []
    assert [kind for kind, one in PUBLISHED[name]["$defs"].items() if not one["description"]] == []


def test_compiling_a_workflow_does_not_load_the_descriptions() -> None:
    code = "import sys, interlock.authoring.compile.unit; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"field_texts", "raw_definitions"} & {
        name.rpartition(".")[2] for name in loaded.stdout.split()
    }


def accepts(name: str, path: Path) -> None:
    value = read_plain(path.read_text("utf-8"))
    errors = jsonschema_rs.validator_for(PUBLISHED[name]).iter_errors(value)
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


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_bundled_scenarios_pass(path: Path) -> None:
    accepts("scenario.schema.json", path)


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
    assert not jsonschema_rs.validator_for(PUBLISHED["step-workflow.schema.json"]).is_valid(value)
