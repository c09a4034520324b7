"""Compiles one step: its prompt, and what must be handed in, asked, checked and set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.items import prompts
from interlock.authoring.compile.items.checks import read_checks
from interlock.authoring.compile.items.draft import CompileDraft, unique_id
from interlock.authoring.compile.items.requirements import read_contracts, read_criteria
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.filetypes.step_source import ActionSource, StepSource, TriggerSource
from interlock.authoring.filetypes.type_check import compiled_as, kept_fields, read_as, type_name
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Condition
from interlock.core.definition.workflow import Action, Fragment, Step, Trigger, UserInput
from interlock.core.values import Json


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
    handed_in = source.prompt_blocks.output_required if source.prompt_blocks else None
    _report_misspelt_notes(handed_in, at / "promptBlocks" / "outputRequired", report)
    given = source.output.hints if source.output else ()
    hints = (given,) if isinstance(given, str) else given
    condition_key = "runCondition" if source.run_condition is not None else "condition"
    return compiled_as(
        Step,
        source,
        id=step_id,
        title=source.title or source.name or source.id,
        prompt=_prompt(source, hints, at, draft),
        condition=read_condition(source.run_condition or source.condition, at / condition_key, report),
        confirm=read_confirmation(source.require_confirmation, at / "requireConfirmation", report),
        contracts=tuple(  # the example of a probe names the capability that it probes
            msgspec.structs.replace(
                contract,
                example={**contract.example, "capability": source.probes},
                fixed=("capability",),
            )
            if source.probes and isinstance(contract.example, Mapping) and "capability" in contract.example
            else contract
            for contract in read_contracts(source, draft.assessments, at, draft.report)
        ),
        criteria=read_criteria(source.validation_criteria, at / "validationCriteria", report),
        user_input=msgspec.convert(source.user_input, tuple[UserInput, ...], from_attributes=True),
        checks=read_checks(source.checks, at / "checks", draft.checks, report),
        hints=hints,
        hands_in=tuple(_names_handed_in(handed_in)),
        notes_optional=bool(source.notes_optional),
        actions=(
            *read_actions(source.actions, at / "actions", report),
            *(Action("set", target=name) for name in source.sets),
        ),
        triggers=read_triggers(source.triggers),
        skill_args={**source.skill_args_as_documented, **source.skill_args},
        extra=kept_fields(StepSource, raw),
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


def _prompt(
    source: StepSource, hints: Sequence[str], at: SourceLocation, draft: CompileDraft
) -> tuple[Fragment, ...]:
    """Write the prompt: what to do, what is said only sometimes, and what helps with the output."""
    advice = prompts.bullets("Hints for the output", hints)
    functions = prompts.functions(source, draft.functions, draft.guidance, at, draft.report)
    closing = Fragment(prompts.join((advice, functions)))
    conditional = prompts.conditional(source, at, draft.report)
    return prompts.merged_fragments((*_opening(source, at, draft), *conditional, closing))


def _opening(source: StepSource, at: SourceLocation, draft: CompileDraft) -> list[Fragment]:
    """Write the parts of the prompt that say what to do; the rest says what the output must satisfy."""
    body = prompts.own_text(source, draft.features, at, draft.report) or source.description or ""
    if not (body or source.prompt_fragments or source.type == "parallel" or source.skill or source.actions):
        body = source.name or ""
        if not body:
            draft.report.add("IL110", f"the step '{source.id}' has no prompt", at)
    role = source.agent_role or draft.role
    guidance = (*draft.throughout, *draft.at_first, *source.guidance)
    draft.at_first.clear()
    files = "Ask the user for the files that this step needs." if source.ask_for_files else ""
    return [
        Fragment(f"{prompts.ROLE}{role}" if role else "", part="role"),
        Fragment(body),
        *prompts.delegations(source, at, draft.report),
        Fragment(prompts.bullets("Guidance", guidance), part="guidance"),
        Fragment(prompts.join(("\n".join(_duties(source, body)), files, prompts.afterwards(source)))),
    ]


def _duties(source: StepSource, body: str) -> Iterator[str]:
    """Yield a sentence for each thing that the fields of the step ask of the agent beside its text."""
    for action in source.actions:
        reason = action.message or action.description
        if action.action != "set":
            target = f" `{action.target}`" if action.target else ""
            yield f"{action.action.capitalize()}{target}{_because(reason)}"
        elif action.value is UNSET:
            yield f"Produce the variable `{action.target}`{_because(reason)}"
    yield from (f"Produce the variable `{name}`." for name in source.sets if f"`{name}`" not in body)
    if source.skill:
        yield use_of(source.skill)
    for trigger in read_triggers(source.triggers):
        yield f"Start the workflow `{trigger.workflow}`{_because(trigger.description)}"


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
        compiled_as(
            Action,
            source,
            value=None if isinstance(source.value, UnsetType) else source.value,
            has_value=source.value is not UNSET,
            condition=read_condition(source.condition, at / index / "condition", report),
        )
        for index, source in enumerate(sources)
    )


def read_triggers(sources: Sequence[TriggerSource] | TriggerSource | None) -> tuple[Trigger, ...]:
    """Read the child workflows that a step or an activity starts: a list, or just one."""
    listed = (sources,) if isinstance(sources, TriggerSource) else sources or ()
    return msgspec.convert(listed, tuple[Trigger, ...], from_attributes=True)
