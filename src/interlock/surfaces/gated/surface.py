"""The gated surface: twelve tools, and all checkpoints of an activity pending at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.definition.prompts import interpolate
from interlock.core.definition.workflow import Activity, Gate
from interlock.core.engine.decide import decide
from interlock.core.engine.gates import auto_advances, find_gate, pending_gates
from interlock.core.run import commands as c
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.surface_policy import GATED
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError, error_of, internal_error
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.shared_sessions import Calling, SessionCall, answer_to, answered_already
from interlock.ledger.tokens.slots import slot
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.gated import params as p
from interlock.surfaces.gated.errors import words
from interlock.surfaces.gated.reading import GatedReading, told_at
from interlock.surfaces.gated.tools import INSTRUCTIONS, tools
from interlock.surfaces.recorded import body_of, encoded, live, replayed
from interlock.surfaces.refusals import sentence
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared import validation
from interlock.surfaces.shared.asking import asked, chosen, declined
from interlock.surfaces.shared.replies import as_json, failure, of_error, of_refusal, told_json
from interlock.surfaces.shared.resolutions import repeats, resolution
from interlock.surfaces.shared.session_tools import RECOVERED, SERVER, SessionTools, claims_of
from interlock.surfaces.shared.written import activity_shape, gate_shape, gates_of
from interlock.surfaces.strict_params import NoParams
from interlock.surfaces.tool import Surface, Tool


class GatedSurface(Surface):
    """Twelve tools; every required checkpoint of an activity is pending from its entry (rule 15)."""

    name = "gated"
    instructions = INSTRUCTIONS

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.shared = SessionTools(ledger, GATED)
        self.reading = GatedReading(self.shared)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools(self, self.shared, self.reading)}

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        return self.shared.invalid(tool, reason)

    def unknown(self, name: str) -> Outcome:
        return self.shared.unknown(name, self.tools)

    def expected(self, error: Exception) -> Outcome | None:
        known = error_of(error)
        return of_error(known) if known is not None else None

    def failed(self, tool: Tool, error: Exception, reference: str) -> Outcome:
        return of_error(internal_error(error, reference))

    def idle(self) -> None:
        self.ledger.idle()

    def close(self) -> None:
        self.ledger.close()

    def discover(self, params: NoParams, call: Call) -> Outcome:
        body: dict[str, Json] = {
            "server": SERVER,
            "version": __version__,
            "available_workflows": [{"id": entry.id, "title": entry.name} for entry in self.shared.listed()],
            "discovery": self.shared.bootstrap(),
        }
        return Reply(as_json(body))

    def list_workflows(self, params: NoParams, call: Call) -> Outcome:
        listed: list[Json] = [
            {
                "id": entry.id,
                "title": entry.name,
                "version": entry.version,
                "description": entry.description,
                "tags": list(entry.tags),
            }
            for entry in self.shared.listed()
        ]
        return Reply(as_json(listed))

    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        calling = Calling("start_session", {"workflow": params.workflow_id[:128]})
        agent = params.agent_id or ""
        if params.session_token is None:
            return self.shared.start(calling, agent, params.workflow_id)
        mismatch = self._mismatch(params.session_token, params.workflow_id)
        if mismatch is not None:
            return mismatch
        joined = self.shared.join(calling, params.session_token, params.agent_id)
        if joined is not None:
            return joined
        recovered: dict[str, Json] = {"recovered": True}
        return self.shared.start(calling, agent, params.workflow_id, flags=recovered, warning=RECOVERED)

    def _mismatch(self, token: str, workflow_id: str) -> Reply | None:
        """A token of another workflow is refused here (rule 17)."""
        pointer = self.ledger.read_token(token, "ses", "st", "nav")
        if isinstance(pointer, LedgerError):
            return None
        head = self.ledger.at(Pointer("ses", pointer.handle))
        loaded = self.ledger.library.load(workflow_id)
        asked_for = workflow_id if isinstance(loaded, Diagnostic) else loaded.workflow.id
        if isinstance(head, LedgerError) or head.run.workflow_id in (workflow_id, asked_for):
            return None
        text = (
            f"Workflow mismatch: session was on '{head.run.workflow_id}' but call targets '{workflow_id}'. "
            "Start a new session for a different workflow."
        )
        return failure("WORKFLOW_MISMATCH", text, f"Send workflow_id '{head.run.workflow_id}'.")

    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome:
        calling = Calling("next_activity", {"target": params.activity_id})
        progress = self.shared.calling(params.session_token, calling, params.variables)
        if isinstance(progress, Reply):
            return progress
        claims = claims_of(params.step_manifest)
        if isinstance(claims, Reply):
            return claims
        if progress.is_stale or progress.state.finished:
            repeated = progress.repeated(params.activity_id)
            if repeated is not None:
                return (
                    of_error(repeated)
                    if isinstance(repeated, LedgerError)
                    else replayed(repeated, self.ledger)
                )
        if progress.is_stale:
            return self.shared.stale(progress)
        command = self.shared.entering(progress, params, claims, call.client.name)
        decided = decide(progress.position.plan, progress.state, command)
        if isinstance(decided, Refusal):
            progress.refuse(decided.code.value, decided.kept)
            return self._not_entered(progress, params, decided)
        warnings = self.shared.entry_warnings(progress, params, decided)
        reply = encoded(_entered(progress, decided, warnings))
        progress.record(decided, body_of(reply), warnings=warnings, claims=claims, target=params.activity_id)
        return live(reply, self.ledger, progress.pointer.handle)

    def _not_entered(self, progress: SessionCall, params: shared.NextActivity, refusal: Refusal) -> Outcome:
        """Name every pending checkpoint with how to resolve it; staying where one is only reads again."""
        pending = pending_gates(progress.position.plan, progress.state)
        if refusal.code is not Code.GATE_UNANSWERED or not pending:
            return of_refusal(refusal, words(refusal), progress.token)
        if params.activity_id == progress.state.activity:
            return self._again(params.session_token)
        resolve = "Resolve each by calling respond_checkpoint with the current session_token:"
        text = "\n".join([f"{sentence(refusal)} {resolve}", *(f"- {_hint(gate)}" for gate in pending)])
        about: dict[str, Json] = {"pending": [gate.id for gate in pending]}
        then = f"Answer '{pending[0].id}' with respond_checkpoint."
        return failure(refusal.code.value, text, then, about, progress.token)

    def _again(self, token: str) -> Outcome:
        position = self.shared.reading(token, Calling("next_activity"))
        if isinstance(position, Reply):
            return position
        assert position.activity is not None, "one stays where one is"
        pending = pending_gates(position.position.plan, position.state)
        return told_at(position, _shown(position.activity, pending))

    def get_checkpoint(self, params: p.GetCheckpoint, call: Call) -> Outcome:
        """Show a checkpoint of any activity; looking changes nothing."""
        calling = Calling("get_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        position = self.shared.reading(params.session_token, calling)
        if isinstance(position, Reply):
            return position
        activity = position.workflow.activity(params.activity_id)
        gates = gates_of(activity) if activity is not None else []
        gate = next((gate for gate in gates if gate.id == params.checkpoint_id), None)
        if gate is None:
            text = f"Checkpoint not found: {params.checkpoint_id} in activity {params.activity_id}"
            listed = ", ".join(gate.id for gate in gates) or "none"
            then = f"Its checkpoints: {listed}."
            return position.answer(failure("CHECKPOINT_NOT_FOUND", text, then, token=position.token))
        message = interpolate(gate.message, position.position.plan.scope(position.state.variables))
        shape = gate_shape(replace(gate, message=message))
        return told_at(position, {"checkpoint": {**shape, "blocking": gate.blocking}})

    def respond_checkpoint(self, params: p.RespondCheckpoint, call: Call) -> Outcome:
        calling = Calling("respond_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        progress = self.shared.calling(params.session_token, calling, params.variables)
        if isinstance(progress, Reply):
            return progress
        position = progress.position
        if params.option_id is not None and not progress.is_stale:
            gates = pending_gates(position.plan, position.state)
            gate = next((gate for gate in gates if gate.id == params.checkpoint_id), None)
            ask = asked(position, gate, self.ledger.settings.terms, call) if gate is not None else None
            if ask is not None:
                return ask
        if progress.is_stale:
            return self.shared.stale(progress)
        decided = self._resolved(progress, params, call)
        if isinstance(decided, Refusal):
            progress.refuse(decided.code.value, decided.kept)
            return self._repeated(progress, params, decided)
        answer = next(event for event in decided.events if isinstance(event, GateResolved))
        remaining = [gate.id for gate in pending_gates(position.plan, decided.state)]
        token = slot("ses", decided.state.visit)
        warnings = tuple(validation.outcome(position, decided))
        reply = encoded(told_json(_answer(answer, remaining, token), token, warnings))
        progress.record(decided, body_of(reply), warnings=warnings)
        return live(reply, self.ledger, progress.pointer.handle)

    def _resolved(self, progress: SessionCall, params: p.RespondCheckpoint, call: Call) -> Decided | Refusal:
        position = progress.position
        found = find_gate(position.plan, position.state, params.checkpoint_id)
        gate = found.gate if found else None
        refusal = declined(call, gate) if gate else None
        if refusal is not None:
            return refusal
        decision = (chosen(call, gate) or position.decisions.get(gate.id)) if gate else None
        command = c.ResolveCheckpoint(
            policy=GATED,
            now=progress.now,
            terms=self.ledger.settings.terms,
            channel=decision.channel if decision else "agent",
            gate=gate.id if gate else params.checkpoint_id,
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
        """The same answer again returns what was recorded (rule 13)."""
        key = answered_already(refusal)
        answer = answer_to(self.ledger, progress.position, key) if key else None
        if answer is None or not repeats(answer, params):
            return of_refusal(refusal, words(refusal), progress.token)
        remaining = [gate.id for gate in pending_gates(progress.position.plan, progress.state)]
        return told_json(_answer(answer, remaining, progress.token), progress.token)


def _hint(gate: Gate) -> str:
    """How one pending checkpoint can be resolved."""
    exits = [f"option_id: {' | '.join(option.id for option in gate.options)}"]
    if auto_advances(gate):
        exits.append(f"auto_advance: true after {gate.auto_advance_ms} ms")
    if gate.condition is not None:
        exits.append("condition_not_met: true if its condition is false")
    return f"{gate.id}: {', or '.join(exits)}"


def _shown(activity: Activity, pending: Sequence[Gate]) -> dict[str, Json]:
    """An activity whole, with the checkpoints that are pending from now on."""
    shape = activity_shape(activity)
    if "transitions" not in shape and "decisions" not in shape:
        shape["transitions"] = [{"to": "__terminal__", "isDefault": True}]
    return {**shape, "pending_checkpoints": [gate.id for gate in pending]}


def _entered(progress: SessionCall, decided: Decided, warnings: tuple[str, ...]) -> Reply:
    state, plan = decided.state, progress.position.plan
    token = slot("ses", state.visit)
    activity = plan.workflow.activity(state.activity)
    assert activity is not None, "a session that moved is in an activity"
    body = _shown(activity, pending_gates(plan, state))
    if state.finished:
        body = {"id": state.left_to, "name": "Completed", "status": "completed"}
    meta: dict[str, Json] = {"trace_token": slot("trc", *progress.trace_range)}
    return told_json({**body, "session_token": token}, token, warnings, meta)


def _answer(answer: GateResolved, remaining: Sequence[str], token: str) -> dict[str, Json]:
    body: dict[str, Json] = {
        "checkpoint_id": answer.gate,
        "resolved": True,
        "session_token": token,
        "remaining_checkpoints": list(remaining),
    }
    return {**body, **resolution(answer)}
