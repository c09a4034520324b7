"""The gated surface: twelve tools, and all checkpoints of an activity pending at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from interlock import __version__
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.definition.conditions import holds
from interlock.core.definition.program import Plan, gates_of
from interlock.core.definition.prompts import filled_value, filling, remark_text
from interlock.core.definition.workflow import Activity, Gate
from interlock.core.engine.decisions import asked_through
from interlock.core.engine.evolve import evolved
from interlock.core.engine.gates import auto_advances, find_gate, pending_gates, question_of, round_of
from interlock.core.engine.paths.exits import chosen_exit
from interlock.core.hashing import digest_of
from interlock.core.run.commands import Claim, OpenCheckpoint
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Code, NeedAnswer, Refusal
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import GATED
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import (
    Calling,
    SessionCall,
    answered_already,
    numbered_answers,
)
from interlock.surfaces.arguments import check_context
from interlock.surfaces.call import Call, Elicit, Outcome, Refused, Reply, Wait
from interlock.surfaces.elicitation import decided_with_user, terms_of
from interlock.surfaces.gated import params as p
from interlock.surfaces.gated.errors import next_action, words
from interlock.surfaces.gated.instructions import INSTRUCTIONS, PROMPTS
from interlock.surfaces.gated.reading import GatedReading
from interlock.surfaces.ledger_surface import LedgerSurface
from interlock.surfaces.parameters import NoParams
from interlock.surfaces.recorded import repeatable
from interlock.surfaces.refusals import sentence
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.reading_call import ReadingCall, presented_gate
from interlock.surfaces.shared.replies import as_json, failure, json_reply, of_error, of_refusal, with_warning
from interlock.surfaces.shared.resolutions import answering, how_to_answer, repeats, resolution
from interlock.surfaces.shared.session_errors import completed
from interlock.surfaces.shared.session_tools import (
    SERVER,
    NotEntered,
    SessionTools,
    beside,
    claims_of,
    digest_mark,
)
from interlock.surfaces.shared.workflow_filter import NO_MATCH, ListWorkflows, found_workflows
from interlock.surfaces.shared.workflow_shapes import REPORT_STEPS, activity_shape, gate_shape, wants_reports
from interlock.surfaces.tool import Tool, tool, tools_of

TAKE_UP = "Call start_session with the workflow_id and the session_token of the candidate that is meant."
NOT_REACHED = (
    "Steps stand before this checkpoint: its question is put when they are done. Send them in step_manifest "
    "with get_checkpoint or respond_checkpoint."
)
READ_BEFORE = "Do its steps again. Not at hand? next_activity with this activity_id alone sends it."
ELSEWHERE = "It is not of the current activity: its question is put after next_activity has entered its own."


class GatedSurface(LedgerSurface):
    """Twelve tools; every required checkpoint of an activity is pending from its entry (rule 15)."""

    name = "gated"
    instructions = INSTRUCTIONS
    prompt_texts = PROMPTS

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.shared = SessionTools(ledger, GATED, next_action)
        self.reading = GatedReading(self.shared)
        self.tools = tools_of(self, self.reading, self.shared)

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        return self.shared.invalid(tool, reason)

    def error_reply(self, error: LedgerError) -> Reply:
        return of_error(error)

    @tool(read_only=True, uses_store=False)
    def discover(self, params: NoParams, call: Call) -> Outcome:
        """Start here: server, version, workflows, and how to work with them."""
        body: dict[str, Json] = {
            "server": SERVER,
            "version": __version__,
            "available_workflows": [
                {"id": entry.id, "title": entry.name} for entry in self.shared.visible_workflows()
            ],
            "discovery": self.shared.bootstrap(),
        }
        return Reply(as_json(body))

    @tool(read_only=True, uses_store=False)
    def list_workflows(self, params: ListWorkflows, call: Call) -> Outcome:
        """List the workflows."""
        entries = found_workflows(self.shared.visible_workflows(), params)
        if params.narrows and not entries:
            return Reply(NO_MATCH)
        shadowed: dict[str, list[Json]] = {}
        for hidden_workflow in self.shared.shadowed():
            shadowed.setdefault(hidden_workflow.workflow_id, []).append(hidden_workflow.message)
        workflows: list[Json] = [
            {
                "id": entry.id,
                "title": entry.name,
                "version": entry.version,
                "description": entry.description,
                "tags": list(entry.tags),
                **({"shadows": hidden} if (hidden := shadowed.get(entry.id)) else {}),
            }
            for entry in entries
        ]
        return Reply(as_json(workflows))

    @tool()
    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        """Start a session of a workflow, or inherit one by session_token. Returns session_token. With find:
        lists earlier work.
        """
        found = self.shared.found(params.find, params.session_token, TAKE_UP)
        if found is not None:
            return found
        if params.workflow_id is None:
            return self.shared.invalid(
                self.tools["start_session"], "Object missing required field `workflow_id`"
            )
        key = repeatable(self.ledger, "gated start_session", params.requestId, params, with_warning)
        if isinstance(key, Reply):
            return key
        calling = Calling("start_session", {"workflow": params.workflow_id[:128]})
        agent = params.agent_id or ""
        if params.session_token is None:
            return self.shared.start(calling, agent, params.workflow_id, key)
        self._check_workflow(params.session_token, params.workflow_id)
        joined = self.shared.join(calling, params.session_token, params.agent_id, call)
        assert joined is not None, "a token that was read leads to a session"
        return joined

    def _check_workflow(self, token: str, workflow_id: str) -> None:
        """Refuse an altered token, and one of another workflow (rules 6 and 17)."""
        head = self.ledger.head_of(self.ledger.read_token(token, "ses", "st", "nav"))
        loaded = self.ledger.library.load(workflow_id)
        loaded_id = workflow_id if isinstance(loaded, Diagnostic) else loaded.workflow.id
        if head.run.workflow_id in (workflow_id, loaded_id):
            return
        text = (
            f"Workflow mismatch: session was on '{head.run.workflow_id}' but call targets '{workflow_id}'. "
            "Start a new session for a different workflow."
        )
        raise Refused(failure("WORKFLOW_MISMATCH", text, f"Send workflow_id '{head.run.workflow_id}'."))

    @tool(idempotent=True)
    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome:
        """Leave the current activity, its steps done, and enter the next; returns it whole. The first is
        initialActivity. Refused while a required checkpoint is pending.
        """
        if not params.step_manifest and not params.variables:
            reread = self._read_again(params)
            if reread is not None:
                return reread
        entered = self.shared.enter_activity(params, call)
        if isinstance(entered, (Reply, Elicit, Wait)):
            return entered
        if isinstance(entered, NotEntered):
            return self._not_entered(entered, call)
        state, position = entered.decided.state, entered.progress.position
        if state.finished:
            body: dict[str, Json] = {"id": state.visit.left_to, **completed(position, state)}
            return self.shared.record_entry(entered, body)
        deliveries, definition = self.shared.sessions.deliveries, _definition(entered.activity)
        mark = digest_mark(digest_of(as_json(definition).encode()))
        if deliveries.holds(position, mark):
            body = _entered_again(position.plan, state, definition)
        else:
            body = _entered_body(position.plan, state, entered.activity, definition)
        if state.replies.remark is not None:
            body["user_note"] = remark_text(state.replies.remark)
        reply = self.shared.record_entry(entered, {**body, "digest": mark})
        deliveries.sent(position, mark)  # once it is recorded: a call that fails has told nothing
        return reply

    def _read_again(self, params: shared.NextActivity) -> Reply | None:
        """Return the current activity to an agent that names it and hands nothing in.

        None where the call is a move: to another activity, or back into this one if that is expected.
        """
        reading = self.shared.reading_call(params.session_token, Calling("next_activity"))
        if params.activity_id != reading.state.visit.activity:
            return None
        if reading.position.given_in not in (
            None,
            reading.state.visit.number,
        ):  # the call that entered it, sent again, is a repeat
            return None
        plan, state, activity = reading.position.plan, reading.state, reading.activity
        expected = None if state.finished else chosen_exit(plan, state)
        is_exit = expected is not None and expected.to == state.visit.activity
        if activity is None or state.finished or (is_exit and not pending_gates(plan, state)):
            return None
        told = reading.position.told(state)
        definition = _definition(activity)
        mark = digest_mark(digest_of(as_json(definition).encode()))
        self.shared.sessions.deliveries.sent(reading.position, mark)
        return reading.json_answer({**_entered_body(plan, told, activity, definition), "digest": mark})

    def _not_entered(self, entry: NotEntered, call: Call) -> Outcome:
        """Name every pending checkpoint with how to resolve it, unless another activity holds the jump."""
        progress, refusal = entry.progress, entry.refusal
        pending = pending_gates(progress.position.plan, evolved(progress.state, refusal.kept))
        is_here = refusal.code is Code.GATE_UNANSWERED and "left_out" not in refusal.about
        if not is_here or not pending:
            return of_refusal(refusal, words(refusal), progress.token)
        position = progress.position
        terms = terms_of(position.terms, call)
        through = {gate.id: asked_through(position.state, gate.id, terms, gate) for gate in pending}
        resolve = "Resolve each by calling respond_checkpoint with the current session_token:"
        if "inbox" in through.values():
            resolve = "They wait for the user:"
        choices = [
            f"- {gate.id}: {', or '.join(_ways_to_resolve(gate, by_user=through[gate.id] == 'inbox'))}"
            for gate in pending
        ]
        text = "\n".join([f"{sentence(refusal)} {resolve}", *choices])
        first = refusal.about.get("checkpoint") or pending[0].id
        ways: dict[str, Json] = dict.fromkeys(through.values(), True)
        next_action = words(replace(refusal, about={**ways, "checkpoint": first})).next_action
        about: dict[str, Json] = {"pending": [gate.id for gate in pending]}
        return failure(refusal.code.value, text, next_action, about, progress.token)

    @tool(idempotent=True)
    def get_checkpoint(self, params: p.GetCheckpoint, call: Call) -> Outcome:
        """A checkpoint's message and options, for the user; step_manifest claims the steps before it."""
        # Its question is put where it is due, or where the call claims the steps before it; else never.
        calling = Calling("get_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        reading = self.shared.reading_call(params.session_token, calling)
        gate = _named_gate(reading, params)
        if params.reask:
            return self._walk_to(params, gate, call)
        is_current = params.activity_id == reading.state.visit.activity
        if is_current:
            brings = bool(params.step_manifest or params.variables)
            if brings or is_due(reading.position, gate):
                return self._walk_to(params, gate, call)
        shape = {**presented_gate(reading, gate), "blocking": gate.blocking}
        opened = reading.state.visit.open
        if not is_current:
            shape["not_reached"] = ELSEWHERE
        elif opened is None or opened.gate != gate.id:
            shape["not_reached"] = NOT_REACHED
        else:
            terms = terms_of(reading.position.terms, call)
            how = how_to_answer(reading.position, reading.state, gate, opened.key, terms)
            return reading.json_answer({"checkpoint": shape, "next_action": how})
        return reading.json_answer({"checkpoint": shape})

    def _walk_to(self, params: p.GetCheckpoint, gate: Gate, call: Call) -> Outcome:
        """Claim the steps before a checkpoint with what the call brings, and put its question."""
        calling = Calling("get_checkpoint", {"checkpoint": gate.id})
        progress = self.shared.progress_call(params.session_token, calling, params.variables)
        progress.unread = call.unread
        claims = claims_of(params.step_manifest)
        if progress.is_stale:
            return self.shared.refuse_stale(progress)
        if (invalid := check_context(params.reask, "reask")) is not None:
            return failure("VALIDATION_ERROR", invalid.message, invalid.next_action)
        position = progress.position
        progress.request = {
            "checkpoint": gate.id,
            "answered": progress.state.visit.answered,
            "reask": params.reask,
        }
        progress.beside = beside(params, "session_token", "checkpoint_id")
        command = OpenCheckpoint(
            policy=GATED,
            now=progress.now,
            terms=terms_of(position.terms, call),
            gate=gate.id,
            claims=claims,
            variables=params.variables or {},
            decisions=position.decisions,
            client=call.client.name,
            reask=params.reask or {},
        )
        decided = decided_with_user(self.ledger, position, command, call)
        if isinstance(decided, (Elicit, Wait)):
            return decided
        if isinstance(decided, Refusal):
            progress.refuse(sentence(decided), decided.kept, claims)
            return of_refusal(decided, words(decided), progress.token)
        question = question_of(position.plan, decided.state, gate)
        shape = gate_shape(replace(gate, name=question.name, message=question.text, options=question.options))
        opened = decided.state.visit.open
        shape |= round_of(decided.state, opened.key) if opened else {}
        token, notices = progress.token_slot(decided), progress.notices(decided)
        body: dict[str, Json] = {"checkpoint": {**shape, "blocking": gate.blocking}, "session_token": token}
        if opened is not None:
            body["next_action"] = how_to_answer(position, decided.state, gate, opened.key, command.terms)
        for answer in (event for event in decided.events if isinstance(event, GateResolved)):
            if answer.gate == gate.id:  # the user has answered it where the run was before (rule 34)
                body |= {"resolved": True, **resolution(answer)}
        reply = json_reply(body, token, notices)
        return self.shared.record(progress, decided, reply, notices=notices, claims=claims)

    @tool(idempotent=True)
    def respond_checkpoint(self, params: p.RespondCheckpoint, call: Call) -> Outcome:
        """Answer a pending checkpoint with exactly one of option_id (the user's choice), auto_advance,
        condition_not_met. It claims the steps before it: send step_manifest. Effects are returned.
        """
        calling = Calling("respond_checkpoint", {"checkpoint": params.checkpoint_id[:128]})
        progress = self.shared.progress_call(params.session_token, calling, params.variables)
        progress.unread = call.unread
        claims = claims_of(params.step_manifest)
        position, progress.beside = progress.position, beside(params, "session_token")
        if progress.is_stale or progress.pointer.attempt > position.state.visit.answered:
            return self.shared.refuse_stale(progress)
        answered = self._answered_since(progress, params)
        if answered is not None:
            return answered
        instance = find_gate(position.plan, position.state, params.checkpoint_id)
        gate = instance.gate if instance is not None else None
        decided = self.shared.resolve(progress, gate, params.checkpoint_id, params, call, claims)
        if isinstance(decided, (Elicit, Wait)):
            return decided
        if isinstance(decided, Refusal):
            return self._answered_before(progress, params, decided, claims)
        answers = [event for event in decided.events if isinstance(event, GateResolved)]
        answer = next(event for event in reversed(answers) if event.gate == params.checkpoint_id)
        progress.request = _answering(answer, params, position.state.visit.answered + answers.index(answer))
        token = progress.token_slot(decided)
        notices = progress.notices(decided)
        asked_in = evolved(position.state, decided.events[: decided.events.index(answer)])
        body = _answered_body(position.plan, decided.state, answer, token, asked_in)
        reply = json_reply(body, token, notices)
        return self.shared.record(progress, decided, reply, notices=notices, claims=claims)

    def _answered_since(self, progress: SessionCall, params: p.RespondCheckpoint) -> Reply | None:
        """Answer a call whose token is older than an answer to its checkpoint in this visit (rule 13).

        It is a repeat, or it means a question that is answered; never does it answer a newer one.
        """
        seen, state = progress.pointer.attempt, progress.state
        if seen == state.visit.answered:
            return None
        for number, answer in numbered_answers(self.ledger, progress.position):
            if number >= seen and answer.gate == params.checkpoint_id:
                if repeats(answer, params):
                    return self._repeat(progress, params, number, answer)
                about = {"checkpoint": answer.gate, "option": answer.option, **round_of(state, answer.key)}
                refusal = Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about)
                progress.refuse(sentence(refusal))
                return of_refusal(refusal, words(refusal), progress.token)
        return None

    def _answered_before(
        self,
        progress: SessionCall,
        params: p.RespondCheckpoint,
        refusal: Refusal,
        claims: tuple[Claim, ...],
    ) -> Reply:
        """Return what was recorded if the same answer is sent again (rule 13)."""
        key = answered_already(refusal)
        answers = numbered_answers(self.ledger, progress.position) if key else []
        for number, answer in reversed(answers):
            if answer.key == key and repeats(answer, params):
                return self._repeat(progress, params, number, answer)
        progress.refuse(sentence(refusal), refusal.kept, claims)
        return of_refusal(refusal, words(refusal), progress.token)

    def _repeat(
        self, progress: SessionCall, params: p.RespondCheckpoint, number: int, answer: GateResolved
    ) -> Reply:
        progress.request = _answering(answer, params, number)
        state, token = progress.state, progress.token
        told = json_reply(_answered_body(progress.position.plan, state, answer, token, state), token)
        return self.shared.repeated(progress) or self.shared.told_again(progress, told)


def _named_gate(reading: ReadingCall, params: p.GetCheckpoint) -> Gate:
    """Return the checkpoint that is asked for; refuse an activity or a checkpoint that there is not."""
    activity = reading.workflow.activity(params.activity_id)
    if activity is None:
        known = ", ".join(activity.id for activity in reading.workflow.activities)
        text, fix = f"Activity not found: {params.activity_id}", f"Send one of these as activity_id: {known}."
        raise reading.refused("ACTIVITY_NOT_FOUND", text, fix)
    gates = {gate.id: gate for gate in gates_of(activity)}
    if params.checkpoint_id not in gates:
        text = f"Checkpoint not found: {params.checkpoint_id} in activity {activity.id}"
        fix = (
            f"Send one of these as checkpoint_id: {', '.join(gates)}." if gates else "It has no checkpoints."
        )
        raise reading.refused("CHECKPOINT_NOT_FOUND", text, fix)
    return gates[params.checkpoint_id]


def is_due(position: Position, gate: Gate) -> bool:
    """Say whether no step is left before the gate, and its question was not put yet."""
    need = position.awaited
    return position.state.visit.open is None and isinstance(need, NeedAnswer) and need.gate.id == gate.id


def _ways_to_resolve(gate: Gate, *, by_user: bool) -> Iterator[str]:
    if by_user:
        yield "the user's decision"
    else:
        yield f"option_id: {' | '.join(option.id for option in gate.options)}"
    if auto_advances(gate):
        yield f"auto_advance: true after {gate.auto_advance_ms} ms"
    if gate.condition is not None:
        yield "condition_not_met: true if its condition is false"


def _definition(activity: Activity) -> dict[str, Json]:
    """Return an activity as its file has it, with its exit where the file names none."""
    shape = activity_shape(activity)
    if "transitions" not in shape and "decisions" not in shape:
        shape["transitions"] = [{"to": "__terminal__", "isDefault": True}]
    return shape


def _entered_again(plan: Plan, state: RunState, definition: Mapping[str, Json]) -> dict[str, Json]:
    """Name an activity that the agent has read, with what is new in it: values, and what is pending."""
    body: dict[str, Json] = {"id": definition["id"], "unchanged": True, "next_action": READ_BEFORE}
    if values := dict(filling(as_json(definition), plan.scope(state.variables))):
        body["values"] = {**values}
    return {**body, **_ahead(plan, state, "pending_checkpoints")}


def _entered_body(
    plan: Plan, state: RunState, activity: Activity, definition: Mapping[str, Json]
) -> dict[str, Json]:
    """Return an activity whole, its variables filled in, with the checkpoints that are pending."""
    scope = plan.scope(state.variables)
    body = {name: filled_value(value, scope) for name, value in definition.items()}
    if wants_reports(activity, state):
        body["report"] = REPORT_STEPS
    return {**body, **_ahead(plan, state, "pending_checkpoints")}


def _ahead(plan: Plan, state: RunState, name: str) -> dict[str, Json]:
    """Return what stands before the next activity as the variables are now, and which one that is.

    Nothing is expected where the variables do not decide it.
    """
    scope, pending = plan.scope(state.variables), pending_gates(plan, state)
    idle = [gate.id for gate in pending if gate.condition is not None and not holds(gate.condition, scope)]
    body: dict[str, Json] = {name: [gate.id for gate in pending]}
    if idle:
        body["dismissible_checkpoints"] = list(idle)
    chosen = None if state.finished or state.visit.activity is None else chosen_exit(plan, state)
    return body if chosen is None else {**body, "expected_next": chosen.to}


def _answered_body(
    plan: Plan, state: RunState, answer: GateResolved, token: str, asked_in: RunState
) -> dict[str, Json]:
    named: dict[str, Json] = {"checkpoint_id": answer.gate, **round_of(asked_in, answer.key)}
    body: dict[str, Json] = {**named, "resolved": True, "session_token": token}
    return {**body, **_ahead(plan, state, "remaining_checkpoints"), **resolution(answer)}


def _answering(answer: GateResolved, call: p.RespondCheckpoint, number: int) -> dict[str, Json]:
    """Return what a repeated answer is known by; what is sent back is asked and answered again."""
    return {**answering(answer.key, call), "number": number}
