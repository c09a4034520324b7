"""The navigation tools as handlers: a handler parses, calls, renders; reading is in `reading`."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.engine.evolve import evolved
from interlock.core.engine.paths.exits import entry_activities
from interlock.core.run.events import GateResolved
from interlock.core.run.notices import Notice, Notices
from interlock.core.run.outcomes import Refusal
from interlock.core.run.output import Output
from interlock.core.run.surface_policy import NAVIGATION
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.repeatable import Replayed, start_key
from interlock.ledger.runs.position import Position, tip_of
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.arguments import (
    InvalidArgument,
    check_context,
    correction,
    decoding_error,
    missing_field,
    read_output,
)
from interlock.surfaces.briefs import brief_fields
from interlock.surfaces.call import Call, Elicit, Outcome, Refused, Reply, Wait
from interlock.surfaces.elicitation import decided_with_user, terms_of
from interlock.surfaces.ledger_surface import LedgerSurface
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.actions import (
    attempt_of,
    command_of,
    done_message,
    identity_of,
    missing_parameters,
    request_of,
    unread_parameters,
)
from interlock.surfaces.navigation.errors import code_of, failure, not_found, not_loaded, of_error, words
from interlock.surfaces.navigation.instructions import INSTRUCTIONS, PROMPTS
from interlock.surfaces.navigation.reading import CatalogueTools
from interlock.surfaces.navigation.render import (
    Situation,
    body_reply,
    completed,
    encoded_reply,
    open_checkpoint,
    recorded,
    response_body,
    situation_line,
)
from interlock.surfaces.navigation.situations import run_pointer, situation_at, situation_of, state_pointer
from interlock.surfaces.navigation.texts import Texts
from interlock.surfaces.recorded import STARTED_BEFORE
from interlock.surfaces.shared.found_work import found_fields
from interlock.surfaces.tool import Tool, tool, tools_of

TAKE_UP = "Call nav_situation with the state of the candidate that is meant."


NEW_BRANCH = Notice(
    "NEW_BRANCH",
    "The run had gone on from this state before: this action has begun a new branch, without what was done "
    "on the other one. To go on with that one, send other_branch_state.",
)
SENT_BEFORE = Notice(
    "SENT_BEFORE",
    "This action was taken from this state before: this is its recorded answer. What you sent differently "
    "this time (output, variables, note) was not read.",
)


class NavigationSurface(LedgerSurface):
    """The navigation surface."""

    name = "navigation"
    instructions = INSTRUCTIONS
    prompt_texts = PROMPTS

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.reading = CatalogueTools(ledger.library)
        self.texts = Texts(ledger.library)
        self.tools = tools_of(self, self.reading, self.texts)

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        error = decoding_error(reason)
        next_action = correction(error, tool.argument_schema())
        return failure("INVALID_PARAMETERS", f"{tool.name}: {error}", next_action)

    def error_reply(self, error: LedgerError) -> Reply:
        return of_error(error)

    @tool()
    def nav_start(self, params: p.NavStart, call: Call) -> Outcome:
        """Start a workflow (workflow_id), or list earlier work (find)."""
        if params.find is not None:
            found = found_fields(self.ledger, params.find, "nav", "state", TAKE_UP)
            return body_reply({"success": True, **found})
        if params.workflow_id is None:
            return self.invalid(self.tools["nav_start"], missing_field("workflow_id"))
        key = start_key(self.ledger, "nav_start", params.requestId, params)
        if isinstance(key, Replayed):
            return self._replayed(key, Notice("SENT_BEFORE", STARTED_BEFORE))
        variables = params.initial_variables or {}
        invalid_variables = check_context(variables, "initial_variables")
        if invalid_variables is not None:
            return _argument_reply(invalid_variables)
        loaded = self.ledger.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        parent = None
        if params.parent_state is not None:
            parent = self.ledger.onward(state_pointer(self.ledger, params.parent_state))
        known = entry_activities(loaded.workflow)
        if params.activity_id is not None and params.activity_id not in known:
            text = f"A run of '{loaded.workflow.id}' cannot begin with activity '{params.activity_id}'"
            return not_found("ACTIVITY_NOT_FOUND", text, known)
        start = self.ledger.start(
            loaded, variables, policy=NAVIGATION, parent=parent, activity=params.activity_id
        )
        view = start.view
        where = f" at activity '{view.state.visit.activity}'" if view.state.visit.activity else ""
        message = f"Started workflow '{view.plan.workflow.name}'{where}"
        response = recorded(situation_of(self.ledger, view, {}, call), message)
        traced = start.disclosed("nav_start", call.client.name, view.notices)
        self.ledger.record_start(start, response, key, traced)
        return encoded_reply(self.ledger.filled(response, start.handle, start.commit.rows.lines))

    @tool(read_only=True)
    def nav_situation(self, params: p.NavState, call: Call) -> Outcome:
        """Show the situation again; takes the token of any surface."""
        position, situation = self._located(params.state, call)
        with self.ledger.store.reading() as reader:
            brief = brief_fields(self.ledger.brief(reader, position))
        body = {**response_body(situation, situation_line(situation)), "brief": brief}
        return encoded_reply(self.ledger.filled(msgspec.json.encode(body), situation.handle, position.lines))

    @tool(read_only=True)
    def nav_checkpoint(self, params: p.NavState, call: Call) -> Outcome:
        """Show the checkpoint that waits for the user."""
        position, situation = self._located(params.state, call)
        checkpoint = open_checkpoint(situation)
        nothing = "No checkpoint is currently blocking progress"
        message = nothing if checkpoint is None else f"Checkpoint: {checkpoint['message']}"
        body = {"active": checkpoint is not None, **response_body(situation, message)}
        return encoded_reply(self.ledger.filled(msgspec.json.encode(body), situation.handle, position.lines))

    def _located(self, token: str, call: Call) -> tuple[Position, Situation]:
        pointer = run_pointer(self.ledger, token)
        position = self.ledger.onward(pointer)
        situation = situation_at(self.ledger, position, call)
        if pointer.kind == "nav":
            # The state stays the one that its actions are recorded under, so that a repeat is known (rule 9).
            situation = replace(situation, view=replace(situation.view, node=pointer.node))
        return position, situation

    @tool(idempotent=True)
    def nav_action(self, params: p.NavAction, call: Call) -> Outcome:
        """Take an available action: complete_step (step_id), respond_to_checkpoint (checkpoint_id, option_id:
        the user's choice), transition (activity_id), advance_loop (loop_id, loop_items), abandon (note). The
        same call again returns the same answer; an older state starts a new branch.
        """
        pointer = state_pointer(self.ledger, params.state)
        invalid_variables = check_context(params.variables, "variables") or check_context(
            params.reask, "reask"
        )
        if invalid_variables is not None:
            return self._unserved(params.state, _argument_reply(invalid_variables), call)
        output = read_output(params.output)
        if isinstance(output, InvalidArgument):
            return self._unserved(params.state, _argument_reply(output), call)
        missing = missing_parameters(params)
        if missing:
            text = f"{params.action} needs {' and '.join(missing)}"
            reply = failure("MISSING_PARAMETER", text, "Send the same action with it.")
            return self._unserved(params.state, reply, call)
        return self._act(pointer, params, output, call)

    def _unserved(self, state: str, reply: Reply, call: Call) -> Reply:
        """Add to an error where the run is, and the state that it stays in."""
        try:
            _, situation = self._located(state, call)
        except (LedgerError, Refused):
            return reply
        body = {**response_body(situation, ""), **msgspec.json.decode(reply.text), "state": state}
        return replace(body_reply(body), is_error=True)

    def _act(self, pointer: Pointer, params: p.NavAction, output: Output, call: Call) -> Outcome:
        attempt = self.ledger.attempt(pointer, attempt_of(identity_of(params, output)), request_of(params))
        if isinstance(attempt, Replayed):
            return self._replayed(attempt, SENT_BEFORE)
        position = attempt.position
        terms = terms_of(position.terms, call)
        command = command_of(params, position, output, terms, attempt.now, call.client.name)
        decided = decided_with_user(self.ledger, attempt.position, command, call)
        if isinstance(decided, (Elicit, Wait)):
            return decided
        if isinstance(decided, Refusal):
            attempt.keep(decided.kept, evolved(attempt.state, decided.kept))
            return self._refused(pointer, params, decided, call)
        view = attempt.view(decided, terms)
        view = replace(view, notices=view.notices.plus(unread_parameters(params)))
        answer = next((event.option for event in decided.events if isinstance(event, GateResolved)), None)
        taken = replace(params, option_id=answer)
        if position.state.visit.open is not None and position.state.visit.activity is None:
            taken = replace(taken, activity_id=view.state.visit.activity)  # as the user has chosen
        message = completed(view) if position.state.finished else done_message(taken, view)
        situation = situation_of(self.ledger, view, {}, call)
        if position.loaded.branches:
            view = replace(view, notices=view.notices.plus([NEW_BRANCH]))
            left = tip_of(position.session, position.run)
            situation = replace(situation, view=view, other_branch=left)
        response = recorded(situation, message)
        attempt.record(
            decided,
            response,
            surface="navigation",
            notices=view.notices,
            output=output,
            variables=params.variables,
        )
        return encoded_reply(self.ledger.filled(response, pointer.handle, attempt.lines))

    def _replayed(self, before: Replayed, differing: Notice) -> Reply:
        """Reply with a recorded answer; one to a call that sent something else says so (rule 9)."""
        body = self.ledger.filled(before.body, before.handle, before.lines)
        if not before.differs:
            return encoded_reply(body)
        decoded = msgspec.json.decode(body)
        warned = [*Notices((differing,)).fields, *decoded.get("warnings", ())]
        return body_reply({**decoded, "warnings": warned})

    def _refused(self, pointer: Pointer, params: p.NavAction, refusal: Refusal, call: Call) -> Outcome:
        """Answer a refused action; it is not an error of the call, and the state stays as it was."""
        position = self.ledger.onward(pointer)
        wording = words(refusal)
        error: dict[str, Json] = {
            "code": code_of(refusal),
            "message": wording.message,
            "next": wording.next_action,
        }
        if refusal.about.get("examples"):
            error["examples"] = refusal.about["examples"]
        situation = situation_at(self.ledger, position, call)
        body = response_body(situation, f"Action failed: {wording.message}")
        body |= {"success": False, "error": error, "state": params.state}
        return encoded_reply(self.ledger.filled(msgspec.json.encode(body), pointer.handle, position.lines))


def _argument_reply(error: InvalidArgument) -> Reply:
    return failure("INVALID_PARAMETERS", error.message, error.next_action, **error.details)
