"""Compiles one activity: its steps and loops in order, and the gates that it lists beside them.

Loops over whole activities are inlined afterwards, when every activity is known (rule 30).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.items.draft import CompileDraft, unique_id
from interlock.authoring.compile.items.gate import compile_checked_gate
from interlock.authoring.compile.items.lists import compile_items, variable_or_number
from interlock.authoring.compile.items.step import read_actions, read_triggers
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.activity_file import (
    ActivityLoopSource,
    ActivitySource,
    DecisionSource,
    SkillsSource,
    TransitionSource,
)
from interlock.authoring.filetypes.type_check import compiled_as, kept_fields, read_as
from interlock.authoring.inference.places import end_of
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import (
    Activity,
    Artifact,
    Branch,
    DecisionPoint,
    Gate,
    Item,
    Loop,
    Step,
    Transition,
    Workflow,
    rewritten,
    walk,
)
from interlock.core.values import Json


def read_skills(named: SkillsSource | Sequence[str] | None) -> SkillsSource:
    """Read the skills of a workflow or an activity; the first of a list is the primary one."""
    if isinstance(named, SkillsSource):
        return named
    return SkillsSource(primary=named[0], supporting=tuple(named[1:])) if named else SkillsSource()


def compile_activity(raw: Json, at: SourceLocation, draft: CompileDraft) -> Activity | None:
    """Compile the value of one activity, and note the source locations of its items in the draft."""
    report = draft.report
    source = read_as(ActivitySource, raw, at, report)
    if source is None or not isinstance(raw, Mapping):
        return None
    draft.activity = source.id
    draft.locations[source.id, "activity", source.id] = at
    skills = read_skills(source.skills)
    items = _compile_items(source, list(raw), at, draft)
    _report_unknown_gates(items, draft)
    return compiled_as(
        Activity,
        source,
        items=items,
        primary_skill=skills.primary,
        supporting_skills=skills.supporting,
        decisions=tuple(_decisions(source.decisions, at / "decisions", report)),
        transitions=tuple(_transitions(source.transitions, at / "transitions", report)),
        triggers=read_triggers(source.triggers),
        entry_actions=read_actions(source.entry_actions, at / "entryActions", report),
        exit_actions=read_actions(source.exit_actions, at / "exitActions", report),
        artifacts=msgspec.convert(source.artifacts, tuple[Artifact, ...], from_attributes=True),
        extra=kept_fields(ActivitySource, raw),
    )


def _compile_items(
    source: ActivitySource | ActivityLoopSource,
    keys: list[str],
    at: SourceLocation,
    draft: CompileDraft,
    loop_id: str = "",
) -> tuple[Item, ...]:
    """Compile the items of an activity or a loop, `steps` and `loops` as the file has them.

    A listed gate comes before the first step that names it, else last, until `with_places` decides.
    """
    body: tuple[Item, ...] = ()
    for key in keys:
        if key == "steps":
            body += compile_items(list(source.steps), at / "steps", draft)
        elif key == "loops":
            body += tuple(_loops(source.loops, at / "loops", draft))
    gates = {gate.id: gate for gate in _gates(source.checkpoints, at / "checkpoints", draft)}
    draft.listed_gates.setdefault(draft.activity, {}).update(dict.fromkeys(gates, loop_id))
    unbound = tuple(gate for gate in gates.values() if gate.id not in draft.bindings)
    gate_of_step = {steps[0]: gates[gate] for gate, steps in draft.bindings.items() if gate in gates}

    def with_gate(item: Item) -> Iterator[Item]:
        if isinstance(item, Step) and (gate := gate_of_step.get(item.id)) is not None:
            yield msgspec.structs.replace(gate, bound_to=item.id)
        yield item

    return (*rewritten(body, with_gate), *unbound)


def _gates(raws: Sequence[Json], at: SourceLocation, draft: CompileDraft) -> Iterator[Gate]:
    for index, raw in enumerate(raws):
        if not isinstance(raw, Mapping):
            draft.report.add("IL102", "a checkpoint must be an object", at / index)
        elif (gate := compile_checked_gate(raw, at / index, draft)) is not None:
            yield gate


def _report_unknown_gates(items: tuple[Item, ...], draft: CompileDraft) -> None:
    gates = {item.id for item in walk(items) if isinstance(item, Gate)}
    for gate_id, steps in draft.bindings.items():
        if gate_id not in gates:
            location = draft.locations[draft.activity, "step", steps[0]] / "checkpoint"
            next_action = did_you_mean(gate_id, gates)
            draft.report.add("IL204", f"unknown checkpoint '{gate_id}'", location, next_action)


def _loops(raws: Sequence[Json], at: SourceLocation, draft: CompileDraft) -> Iterator[Loop]:
    for index, raw in enumerate(raws):
        loop_at = at / index
        source = read_as(ActivityLoopSource, raw, loop_at, draft.report)
        if source is None or not isinstance(raw, Mapping):
            continue
        if source.type == "forEach" and source.over is None:
            draft.report.add("IL306", "a forEach loop needs 'over'", loop_at)
        if source.type != "forEach" and source.condition is None and source.break_condition is None:
            draft.report.add("IL306", f"a {source.type} loop needs a condition", loop_at)
        if not source.steps and not source.loops and not source.activities:
            draft.report.add("IL106", "the loop has neither steps nor activities", loop_at)
        loop_id = unique_id("loop", source.id, loop_at, draft)
        yield compiled_as(
            Loop,
            source,
            id=loop_id,
            title=source.name or source.id,
            kind=source.type,
            body=_compile_items(source, list(raw), loop_at, draft, loop_id),
            condition=read_condition(source.condition, loop_at / "condition", draft.report),
            break_condition=read_condition(source.break_condition, loop_at / "breakCondition", draft.report),
            items=source.over and str(variable_or_number(source.over)),
            item_var=source.variable,
            extra=kept_fields(ActivityLoopSource, raw),
        )


def _transitions(
    sources: Sequence[TransitionSource], at: SourceLocation, report: Report
) -> Iterator[Transition]:
    for index, source in enumerate(sources):
        condition = read_condition(source.condition, at / index / "condition", report)
        yield Transition(source.to, condition, source.is_default)


def _decisions(
    sources: Sequence[DecisionSource], at: SourceLocation, report: Report
) -> Iterator[DecisionPoint]:
    for index, source in enumerate(sources):
        branches_at = at / index / "branches"
        branches = tuple(
            Branch(
                branch.id,
                branch.label or branch.id,
                read_condition(branch.condition, branches_at / number / "condition", report),
                branch.transition_to,
                branch.is_default,
            )
            for number, branch in enumerate(source.branches)
        )
        yield DecisionPoint(source.id, source.name or source.id, branches, source.description)


def with_inlined_loops(workflow: Workflow, draft: CompileDraft) -> Workflow:
    """Put the items of the activities that a loop runs into its body."""
    known = {activity.id: activity for activity in workflow.activities}
    activities = (
        msgspec.structs.replace(activity, items=tuple(_inlined(activity.items, known, (activity.id,), draft)))
        for activity in workflow.activities
    )
    return msgspec.structs.replace(workflow, activities=tuple(activities))


def _inlined(
    items: tuple[Item, ...], known: Mapping[str, Activity], path: tuple[str, ...], draft: CompileDraft
) -> Iterator[Item]:
    """Yield the items with loops filled; `path` are the activities that are being inlined."""
    for item in items:
        if not isinstance(item, Loop):
            yield item
            continue
        own = list(_inlined(item.body, known, path, draft))
        last = [each for each in own if isinstance(each, Gate) and each.place.startswith(end_of(item))]
        body = [each for each in own if each not in last]
        for name in item.activities:
            location = draft.locations[path[-1], "loop", item.id] / "activities"
            if name not in known:
                draft.report.add("IL202", f"unknown activity '{name}'", location, did_you_mean(name, known))
            elif name in path:
                draft.report.add("IL306", f"the loop runs '{name}', which contains it", location)
            else:
                body += _inlined(known[name].items, known, (*path, name), draft)
        yield msgspec.structs.replace(item, body=(*body, *last))
