"""Checkpoints of the session surface: a worker yields, its orchestrator responds, the worker resumes."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from interlock.core.definition.prompts import effect_text
from interlock.core.definition.workflow import Gate
from interlock.core.engine.gates import question_of, round_of
from interlock.core.run import commands as c
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, Decided, Refusal, run_abandoned
from interlock.core.run.questions import Question
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import (
    Calling,
    SessionCall,
    answer_of,
    answer_to,
    answered_already,
    mark,
    session_token,
)
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.arguments import check_context
from interlock.surfaces.call import Call, Elicit, Outcome, Reply, Wait
from interlock.surfaces.elicitation import decided_with_user, terms_of
from interlock.surfaces.refusals import sentence
from interlock.surfaces.session import params as p
from interlock.surfaces.session.errors import open_now, words
from interlock.surfaces.shared.reading_call import open_gate, presented_gate
from interlock.surfaces.shared.replies import failure, json_reply, of_refusal, text_reply, with_warning
from interlock.surfaces.shared.resolutions import answering, how_to_answer, repeats, resolution
from interlock.surfaces.shared.session_tools import SessionTools, beside, claims_of
from interlock.surfaces.shared.workflow_shapes import as_toon
from interlock.surfaces.tool import tool

YIELDED = (
    "Yield the checkpoint_handle to the orchestrator in a <checkpoint_yield> block and wait; then call "
    "resume_checkpoint with your session_token. The handle only names this question; it is not a "
    "session_token."
)
YIELDED_BEFORE = "Yield it, wait, then call resume_checkpoint."
NEITHER = "Either checkpoint_handle or session_token must be provided. Both were omitted."


class Checkpoints:
    """The checkpoint tools of the session surface."""

    def __init__(self, tools: SessionTools) -> None:
        self._tools = tools
        self._ledger = tools.ledger

    @tool()
    def yield_checkpoint(self, params: p.YieldCheckpoint, call: Call) -> Outcome:
        """Worker: stop at a checkpoint. Hand the checkpoint_handle to the orchestrator and wait. One that is
        already answered returns its answer.
        """
        calling = Calling("yield_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        progress = self._tools.progress_call(params.session_token, calling, params.variables)
        progress.unread = call.unread
        claims = claims_of(params.step_manifest)
        if (invalid := check_context(params.reask, "reask")) is not None:
            return failure("VALIDATION_ERROR", invalid.message, invalid.next_action)
        if progress.is_stale:
            return self._tools.refuse_stale(progress)
        position, progress.beside = progress.position, beside(params, "session_token", "checkpoint_id")
        command = c.OpenCheckpoint(
            policy=self._tools.policy,
            now=progress.now,
            terms=terms_of(position.terms, call),
            gate=params.checkpoint_id,
            agent=progress.agent,
            iteration=params.iteration,
            claims=claims,
            variables=params.variables or {},
            decisions=position.decisions,
            client=call.client.name,
            reask=params.reask or {},
        )
        decided = decided_with_user(self._ledger, position, command, call)
        if isinstance(decided, (Elicit, Wait)):
            return decided
        if isinstance(decided, Refusal):
            return self._yielded_before(progress, params, decided, claims)
        opened = decided.state.visit.open
        if opened is None:
            return self._answered_elsewhere(progress, decided, claims)
        progress.request = _asking(opened.key, progress.agent)
        token = progress.token_slot(decided)
        body: dict[str, Json] = {
            "status": "yielded",
            "checkpoint_id": opened.gate,
            **round_of(decided.state, opened.key),
            "checkpoint_handle": progress.slot_at_end(mark(opened)),
            "message": YIELDED_BEFORE
            if self._tools.sessions.deliveries.holds(position, YIELDED)
            else YIELDED,
            "session_token": token,
        }
        notices = progress.notices(decided)
        reply = json_reply(body, token, notices)
        recorded = self._tools.record(progress, decided, reply, notices=notices, claims=claims)
        self._tools.sessions.deliveries.sent(position, YIELDED)
        return recorded

    def _answered_elsewhere(
        self, progress: SessionCall, decided: Decided, claims: tuple[c.Claim, ...]
    ) -> Reply:
        """Return the answer that the user gave where the run was before, and record its use (rule 34)."""
        answer = next(event for event in reversed(decided.events) if isinstance(event, GateResolved))
        progress.request = _asking(answer.key, progress.agent)
        token, notices = progress.token_slot(decided), progress.notices(decided)
        reply = json_reply(_answered(progress.state, answer, token), token, notices)
        return self._tools.record(progress, decided, reply, notices=notices, claims=claims)

    def _yielded_before(
        self,
        progress: SessionCall,
        params: p.YieldCheckpoint,
        refusal: Refusal,
        claims: tuple[c.Claim, ...],
    ) -> Reply:
        """Return what is recorded where the checkpoint was yielded or answered before (rule 13)."""
        opened = progress.state.active if refusal.code is not Code.REASK_IMPOSSIBLE else None
        if opened is not None and (opened.gate, opened.agent) == (params.checkpoint_id, progress.agent):
            iteration = round_of(progress.state, opened.key).get("iteration")
            progress.request = _asking(opened.key, progress.agent)
            repeated = self._tools.repeated(progress) if params.iteration in (None, iteration) else None
            if repeated is not None:
                return repeated
        key = answered_already(refusal)
        answer = answer_to(self._ledger, progress.position, key) if key else None
        if answer is None:
            progress.refuse(sentence(refusal), refusal.kept, claims)
            return of_refusal(refusal, words(refusal), progress.token)
        told = json_reply(_answered(progress.state, answer, progress.token), progress.token)
        return self._tools.told_again(progress, told)

    @tool(read_only=True)
    def present_checkpoint(self, params: p.PresentCheckpoint, call: Call) -> Outcome:
        """Orchestrator: the open checkpoint's message and options, to show to the user."""
        token = params.checkpoint_handle or params.session_token
        if token is None:
            return failure("VALIDATION_ERROR", NEITHER, "Send the checkpoint_handle.")
        reading = self._tools.reading_call(token, Calling("present_checkpoint"))
        gate, opened = open_gate(reading.position), reading.state.active
        if gate is None or opened is None or _is_another(reading.pointer, reading.state):
            given_up = reading.state.abandoned
            refusal = run_abandoned(given_up) if given_up else Refusal(Code.CHECKPOINT_NOT_ACTIVE)
            return reading.answer(of_refusal(refusal, words(refusal), reading.token))
        shape = presented_gate(reading, gate)
        shape.pop("options")
        listed = _options_list(question_of(reading.position.plan, reading.state, gate))
        node = reading.position.node
        handle = self._ledger.mint("ses", reading.pointer.handle, node.node, mark(opened), node.line)
        terms, approvers = terms_of(reading.position.terms, call), reading.approvers
        how = how_to_answer(reading.position, reading.state, gate, opened.key, terms)
        text = f"{as_toon(shape)}\n{listed}\nNext: {how}\ncheckpoint_handle: {handle}"
        if reading.pointer.is_checkpoint_handle:
            return reading.answer(text_reply(text, None, approvers))
        return reading.answer(text_reply(f"{text}\nsession_token: {reading.token}", reading.token, approvers))

    @tool(idempotent=True)
    def respond_checkpoint(self, params: p.RespondCheckpoint, call: Call) -> Outcome:
        """Orchestrator: answer with exactly one of option_id (the user's choice), auto_advance,
        condition_not_met. Effects are applied and returned.
        """
        token = params.checkpoint_handle or params.session_token
        if token is None:
            return failure("VALIDATION_ERROR", NEITHER, "Send the checkpoint_handle.")
        progress = self._tools.progress_call(token, Calling("respond_checkpoint"), params.variables)
        position, gate, pointer = progress.position, open_gate(progress.position), progress.pointer
        progress.beside = beside(params, "session_token", "checkpoint_handle")
        if pointer.is_checkpoint_handle:  # it is the worker's, and whoever answers is another agent
            caller = self._caller(params.session_token)
            progress.agent = caller.agent if caller is not None else ""
        else:
            sent = answering("", params)  # a token answers one question: a repeat is known by it
            progress.request = {**sent, "agent": progress.agent, "seen": pointer.attempt}
        was_rewound = not pointer.is_checkpoint_handle and pointer.attempt > position.state.visit.answered
        if progress.is_stale or was_rewound:
            return self._tools.refuse_stale(progress)
        if not pointer.is_checkpoint_handle and pointer.attempt < position.state.visit.answered:
            return self._answered_since(progress, params, gate)
        decided: Decided | Refusal | Elicit | Wait = Refusal(Code.CHECKPOINT_NOT_ACTIVE)
        if position.state.abandoned is not None:
            decided = run_abandoned(position.state.abandoned)
        elif gate is not None and not _is_another(pointer, position.state):
            progress.calling = replace(progress.calling, about={"checkpoint": gate.id})
            decided = self._tools.resolve(progress, gate, gate.id, params, call)
        if isinstance(decided, (Elicit, Wait)):
            return decided
        if isinstance(decided, Refusal):
            return self._answered_before(progress, params, decided)
        answer = next(event for event in decided.events if isinstance(event, GateResolved))
        opened = position.state.visit.open
        assert opened is not None, "only an open gate is answered"
        notices = progress.notices(decided)
        handle, token = progress.slot_at_end(mark(opened)), None
        body = _responded_body(position.state, answer, handle)
        if pointer.is_checkpoint_handle:
            progress.request = answering(answer.key, params)
        else:
            token = progress.token_slot(decided)
            body["session_token"] = token
        return self._tools.record(progress, decided, json_reply(body, token, notices), notices=notices)

    def _caller(self, token: str | None) -> Position | None:
        """Return the run that the token beside a handle leads to; None if it leads nowhere."""
        with suppress(LedgerError):
            return self._ledger.open(token, "ses") if token else None
        return None

    def _answered_since(self, progress: SessionCall, params: p.RespondCheckpoint, gate: Gate | None) -> Reply:
        """Answer a call whose session token is older than an answer of this visit (rule 13).

        It is a repeat, or it means a question that is answered; never does it answer a newer one.
        """
        repeated = self._tools.repeated(progress)
        if gate is None:
            return repeated or self._answered_before(progress, params, Refusal(Code.CHECKPOINT_NOT_ACTIVE))
        if repeated is not None:
            return with_warning(repeated, f"Checkpoint '{gate.id}' was not answered. {open_now(gate.id)}")
        answer = answer_of(self._ledger, progress.position, 0)
        assert answer is not None, "what was answered in this visit is in its log"
        about: dict[str, Json] = {"checkpoint": answer.gate, "option": answer.option, "open": gate.id}
        refusal = Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about)
        progress.refuse(sentence(refusal))
        return of_refusal(refusal, words(refusal), progress.token)

    def _answered_before(self, progress: SessionCall, params: p.RespondCheckpoint, refusal: Refusal) -> Reply:
        """Return the recorded answer for a repeat; another answer is refused, with the recorded one."""
        caller = self._caller(params.session_token)
        token = None  # the handle is the worker's, and not a token to go on with
        if caller is not None:
            token = session_token(self._ledger, caller.handle, progress.position)
        pointer = progress.pointer
        opening = pointer.attempt if pointer.is_checkpoint_handle else 0
        answer = answer_of(self._ledger, progress.position, opening)
        was_answered = refusal.code in (Code.CHECKPOINT_NOT_ACTIVE, Code.RUN_ABANDONED)
        if answer is not None and was_answered and repeats(answer, params):
            progress.request = answering(answer.key, params)
            handle = self._ledger.mint("ses", pointer.handle, pointer.node, opening, pointer.line)
            body = _responded_body(progress.state, answer, handle)
            if opening == 0:
                body = {**body, "session_token": token}
                del body["checkpoint_handle"]
            told = json_reply(body, token if opening == 0 else None)
            return self._tools.repeated(progress) or self._tools.told_again(progress, told)
        if answer is not None and refusal.code is Code.CHECKPOINT_NOT_ACTIVE:
            about: dict[str, Json] = {"checkpoint": answer.gate, "option": answer.option}
            refusal = Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about, refusal.kept, refusal.notices)
        progress.refuse(sentence(refusal), refusal.kept)
        return of_refusal(refusal, words(refusal), token)

    @tool()
    def resume_checkpoint(self, params: p.ResumeCheckpoint, call: Call) -> Outcome:
        """Worker: go on after the orchestrator has answered."""
        calling = Calling("resume_checkpoint")
        progress = self._tools.progress_call(params.session_token, calling, params.variables)
        if progress.is_stale:
            return self._tools.refuse_stale(progress)
        position = progress.position
        command = c.ResumeWorker(
            self._tools.policy,
            progress.now,
            progress.agent,
            params.variables or {},
            terms=terms_of(position.terms, call),
        )
        decided = position.decide_unasked(command)
        if isinstance(decided, Refusal):
            before = position.state.visit.resumed.get(progress.agent)
            if before is not None and decided.code is Code.CHECKPOINT_NOT_YIELDED:
                progress.request = _asking(before.key, progress.agent)
                repeated = self._tools.repeated(progress)
                if repeated is not None:
                    return repeated
            progress.refuse(sentence(decided), decided.kept)
            return of_refusal(decided, words(decided), progress.token)
        state = decided.state  # the call itself may have taken the default whose time was over
        answer = state.visit.resumed[progress.agent]
        progress.request = _asking(answer.key, progress.agent)
        body: dict[str, Json] = {"status": "resumed", "checkpoint_id": answer.gate}
        body |= round_of(state, answer.key)
        if answer.option:
            body["resolved_option"] = answer.option
        if (remark := state.replies.remark) is not None and remark.gate == answer.gate:
            body["note"] = remark.note
        body["message"] = "Its effects are applied: go on."
        token = progress.token_slot(decided)
        notices = progress.notices(decided)
        reply = json_reply({**body, "session_token": token}, token, notices)
        return self._tools.record(progress, decided, reply, notices=notices)


def _is_another(pointer: Pointer, state: RunState) -> bool:
    """Tell whether a handle was given for another question than the one that is open."""
    return pointer.is_checkpoint_handle and (
        state.visit.open is None or mark(state.visit.open) != pointer.attempt
    )


def _options_list(question: Question) -> str:
    """Write the options one below the other, each with its effect in words."""
    lines = [f"options[{len(question.options)}]:"]
    for option in question.options:
        lines += [f"  - id: {option.id}", f"    label: {option.label}"]
        if option.description:
            lines.append(f"    description: {option.description}")
        if effect := effect_text(option.effect):
            lines.append(f"    effect: {effect}")
    return "\n".join(lines)


def _asking(key: str, agent: str) -> dict[str, Json]:
    """Return what a repeated yield or resume is compared by."""
    return {"checkpoint": key, "agent": agent}


def _answered(state: RunState, answer: GateResolved, token: str) -> dict[str, Json]:
    body: dict[str, Json] = {
        "status": "answered",
        "checkpoint_id": answer.gate,
        **round_of(state, answer.key),
    }
    message = "This checkpoint is answered already; go on with the answer."
    return {**body, **resolution(answer), "message": message, "session_token": token}


def _responded_body(state: RunState, answer: GateResolved, handle: str) -> dict[str, Json]:
    body: dict[str, Json] = {"checkpoint_id": answer.gate, **round_of(state, answer.key), "resolved": True}
    return {**body, "checkpoint_handle": handle, **resolution(answer)}
