"""A compiled workflow written back as the documented step JSON, whatever form its author wrote it in.

Prompts come out as they were compiled, with the required outputs worked in; gates have no place in this form
and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import assert_never

from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not, Operator, Scope
from interlock.core.definition.prompts import interpolate, render
from interlock.core.definition.workflow import (
    AllRules,
    AnyRule,
    Criteria,
    Gate,
    Item,
    Loop,
    NotRule,
    Rule,
    Step,
    Workflow,
)
from interlock.core.values import Json
from interlock.surfaces.lookup.names import Names, dashed

Shape = dict[str, Json]

_WORDS: Mapping[Operator, str] = {
    "equals": "equals",
    "not_equals": "not_equals",
    ">": "gt",
    ">=": "gte",
    "<": "lt",
    "<=": "lte",
    "contains": "contains",
    "startsWith": "startsWith",
    "endsWith": "endsWith",
    "matches": "matches",
    "in": "in",
}


def whole(workflow: Workflow, names: Names) -> Shape:
    """Write the whole workflow."""
    steps = [item for activity in workflow.activities for item in _items(activity.items, activity.id, names)]
    variables: list[Json] = [
        {
            "name": variable.name,
            "type": variable.type,
            "required": variable.required,
            **({"defaultValue": variable.default} if variable.has_default else {}),
            **_kept(description=variable.description, values=list(variable.values)),
        }
        for variable in workflow.variables
    ]
    return {**header(workflow), **_kept(variables=variables), "steps": steps}


def header(workflow: Workflow) -> Shape:
    """Write the fields of the workflow itself, without its steps."""
    return {
        "id": dashed(workflow.id),
        "name": workflow.name,
        "description": workflow.description,
        "version": workflow.version,
        "category": workflow.category or next(iter(workflow.tags), "general"),
        "preconditions": list(workflow.preconditions),
        "clarificationPrompts": list(workflow.clarifications),
        "metaGuidance": list(workflow.rules),
    }


def offered_step(step: Step, name: str, scope: Scope) -> Shape:
    """Write a step as it is due now, with the variables filled into its prompt."""
    own = tuple(fragment for fragment in step.prompt if fragment.part is None)
    prompt = render(own, scope) or interpolate(step.description or step.title, scope)
    return {
        "id": name,
        "title": interpolate(step.title, scope),
        "prompt": prompt,
        **_parts(step),
        **_terms(step),
    }


def _items(items: tuple[Item, ...], activity: str, names: Names) -> Iterator[Shape]:
    for item in items:
        match item:
            case Step():
                yield _step(item, names.by_step[activity, item.id])
            case Loop():
                yield _loop(item, activity, names)
            case Gate():
                continue
            case _:
                assert_never(item)


def _step(step: Step, name: str) -> Shape:
    shape: Shape = {"id": name, "title": step.title}
    own = [fragment for fragment in step.prompt if fragment.part is None]
    leading = list(takewhile(lambda fragment: fragment.when is None, own))
    shape["prompt"] = "\n\n".join(fragment.text for fragment in leading) or step.description or step.title
    conditional = [
        _kept(text=fragment.text, when=_optional(fragment.when)) for fragment in own[len(leading) :]
    ]
    return {**shape, **_kept(promptFragments=conditional), **_parts(step), **_terms(step)}


def _parts(step: Step) -> Shape:
    """Write the fields that the prompt of a run has worked in: the role, and the lines of guidance."""
    texts = {fragment.part: fragment.text for fragment in step.prompt}
    role, guidance = texts.get("role"), texts.get("guidance")
    return _kept(
        agentRole=role.partition(": ")[2] if role else None,
        guidance=guidance.partition("\n- ")[2].split("\n- ") if guidance else None,
    )


def _terms(step: Step) -> Shape:
    confirm = step.confirm if isinstance(step.confirm, bool) else condition_json(step.confirm)
    return {
        "requireConfirmation": confirm,
        **_kept(
            runCondition=_optional(step.condition),
            validationCriteria=None if step.criteria is None else criteria_json(step.criteria),
        ),
    }


def _loop(loop: Loop, activity: str, names: Names) -> Shape:
    steering: Shape = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control"}
    terms: Shape = {
        "type": loop.kind,
        "maxIterations": loop.max_iterations,
        **_kept(
            condition=_optional(loop.condition),
            conditionSource=steering if loop.steered else None,
            breakCondition=_optional(loop.break_condition),
            count=loop.count,
            items=loop.items,
            iterationVar=loop.iteration_var,
            itemVar=loop.item_var,
            indexVar=loop.index_var,
        ),
    }
    return {
        "id": dashed(loop.id),
        "type": "loop",
        "title": loop.title,
        **_kept(description=loop.description, runCondition=_optional(loop.run_condition)),
        "loop": terms,
        "body": list(_items(loop.body, activity, names)),
    }


def _optional(condition: Condition | None) -> Json:
    return None if condition is None else condition_json(condition)


def condition_json(condition: Condition) -> Json:
    """Write a condition; strict comparisons keep the words of activity files."""
    match condition:
        case Compare() if condition.operator in _WORDS:
            return {"var": condition.variable, _WORDS[condition.operator]: condition.value}
        case Compare(operator="truthy"):
            return {"var": condition.variable}
        case Compare(operator="exists" | "notExists"):
            return {"var": condition.variable, condition.operator: True}
        case Compare():
            operator, value = condition.operator, condition.value
            return {"variable": condition.variable, "operator": operator, "value": value}
        case AllOf():
            return {"and": [condition_json(part) for part in condition.conditions]}
        case AnyOf():
            return {"or": [condition_json(part) for part in condition.conditions]}
        case Not():
            return {"not": condition_json(condition.condition)}
        case _:
            assert_never(condition)


def criteria_json(criteria: Criteria) -> Json:
    """Write validation criteria: a list at the top, a tree of and, or and not below."""
    if isinstance(criteria, AllRules):
        return [_rule_json(rule) for rule in criteria.rules]
    return _rule_json(criteria)


def _rule_json(criteria: Criteria) -> Json:
    match criteria:
        case Rule():
            return _rule(criteria)
        case AllRules():
            return {"and": [_rule_json(rule) for rule in criteria.rules]}
        case AnyRule():
            return {"or": [_rule_json(rule) for rule in criteria.rules]}
        case NotRule():
            return {"not": _rule_json(criteria.rule)}
        case _:
            assert_never(criteria)


def _rule(rule: Rule) -> Shape:
    own: Shape
    match rule.kind:
        case "contains":
            own = {"value": rule.value}
        case "regex":
            own = {"pattern": rule.pattern, **({"flags": rule.flags} if rule.flags else {})}
        case "length":
            own = _kept(min=rule.minimum, max=rule.maximum)
        case "schema":
            own = {"schema": rule.schema}
        case _:
            assert_never(rule.kind)
    return {"type": rule.kind, **own, "message": rule.message, **_kept(condition=_optional(rule.condition))}


def _kept(**members: Json) -> Shape:
    """Leave out what the author left out."""
    return {key: value for key, value in members.items() if value is not None and value != []}
