"""Answers of the execution surface: text first, JSON behind it, every token in both (rule 41)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.conditions import describe
from interlock.core.definition.prompts import gate_prompt, interpolate, question_text
from interlock.core.definition.workflow import TERMINAL, Gate, Step
from interlock.core.engine.decisions import AskedThrough, example_decision
from interlock.core.engine.gates import question_of
from interlock.core.engine.paths.loops import rounds
from interlock.core.engine.requirements import Asking, asking_of
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
from interlock.core.run.questions import DECISION_REF
from interlock.core.run.reasons import Blocker
from interlock.core.values import Json, cut
from interlock.core.variables.sending import (
    Instruction,
    Parameters,
    instruction,
)
from interlock.ledger.runs.brief import outcome_text
from interlock.ledger.runs.position import View
from interlock.ledger.runs.recap import POLICY, Branches
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.briefs import brief_fields, brief_text, quoted, recap_fields, recap_text
from interlock.surfaces.call import Reply
from interlock.surfaces.execution.errors import suggested_fix
from interlock.surfaces.refusals import AT_ADDRESS, BY_ADDRESS, BY_FORM, INBOX

SNIPPET = 200

_encode = msgspec.json.Encoder().encode


AFTER_BLOCK = "Then continue_workflow with these tokens; with only stateToken it shows the step again."
GO_ON = "When it is done: continue_workflow with these tokens."
CHOSEN = "Send when it is chosen:"
ASKING: Mapping[AskedThrough, str] = {
    "agent": "Ask the user. Then continue_workflow with that and:",
    "form": f"continue_workflow with these tokens: {BY_FORM}",
    "address": f"continue_workflow with these tokens: {BY_ADDRESS}",
    "inbox": f"{INBOX} Then continue_workflow with these tokens.",
}
DONE = "When done: continue_workflow with {what}these tokens; {where}"
CONFIRMING: Mapping[AskedThrough, str] = {
    "agent": "When done, {where}ask the user to confirm, and revise it until they do; "
    "then continue_workflow with {what}these tokens.",
    "form": f"{DONE}{BY_FORM}",
    "address": f"{DONE}the user confirms it in the inbox.",
    "inbox": f"{DONE}the user confirms it in the inbox.",
}
STEP_ASKS: Mapping[AskedThrough, str] = {
    "agent": "Ask the user first. Then continue_workflow with that and:",
    "form": f"continue_workflow with the rest and these tokens: {BY_FORM}",
    "address": f"continue_workflow with these tokens: {BY_ADDRESS}",
    "inbox": f"{INBOX} Then continue_workflow with only stateToken shows the answer.",
}
SENT: Mapping[str, str] = {"nothing": "", "notes": "output.notesMarkdown and ", "listed": "that and "}
DECIDED = "The user has decided: continue_workflow with these tokens, and go on as it says."
CHOOSE = (
    "Nobody is asked: choose what fits best, which is recorded as a gap; "
    "then continue_workflow with these tokens."
)
OPTIONAL = "It is optional: without an answer, the question is passed over."
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
    told = _told(view)
    pending = told.pending
    tokens = token_slots(view, complete=pending is None)
    parts = [
        _introduction(view) if view.started or view.brief is not None else "",
        brief_text(view.brief) if view.brief is not None else "",
        _branch_text(view.branches) if view.branches is not None else "",
        _blocked_text(view, told) if view.blockers else "",
        _pending_text(view, told, _shown_tokens(view, tokens)),
        view.notices.text if view.notices.listed else "",
    ]
    text = "\n\n".join(part for part in parts if part)
    return Reply(text, _fields(view, told, tokens))


def kept_reply(view: View) -> Reply:
    """Answer notes that were kept: what is pending stays so, and is not told again."""
    whole, pending = reply(view), pending_of(view)
    tokens = token_slots(view, complete=pending is None)
    still = f" '{pending.title}' ({pending.stepId}) is still pending. {GO_ON}" if pending is not None else ""
    lines = [f"Kept.{still}", "", *(f"{name}: {token}" for name, token in tokens.items())]
    notices = ["", view.notices.text] if view.notices.listed else []
    return Reply("\n".join([*lines, *notices]), whole.structured)


def _shown_tokens(view: View, tokens: Mapping[str, str]) -> dict[str, str]:
    """Return the tokens of the text: all at the start, in a read and at the end, else those to go on with."""
    ended_with_gaps = view.state.gaps.open > 0 and view.state.finished
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
    return _told(view).pending


class _Told(NamedTuple):
    """What is pending, how it comes to the user, and how the agent goes on with it."""

    pending: Pending | None
    asking: Asking
    next_action: str = ""


def _told(view: View) -> _Told:
    asking = asking_of(view.plan, view.told, view.awaited, view.terms, view.decided)
    scope, preferences = view.plan.scope(view.told.variables), view.state.terms.preferences
    where = [*rounds(view.plan, view.state)] if view.state.visit.frames else []
    match view.awaited:
        case NeedStep(step=step):
            parameters = Parameters(answers=not asking.only_user_answers)
            said = instruction(view.plan, view.told, step, parameters)
            title, prompt = interpolate(step.title, scope), "\n\n".join([*where, said.text])
            pending = Pending(step.id, title, prompt, step.may_confirm and preferences.guided)
            return _Told(pending, asking, _when_done(step, pending, asking, said))
        case NeedAnswer(gate=gate):
            title, prompt = question_text(gate.name, scope), gate_prompt(gate, scope)
            reportable = _reportable(view, asking)
            reports = reportable and asking.through == "agent" and not view.decided
            parts = [*where, prompt, *([_decision_block(gate)] if reports else [])]
            asks = not preferences.never_stops
            next_action = DECIDED if view.decided else ASKING[asking.through] if asks else CHOOSE
            if asks and not (gate.required or view.decided):
                next_action = f"{OPTIONAL} {next_action}"
            return _Told(Pending(gate.id, title, "\n\n".join(parts), asks, reportable), asking, next_action)
        case NeedInput(subject=subject, message=message, example=example):
            prompt = message + (f"\n\nSend in context: {_encode(example).decode()}" if example else "")
            pending = Pending(subject.replace(":", "-"), "Input needed", prompt, False)
            return _Told(pending, asking, "Then continue_workflow with context and:")
        case Done() if not view.state.finished:
            pending = Pending(TERMINAL, "End of the workflow", ONLY_THE_END, False)
            return _Told(pending, asking, "Then continue_workflow with:")
        case Done():
            return _Told(None, asking)
        case NeedLoop() | NeedExit() | NeedEntry():
            raise AssertionError("the execution surface never stops here")
        case _:
            assert_never(view.awaited)


def _when_done(step: Step, pending: Pending, asking: Asking, said: Instruction) -> str:
    """Say how the agent goes on when the step is done."""
    what = SENT[said.sends]
    # A condition of the confirmation is judged with what the step sends.
    where = "" if isinstance(step.confirm, bool) else f"if {describe(step.confirm)}, "
    confirming = CONFIRMING[asking.through].format(where=where, what=what)
    if asking.by_step == "agent" and pending.requireConfirmation:
        how = f"Ask the user first. {confirming}"
    elif asking.by_step is not None:
        how = STEP_ASKS[asking.by_step]
    elif pending.requireConfirmation:
        how = confirming
    else:
        how = f"Then continue_workflow with {what}".removesuffix(" ") + ":"
    return how if step.required else f"Without output, the step is passed over. {how}"


def _decision_block(gate: Gate) -> str:
    """Say how the agent reports what was chosen."""
    example = _encode(example_decision(gate)).decode()
    return f"{CHOSEN}\n- output.artifacts ({DECISION_REF}): {example}"


def _reportable(view: View, asking: Asking) -> dict[str, Json]:
    """The answers that the agent may report; none where only the user's own counts."""
    assert isinstance(view.awaited, NeedAnswer)
    if any(blocker.waits_for_user for blocker in view.blockers):
        return {}
    if asking.only_user_answers:
        return {}
    question = question_of(view.plan, view.state, view.awaited.gate, view.awaited.confirms)
    options: list[Json] = [{"id": option.id, "label": option.label} for option in question.options]
    return {"checkpointId": question.id, "options": options}


def _fields(view: View, told: _Told, tokens: Mapping[str, str]) -> dict[str, Json]:
    """The JSON of a response."""
    pending = told.pending
    body: dict[str, Json] = {
        "kind": "blocked" if view.blockers else "ok",
        **tokens,
        "pending": msgspec.to_builtins(pending),
        "isComplete": pending is None and view.state.abandoned is None,
        "nextIntent": "rehydrate_only" if view.state.abandoned else next_intent(pending),
        "session": {"sessionId": view.session.session_id, "runId": view.run.run_id},
        "workflow": {"id": view.run.workflow_id, "hash": view.run.workflow_hash},
        "preferences": {
            "autonomy": view.state.terms.preferences.autonomy,
            "riskPolicy": view.state.terms.preferences.risk_policy,
        },
    }
    return {**body, **dict(_optional_fields(view, told.asking))}


def _optional_fields(view: View, asking: Asking) -> Iterator[tuple[str, Json]]:
    if view.state.status != "in_progress":
        yield "status", view.state.status
    if view.state.abandoned is not None:
        yield "abandoned", msgspec.to_builtins(view.state.abandoned)
    if view.state.gaps.open:
        yield "gaps", view.state.gaps.open
    if view.state.gaps.newest and view.state.finished:
        yield "gapList", msgspec.to_builtins(view.state.gaps.newest)
    if view.blockers:
        blockers: list[Json] = [
            {
                "code": blocker.code.value,
                "pointer": msgspec.to_builtins(blocker.pointer),
                "message": blocker.message,
                "suggestedFix": _fix(asking, blocker),
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
        body: dict[str, Json] = {
            "children": children,
            "downstream": recap_fields(view.branches.downstream),
        }
        if view.branches.omitted:
            body |= {"omitted": view.branches.omitted, "policy": POLICY}
        yield "branches", body


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


def _pending_text(view: View, told: _Told, tokens: Mapping[str, str]) -> str:
    pending = told.pending
    token_lines = "\n".join(f"{name}: {token}" for name, token in tokens.items())
    if view.state.abandoned is not None:
        given_up = f"The run was {view.state.abandoned.text.rstrip('.')}."
        return f"{given_up} It cannot go on. Start a new run with start_workflow.\n\n{token_lines}"
    if pending is None:
        outcome = outcome_text(view.plan.workflow, view.state, view.session.session_id)
        if not view.state.gaps.open:
            return f"The workflow is complete. {outcome}\n\n{token_lines}"
        later = "When one is closed later: checkpoint_workflow with these tokens and output.artifacts:"
        ended = f"The workflow is complete, open gaps: {view.state.gaps.open}."
        if not view.state.agent_resolves_gaps:
            return f"{ended} {outcome} {USERS_GAPS}\n\n{token_lines}"
        return f"{ended} {outcome} {later} [{GAP_CLOSED}]\n\n{token_lines}"
    if view.blockers:  # the agent has just read the step; what is missing is above
        return "\n".join(["---", AFTER_BLOCK, token_lines])
    footer = f"---\n{told.next_action}\n{token_lines}"
    return f"## {pending.title} ({pending.stepId})\n\n{pending.prompt}\n\n{footer}"


def _fix(asking: Asking, blocker: Blocker) -> str:
    return suggested_fix(blocker, AT_ADDRESS if asking.through == "address" else INBOX)


def _blocked_text(view: View, told: _Told) -> str:
    pending, asking = told.pending, told.asking
    which = f"'{pending.title}' ({pending.stepId})" if pending is not None else "The step"
    lines = [f"BLOCKED. {which} stays pending:"]
    for blocker in view.blockers:
        lines += [f"- {blocker.code.value}: {blocker.message}", f"  {_fix(asking, blocker)}"]
        if blocker.example is not None:
            lines.append(f"  Example: {_encode(blocker.example).decode()}")
    return "\n".join(lines)


def _branch_text(branches: Branches) -> str:
    lines = ["You are at an earlier point. Work already went on from here; advancing starts a new branch:"]
    if branches.omitted:
        lines.append(f"[{branches.omitted} other branches omitted: {POLICY}]")
    for child in branches.children:
        mark = " (preferred)" if child.preferred else ""
        notes = quoted(cut(child.notes, SNIPPET, "…")) or "no notes"
        lines.append(f"- branch {child.node}{mark}: {notes}")
    later = recap_text(branches.downstream, "What followed on the preferred branch")
    return "\n".join([*lines, *([later] if later else [])])
