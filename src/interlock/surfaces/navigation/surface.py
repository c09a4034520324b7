"""The navigation tools as handlers: a handler parses, calls, renders; reading is in `reading`."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolved
from interlock.core.run.commands import ResolveCheckpoint
from interlock.core.run.outcomes import Notice, Refusal
from interlock.core.run.output import Output
from interlock.core.run.surface_policy import NAVIGATION
from interlock.core.values import Json
from interlock.ledger.attempt import Replayed
from interlock.ledger.errors import LedgerError, error_of, internal_error
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.children import passed_on
from interlock.ledger.runs.position import Position
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.arguments import Unfit, check_context, message_and_path, read_output
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.elicitation import CHOICE
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.actions import asked, attempt_of, command_of, done_message, missing
from interlock.surfaces.navigation.errors import code_of, failure, not_loaded, of_error, words
from interlock.surfaces.navigation.questions import heard, question
from interlock.surfaces.navigation.reading import CatalogueTools
from interlock.surfaces.navigation.render import (
    Landscape,
    body,
    checkpoint_of,
    recorded,
    replied,
    situated,
)
from interlock.surfaces.navigation.situations import landscape, opened, opened_anywhere, situation
from interlock.surfaces.navigation.texts import Texts
from interlock.surfaces.navigation.tools import INSTRUCTIONS, tools
from interlock.surfaces.tool import Surface, Tool


class NavigationSurface(Surface):
    """The navigation surface."""

    name = "navigation"
    instructions = INSTRUCTIONS

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.reading = CatalogueTools(ledger.library)
        self.texts = Texts(ledger.library)
        self.tools = {tool.name: tool for tool in tools(self, self.reading, self.texts)}

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        message, path = message_and_path(reason)
        where = f" ({path})" if path else ""
        fix = "correct the arguments and call again"
        return failure("INVALID_PARAMETERS", f"{tool.name}: {message}{where}", fix)

    def unknown(self, name: str) -> Outcome:
        return failure(
            "UNKNOWN_TOOL", f"There is no tool '{name}' here", f"use one of: {', '.join(self.tools)}"
        )

    def expected(self, error: Exception) -> Outcome | None:
        known = error_of(error)
        return of_error(known) if known is not None else None

    def failed(self, tool: Tool, error: Exception, reference: str) -> Outcome:
        return of_error(internal_error(error, reference))

    def idle(self) -> None:
        self.ledger.idle()

    def close(self) -> None:
        self.ledger.close()

    def nav_start(self, params: p.NavStart, call: Call) -> Outcome:
        given = params.initial_variables or {}
        unfit = check_context(given, "initial_variables")
        if unfit:
            return _unfit(unfit)
        loaded = self.ledger.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        parent, notices = None, list[Notice]()
        if params.parent_state is not None:
            reached = self._reached(params.parent_state)
            if isinstance(reached, Reply):
                return reached
            parent = reached
            passed = passed_on(parent, loaded.workflow.id)
            given = {**(passed or {}), **given}
            if passed is None:
                text = (
                    f"The parent's activity does not trigger '{loaded.workflow.id}'; nothing was passed on."
                )
                notices.append(Notice("NOT_TRIGGERED", text))
        start = self.ledger.start(loaded, given, policy=NAVIGATION, parent=parent)
        if isinstance(start, LedgerError):
            return of_error(start)
        view = replace(start.view, notices=(*start.view.notices, *notices))
        where = f" at activity '{view.state.activity}'" if view.state.activity else ""
        message = f"Started workflow '{view.plan.workflow.name}'{where}"
        answer = recorded(landscape(self.ledger, view, {}), message)
        self.ledger.record_start(start)
        return replied(self.ledger.filled(answer, start.handle))

    def _reached(self, state: str) -> Position | Reply:
        """The run at the node that a state leads to by now."""
        pointer = opened(self.ledger, state)
        if isinstance(pointer, Reply):
            return pointer
        position = self.ledger.onward(pointer)
        return of_error(position) if isinstance(position, LedgerError) else position

    def nav_situation(self, params: p.NavState, call: Call) -> Outcome:
        here = self._landscape(params.state)
        if isinstance(here, Reply):
            return here
        return replied(self.ledger.filled(recorded(here, situated(here)), here.handle))

    def nav_checkpoint(self, params: p.NavState, call: Call) -> Outcome:
        here = self._landscape(params.state)
        if isinstance(here, Reply):
            return here
        return replied(msgspec.json.encode(_question(here)))

    def _landscape(self, state: str) -> Landscape | Reply:
        pointer = opened_anywhere(self.ledger, state)
        if isinstance(pointer, Reply):
            return pointer
        position = self.ledger.onward(pointer)
        return of_error(position) if isinstance(position, LedgerError) else situation(self.ledger, position)

    def nav_action(self, params: p.NavAction, call: Call) -> Outcome:
        unfit, output = check_context(params.variables, "variables"), read_output(params.output)
        if unfit:
            return _unfit(unfit)
        if isinstance(output, Unfit):
            return _unfit(output)
        lacking = missing(params)
        if lacking:
            return failure(
                "MISSING_PARAMETER", f"{params.action} needs {' and '.join(lacking)}", "send it too"
            )
        pointer = opened(self.ledger, params.state)
        return pointer if isinstance(pointer, Reply) else self._act(pointer, params, output, call)

    def _act(self, pointer: Pointer, params: p.NavAction, output: Output, call: Call) -> Outcome:
        request = asked(params)
        attempt = self.ledger.attempt(pointer, attempt_of(request), request)
        match attempt:
            case LedgerError():
                return of_error(attempt)
            case Replayed():
                return replied(self.ledger.filled(attempt.body, attempt.handle))
        position = attempt.position
        ask = question(position, params, self.ledger.settings.terms, call)
        if ask is not None:
            return ask
        command = command_of(
            params, position, output, self.ledger.settings.terms, attempt.now, call.client.name
        )
        if isinstance(command, ResolveCheckpoint):
            command = heard(position, command, call)
        decided = decide(attempt.plan, attempt.state, command)
        if isinstance(decided, Refusal):
            attempt.keep(decided.kept, evolved(attempt.state, decided.kept))
            return self._refused(pointer, params, decided)
        view = attempt.view(decided, output)
        answer = call.answers.get(params.checkpoint_id or "")
        choice = answer.content.get(CHOICE) if answer is not None and answer.action == "accept" else None
        told = replace(params, option_id=choice) if isinstance(choice, str) else params
        response = recorded(landscape(self.ledger, view, {}), done_message(told, view))
        attempt.record(
            decided,
            response,
            surface="navigation",
            output=output,
            variables=command.variables,
        )
        return replied(self.ledger.filled(response, pointer.handle))

    def _refused(self, pointer: Pointer, params: p.NavAction, refusal: Refusal) -> Outcome:
        """A refused action is an answer, not an error of the call: the state stays as it was."""
        position = self.ledger.onward(pointer)
        if isinstance(position, LedgerError):
            return of_error(position)
        here = situation(self.ledger, position)
        told = words(refusal)
        error: dict[str, Json] = {"code": code_of(refusal), "message": told.message, "next": told.next_action}
        if refusal.about.get("examples"):
            error["examples"] = refusal.about["examples"]
        shown = {**body(here, f"Action failed: {told.message}"), "success": False, "error": error}
        encoded = msgspec.json.encode({**shown, "state": params.state})
        return replied(self.ledger.filled(encoded, pointer.handle))


def _question(here: Landscape) -> dict[str, Json]:
    found = checkpoint_of(here)
    if found is None:
        return {"active": False, "message": "No checkpoint is currently blocking progress"}
    return {"active": True, "checkpoint": found}


def _unfit(unfit: Unfit) -> Reply:
    return failure("INVALID_PARAMETERS", unfit.message, unfit.suggestion, **unfit.details)
