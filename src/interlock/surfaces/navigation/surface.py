"""The navigation tools as handlers: a handler parses, calls, renders; reading is in `reading`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Loaded
from interlock.core.run.commands import ResolveCheckpoint
from interlock.core.run.outcomes import Notice, Refusal
from interlock.core.run.output import Output
from interlock.core.run.surface_policy import NAVIGATION
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError, error_of
from interlock.ledger.ledger import Build, Ledger, Render
from interlock.ledger.runs.children import passed_on
from interlock.ledger.runs.position import Answered, Position, Target
from interlock.ledger.runs.reaching import reached
from interlock.ledger.runs.view import View
from interlock.surfaces.arguments import Unfit, check_context, read_output
from interlock.surfaces.elicitation import CHOICE
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.actions import Action, asked, attempt_of, command_of, done_message, missing
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
from interlock.surfaces.tool import Call, Outcome, Reply, Surface, Tool


class NavigationSurface(Surface):
    """The navigation surface."""

    name = "navigation"
    instructions = INSTRUCTIONS

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.reading = CatalogueTools(ledger.library)
        self.texts = Texts(ledger.library)
        self.tools = {tool.name: tool for tool in tools(self)}

    def invalid(self, tool: Tool, diagnostic: str) -> Outcome:
        message, _, target = diagnostic.partition(" - at `$")
        path = target.rstrip("`").lstrip(".")
        where = f" ({path})" if path else ""
        fix = "correct the arguments and call again"
        return failure("INVALID_PARAMETERS", f"{tool.name}: {message}{where}", fix)

    def unknown(self, name: str) -> Outcome:
        return failure(
            "UNKNOWN_TOOL", f"There is no tool '{name}' here", f"use one of: {', '.join(self.tools)}"
        )

    def failed(self, tool: Tool, error: Exception) -> Outcome:
        return of_error(error_of(error))

    def nav_start(self, params: p.NavStart, call: Call) -> Outcome:
        given = params.initial_variables or {}
        unfit = check_context(given, "initial_variables")
        if unfit:
            return _unfit(unfit)
        loaded = self.ledger.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        if params.parent_state is not None:
            return self._start_child(loaded, given, params.parent_state)
        return self._reply(self.ledger.start_run(loaded, given, self._begun, policy=NAVIGATION))

    def _start_child(self, loaded: Loaded, given: Mapping[str, Json], parent_state: str) -> Outcome:
        """Begin as a child of another run: context by passContext, the parent waits (rule 35)."""
        target = opened(self.ledger, parent_state)
        if isinstance(target, Reply):
            return target
        parent = reached(self.ledger, target)
        if isinstance(parent, LedgerError):
            return of_error(parent)
        passed = passed_on(parent, loaded.workflow.id)
        started = self.ledger.start_run(
            loaded,
            {**(passed or {}), **given},
            self._begun if passed is not None else self._begun_untriggered,
            policy=NAVIGATION,
            parent=target.session_id,
            parent_node=parent.node.node,
        )
        return self._reply(started)

    def _begun(self, view: View) -> bytes:
        where = f" at activity '{view.state.activity}'" if view.state.activity else ""
        return self._recorded(view, f"Started workflow '{view.plan.workflow.name}'{where}")

    def _begun_untriggered(self, view: View) -> bytes:
        text = f"The parent's activity does not trigger '{view.plan.workflow.id}'; nothing was passed on."
        return self._begun(replace(view, notices=(*view.notices, Notice("NOT_TRIGGERED", text))))

    def _recorded(self, view: View, message: str) -> bytes:
        return recorded(landscape(self.ledger, view, {}), message)

    def nav_situation(self, params: p.NavState, call: Call) -> Outcome:
        target = opened_anywhere(self.ledger, params.state)
        if isinstance(target, Reply):
            return target
        here = situation(self.ledger, target)
        if isinstance(here, LedgerError):
            return of_error(here)
        return replied(self.ledger.filled(recorded(here, situated(here)), target.handle))

    def nav_checkpoint(self, params: p.NavState, call: Call) -> Outcome:
        target = opened_anywhere(self.ledger, params.state)
        if isinstance(target, Reply):
            return target
        here = situation(self.ledger, target)
        if isinstance(here, LedgerError):
            return of_error(here)
        return replied(msgspec.json.encode(_question(here)))

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
        target = opened(self.ledger, params.state)
        return target if isinstance(target, Reply) else self._act(target, params, output, call)

    def _act(self, target: Target, params: p.NavAction, output: Output, call: Call) -> Outcome:
        request = asked(params)
        attempt = attempt_of(request)
        ask = question(self.ledger, target, attempt, params, call)
        if ask is not None:
            return ask
        build, render = self._building(params, output, call), self._rendering(params, call)
        outcome = self.ledger.advance(target, attempt, request, build, render, output)
        return (
            self._refused(target, params, outcome) if isinstance(outcome, Refusal) else self._reply(outcome)
        )

    def _building(self, params: p.NavAction, output: Output, call: Call) -> Build:
        def build(at: Position) -> Action:
            terms, now = self.ledger.settings.terms, self.ledger.clock()
            command = command_of(params, at, output, terms, now, call.client.name)
            return heard(at, command, call) if isinstance(command, ResolveCheckpoint) else command

        return build

    def _rendering(self, params: p.NavAction, call: Call) -> Render:
        answer = call.answers.get(params.checkpoint_id or "")
        choice = answer.content.get(CHOICE) if answer is not None and answer.action == "accept" else None
        told = replace(params, option_id=choice) if isinstance(choice, str) else params
        return lambda view: self._recorded(view, done_message(told, view))

    def _refused(self, target: Target, params: p.NavAction, refusal: Refusal) -> Outcome:
        """A refused action is an answer, not an error of the call: the state stays as it was."""
        here = situation(self.ledger, target)
        if isinstance(here, LedgerError):
            return of_error(here)
        told = words(refusal)
        error: dict[str, Json] = {"code": code_of(refusal), "message": told.message, "next": told.next_action}
        if refusal.about.get("examples"):
            error["examples"] = refusal.about["examples"]
        shown = {**body(here, f"Action failed: {told.message}"), "success": False, "error": error}
        encoded = msgspec.json.encode({**shown, "state": params.state})
        return replied(self.ledger.filled(encoded, target.handle))

    def _reply(self, outcome: Answered | LedgerError) -> Outcome:
        return of_error(outcome) if isinstance(outcome, LedgerError) else replied(outcome.body)


def _question(here: Landscape) -> dict[str, Json]:
    found = checkpoint_of(here)
    if found is None:
        return {"active": False, "message": "No checkpoint is currently blocking progress"}
    return {"active": True, "checkpoint": found}


def _unfit(unfit: Unfit) -> Reply:
    return failure("INVALID_PARAMETERS", unfit.message, unfit.suggestion, **unfit.details)
