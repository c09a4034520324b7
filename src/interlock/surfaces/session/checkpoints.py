"""Checkpoints of the session surface: a worker yields, its orchestrator responds, the worker resumes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from interlock.core.definition.prompts import interpolate
from interlock.core.run import commands as c
from interlock.core.run.commands import Command
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.values import Json, Variables
from interlock.ledger.errors import LedgerError
from interlock.ledger.runs.position import Position, Target
from interlock.ledger.runs.shared_sessions import (
    Calling,
    Moved,
    Progress,
    RefusedCall,
    Said,
    answer_of,
    answer_to,
    answered_already,
    mark,
)
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.arguments import check_context
from interlock.surfaces.refusals import Words
from interlock.surfaces.session import params as p
from interlock.surfaces.session.errors import words
from interlock.surfaces.session.reading import SessionReading
from interlock.surfaces.shared import validation
from interlock.surfaces.shared.answers import repeats, resolution
from interlock.surfaces.shared.asking import asked, chosen, declined
from interlock.surfaces.shared.position import SessionPosition
from interlock.surfaces.shared.replies import failure, of_error, of_refusal, recorded, told, told_json
from interlock.surfaces.shared.session_tools import claims_of, open_gate, said
from interlock.surfaces.shared.written import as_toon, gate_shape
from interlock.surfaces.tool import Call, Outcome, Reply

YIELDED = (
    "Yield the checkpoint_handle to the orchestrator in a <checkpoint_yield> block and wait; "
    "then call resume_checkpoint."
)
NEITHER = "Either checkpoint_handle or session_token must be provided. Both were omitted."


class Checkpoints(SessionReading):
    """The checkpoint tools of the session surface."""

    def words(self, refusal: Refusal) -> Words:
        return words(refusal)

    def yield_checkpoint(self, params: p.YieldCheckpoint, call: Call) -> Outcome:
        target = self._progressing(params.session_token, params.variables)
        if isinstance(target, Reply):
            return target
        claims = claims_of(params.step_manifest)
        if isinstance(claims, Reply):
            return claims

        def build(at: Position) -> Command:
            return c.OpenCheckpoint(
                policy=self.policy,
                now=self.ledger.clock(),
                terms=self.ledger.settings.terms,
                gate=params.checkpoint_id,
                agent=target.agent,
                iteration=params.iteration,
                claims=claims,
                variables=params.variables or {},
                decisions=at.decisions,
                client=call.client.name,
            )

        calling = Calling("yield_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        outcome = self._acted(target, Progress(calling, build, _advise, _yielded, claims))
        return self._answered(target, outcome) if isinstance(outcome, RefusedCall) else outcome

    def _answered(self, target: Target, refused: RefusedCall) -> Reply:
        """A checkpoint that is answered already returns its recorded answer (rule 13)."""
        key = answered_already(refused.refusal)
        with self.ledger.store.reading() as reader:
            answer = answer_to(reader, target.session_id, key) if key else None
        token = self._token(target, refused.at)
        if answer is None:
            return of_refusal(refused.refusal, words(refused.refusal), token)
        body: dict[str, Json] = {"status": "answered", "checkpoint_id": answer.gate, **resolution(answer)}
        message = "This checkpoint is answered already; go on with the answer."
        return told_json({**body, "message": message, "session_token": token}, token)

    def present_checkpoint(self, params: p.PresentCheckpoint, call: Call) -> Outcome:
        token = params.checkpoint_handle or params.session_token
        if token is None:
            return failure("VALIDATION_ERROR", NEITHER, "Send the checkpoint_handle.")

        def answer(here: SessionPosition) -> Said[Reply]:
            gate = open_gate(here.at)
            if gate is None or here.state.open is None or _is_another(here.target, here.at):
                refusal = Refusal(Code.CHECKPOINT_NOT_ACTIVE)
                return said(of_refusal(refusal, words(refusal), here.token))
            scope = here.at.plan.scope(here.state.variables)
            shape = gate_shape(replace(gate, message=interpolate(gate.message, scope)))
            handle = self.ledger.mint("ses", here.target.handle, here.state.visit, mark(here.state.open))
            return said(told(f"{as_toon(shape)}\ncheckpoint_handle: {handle}", None))

        return self._read(token, Calling("present_checkpoint"), answer)

    def respond_checkpoint(self, params: p.RespondCheckpoint, call: Call) -> Outcome:
        target = self._responding(params)
        if isinstance(target, Reply):
            return target
        at = self.sessions.head(target.session_id)
        gate = open_gate(at) if not isinstance(at, LedgerError) else None
        if gate is not None and not isinstance(at, LedgerError) and params.option_id is not None:
            question = asked(at, gate, self.ledger.settings.terms, call)
            if question is not None:
                return question
        calling = Calling("respond_checkpoint", {"checkpoint": gate.id} if gate else {})
        build = self._resolving(params, target, call)
        outcome = self._acted(target, Progress(calling, build, _advise, _responded))
        return self._repeated(target, params, outcome) if isinstance(outcome, RefusedCall) else outcome

    def _responding(self, params: p.RespondCheckpoint) -> Target | Reply:
        """The place that a handle leads to; a session_token beside it says who answers."""
        token = params.checkpoint_handle or params.session_token
        if token is None:
            return failure("VALIDATION_ERROR", NEITHER, "Send the checkpoint_handle.")
        target = self._progressing(token, params.variables)
        if isinstance(target, Reply) or not (params.checkpoint_handle and params.session_token):
            return target
        caller = self.ledger.open(params.session_token, "ses")
        return target if isinstance(caller, LedgerError) else replace(target, agent=caller.agent)

    def _resolving(
        self, params: p.RespondCheckpoint, target: Target, call: Call
    ) -> Callable[[Position], Command | Refusal]:
        def build(at: Position) -> Command | Refusal:
            gate = open_gate(at)
            if gate is None or _is_another(target, at):
                return Refusal(Code.CHECKPOINT_NOT_ACTIVE)
            refusal = declined(call, gate)
            if refusal is not None:
                return refusal
            decision = chosen(call, gate) or at.decisions.get(gate.id)
            return c.ResolveCheckpoint(
                policy=self.policy,
                now=self.ledger.clock(),
                terms=self.ledger.settings.terms,
                channel=decision.channel if decision else "agent",
                gate=gate.id,
                option=decision.option if decision else params.option_id,
                auto_advance=params.auto_advance,
                condition_not_met=params.condition_not_met,
                agent=target.agent,
                client=call.client.name,
                note=decision.note if decision else "",
                variables=params.variables or {},
            )

        return build

    def _repeated(self, target: Target, params: p.RespondCheckpoint, refused: RefusedCall) -> Reply:
        """A used handle returns the recorded answer; another answer is refused, with the recorded one."""
        token = self._answering_token(params, refused.at)
        with self.ledger.store.reading() as reader:
            answer = answer_of(reader, target.session_id, target)
        if answer is None or refused.refusal.code is not Code.CHECKPOINT_NOT_ACTIVE:
            return of_refusal(refused.refusal, words(refused.refusal), token)
        if repeats(answer, params):
            handle = self.ledger.mint("ses", target.handle, target.node, target.attempt)
            return told_json(_responded_body(answer, handle), None)
        about: dict[str, Json] = {"checkpoint": answer.gate, "option": answer.option}
        refusal = Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about)
        return of_refusal(refusal, words(refusal), token)

    def _answering_token(self, params: p.RespondCheckpoint, at: Position) -> str | None:
        """The token of who answers; the handle is the worker's, and is no token to go on with."""
        target = self.ledger.open(params.session_token, "ses") if params.session_token else None
        return self._token(target, at) if isinstance(target, Target) else None

    def resume_checkpoint(self, params: p.ResumeCheckpoint, call: Call) -> Outcome:
        target = self._progressing(params.session_token, params.variables)
        if isinstance(target, Reply):
            return target

        def build(at: Position) -> Command:
            return c.ResumeCheckpoint(self.policy, self.ledger.clock(), target.agent, params.variables or {})

        outcome = self._acted(target, Progress(Calling("resume_checkpoint"), build, _advise, _resumed))
        return self._refusal(params.session_token, outcome) if isinstance(outcome, RefusedCall) else outcome

    def _progressing(self, token: str, variables: Variables | None) -> Target | Reply:
        unfit = check_context(variables, "variables")
        if unfit:
            return failure("VALIDATION_ERROR", unfit.message, unfit.suggestion)
        target = self.ledger.open(token, "ses")
        return of_error(target) if isinstance(target, LedgerError) else target


def _advise(at: Position, decided: Decided) -> tuple[str, ...]:
    return tuple(validation.outcome(at, decided))


def _is_another(target: Target, at: Position) -> bool:
    """Say whether a handle was given for another question than the one that is open."""
    return target.attempt != 0 and (at.state.open is None or mark(at.state.open) != target.attempt)


def _yielded(moved: Moved) -> bytes:
    opened = moved.state.open
    assert opened is not None, "a yield opens a gate"
    body: dict[str, Json] = {
        "status": "yielded",
        "checkpoint_id": opened.gate,
        "checkpoint_handle": slot("ses", moved.state.visit, mark(opened)),
        "message": YIELDED,
    }
    return recorded(told_json(body, slot("ses", moved.state.visit), moved.warnings))


def _responded(moved: Moved) -> bytes:
    answer = next(event for event in moved.decided.events if isinstance(event, GateResolved))
    opened = moved.before.state.open
    assert opened is not None, "only an open gate is answered"
    handle = slot("ses", moved.state.visit, mark(opened))
    return recorded(told_json(_responded_body(answer, handle), None, moved.warnings))


def _responded_body(answer: GateResolved, handle: str) -> dict[str, Json]:
    body: dict[str, Json] = {"checkpoint_id": answer.gate, "resolved": True, "checkpoint_handle": handle}
    return {**body, **resolution(answer)}


def _resumed(moved: Moved) -> bytes:
    token = slot("ses", moved.state.visit)
    answer = moved.before.state.resolution
    assert answer is not None, "only an answered checkpoint is resumed from"
    body: dict[str, Json] = {"status": "resumed", "checkpoint_id": answer.gate}
    if answer.option:
        body["resolved_option"] = answer.option
    message = "The checkpoint is answered and its effects are applied. Go on."
    return recorded(told_json({**body, "message": message, "session_token": token}, token, moved.warnings))
