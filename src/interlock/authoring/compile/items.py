"""Compiles steps, gates and loops: one ordered list in every format (rule 30)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile import prompts
from interlock.authoring.compile.checks import read_checks
from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.requirements import read_contracts, read_criteria
from interlock.authoring.compile.templates import CONDITIONS, Templates, expand, filled_features
from interlock.authoring.diagnostics.codes import Report, did_you_mean, one_of
from interlock.authoring.filetypes.source_file import DEFAULTS, SourceSettings
from interlock.authoring.filetypes.step_file import (
    ActionSource,
    AssessmentSource,
    DecideSource,
    FunctionSource,
    GateSource,
    LoopConfig,
    LoopSource,
    StepSource,
    StepWorkflowSource,
    ThenSource,
    TriggerSource,
    milliseconds,
)
from interlock.authoring.filetypes.type_check import read_as, type_name, unknown_fields
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.authoring.text.markdown import titled
from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.conditions import AllOf, Condition
from interlock.core.definition.workflow import (
    Action,
    Approvers,
    Capability,
    Contract,
    Effect,
    Fragment,
    Gate,
    Item,
    Loop,
    Need,
    Option,
    Step,
    Trigger,
    UserInput,
)
from interlock.core.values import Json

ITEM_TYPES = ("step", "parallel", "gate", "checkpoint", "loop")
ITEM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_PASSED_ON = ("audit", "verification", "modelTier", "notesOptional")  # for the lookup surface


class CompileDraft(Struct):
    """The context in which an item is compiled, and the source location of each item compiled so far.

    Inside a template call, `throughout` is guidance for each of its steps and `at_first` for the first one;
    `calls` are the calls around the item. `routines` are all that the workflow calls, with their calls.
    `unusable` are the names of the files whose activities are not known because of other errors.
    `listed_gates` are the gates that an activity lists beside its steps, with the loop that lists each, and
    `check_steps` the steps with the checks of gates, by activity and gate.
    """

    report: Report
    role: str | None = None
    functions: tuple[FunctionSource, ...] = ()
    guidance: str = ""
    assessments: Mapping[str, AssessmentSource] = field(default_factory=dict)
    features: tuple[packs.FeaturePack, ...] = ()
    title_field: str = "title"
    locations: dict[tuple[str, ...], SourceLocation] = field(default_factory=dict)
    activity: str = "main"
    id_counts: dict[tuple[str, str], int] = field(default_factory=dict)
    loop_bodies: dict[str, tuple[Mapping[str, Json], SourceLocation]] = field(default_factory=dict)
    bindings: dict[str, list[str]] = field(default_factory=dict)
    enclosing_loops: tuple[str, ...] = ()
    pages: Mapping[str, Parsed] = field(default_factory=dict)
    borrowed: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)
    capabilities: Mapping[Capability, Need] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    throughout: tuple[str, ...] = ()
    at_first: list[str] = field(default_factory=list)
    routines: list[tuple[StepWorkflowSource, SourceLocation]] = field(default_factory=list)
    templates: Templates = field(default_factory=Templates)
    settings: SourceSettings = DEFAULTS
    settings_at: SourceLocation | None = None
    listed_gates: dict[str, dict[str, str]] = field(default_factory=dict)
    check_steps: dict[tuple[str, str], Step] = field(default_factory=dict)
    checks: dict[str, CommandCheck] = field(default_factory=dict)

    def for_activity(self, pages: Mapping[str, Parsed]) -> CompileDraft:
        """Return a draft for another activity of the same workflow, without the ids of the last one."""
        return msgspec.structs.replace(self, id_counts={}, bindings={}, loop_bodies={}, pages=pages)

    def with_page(self, raw: Json, at: SourceLocation) -> tuple[Json, SourceLocation]:
        """Add the fields and the text of the Markdown file that is named after the step."""
        fields: Json = {"id": raw} if isinstance(raw, str) else raw
        step_id = fields.get("id") if isinstance(fields, Mapping) else None
        page = self.pages.get(step_id) if isinstance(step_id, str) else None
        if page is None or not isinstance(fields, Mapping) or not isinstance(page.value, Mapping):
            return raw, at
        title = {} if "name" in fields else {"title": titled(str(step_id))}
        merged: dict[str, Json] = {**title, **page.value, **fields}
        return merged, at if len(fields) > 1 else SourceLocation(page)


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


def compile_checked_gate(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Gate | None:
    """Compile a gate and, where it has checks, the step that runs them; its question shows the results."""
    gate = compile_gate(raw, at, draft)
    source = read_as(GateSource, raw, at, draft.report) if gate is not None and raw.get("checks") else None
    if gate is None or source is None:
        return gate
    checks = read_checks(source.checks, at / "checks", draft.checks, draft.report)
    step_id, title = unique_id("step", f"check-{gate.id}", at, draft), f"Checks before {gate.name}"
    prompt = (Fragment("Before the question is put, these checks must pass."),)
    step = Step(step_id, title, prompt, condition=gate.condition, checks=checks)
    draft.check_steps[draft.activity, gate.id] = step
    texts = {check.id: f"{{{{checks.{check.id}}}}}" for check in checks}
    shown = "".join(f"\n{name}: {text}" for name, text in texts.items() if text not in gate.message)
    return msgspec.structs.replace(gate, message=gate.message + shown)


def with_check_step(gate: Gate, activity: str, draft: CompileDraft) -> tuple[Item, ...]:
    """Return a gate of an activity after the step with its checks, if it has any."""
    step = draft.check_steps.get((activity, gate.id))
    return (gate,) if step is None else (step, gate)


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


def compile_step(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Step | None:
    """Compile one step with its whole prompt."""
    report = draft.report
    source = read_as(StepSource, raw, at, report)
    if source is None:
        return None
    if source.title is None and source.name is None:
        report.add("IL101", f"the field '{draft.title_field}' is missing", at)
    step_id = unique_id("step", source.id, at, draft)
    if source.checkpoint is not None:
        draft.bindings.setdefault(source.checkpoint, []).append(step_id)
    contracts = _contracts(source, at, draft)
    handed_in = source.prompt_blocks.output_required if source.prompt_blocks else None
    _report_misspelt_notes(handed_in, at / "promptBlocks" / "outputRequired", report)
    names = _names_handed_in(handed_in)
    criteria = read_criteria(source.validation_criteria, at / "validationCriteria", report)
    hints = source.output.hints if source.output else ()
    hints = (hints,) if isinstance(hints, str) else hints
    opening = _opening(source, at, draft)
    closing = Fragment(
        prompts.join(
            (
                prompts.bullets("Hints for the output", hints),
                prompts.functions(source, draft.functions, draft.guidance, at, report),
            )
        )
    )
    condition_key = "runCondition" if source.run_condition is not None else "condition"
    return Step(
        id=step_id,
        title=source.title or source.name or source.id,
        prompt=prompts.merged_fragments((*opening, *prompts.conditional(source, at, report), closing)),
        description=source.description,
        condition=read_condition(source.run_condition or source.condition, at / condition_key, report),
        confirm=read_confirmation(source.require_confirmation, at / "requireConfirmation", report),
        contracts=contracts,
        criteria=criteria,
        user_input=tuple(
            UserInput(wanted.reason, wanted.question, wanted.key, wanted.non_assumable)
            for wanted in source.user_input
        ),
        checks=read_checks(source.checks, at / "checks", draft.checks, report),
        hints=hints,
        hands_in=tuple(names),
        notes_optional=bool(source.notes_optional),
        actions=(
            *read_actions(source.actions, at / "actions", report),
            *(Action("set", target=name) for name in source.sets),
        ),
        triggers=read_triggers(source.triggers),
        required=source.required,
        skill=source.skill,
        skill_args={**source.skill_args_as_documented, **source.skill_args},
        probes=source.probes,
        extra={**unknown_fields(StepSource, raw), **{key: raw[key] for key in _PASSED_ON if key in raw}},
    )


def _contracts(source: StepSource, at: SourceLocation, draft: CompileDraft) -> tuple[Contract, ...]:
    """Read what a step must hand in; the example of a probe names the capability that it probes."""
    return tuple(
        msgspec.structs.replace(contract, example={**contract.example, "capability": source.probes})
        if source.probes and isinstance(contract.example, Mapping) and "capability" in contract.example
        else contract
        for contract in read_contracts(source, draft.assessments, at, draft.report)
    )


def _report_misspelt_notes(block: Json, at: SourceLocation, report: Report) -> None:
    """Report 'note' and letters of 'notes' in another order; any other name is the author's own."""
    for name in block if isinstance(block, Mapping) else ():
        if name == "note" or (name != "notes" and sorted(name) == sorted("notes")):
            report.add("IL105", f"unknown field '{name}'", at.key(name), "did you mean 'notes'?")


def _names_handed_in(block: Json) -> list[str]:
    """Name what the block `outputRequired` requires: each of its keys, and notes if it has none (rule 31).

    What a key `context` is about stands in prose, so that only notes can be required for it.
    """
    if not isinstance(block, Mapping) or block.get("kind") in ("text", "ref"):
        return ["notes"] if block else []
    meant = {"notesMarkdown": "notes", "context": "notes", "artifact": "artifacts"}
    return list(dict.fromkeys(meant.get(name, name) for name in block))


def _opening(source: StepSource, at: SourceLocation, draft: CompileDraft) -> list[Fragment]:
    """Write the parts of the prompt that say what to do; the rest says what the output must satisfy."""
    body = prompts.own_text(source, draft.features, at, draft.report) or source.description or ""
    if not (body or source.prompt_fragments or source.type == "parallel" or source.skill or source.actions):
        body = source.name or ""
        if not body:
            draft.report.add("IL110", f"the step '{source.id}' has no prompt", at)
    duties: list[str] = []
    for action in source.actions:
        reason = action.message or action.description
        if action.action != "set":
            target = f" `{action.target}`" if action.target else ""
            duties.append(f"{action.action.capitalize()}{target}{_because(reason)}")
        elif action.value is UNSET:
            duties.append(f"Produce the variable `{action.target}`{_because(reason)}")
    duties += [f"Produce the variable `{name}`." for name in source.sets if f"`{name}`" not in body]
    if source.skill:
        duties.append(use_of(source.skill))
    for trigger in read_triggers(source.triggers):
        duties.append(f"Start the workflow `{trigger.workflow}`{_because(trigger.description)}")
    role = source.agent_role or draft.role
    guidance = (*draft.throughout, *draft.at_first, *source.guidance)
    draft.at_first.clear()
    files = "Ask the user for the files that this step needs." if source.ask_for_files else ""
    return [
        Fragment(f"{prompts.ROLE}{role}" if role else "", part="role"),
        Fragment(body),
        *prompts.delegations(source, at, draft.report),
        Fragment(prompts.bullets("Guidance", guidance), part="guidance"),
        Fragment(prompts.join(("\n".join(duties), files))),
    ]


def use_of(skill: str) -> str:
    """Return the sentence of a prompt that names the skill of its step."""
    return f"Use the skill `{skill}`."


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else "."


def read_confirmation(raw: Json, at: SourceLocation, report: Report) -> bool | Condition:
    """Read a confirmation: a flag, a condition, or an object that may hold one."""
    if raw is None or isinstance(raw, bool):
        return bool(raw)
    if isinstance(raw, Mapping) and "kind" in raw:
        inner = read_condition(raw.get("condition"), at / "condition", report)
        return True if inner is None else inner
    if not isinstance(raw, Mapping):
        report.add(
            "IL102", f"expected true, false or a condition, got {type_name(raw)}", at, "use true or false"
        )
        return True
    return read_condition(raw, at, report) or False


def read_actions(sources: Sequence[ActionSource], at: SourceLocation, report: Report) -> tuple[Action, ...]:
    return tuple(
        Action(
            action=source.action,
            target=source.target,
            message=source.message,
            value=None if isinstance(source.value, UnsetType) else source.value,
            has_value=source.value is not UNSET,
            description=source.description,
            condition=read_condition(source.condition, at / index / "condition", report),
        )
        for index, source in enumerate(sources)
    )


def read_triggers(sources: Sequence[TriggerSource] | TriggerSource | None) -> tuple[Trigger, ...]:
    """Read the child workflows that a step or an activity starts: a list, or just one."""
    listed = (sources,) if isinstance(sources, TriggerSource) else sources or ()
    return tuple(Trigger(source.workflow, source.description, source.pass_context) for source in listed)


def compile_gate(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Gate | None:
    """Compile a gate (`checkpoint` in files) and check the ids of its options."""
    source = read_as(GateSource, raw, at, draft.report)
    if source is None:
        return None
    ids = [option.id for option in source.options]
    for index, option_id in enumerate(ids):
        if option_id in ids[:index]:
            draft.report.add("IL201", f"duplicate option '{option_id}'", at / "options" / index / "id")
    default = source.default_option
    if default is not None and default not in ids:
        next_action = did_you_mean(default, ids)
        draft.report.add("IL214", f"unknown option '{default}'", at / "defaultOption", next_action)
    decide = _approvers(source, raw, at, draft)
    then = source.decide.then if source.decide is not None else None
    wait = source.auto_advance_ms
    if decide is not None and then is not None and then.option is not None:
        default, wait = then.option, decide.within_ms
    is_timed = default is not None and wait is not None
    prerequisite = {"prerequisite": source.prerequisite} if source.prerequisite else {}
    return Gate(
        id=unique_id("gate", source.id, at, draft),
        name=source.name or source.id,
        message=source.message,
        options=tuple(
            Option(
                option.id,
                option.label or option.id,
                option.description,
                Effect(
                    option.effect.set_variable, option.effect.transition_to, option.effect.skip_activities
                ),
            )
            for option in source.options
        ),
        condition=read_condition(source.condition, at / "condition", draft.report),
        required=source.required,
        blocking=not is_timed if source.blocking is None else source.blocking,
        default_option=default,
        auto_advance_ms=wait,
        decide=decide,
        extra={**unknown_fields(GateSource, raw), **prerequisite},
    )


def _approvers(
    source: GateSource, raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft
) -> Approvers | None:
    """Compile who decides a gate, and say what in it cannot hold."""
    rule, at = source.decide, at / "decide"
    if rule is None:
        return None
    then = rule.then or ThenSource()
    for message, key in _undecidable(source, rule, then, raw["decide"]):
        draft.report.add("IL227", message, at.key(key) if key else at)
    if rule.at_least > len(rule.by):
        message = f"atLeast is {rule.at_least}, and by lists {len(rule.by)}: one of them must be a group"
        draft.report.add("IL228", message, at / "atLeast")
    return Approvers(
        by=rule.by,
        at_least=rule.at_least,
        not_by_starter=rule.not_by == "starter",
        within_ms=milliseconds(rule.within) if rule.within else None,
        remind_ms=milliseconds(rule.remind) if rule.remind else None,
        escalate_to=then.escalate,
    )


def _undecidable(
    source: GateSource, rule: DecideSource, then: ThenSource, raw: Json
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a decide block, and the key that it is about."""
    written = raw if isinstance(raw, Mapping) else {}
    for kind, entry in ((DecideSource, written), (ThenSource, written.get("then"))):
        for name in unknown_fields(kind, entry):
            yield f"unknown key '{name}' in decide", name if kind is DecideSource else "then"
    for name in {name for name in rule.by if rule.by.count(name) > 1}:
        yield f"'{name}' is listed twice", "by"
    is_timed = source.default_option is not None and source.auto_advance_ms is not None
    if source.blocking is False or (is_timed and source.blocking is None):
        yield "a gate with decide does not answer itself; use within and then", ""
    if then.option is not None and (source.blocking or source.default_option not in (None, then.option)):
        yield "then.option contradicts blocking or defaultOption", "then"
    if not source.required:
        yield "a gate with decide cannot be optional", ""
    if rule.then is not None and (then.escalate is None) is (then.option is None):
        yield "then has one of escalate and option", "then"
    if rule.then is not None and rule.within is None:
        yield "then needs within", "then"
    if then.option is not None and then.option not in [option.id for option in source.options]:
        yield f"unknown option '{then.option}'", "then"


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
        extra=unknown_fields(LoopSource, raw),
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


def unique_id(kind: str, item_id: str, at: SourceLocation, draft: CompileDraft) -> str:
    """Take an id once; a second step of the same id is `id#2` (rule 37), a second gate or loop an error."""
    if not ITEM_ID.fullmatch(item_id):
        draft.report.add("IL401", f"the id '{item_id}' has characters that are not allowed in ids", at / "id")
    count = draft.id_counts[kind, item_id] = draft.id_counts.get((kind, item_id), 0) + 1
    if count > 1:
        code = "IL215" if kind == "step" else "IL201"
        draft.report.add(code, f"duplicate {kind} '{item_id}'", at / "id")
        item_id = f"{item_id}#{count}"
    draft.locations.setdefault((draft.activity, kind, item_id), at)
    return item_id
