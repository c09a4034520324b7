"""Compiled workflows written in the shape of their files, for agents that read TOON or JSON.

A workflow that was written in YAML or as steps looks here as if it had been written as activities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from interlock.core.definition.conditions import Condition, describe
from interlock.core.definition.criteria import lines_of
from interlock.core.definition.program import confirmation, gates_of, steered
from interlock.core.definition.workflow import (
    Action,
    Activity,
    DecisionPoint,
    Effect,
    Gate,
    Item,
    Loop,
    Step,
    Trigger,
    UserInput,
    Variable,
    Workflow,
    walk,
)
from interlock.core.run.state import RunState
from interlock.core.values import Json

Shape = dict[str, Json]
T = TypeVar("T")


def as_toon(shape: Mapping[str, Json]) -> str:
    """Write a shape as TOON."""
    import toon_format

    text: str = toon_format.encode(dict(shape))
    return text


REPORT_STEPS = "step_manifest of next_activity: each step done, output: what came of the step"


def wants_reports(activity: Activity, state: RunState) -> bool:
    """Say whether something is still to be written down about a step (rule 31)."""
    wanting = (step.id for step in activity.steps() if step.required and step.wants_notes)
    return not all(map(state.has_report, wanting))


def activity_shape(activity: Activity) -> Shape:
    """Write an activity as its file: steps, the checkpoints and loops that they name, transitions."""
    skills = _present(primary=activity.primary_skill, supporting=list(activity.supporting_skills))
    steps = [index for index, item in enumerate(activity.items) if isinstance(item, Step)]
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
        entryActions=_shapes(activity.entry_actions, action_shape),
        steps=list(_ordered(activity.items, until=max(steps, default=-1))),
        loops=[loop_shape(item) for item in walk(activity.items) if isinstance(item, Loop)],
        checkpoints=_shapes(gates_of(activity), gate_shape),
        decisions=_shapes(activity.decisions, _decision),
        transitions=[
            _present(
                to=transition.to,
                condition=_condition(transition.condition),
                isDefault=True if transition.default else None,
            )
            for transition in activity.transitions
        ],
        triggers=_shapes(activity.triggers, _trigger),
        exitActions=_shapes(activity.exit_actions, action_shape),
        artifacts=[
            _present(
                id=artifact.id,
                name=artifact.name,
                location=artifact.location,
                description=artifact.description,
                action=artifact.action,
            )
            for artifact in activity.artifacts
        ],
        artifactPrefix=activity.artifact_prefix,
        outcome=list(activity.outcome),
        context_to_preserve=list(activity.context_to_preserve),
        notes=list(activity.notes),
        estimatedTime=activity.estimated_time,
    )
    return shape if activity.required else {**shape, "required": False}


def _ordered(items: Sequence[Item], until: int) -> Iterator[Shape]:
    """Write the steps in order; a checkpoint or loop before this index is named where it occurs."""
    bound: str | None = None
    for index, item in enumerate(items):
        match item:
            case Step():
                yield step_shape(item, bound)
                bound = None
            case Gate(bound_to=str(step_id)) if _is_step(items[index + 1 : index + 2], step_id):
                bound = item.id
            case Gate() if index < until:
                yield {"type": "checkpoint", "checkpoint": item.id}
            case Loop() if index < until:
                yield {"type": "loop", "loop": item.id}


def _is_step(items: Sequence[Item], step_id: str) -> bool:
    return any(isinstance(item, Step) and item.id == step_id for item in items)


def step_shape(step: Step, gate: str | None = None) -> Shape:
    """Write a step with its prompt, and the checkpoint that must be answered before or after it."""
    confirms = confirmation(step).id if step.may_confirm else None
    prompt = "\n\n".join(
        fragment.text if fragment.when is None else f"[when {describe(fragment.when)}] {fragment.text}"
        for fragment in step.prompt
    )
    repeated = bool(step.description) and prompt.startswith(step.description or "")
    return _with_unknown_fields(
        step.extra,
        id=step.id,
        name=step.title,
        required=None if step.required else False,
        checkpoint=gate,
        confirmedBy=confirms,
        condition=_condition(step.condition),
        description=prompt if repeated else step.description,
        prompt=None if repeated else prompt,
        userInput=_shapes(step.user_input, _user_input),
        skill=step.skill,
        skill_args=dict(step.skill_args),
        actions=_shapes(step.actions, action_shape),
        triggers=_shapes(step.triggers, _trigger),
        output=list(_outputs(step)),
    )


def _outputs(step: Step) -> Iterator[Shape]:
    """Write what the output of a step must bring: artifacts by example, names, what notes must satisfy."""
    for contract in step.contracts:
        yield _present(
            contractRef=contract.ref,
            kind=contract.artifact,
            required=None if contract.required else False,
            example=contract.shown_example,
            schema=dict(contract.schema) if contract.example is None else None,
        )
    for name in step.hands_in:
        if name not in ("notes", "artifacts"):
            yield {"name": name, "send": "as a variable, in an artifact, or by its name in the notes"}
    if step.criteria is not None:
        yield {"notesMustSatisfy": [line.removeprefix("- ") for line in lines_of(step.criteria)]}


def _user_input(need: UserInput) -> Shape:
    options: list[Json] = [option.id for option in need.options]
    return _present(reason=need.reason, key=need.key, question=need.question, options=options)


def gate_shape(gate: Gate) -> Shape:
    """Write a checkpoint as it is put to the user."""
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
        options=[
            _present(
                id=option.id,
                label=option.label,
                description=option.description,
                effect=effect_shape(option.effect),
            )
            for option in gate.options
        ],
    )


def effect_shape(effect: Effect) -> Shape:
    return _present(
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
        steps=list(_ordered(steered(loop).body, until=len(loop.body) + 1)),
        activities=list(loop.activities),
    )


def action_shape(action: Action) -> Shape:
    shape = _present(
        action=action.action,
        target=action.target,
        message=action.message,
        description=action.description,
        condition=_condition(action.condition),
    )
    return {**shape, "value": action.value} if action.has_value else shape


def _decision(decision: DecisionPoint) -> Shape:
    branches: list[Json] = [
        _present(
            id=branch.id,
            label=branch.label,
            condition=_condition(branch.condition),
            transitionTo=branch.to,
            isDefault=True if branch.default else None,
        )
        for branch in decision.branches
    ]
    return _present(id=decision.id, name=decision.name, description=decision.description, branches=branches)


def _trigger(trigger: Trigger) -> Shape:
    return _present(
        workflow=trigger.workflow, description=trigger.description, passContext=list(trigger.pass_context)
    )


def summary_shape(workflow: Workflow) -> Shape:
    """Write a workflow without the contents of its activities."""
    return _present(
        id=workflow.id,
        version=workflow.version,
        title=workflow.name,
        description=workflow.description,
        rules=list(workflow.rules),
        variables=_shapes(workflow.variables, _variable),
        modes=[
            _present(
                id=mode.id,
                name=mode.name,
                description=mode.description,
                activationVariable=mode.activation_variable,
                recognition=list(mode.recognition),
                skipActivities=list(mode.skip_activities),
                defaults=dict(mode.defaults),
                resource=mode.resource,
            )
            for mode in workflow.modes
        ],
        initialActivity=first_activity(workflow),
        activities=[
            {"id": activity.id, "name": activity.name, "required": activity.required}
            for activity in workflow.activities
        ],
    )


def header_shape(workflow: Workflow) -> Shape:
    """Write a workflow with all of its own fields, and its activities by name."""
    return _with_unknown_fields(
        workflow.extra,
        **summary_shape(workflow),
        author=workflow.author,
        category=workflow.category,
        tags=list(workflow.tags),
        skills=_present(primary=workflow.primary_skill, supporting=list(workflow.supporting_skills)),
        artifactLocations=dict(workflow.artifact_locations),
        preconditions=list(workflow.preconditions),
        clarifications=list(workflow.clarifications),
        capabilities=dict(workflow.capabilities.items()),
        recommendedPreferences=_recommended(workflow),
        minServerVersion=workflow.min_server_version,
        about=workflow.about,
    )


def _recommended(workflow: Workflow) -> Shape:
    advice = workflow.recommended
    if advice is None:
        return {}
    return {"recommendedAutonomy": advice.autonomy, "recommendedRiskPolicy": advice.risk_policy}


def workflow_shape(workflow: Workflow) -> Shape:
    """Write a whole workflow."""
    return {**header_shape(workflow), "activities": _shapes(workflow.activities, activity_shape)}


def first_activity(workflow: Workflow) -> str | None:
    """Return where a run begins; None where the agent chooses among independent activities (rule 35)."""
    if workflow.initial is None and len(workflow.activities) == 1:
        return workflow.activities[0].id
    return workflow.initial


def _variable(variable: Variable) -> Shape:
    shape = _present(name=variable.name, type=variable.type, description=variable.description)
    if variable.has_default:
        shape["defaultValue"] = variable.default
    if variable.values:
        shape["values"] = list(variable.values)
    return {**shape, "required": True} if variable.required else shape


def _condition(condition: Condition | None) -> str | None:
    return None if condition is None else describe(condition)


def _shapes(values: Iterable[T], shape: Callable[[T], Shape]) -> list[Json]:
    return [shape(value) for value in values]


def _present(**fields: Json) -> Shape:
    """Leave out fields without a value."""
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


def _with_unknown_fields(unknown: Mapping[str, Json], /, **fields: Json) -> Shape:
    """Add the fields of a file that the format does not know; one of a known name never replaces it."""
    return _present(**fields) | _present(
        **{name: value for name, value in unknown.items() if name not in fields}
    )
