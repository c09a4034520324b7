"""Compiles a gate (`checkpoint` in files): its options, who decides it, and the step with its checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.items.checks import read_checks
from interlock.authoring.compile.items.draft import CompileDraft, unique_id
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.gate_source import DecideSource, GateSource, ThenSource, milliseconds
from interlock.authoring.filetypes.type_check import kept_fields, read_as, unknown_fields
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Approvers, Effect, Fragment, Gate, Item, Option, Step
from interlock.core.values import Json


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


def compile_gate(raw: Mapping[str, Json], at: SourceLocation, draft: CompileDraft) -> Gate | None:
    """Compile a gate (`checkpoint` in files) and check the ids of its options."""
    source = read_as(GateSource, raw, at, draft.report)
    if source is None:
        return None
    _check_options(source, at, draft.report)
    decide = _approvers(source, raw, at, draft)
    then = source.decide.then if source.decide is not None else None
    default, wait = source.default_option, source.auto_advance_ms
    if decide is not None and then is not None and then.option is not None:
        default, wait = then.option, decide.within_ms
    is_timed = default is not None and wait is not None
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
        extra=kept_fields(GateSource, raw),
    )


def _check_options(source: GateSource, at: SourceLocation, report: Report) -> None:
    ids = [option.id for option in source.options]
    for index, option_id in enumerate(ids):
        if option_id in ids[:index]:
            report.add("IL201", f"duplicate option '{option_id}'", at / "options" / index / "id")
    if (default := source.default_option) is not None and default not in ids:
        next_action = did_you_mean(default, ids)
        report.add("IL214", f"unknown option '{default}'", at / "defaultOption", next_action)


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
