"""Checkpoints of the session surface: a worker yields, its orchestrator responds, the worker resumes."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.prompts import interpolate
from interlock.core.engine.decide import decide
from interlock.core.run import commands as c
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, Decided, Refusal
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
)
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.recorded import body_of, encoded, live
from interlock.surfaces.session import params as p
from interlock.surfaces.session.errors import words
from interlock.surfaces.shared import validation
from interlock.surfaces.shared.asking import asked, chosen, declined
from interlock.surfaces.shared.position import SessionPosition, open_gate
from interlock.surfaces.shared.replies import failure, of_refusal, told, told_json
from interlock.surfaces.shared.resolutions import repeats, resolution
from interlock.surfaces.shared.session_tools import SessionTools, claims_of
from interlock.surfaces.shared.written import as_toon, gate_shape

YIELDED = (
    "Yield the checkpoint_handle to the orchestrator in a <checkpoint_yield> block and wait; "
    "then call resume_checkpoint."
)
NEITHER = "Either checkpoint_handle or session_token must be provided. Both were omitted."


class Checkpoints:
    """The checkpoint tools of the session surface."""

    def __init__(self, tools: SessionTools) -> None:
        self._tools = tools
        self._ledger = tools.ledger

    def yield_checkpoint(self, params: p.YieldCheckpoint, call: Call) -> Outcome:
        calling = Calling("yield_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        progress = self._tools.calling(params.session_token, calling, params.variables)
        if isinstance(progress, Reply):
            return progress
        claims = claims_of(params.step_manifest)
        if isinstance(claims, Reply):
            return claims
        if progress.is_stale:
            return self._tools.stale(progress)
        position = progress.position
        command = c.OpenCheckpoint(
            policy=self._tools.policy,
            now=progress.now,
            terms=self._ledger.settings.terms,
            gate=params.checkpoint_id,
            agent=progress.agent,
            iteration=params.iteration,
            claims=claims,
            variables=params.variables or {},
            decisions=position.decisions,
            client=call.client.name,
        )
        decided = decide(position.plan, position.state, command)
        if isinstance(decided, Refusal):
            progress.refuse(decided.code.value, decided.kept)
            return self._answered(progress, decided)
        opened = decided.state.open
        assert opened is not None, "a yield opens a gate"
        body: dict[str, Json] = {
            "status": "yielded",
            "checkpoint_id": opened.gate,
            "checkpoint_handle": slot("ses", decided.state.visit, mark(opened)),
            "message": YIELDED,
        }
        warnings = tuple(validation.outcome(position, decided))
        reply = encoded(told_json(body, slot("ses", decided.state.visit), warnings))
        progress.record(decided, body_of(reply), warnings=warnings, claims=claims)
        return live(reply, self._ledger, progress.pointer.handle)

    def _answered(self, progress: SessionCall, refusal: Refusal) -> Reply:
        """A checkpoint that is answered already returns its recorded answer (rule 13)."""
        key = answered_already(refusal)
        answer = answer_to(self._ledger, progress.position, key) if key else None
        if answer is None:
            return of_refusal(refusal, words(refusal), progress.token)
        body: dict[str, Json] = {"status": "answered", "checkpoint_id": answer.gate, **resolution(answer)}
        message = "This checkpoint is answered already; go on with the answer."
        return told_json({**body, "message": message, "session_token": progress.token}, progress.token)

    def present_checkpoint(self, params: p.PresentCheckpoint, call: Call) -> Outcome:
        token = params.checkpoint_handle or params.session_token
        if token is None:
            return failure("VALIDATION_ERROR", NEITHER, "Send the checkpoint_handle.")
        position = self._tools.reading(token, Calling("present_checkpoint"))
        if isinstance(position, Reply):
            return position
        gate, opened = open_gate(position.position), position.state.open
        if gate is None or opened is None or _is_another(position.pointer.attempt, position):
            refusal = Refusal(Code.CHECKPOINT_NOT_ACTIVE)
            return position.answer(of_refusal(refusal, words(refusal), position.token))
        scope = position.position.plan.scope(position.state.variables)
        shape = gate_shape(replace(gate, message=interpolate(gate.message, scope)))
        handle = self._ledger.mint("ses", position.pointer.handle, position.state.visit, mark(opened))
        return position.answer(told(f"{as_toon(shape)}\ncheckpoint_handle: {handle}", None))

    def respond_checkpoint(self, params: p.RespondCheckpoint, call: Call) -> Outcome:
        token = params.checkpoint_handle or params.session_token
        if token is None:
            return failure("VALIDATION_ERROR", NEITHER, "Send the checkpoint_handle.")
        progress = self._tools.calling(token, Calling("respond_checkpoint"), params.variables)
        if isinstance(progress, Reply):
            return progress
        position, gate = progress.position, open_gate(progress.position)
        if params.checkpoint_handle and params.session_token:
            self._name_caller(progress, params.session_token)
        if gate is not None:
            progress.calling = replace(progress.calling, about={"checkpoint": gate.id})
            ask = asked(position, gate, self._ledger.settings.terms, call) if params.option_id else None
            if ask is not None:
                return ask
        if progress.is_stale:
            return self._tools.stale(progress)
        decided = self._resolved(progress, params, call)
        if isinstance(decided, Refusal):
            progress.refuse(decided.code.value, decided.kept)
            return self._repeated(progress, params, decided)
        answer = next(event for event in decided.events if isinstance(event, GateResolved))
        opened = position.state.open
        assert opened is not None, "only an open gate is answered"
        warnings = tuple(validation.outcome(position, decided))
        handle = slot("ses", decided.state.visit, mark(opened))
        reply = encoded(told_json(_responded_body(answer, handle), None, warnings))
        progress.record(decided, body_of(reply), warnings=warnings)
        return live(reply, self._ledger, progress.pointer.handle)

    def _name_caller(self, progress: SessionCall, session_token: str) -> None:
        """The handle is the worker's; a session_token beside it says who answers."""
        caller = self._ledger.open(session_token, "ses")
        if not isinstance(caller, LedgerError):
            progress.agent = caller.agent

    def _resolved(self, progress: SessionCall, params: p.RespondCheckpoint, call: Call) -> Decided | Refusal:
        position, gate = progress.position, open_gate(progress.position)
        if gate is None or _is_another(progress.pointer.attempt, position):
            return Refusal(Code.CHECKPOINT_NOT_ACTIVE)
        refusal = declined(call, gate)
        if refusal is not None:
            return refusal
        decision = chosen(call, gate) or position.decisions.get(gate.id)
        command = c.ResolveCheckpoint(
            policy=self._tools.policy,
            now=progress.now,
            terms=self._ledger.settings.terms,
            channel=decision.channel if decision else "agent",
            gate=gate.id,
            option=decision.option if decision else params.option_id,
            auto_advance=params.auto_advance,
            condition_not_met=params.condition_not_met,
            agent=progress.agent,
            client=call.client.name,
            note=decision.note if decision else "",
            variables=params.variables or {},
        )
        return decide(position.plan, position.state, command)

    def _repeated(self, progress: SessionCall, params: p.RespondCheckpoint, refusal: Refusal) -> Reply:
        """A used handle returns the recorded answer; another answer is refused, with the recorded one."""
        token = self._answering_token(progress, params)
        answer = answer_of(self._ledger, progress.position, progress.pointer.attempt)
        if answer is None or refusal.code is not Code.CHECKPOINT_NOT_ACTIVE:
            return of_refusal(refusal, words(refusal), token)
        if repeats(answer, params):
            pointer = progress.pointer
            handle = self._ledger.mint("ses", pointer.handle, pointer.node, pointer.attempt)
            return told_json(_responded_body(answer, handle), None)
        about: dict[str, Json] = {"checkpoint": answer.gate, "option": answer.option}
        answered = Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about)
        return of_refusal(answered, words(answered), token)

    def _answering_token(self, progress: SessionCall, params: p.RespondCheckpoint) -> str | None:
        """The token of who answers; the handle is the worker's, and is no token to go on with."""
        caller = self._ledger.read_token(params.session_token, "ses") if params.session_token else None
        if caller is None or isinstance(caller, LedgerError):
            return None
        return self._ledger.mint("ses", caller.handle, progress.state.visit)

    def resume_checkpoint(self, params: p.ResumeCheckpoint, call: Call) -> Outcome:
        calling = Calling("resume_checkpoint")
        progress = self._tools.calling(params.session_token, calling, params.variables)
        if isinstance(progress, Reply):
            return progress
        if progress.is_stale:
            return self._tools.stale(progress)
        position = progress.position
        command = c.ResumeWorker(self._tools.policy, progress.now, progress.agent, params.variables or {})
        decided = decide(position.plan, position.state, command)
        if isinstance(decided, Refusal):
            progress.refuse(decided.code.value, decided.kept)
            return of_refusal(decided, words(decided), progress.token)
        answer = position.state.resolution
        assert answer is not None, "only an answered checkpoint is resumed from"
        body: dict[str, Json] = {"status": "resumed", "checkpoint_id": answer.gate}
        if answer.option:
            body["resolved_option"] = answer.option
        body["message"] = "The checkpoint is answered and its effects are applied. Go on."
        token = slot("ses", decided.state.visit)
        warnings = tuple(validation.outcome(position, decided))
        reply = encoded(told_json({**body, "session_token": token}, token, warnings))
        progress.record(decided, body_of(reply), warnings=warnings)
        return live(reply, self._ledger, progress.pointer.handle)


def _is_another(opening: int, position: SessionPosition | Position) -> bool:
    """Say whether a handle was given for another question than the one that is open."""
    opened = position.state.open
    return opening != 0 and (opened is None or mark(opened) != opening)


def _responded_body(answer: GateResolved, handle: str) -> dict[str, Json]:
    body: dict[str, Json] = {"checkpoint_id": answer.gate, "resolved": True, "checkpoint_handle": handle}
    return {**body, **resolution(answer)}
