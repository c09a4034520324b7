"""The variables that steps of other people's files set, inferred from their texts (rule 19).

Those files were written for servers that hold no variables and declare little, so that an agent which does
what a step says would be refused. What is inferred permits and never requires. Our own files declare what
their steps set.
"""

from __future__ import annotations

from collections.abc import Set
from functools import partial

from msgspec.structs import replace

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.codes import INFERRED
from interlock.authoring.inference.prose import names_set_in
from interlock.core.definition.condition_uses import EVERYTHING, conditions_of
from interlock.core.definition.conditions import variables_of
from interlock.core.definition.expressions import root
from interlock.core.definition.variable_sets import sets_of
from interlock.core.definition.workflow import Activity, Step, Workflow, walk, with_steps


def with_inferred_sets(workflow: Workflow, draft: CompileDraft) -> Workflow:
    """Add to each step of others what its text says it sets, and list it among the diagnostics."""
    if not draft.settings.infer:
        return workflow
    items = [item for activity in workflow.activities for item in walk(activity.items)]
    paths = [path for item in items for path in item.shown_paths()]
    paths += [path for condition in conditions_of(workflow, EVERYTHING) for path in variables_of(condition)]
    sets = list(sets_of(workflow))
    names = {variable.name for variable in workflow.variables}
    names |= set(map(root, (*paths, *(each.name for each in sets))))
    names -= {each.name for each in sets if each.by == "loop"}  # they are the loop's own in every round
    activities = []
    for activity in workflow.activities:
        inferred = partial(_inferred, activity=activity, names=names, draft=draft)
        activities.append(replace(activity, items=with_steps(activity.items, inferred)))
    return replace(workflow, activities=tuple(activities))


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
