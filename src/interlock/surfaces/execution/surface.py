"""The seven tools of the execution contract, as data and handlers. A handler parses, calls, renders."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.engine.decide import decide
from interlock.core.run.commands import AcknowledgeStep, Terms
from interlock.core.run.outcomes import Notice, Refusal
from interlock.core.run.output import Output
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json
from interlock.ledger.attempt import Replayed
from interlock.ledger.errors import LedgerError, error_of, internal_error
from interlock.ledger.ledger import Ledger, note_attempt
from interlock.ledger.tokens.tokens import Kind, Pointer
from interlock.surfaces.arguments import Unfit, check_context, message_and_path, read_output
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.execution import params as p
from interlock.surfaces.execution.catalogue import described, listed
from interlock.surfaces.execution.errors import envelope, invalid, of_error, of_refusal
from interlock.surfaces.execution.questions import answered, question
from interlock.surfaces.execution.render import reply
from interlock.surfaces.execution.resuming import resumed
from interlock.surfaces.execution.tools import INSTRUCTIONS, template_of, tools
from interlock.surfaces.recorded import body_of, encoded, live, replayed
from interlock.surfaces.tool import Surface, Tool


class ExecutionSurface(Surface):
    """The execution surface."""

    name = "execution"
    instructions = INSTRUCTIONS

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.tools = {tool.name: tool for tool in tools(self)}

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        message, path = message_and_path(reason)
        where = f" ({path})" if path else ""
        fix = "Correct the arguments and call again."
        return invalid(f"{tool.name}: {message}{where}.", fix, path, template_of(tool))

    def unknown(self, name: str) -> Outcome:
        known = ", ".join(self.tools)
        return envelope("NOT_FOUND", f"There is no tool “{name}” here.", f"Use one of: {known}.")

    def expected(self, error: Exception) -> Outcome | None:
        known = error_of(error)
        return of_error(known) if known is not None else None

    def failed(self, tool: Tool, error: Exception, reference: str) -> Outcome:
        return of_error(internal_error(error, reference))

    def idle(self) -> None:
        self.ledger.idle()

    def close(self) -> None:
        self.ledger.close()

    def list_workflows(self, params: p.ListWorkflows, call: Call) -> Outcome:
        return listed(self.ledger.library.listing())

    def inspect_workflow(self, params: p.InspectWorkflow, call: Call) -> Outcome:
        loaded = self.ledger.library.load(params.workflowId)
        return _not_loaded(loaded) if isinstance(loaded, Diagnostic) else described(loaded, params.mode)

    def start_workflow(self, params: p.StartWorkflow, call: Call) -> Outcome:
        unfit = check_context(params.context)
        if unfit:
            return _unfit(unfit)
        loaded = self.ledger.library.load(params.workflowId)
        if isinstance(loaded, Diagnostic):
            return _not_loaded(loaded)
        within = self.ledger.read_token(params.sessionToken, "sst") if params.sessionToken else None
        if isinstance(within, LedgerError):
            return of_error(within)
        start = self.ledger.start(loaded, params.context or {}, within=within)
        if isinstance(start, LedgerError):
            return of_error(start)
        answer = encoded(reply(start.view))
        self.ledger.record_start(start)
        return live(answer, self.ledger, start.handle)

    def continue_workflow(self, params: p.ContinueWorkflow, call: Call) -> Outcome:
        if params.ackToken is None:
            return self._rehydrate(params)
        unfit, output = check_context(params.context), read_output(params.output)
        if unfit:
            return _unfit(unfit)
        if isinstance(output, Unfit):
            return _unfit(output)
        ack = self._pointer(params.stateToken, params.ackToken, "ack")
        if isinstance(ack, LedgerError):
            return of_error(ack)
        attempt = self.ledger.attempt(ack, ack.attempt, {"context": params.context, "output": params.output})
        match attempt:
            case LedgerError():
                return of_error(attempt)
            case Replayed():
                answer = replayed(attempt, self.ledger)
                return _with_replay_note(answer) if attempt.differs else answer
        position = attempt.position
        command = AcknowledgeStep(
            policy=EXECUTION,
            now=attempt.now,
            terms=self._terms(call),
            output=output,
            variables={**position.kept, **(params.context or {})},
            decisions={**position.decisions, **answered(call, position)},
            client=call.client.name,
        )
        if call.client.can_elicit and not call.asked:
            ask = question(position, command)  # a call that only asks the user is not an attempt (rule 10)
            if ask is not None:
                return ask
        decided = decide(attempt.plan, attempt.state, command)
        if isinstance(decided, Refusal):
            return of_refusal(decided)
        answer = encoded(reply(attempt.view(decided, output)))
        attempt.record(
            decided,
            body_of(answer),
            surface="execution",
            output=output,
            variables=command.variables,
        )
        return live(answer, self.ledger, ack.handle)

    def _terms(self, call: Call) -> Terms:
        """Where the user was asked, only the user's answer counts: a decline is not for the agent to fill."""
        terms = self.ledger.settings.terms
        return replace(terms, decisions="user") if call.asked is not None else terms

    def _pointer(self, state_token: str, token: str, kind: Kind) -> Pointer | LedgerError:
        """Check a state token and the token beside it, which must belong to the same node."""
        state = self.ledger.read_token(state_token, "st")
        if isinstance(state, LedgerError):
            return state
        beside = self.ledger.read_token(token, kind)
        if isinstance(beside, LedgerError) or (beside.handle, beside.node) == (state.handle, state.node):
            return beside
        which = "another run" if beside.handle != state.handle else "another step of this session"
        return LedgerError(
            "TOKEN_SCOPE_MISMATCH",
            f"This {kind} token belongs to {which}, not to the stateToken beside it.",
            "Use the tokens of one and the same response together.",
        )

    def _rehydrate(self, params: p.ContinueWorkflow) -> Outcome:
        """Show the pending step again; any surface's token of the run will do (rule 34)."""
        position = self.ledger.open(params.stateToken, "st", "nav", "ses")
        if isinstance(position, LedgerError):
            return of_error(position)
        view = self.ledger.rehydrate(position)
        notices = [*view.notices, *self.ledger.drift.notices(view.run)]
        if params.output is not None or params.context is not None:
            text = "output and context were ignored: without ackToken nothing is recorded."
            notices.append(Notice("ARGUMENTS_IGNORED", text))
        answer = encoded(reply(replace(view, notices=tuple(notices))))
        return live(answer, self.ledger, position.handle)

    def checkpoint_workflow(self, params: p.CheckpointWorkflow, call: Call) -> Outcome:
        output = read_output(params.output)
        if isinstance(output, Unfit):
            return _unfit(output)
        if not output.notes and not output.artifacts:
            fix = "Send output.notesMarkdown or output.artifacts."
            return invalid("There is nothing to keep in output.", fix, "output")
        if params.sessionToken is not None:
            return self._note(params.sessionToken, output)
        if params.stateToken is None or params.checkpointToken is None:
            fix = "Send stateToken and checkpointToken of one response, or a sessionToken."
            return invalid("A checkpoint needs to know where it belongs.", fix, "stateToken")
        pointer = self._pointer(params.stateToken, params.checkpointToken, "chk")
        if isinstance(pointer, LedgerError):
            return of_error(pointer)
        attempt = self.ledger.attempt(pointer, note_attempt(pointer.attempt), {"output": params.output})
        match attempt:
            case LedgerError():
                return of_error(attempt)
            case Replayed():
                answer = replayed(attempt, self.ledger)
                return _with_replay_note(answer) if attempt.differs else answer
        answer = encoded(reply(attempt.unmoved(output)))
        attempt.save_notes(body_of(answer), output)
        return live(answer, self.ledger, pointer.handle)

    def _note(self, token: str, output: Output) -> Outcome:
        pointer = self.ledger.read_token(token, "sst")
        if isinstance(pointer, LedgerError):
            return of_error(pointer)
        kept = self.ledger.note(pointer, output)
        if isinstance(kept, LedgerError):
            return of_error(kept)
        body: dict[str, Json] = {"kind": "ok", "sessionToken": token, "session": {"sessionId": kept}}
        return Reply(f"Kept in session {kept}.\n\nsessionToken: {token}", body)

    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        session_id, handle = self.ledger.start_session(params.title or "Untitled work")
        token = self.ledger.mint("sst", handle)
        text = (
            f"Session {session_id} is open. Pass sessionToken to start_workflow or checkpoint_workflow."
            f"\n\nsessionToken: {token}"
        )
        session: dict[str, Json] = {"sessionId": session_id}
        return Reply(text, {"kind": "ok", "sessionToken": token, "session": session})

    def resume_session(self, params: p.ResumeSession, call: Call) -> Outcome:
        return resumed(self.ledger, params.query or "", params.resumeRef)


def _with_replay_note(recorded: Reply) -> Reply:
    """A replay that was asked for something else says so, outside the recorded payload (rule 7)."""
    note: Mapping[str, Json] = {
        "replayed": True,
        "ignored": ["output", "context"],
        "message": "This ackToken was used before; the recorded response is returned and this call's output "
        "and context were ignored. To try another way, call without ackToken: its fresh ackToken forks.",
    }
    return replace(recorded, meta={**recorded.meta, "interlock/replay": note})


def _unfit(unfit: Unfit) -> Reply:
    return invalid(unfit.message, unfit.suggestion, unfit.path, more=unfit.details)


def _not_loaded(diagnostic: Diagnostic) -> Reply:
    return envelope(
        "NOT_FOUND", diagnostic.message, diagnostic.next_action or "Call list_workflows for the ids."
    )
