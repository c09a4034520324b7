"""The compiled workflow that the core runs, made from the plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.core.definition import workflow as core
from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.conditions import Compare
from tools.search.workflows import (
    CHECK,
    DEFAULTS,
    ENOUGH,
    TYPES,
    ActivityData,
    GateData,
    ItemData,
    LoopData,
    StepData,
    Test,
    WorkflowData,
)

CHILD = "test.child"


def compiled(data: WorkflowData) -> core.Workflow:
    """Build the workflow that the core runs."""
    names = sorted(TYPES)
    modes = (
        (core.ActivityMode("m", "Mode", data.mode[0], skip_activities=(data.mode[1],)),) if data.mode else ()
    )
    return core.Workflow(
        id="test.search",
        name=data.name,
        description="",
        version="1.0.0",
        form="activities" if data.foreign else "steps",
        activities=tuple(_activity(activity, begins=data.child) for activity in data.activities),
        initial=data.activities[0].id,
        variables=tuple(
            core.Variable(
                name, TYPES[name], typed=True, default=DEFAULTS.get(name), has_default=name in DEFAULTS
            )
            for name in names
        ),
        modes=modes,
    )


def _activity(data: ActivityData, *, begins: bool) -> core.Activity:
    transitions = tuple(
        core.Transition(leads.to, _condition(leads.when), default=leads.when is None and len(data.exits) > 1)
        for leads in data.exits
    )
    return core.Activity(
        id=data.id,
        name=data.id,
        items=tuple(_item(item) for item in data.items),
        transitions=transitions,
        triggers=(core.Trigger(CHILD, pass_context=tuple(sorted(TYPES))),) if begins else (),
    )


def _condition(test: Test | None) -> Compare | None:
    return None if test is None else Compare(test[0], "==", test[1])


def _item(data: ItemData) -> core.Item:
    match data:
        case StepData():
            return _step(data)
        case GateData():
            return _gate(data)
        case LoopData():
            return core.Loop(
                id=data.id,
                title=data.id,
                kind="forEach" if data.over else "while",
                body=tuple(_item(item) for item in data.body),
                max_iterations=data.most,
                condition=_condition(data.test),
                items=data.over,
                item_var=data.item,
            )


ARTIFACT: Mapping[str, Any] = {"kind": "test.proof", "size": 1}
CONTRACT = core.Contract(
    ref="test.proof",
    artifact="test.proof",
    schema={"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
    example=ARTIFACT,
)


def _step(data: StepData) -> core.Step:
    text = f"Never set {data.mentions} yourself." if data.mentions else "Do it."
    reason: core.UserOnlyReason = "needs_user_approval" if data.asks == "approval" else "needs_user_artifact"
    asks = core.UserInput(reason, f"{data.id}: {{{{target}}}}?", key=data.input_id)
    return core.Step(
        id=data.id,
        title=data.id,
        prompt=(core.Fragment(text),),
        condition=_condition(data.when),
        confirm=data.confirm,
        contracts=(CONTRACT,) if data.contract else (),
        user_input=(asks,) if data.asks else (),
        actions=tuple(core.Action("set", name) for name in data.sets),
        required=data.required,
        checks=(CommandCheck(CHECK, run="make test"),) if data.checked else (),
    )


def _gate(data: GateData) -> core.Gate:
    return core.Gate(
        id=data.id,
        name=data.id,
        message=" ".join([f"{data.id}:", *(f"{{{{{name}}}}}" for name in data.shows)]) + "?",
        options=tuple(
            core.Option(option.id, option.id, effect=core.Effect(dict(option.sets), option.to))
            for option in data.options
        ),
        condition=_condition(data.when),
        required=data.required,
        blocking=data.waits_ms is None,
        default_option=data.options[0].id if data.waits_ms is not None else None,
        auto_advance_ms=data.waits_ms,
        bound_to=data.before,
        decide=core.Approvers(data.approvers, ENOUGH, not_by_starter=True) if data.approvers else None,
    )
