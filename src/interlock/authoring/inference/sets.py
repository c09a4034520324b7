"""The variables that steps of other people's files set, inferred from their texts (rule 19).

Those files were written for servers that hold no variables and declare little, so that an agent which does
what a step says would be refused. What is inferred permits and never requires. Our own files declare what
their steps set.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.codes import INFERRED
from interlock.authoring.inference.prose import names_set_in
from interlock.core.definition.conditions import Compare
from interlock.core.definition.expressions import variables_in
from interlock.core.definition.workflow import Action, Activity, Effect, Item, Loop, Step, Workflow, walk


def with_inferred_sets(workflow: Workflow, draft: CompileDraft) -> Workflow:
    """Add to each step of others what its text says it sets, and list it among the diagnostics."""
    if not draft.settings.infer:
        return workflow
    names = {variable.name for variable in workflow.variables} | set(_names_in(workflow.activities))
    items = [item for activity in workflow.activities for item in walk(activity.items)]
    # What a loop binds is its own in every round.
    names -= {name for item in items if isinstance(item, Loop) for name in item.variables()}
    activities = (
        replace(activity, items=tuple(_inferring(activity.items, activity, names, draft)))
        for activity in workflow.activities
    )
    return replace(workflow, activities=tuple(activities))


def _inferring(
    items: tuple[Item, ...], activity: Activity, names: Set[str], draft: CompileDraft
) -> Iterator[Item]:
    for item in items:
        match item:
            case Step():
                yield _inferred(item, activity, names, draft)
            case Loop():
                yield replace(item, body=tuple(_inferring(item.body, activity, names, draft)))
            case _:
                yield item


def _inferred(step: Step, activity: Activity, names: Set[str], draft: CompileDraft) -> Step:
    at = draft.locations.get((activity.id, "step", step.id))
    if at is None or at.parsed.strictness != "lenient":
        return step
    texts = (step.title, step.description or "", *(fragment.text for fragment in step.prompt))
    found = dict.fromkeys(name for text in texts for name in names_set_in(text, names))
    inferred = tuple(name for name in found if not step.sets(name))
    if not inferred:
        return step
    message = f"the text of '{step.id}' is taken to set {', '.join(inferred)}"
    draft.report.add(INFERRED, message, at.holding(inferred[0]))
    return replace(step, inferred=inferred)


def _names_in(value: object) -> Iterator[str]:
    """Yield the variables that a part of a workflow reads, shows or sets."""
    match value:
        case Compare():
            yield value.variable.partition(".")[0]
        case Action(action="set", target=str() as target):
            yield target.partition(".")[0]
        case Effect():
            yield from value.set_variables
        case str():
            yield from (path.partition(".")[0] for path in variables_in(value))
        case Struct():
            if isinstance(value, Loop):
                yield from (
                    path.partition(".")[0] for path in (value.items, value.count) if isinstance(path, str)
                )
            for field in value.__struct_fields__:
                yield from _names_in(getattr(value, field))
        case tuple():
            for member in value:
                yield from _names_in(member)
