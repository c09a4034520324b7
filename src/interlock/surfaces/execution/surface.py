"""The seven tools of the execution contract, as data and handlers. A handler parses, calls, renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic, absence, located
from interlock.core.engine.acknowledge import kept_when_blocked, resolves_gaps
from interlock.core.run.commands import AbandonRun, AcknowledgeStep
from interlock.core.run.notices import Notice
from interlock.core.run.outcomes import Decided, Refusal, run_abandoned
from interlock.core.run.output import Output
from interlock.core.run.reasons import BlockerCode
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json
from interlock.ledger.attempt import Attempt
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger, note_attempt
from interlock.ledger.repeatable import Replayed
from interlock.ledger.tokens.slots import slot
from interlock.ledger.tokens.tokens import Kind
from interlock.surfaces.arguments import (
    InvalidArgument,
    check_context,
    correction,
    decoding_error,
    read_output,
)
from interlock.surfaces.call import Call, Elicit, Outcome, Reply, Wait
from interlock.surfaces.elicitation import decided_with_user, terms_of
from interlock.surfaces.execution import params as p
from interlock.surfaces.execution.catalogue import described, listing_reply
from interlock.surfaces.execution.errors import envelope, invalid, of_error, of_refusal, template_of
from interlock.surfaces.execution.instructions import INSTRUCTIONS, PROMPTS
from interlock.surfaces.execution.render import answer, kept_reply
from interlock.surfaces.execution.result_schema import RESULT
from interlock.surfaces.execution.resuming import resumed
from interlock.surfaces.ledger_surface import LedgerSurface
from interlock.surfaces.recorded import body_of, live, repeatable, replayed
from interlock.surfaces.shared.workflow_filter import ListWorkflows
from interlock.surfaces.tool import Tool, tool, tools_of

USED_BEFORE = (
    "This call was made before with other arguments: its recorded answer follows, and what this call sent "
    "beside the tokens was not read. To try another way, call continue_workflow with only stateToken: its "
    "fresh ackToken forks."
)
NOTED_BEFORE = (
    "This checkpointToken was used before: its recorded answer follows, and the output of this call was not "
    "kept. To keep more notes, use the checkpointToken below."
)
STILL_WAITING = Notice(
    "STILL_WAITING",
    "The user has not decided yet. Tell the user what waits, then call again with waitSeconds.",
)


class ExecutionSurface(LedgerSurface):
    """The execution surface."""

    name = "execution"
    instructions = INSTRUCTIONS
    prompt_texts = PROMPTS

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.tools = tools_of(self)

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        error = decoding_error(reason)
        next_action = correction(error, tool.argument_schema())
        return invalid(f"{tool.name}: {error}.", next_action, error.path or error.field, template_of(tool))

    def error_reply(self, error: LedgerError) -> Reply:
        return of_error(error)

    @tool(read_only=True, uses_store=False)
    def list_workflows(self, params: ListWorkflows, call: Call) -> Outcome:
        """List the workflows and routines that can be started."""
        return listing_reply(self.ledger.library.listing(), params)

    @tool(read_only=True, uses_store=False)
    def inspect_workflow(self, params: p.InspectWorkflow, call: Call) -> Outcome:
        """Show what a workflow is for, and with mode preview its steps, before starting it. Runs nothing."""
        loaded = self.ledger.library.load(params.workflowId)
        return _not_loaded(loaded) if isinstance(loaded, Diagnostic) else described(loaded, params.mode)

    @tool(output_schema=RESULT)
    def start_workflow(self, params: p.StartWorkflow, call: Call) -> Outcome:
        """Start a run. Returns the first pending step and its tokens. Do only that step, then call
        continue_workflow. Put the goal or ticket into context (title, goal, ticketId).
        """
        key = repeatable(self.ledger, "start_workflow", params.requestId, params, told_before)
        if isinstance(key, Reply):
            return key
        invalid_context = check_context(params.context)
        if invalid_context is not None:
            return _argument_reply(invalid_context)
        loaded = self.ledger.library.load(params.workflowId)
        if isinstance(loaded, Diagnostic):
            return _not_loaded(loaded)
        within = self.ledger.read_token(params.sessionToken, "sst") if params.sessionToken else None
        start = self.ledger.start(loaded, params.context or {}, within=within)
        response = answer(replace(start.view, terms=terms_of(start.view.terms, call)))
        traced = start.disclosed("start_workflow", call.client.name, start.view.notices)
        self.ledger.record_start(start, response, key, traced)
        return live(response, self.ledger, start.handle, start.commit.rows.lines)

    @tool(idempotent=True, output_schema=RESULT)
    def continue_workflow(self, params: p.ContinueWorkflow, call: Call) -> Outcome:
        """With ackToken: the pending step is done; records output and returns the next step. Repeating the
        same tokens returns the same answer and advances nothing. Without ackToken: shows the pending step and
        a recap again and changes nothing; use it after a rewind or when you lost your place. An answer that
        says BLOCKED says what is missing: call again with the ackToken in it. Stop when the answer says that
        the workflow is complete.
        """
        if params.ackToken is None:
            return self._rehydrate(params, call)
        invalid_context = check_context(params.context) or check_context(params.reask, "reask")
        output = read_output(params.output)
        if invalid_context is not None:
            return _argument_reply(invalid_context)
        if isinstance(output, InvalidArgument):
            return _argument_reply(output)
        request: dict[str, Json] = {"output": params.output, "context": params.context}
        if params.abandon:
            request["abandon"] = params.abandon
        if params.reask:
            request["reask"] = params.reask
        attempt = self._attempt(params.stateToken, params.ackToken, "ack", request)
        if isinstance(attempt, Reply):
            return attempt
        terms = terms_of(attempt.position.terms, call)
        variables = {**attempt.position.kept, **(params.context or {})}
        command = AcknowledgeStep(
            policy=EXECUTION,
            now=attempt.now,
            terms=terms,
            output=output,
            variables=variables,
            decisions=attempt.position.decisions,
            client=call.client.name,
            reask=params.reask or {},
        )
        decided = self._decided(attempt, command, params, call)
        if not isinstance(decided, Decided):
            return of_refusal(decided) if isinstance(decided, Refusal) else decided
        view = attempt.view(decided, terms)
        response = answer(view)
        reached = attempt.plan, decided.state, decided.awaited
        kept = kept_when_blocked(*reached, variables, terms)[0] if decided.blockers else None
        attempt.record(
            decided,
            response,
            surface="execution",
            notices=view.notices,
            output=output,
            variables=kept,
        )
        return live(response, self.ledger, attempt.position.handle, attempt.lines)

    def _decided(
        self, attempt: Attempt, command: AcknowledgeStep, params: p.ContinueWorkflow, call: Call
    ) -> Decided | Refusal | Elicit | Wait:
        """Abandon the run, or acknowledge the pending item unless the user is to be asked first."""
        if params.abandon is not None:
            why, sent = params.abandon.strip(), params.context or {}
            abandon = AbandonRun(attempt.now, "agent", call.client.name, why, sent)
            return attempt.position.decide_unasked(abandon)
        decided = decided_with_user(self.ledger, attempt.position, command, call)
        if isinstance(decided, (Elicit, Wait)):
            return decided  # a call that only asks the user is not an attempt (rule 10)
        if isinstance(decided, Refusal) or not (params.waitSeconds and waits_for_the_user(decided)):
            return decided
        if call.may_wait:
            return Wait(params.waitSeconds)
        return replace(decided, notices=decided.notices.plus([STILL_WAITING]))

    def _attempt(
        self, state_token: str, token: str, kind: Kind, request: Mapping[str, Json]
    ) -> Attempt | Reply:
        """Open an attempt; a repeated one returns its recorded response (rule 7)."""
        pointer = self.ledger.read_pair(state_token, token, kind)
        number = pointer.attempt if kind == "ack" else note_attempt(pointer.attempt)
        attempt = self.ledger.attempt(pointer, number, request)
        if not isinstance(attempt, Replayed):
            return attempt
        reply = replayed(attempt, self.ledger)
        message = USED_BEFORE if kind == "ack" else NOTED_BEFORE
        return told_before(reply, message, [*request]) if attempt.differs else reply

    def _rehydrate(self, params: p.ContinueWorkflow, call: Call) -> Outcome:
        """Show the pending step again; any surface's token of the run will do (rule 34)."""
        position = self.ledger.taken_up(params.stateToken)
        view = replace(self.ledger.rehydrate(position), terms=terms_of(position.terms, call))
        if (params.output, params.context, params.reask, params.abandon) != (None, None, None, None):
            text = "output, context, reask and abandon were ignored: without ackToken nothing is recorded."
            view = replace(view, notices=view.notices.plus([Notice("ARGUMENTS_IGNORED", text)]))
        return live(answer(view), self.ledger, position.handle, position.lines)

    @tool(idempotent=True)
    def checkpoint_workflow(self, params: p.CheckpointWorkflow, call: Call) -> Outcome:
        """Keep notes of work in progress without advancing, so that they survive a rewind. Needs stateToken
        and checkpointToken of one response, or a sessionToken.
        """
        output = read_output(params.output)
        if isinstance(output, InvalidArgument):
            return _argument_reply(output)
        if not output.notes and not output.artifacts:
            next_action = "Send output.notesMarkdown or output.artifacts."
            return invalid("There is nothing to keep in output.", next_action, "output")
        tokens = (params.stateToken, params.checkpointToken)
        if params.sessionToken is not None and tokens == (None, None):
            return self._note(params.sessionToken, output)
        if params.stateToken is None or params.checkpointToken is None or params.sessionToken is not None:
            next_action = "Send stateToken and checkpointToken of one response, or a sessionToken."
            return invalid("Notes belong to a step or to a session.", next_action, "stateToken")
        attempt = self._attempt(params.stateToken, params.checkpointToken, "chk", {"output": params.output})
        if isinstance(attempt, Reply):
            return attempt
        if attempt.state.abandoned is not None:
            return of_refusal(run_abandoned(attempt.state.abandoned))
        if attempt.state.finished and resolves_gaps(output):
            return self._resolve_gaps(attempt, output, call)
        response = body_of(kept_reply(attempt.unmoved(output, terms_of(attempt.position.terms, call))))
        attempt.save_notes(response, output)
        return live(response, self.ledger, attempt.position.handle, attempt.lines)

    def _resolve_gaps(self, attempt: Attempt, output: Output, call: Call) -> Outcome:
        """Close gaps of a run that has ended; there is no step any more to close them with."""
        terms = terms_of(attempt.position.terms, call)
        command = AcknowledgeStep(EXECUTION, attempt.now, terms, output)
        decided = attempt.position.decide_unasked(command)
        if isinstance(decided, Refusal):
            return of_refusal(decided)
        view = attempt.view(decided, terms)
        response = answer(view)
        attempt.record(decided, response, surface="execution", notices=view.notices, output=output)
        return live(response, self.ledger, attempt.position.handle, attempt.lines)

    def _note(self, token: str, output: Output) -> Outcome:
        pointer = self.ledger.read_token(token, "sst")
        session_id = self.ledger.note(pointer, output)
        body: dict[str, Json] = {"kind": "ok", "sessionToken": token, "session": {"sessionId": session_id}}
        return Reply(f"Kept in session {session_id}.\n\nsessionToken: {token}", body)

    @tool()
    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        """Open a session for notes before any workflow is started."""
        key = repeatable(self.ledger, "start_session", params.requestId, params, told_before)
        if isinstance(key, Reply):
            return key
        new, token = self.ledger.start_session(params.title or "Untitled work"), slot("sst", 0)
        text = (
            f"Session {new.session_id} is open. Pass sessionToken to start_workflow or checkpoint_workflow."
            f"\n\nsessionToken: {token}"
        )
        session: dict[str, Json] = {"sessionId": new.session_id}
        response = body_of(Reply(text, {"kind": "ok", "sessionToken": token, "session": session}))
        self.ledger.record_session(new, response, key)
        return live(response, self.ledger, new.handle, {})

    @tool(read_only=True)
    def resume_session(self, params: p.ResumeSession, call: Call) -> Outcome:
        """Find earlier work in a new chat, by words or id. Returns tokens to go on with at once."""
        return resumed(self.ledger, params.query or "", params.resumeRef, call)


def told_before(reply: Reply, message: str, ignored: Sequence[str] = ()) -> Reply:
    """Say before a recorded answer that something else was sent; the note stays outside of its payload."""
    note: dict[str, Json] = {"replayed": True, "ignored": [*ignored], "message": message}
    return replace(reply, text=f"{message}\n\n{reply.text}", meta={**reply.meta, "interlock/replay": note})


def waits_for_the_user(decided: Decided) -> bool:
    """Tell whether nothing but the user's own decision is missing."""
    codes = {blocker.code for blocker in decided.blockers}
    return codes == {BlockerCode.USER_ONLY_DEPENDENCY}


def _argument_reply(error: InvalidArgument) -> Reply:
    return invalid(error.message, error.next_action, error.path, more=error.details)


def _not_loaded(diagnostic: Diagnostic) -> Reply:
    """Answer for a workflow that does not exist, or whose file has errors: file, line and code."""
    if diagnostic.code != ABSENT:
        next_action = f"{diagnostic.next_action}; the author of the file must fix it."
        return envelope("VALIDATION_ERROR", located(diagnostic), next_action)
    return envelope("NOT_FOUND", absence(diagnostic), "Call list_workflows for the ids.")
