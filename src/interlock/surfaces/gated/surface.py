"""The gated surface: twelve tools, and all checkpoints of an activity pending at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.definition.prompts import interpolate
from interlock.core.definition.workflow import Activity, Gate
from interlock.core.engine.gates import auto_advances, find_gate, pending_gates
from interlock.core.run import commands as c
from interlock.core.run.commands import Command
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.surface_policy import GATED
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Position, Target
from interlock.ledger.runs.shared_sessions import (
    Calling,
    Moved,
    Progress,
    RefusedCall,
    Said,
    answer_to,
    answered_already,
)
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.arguments import check_context
from interlock.surfaces.gated import params as p
from interlock.surfaces.gated.errors import words
from interlock.surfaces.gated.reading import GatedReading, told_here
from interlock.surfaces.gated.tools import INSTRUCTIONS, tools
from interlock.surfaces.refusals import Words, sentence
from interlock.surfaces.shared import params as shared
from interlock.surfaces.shared import validation
from interlock.surfaces.shared.answers import repeats, resolution
from interlock.surfaces.shared.asking import asked, chosen, declined
from interlock.surfaces.shared.position import SessionPosition
from interlock.surfaces.shared.replies import as_json, failure, of_error, recorded, told_json
from interlock.surfaces.shared.session_tools import SERVER, said
from interlock.surfaces.shared.written import activity_shape, gate_shape, gates_of
from interlock.surfaces.tool import Call, Outcome, Reply, Tool

RECOVERED = (
    "The session token was not recognised. This is a fresh session; the earlier state was NOT inherited."
)


class GatedSurface(GatedReading):
    """The navigation surface."""

    name = "gated"
    instructions = INSTRUCTIONS
    policy = GATED

    def __init__(self, ledger: Ledger, without: frozenset[str] = frozenset()) -> None:
        super().__init__(ledger)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools(self) if tool.name not in without}

    def words(self, refusal: Refusal) -> Words:
        return words(refusal)

    def discover(self, params: shared.Nothing, call: Call) -> Outcome:
        body: dict[str, Json] = {
            "server": SERVER,
            "version": __version__,
            "available_workflows": [{"id": one.id, "title": one.name} for one in self._listed()],
            "discovery": self._bootstrap(),
        }
        return Reply(as_json(body))

    def list_workflows(self, params: shared.Nothing, call: Call) -> Outcome:
        listed: list[Json] = [
            {
                "id": one.id,
                "title": one.name,
                "version": one.version,
                "description": one.description,
                "tags": list(one.tags),
            }
            for one in self._listed()
        ]
        return Reply(as_json(listed))

    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        calling = Calling("start_session", {"workflow": params.workflow_id[:128]})
        agent = params.agent_id or ""
        if params.session_token is None:
            return self._start(calling, agent, params.workflow_id)
        mismatch = self._mismatch(params.session_token, params.workflow_id)
        if mismatch is not None:
            return mismatch
        joined = self._inherit(calling, params.session_token, params.agent_id)
        if isinstance(joined, Reply):
            return joined
        if joined is not None:
            return self._taken_up(joined, params.agent_id)
        return self._start(calling, agent, params.workflow_id, flags={"recovered": True}, warning=RECOVERED)

    def _mismatch(self, token: str, workflow_id: str) -> Reply | None:
        """A token of another workflow is refused here (rule 17)."""
        target = self.ledger.open(token, "ses", "st", "nav")
        at = self.sessions.head(target.session_id) if isinstance(target, Target) else target
        loaded = self.ledger.library.load(workflow_id)
        asked_for = workflow_id if isinstance(loaded, Diagnostic) else loaded.workflow.id
        if isinstance(at, LedgerError) or at.run.workflow_id in (workflow_id, asked_for):
            return None
        text = (
            f"Workflow mismatch: session was on '{at.run.workflow_id}' but call targets '{workflow_id}'. "
            "Start a new session for a different workflow."
        )
        return failure("WORKFLOW_MISMATCH", text, f"Send workflow_id '{at.run.workflow_id}'.")

    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome:
        progress = self._entering(params, call, _entered)
        if isinstance(progress, Reply):
            return progress
        outcome = self._act(params.session_token, progress)
        return self._not_entered(params, outcome) if isinstance(outcome, RefusedCall) else outcome

    def _not_entered(self, params: shared.NextActivity, refused: RefusedCall) -> Outcome:
        """Name every pending checkpoint with how to resolve it; staying where one is only reads again."""
        at, refusal = refused.at, refused.refusal
        pending = pending_gates(at.plan, at.state)
        if refusal.code is not Code.GATE_UNANSWERED or not pending:
            return self._refusal(params.session_token, refused)
        if params.activity_id == at.state.activity:
            return self._again(params.session_token)
        resolve = "Resolve each by calling respond_checkpoint with the current session_token:"
        text = "\n".join([f"{sentence(refusal)} {resolve}", *(f"- {_hint(gate)}" for gate in pending)])
        about: dict[str, Json] = {"pending": [gate.id for gate in pending]}
        target = self.ledger.open(params.session_token, "ses")
        assert isinstance(target, Target), "the call was made with this token"
        then = f"Answer '{pending[0].id}' with respond_checkpoint."
        return failure(refusal.code.value, text, then, about, self._token(target, at))

    def _again(self, token: str) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            assert here.activity is not None, "one stays where one is"
            return told_here(here, _shown(here.activity, pending_gates(here.at.plan, here.state)))

        return self._read(token, Calling("next_activity"), answer)

    def get_checkpoint(self, params: p.GetCheckpoint, call: Call) -> Outcome:
        """Show a checkpoint of any activity; looking changes nothing."""

        def answer(here: SessionPosition) -> Said[Reply]:
            activity = here.workflow.activity(params.activity_id)
            gates = gates_of(activity) if activity is not None else []
            gate = next((one for one in gates if one.id == params.checkpoint_id), None)
            if gate is None:
                return said(_no_gate(here, params, gates))
            message = interpolate(gate.message, here.at.plan.scope(here.state.variables))
            shape = gate_shape(replace(gate, message=message))
            return told_here(here, {"checkpoint": {**shape, "blocking": gate.blocking}})

        calling = Calling("get_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        return self._read(params.session_token, calling, answer)

    def respond_checkpoint(self, params: p.RespondCheckpoint, call: Call) -> Outcome:
        unfit = check_context(params.variables, "variables")
        if unfit:
            return failure("VALIDATION_ERROR", unfit.message, unfit.suggestion)
        target = self.ledger.open(params.session_token, "ses")
        if isinstance(target, LedgerError):
            return of_error(target)
        question = self._question(target, params, call)
        if question is not None:
            return question
        calling = Calling("respond_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        progress = Progress(calling, self._resolving(params, target, call), _advise, _responded)
        outcome = self._acted(target, progress)
        return self._repeated(target, params, outcome) if isinstance(outcome, RefusedCall) else outcome

    def _question(self, target: Target, params: p.RespondCheckpoint, call: Call) -> Outcome | None:
        at = self.sessions.head(target.session_id)
        if isinstance(at, LedgerError) or params.option_id is None or target.node != at.state.visit:
            return None
        gates = pending_gates(at.plan, at.state)
        gate = next((one for one in gates if one.id == params.checkpoint_id), None)
        return asked(at, gate, self.ledger.settings.terms, call) if gate is not None else None

    def _resolving(
        self, params: p.RespondCheckpoint, target: Target, call: Call
    ) -> Callable[[Position], Command | Refusal]:
        def build(at: Position) -> Command | Refusal:
            found = find_gate(at.plan, at.state, params.checkpoint_id)
            gate = found.gate if found else None
            refusal = declined(call, gate) if gate else None
            if refusal is not None:
                return refusal
            decision = (chosen(call, gate) or at.decisions.get(gate.id)) if gate else None
            return c.ResolveCheckpoint(
                policy=self.policy,
                now=self.ledger.clock(),
                terms=self.ledger.settings.terms,
                channel=decision.channel if decision else "agent",
                gate=gate.id if gate else params.checkpoint_id,
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
        """The same answer again returns what was recorded (rule 13)."""
        key = answered_already(refused.refusal)
        with self.ledger.store.reading() as reader:
            answer = answer_to(reader, target.session_id, key) if key else None
        if answer is None or not repeats(answer, params):
            return self._refusal(params.session_token, refused)
        token = self._token(target, refused.at)
        remaining = [gate.id for gate in pending_gates(refused.at.plan, refused.at.state)]
        return told_json(_answer(answer, remaining, token), token)


def _advise(at: Position, decided: Decided) -> tuple[str, ...]:
    return tuple(validation.outcome(at, decided))


def _hint(gate: Gate) -> str:
    """How one pending checkpoint can be resolved."""
    exits = [f"option_id: {' | '.join(option.id for option in gate.options)}"]
    if auto_advances(gate):
        exits.append(f"auto_advance: true after {gate.auto_advance_ms} ms")
    if gate.condition is not None:
        exits.append("condition_not_met: true if its condition is false")
    return f"{gate.id}: {', or '.join(exits)}"


def _no_gate(here: SessionPosition, params: p.GetCheckpoint, gates: Sequence[Gate]) -> Reply:
    text = f"Checkpoint not found: {params.checkpoint_id} in activity {params.activity_id}"
    listed = ", ".join(gate.id for gate in gates) or "none"
    return failure("CHECKPOINT_NOT_FOUND", text, f"Its checkpoints: {listed}.", token=here.token)


def _shown(activity: Activity, pending: Sequence[Gate]) -> dict[str, Json]:
    """An activity whole, with the checkpoints that are pending from now on."""
    shape = activity_shape(activity)
    if "transitions" not in shape and "decisions" not in shape:
        shape["transitions"] = [{"to": "__terminal__", "isDefault": True}]
    return {**shape, "pending_checkpoints": [gate.id for gate in pending]}


def _entered(moved: Moved) -> bytes:
    state, plan = moved.state, moved.before.plan
    token = slot("ses", state.visit)
    activity = plan.workflow.activity(state.activity)
    assert activity is not None, "a session that moved is in an activity"
    body = _shown(activity, pending_gates(plan, state))
    if state.finished:
        body = {"id": state.left_to, "name": "Completed", "status": "completed"}
    meta: dict[str, Json] = {"trace_token": slot("trc", *moved.trace)}
    return recorded(told_json({**body, "session_token": token}, token, moved.warnings, meta))


def _responded(moved: Moved) -> bytes:
    answer = next(event for event in moved.decided.events if isinstance(event, GateResolved))
    remaining = [gate.id for gate in pending_gates(moved.before.plan, moved.state)]
    token = slot("ses", moved.state.visit)
    return recorded(told_json(_answer(answer, remaining, token), token, moved.warnings))


def _answer(answer: GateResolved, remaining: Sequence[str], token: str) -> dict[str, Json]:
    body: dict[str, Json] = {
        "checkpoint_id": answer.gate,
        "resolved": True,
        "session_token": token,
        "remaining_checkpoints": list(remaining),
    }
    return {**body, **resolution(answer)}
