"""Ways around a gate, tried at every surface that has the tool: none may pass (rules 19, 21 to 29)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from interlock.core.run.commands import Terms
from interlock.core.run.events import GateResolved
from interlock.core.run.preferences import Mode
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.log_lines import event_lines
from interlock.ledger.runs.position import Position
from interlock.ledger.transfer.bundle import BundleRefused, read_bundle
from interlock.ledger.transfer.export_import import export_session, import_bundle
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Call, Client, Elicit, FormAnswer, Reply
from support.authored import write
from support.harness import STATEFUL, Bench, decision, gate, steps, workflow
from support.killed_servers import ServerBench
from support.log import logged_events
from support.server import Server

Payload = dict[str, Any]
Option = Literal["yes", "no"]

USER = Terms(decisions="user", min_response_ms=0)
AUTO = Terms(min_response_ms=0)
ASKING = Client("asking-client", can_elicit=True)
PLAIN = Client("plain-client")
EVERY = pytest.mark.parametrize("name", STATEFUL)

DEPLOY = {
    "deploy/workflow.yaml": """
id: deploy
version: 1.0.0
title: Deploy
initialActivity: plan
variables:
  - { name: target, type: string }
  - { name: approved, type: boolean }
  - { name: place, type: string }
  - { name: at, type: object }
  - { name: parts, type: array }
  - { name: risky, type: boolean }
  - { name: quick, type: boolean }
""",
    "deploy/activities/00-plan.yaml": """
id: plan
version: 1.0.0
name: Plan
steps:
  - { id: prepare, name: Prepare, description: Make ready. }
checkpoints:
  - id: deploy
    name: Deploy
    message: "Deploy to {{target}}?"
    options:
      - { id: "yes", label: "Yes", effect: { setVariable: { approved: true, place: "at {{target}}" } } }
      - { id: "no", label: "No", effect: { setVariable: { approved: false } } }
      - { id: later, label: "Later" }
transitions:
  - { to: ship, isDefault: true }
""",
    "deploy/activities/01-ship.yaml": """
id: ship
version: 1.0.0
name: Ship
steps:
  - { id: send, name: Send, description: "Send it to {{target}}." }
  - id: celebrate
    name: Celebrate
    description: Celebrate it.
    condition: { type: simple, variable: approved, operator: "==", value: true }
""",
}


KILLED = pytest.param(ServerBench, marks=pytest.mark.slow, id="killed servers")


@pytest.fixture(params=[pytest.param(Bench, id="in process"), KILLED])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Each attack is made twice: in this process, and on servers that are killed after every answer."""
    bench: Bench = request.param(tmp_path)
    yield bench
    bench.close()


class Attacker:
    """An agent at one surface, with a run of `deploy` that it takes to the gate and past it."""

    def __init__(self, bench: Bench, name: str, terms: Terms = AUTO, mode: Mode | None = None) -> None:
        self.name = name
        self.ledger: Ledger = bench.ledger(mode, terms)
        self.bench = bench
        self.client = PLAIN
        self.tokens: Payload = {}
        self.text = ""

    def call(self, tool: str, call: Call | None = None, **arguments: Any) -> Payload | Elicit:
        arguments = {name: value for name, value in arguments.items() if value is not None}
        reply = self.bench.call(self.name, self.ledger, tool, arguments, call or Call(self.client))
        if isinstance(reply, Elicit):
            return reply
        assert isinstance(reply, Reply)
        self.text = reply.text
        raw = reply.structured
        body = msgspec.json.decode(bytes(raw)) if isinstance(raw, msgspec.Raw) else dict(raw or {})
        if not body and reply.text.startswith("{"):
            body = json.loads(reply.text)
        for token in ("stateToken", "ackToken", "state"):
            if token in body:
                self.tokens[token] = body[token]
        if "session_token" in reply.meta:
            self.tokens["session_token"] = reply.meta["session_token"]
        return {**body, "_error": reply.is_error}

    def told(self, tool: str, call: Call | None = None, **arguments: Any) -> Payload:
        answer = self.call(tool, call, **arguments)
        assert isinstance(answer, dict), answer
        return answer

    def start(self, workflow_id: str = "deploy", **variables: Any) -> Payload:
        match self.name:
            case "execution":
                return self.told("start_workflow", workflowId=workflow_id, context=variables)
            case "navigation":
                return self.told("nav_start", workflow_id=workflow_id, initial_variables=variables)
            case _:
                return self.told("start_session", workflow_id=workflow_id, agent_id="agent")

    def to_the_gate(self, target: str = "staging") -> None:
        """Go up to the open question."""
        self.start(target=target)
        self.to_the_gate_from_the_start(target)

    def to_the_gate_from_the_start(self, target: str = "staging") -> None:
        match self.name:
            case "execution":
                self.ack()
            case "navigation":
                self.act("complete_step", step_id="prepare")
            case _:
                self.go("plan", variables={"target": target})
        if self.name == "session":
            self.told("yield_checkpoint", checkpoint_id="deploy", session_token=self.tokens["session_token"])
        if self.name == "gated":
            self.show("deploy", "prepare")

    def show(self, gate: str, *steps: str) -> Payload:
        """On `gated`: claim the steps before a checkpoint of `plan`, and have its question put."""
        manifest = [{"step_id": step, "output": "done"} for step in steps]
        named = {"activity_id": "plan", "checkpoint_id": gate, "step_manifest": manifest}
        return self.told("get_checkpoint", session_token=self.tokens["session_token"], **named)

    def ask_again(self, **values: Any) -> Payload:
        """Have the open question asked again with other values."""
        token = {"session_token": self.tokens.get("session_token")}
        match self.name:
            case "execution":
                return self.ack(reask=values)
            case "navigation":
                return self.act("respond_to_checkpoint", checkpoint_id="deploy", reask=values)
            case "session":
                return self.told("yield_checkpoint", checkpoint_id="deploy", reask=values, **token)
            case _:
                named = {"activity_id": "plan", "checkpoint_id": "deploy"}
                return self.told("get_checkpoint", reask=values, **named, **token)

    def ack(self, call: Call | None = None, **arguments: Any) -> Payload:
        return self.told("continue_workflow", call, **self._acknowledging(**arguments))

    def _acknowledging(self, **arguments: Any) -> Payload:
        return {**{name: self.tokens[name] for name in ("stateToken", "ackToken")}, **arguments}

    def act(self, action: str, call: Call | None = None, **arguments: Any) -> Payload:
        return self.told("nav_action", call, state=self.tokens["state"], action=action, **arguments)

    def go(self, activity: str, **arguments: Any) -> Payload:
        token = self.tokens["session_token"]
        return self.told("next_activity", session_token=token, activity_id=activity, **arguments)

    def responding(self, option: str, **variables: Any) -> tuple[str, Payload]:
        """The call that answers the gate, or that uses its answer."""
        given = variables or None
        match self.name:
            case "execution":
                output = {"artifacts": [decision("deploy", option)]}
                return "continue_workflow", self._acknowledging(output=output, context=given)
            case "navigation":
                named = {"action": "respond_to_checkpoint", "checkpoint_id": "deploy", "option_id": option}
                return "nav_action", {"state": self.tokens["state"], **named, "variables": given}
            case _:
                named = {"checkpoint_id": "deploy"} if self.name == "gated" else {}
                token = {"session_token": self.tokens["session_token"]}
                return "respond_checkpoint", {**token, **named, "option_id": option, "variables": given}

    def respond(self, option: str, **variables: Any) -> Payload:
        tool, arguments = self.responding(option, **variables)
        return self.told(tool, **arguments)

    def respond_asking(self, option: str, user: FormAnswer, **variables: Any) -> Payload:
        """Respond through a client that asks the user."""
        tool, arguments = self.responding(option, **variables)
        ask = self.call(tool, Call(ASKING), **arguments)
        assert isinstance(ask, Elicit)
        self.asked = ask
        return self.told(tool, Call(ASKING, {"deploy": user}, ask.state), **arguments)

    def respond_noting(self, option: str, note: str) -> Payload:
        """Respond with the user's own words."""
        tool, arguments = self.responding(option)
        if self.name == "execution":
            artifact = {**decision("deploy", option), "note": note}
            return self.told(tool, **{**arguments, "output": {"artifacts": [artifact]}})
        return self.told(tool, note=note, **arguments)

    def use_decision(self, option: str, **variables: Any) -> Payload:
        """The next call after the user has decided in the inbox."""
        if self.name == "session":
            return self.told(
                "resume_checkpoint", session_token=self.tokens["session_token"], variables=variables or None
            )
        if self.name == "gated":
            return {}  # the answer counts at once, and no call uses it
        return self.respond(option, **variables)

    def onward(self, **variables: Any) -> Payload:
        """Go on to `ship`, and on surfaces that hand out steps to its first step."""
        match self.name:
            case "execution":
                return self.ack(context=variables or None)
            case "navigation":
                return self.act("transition", activity_id="ship", variables=variables or None)
            case _:
                return self.go("ship", variables=variables or None)

    @property
    def session_id(self) -> str:
        with self.ledger.store.reading() as reader:
            return reader.sessions(SessionFilter())[0].session_id

    @property
    def variables(self) -> Payload:
        position = self.ledger.position(self.session_id)
        assert isinstance(position, Position)
        return dict(position.state.variables)

    def decisions(self) -> list[GateResolved]:
        rows = logged_events(self.ledger.store, self.session_id, "gate_resolved")
        return [row.event for row in rows if isinstance(row.event, GateResolved)]

    def decide_in_inbox(self, option: str, note: str = "") -> str:
        (question,) = inbox(self.ledger)
        assert answer_question(self.ledger, question, option, note)
        return question.message


def attacker(bench: Bench, name: str, terms: Terms = AUTO, mode: Mode | None = None) -> Attacker:
    write(bench.workflows, DEPLOY)
    return Attacker(bench, name, terms, mode)


@EVERY
def test_a1_what_the_user_was_shown_in_the_inbox_is_what_goes_on(bench: Bench, name: str) -> None:
    agent = attacker(bench, name, USER)
    agent.to_the_gate()
    assert agent.decide_in_inbox("yes") == "Deploy to «staging»?"
    agent.use_decision("yes", target="PRODUCTION")
    assert agent.variables["target"] == "staging"
    if name != "gated":
        assert "'target' stays staging" in agent.text
    (record,) = agent.decisions()
    assert (record.question, record.channel, record.option) == ("Deploy to «staging»?", "cli", "yes")
    assert record.sets == {"approved": True, "place": "at staging"}
    agent.onward(target="PRODUCTION")
    assert agent.variables["target"] == "staging"
    assert "'target' stays staging" in agent.text
    assert "PRODUCTION" not in agent.text


@EVERY
def test_a1_what_the_user_was_shown_in_a_form_is_what_goes_on(bench: Bench, name: str) -> None:
    agent = attacker(bench, name)
    agent.to_the_gate()
    agent.respond_asking("yes", FormAnswer("accept", {"choice": "yes"}), target="PRODUCTION")
    (form,) = agent.asked.questions.values()
    assert form.message.partition("\n\n")[0] == "Deploy to «staging»?"
    titles = [option["title"] for option in form.schema["properties"]["choice"]["oneOf"]]  # type: ignore[index]
    assert titles == ["Yes (approved = true; place = «at staging»)", "No (approved = false)", "Later"]
    assert agent.variables["target"] == "staging"
    assert "'target' stays staging" in agent.text
    (record,) = agent.decisions()
    assert (record.question, record.channel) == ("Deploy to «staging»?", "elicitation")
    agent.onward(target="PRODUCTION")
    assert agent.variables["target"] == "staging"


@EVERY
def test_a1_what_was_shown_is_changed_only_by_asking_again(bench: Bench, name: str) -> None:
    agent = attacker(bench, name, USER)
    agent.to_the_gate()
    agent.ask_again(target="PRODUCTION")
    assert "Checkpoint 'deploy' is asked again." in agent.text
    (question,) = inbox(agent.ledger)
    assert question.message == "Deploy to «PRODUCTION»?"
    assert agent.decisions() == []
    agent.decide_in_inbox("no")
    agent.use_decision("no")
    (record,) = agent.decisions()
    assert (record.question, record.option, record.sets) == (
        "Deploy to «PRODUCTION»?",
        "no",
        {"approved": False},
    )


@EVERY
def test_a1_a_dotted_name_is_no_way_around_what_was_shown(bench: Bench, name: str) -> None:
    files = {path: text.replace("{{target}}", "{{at.host}}") for path, text in DEPLOY.items()}
    write(bench.workflows, files)
    agent = Attacker(bench, name)
    agent.start(at={"host": "staging"})
    match name:
        case "execution":
            agent.ack()
        case "navigation":
            agent.act("complete_step", step_id="prepare")
        case _:
            agent.go("plan", variables={"at": {"host": "staging"}})
    if name == "session":
        agent.told("yield_checkpoint", checkpoint_id="deploy", session_token=agent.tokens["session_token"])
    agent.respond("yes")
    agent.onward(**{"at.host": "PRODUCTION", "at": {"host": "PRODUCTION"}})
    assert agent.variables["at"] == {"host": "staging"}
    assert "at.host" not in agent.variables


def test_a1_a_form_that_was_answered_for_another_text_does_not_count(bench: Bench) -> None:
    """An answer is for one text: if the call would answer another one by now, the user is asked that."""
    agent = attacker(bench, "gated")
    agent.start()
    agent.go("plan", variables={"target": "staging"})
    tool, arguments = agent.responding("yes")
    ask = agent.call(tool, Call(ASKING), **arguments)
    assert isinstance(ask, Elicit)
    assert [form.message for form in ask.questions.values()] == ["Deploy to «staging»?"]
    refused = agent.go("ship", variables={"target": "PRODUCTION"})
    assert refused["code"] == "GATE_UNANSWERED"
    accepted = {"deploy": FormAnswer("accept", {"choice": "yes"})}
    again = agent.call(tool, Call(ASKING, accepted, ask.state), **arguments)
    assert isinstance(again, Elicit)
    assert [form.message for form in again.questions.values()] == ["Deploy to «PRODUCTION»?"]
    assert agent.decisions() == []


def test_a1_a_refused_call_does_not_change_the_question_that_waits(bench: Bench) -> None:
    """Navigation keeps the variables of a refused call, but for what an open question shows."""
    agent = attacker(bench, "navigation", USER)
    agent.to_the_gate()
    (question,) = inbox(agent.ledger)
    agent.act("complete_step", step_id="send", variables={"target": "PRODUCTION"})
    assert agent.variables["target"] == "staging"
    assert answer_question(agent.ledger, question, "yes")


def test_a1_the_next_visit_may_change_what_an_earlier_question_showed(bench: Bench) -> None:
    agent = attacker(bench, "session")
    agent.to_the_gate()
    agent.respond("later")
    agent.told("resume_checkpoint", session_token=agent.tokens["session_token"])
    agent.go("plan", variables={"target": "PRODUCTION"})
    assert agent.variables["target"] == "PRODUCTION"
    agent.told("yield_checkpoint", checkpoint_id="deploy", session_token=agent.tokens["session_token"])
    agent.told("present_checkpoint", session_token=agent.tokens["session_token"])
    assert "Deploy to «PRODUCTION»?" in agent.text


def test_a1_a_rewind_may_change_what_a_later_question_shows(bench: Bench) -> None:
    agent = attacker(bench, "execution")
    agent.start(target="staging")
    before = dict(agent.tokens)
    agent.ack()
    agent.respond("yes")
    agent.tokens = before
    agent.told("continue_workflow", stateToken=before["stateToken"])
    agent.ack(context={"target": "PRODUCTION"})
    assert "Deploy to «PRODUCTION»?" in agent.text


@pytest.mark.parametrize("how", ["inbox", "form", "report"])
@EVERY
def test_a2_what_the_user_has_decided_stays(bench: Bench, name: str, how: str) -> None:
    agent = attacker(bench, name, USER if how == "inbox" else AUTO)
    agent.to_the_gate()
    match how:
        case "inbox":
            agent.decide_in_inbox("no")
            agent.use_decision("no", approved=True)
        case "form":
            agent.respond_asking("no", FormAnswer("accept", {"choice": "no"}), approved=True)
        case _:
            agent.respond("no", approved=True)
    assert agent.variables["approved"] is False
    agent.onward(approved=True)
    assert agent.variables["approved"] is False
    assert "'approved' stays false" in agent.text
    if name == "execution":
        agent.ack(context={"approved": True})
    elif name == "navigation":
        agent.act("complete_step", step_id="send", variables={"approved": None})
    else:
        agent.go("__terminal__", variables={"approved": True})
    assert agent.variables["approved"] is False
    assert "Celebrate" not in agent.text


@EVERY
def test_a2_what_another_option_would_have_set_is_not_for_the_agent_to_set(bench: Bench, name: str) -> None:
    agent = attacker(bench, name)
    agent.to_the_gate()
    agent.respond("later", approved=True)
    assert "approved" not in agent.variables
    agent.onward(approved=True)
    assert "approved" not in agent.variables
    assert "'approved' stays unset" in agent.text


@pytest.mark.parametrize(
    "declared",
    ["actions: [{ action: set, target: approved }]", 'description: "Reset `approved` after sending."'],
    ids=["action", "prose"],
)
@EVERY
def test_a2_a_step_that_is_declared_to_set_a_variable_may(bench: Bench, name: str, declared: str) -> None:
    ship = DEPLOY["deploy/activities/01-ship.yaml"]
    ship = ship.replace('description: "Send it to {{target}}."', declared)
    ship = f"$lenient: true\n{ship}"  # a file of others, in which what a text says to set is inferred
    write(bench.workflows, {**DEPLOY, "deploy/activities/01-ship.yaml": ship})
    agent = Attacker(bench, name)
    agent.to_the_gate()
    agent.respond("no")
    if name != "execution":
        agent.onward()
    match name:
        case "execution":
            agent.ack(context={"approved": True})
        case "navigation":
            agent.act("complete_step", step_id="send", variables={"approved": True})
        case _:
            agent.go("__terminal__", variables={"approved": True})
    assert agent.variables["approved"] is True
    assert "Step 'send' has changed 'approved'" in agent.text


@pytest.mark.parametrize("name", ["session", "gated"])
def test_a2_a_condition_is_judged_without_the_variables_of_the_call(bench: Bench, name: str) -> None:
    plan = DEPLOY["deploy/activities/00-plan.yaml"].replace(
        "transitions:",
        """  - id: danger
    name: Danger
    message: Is it worth the risk?
    condition: { type: simple, variable: approved, operator: "==", value: true }
    options: [{ id: go, label: Go }]
transitions:""",
    )
    write(bench.workflows, {**DEPLOY, "deploy/activities/00-plan.yaml": plan})
    agent = Attacker(bench, name, USER)
    agent.to_the_gate()
    question = next(question for question in inbox(agent.ledger) if question.id == "deploy")
    assert answer_question(agent.ledger, question, "yes")
    token = {"session_token": agent.tokens["session_token"]}
    if name == "session":
        agent.told("resume_checkpoint", **token)
        yielded = agent.told("yield_checkpoint", checkpoint_id="danger", **token)
        token["session_token"] = yielded["session_token"]
    else:
        agent.show("danger")
        token["checkpoint_id"] = "danger"
    for _ in range(2):
        answer = agent.told(
            "respond_checkpoint", condition_not_met=True, variables={"approved": False}, **token
        )
        assert answer["code"] == "CONDITION_HOLDS"
        assert "'approved' stays true" in agent.text
    assert agent.go("ship", variables={"approved": False})["code"] in ("DECISION_PENDING", "GATE_UNANSWERED")


def test_a2_an_open_gate_is_not_talked_out_of_its_condition(bench: Bench) -> None:
    plan = DEPLOY["deploy/activities/00-plan.yaml"].replace(
        '    message: "Deploy',
        '    condition: { type: simple, variable: target, operator: "exists" }\n    message: "Deploy',
    )
    write(bench.workflows, {**DEPLOY, "deploy/activities/00-plan.yaml": plan})
    agent = Attacker(bench, "session", USER)
    agent.to_the_gate()
    for _ in range(2):
        answer = agent.told(
            "respond_checkpoint",
            session_token=agent.tokens["session_token"],
            condition_not_met=True,
            variables={"target": None},
        )
        assert answer["code"] == "CONDITION_HOLDS"


@EVERY
def test_a2_the_state_says_the_same_after_a_rebuild(bench: Bench, name: str) -> None:
    from interlock.ledger.log.rebuild import differences, rebuild

    agent = attacker(bench, name)
    agent.to_the_gate()
    agent.respond_asking("no", FormAnswer("decline"), target="x")
    agent.respond_asking("no", FormAnswer("accept", {"choice": "no"}), approved=True)
    agent.onward(approved=True, target="y")
    with agent.ledger.store.reading() as reader:
        rows = rebuild(agent.session_id, list(reader.commits(agent.session_id)))
        assert list(differences(reader, rows)) == []


RISKY = (
    DEPLOY["deploy/activities/00-plan.yaml"]
    .replace("Make ready. }", "Make ready., checkpoint: deploy }")
    .replace(
        "    message:",
        """    condition: { type: simple, variable: risky, operator: "==", value: true }
    message:""",
    )
)
LOOPED = """
id: plan
version: 1.0.0
name: Plan
loops:
  - id: each
    name: Each
    type: forEach
    variable: part
    over: parts
    steps:
      - { id: look, name: Look, description: Look at it., checkpoint: deploy }
      - { id: prepare, name: Prepare, description: Make ready. }
checkpoints:
  - id: deploy
    name: Deploy
    message: "Is {{part}} worth it?"
    condition: { type: simple, variable: risky, operator: "==", value: true }
    options: [{ id: "yes", label: "Yes" }]
transitions:
  - { to: ship, isDefault: true }
"""


@pytest.mark.parametrize("target", ["ship", "__terminal__"])
@EVERY
def test_a3_a_gate_that_was_passed_over_is_judged_again_on_leaving(
    bench: Bench, name: str, target: str
) -> None:
    write(bench.workflows, {**DEPLOY, "deploy/activities/00-plan.yaml": RISKY})
    agent = Attacker(bench, name)
    agent.start(target="staging")
    match name:
        case "execution":
            agent.ack(context={"risky": True})
            assert "Deploy to «staging»?" in agent.text
            agent.respond("yes")
            assert "Send it to staging" in agent.text
            return
        case "navigation":
            agent.act("complete_step", step_id="prepare")
            refused = agent.act("transition", activity_id=target, variables={"risky": True})
            assert refused["error"]["code"] in ("CHECKPOINT_BLOCKING", "INVALID_TRANSITION")
            agent.respond("yes")
            agent.onward()
        case "session":
            agent.go("plan", variables={"target": "staging"})
            assert agent.go(target, variables={"risky": True})["code"] == "GATE_UNANSWERED"
            assert "Deploy to «staging»?" in agent.text
            agent.told(
                "yield_checkpoint", checkpoint_id="deploy", session_token=agent.tokens["session_token"]
            )
            agent.respond("yes")
            agent.onward()
        case "gated":
            agent.go("plan", variables={"target": "staging"})
            token = {"session_token": agent.tokens["session_token"], "checkpoint_id": "deploy"}
            assert agent.told("respond_checkpoint", condition_not_met=True, **token)["dismissed"]
            assert agent.go(target, variables={"risky": True})["code"] == "GATE_UNANSWERED"
            agent.respond("yes")
            agent.onward()
    assert [record.option for record in agent.decisions() if record.option] == ["yes"]


@EVERY
def test_a3_in_a_loop_it_is_judged_at_the_end_of_each_iteration(bench: Bench, name: str) -> None:
    write(bench.workflows, {**DEPLOY, "deploy/activities/00-plan.yaml": LOOPED})
    agent = Attacker(bench, name)
    agent.start(parts=["one", "two"])
    match name:
        case "execution":
            agent.ack()
            agent.ack(context={"risky": True})
            assert "Is «one» worth it?" in agent.text
            agent.respond("yes")
            assert "Is «two» worth it?" in agent.text
        case "navigation":
            agent.act("advance_loop", loop_id="each")
            agent.act("complete_step", step_id="look")
            agent.act("complete_step", step_id="prepare", variables={"risky": True})
            assert "Is «one» worth it?" in agent.text
            refused = agent.act("advance_loop", loop_id="each")
            assert refused["success"] is False
            agent.respond("yes")
            agent.act("advance_loop", loop_id="each")
            assert "Is «two» worth it?" in agent.text
        case "session":
            agent.go("plan", variables={"parts": ["one", "two"]})
            assert agent.go("ship", variables={"risky": True})["code"] == "GATE_UNANSWERED"
            assert "Is «one» worth it?" in agent.text
        case "gated":
            agent.go("plan", variables={"parts": ["one", "two"]})
            token = {"session_token": agent.tokens["session_token"], "checkpoint_id": "deploy"}
            agent.told("respond_checkpoint", condition_not_met=True, **token)
            assert agent.go("ship", variables={"risky": True})["code"] == "GATE_UNANSWERED"


def test_a3_advisory_enforcement_says_which_gate_was_left_unanswered(bench: Bench) -> None:
    write(bench.workflows, {**DEPLOY, "deploy/activities/00-plan.yaml": RISKY})
    agent = Attacker(bench, "session", Terms(enforcement="advisory", min_response_ms=0))
    agent.start()
    agent.go("plan")
    assert not agent.go("ship", variables={"risky": True})["_error"]
    assert agent.text.count("Checkpoint 'deploy' was not answered") == 2  # the warning, and the gap


@pytest.mark.parametrize("action", ["decline", "cancel"])
@EVERY
def test_a8_a_declined_question_stays_the_users(bench: Bench, name: str, action: Any) -> None:
    agent = attacker(bench, name)
    agent.to_the_gate()
    agent.respond_asking("yes", FormAnswer(action))
    for _ in range(2):
        agent.respond("yes")
        assert agent.decisions() == []
    other = Attacker(bench, name)  # another process, whose client shows no forms
    other.tokens = agent.tokens
    other.respond("yes")
    assert other.decisions() == []
    assert "inbox" in other.text
    agent.decide_in_inbox("no")
    agent.use_decision("no")
    assert [record.channel for record in agent.decisions()] == ["cli"]


@pytest.mark.parametrize("name", ["execution", "navigation"])
def test_a8_a_rewind_does_not_forget_that_the_user_declined(bench: Bench, name: str) -> None:
    agent = attacker(bench, name)
    agent.start(target="staging")
    beginning = dict(agent.tokens)
    agent.to_the_gate_from_the_start()
    agent.respond_asking("yes", FormAnswer("decline"))
    rewound = Attacker(bench, name)  # another process, whose client shows no forms
    rewound.tokens = beginning
    if name == "execution":
        rewound.told("continue_workflow", stateToken=beginning["stateToken"])
        rewound.ack(output={"notesMarkdown": "another way"})
    else:
        rewound.act("complete_step", step_id="prepare", output={"notesMarkdown": "another way"})
    rewound.respond("yes")
    assert rewound.decisions() == []
    assert "inbox" in rewound.text
    ask = rewound.call(rewound.responding("yes")[0], Call(ASKING), **rewound.responding("yes")[1])
    assert isinstance(ask, Elicit), "a form is as strong as the one that was declined"
    rewound.respond_asking("no", FormAnswer("accept", {"choice": "no"}))
    assert [record.channel for record in rewound.decisions()] == ["elicitation"]


@pytest.mark.parametrize("name", ["session", "gated"])
def test_a8_advisory_enforcement_does_not_pass_what_the_user_declined(bench: Bench, name: str) -> None:
    agent = attacker(bench, name, Terms(enforcement="advisory", min_response_ms=0))
    agent.to_the_gate()
    agent.respond_asking("yes", FormAnswer("decline"))
    assert agent.go("ship")["_error"]
    assert "deploy" in agent.text
    agent.decide_in_inbox("no")
    agent.use_decision("no")
    assert not agent.go("ship")["_error"]


def test_a8_a_declined_input_is_not_filled_in_by_the_context(bench: Bench) -> None:
    need = {"reason": "needs_user_artifact", "key": "deploy", "question": "Where is it?"}
    bench.write(workflow({"id": "read", "title": "Read", "prompt": "x", "userInput": [need]}, *steps("last")))
    agent = Attacker(bench, "execution")
    agent.start("test.flow")
    ask = agent.call("continue_workflow", Call(ASKING), **agent._acknowledging())
    assert isinstance(ask, Elicit)
    agent.ack(Call(ASKING, {"deploy": FormAnswer("decline")}, ask.state))
    answer = agent.ack(context={"deploy": "somewhere"})
    assert answer["kind"] == "blocked"
    assert "inbox" in agent.text


def test_a8_a_declined_confirmation_is_not_reported_by_the_next_acknowledgement(bench: Bench) -> None:
    item = {"id": "made", "title": "Made", "prompt": "x", "requireConfirmation": True}
    bench.write(workflow(item, *steps("last")))
    agent = Attacker(bench, "execution")
    agent.start("test.flow")
    ask = agent.call("continue_workflow", Call(ASKING), **agent._acknowledging())
    assert isinstance(ask, Elicit)
    agent.ack(Call(ASKING, {"confirm-made": FormAnswer("decline")}, ask.state))
    for _ in range(2):
        assert agent.ack()["kind"] == "blocked"
    agent.decide_in_inbox("proceed")
    assert agent.ack()["pending"]["stepId"] == "last"


def test_a8_another_question_can_still_be_reported(bench: Bench) -> None:
    bench.write(workflow(gate("deploy", "yes", "no"), gate("next", "left", "right"), *steps("last")))
    agent = Attacker(bench, "execution")
    agent.start("test.flow")
    agent.respond_asking("yes", FormAnswer("decline"))
    agent.decide_in_inbox("yes")
    assert agent.respond("yes")["pending"]["stepId"] == "next"
    answer = agent.ack(output={"artifacts": [decision("next", "left")]})
    assert answer["pending"]["stepId"] == "last"


TELLING = ("wr.decision", "option_id", "optionId", "respond_checkpoint", "Send the user's choice", "report")


@EVERY
def test_a9_under_policy_user_no_answer_says_how_to_send_the_decision(bench: Bench, name: str) -> None:
    agent = attacker(bench, name, USER)
    agent.to_the_gate()
    texts = [agent.text]
    agent.respond("yes")
    texts.append(agent.text)
    agent.respond("nonsense")
    texts.append(agent.text)
    match name:
        case "execution":
            agent.ack()
            texts.append(agent.text)
            agent.told("continue_workflow", stateToken=agent.tokens["stateToken"])
        case "navigation":
            agent.act("complete_step", step_id="send")
            texts.append(agent.text)
            agent.act("transition", activity_id="ship")
            texts.append(agent.text)
            agent.told("nav_situation", state=agent.tokens["state"])
        case _:
            agent.go("ship")
    texts.append(agent.text)
    for text in texts[1:]:
        assert "inbox" in text
    for text in texts[name in ("session", "gated") :]:
        assert not [words for words in TELLING if words in text], text


@EVERY
def test_a7_another_process_cannot_loosen_the_policy(bench: Bench, name: str) -> None:
    agent = attacker(bench, name, USER)
    agent.to_the_gate()
    for terms in (AUTO, Terms(decisions="agent", enforcement="advisory", min_response_ms=0)):
        other = Attacker(bench, name, terms)
        other.tokens = agent.tokens
        other.respond("yes")
        assert "inbox" in other.text
        assert other.decisions() == []
        if name in ("session", "gated"):
            assert other.go("ship")["_error"]


@EVERY
def test_a7_another_process_can_tighten_the_policy_for_its_own_calls(bench: Bench, name: str) -> None:
    agent = attacker(bench, name)
    agent.to_the_gate()
    other = Attacker(bench, name, USER)
    other.tokens = dict(agent.tokens)
    other.respond("yes")
    assert other.decisions() == []
    agent.tokens = other.tokens
    agent.respond("yes")
    assert [record.option for record in agent.decisions()] == ["yes"]


def test_a7_a_session_without_a_run_copies_the_terms_at_its_start(bench: Bench) -> None:
    write(bench.workflows, DEPLOY)
    agent = Attacker(bench, "execution", USER, "guided")
    token = agent.told("start_session")["sessionToken"]
    other = Attacker(bench, "execution", Terms(decisions="agent"), "never-stop")
    answer = other.told("start_workflow", workflowId="deploy", sessionToken=token, context={"target": "x"})
    assert answer["preferences"]["autonomy"] == "guided"
    other.ack()
    assert other.respond("yes")["kind"] == "blocked"


APPROVAL = {"reason": "needs_user_approval", "key": "signed", "question": "Delete {{target}} for good?"}
DELETE = {"id": "delete", "title": "Delete", "prompt": "Delete it.", "userInput": [APPROVAL]}


def approving(
    bench: Bench, name: str, terms: Terms = AUTO, mode: Mode | None = None, key: bool = True
) -> Attacker:
    """An agent before a step that needs the user's approval."""
    need = APPROVAL if key else {field: value for field, value in APPROVAL.items() if field != "key"}
    bench.write(workflow({**DELETE, "userInput": [need]}, *steps("last")))
    agent = Attacker(bench, name, terms, mode)
    agent.start("test.flow", target="the archive")
    if name in ("session", "gated"):
        agent.go("main", variables={"target": "the archive"})
    return agent


def do_step(agent: Attacker, artifact: Payload | None = None, **variables: Any) -> bool:
    """Try to complete the step; say whether that worked."""
    output, given = {"artifacts": [artifact]} if artifact else None, variables or None
    match agent.name:
        case "execution":
            sent = {"output": output, "context": given}
            answer = agent.ack(**{name: value for name, value in sent.items() if value is not None})
            return bool(answer["kind"] == "ok")
        case "navigation":
            answer = agent.act("complete_step", step_id="delete", output=output, variables=given)
            return bool(answer["success"])
        case _:
            manifest = [{"step_id": "delete", "output": output or "done"}]
            answer = agent.go("__terminal__", step_manifest=manifest, variables=given)
            return not answer["_error"]


@pytest.mark.parametrize("word", ["NO, absolutely not", "rejected", "reject", "yes", False])
@EVERY
def test_a4_only_approve_passes(bench: Bench, name: str, word: Any) -> None:
    agent = approving(bench, name)
    assert not do_step(agent, signed=word)
    assert "Delete «the archive» for good?" in agent.text
    assert [record.option for record in agent.decisions() if record.option == "approve"] == []
    assert do_step(agent, signed="approve")
    (record,) = [record for record in agent.decisions() if record.option == "approve"]
    assert (record.gate, record.question) == ("signed", "Delete «the archive» for good?")
    assert (record.channel, record.options) == ("agent", ("approve", "reject"))


@pytest.mark.parametrize("word", ["reject", "rejected", "never"])
@EVERY
def test_a4_a_reported_rejection_does_not_pass(bench: Bench, name: str, word: str) -> None:
    agent = approving(bench, name, key=False)
    gate_id = "delete:needs_user_approval"
    assert not do_step(agent, decision(gate_id, word))
    assert ("has rejected" in agent.text) == (word == "reject")
    assert do_step(agent, decision(gate_id, "approve"))


@EVERY
def test_a4_a_rejection_in_the_inbox_leaves_the_step_pending_and_is_asked_again(
    bench: Bench, name: str
) -> None:
    agent = approving(bench, name, USER)
    assert not do_step(agent, signed="approve")
    (question,) = inbox(agent.ledger)
    assert [option.id for option in question.options] == ["approve", "reject"]
    agent.decide_in_inbox("reject", "keep the last year")
    assert not do_step(agent)
    assert "The user has rejected this: Delete «the archive» for good?" in agent.text
    agent.decide_in_inbox("approve")
    assert do_step(agent)
    assert [(record.option, record.channel) for record in agent.decisions()] == [
        ("reject", "cli"),
        ("approve", "cli"),
    ]
    assert agent.variables["signed"] == "approve"


def test_a4_an_approval_is_asked_for_in_a_form_with_both_options(bench: Bench) -> None:
    agent = approving(bench, "execution")
    for option, passes in (("reject", False), ("approve", True)):
        ask = agent.call("continue_workflow", Call(ASKING), **agent._acknowledging())
        assert isinstance(ask, Elicit)
        (form,) = ask.questions.values()
        assert form.message == "Delete «the archive» for good?"
        listed = [choice["const"] for choice in form.schema["properties"]["choice"]["oneOf"]]  # type: ignore[index]
        assert listed == ["approve", "reject"]
        answers = {"signed": FormAnswer("accept", {"choice": option})}
        answer = agent.ack(Call(ASKING, answers, ask.state))
        assert (answer["kind"] == "ok") == passes
    assert [record.channel for record in agent.decisions()] == ["elicitation", "elicitation"]


@pytest.mark.parametrize("name", ["execution", "navigation"])
def test_a4_a_user_who_can_be_asked_is_asked_though_the_agent_sends_an_approval(
    bench: Bench, name: str
) -> None:
    agent = approving(bench, name)
    given = {"signed": "approve"}
    tool, field = ("continue_workflow", "context") if name == "execution" else ("nav_action", "variables")
    for user in (FormAnswer("accept", {"choice": "reject"}), FormAnswer("decline")):
        arguments = {field: given}
        if name == "execution":
            arguments = agent._acknowledging(**arguments)
        else:
            arguments |= {"state": agent.tokens["state"], "action": "complete_step", "step_id": "delete"}
        ask = agent.call(tool, Call(ASKING), **arguments)
        assert isinstance(ask, Elicit)
        (form,) = ask.questions.values()
        assert form.message == "Delete «the archive» for good?"
        agent.told(tool, Call(ASKING, {"signed": user}, ask.state), **arguments)
        assert "approve" not in [record.option for record in agent.decisions()]
    assert not do_step(agent, signed="approve"), "the user was asked and has not answered"
    agent.decide_in_inbox("approve")
    assert do_step(agent)
    assert [(record.option, record.channel) for record in agent.decisions()] == [
        ("reject", "elicitation"),
        ("approve", "cli"),
    ]


@pytest.mark.parametrize("mode", ["guided", "stop", "never-stop"])
@pytest.mark.parametrize("name", ["execution", "navigation"])
def test_a4_the_question_stands_before_the_work(bench: Bench, name: str, mode: Mode) -> None:
    agent = approving(bench, name, mode=mode)
    assert "Delete the archive for good? (approve or reject)" in agent.text


@pytest.mark.parametrize("name", ["session", "gated"])
def test_a4_the_activity_shows_what_only_the_user_can_give(bench: Bench, name: str) -> None:
    agent = approving(bench, name)
    if name == "session":
        agent.told("get_activity", session_token=agent.tokens["session_token"])
    assert "for good?" in agent.text
    assert "reject" in agent.text


@pytest.mark.parametrize("terms", [USER, AUTO], ids=["in the inbox", "reported"])
@EVERY
def test_a1_an_approval_is_about_what_its_question_showed(bench: Bench, name: str, terms: Terms) -> None:
    agent = approving(bench, name, terms)
    answer: Payload = {"signed": "approve"}
    if terms is USER:
        assert not do_step(agent)
        assert agent.decide_in_inbox("approve") == "Delete «the archive» for good?"
        answer = {}
    assert do_step(agent, target="everything", **answer)
    assert agent.variables["target"] == "the archive"
    assert "'target' stays the archive" in agent.text
    (record,) = agent.decisions()
    assert record.question == "Delete «the archive» for good?"


def test_a1_a_blocked_attempt_does_not_change_what_a_later_approval_is_about(bench: Bench) -> None:
    agent = approving(bench, "execution", USER)
    assert not do_step(agent, target="everything")
    assert agent.decide_in_inbox("approve") == "Delete «the archive» for good?"
    assert do_step(agent)
    assert agent.variables["target"] == "the archive"


def test_a4_what_the_user_gave_is_the_users(bench: Bench) -> None:
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"}
    bench.write(workflow({**DELETE, "userInput": [need]}, *steps("last", "after")))
    agent = Attacker(bench, "execution")
    agent.start("test.flow")
    agent.ack(context={"colour": "red"})
    agent.ack(context={"colour": "blue"})
    assert agent.variables["colour"] == "red"
    assert "'colour' stays red" in agent.text


LAST = """
id: last
version: 1.0.0
name: Last
steps:
  - { id: close, name: Close, description: Close it. }
"""
DETOUR = {
    **DEPLOY,
    "deploy/activities/01-ship.yaml": DEPLOY["deploy/activities/01-ship.yaml"]
    + """checkpoints:
  - { id: shipped, name: Shipped, message: "Is it there?", options: [{ id: "yes", label: "Yes" }] }
transitions: [{ to: last, isDefault: true }]
""",
    "deploy/activities/02-last.yaml": LAST,
}
BY = pytest.mark.parametrize("name", ["session", "gated"])


@pytest.mark.parametrize("target", ["last", "__terminal__"])
@BY
def test_a5_a_jump_over_a_gate_is_refused(bench: Bench, name: str, target: str) -> None:
    write(bench.workflows, DETOUR)
    agent = Attacker(bench, name)
    agent.to_the_gate()
    agent.respond("yes")
    refused = agent.go(target)
    assert refused["code"] == "GATE_UNANSWERED"
    assert "'shipped'" in agent.text
    assert "'ship'" in agent.text
    agent.go("ship")
    assert agent.go(target)["code"] == "GATE_UNANSWERED"


@BY
def test_a5_a_jump_from_the_start_is_refused(bench: Bench, name: str) -> None:
    write(bench.workflows, DETOUR)
    agent = Attacker(bench, name)
    agent.start()
    assert agent.go("ship")["code"] == "GATE_UNANSWERED"
    assert "'deploy'" in agent.text
    assert not agent.go("plan")["_error"]


@BY
def test_a5_a_run_of_another_surface_is_not_taken_over_a_gate(bench: Bench, name: str) -> None:
    write(bench.workflows, DETOUR)
    begun = Attacker(bench, "execution")
    begun.to_the_gate()
    begun.respond("yes")
    agent = Attacker(bench, name)
    agent.told(
        "start_session", workflow_id="deploy", agent_id="agent", session_token=begun.tokens["stateToken"]
    )
    refused = agent.go("last")
    assert refused["code"] == "GATE_UNANSWERED"


@BY
def test_a5_under_advisory_enforcement_it_is_a_gap(bench: Bench, name: str) -> None:
    write(bench.workflows, DETOUR)
    agent = Attacker(bench, name, Terms(enforcement="advisory", min_response_ms=0))
    agent.to_the_gate()
    agent.respond("yes")
    assert not agent.go("last")["_error"]
    assert "Checkpoint 'shipped' of activity 'ship' was left out" in agent.text
    agent.go("__terminal__")
    position = agent.ledger.position(agent.session_id)
    assert isinstance(position, Position)
    assert position.state.status == "complete_with_gaps"


@BY
def test_a5_a_declared_path_around_the_gate_may_be_jumped(bench: Bench, name: str) -> None:
    plan = DEPLOY["deploy/activities/00-plan.yaml"].replace(
        "  - { to: ship, isDefault: true }",
        """  - { to: ship, isDefault: true }
  - { to: last, condition: { type: simple, variable: quick, operator: "==", value: true } }""",
    )
    write(bench.workflows, {**DETOUR, "deploy/activities/00-plan.yaml": plan})
    agent = Attacker(bench, name)
    agent.to_the_gate()
    agent.respond("yes")
    assert not agent.go("last")["_error"]


@BY
def test_a5_going_back_is_no_jump_over_a_gate(bench: Bench, name: str) -> None:
    write(bench.workflows, DETOUR)
    agent = Attacker(bench, name)
    agent.to_the_gate()
    agent.respond("yes")
    agent.go("ship")
    if name == "session":
        agent.told("yield_checkpoint", checkpoint_id="shipped", session_token=agent.tokens["session_token"])
    agent.told(
        "respond_checkpoint",
        session_token=agent.tokens["session_token"],
        option_id="yes",
        **({"checkpoint_id": "shipped"} if name == "gated" else {}),
    )
    assert not agent.go("plan")["_error"]


VERDICT = {
    "kind": "wr.gate_verdict",
    "verdict": "approved",
    "confidence": "high",
    "rationale": "It was seen to work twice.",
}
PROVED = workflow(
    {
        "type": "loop",
        "id": "again",
        "title": "Again",
        "loop": {"type": "while", "condition": {"var": "good", "not_equals": True}, "maxIterations": 3},
        "body": [
            {
                "id": "prove",
                "title": "Prove",
                "prompt": "Prove it.",
                "output": {"contractRef": "wr.contracts.gate_verdict"},
            },
            gate(
                "deploy",
                {"id": "yes", "label": "Yes", "effect": {"setVariable": {"good": True}}},
                {"id": "no", "label": "No", "effect": {"setVariable": {"good": False}}},
            ),
        ],
    }
)


@BY
def test_a6_no_answer_passes_over_the_artifact_of_a_step_before_it(bench: Bench, name: str) -> None:
    bench.write(PROVED)
    agent = Attacker(bench, name)
    agent.start("test.flow")
    agent.go("main")
    claim = [{"step_id": "prove", "output": {"artifacts": [VERDICT]}}]
    if name == "session":
        token = agent.tokens["session_token"]
        refused = agent.told("yield_checkpoint", session_token=token, checkpoint_id="deploy")
        assert refused["code"] == "OUTPUT_REQUIRED"
        agent.told("yield_checkpoint", session_token=token, checkpoint_id="deploy", step_manifest=claim)
        agent.respond("yes")
        assert not agent.go("__terminal__")["_error"]
        return
    assert agent.respond("yes")["code"] == "OUTPUT_REQUIRED"
    assert "wr.gate_verdict" in agent.text
    tool, arguments = agent.responding("yes")
    agent.told(tool, **{**arguments, "step_manifest": claim})
    assert not agent.go("__terminal__")["_error"]


def test_a6_a_loop_with_nothing_to_do_still_asks_for_nothing(bench: Bench) -> None:
    """The condition does not read what its question sets, so an early answer says nothing about a round."""
    bench.write(
        workflow(
            {
                **PROVED["steps"][0],
                "loop": {"type": "while", "condition": {"var": "faults", "equals": True}, "maxIterations": 3},
            }
        )
    )
    agent = Attacker(bench, "gated")
    agent.start("test.flow")
    agent.go("main")
    agent.respond("yes")
    assert agent.go("__terminal__")["_error"], "nobody has said whether there are faults"
    assert not agent.go("__terminal__", variables={"faults": False})["_error"]


REWORK = {
    **DEPLOY,
    "deploy/activities/00-plan.yaml": DEPLOY["deploy/activities/00-plan.yaml"].replace(
        '{ id: later, label: "Later" }', "{ id: redo, label: Redo, effect: { transitionTo: plan } }"
    ),
}


@EVERY
def test_a12_the_rounds_that_follow_are_told_the_users_words(bench: Bench, name: str) -> None:
    write(bench.workflows, REWORK)
    agent = Attacker(bench, name)
    agent.to_the_gate()
    agent.respond_noting("redo", "shorter, please")
    if name in ("session", "gated"):
        assert "shorter, please" in agent.text
        agent.go("plan")
    if name == "navigation":
        agent.act("transition", activity_id="plan")
    assert "The user's note at 'deploy' (redo): shorter, please" in agent.text
    assert [record.note for record in agent.decisions()] == ["shorter, please"]


@EVERY
def test_a12_a_note_in_the_inbox_reaches_the_agent(bench: Bench, name: str) -> None:
    write(bench.workflows, REWORK)
    agent = Attacker(bench, name, USER)
    agent.to_the_gate()
    agent.decide_in_inbox("redo", "shorter, please")
    agent.use_decision("redo")
    if name == "session":
        assert "shorter, please" in agent.text
    if name in ("session", "gated"):
        agent.go("plan")
    if name == "navigation":
        agent.act("transition", activity_id="plan")
    assert "The user's note at 'deploy' (redo): shorter, please" in agent.text


def test_a12_the_next_decision_of_the_gate_replaces_the_note(bench: Bench) -> None:
    write(bench.workflows, REWORK)
    agent = Attacker(bench, "execution")
    agent.to_the_gate()
    agent.respond_noting("redo", "shorter, please")
    agent.ack()
    agent.respond("yes")
    assert "shorter, please" not in agent.text


def test_a10_a_question_waits_while_another_run_of_the_session_goes_on(bench: Bench) -> None:
    write(bench.workflows, DEPLOY)
    bench.write(workflow(*steps("one", "two")))
    agent = Attacker(bench, "execution", USER)
    token = agent.told("start_session")["sessionToken"]
    agent.told("start_workflow", workflowId="deploy", sessionToken=token, context={"target": "staging"})
    agent.ack()
    waiting = dict(agent.tokens)
    agent.respond("yes")
    agent.told("start_workflow", workflowId="test.flow", sessionToken=token)
    agent.ack()
    assert [question.id for question in inbox(agent.ledger)] == ["deploy"]
    agent.decide_in_inbox("yes")
    agent.tokens = waiting
    agent.told("continue_workflow", stateToken=waiting["stateToken"])
    assert agent.ack()["kind"] == "ok"


def test_a7_an_imported_decision_is_shown_as_imported_and_asked_for_again(bench: Bench) -> None:
    agent = attacker(bench, "execution", USER)
    agent.to_the_gate()
    agent.decide_in_inbox("yes")
    ledger = agent.ledger
    with ledger.store.reading() as reader:
        session = reader.session(agent.session_id)
    assert session is not None
    raw = msgspec.json.encode(export_session(ledger.store, session, ledger.pins, ledger.clock()))
    bundle = read_bundle(raw)
    assert not isinstance(bundle, BundleRefused)
    made = import_bundle(ledger, bundle).session_id
    position = ledger.position(made)
    assert isinstance(position, Position)
    assert position.decisions == {}
    waiting = [question for question in inbox(ledger) if question.session_id == made]
    assert [question.message for question in waiting] == ["Deploy to «staging»?"]
    assert answer_question(ledger, waiting[0], "no")
    position = ledger.position(made)
    assert isinstance(position, Position)
    assert [decision.option for decision in position.decisions.values()] == ["no"]
    lines = event_lines(ledger, made, ["decision_recorded", "session_imported"], end=10**6)
    assert [line.imported for line in lines] == [True, True, False]
    assert lines[0].summary("local").endswith(", imported")
    assert not lines[2].summary("local").endswith(", imported")


def real_arguments(bench: Bench, *more: str) -> list[str]:
    write(bench.workflows, DEPLOY)
    return ["--workflows", str(bench.workflows), "--surface", "execution", *more]


def test_a7_a_second_real_server_cannot_loosen_the_policy(bench: Bench) -> None:
    data = bench.folder / "real"
    with Server(data, *real_arguments(bench, "--decisions", "user")) as server:
        first = server.call("start_workflow", workflowId="deploy", context={"target": "staging"})
        gate_at = server.call("continue_workflow", stateToken=first["stateToken"], ackToken=first["ackToken"])
    with Server(data, *real_arguments(bench, "--decisions", "agent", "--mode", "never-stop")) as server:
        answer = server.call(
            "continue_workflow",
            stateToken=gate_at["stateToken"],
            ackToken=gate_at["ackToken"],
            output={"artifacts": [decision("deploy", "yes")]},
        )
        assert answer["kind"] == "blocked"
        assert "inbox" in answer["blockers"][0]["suggestedFix"]


def test_a1_a_real_server_keeps_what_the_user_was_shown_after_being_killed(bench: Bench) -> None:
    data = bench.folder / "real"
    with Server(data, *real_arguments(bench)) as server:
        first = server.call("start_workflow", workflowId="deploy", context={"target": "staging"})
        answer = server.call("continue_workflow", stateToken=first["stateToken"], ackToken=first["ackToken"])
        answer = server.call(
            "continue_workflow",
            stateToken=answer["stateToken"],
            ackToken=answer["ackToken"],
            output={"artifacts": [decision("deploy", "no")]},
            context={"target": "PRODUCTION", "approved": True},
        )
        server.kill()
    with Server(data, *real_arguments(bench)) as server:
        assert "Send it to staging" in answer["pending"]["prompt"]
        assert [notice["code"] for notice in answer["warnings"]] == ["USER_VALUE_KEPT", "USER_VALUE_KEPT"]
        answer = server.call(
            "continue_workflow",
            stateToken=answer["stateToken"],
            ackToken=answer["ackToken"],
            context={"target": "PRODUCTION", "approved": True},
        )
        assert answer["isComplete"]  # the step for what was approved is passed over


def test_a7_a_child_is_not_begun_under_looser_terms_than_its_parent(bench: Bench) -> None:
    agent = attacker(bench, "navigation", USER)
    agent.to_the_gate()
    other = Attacker(bench, "navigation", Terms(decisions="agent"), "never-stop")
    parent = agent.tokens["state"]
    other.told("nav_start", workflow_id="deploy", parent_state=parent, initial_variables={"target": "x"})
    other.act("complete_step", step_id="prepare")
    other.respond("yes")
    assert "inbox" in other.text
