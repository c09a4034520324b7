"""Compiles lists of items: one ordered list of steps, gates and loops in every format (rule 30)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.items.draft import CompileDraft, unique_id
from interlock.authoring.compile.items.gate import compile_checked_gate, with_check_step
from interlock.authoring.compile.items.step import compile_step
from interlock.authoring.compile.templates import CONDITIONS, expand, filled_features
from interlock.authoring.diagnostics.codes import Report, did_you_mean, one_of
from interlock.authoring.filetypes.loop_source import LoopConfig, LoopSource
from interlock.authoring.filetypes.type_check import kept_fields, read_as, type_name
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import AllOf, Condition
from interlock.core.definition.workflow import Gate, Item, Loop, Step
from interlock.core.values import Json

ITEM_TYPES = ("step", "parallel", "gate", "checkpoint", "loop")


def compile_items(raws: Sequence[Json], at: SourceLocation, draft: CompileDraft) -> tuple[Item, ...]:
    """Compile a list of items in order; steps that a loop names as its body belong to the loop alone."""
    bodies = {str(raw["body"]) for raw in _raw_loops(raws) if isinstance(raw.get("body"), str)}
    for index, raw in enumerate(raws):
        if isinstance(raw, Mapping) and (step_id := _id_of(raw)) is not None and step_id in bodies:
            draft.loop_bodies.setdefault(step_id, (raw, at / index))
    return tuple(
        item
        for index, raw in enumerate(raws)
        if _id_of(raw) not in bodies
        for item in compile_item(raw, at / index, draft)
    )


def _id_of(raw: Json) -> str | None:
    item_id = raw.get("id") if isinstance(raw, Mapping) else raw
    return item_id if isinstance(item_id, str) else None


def _raw_loops(raws: Sequence[Json]) -> Iterator[Mapping[str, Json]]:
    for raw in raws:
        if isinstance(raw, Mapping) and raw.get("type") == "loop":
            yield raw
            body = raw.get("body")
            if isinstance(body, list):
                yield from _raw_loops(body)


def compile_item(raw: Json, at: SourceLocation, draft: CompileDraft) -> Iterator[Item]:
    """Compile one entry of a list; a template call becomes several steps."""
    raw, at = draft.with_page(raw, at)
    if not isinstance(raw, Mapping):
        draft.report.add("IL102", f"expected a step, got {type_name(raw)}", at)
        return
    match raw.get("type"):
        case "loop":
            if (loop := _compile_loop(raw, at, draft)) is not None:
                yield loop
        case "gate" | "checkpoint":
            if (gate := compile_checked_gate(raw, at, draft)) is not None:
                yield from with_check_step(gate, draft.activity, draft)
        case str(other) if other not in ITEM_TYPES:
            message = f"'{other}' is not one of {', '.join(ITEM_TYPES)}"
            draft.report.add("IL103", message, at / "type", one_of(other, ITEM_TYPES))
        case _ if "templateCall" in raw:
            yield from _compile_call(raw, at, draft)
        case _:
            if (step := compile_step(raw, at, draft)) is not None:
                yield step


def _compile_call(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Iterator[Item]:
    """Compile the items of a template, with what its routine says for them and the call's condition."""
    expansion, report = expand(raw, at, draft.templates, draft.report), draft.report
    if expansion is None:
        return
    routine, call_at = expansion.header, at / "templateCall"
    if expansion.ref in draft.calls:
        report.add("IL223", f"'{expansion.ref}' calls itself", call_at / "templateId")
        return
    for capability in routine.capabilities.keys() - draft.capabilities.keys():
        message = f"'{expansion.ref}' says how it needs '{capability}', and this workflow does not"
        report.add("IL222", message, call_at, f"declare '{capability}' under capabilities")
    if routine.recommended_preferences is not None:
        report.add("IL222", f"the preferences that '{expansion.ref}' recommends have no effect here", call_at)
    draft.routines.append((routine, call_at))
    within = msgspec.structs.replace(
        draft,
        role=routine.agent_role or draft.role,
        functions=(*draft.functions, *routine.function_definitions),
        assessments={**draft.assessments, **{one.id: one for one in routine.assessments}},
        features=(*draft.features, *filled_features(routine.features, call_at, report)),
        throughout=(*draft.throughout, *routine.meta_guidance),
        at_first=[*routine.preconditions, *routine.clarification_prompts],
        calls=(*draft.calls, expansion.ref),
    )
    key = next((name for name in CONDITIONS if name in raw), "runCondition")
    condition = read_condition(raw.get(key), at / key, report)
    for item in compile_items(expansion.items, at, within):
        yield _called(item, expansion.ref, condition)


def _called(item: Item, ref: str, condition: Condition | None) -> Item:
    """Mark where an item comes from, and let it apply only under the condition of the call too."""
    own = item.run_condition if isinstance(item, Loop) else item.condition
    both = tuple(one for one in (condition, own) if one is not None)
    applies = AllOf(both) if len(both) > 1 else both[0] if both else None
    match item:
        case Step():
            return msgspec.structs.replace(item, provenance=item.provenance or ref, condition=applies)
        case Gate():
            return msgspec.structs.replace(item, condition=applies)
        case Loop():
            body = tuple(_called(inner, ref, None) for inner in item.body)
            return msgspec.structs.replace(item, body=body, run_condition=applies)


def _compile_loop(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Loop | None:
    report = draft.report
    source = read_as(LoopSource, raw, at, report)
    if source is None:
        return None
    config, config_at = source.loop, at / "loop"
    _check_loop(config, config_at, report)
    if source.require_confirmation:
        message = "a loop cannot be confirmed; its steps can"
        report.add("IL105", message, at.key("requireConfirmation"), "move it to a step of the body")
    condition, condition_at = config.condition, config_at / "condition"
    controlled_by = config.condition_source
    if controlled_by is not None and controlled_by.condition is not None:
        condition, condition_at = controlled_by.condition, config_at / "conditionSource" / "condition"
    loop_id = unique_id("loop", source.id, at, draft)
    inner_draft = msgspec.structs.replace(
        draft,
        functions=(*draft.functions, *source.function_definitions),
        enclosing_loops=(*draft.enclosing_loops, source.id),
    )
    return Loop(
        id=loop_id,
        title=source.title or source.name or source.id,
        kind=config.type,
        body=_loop_body(source.body, at / "body", inner_draft),
        max_iterations=config.max_iterations or 100,
        run_condition=read_condition(source.run_condition, at / "runCondition", report),
        condition=read_condition(condition, condition_at, report),
        break_condition=read_condition(config.break_condition, config_at / "breakCondition", report),
        count=variable_or_number(config.count) if isinstance(config.count, str) else config.count,
        items=config.items and str(variable_or_number(config.items)),
        item_var=config.item_var,
        index_var=config.index_var,
        iteration_var=config.iteration_var,
        steered=controlled_by is not None and controlled_by.kind == "artifact_contract",
        description=source.description,
        extra=kept_fields(LoopSource, raw),
    )


def variable_or_number(written: str) -> str | int:
    """Read what a loop goes by: a variable, which may be in braces as in a prompt, or a number in quotes."""
    name = written.strip().removeprefix("{{").removesuffix("}}").strip()
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else name


def _check_loop(config: LoopConfig, at: SourceLocation, report: Report) -> None:
    if config.max_iterations is None:
        report.add("IL305", "the loop has no maxIterations", at)
    match config.type:
        case "while" | "until" | "doWhile":
            if config.condition is None and config.condition_source is None:
                report.add("IL306", f"a {config.type} loop needs a condition", at)
        case "for":
            if config.count is None:
                report.add("IL306", "a for loop needs a count", at)
        case "forEach":
            if config.items is None:
                report.add("IL306", "a forEach loop needs items", at)


def _loop_body(raw: Json, at: SourceLocation, draft: CompileDraft) -> tuple[Item, ...]:
    if isinstance(raw, list):
        if not raw:
            draft.report.add("IL106", "the loop has no steps", at)
        return compile_items(raw, at, draft)
    if not isinstance(raw, str):
        draft.report.add("IL102", f"a body must be a step id or a list, not {type_name(raw)}", at)
        return ()
    body = draft.loop_bodies.get(raw)
    if body is None:
        draft.report.add("IL203", f"unknown step '{raw}'", at, did_you_mean(raw, draft.loop_bodies))
        return ()
    if raw in draft.enclosing_loops:
        draft.report.add("IL306", f"the loop '{raw}' contains itself", at)
        return ()
    return tuple(compile_item(*body, draft))
