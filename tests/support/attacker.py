"""An agent that tries to pass a gate or to bend a decision, and what the log says about its success.

An attack is written for all surfaces that have the tool. A refusal anywhere on its way is fine: only the
outcome counts. It raises `Breach` if the attack succeeded; anything else that fails is a wrong test.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from itertools import product
from typing import Any

import msgspec
import pytest

from interlock.core.run import events as e
from interlock.core.run.commands import Terms
from interlock.core.run.preferences import Mode
from interlock.core.values import Json
from interlock.ledger.decisions.inbox import WaitingQuestion, answer_question, inbox
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Position
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Call, Client, Elicit, FormAnswer, Reply
from support.authored import write
from support.harness import Bench, Clock, decision
from support.log import logged_events

Payload = dict[str, Any]

EVERY = ("execution", "session", "gated", "navigation")
CLAIMING = ("session", "gated")
STEPWISE = ("execution", "navigation")
USER = Terms(decisions="user", min_response_ms=0)
AUTO = Terms(min_response_ms=0)
PLAIN = Client("plain-client")
ASKING = Client("asking-client", can_elicit=True)
GATE_FIELDS = ("required", "blocking", "condition", "defaultOption", "autoAdvanceMs")


Reaction = Callable[[str], FormAnswer]


def accepts(option: str) -> Reaction:
    """Return a reaction to forms: this option, whatever is asked."""
    return lambda _: FormAnswer("accept", {"choice": option})


def questions_in(messages: list[str]) -> list[str]:
    """Return the questions of forms, without the report below each."""
    return [message.partition("\n\n")[0] for message in messages]


def declines(_message: str) -> FormAnswer:
    return FormAnswer("decline")


class Breach(Exception):
    """The attack succeeded: a gate was passed without its decision, or a decision was bent."""


def held(promise: object, breach: str) -> None:
    """Check a promise of the product; `breach` says what happened if it was not kept."""
    if not promise:
        raise Breach(breach)


def on(*surfaces: str, **variants: Collection[str]) -> pytest.MarkDecorator:
    """Attack these surfaces in these variants, which are further arguments of the test."""
    return pytest.mark.parametrize(("surface", *variants), list(product(surfaces, *variants.values())))


def pass_seconds(bench: Bench, seconds: float) -> None:
    """Let time pass: at once in this process, really where servers have their own clock."""
    if isinstance(bench.clock, Clock):
        bench.clock.pass_seconds(seconds)
    else:
        time.sleep(seconds)


class Attacker:
    """An agent at one surface, with its newest tokens and what it will claim with the next call."""

    def __init__(
        self,
        bench: Bench,
        surface: str,
        terms: Terms = AUTO,
        mode: Mode | None = None,
        client: Client = PLAIN,
    ) -> None:
        self.bench = bench
        self.surface = surface
        self.client = client
        self.ledger: Ledger = bench.ledger(mode, terms)
        self.tokens: Payload = {}
        self.claims: list[Payload] = []
        self.brings: Payload = {}
        self.text = ""
        self.seen: list[str] = []  # what the user was shown and has decided

    def try_call(self, tool: str, call: Call | None = None, **arguments: Any) -> Payload | Elicit:
        """Call a tool. The answer says with `_refused` whether the call was refused or blocked."""
        arguments = {name: value for name, value in arguments.items() if value is not None}
        reply = self.bench.call(self.surface, self.ledger, tool, arguments, call or Call(self.client))
        if isinstance(reply, Elicit):
            return reply
        assert isinstance(reply, Reply), reply
        self.text = reply.text
        raw = reply.structured
        body = msgspec.json.decode(bytes(raw)) if isinstance(raw, msgspec.Raw) else dict(raw or {})
        if not body and reply.text.startswith("{"):
            body = msgspec.json.decode(reply.text)
        for name in ("stateToken", "ackToken", "checkpointToken", "state"):
            if name in body:
                self.tokens[name] = body[name]
        if "session_token" in reply.meta:
            self.tokens["session_token"] = reply.meta["session_token"]
        refused = reply.is_error or body.get("success") is False or body.get("kind") == "blocked"
        return {**body, "_refused": refused}

    def call(self, tool: str, call: Call | None = None, **arguments: Any) -> Payload:
        """Call a tool of a client that shows no forms."""
        answer = self.try_call(tool, call, **arguments)
        assert isinstance(answer, dict), answer
        return answer

    def start(self, workflow_id: str = "deploy", first: str = "plan", **variables: Any) -> Payload:
        """Begin a run and enter its first activity."""
        match self.surface:
            case "execution":
                return self.call("start_workflow", workflowId=workflow_id, context=variables)
            case "navigation":
                return self.call("nav_start", workflow_id=workflow_id, initial_variables=variables)
        self.call("start_session", workflow_id=workflow_id, agent_id="agent")
        return self.go(first, variables=variables)

    def do(self, step: str, output: Payload | None = None, **variables: Any) -> Payload:
        """Complete a step; where steps are claimed, with the next call."""
        match self.surface:
            case "execution":
                return self.ack(output=output, context=variables or None)
            case "navigation":
                return self.act("complete_step", step_id=step, output=output, variables=variables or None)
        self.claims.append({"step_id": step, "output": output or "done"})
        self.brings |= variables
        return {"_refused": False}

    def ack(self, call: Call | None = None, **arguments: Any) -> Payload:
        return self.call("continue_workflow", call, **self.acknowledging(**arguments))

    def acknowledging(self, **arguments: Any) -> Payload:
        return {**{name: self.tokens[name] for name in ("stateToken", "ackToken")}, **arguments}

    def act(self, action: str, call: Call | None = None, **arguments: Any) -> Payload:
        return self.call("nav_action", call, state=self.tokens["state"], action=action, **arguments)

    def tell(self, tool: str, **arguments: Any) -> Payload:
        """Call a tool with the session's token."""
        return self.call(tool, session_token=self.tokens["session_token"], **arguments)

    def go(self, activity: str, **arguments: Any) -> Payload:
        """Claim what was done, and go to an activity."""
        return self.tell("next_activity", activity_id=activity, **self._claimed(arguments))

    def _claimed(self, arguments: Payload) -> Payload:
        claims, brings = self.claims, self.brings
        self.claims, self.brings = [], {}
        manifest = arguments.pop("step_manifest", None) or claims or None
        variables = {**brings, **(arguments.pop("variables", None) or {})} or None
        return {"step_manifest": manifest, "variables": variables, **arguments}

    def reach(self, gate: str, activity: str = "plan", **variables: Any) -> Payload:
        """Have the question shown, where that needs a call."""
        match self.surface:
            case "session":
                arguments = self._claimed({"variables": variables})
                return self.tell("yield_checkpoint", checkpoint_id=gate, **arguments)
            case "gated":
                arguments = self._claimed({"variables": variables})
                return self.tell("get_checkpoint", activity_id=activity, checkpoint_id=gate, **arguments)
        return {"_refused": False}

    def responding(self, gate: str, option: str, **variables: Any) -> tuple[str, Payload]:
        """Return the call that answers a gate, or that uses its answer."""
        given = variables or None
        match self.surface:
            case "execution":
                output = {"artifacts": [decision(gate, option)]}
                return "continue_workflow", self.acknowledging(output=output, context=given)
            case "navigation":
                named = {"action": "respond_to_checkpoint", "checkpoint_id": gate, "option_id": option}
                return "nav_action", {"state": self.tokens["state"], **named, "variables": given}
        named = {"checkpoint_id": gate} if self.surface == "gated" else {}
        token = {"session_token": self.tokens["session_token"]}
        return "respond_checkpoint", {**token, **named, "option_id": option, "variables": given}

    def respond(self, gate: str, option: str, **variables: Any) -> Payload:
        """Report the user's answer."""
        tool, arguments = self.responding(gate, option, **variables)
        return self.call(tool, **arguments)

    def respond_with_forms(self, gate: str, option: str, reacts: Reaction, **variables: Any) -> list[str]:
        """Respond through a client that shows forms; return the messages of those it showed."""
        tool, arguments = self.responding(gate, option, **variables)
        return self.call_with_forms(reacts, tool, **arguments)

    def call_with_forms(self, reacts: Reaction, tool: str, **arguments: Any) -> list[str]:
        """Call a tool through a client that shows forms; return the messages of those it showed."""
        shown: list[str] = []
        call = Call(ASKING)
        for _ in range(5):
            answer = self.try_call(tool, call, **arguments)
            if isinstance(answer, dict):
                return shown
            forms = answer.questions
            shown += [form.message for form in forms.values()]
            answers = {key: reacts(form.message) for key, form in forms.items()}
            call = Call(ASKING, answers, answer.state)
        raise AssertionError(f"asked again and again: {shown}")

    def use_decision(self, gate: str, option: str, **variables: Any) -> Payload:
        """Make the next call after the user has decided in the inbox."""
        if self.surface == "session":
            return self.tell("resume_checkpoint", variables=variables or None)
        if self.surface == "gated":
            return {"_refused": False}  # the answer counts at once, and no call uses it
        return self.respond(gate, option, **variables)

    def waiting(self, gate: str = "") -> list[WaitingQuestion]:
        """Return what waits for the user, of one gate or of all."""
        return [question for question in inbox(self.ledger) if gate in ("", question.id)]

    def user_decides(self, gate: str, option: str) -> str:
        """The user answers in the inbox; return what was on the screen."""
        (question,) = self.waiting(gate)
        assert answer_question(self.ledger, question, option)
        self.seen.append(question.message)
        return question.message

    @property
    def session_id(self) -> str:
        with self.ledger.store.reading() as reader:
            sessions = reader.sessions(SessionFilter())
        return sessions[0].session_id if sessions else ""

    @property
    def position(self) -> Position:
        position = self.ledger.position(self.session_id)
        assert isinstance(position, Position)
        return position

    @property
    def variables(self) -> Payload:
        return dict(self.position.state.variables)

    @property
    def status(self) -> str:
        return self.position.state.status

    def events(self, *kinds: str) -> list[Any]:
        return [row.event for row in logged_events(self.ledger.store, self.session_id, *kinds)]

    def decisions(self, gate: str = "") -> list[e.GateResolved]:
        """Return the decision records, of one gate or of all."""
        return [record for record in self.events("gate_resolved") if gate in ("", record.gate)]

    def has_done(self, step: str) -> bool:
        """Say whether the log has this step as done."""
        return any(event.step == step for event in self.events("step_completed"))

    def has_entered(self, activity: str) -> bool:
        return any(event.activity == activity for event in self.events("activity_entered"))

    def has_completed(self) -> bool:
        return bool(self.events("run_completed"))

    def walk(self, *route: str, **variables: Any) -> None:
        """Go along steps and activities (`>ship`), sending these variables with every call.

        Nothing on the way has to succeed: what the log says afterwards counts.
        """
        for stop in route:
            if not stop.startswith(">"):
                self.do(stop, **variables)
            elif self.surface == "navigation":
                self.act("transition", activity_id=stop[1:], variables=variables or None)
            elif self.surface in CLAIMING:
                self.go(stop[1:], variables=variables)


def taken_up(bench: Bench, surface: str, begun: Attacker, terms: Terms = USER) -> Attacker:
    """Go on with another agent's run on another surface."""
    tokens = ("stateToken", "state", "session_token")
    token = next(begun.tokens[name] for name in tokens if name in begun.tokens)
    agent = Attacker(bench, surface, terms)
    match surface:
        case "execution":
            agent.call("continue_workflow", stateToken=token)
        case "navigation":
            agent.call("nav_situation", state=token)
        case _:
            agent.call("start_session", workflow_id="deploy", agent_id="agent", session_token=token)
    return agent


def step(id: str, text: str = "", **fields: Any) -> Payload:
    """Return a step of an activity."""
    return {"id": id, "name": id.title(), "description": text or f"Do {id}.", **fields}


def question(id: str, message: str, **options: Any) -> Payload:
    """Return a gate of an activity; each option is given with its effect."""
    fields = {name: options.pop(name) for name in GATE_FIELDS if name in options}
    listed = [
        {"id": option, "label": option.title(), **({"effect": effect} if effect else {})}
        for option, effect in options.items()
    ]
    return {"type": "gate", "id": id, "name": id.title(), "message": message, "options": listed, **fields}


def activity(id: str, *items: Payload, to: str | list[Payload] = "", **fields: Any) -> Payload:
    """Return an activity with its items in order, and where it leads to."""
    transitions = [{"to": to, "isDefault": True}] if isinstance(to, str) and to else to or []
    return {
        "id": id,
        "version": "1.0.0",
        "name": id.title(),
        "steps": list(items),
        **({"transitions": transitions} if transitions else {}),
        **fields,
    }


def write_activities(
    bench: Bench,
    *activities: Payload,
    id: str = "deploy",
    initial: str | None = "plan",
    own: bool = False,
    **types: str,
) -> None:
    """Write a workflow of activities with these variables; `own` files name our schema."""
    head: Payload = {"id": id, "version": "1.0.0", "title": id.title()}
    head |= {"initialActivity": initial} if initial else {}
    head["variables"] = [{"name": name, "type": kind} for name, kind in types.items()]
    line = "# yaml-language-server: $schema=activity.schema.json\n" if own else ""
    files = {f"{id}/workflow.yaml": json.dumps(head)}
    for number, body in enumerate(activities):
        files[f"{id}/activities/{number:02}-{body['id']}.yaml"] = line + json.dumps(body)
    write(bench.workflows, files)


def sets(**variables: Any) -> Payload:
    """Return the effect of an option."""
    return {"setVariable": variables}


def equals(variable: str, value: Json) -> Payload:
    return {"type": "simple", "variable": variable, "operator": "==", "value": value}
