"""Compiled workflows written in the shape of their files, for agents that read TOON or JSON.

A workflow that was written in YAML or as steps looks here as if it had been written as activities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from interlock.core.definition.conditions import Condition, describe
from interlock.core.definition.program import confirmation
from interlock.core.definition.workflow import (
    Action,
    Activity,
    ActivityMode,
    Artifact,
    Contract,
    DecisionPoint,
    Effect,
    Gate,
    Item,
    Loop,
    Option,
    Step,
    Transition,
    Trigger,
    Variable,
    Workflow,
    walk,
)
from interlock.core.values import Json

Shape = dict[str, Json]
T = TypeVar("T")


def as_toon(shape: Mapping[str, Json]) -> str:
    """Write a shape as TOON."""
    import toon_format

    written: str = toon_format.encode(dict(shape))
    return written


def activity_shape(activity: Activity) -> Shape:
    """An activity as its file would say it: steps, the checkpoints and loops they name, the ways out."""
    skills = _told(primary=activity.primary_skill, supporting=list(activity.supporting_skills))
    shape = _with_unknown_fields(
        activity.extra,
        id=activity.id,
        version=activity.version,
        name=activity.name,
        description=activity.description,
        problem=activity.problem,
        recognition=list(activity.recognition),
        skills=skills,
        rules=list(activity.rules),
        entryActions=_each(activity.entry_actions, action_shape),
        steps=list(_ordered(activity.items)),
        loops=_each(_loops(activity.items), loop_shape),
        checkpoints=_each(gates_of(activity), gate_shape),
        decisions=_each(activity.decisions, _decision),
        transitions=_each(activity.transitions, _transition),
        triggers=_each(activity.triggers, _trigger),
        exitActions=_each(activity.exit_actions, action_shape),
        artifacts=_each(activity.artifacts, _artifact),
        artifactPrefix=activity.artifact_prefix,
        outcome=list(activity.outcome),
        context_to_preserve=list(activity.context_to_preserve),
        notes=list(activity.notes),
        estimatedTime=activity.estimated_time,
    )
    return shape if activity.required else {**shape, "required": False}


def gates_of(activity: Activity) -> list[Gate]:
    """Every checkpoint of an activity in order; a step that asks for confirmation brings one."""
    return [gate for item in walk(activity.items) if (gate := _gate_of(item)) is not None]


def _gate_of(item: Item) -> Gate | None:
    match item:
        case Gate():
            return item
        case Step() if item.confirm is not False:
            return confirmation(item)
        case _:
            return None


def _ordered(items: Sequence[Item]) -> Iterator[Shape]:
    """Steps in order; what stands between them out of the usual order is named in its place."""
    last = max((target for target, item in enumerate(items) if isinstance(item, Step)), default=-1)
    bound: str | None = None
    for target, item in enumerate(items):
        match item:
            case Step():
                yield step_shape(item, bound)
                bound = None
            case Gate(bound_to=str()):
                bound = item.id
            case Gate() if target < last:
                yield {"type": "checkpoint", "checkpoint": item.id}
            case Loop() if target < last:
                yield {"type": "loop", "loop": item.id}


def step_shape(step: Step, gate: str | None = None) -> Shape:
    """A step with its words, and the checkpoint that must be answered before or after it."""
    confirms = confirmation(step).id if step.confirm is not False else None
    words = "\n\n".join(_fragment(one.text, one.when) for one in step.prompt)
    repeated = bool(step.description) and words.startswith(step.description or "")
    return _with_unknown_fields(
        step.extra,
        id=step.id,
        name=step.title,
        checkpoint=gate,
        confirmedBy=confirms,
        condition=_condition(step.condition),
        description=words if repeated else step.description,
        prompt=None if repeated else words,
        skill=step.skill,
        skill_args=dict(step.skill_args),
        actions=_each(step.actions, action_shape),
        triggers=_each(step.triggers, _trigger),
        output=_each(step.contracts, _contract),
    )


def _fragment(text: str, when: Condition | None) -> str:
    return text if when is None else f"[when {describe(when)}] {text}"


def _contract(contract: Contract) -> Shape:
    return _told(contractRef=contract.ref, kind=contract.artifact, example=contract.example)


def gate_shape(gate: Gate) -> Shape:
    """A checkpoint as it is put to the user."""
    return _with_unknown_fields(
        gate.extra,
        id=gate.id,
        name=gate.name,
        message=gate.message,
        condition=_condition(gate.condition),
        required=None if gate.required else False,
        blocking=None if gate.blocking else False,
        defaultOption=gate.default_option,
        autoAdvanceMs=gate.auto_advance_ms,
        options=_each(gate.options, _option),
    )


def _option(option: Option) -> Shape:
    return _told(
        id=option.id,
        label=option.label,
        description=option.description,
        effect=effect_shape(option.effect),
    )


def effect_shape(effect: Effect) -> Shape:
    return _told(
        setVariable=dict(effect.set_variables),
        transitionTo=effect.transition_to,
        skipActivities=list(effect.skip_activities),
    )


def loop_shape(loop: Loop) -> Shape:
    return _with_unknown_fields(
        loop.extra,
        id=loop.id,
        name=loop.title,
        type=loop.kind,
        description=loop.description,
        variable=loop.item_var,
        over=loop.items,
        count=loop.count,
        condition=_condition(loop.condition),
        runCondition=_condition(loop.run_condition),
        breakCondition=_condition(loop.break_condition),
        maxIterations=loop.max_iterations,
        steps=list(_ordered(loop.body)),
        activities=list(loop.activities),
    )


def _loops(items: Sequence[Item]) -> Iterator[Loop]:
    return (item for item in walk(tuple(items)) if isinstance(item, Loop))


def action_shape(action: Action) -> Shape:
    shape = _told(
        action=action.action,
        target=action.target,
        message=action.message,
        description=action.description,
        condition=_condition(action.condition),
    )
    return {**shape, "value": action.value} if action.has_value else shape


def _transition(transition: Transition) -> Shape:
    return _told(
        to=transition.to,
        condition=_condition(transition.condition),
        isDefault=True if transition.default else None,
    )


def _decision(decision: DecisionPoint) -> Shape:
    branches: list[Json] = [
        _told(
            id=one.id,
            label=one.label,
            condition=_condition(one.condition),
            transitionTo=one.to,
            isDefault=True if one.default else None,
        )
        for one in decision.branches
    ]
    return _told(id=decision.id, name=decision.name, description=decision.description, branches=branches)


def _trigger(trigger: Trigger) -> Shape:
    return _told(
        workflow=trigger.workflow, description=trigger.description, passContext=list(trigger.pass_context)
    )


def _artifact(artifact: Artifact) -> Shape:
    return _told(
        id=artifact.id,
        name=artifact.name,
        location=artifact.location,
        description=artifact.description,
        action=artifact.action,
    )


def summary_shape(workflow: Workflow) -> Shape:
    """A workflow without its activities' contents."""
    return _told(
        id=workflow.id,
        version=workflow.version,
        title=workflow.name,
        description=workflow.description,
        rules=list(workflow.rules),
        variables=_each(workflow.variables, _variable),
        modes=_each(workflow.modes, _mode),
        initialActivity=first_activity(workflow),
        activities=_each(workflow.activities, _stub),
    )


def header_shape(workflow: Workflow) -> Shape:
    """Everything that a workflow says of itself, its activities by name."""
    return _with_unknown_fields(
        workflow.extra,
        **summary_shape(workflow),
        author=workflow.author,
        tags=list(workflow.tags),
        skills=_told(primary=workflow.primary_skill),
        artifactLocations=dict(workflow.artifact_locations),
        preconditions=list(workflow.preconditions),
        clarifications=list(workflow.clarifications),
        about=workflow.about,
    )


def workflow_shape(workflow: Workflow) -> Shape:
    """A whole workflow."""
    return {**header_shape(workflow), "activities": _each(workflow.activities, activity_shape)}


def first_activity(workflow: Workflow) -> str | None:
    """Where a run begins; None where the agent chooses among independent activities (rule 35)."""
    if workflow.initial is None and len(workflow.activities) == 1:
        return workflow.activities[0].id
    return workflow.initial


def _stub(activity: Activity) -> Shape:
    return {"id": activity.id, "name": activity.name, "required": activity.required}


def _variable(variable: Variable) -> Shape:
    shape = _told(name=variable.name, type=variable.type, description=variable.description)
    if variable.has_default:
        shape["defaultValue"] = variable.default
    return {**shape, "required": True} if variable.required else shape


def _mode(mode: ActivityMode) -> Shape:
    return _told(
        id=mode.id,
        name=mode.name,
        description=mode.description,
        activationVariable=mode.activation_variable,
        recognition=list(mode.recognition),
        skipActivities=list(mode.skip_activities),
        defaults=dict(mode.defaults),
        resource=mode.resource,
    )


def _condition(condition: Condition | None) -> str | None:
    return None if condition is None else describe(condition)


def _each(values: Iterable[T], shape: Callable[[T], Shape]) -> list[Json]:
    return [shape(one) for one in values]


def _told(**fields: Json) -> Shape:
    """Leave out what nobody has said."""
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


def _with_unknown_fields(unknown: Mapping[str, Json], /, **fields: Json) -> Shape:
    """Add the fields of a file that the format does not know; one of a known name never replaces it."""
    return _told(**fields) | _told(**{name: value for name, value in unknown.items() if name not in fields})
