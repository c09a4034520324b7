"""The lookup surface: the JSON-RPC errors of bad parameters, unknown ids and broken files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.authoring.library import Library, Source
from support.lookup_client import (
    Ask,
    document,
    lookup_client,
    step,
)


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("workflow_list", {"x": 1}, "x"),
        ("workflow_get", {}, "id"),
        ("workflow_get", {"id": None}, "id"),
        ("workflow_get", {"id": 5}, "id"),
        ("workflow_get", {"id": "ab"}, "id"),
        ("workflow_get", {"id": "a" * 65}, "id"),
        ("workflow_get", {"id": "Upper"}, "id"),
        ("workflow_get", {"id": "../etc"}, "id"),
        ("workflow_get", {"id": "team-some-flow\n"}, "id"),
        ("workflow_get", {"id": "team-some-flow", "mode": "all"}, "mode"),
        ("workflow_get", {"id": "team-some-flow", "extra": 1}, "extra"),
        ("workflow_next", {"completedSteps": []}, "workflowId"),
        ("workflow_next", {"workflowId": "team-some-flow"}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": "one"}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": [1]}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": ["a b"]}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": ["one", "one"]}, "completed"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": [], "context": []}, "context"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": [], "currentStep": "x"}, "curr"),
        ("workflow_validate", {"workflowId": "team-some-flow", "stepId": "one"}, "output"),
        ("workflow_validate", {"workflowId": "team-some-flow", "stepId": "one", "output": ""}, "output"),
        ("workflow_validate", {"workflowId": "team-some-flow", "stepId": "o", "output": "x"}, "stepId"),
        ("workflow_validate_json", {}, "workflowJson"),
        ("workflow_validate_json", {"workflowJson": ""}, "workflowJson"),
    ],
)  # fmt: skip
def test_bad_parameters_name_their_field(
    ask_about: Callable[..., Ask], tool: str, arguments: dict[str, Any], field: str
) -> None:
    refused = ask_about(step("one"))(tool, **arguments)
    assert refused.code == -32602
    assert refused.message == "Invalid params"
    assert refused.data["details"].startswith(field)


@pytest.mark.parametrize(
    ("arguments", "details"),
    [
        ({"id": "Upper"}, "id: must match ^[a-z0-9-]+$"),
        ({"id": "a\nb"}, "id: must match ^[a-z0-9-]+$"),
        ({"id": ""}, "id: must match ^[a-z0-9-]+$"),
        ({"id": "ab"}, "id: must have 3 to 64 characters"),
        ({"id": "team-some-flow", "mode": "all"}, "mode: must be metadata or preview"),
    ],
)
def test_bad_parameters_say_what_would_be_right(
    ask_about: Callable[..., Ask], arguments: dict[str, Any], details: str
) -> None:
    assert ask_about(step("one"))("workflow_get", **arguments).data == {"details": details}


@pytest.mark.parametrize(
    "arguments",
    [
        {"completedSteps": [], "currentStep": "none-such"},
        {"completedSteps": ["none-such"]},
        {"completedSteps": ["one-1"]},
        {"completedSteps": ["one-" + "9" * 5000]},
    ],
)
def test_unknown_steps_are_named(ask_about: Callable[..., Ask], arguments: dict[str, Any]) -> None:
    ask = ask_about(step("one"))
    refused = ask("workflow_next", workflowId="team-some-flow", **arguments)
    named = [*arguments["completedSteps"], arguments.get("currentStep")][0]
    assert (refused.code, refused.data) == (-32003, {"stepId": named})


def test_a_broken_file_has_another_code_than_a_missing_one(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "broken.json").write_text('{"id": "broken", "steps": [')
    (inside / "dangling.json").symlink_to(inside / "nothing.json")
    (outside / "secret.json").write_bytes(msgspec.json.encode(document(step("one"), id="secret")))
    (inside / "leading-out.json").symlink_to(outside / "secret.json")
    ask = lookup_client(Library([Source("configured", inside)]))
    codes = {"broken": -32002, "dangling": -32006, "leading-out": -32007, "missing": -32001}
    for name, code in codes.items():
        refused = ask("workflow_get", id=name)
        assert refused.code == code
        assert refused.data["workflowId"] == name
        assert str(tmp_path) not in str(refused.data)
