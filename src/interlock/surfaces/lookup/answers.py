"""The answers of the lookup tools, from a library that is only ever read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.criteria import failed_checks, requirement
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import AllRules, AnyRule, Criteria, NotRule, Rule, Step, Workflow
from interlock.core.engine.gates import needs_confirmation
from interlock.core.engine.requirements import unmet, unset_variable
from interlock.core.patterns import BadPattern, prepare, search
from interlock.core.run.output import Output
from interlock.core.run.preferences import Preferences
from interlock.core.run.reasons import ContextKey
from interlock.core.values import Json, set_names
from interlock.core.variables.sending import Parameters, instruction
from interlock.core.variables.typed_values import sound
from interlock.surfaces.call import Outcome, Reply, RpcError
from interlock.surfaces.lookup import errors, render
from interlock.surfaces.lookup.names import Names, dashed, names_of, shown_ids
from interlock.surfaces.lookup.params import Get, Next, Validate, length_error
from interlock.surfaces.lookup.progress import Endless, Offered, due_step

if TYPE_CHECKING:
    from interlock.authoring.library import Library

COMPLETE = "All steps are complete."
SENT = Parameters(artifacts="output, as JSON", notes="output", kept="context.artifacts")


def reply(answer: dict[str, Json]) -> Reply:
    """Give the same JSON as text and as structure."""
    return Reply(msgspec.json.encode(answer).decode(), answer)


def list_reply(library: Library) -> Outcome:
    """List every workflow that can be looked up."""
    listing = library.listing()
    shown = {
        workflow_id: name for name, workflow_id in shown_ids(entry.id for entry in listing.entries).items()
    }
    workflows: list[Json] = [
        {
            "id": shown[entry.id],
            "name": entry.name,
            "description": entry.description,
            "category": entry.category,
            "version": entry.version,
        }
        for entry in listing.entries
    ]
    shadowed: list[Json] = [workflow.message for workflow in listing.shadowed]
    return reply({"workflows": workflows, **({"shadowed": shadowed} if shadowed else {})})


def get_reply(library: Library, params: Get) -> Outcome:
    """Give a workflow: whole, or as much of it as the mode asks for."""
    workflow = _loaded(library, "id", params.id)
    if isinstance(workflow, RpcError):
        return workflow
    names = names_of(workflow)
    if isinstance(params.mode, UnsetType):
        return reply(render.whole(workflow, names))
    summary = {**render.header(workflow), "totalSteps": len(names.steps)}
    if params.mode == "metadata":
        return reply(summary)
    first = due_step(workflow, names, frozenset(), {})
    if isinstance(first, Endless):
        return _endless(workflow, first)
    return reply({**summary, "firstStep": _step(first)})


def next_reply(library: Library, params: Next) -> Outcome:
    """Give the first step, in order, that is due and not completed."""
    workflow = _loaded(library, "workflowId", params.workflow_id)
    if isinstance(workflow, RpcError):
        return workflow
    names = names_of(workflow)
    if (failure := _step_error(params, names)) is not None:
        return failure
    completed = frozenset(map(dashed, params.completed_steps))
    context = {} if isinstance(params.context, UnsetType) else params.context
    offered = due_step(workflow, names, completed, context)
    if isinstance(offered, Endless):
        return _endless(workflow, offered)
    answer: dict[str, Json] = {"step": _step(offered), "guidance": _guidance(workflow, offered)}
    return reply({**answer, "isComplete": offered.step is None})


def _step_error(params: Next, names: Names) -> RpcError | None:
    """Refuse a completed or current step that the workflow does not have, or that is listed twice."""
    seen = set[str]()
    for step_id in params.completed_steps:
        if dashed(step_id) in seen:
            return errors.invalid_params(f"completedSteps: duplicate '{step_id}'")
        seen.add(dashed(step_id))
        if names.find(step_id) is None:
            return errors.step_not_found(step_id)
    current = params.current_step
    if isinstance(current, UnsetType) or names.find(current) is not None:
        return None
    return _not_found_error("currentStep", current)


def _not_found_error(field: str, step_id: str) -> RpcError:
    error = length_error(field, step_id)
    return errors.step_not_found(step_id) if error is None else errors.invalid_params(error)


def _loaded(library: Library, field: str, workflow_id: str) -> Workflow | RpcError:
    from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic

    loaded = library.load(workflow_id)
    if isinstance(loaded, Diagnostic) and workflow_id != dashed(workflow_id):
        loaded = library.load(dashed(workflow_id))
    if isinstance(loaded, Diagnostic) and loaded.code == ABSENT:
        shown = shown_ids(entry.id for entry in library.listing().entries)
        loaded = library.load(shown[workflow_id]) if workflow_id in shown else loaded
    if not isinstance(loaded, Diagnostic):
        return loaded.workflow
    if (error := length_error(field, workflow_id)) is not None:
        return errors.invalid_params(error)
    return errors.cannot_load(workflow_id, loaded)


def _endless(workflow: Workflow, endless: Endless) -> RpcError:
    details = f"activity '{endless.activity}' goes in a circle without a step; send what decides its exit"
    return errors.invalid_state(dashed(workflow.id), details)


def _step(offered: Offered) -> dict[str, Json]:
    if offered.step is None:
        return {}
    return render.offered_step(offered.step, offered.name, offered.plan.scope(offered.state.variables))


def _guidance(workflow: Workflow, offered: Offered) -> dict[str, Json]:
    warned: dict[str, Json] = {"warnings": list(offered.warnings)} if offered.warnings else {}
    step = offered.step
    if step is None:
        return {"prompt": COMPLETE, "requiresConfirmation": False, "validationCriteria": [], **warned}
    scope = offered.plan.scope(offered.state.variables)
    hint = step.extra.get("modelHint", step.extra.get("modelTier"))
    return {
        "prompt": instruction(offered.plan, offered.state.under(Preferences()), step, SENT).text,
        **({"modelHint": hint} if isinstance(hint, str) else {}),
        "requiresConfirmation": needs_confirmation(offered.plan, offered.state, step),
        "validationCriteria": list(_demands(step.criteria, scope)),
        **warned,
    }


def _demands(criteria: Criteria | None, scope: Scope) -> Iterator[str]:
    match criteria:
        case None:
            return
        case Rule():
            if holds(criteria.condition, scope):
                yield criteria.message
        case AllRules():
            for rule in criteria.rules:
                yield from _demands(rule, scope)
        case AnyRule() | NotRule():
            yield requirement(criteria)


def validate_reply(library: Library, params: Validate) -> Outcome:
    """Check a step's output against all that the step requires; conditional rules read the context."""
    workflow = _loaded(library, "workflowId", params.workflow_id)
    if isinstance(workflow, RpcError):
        return workflow
    step = names_of(workflow).find(params.step_id)
    if step is None:
        return _not_found_error("stepId", params.step_id)
    context = {} if isinstance(params.context, UnsetType) else params.context
    plan = Plan(workflow)
    scope = plan.scope(context)
    for rule in _patterns(step.criteria):
        if not holds(rule.condition, scope) or prepare(rule.pattern, rule.flags).engine == "re2":
            continue  # only the slow engine can give up on a text (rule 33)
        try:
            search(rule.pattern, params.output, rule.flags)
        except BadPattern as error:
            return errors.invalid_criteria(params.step_id, str(error))
    failed = failed_checks(step.criteria, params.output, scope)
    others = replace(step, criteria=None)
    taken = set_names(sound(plan, context)[0])
    lacking = [*unmet(plan, others, _as_output(params.output, others), scope, taken)]
    lacking += [unset_variable(plan, step, name) for name in plan.produced(step, scope) if name not in taken]
    issues: list[Json] = [*(check.message for check in failed), *(blocker.message for blocker in lacking)]
    suggestions: list[Json] = [check.requirement for check in failed]
    suggestions += [
        f"send {'as context' if isinstance(blocker.pointer, ContextKey) else 'as output'}: "
        f"{msgspec.json.encode(blocker.example).decode()}"
        for blocker in lacking
        if blocker.example is not None
    ]
    return reply({"valid": not issues, "issues": issues, "suggestions": suggestions})


def _as_output(text: str, step: Step) -> Output:
    """Read an output as notes and, where it is JSON, as the artifacts that the step must hand in."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return Output(text)
    kinds = {contract.artifact for contract in step.contracts}
    known = {"kind": next(iter(kinds))} if len(kinds) == 1 else {}
    sent = value if isinstance(value, list) else [value]
    return Output(text, tuple({**known, **artifact} for artifact in sent if isinstance(artifact, dict)))


def _patterns(criteria: Criteria | None) -> Iterator[Rule]:
    match criteria:
        case Rule(kind="regex"):
            yield criteria
        case AllRules() | AnyRule():
            for rule in criteria.rules:
                yield from _patterns(rule)
        case NotRule():
            yield from _patterns(criteria.rule)
        case _:
            return
