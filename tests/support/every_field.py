"""An activity workflow and a step workflow in which every field of the format is set.

The values come from the source types themselves, so that a new field is covered when it is added.
"""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, inspect

from interlock.authoring.filetypes.activity_file import (
    ActivityLoopSource,
    ActivitySource,
    ActivityWorkflowSource,
)
from interlock.authoring.filetypes.gate_source import GateSource
from interlock.authoring.filetypes.loop_source import LoopSource
from interlock.authoring.filetypes.output_source import AssessmentSource
from interlock.authoring.filetypes.step_file import StepWorkflowSource
from interlock.authoring.filetypes.step_source import StepSource
from support.authored import write
from support.paths import SOURCE

IS_SET = {"type": "simple", "variable": "ready", "operator": "==", "value": True}
NEVER = {**IS_SET, "value": "never"}
OURS = {"var": "ready", "equals": True}

# What a field needs beyond its type: names that must exist, and values that may be anything in the type.
VALUES: dict[str, Any] = {
    "condition": IS_SET,
    "runCondition": OURS,
    "breakCondition": IS_SET,
    "when": OURS,
    "prompt": "Do it.",
    "goal": "Reach it.",
    "constraints": ["Be brief."],
    "procedure": ["Go."],
    "outputRequired": {"notes": "What was done."},
    "verify": ["Look."],
    "validationCriteria": [{"type": "contains", "value": "ok", "message": "Say ok."}],
    "requireConfirmation": True,
    "contractRef": "wr.contracts.gate_verdict",
    "schema": {"type": "object"},
    "example": {"kind": "text"},
    "assessmentRefs": ["rating"],
    "forAssessment": "rating",
    "anyEqualsLevel": "low",
    "levels": ["low", "high"],
    "functionReferences": ["helper"],
    "skill": "craft",
    "primary": "craft",
    "supporting": ["craft"],
    "checkpoint": "ask",
    "target": "made",
    "workflow": "every-field",
    "over": "parts",
    "count": 2,
    "items": "parts",
    "transitionTo": "second",
    "skipActivities": ["third"],
    "to": "second",
    "defaultOption": "yes",
    "version": "1.0.0",
    "minServerVersion": "0.0.1",
    "initialActivity": "first",
    "activities": [],
    "features": ["wr.features.capabilities"],
    "activitiesDir": "activities",
    "resource": "00",
    "setVariable": {"made": "x", "count": 1, "flag": False},
    "defaultValue": ["a"],
    "synthesis": "Put them together.",
    "artifactLocations": {"notes": {"path": "notes"}},
    "executionModel": {"roles": [{"id": "worker", "description": "Works."}]},
    "location": "notes",
    "by": ["ada", "ben"],
    "within": "4h",
    "remind": "1h",
    "then": {"escalate": "leads"},
}
WITHOUT = ("templateCall", "id")  # a template replaces the step; ids are given


def filled(kind: type[Struct], **fields: Any) -> dict[str, Any]:
    """Return a value of a source type with every field set, and every name that agents see besides."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    own = {name: value for name, value in _fields(info).items() if name not in WITHOUT}
    unknown = {name: {"deep": [1, "two"]} for name in written_names() if name not in own}
    return {**unknown, **own, **fields}


def _fields(kind: inspect.StructType) -> dict[str, Any]:
    return {
        field.encode_name: VALUES[field.encode_name]
        if field.encode_name in VALUES and not isinstance(field.type, inspect.StructType)
        else _value(field.type, field.encode_name)
        for field in kind.fields
    }


def _value(kind: inspect.Type, name: str) -> Any:
    match kind:
        case inspect.Metadata():
            return _value(kind.type, name)
        case inspect.UnionType():
            return _value(next(item for item in kind.types if not isinstance(item, inspect.NoneType)), name)
        case inspect.StructType():
            return _fields(kind) | ({"id": "rating"} if kind.cls is AssessmentSource else {})
        case inspect.VarTupleType():
            return [_value(kind.item_type, name)]
        case inspect.DictType():
            return {_value(kind.key_type, name): _value(kind.value_type, name)}
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 2
        case inspect.FloatType():
            return 2.5
        case _:
            return {"name": "helper"}.get(name, "text")


@cache
def written_names() -> frozenset[str]:
    """Return every field name that is written for agents; a file may use one as an unknown field."""
    tree = ast.parse((SOURCE / "surfaces/shared/workflow_shapes.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return frozenset(keyword.arg for call in calls for keyword in call.keywords if keyword.arg)


def _items(effect: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return steps, an inline gate and a nested loop, and a gate that a step names."""
    gate = filled(GateSource, id="ask", type="checkpoint")
    gate["options"] = [{**gate["options"][0], "id": "yes", "effect": effect}]
    del gate["decide"]  # no agent passes it
    inline = {**gate, "id": "inline", "type": "gate"}
    del gate["checks"]  # only a gate among the steps has them
    nested = filled(LoopSource, id="nested", type="loop")
    nested["body"] = [filled(StepSource, id="deep", checkpoint=None), {**inline, "id": "deeper"}]
    return [filled(StepSource, id="do", type="step"), inline, nested], gate


def _activity(name: str, **fields: Any) -> dict[str, Any]:
    steps, gate = _items({name: VALUES[name] for name in ("setVariable", "transitionTo", "skipActivities")})
    decide = filled(GateSource)["decide"]
    steps.append({**gate, "id": "named", "type": "gate", "decide": decide, "condition": NEVER})
    loop = filled(ActivityLoopSource, id="each")
    loop["steps"] = [filled(StepSource, id="inner", checkpoint=None, type="parallel")]
    within = [filled(StepSource, id="innermost", checkpoint=None)]
    loop["loops"] = [filled(ActivityLoopSource, id="within", steps=within, loops=[], checkpoints=[])]
    loop["checkpoints"] = [{**gate, "id": "each-time"}]
    activity = filled(ActivitySource, id=name, steps=steps, checkpoints=[gate], loops=[loop])
    return {**activity, "artifactPrefix": "01", **fields}


def write_every_field(folder: Path) -> Path:
    """Write both workflows: `every-field` as a folder, and `every-field-in-steps` as a file."""
    head = filled(ActivityWorkflowSource, id="every-field")
    del head["steps"]  # which would make it a step workflow
    steps, _ = _items({"setVariable": VALUES["setVariable"]})
    steps[0] = {**steps[0], "checkpoint": None}
    files = {
        "every-field/workflow.yaml": head,
        "every-field/activities/01-first.yaml": _activity("first"),
        "every-field/activities/02-second.yaml": _activity("second", transitions=[]),
        "every-field/activities/03-third.yaml": _activity("third", transitions=[{"to": "first"}]),
        "every-field/skills/00-craft.yaml": {"id": "craft", "version": "1.0.0", "capability": "Craft."},
        "every-field-in-steps.json": filled(StepWorkflowSource, id="every-field-in-steps", steps=steps),
    }
    texts = {name: json.dumps({"$lenient": True, **value}, indent=1) for name, value in files.items()}
    return write(folder, {**texts, "every-field/resources/00-notes.md": "# Notes\n"})
