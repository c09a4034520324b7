"""The seven tools of the execution contract, as data and handlers. A handler parses, calls, renders."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.run.commands import AcknowledgeStep, Terms
from interlock.core.run.outcomes import Notice, Refusal
from interlock.core.run.output import Output
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError, error_of
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Answered, Position, Target, remembered
from interlock.ledger.tokens.tokens import Kind, Pointer
from interlock.surfaces.arguments import Unfit, check_context, read_output
from interlock.surfaces.execution import params as p
from interlock.surfaces.execution.catalogue import described, listed
from interlock.surfaces.execution.errors import envelope, invalid, of_error, of_refusal
from interlock.surfaces.execution.questions import answered, question
from interlock.surfaces.execution.render import answer
from interlock.surfaces.execution.resuming import resumed
from interlock.surfaces.execution.tools import INSTRUCTIONS, template_of, tools
from interlock.surfaces.tool import Ask, Call, Outcome, Reply, Surface, Tool, recorded_reply


class ExecutionSurface(Surface):
    """The surface. `without` names the optional tools that the user switched off."""

    name = "execution"
    instructions = INSTRUCTIONS

    def __init__(self, ledger: Ledger, without: frozenset[str] = frozenset()) -> None:
        self.ledger = ledger
        self.tools = {tool.name: tool for tool in tools(self) if tool.name not in without}

    def invalid(self, tool: Tool, diagnostic: str) -> Outcome:
        message, _, target = diagnostic.partition(" - at `$")
        path = target.rstrip("`").lstrip(".")
        where = f" ({path})" if path else ""
        fix = "Correct the arguments and call again."
        return invalid(f"{tool.name}: {message}{where}.", fix, path, template_of(tool))

    def unknown(self, name: str) -> Outcome:
        known = ", ".join(self.tools)
        return envelope("NOT_FOUND", f"There is no tool “{name}” here.", f"Use one of: {known}.")

    def failed(self, tool: Tool, error: Exception) -> Outcome:
        return of_error(error_of(error))

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
        within = self.ledger.open(params.sessionToken, "sst") if params.sessionToken else None
        if isinstance(within, LedgerError):
            return of_error(within)
        return _reply(self.ledger.start_run(loaded, params.context or {}, answer, within=within))

    def continue_workflow(self, params: p.ContinueWorkflow, call: Call) -> Outcome:
        if params.ackToken is None:
            return self._rehydrate(params)
        unfit, output = check_context(params.context), read_output(params.output)
        if unfit:
            return _unfit(unfit)
        if isinstance(output, Unfit):
            return _unfit(output)
        target = self.ledger.open(params.stateToken, "st")
        if isinstance(target, LedgerError):
            return of_error(target)
        ack = self._beside(target, params.ackToken, "ack")
        if isinstance(ack, LedgerError):
            return of_error(ack)
        request: dict[str, Json] = {"context": params.context, "output": params.output}
        build = self._acknowledging(params, output, call)
        asked = self._asked(target, ack.attempt, build) if call.client.can_elicit and not call.asked else None
        if asked is not None:
            return asked
        return _reply(self.ledger.advance(target, ack.attempt, request, build, answer, output))

    def _terms(self, call: Call) -> Terms:
        """Where the user was asked, only the user's answer counts: a decline is not for the agent to fill."""
        terms = self.ledger.settings.terms
        return replace(terms, decisions="user") if call.asked is not None else terms

    def _asked(
        self, target: Target, attempt: int, build: Callable[[Position], AcknowledgeStep]
    ) -> Ask | None:
        """A call that only asks the user is not an attempt: nothing is recorded (rule 10)."""
        with self.ledger.store.reading() as reader:
            if reader.attempt(target.session_id, target.node, attempt) is not None:
                return None
            at = self.ledger.position(reader, target.session_id, target.node, attempt)
        return None if isinstance(at, LedgerError) else question(at, build(at))

    def _acknowledging(
        self, params: p.ContinueWorkflow, output: Output, call: Call
    ) -> Callable[[Position], AcknowledgeStep]:
        def build(at: Position) -> AcknowledgeStep:
            return AcknowledgeStep(
                policy=EXECUTION,
                now=self.ledger.clock(),
                terms=self._terms(call),
                output=output,
                variables=remembered(at, params.context or {}),
                decisions={**at.decisions, **answered(call, at)},
                client=call.client.name,
            )

        return build

    def _beside(self, target: Target, token: str, kind: Kind) -> Pointer | LedgerError:
        """Open a token that must belong to the same node as the state token."""
        other = self.ledger.point(token, kind)
        if isinstance(other, LedgerError) or (other.handle, other.node) == (target.handle, target.node):
            return other
        which = "another run" if other.handle != target.handle else "another step of this session"
        return LedgerError(
            "TOKEN_SCOPE_MISMATCH",
            f"This {kind} token belongs to {which}, not to the stateToken beside it.",
            "Use the tokens of one and the same response together.",
        )

    def _rehydrate(self, params: p.ContinueWorkflow) -> Outcome:
        """Any surface's token of the run will do here (rule 34)."""
        target = self.ledger.open(params.stateToken, "st", "nav", "ses")
        if isinstance(target, LedgerError):
            return of_error(target)
        view = self.ledger.rehydrate(target)
        if isinstance(view, LedgerError):
            return of_error(view)
        notices = [*view.notices, *self.ledger.drift(view.run)]
        if params.output is not None or params.context is not None:
            text = "output and context were ignored: without ackToken nothing is recorded."
            notices.append(Notice("ARGUMENTS_IGNORED", text))
        body = answer(replace(view, notices=tuple(notices)))
        return _reply(Answered(self.ledger.filled(body, target.handle)))

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
        target = self.ledger.open(params.stateToken, "st")
        if isinstance(target, LedgerError):
            return of_error(target)
        beside = self._beside(target, params.checkpointToken, "chk")
        if isinstance(beside, LedgerError):
            return of_error(beside)
        request: dict[str, Json] = {"output": params.output}
        return _reply(self.ledger.checkpoint(target, beside.attempt, request, answer, output))

    def _note(self, token: str, output: Output) -> Outcome:
        target = self.ledger.open(token, "sst")
        if isinstance(target, LedgerError):
            return of_error(target)
        kept = self.ledger.note(target, output)
        if isinstance(kept, LedgerError):
            return of_error(kept)
        body: dict[str, Json] = {"kind": "ok", "sessionToken": token, "session": {"sessionId": kept}}
        return Reply(f"Kept in session {kept}.\n\nsessionToken: {token}", body)

    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        target = self.ledger.start_session(params.title or "Untitled work")
        token = self.ledger.mint("sst", target.handle)
        text = (
            f"Session {target.session_id} is open. Pass sessionToken to start_workflow "
            "or checkpoint_workflow."
            f"\n\nsessionToken: {token}"
        )
        session: dict[str, Json] = {"sessionId": target.session_id}
        return Reply(text, {"kind": "ok", "sessionToken": token, "session": session})

    def resume_session(self, params: p.ResumeSession, call: Call) -> Outcome:
        return resumed(self.ledger, params.query or "", params.resumeRef)


def _reply(outcome: Answered | Refusal | LedgerError) -> Outcome:
    match outcome:
        case Answered():
            reply = recorded_reply(outcome.body)
            return _with_replay_note(reply) if outcome.differs else reply
        case Refusal():
            return of_refusal(outcome)
        case LedgerError():
            return of_error(outcome)


def _with_replay_note(reply: Reply) -> Reply:
    """A replay that was asked for something else says so, outside the recorded payload (rule 7)."""
    note: Mapping[str, Json] = {
        "replayed": True,
        "ignored": ["output", "context"],
        "message": "This ackToken was used before; the recorded response is returned and this call's output "
        "and context were ignored. To try another way, call without ackToken: its fresh ackToken forks.",
    }
    return replace(reply, meta={**reply.meta, "interlock/replay": note})


def _unfit(unfit: Unfit) -> Reply:
    return invalid(unfit.message, unfit.suggestion, unfit.path, more=unfit.details)


def _not_loaded(diagnostic: Diagnostic) -> Reply:
    return envelope(
        "NOT_FOUND", diagnostic.message, diagnostic.next_action or "Call list_workflows for the ids."
    )
