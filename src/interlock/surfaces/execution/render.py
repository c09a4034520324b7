"""Answers of the execution surface: text first, JSON behind it, every token in both (rule 41)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.prompts import gate_prompt, interpolate, remark_text, step_prompt
from interlock.core.engine.decisions import example_decision, waits_for_user
from interlock.core.engine.gates import question_of
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
    parts = [
        _introduction(view) if view.started or view.recap is not None else "",
        _recap_text(view.recap, "So far on this branch") if view.recap is not None else "",
        _branch_text(view.branches) if view.branches is not None else "",
        _blocked_text(view.blockers) if view.blockers else "",
        "\n".join(f"Warning: {notice.message}" for notice in warnings),
        _pending_text(view, pending, tokens),
    ]
    text = "\n\n".join(part for part in parts if part)
    return Reply(text, fields(view, pending, tokens, warnings))


def token_slots(view: View, *, complete: bool) -> dict[str, str]:
    """The tokens that the next call may need, each as the slot that it is put into."""
    slots = {"stateToken": slot("st", view.node)}
    if not complete:
        slots["ackToken"] = slot("ack", view.node, view.attempt)
    slots["checkpointToken"] = slot("chk", view.node, view.note_attempt)
    return slots


def pending_of(view: View) -> Pending | None:
    """The pending item, whatever it is, as a step."""
    scope = view.plan.scope(view.state.variables)
    match view.awaited:
        case NeedStep(step=step):
            prompt = step_prompt(step, scope, view.state.preferences, view.plan.workflow.capabilities)
            if view.state.remark is not None:
                prompt = f"{prompt}\n\n{remark_text(view.state.remark)}"
            asks = step.confirm is not False and view.state.preferences.guided
            return Pending(step.id, interpolate(step.title, scope), prompt, asks)
        case NeedAnswer(gate=gate):
            title, prompt = interpolate(gate.name, scope), gate_prompt(gate, scope)
            return Pending(gate.id, title, prompt, True, _reportable(view))
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


def _waits_for_user(view: View) -> bool:
    if any(blocker.waits_for_user for blocker in view.blockers):
        return True
    return isinstance(view.awaited, NeedAnswer) and waits_for_user(view.state, view.awaited.key, view.terms)


def _reportable(view: View) -> dict[str, Json]:
    """The answers that the agent may report; none where only the user's own counts."""
    assert isinstance(view.awaited, NeedAnswer)
    if _waits_for_user(view):
        return {}
    question = question_of(view.plan, view.state, view.awaited.gate, view.awaited.confirms)
    options: list[Json] = [{"id": option.id, "label": option.label} for option in question.options]
    return {"checkpointId": question.id, "options": options}


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
        blockers: list[Json] = [
            {
                "code": blocker.code.value,
                "pointer": msgspec.to_builtins(blocker.pointer),
                "message": blocker.message,
                "suggestedFix": suggested_fix(blocker),
                **({"example": blocker.example} if blocker.example is not None else {}),
            }
            for blocker in view.blockers
        ]
        yield "blockers", blockers
        yield "retryable", True
    if warnings:
        yield "warnings", msgspec.to_builtins(list(warnings))
    if view.recap is not None and (view.recap.entries or view.recap.omitted):
        yield "recap", _recap_fields(view.recap)
    if view.branches is not None:
        children: list[Json] = [
            {"node": child.node, "preferred": child.preferred, "notes": cut(child.notes, SNIPPET, "…")}
            for child in view.branches.children
        ]
        yield "branches", {"children": children, "downstream": _recap_fields(view.branches.downstream)}


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
    token_lines = "\n".join(f"{name}: {token}" for name, token in tokens.items())
    if pending is None:
        gaps = f", with {view.state.gaps} recorded gaps" if view.state.gaps else ""
        return f"The workflow is complete{gaps}.\n\n{token_lines}"
    if isinstance(view.awaited, NeedAnswer) and _waits_for_user(view):
        how = "The user decides in the inbox (interlock inbox). Then continue_workflow with these tokens."
    elif isinstance(view.awaited, NeedAnswer):
        example = _encode(example_decision(view.awaited.gate)).decode()
        how = f"Ask the user. Then continue_workflow with output.artifacts: [{example}]"
    elif isinstance(view.awaited, NeedInput):
        how = "Then continue_workflow with context and these tokens."
    elif pending.requireConfirmation and view.terms.decisions == "user":
        how = "When done: continue_workflow with output and these tokens; the user confirms it in the inbox."
    elif pending.requireConfirmation:
        how = "When done, ask the user to confirm; then continue_workflow with output and these tokens."
    else:
        how = "When done: continue_workflow with output and these tokens."
    lines = [
        f"## {pending.title} ({pending.stepId})",
        "",
        pending.prompt,
        "",
        "---",
        how,
        token_lines,
    ]
    return "\n".join(lines)


def _blocked_text(blockers: Sequence[Blocker]) -> str:
    lines = ["BLOCKED. The step stays pending:"]
    for blocker in blockers:
        lines += [f"- {blocker.code.value}: {blocker.message}", f"  {suggested_fix(blocker)}"]
        if blocker.example is not None:
            lines.append(f"  Example: {_encode(blocker.example).decode()}")
    return "\n".join(lines)


def _recap_text(recap: Recap, heading: str) -> str:
    if not recap.entries and not recap.omitted:
        return ""
    lines = [f"{heading}:"]
    if recap.omitted:
        lines.append(f"[{recap.omitted} earlier entries omitted: {POLICY}]")
    return "\n".join([*lines, *(f"- {entry.step}: {entry.notes}" for entry in recap.entries)])


def _recap_fields(recap: Recap) -> dict[str, Json]:
    entries: list[Json] = [{"stepId": entry.step, "notes": entry.notes} for entry in recap.entries]
    body: dict[str, Json] = {"entries": entries, "truncated": bool(recap.omitted)}
    return {**body, "omitted": recap.omitted, "policy": POLICY} if recap.omitted else body


def _branch_text(branches: Branches) -> str:
    lines = ["You are at an earlier point. Work already went on from here; advancing starts a new branch:"]
    for child in branches.children:
        mark = " (preferred)" if child.preferred else ""
        lines.append(f"- branch {child.node}{mark}: {cut(child.notes, SNIPPET, '…') or 'no notes'}")
    later = _recap_text(branches.downstream, "What followed on the preferred branch")
    return "\n".join([*lines, *([later] if later else [])])
