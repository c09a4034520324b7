"""Answers of the execution surface: text first, JSON behind it, every token in both (rule 41)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.prompts import gate_prompt, interpolate, question_text
from interlock.core.definition.workflow import TERMINAL, Gate
from interlock.core.engine.decisions import DECISION_REF, example_decision, waits_for_user
from interlock.core.engine.gates import question_of
from interlock.core.engine.loops import rounds
from interlock.core.run.notices import GAP_CLOSED, USERS_GAPS
from interlock.core.run.outcomes import (
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
)
from interlock.core.run.reasons import Blocker
from interlock.core.values import Json, cut
from interlock.core.variables.sending import Parameters, sends_only_notes, step_text
from interlock.ledger.runs.brief import outcome_text
from interlock.ledger.runs.position import View
from interlock.ledger.runs.recap import Branches
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.briefs import brief_fields, brief_text, recap_fields, recap_text
from interlock.surfaces.call import Reply
from interlock.surfaces.execution.errors import suggested_fix
from interlock.surfaces.refusals import INBOX

SNIPPET = 200

_encode = msgspec.json.Encoder().encode


AFTER_BLOCK = "Then continue_workflow with these tokens; with only stateToken it shows the step again."
CHOSEN = "Send when it is chosen:"
ONLY_THE_END = "Every step is done. Call continue_workflow with the ackToken to end the run."


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
    parts = [
        _introduction(view) if view.started or view.brief is not None else "",
        brief_text(view.brief) if view.brief is not None else "",
        _branch_text(view.branches) if view.branches is not None else "",
        _blocked_text(view.blockers, pending) if view.blockers else "",
        _pending_text(view, pending, _shown_tokens(view, tokens)),
        view.notices.text if view.notices.listed else "",
    ]
    text = "\n\n".join(part for part in parts if part)
    return Reply(text, fields(view, pending, tokens))


def kept_reply(view: View) -> Reply:
    """Answer notes that were kept: what is pending stays so, and is not told again."""
    whole, pending = reply(view), pending_of(view)
    tokens = token_slots(view, complete=pending is None)
    still = f" '{pending.title}' ({pending.stepId}) is still pending." if pending is not None else ""
    lines = [f"Kept.{still}", "", *(f"{name}: {token}" for name, token in tokens.items())]
    notices = ["", view.notices.text] if view.notices.listed else []
    return Reply("\n".join([*lines, *notices]), whole.structured)


def _shown_tokens(view: View, tokens: Mapping[str, str]) -> dict[str, str]:
    """Return the tokens of the text: all at the start, in a read and at the end, else those to go on with."""
    ended_with_gaps = view.state.finished and view.state.gaps > 0
    shows_all = view.started or view.brief is not None or ended_with_gaps
    return {name: token for name, token in tokens.items() if shows_all or name != "checkpointToken"}


def token_slots(view: View, *, complete: bool) -> dict[str, str]:
    """The tokens that the next call may need, each as the slot that it is put into."""
    slots = {"stateToken": slot("st", view.node)}
    if not complete:
        slots["ackToken"] = slot("ack", view.node, view.attempt)
    if view.state.abandoned is None:
        slots["checkpointToken"] = slot("chk", view.node, view.note_attempt)
    return slots


def pending_of(view: View) -> Pending | None:
    """The pending item, whatever it is, as a step."""
    told = view.told
    scope = view.plan.scope(told.variables)
    where = [*rounds(view.plan, view.state)] if view.state.frames else []
    match view.awaited:
        case NeedStep(step=step):
            prompt = "\n\n".join([*where, step_text(view.plan, told, step, Parameters())])
            asks = step.may_confirm and view.state.preferences.guided
            return Pending(step.id, interpolate(step.title, scope), prompt, asks)
        case NeedAnswer(gate=gate):
            title, prompt = question_text(gate.name, scope), gate_prompt(gate, scope)
            asks, reportable = not view.state.preferences.never_stops, _reportable(view)
            parts = [*where, prompt, *([_decision_block(gate)] if reportable and not view.is_decided else [])]
            return Pending(gate.id, title, "\n\n".join(parts), asks, reportable)
        case NeedInput():
            shape = _encode(view.awaited.example).decode()
            prompt = view.awaited.message + (f"\n\nSend in context: {shape}" if view.awaited.example else "")
            return Pending(view.awaited.subject.replace(":", "-"), "Input needed", prompt, False)
        case Done() if not view.state.finished:
            return Pending(TERMINAL, "End of the workflow", ONLY_THE_END, False)
        case Done():
            return None
        case NeedLoop() | NeedExit() | NeedEntry():
            raise AssertionError("the execution surface never stops here")
        case _:
            assert_never(view.awaited)


def _decision_block(gate: Gate) -> str:
    """Say how the agent reports what was chosen."""
    example = _encode(example_decision(gate)).decode()
    return f"{CHOSEN}\n- output.artifacts ({DECISION_REF}): {example}"


def _waits_for_user(view: View) -> bool:
    if any(blocker.waits_for_user for blocker in view.blockers):
        return True
    if not isinstance(view.awaited, NeedAnswer):
        return False
    return waits_for_user(view.state, view.awaited.key, view.terms, view.awaited.gate)


def _reportable(view: View) -> dict[str, Json]:
    """The answers that the agent may report; none where only the user's own counts."""
    assert isinstance(view.awaited, NeedAnswer)
    if _waits_for_user(view):
        return {}
    question = question_of(view.plan, view.state, view.awaited.gate, view.awaited.confirms)
    options: list[Json] = [{"id": option.id, "label": option.label} for option in question.options]
    return {"checkpointId": question.id, "options": options}


def fields(view: View, pending: Pending | None, tokens: Mapping[str, str]) -> dict[str, Json]:
    """The JSON of a response."""
    body: dict[str, Json] = {
        "kind": "blocked" if view.blockers else "ok",
        **tokens,
        "pending": msgspec.to_builtins(pending),
        "isComplete": pending is None and view.state.abandoned is None,
        "nextIntent": "rehydrate_only" if view.state.abandoned else next_intent(pending),
        "session": {"sessionId": view.session.session_id, "runId": view.run.run_id},
        "workflow": {"id": view.run.workflow_id, "hash": view.run.workflow_hash},
        "preferences": {
            "autonomy": view.state.preferences.autonomy,
            "riskPolicy": view.state.preferences.risk_policy,
        },
    }
    return {**body, **dict(_optional_fields(view))}


def _optional_fields(view: View) -> Iterator[tuple[str, Json]]:
    if view.state.status != "in_progress":
        yield "status", view.state.status
    if view.state.abandoned is not None:
        yield "abandoned", msgspec.to_builtins(view.state.abandoned)
    if view.state.gaps:
        yield "gaps", view.state.gaps
    if view.state.gap_list and view.state.finished:
        yield "gapList", msgspec.to_builtins(view.state.gap_list)
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
    if view.notices.listed:
        yield "warnings", view.notices.fields
    if view.brief is not None:
        yield from brief_fields(view.brief).items()
    if view.branches is not None:
        children: list[Json] = [
            {"node": child.node, "preferred": child.preferred, "notes": cut(child.notes, SNIPPET, "…")}
            for child in view.branches.children
        ]
        yield "branches", {"children": children, "downstream": recap_fields(view.branches.downstream)}


def next_intent(pending: Pending | None) -> str:
    """The closed set that tells an agent what kind of thing comes next."""
    if pending is None:
        return "complete"
    return "await_user_confirmation" if pending.requireConfirmation else "perform_pending_then_continue"


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
    if workflow.references:
        parts.append("\n".join(["References:", *map(_reference_line, workflow.references)]))
    return "\n\n".join(parts)


def _reference_line(reference: Mapping[str, Json]) -> str:
    """Return a document that the workflow relies on: where it is, what for, and its text if built in."""
    name = reference.get("title") or reference.get("id")
    told = [str(reference[key]) for key in ("source", "purpose", "text") if reference.get(key)]
    binding = " (authoritative)" if reference.get("authoritative") else ""
    return f"- {name}{binding}: {'; '.join(told)}" if told else f"- {name}{binding}"


def _pending_text(view: View, pending: Pending | None, tokens: Mapping[str, str]) -> str:
    token_lines = "\n".join(f"{name}: {token}" for name, token in tokens.items())
    if view.state.abandoned is not None:
        given_up = f"The run was {view.state.abandoned.text.rstrip('.')}."
        return f"{given_up} It cannot go on. Start a new run with start_workflow.\n\n{token_lines}"
    if pending is None:
        told = outcome_text(view.plan.workflow, view.state, view.session.session_id)
        if not view.state.gaps:
            return f"The workflow is complete. {told}\n\n{token_lines}"
        later = "When one is closed later: checkpoint_workflow with these tokens and output.artifacts:"
        ended = f"The workflow is complete, open gaps: {view.state.gaps}."
        if not view.state.agent_resolves_gaps:
            return f"{ended} {told} {USERS_GAPS}\n\n{token_lines}"
        return f"{ended} {told} {later} [{GAP_CLOSED}]\n\n{token_lines}"
    if isinstance(view.awaited, NeedAnswer) and view.is_decided:
        how = "The user has decided: continue_workflow with these tokens, and go on as it says."
    elif isinstance(view.awaited, NeedAnswer) and _waits_for_user(view):
        how = f"{INBOX} Then continue_workflow with these tokens."
    elif isinstance(view.awaited, NeedAnswer):
        how = "Ask the user. Then continue_workflow with that and these tokens."
        if view.state.preferences.never_stops:
            how = "Nobody is asked: choose what fits best, a gap; then continue_workflow with these tokens."
    elif isinstance(view.awaited, NeedInput):
        how = "Then continue_workflow with context and these tokens."
    elif pending.requireConfirmation and not view.terms.takes_reports:
        how = "When done: continue_workflow with output and these tokens; the user confirms it in the inbox."
    elif pending.requireConfirmation:
        how = "When done, ask the user to confirm; then continue_workflow with output and these tokens."
    elif isinstance(view.awaited, NeedStep) and sends_only_notes(view.plan, view.told, view.awaited.step):
        how = "When done: continue_workflow with output.notesMarkdown and these tokens."
    else:
        how = "When done: continue_workflow with that and these tokens."
    if isinstance(view.awaited, NeedStep) and not view.awaited.step.required:
        how += " Without output, the step is passed over."
    if view.blockers:  # the agent has just read the step; what is missing is above
        return "\n".join(["---", AFTER_BLOCK, token_lines])
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


def _blocked_text(blockers: Sequence[Blocker], pending: Pending | None) -> str:
    which = f"'{pending.title}' ({pending.stepId})" if pending is not None else "The step"
    lines = [f"BLOCKED. {which} stays pending:"]
    for blocker in blockers:
        lines += [f"- {blocker.code.value}: {blocker.message}", f"  {suggested_fix(blocker)}"]
        if blocker.example is not None:
            lines.append(f"  Example: {_encode(blocker.example).decode()}")
    return "\n".join(lines)


def _branch_text(branches: Branches) -> str:
    lines = ["You are at an earlier point. Work already went on from here; advancing starts a new branch:"]
    for child in branches.children:
        mark = " (preferred)" if child.preferred else ""
        lines.append(f"- branch {child.node}{mark}: {cut(child.notes, SNIPPET, '…') or 'no notes'}")
    later = recap_text(branches.downstream, "What followed on the preferred branch")
    return "\n".join([*lines, *([later] if later else [])])
