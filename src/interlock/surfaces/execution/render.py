"""Answers of the execution surface: text first, JSON behind it, every token in both (rule 41)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.prompts import gate_prompt, interpolate, step_prompt
from interlock.core.engine.decisions import example_decision
from interlock.core.run.outcomes import (
    Awaited,
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
    Notice,
)
from interlock.core.run.preferences import exceeds
from interlock.core.run.reasons import Blocker
from interlock.core.values import Json, cut
from interlock.ledger.runs.position import View
from interlock.ledger.runs.recap import POLICY, Branches, Recap
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.call import Reply
from interlock.surfaces.execution.errors import suggested_fix

SNIPPET = 200

_encode = msgspec.json.Encoder().encode


class Pending(Struct, frozen=True, omit_defaults=True):
    """What the agent is to do, as the contract shows it."""

    stepId: str
    title: str
    prompt: str
    requireConfirmation: bool
    decision: dict[str, Json] = {}


def answer(view: View) -> bytes:
    """Render a response with slots for its tokens, ready to be recorded."""
    return _encode(reply(view))


def reply(view: View) -> Reply:
    """Render a view as text and fields."""
    pending = pending_of(view)
    tokens = token_slots(view, complete=pending is None)
    warnings = [*view.notices, *standing_warnings(view)]
    text = "\n\n".join(part for part in _text(view, pending, tokens, warnings) if part)
    return Reply(text, fields(view, pending, tokens, warnings))


def token_slots(view: View, *, complete: bool) -> dict[str, str]:
    """The tokens that the next call may need, each as the slot that it is put into."""
    slots = {"stateToken": slot("st", view.node)}
    if not complete:
        slots["ackToken"] = slot("ack", view.node, view.attempt)
    slots["checkpointToken"] = slot("chk", view.node, view.attempt)
    return slots


def pending_of(view: View) -> Pending | None:
    """The pending item, whatever it is, as a step."""
    scope = view.plan.scope(view.state.variables)
    match view.awaited:
        case NeedStep(step=step):
            prompt = step_prompt(step, scope, view.state.preferences, view.plan.workflow.capabilities)
            asks = step.confirm is not False and view.state.preferences.guided
            return Pending(step.id, interpolate(step.title, scope), prompt, asks)
        case NeedAnswer(gate=gate):
            return Pending(gate.id, gate.name, gate_prompt(gate, scope), True, _decision(view.awaited))
        case NeedInput():
            names = ", ".join(view.awaited.variables)
            prompt = view.awaited.message + (f"\n\nSend in context: {names}." if names else "")
            return Pending(view.awaited.subject.replace(":", "-"), "Input needed", prompt, False)
        case Done():
            return None
        case NeedLoop() | NeedExit() | NeedEntry():
            raise AssertionError("the execution surface never stops here")
        case _:
            assert_never(view.awaited)


def _decision(need: NeedAnswer) -> dict[str, Json]:
    options: list[Json] = [{"id": one.id, "label": one.label} for one in need.gate.options]
    return {"checkpointId": need.gate.id, "options": options}


def fields(
    view: View, pending: Pending | None, tokens: Mapping[str, str], warnings: Sequence[Notice]
) -> dict[str, Json]:
    """The JSON of a response."""
    body: dict[str, Json] = {
        "kind": "blocked" if view.blockers else "ok",
        **tokens,
        "pending": msgspec.to_builtins(pending),
        "isComplete": pending is None,
        "nextIntent": next_intent(view.awaited, pending),
        "session": {"sessionId": view.session.session_id, "runId": view.run.run_id},
        "workflow": {"id": view.run.workflow_id, "hash": view.run.workflow_hash},
        "preferences": {
            "autonomy": view.state.preferences.autonomy,
            "riskPolicy": view.state.preferences.risk_policy,
        },
    }
    return {**body, **dict(_optional_fields(view, warnings))}


def _optional_fields(view: View, warnings: Sequence[Notice]) -> Iterator[tuple[str, Json]]:
    if view.state.status != "in_progress":
        yield "status", view.state.status
    if view.state.gaps:
        yield "gaps", view.state.gaps
    if view.blockers:
        yield "blockers", [_blocker_fields(blocker) for blocker in view.blockers]
        yield "retryable", True
    if warnings:
        yield "warnings", msgspec.to_builtins(list(warnings))
    if view.recap is not None and (view.recap.entries or view.recap.omitted):
        yield "recap", _recap_fields(view.recap)
    if view.branches is not None:
        yield "branches", _branch_fields(view.branches)


def next_intent(awaited: Awaited, pending: Pending | None) -> str:
    """The closed set that tells an agent what kind of thing comes next."""
    if pending is None:
        return "complete"
    asks = isinstance(awaited, NeedAnswer) or pending.requireConfirmation
    return "await_user_confirmation" if asks else "perform_pending_then_continue"


def standing_warnings(view: View) -> Iterator[Notice]:
    """What is worth saying at every node: notes that were cut, a mode beyond what the author recommends."""
    if view.notes_cut:
        yield Notice("NOTES_TRUNCATED", "Your notes were longer than 4096 bytes and were cut at the end.")
    recommended = view.plan.workflow.recommended
    over = exceeds(view.state.preferences, recommended) if recommended and view.started else ()
    if recommended and over:
        text = f"The mode goes beyond what this workflow recommends ({', '.join(over)}); recommended: "
        yield Notice(
            "MODE_EXCEEDS_RECOMMENDATION", f"{text}{recommended.autonomy}, {recommended.risk_policy}."
        )


def _text(
    view: View, pending: Pending | None, tokens: Mapping[str, str], warnings: Sequence[Notice]
) -> Iterator[str]:
    if view.started or view.recap is not None:
        yield _introduction(view)
    if view.recap is not None:
        yield _recap_text(view.recap, "So far on this branch")
    if view.branches is not None:
        yield _branch_text(view.branches)
    if view.blockers:
        yield "\n".join(
            ["BLOCKED. The step stays pending:", *(_blocker_text(blocker) for blocker in view.blockers)]
        )
    if warnings:
        yield "\n".join(f"Warning: {one.message}" for one in warnings)
    yield _pending_text(view, pending, tokens)


def _introduction(view: View) -> str:
    workflow = view.plan.workflow
    if not view.started:
        return f"Run of {workflow.name} ({view.run.run_id})."
    parts = [f"{workflow.name}: {workflow.description}" if workflow.description else workflow.name]
    for heading, lines in (
        ("Throughout", workflow.rules),
        ("Before you begin", workflow.preconditions),
        ("Clarify first", workflow.clarifications),
    ):
        if lines:
            parts.append("\n".join([f"{heading}:", *(f"- {line}" for line in lines)]))
    return "\n\n".join(parts)


def _pending_text(view: View, pending: Pending | None, tokens: Mapping[str, str]) -> str:
    listed = "\n".join(f"{name}: {token}" for name, token in tokens.items())
    if pending is None:
        gaps = f", with {view.state.gaps} recorded gaps" if view.state.gaps else ""
        return f"The workflow is complete{gaps}.\n\n{listed}"
    lines = [
        f"## {pending.title} ({pending.stepId})",
        "",
        pending.prompt,
        "",
        "---",
        _how(view, pending),
        listed,
    ]
    return "\n".join(lines)


def _how(view: View, pending: Pending) -> str:
    if isinstance(view.awaited, NeedAnswer):
        example = _encode(example_decision(view.awaited.gate)).decode()
        return f"Ask the user. Then continue_workflow with output.artifacts: [{example}]"
    if isinstance(view.awaited, NeedInput):
        return "Then continue_workflow with context and these tokens."
    if pending.requireConfirmation:
        return "When done, ask the user to confirm; then continue_workflow with output and these tokens."
    return "When done: continue_workflow with output and these tokens."


def _blocker_text(blocker: Blocker) -> str:
    lines = [f"- {blocker.code.value}: {blocker.message}", f"  {suggested_fix(blocker)}"]
    if blocker.example is not None:
        lines.append(f"  Example: {_encode(blocker.example).decode()}")
    return "\n".join(lines)


def _blocker_fields(blocker: Blocker) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "code": blocker.code.value,
        "pointer": msgspec.to_builtins(blocker.pointer),
        "message": blocker.message,
        "suggestedFix": suggested_fix(blocker),
    }
    return fields if blocker.example is None else {**fields, "example": blocker.example}


def _recap_text(recap: Recap, heading: str) -> str:
    if not recap.entries and not recap.omitted:
        return ""
    lines = [f"{heading}:"]
    if recap.omitted:
        lines.append(f"[{recap.omitted} earlier entries omitted: {POLICY}]")
    return "\n".join([*lines, *(f"- {entry.step}: {entry.notes}" for entry in recap.entries)])


def _recap_fields(recap: Recap) -> dict[str, Json]:
    entries: list[Json] = [{"stepId": one.step, "notes": one.notes} for one in recap.entries]
    body: dict[str, Json] = {"entries": entries, "truncated": bool(recap.omitted)}
    return {**body, "omitted": recap.omitted, "policy": POLICY} if recap.omitted else body


def _branch_text(found: Branches) -> str:
    lines = ["You are at an earlier point. Work already went on from here; advancing starts a new branch:"]
    for child in found.children:
        mark = " (preferred)" if child.preferred else ""
        lines.append(f"- branch {child.node}{mark}: {cut(child.notes, SNIPPET, '…') or 'no notes'}")
    later = _recap_text(found.downstream, "What followed on the preferred branch")
    return "\n".join([*lines, *([later] if later else [])])


def _branch_fields(found: Branches) -> dict[str, Json]:
    children: list[Json] = [
        {"node": one.node, "preferred": one.preferred, "notes": cut(one.notes, SNIPPET, "…")}
        for one in found.children
    ]
    return {"children": children, "downstream": _recap_fields(found.downstream)}
