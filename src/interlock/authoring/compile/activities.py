"""Compiles one activity: steps in order, gates before the steps that name them, then loops, then the rest.

Loops over whole activities are inlined afterwards, when every activity is known (rule 30).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.items import (
    CompileDraft,
    compile_gate,
    compile_items,
    read_actions,
    read_trigger,
    unique_id,
)
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.activity_file import (
    ActivityLoopSource,
    ActivitySource,
    ArtifactSource,
    DecisionSource,
    TransitionSource,
)
from interlock.authoring.filetypes.step_file import TriggerSource
from interlock.authoring.filetypes.type_check import read_as, unknown_fields
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
    walk,
)
from interlock.core.values import Json


def compile_activity(raw: Json, at: SourceLocation, draft: CompileDraft) -> Activity | None:
    """Compile the value of one activity; its places go into the draft."""
    source = read_as(ActivitySource, raw, at, draft.report)
    if source is None or not isinstance(raw, Mapping):
        return None
    draft.activity = source.id
    draft.locations[source.id, "activity", source.id] = at
    report = draft.report
    return Activity(
        id=source.id,
        name=source.name,
        items=_items(source, at, draft),
        version=source.version,
        description=source.description,
        problem=source.problem,
        recognition=source.recognition,
        primary_skill=source.skills.primary if source.skills else None,
        supporting_skills=source.skills.supporting if source.skills else (),
        decisions=tuple(_decisions(source.decisions, at / "decisions", report)),
        transitions=tuple(_transitions(source.transitions, at / "transitions", report)),
        triggers=tuple(map(read_trigger, _as_list(source.triggers))),
        entry_actions=read_actions(source.entry_actions, at / "entryActions", report),
        exit_actions=read_actions(source.exit_actions, at / "exitActions", report),
        artifacts=tuple(map(_artifact, source.artifacts)),
        outcome=source.outcome,
        context_to_preserve=source.context_to_preserve,
        rules=source.rules,
        notes=source.notes,
        required=source.required,
        estimated_time=source.estimated_time,
        extra=unknown_fields(ActivitySource, raw),
    )


def _as_list(triggers: Sequence[TriggerSource] | TriggerSource | None) -> Sequence[TriggerSource]:
    if triggers is None:
        return ()
    return (triggers,) if isinstance(triggers, TriggerSource) else triggers


def _artifact(source: ArtifactSource) -> Artifact:
    return Artifact(source.id, source.name, source.location, source.description, source.action)


def _items(source: ActivitySource, at: SourceLocation, draft: CompileDraft) -> tuple[Item, ...]:
    steps = compile_items(list(source.steps), at / "steps", draft)
    loops = tuple(_loops(source.loops, at / "loops", draft))
    gates = {gate.id: gate for gate in _gates(source.checkpoints, at / "checkpoints", draft)}
    body = (*steps, *loops)
    bound = _bound(body, gates, draft)
    _report_unbound([gate for gate in gates.values() if gate.id not in bound], body, draft)
    free = tuple(gate for gate in gates.values() if gate.id not in bound)
    return (*_placed(body, {step: gates[gate] for gate, step in bound.items()}), *free)


def _gates(raws: Sequence[Json], at: SourceLocation, draft: CompileDraft) -> Iterator[Gate]:
    for index, raw in enumerate(raws):
        if not isinstance(raw, Mapping):
            draft.report.add("IL102", "a checkpoint is an object", at / index)
        elif (gate := compile_gate(raw, at / index, draft)) is not None:
            yield gate


def _bound(body: tuple[Item, ...], gates: Mapping[str, Gate], draft: CompileDraft) -> dict[str, str]:
    """Which step each gate stands before: the first that names it."""
    inline = {item.id for item in walk(body) if isinstance(item, Gate)}
    bound: dict[str, str] = {}
    for gate_id, steps in draft.bindings.items():
        if gate_id in gates:
            bound[gate_id] = steps[0]
        elif gate_id not in inline:
            location = draft.locations[draft.activity, "step", steps[0]] / "checkpoint"
            draft.report.add(
                "IL204", f"unknown checkpoint '{gate_id}'", location, did_you_mean(gate_id, gates)
            )
    return bound


def _placed(items: tuple[Item, ...], before: Mapping[str, Gate]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Step) and (gate := before.get(item.id)) is not None:
            yield msgspec.structs.replace(gate, bound_to=item.id)
        if isinstance(item, Loop):
            yield msgspec.structs.replace(item, body=tuple(_placed(item.body, before)))
        else:
            yield item


def _report_unbound(gates: Sequence[Gate], body: tuple[Item, ...], draft: CompileDraft) -> None:
    for gate in gates:
        step = next((one for one in walk(body) if isinstance(one, Step) and _names(one, gate)), None)
        fix = f"add 'checkpoint: {gate.id}' to the step '{step.id}', which names it" if step else ""
        location = draft.locations[draft.activity, "gate", gate.id] / "id"
        draft.report.add("IL508", f"no step names the checkpoint '{gate.id}'", location, fix)


def _names(step: Step, gate: Gate) -> bool:
    text = " ".join((step.title, step.description or "", *(one.text for one in step.prompt)))
    return gate.id in text or gate.name.lower() in text.lower()


def _loops(raws: Sequence[Json], at: SourceLocation, draft: CompileDraft) -> Iterator[Loop]:
    for index, raw in enumerate(raws):
        here = at / index
        source = read_as(ActivityLoopSource, raw, here, draft.report)
        if source is None:
            continue
        _check_loop(source, here, draft.report)
        yield Loop(
            id=unique_id("loop", source.id, here, draft),
            title=source.name or source.id,
            kind=source.type,
            body=compile_items(list(source.steps), here / "steps", draft),
            max_iterations=source.max_iterations,
            condition=read_condition(source.condition, here / "condition", draft.report),
            break_condition=read_condition(source.break_condition, here / "breakCondition", draft.report),
            items=source.over,
            item_var=source.variable,
            description=source.description,
            activities=source.activities,
            extra=unknown_fields(ActivityLoopSource, raw),
        )


def _check_loop(source: ActivityLoopSource, at: SourceLocation, report: Report) -> None:
    if source.type == "forEach" and source.over is None:
        report.add("IL306", "a forEach loop needs 'over'", at)
    if source.type != "forEach" and source.condition is None and source.break_condition is None:
        report.add("IL306", f"a {source.type} loop needs a condition", at)
    if not source.steps and not source.activities:
        report.add("IL106", "the loop has neither steps nor activities", at)


def _decisions(
    sources: Sequence[DecisionSource], at: SourceLocation, report: Report
) -> Iterator[DecisionPoint]:
    for index, source in enumerate(sources):
        branches = at / index / "branches"
        yield DecisionPoint(
            source.id,
            source.name or source.id,
            tuple(
                Branch(
                    one.id,
                    one.label or one.id,
                    read_condition(one.condition, branches / number / "condition", report),
                    one.transition_to,
                    one.is_default,
                )
                for number, one in enumerate(source.branches)
            ),
            source.description,
        )


def _transitions(
    sources: Sequence[TransitionSource], at: SourceLocation, report: Report
) -> Iterator[Transition]:
    for index, one in enumerate(sources):
        condition = read_condition(one.condition, at / index / "condition", report)
        yield Transition(one.to, condition, one.is_default)


def inlined(activity: Activity, known: Mapping[str, Activity], draft: CompileDraft) -> Activity:
    """Put the items of the activities that a loop runs into its body."""
    items = tuple(_inlined(activity.items, known, (activity.id,), draft))
    return msgspec.structs.replace(activity, items=items)


def _inlined(
    items: tuple[Item, ...], known: Mapping[str, Activity], path: tuple[str, ...], draft: CompileDraft
) -> Iterator[Item]:
    for item in items:
        if not isinstance(item, Loop):
            yield item
            continue
        body = list(_inlined(item.body, known, path, draft))
        for name in item.activities:
            body += _borrowed(name, item, known, path, draft)
        yield msgspec.structs.replace(item, body=tuple(body))


def _borrowed(
    name: str, loop: Loop, known: Mapping[str, Activity], path: tuple[str, ...], draft: CompileDraft
) -> list[Item]:
    location = draft.locations[path[0], "loop", loop.id] / "activities"
    if name not in known:
        draft.report.add("IL202", f"unknown activity '{name}'", location, did_you_mean(name, known))
        return []
    if name in path:
        draft.report.add("IL306", f"the loop runs '{name}', which it is part of", location)
        return []
    return list(_inlined(known[name].items, known, (*path, name), draft))
