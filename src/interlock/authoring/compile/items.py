"""Compiles steps, gates and loops: one ordered list in every format (rule 30)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile import prompts
from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.contracts import read_contracts
from interlock.authoring.compile.criteria import read_criteria
from interlock.authoring.compile.templates import expand
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.step_file import (
    ActionSource,
    AssessmentSource,
    FunctionSource,
    GateSource,
    LoopConfig,
    LoopSource,
    OptionSource,
    StepSource,
    TriggerSource,
    UserInputSource,
)
from interlock.authoring.filetypes.type_check import name_of, read_as, unknown_fields
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.authoring.text.markdown import titled
from interlock.core.definition.conditions import Condition
from interlock.core.definition.workflow import (
    Action,
    Contract,
    Criteria,
    Effect,
    Fragment,
    Gate,
    Item,
    Loop,
    Option,
    Step,
    Trigger,
    UserInput,
)
from interlock.core.values import Json

ITEM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_INERT = ("audit", "verification", "modelTier", "notesOptional")


class CompileDraft(Struct):
    """What compiling an item needs to know of the workflow around it, and where each item was found."""

    report: Report
    role: str | None = None
    functions: tuple[FunctionSource, ...] = ()
    prose: str = ""
    assessments: Mapping[str, AssessmentSource] = field(default_factory=dict)
    features: tuple[packs.FeaturePack, ...] = ()
    title_word: str = "title"
    locations: dict[tuple[str, ...], SourceLocation] = field(default_factory=dict)
    activity: str = "main"
    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    bodies: dict[str, tuple[Mapping[str, Json], SourceLocation]] = field(default_factory=dict)
    bindings: dict[str, list[str]] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    words: Mapping[str, Parsed] = field(default_factory=dict)
    borrowed: set[str] = field(default_factory=set)

    def fresh(self, words: Mapping[str, Parsed]) -> CompileDraft:
        """A draft for another activity of the same workflow: ids and bindings start anew."""
        return msgspec.structs.replace(self, seen={}, bindings={}, bodies={}, words=words)

    def worded(self, raw: Json, at: SourceLocation) -> tuple[Json, SourceLocation]:
        """Add the words that lie in a Markdown file named after the step."""
        named: Json = {"id": raw} if isinstance(raw, str) else raw
        step_id = named.get("id") if isinstance(named, Mapping) else None
        page = self.words.get(step_id) if isinstance(step_id, str) else None
        if page is None or not isinstance(named, Mapping) or not isinstance(page.value, Mapping):
            return raw, at
        title = {} if "name" in named else {"title": titled(str(step_id))}
        merged: dict[str, Json] = {**title, **page.value, **named}
        return merged, at if len(named) > 1 else SourceLocation(page)

    def location(self, kind: str, item_id: str, at: SourceLocation) -> None:
        self.locations.setdefault((self.activity, kind, item_id), at)


def compile_items(raws: Sequence[Json], at: SourceLocation, draft: CompileDraft) -> tuple[Item, ...]:
    """Compile a list of items in its order, loops with their bodies."""
    consumed = _named_bodies(raws, at, draft)
    return tuple(
        item
        for index, raw in enumerate(raws)
        if _id(raw) not in consumed
        for item in compile_item(raw, at / index, draft)
    )


def _named_bodies(raws: Sequence[Json], at: SourceLocation, draft: CompileDraft) -> set[str]:
    """Steps that a loop names as its body belong to the loop alone."""
    named = {str(raw["body"]) for raw in _loops(raws) if isinstance(raw.get("body"), str)}
    for index, raw in enumerate(raws):
        if isinstance(raw, Mapping) and (step_id := _id(raw)) in named and step_id is not None:
            draft.bodies.setdefault(step_id, (raw, at / index))
    return named


def _id(raw: Json) -> str | None:
    found = raw.get("id") if isinstance(raw, Mapping) else raw
    return found if isinstance(found, str) else None


def _loops(raws: Sequence[Json]) -> Iterator[Mapping[str, Json]]:
    for raw in raws:
        if isinstance(raw, Mapping) and raw.get("type") == "loop":
            yield raw
            body = raw.get("body")
            if isinstance(body, list):
                yield from _loops(body)


def compile_item(raw: Json, at: SourceLocation, draft: CompileDraft) -> Iterator[Item]:
    raw, at = draft.worded(raw, at)
    if not isinstance(raw, Mapping):
        draft.report.add("IL102", f"expected a step, got {name_of(raw)}", at)
        return
    match raw.get("type"):
        case "loop":
            yield from _loop(raw, at, draft)
        case "gate" | "checkpoint":
            if (gate := compile_gate(raw, at, draft)) is not None:
                yield gate
        case _ if "templateCall" in raw:
            yield from _expanded(raw, at, draft)
        case _:
            if (step := compile_step(raw, at, draft)) is not None:
                yield step


def _expanded(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Iterator[Item]:
    for expanded, provenance in expand(raw, at, draft.report):
        if (step := compile_step(expanded, at, draft)) is not None:
            yield msgspec.structs.replace(step, provenance=provenance)


def compile_step(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Step | None:
    """Compile one step with all its words."""
    source = read_as(StepSource, raw, at, draft.report)
    if source is None:
        return None
    if source.title is None and source.name is None:
        draft.report.add("IL101", f"the field '{draft.title_word}' is missing", at)
    return _built(source, raw, at, draft)


def _built(source: StepSource, raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Step:
    report, step_id = draft.report, unique_id("step", source.id, at, draft)
    if source.checkpoint is not None:
        draft.bindings.setdefault(source.checkpoint, []).append(step_id)
    contracts = read_contracts(source, draft.assessments, at, report)
    criteria = read_criteria(source.validation_criteria, at / "validationCriteria", report)
    opening = Fragment(_opening(source, at, draft))
    closing = Fragment(_closing(source, contracts, criteria, at, draft))
    return Step(
        id=step_id,
        title=source.title or source.name or source.id,
        prompt=prompts.merged((opening, *prompts.conditional(source, at, report), closing)),
        description=source.description,
        condition=_first_condition(source, at, report),
        confirm=read_confirmation(source.require_confirmation, at / "requireConfirmation", report),
        contracts=contracts,
        criteria=criteria,
        user_input=tuple(map(_user_input, source.user_input)),
        hints=_hints(source),
        actions=read_actions(source.actions, at / "actions", report),
        triggers=tuple(map(read_trigger, source.triggers)),
        required=source.required,
        skill=source.skill,
        skill_args=source.skill_args,
        probes=source.probes,
        extra={**unknown_fields(StepSource, raw), **{key: raw[key] for key in _INERT if key in raw}},
    )


def _hints(source: StepSource) -> tuple[str, ...]:
    hints = source.output.hints if source.output else ()
    return (hints,) if isinstance(hints, str) else hints


def _closing(
    source: StepSource,
    contracts: Sequence[Contract],
    criteria: Criteria | None,
    at: SourceLocation,
    draft: CompileDraft,
) -> str:
    return prompts.join(
        (
            prompts.requirements(contracts, criteria),
            prompts.bullets("Hints for the output", _hints(source)),
            prompts.functions(_functions_of(source, at, draft)),
        )
    )


def _opening(source: StepSource, at: SourceLocation, draft: CompileDraft) -> str:
    words = prompts.words_of(source, draft.features, at, draft.report)
    body = words or source.description or ""
    if not (body or source.prompt_fragments or source.type == "parallel" or source.skill or source.actions):
        body = source.name or ""
        if not body:
            draft.report.add("IL110", f"the step '{source.id}' says nothing", at)
    files = "Ask the user for the files that this step needs." if source.ask_for_files else ""
    return prompts.join(
        (
            prompts.role_of(source.agent_role or draft.role),
            body,
            prompts.delegations(source),
            prompts.bullets("Guidance", source.guidance),
            _duties(source),
            files,
        )
    )


def _duties(source: StepSource) -> str:
    """What an activity step asks for beside its description."""
    lines = [line for line in map(_duty, source.actions) if line]
    if source.skill:
        lines.append(f"Use the skill `{source.skill}`.")
    lines += [f"Start the workflow `{one.workflow}`{_because(one.description)}" for one in source.triggers]
    return "\n".join(lines)


def _duty(action: ActionSource) -> str:
    why = action.message or action.description
    if action.action == "set" and action.value is UNSET:
        return f"Produce the variable `{action.target}`{_because(why)}"
    if action.action == "set":
        return ""
    return f"{action.action.capitalize()}{f' `{action.target}`' if action.target else ''}{_because(why)}"


def _because(why: str | None) -> str:
    return f": {why}" if why else "."


def _first_condition(source: StepSource, at: SourceLocation, report: Report) -> Condition | None:
    key = "runCondition" if source.run_condition is not None else "condition"
    return read_condition(source.run_condition or source.condition, at / key, report)


def read_confirmation(raw: Json, at: SourceLocation, report: Report) -> bool | Condition:
    """A confirmation is a flag, a condition, or an object that may hold one."""
    if raw is None or isinstance(raw, bool):
        return bool(raw)
    if isinstance(raw, Mapping) and "kind" in raw:
        inner = read_condition(raw.get("condition"), at / "condition", report)
        return True if inner is None else inner
    return read_condition(raw, at, report) or False


def _user_input(source: UserInputSource) -> UserInput:
    return UserInput(source.reason, source.question, source.key, source.non_assumable)


def read_actions(sources: Sequence[ActionSource], at: SourceLocation, report: Report) -> tuple[Action, ...]:
    return tuple(
        Action(
            action=one.action,
            target=one.target,
            message=one.message,
            value=None if isinstance(one.value, UnsetType) else one.value,
            has_value=one.value is not UNSET,
            description=one.description,
            condition=read_condition(one.condition, at / index / "condition", report),
        )
        for index, one in enumerate(sources)
    )


def read_trigger(source: TriggerSource) -> Trigger:
    return Trigger(source.workflow, source.description, source.pass_context)


def _functions_of(source: StepSource, at: SourceLocation, draft: CompileDraft) -> list[FunctionSource]:
    """The functions that the step names, wherever they are defined."""
    known = {one.name: one for one in (*draft.functions, *source.function_definitions)}
    references, calls = at / "functionReferences", at / "functionCalls"
    named = [
        (one.split("(")[0].strip(), references / index)
        for index, one in enumerate(source.function_references)
    ]
    named += [(one.name, calls / index / "name") for index, one in enumerate(source.function_calls)]
    for name, location in named:
        if name not in known and name not in draft.prose:
            draft.report.add("IL208", f"unknown function '{name}'", location, did_you_mean(name, known))
    wanted = dict.fromkeys([name for name, _ in named] + [one.name for one in source.function_definitions])
    return [known[name] for name in wanted if name in known]


def compile_gate(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Gate | None:
    source = read_as(GateSource, raw, at, draft.report)
    if source is None:
        return None
    _check_options(source, at, draft)
    timed = source.default_option is not None and source.auto_advance_ms is not None
    return Gate(
        id=unique_id("gate", source.id, at, draft),
        name=source.name or source.id,
        message=source.message,
        options=tuple(map(_option, source.options)),
        condition=read_condition(source.condition, at / "condition", draft.report),
        required=source.required,
        blocking=not timed if source.blocking is None else source.blocking,
        default_option=source.default_option,
        auto_advance_ms=source.auto_advance_ms,
        extra={
            **unknown_fields(GateSource, raw),
            **({"prerequisite": source.prerequisite} if source.prerequisite else {}),
        },
    )


def _check_options(source: GateSource, at: SourceLocation, draft: CompileDraft) -> None:
    ids = [option.id for option in source.options]
    for index, option_id in enumerate(ids):
        if option_id in ids[:index]:
            draft.report.add("IL201", f"two options are called '{option_id}'", at / "options" / index / "id")
    if source.default_option is not None and source.default_option not in ids:
        fix = did_you_mean(source.default_option, ids)
        draft.report.add("IL214", f"unknown option '{source.default_option}'", at / "defaultOption", fix)


def _option(source: OptionSource) -> Option:
    effect = source.effect
    made = Effect(effect.set_variable, effect.transition_to, effect.skip_activities)
    return Option(source.id, source.label or source.id, source.description, made)


def _loop(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Iterator[Loop]:
    source = read_as(LoopSource, raw, at, draft.report)
    if source is None:
        return
    config, report, here = source.loop, draft.report, at / "loop"
    _check_steering(config, here, report)
    if source.require_confirmation:
        message = "a loop is not confirmed; the steps in it can be"
        report.add("IL105", message, at.key("requireConfirmation"), "move it to a step of the body")
    loop_id = unique_id("loop", source.id, at, draft)
    inner = msgspec.structs.replace(
        draft,
        functions=(*draft.functions, *source.function_definitions),
        inside=(*draft.inside, source.id),
    )
    steered = config.condition_source is not None and config.condition_source.kind == "artifact_contract"
    yield Loop(
        id=loop_id,
        title=source.title or source.name or source.id,
        kind=config.type,
        body=_body(source.body, at / "body", inner),
        max_iterations=config.max_iterations or 100,
        run_condition=read_condition(source.run_condition, at / "runCondition", report),
        condition=_loop_condition(config, here, report),
        break_condition=read_condition(config.break_condition, here / "breakCondition", report),
        count=config.count,
        items=config.items,
        item_var=config.item_var,
        index_var=config.index_var,
        iteration_var=config.iteration_var,
        steered=steered,
        description=source.description,
        extra=unknown_fields(LoopSource, raw),
    )


def _loop_condition(config: LoopConfig, at: SourceLocation, report: Report) -> Condition | None:
    source = config.condition_source
    if source is not None and source.condition is not None:
        return read_condition(source.condition, at / "conditionSource" / "condition", report)
    return read_condition(config.condition, at / "condition", report)


def _check_steering(config: LoopConfig, at: SourceLocation, report: Report) -> None:
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


def _body(raw: Json, at: SourceLocation, draft: CompileDraft) -> tuple[Item, ...]:
    if isinstance(raw, list):
        if not raw:
            draft.report.add("IL106", "the loop has no steps", at)
        return compile_items(raw, at, draft)
    if not isinstance(raw, str):
        draft.report.add("IL102", f"a body is a step id or a list, not {name_of(raw)}", at)
        return ()
    found = draft.bodies.get(raw)
    if found is None:
        draft.report.add("IL203", f"unknown step '{raw}'", at, did_you_mean(raw, draft.bodies))
        return ()
    if raw in draft.inside:
        draft.report.add("IL306", f"the loop '{raw}' runs itself", at)
        return ()
    return tuple(compile_item(*found, draft))


def unique_id(kind: str, item_id: str, at: SourceLocation, draft: CompileDraft) -> str:
    """Take an id once; a second step of the same id is `id#2` (rule 37), a second gate or loop an error."""
    if not ITEM_ID.fullmatch(item_id):
        draft.report.add("IL401", f"the id '{item_id}' has characters that ids cannot have", at / "id")
    count = draft.seen[kind, item_id] = draft.seen.get((kind, item_id), 0) + 1
    if count > 1 and kind != "step":
        draft.report.add("IL201", f"two {kind}s are called '{item_id}'", at / "id")
    if count > 1:
        if kind == "step":
            draft.report.add("IL215", f"two steps are called '{item_id}'", at / "id")
        item_id = f"{item_id}#{count}"
    draft.location(kind, item_id, at)
    return item_id
