"""What an agent reads at a question says how it comes to the user: by a form, an address, or the inbox."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlock.core.run.commands import Terms
from interlock.core.run.preferences import DecisionPolicy
from interlock.surfaces.call import Address, Call, Client, Elicit, Form, FormAnswer, Reply
from interlock.surfaces.ledger_surface import LedgerSurface
from interlock.surfaces.refusals import AT_ADDRESS
from interlock.surfaces.tool import call_tool
from support.harness import Bench, gate, steps, workflow
from support.text_agents import AGENTS

CONSOLE = "https://desk.example/console"
FORMS, ADDRESSES, NEITHER = Client(can_elicit=True), Client(opens_addresses=True), Client()
BY_FORM, BY_ADDRESS, BY_INBOX = (
    "the client then asks the user",
    "shows the user the address",
    "open the inbox",
)
REPORT = [{"step_id": "one", "output": {"notesMarkdown": "done"}}]


class Reader:
    """An agent that comes to the question 'which', and to what it reads there."""

    def __init__(self, bench: Bench, surface: str, decisions: DecisionPolicy, client: Client) -> None:
        bench.write(workflow(*steps("one"), gate("which", "left", "right"), *steps("two")))
        ledger = bench.ledger(terms=Terms(decisions, min_response_ms=0), console_url=CONSOLE)
        tools: LedgerSurface = AGENTS[surface][1](ledger)
        self.surface, self.client, self.tools = surface, client, tools
        self.text = ""

    def call(self, tool: str, **arguments: Any) -> str:
        reply = call_tool(self.tools, tool, arguments, Call(self.client))
        assert isinstance(reply, Reply), reply
        self.text = reply.text
        return self.text

    def comes_to_the_question(self) -> str:
        """Return all that the agent reads about the question before it is answered."""
        match self.surface:
            case "execution":
                self.call("start_workflow", workflowId="test.flow")
                return self.call("continue_workflow", **self._pair(), output={"notesMarkdown": "done"})
            case "navigation":
                state = self._state(self.call("nav_start", workflow_id="test.flow"))
                done = {"action": "complete_step", "step_id": "one", "output": {"notesMarkdown": "done"}}
                return self.call("nav_action", state=state, **done)
            case "session":
                token = self._session(self.call("start_session", agent_id="lone", workflow_id="test.flow"))
                token = self._session(self.call("next_activity", session_token=token, activity_id="main"))
                before = self.call("get_activity", session_token=token)
                token = self._session(before)
                yielded = {"checkpoint_id": "which", "step_manifest": REPORT}
                token = self._session(self.call("yield_checkpoint", session_token=token, **yielded))
                return before + self.call("get_workflow_status", session_token=token)
            case _:
                token = self._session(self.call("start_session", workflow_id="test.flow"))
                token = self._session(self.call("next_activity", session_token=token, activity_id="main"))
                leaving = {"activity_id": "__terminal__", "step_manifest": REPORT}
                refused = self.call("next_activity", session_token=token, **leaving)
                again = {"workflow_id": "test.flow", "session_token": self._session(refused)}
                return refused + self.call("start_session", **again)

    def answers(self, *reactions: FormAnswer) -> Reply | Elicit:
        """Send what leads to the user, and react to what the user is shown."""
        call, arguments = Call(self.client), self._answering()
        tool = {"execution": "continue_workflow", "navigation": "nav_action"}.get(
            self.surface, "respond_checkpoint"
        )
        outcome = call_tool(self.tools, tool, arguments, call)
        for reaction in reactions:
            assert isinstance(outcome, Elicit), outcome
            call = Call(self.client, dict.fromkeys(outcome.questions, reaction), outcome.state)
            outcome = call_tool(self.tools, tool, arguments, call)
        assert isinstance(outcome, (Reply, Elicit)), outcome
        return outcome

    def _answering(self) -> dict[str, Any]:
        match self.surface:
            case "execution":
                return self._pair()
            case "navigation":
                answer = {"action": "respond_to_checkpoint", "checkpoint_id": "which", "option_id": "left"}
                return {"state": self._state(self.text), **answer}
            case "session":
                return {"session_token": self._session(self.text), "option_id": "left"}
            case _:
                token = self._session(self.text)
                return {"session_token": token, "checkpoint_id": "which", "option_id": "left"}

    def _pair(self) -> dict[str, str]:
        return dict(re.findall(r"^(stateToken|ackToken): (\S+)$", self.text, re.MULTILINE))

    def _state(self, text: str) -> str:
        return re.findall(r'"state":"([^"]+)"', text)[-1]

    def _session(self, text: str) -> str:
        return re.findall(r'session_token"?: ?"?([^\s"]+)', text)[-1]


every = pytest.mark.parametrize("surface", AGENTS)


@every
@pytest.mark.parametrize("decisions", ["auto", "client"])
def test_where_the_client_shows_forms_it_asks(bench: Bench, surface: str, decisions: DecisionPolicy) -> None:
    agent = Reader(bench, surface, decisions, FORMS)
    text = agent.comes_to_the_question()
    assert BY_FORM in text
    assert BY_INBOX not in text
    asked = agent.answers()
    assert isinstance(asked, Elicit)
    assert all(isinstance(question, Form) for question in asked.questions.values())


@every
def test_where_nobody_can_be_asked_the_inbox_waits(bench: Bench, surface: str) -> None:
    for decisions in ("client", "user"):
        agent = Reader(bench, surface, decisions, NEITHER)
        text = agent.comes_to_the_question()
        assert BY_INBOX in text
        assert "client then" not in text
        assert isinstance(agent.answers(), Reply)


@every
def test_where_the_client_opens_addresses_it_shows_that_of_the_question(bench: Bench, surface: str) -> None:
    agent = Reader(bench, surface, "user", ADDRESSES)
    assert BY_ADDRESS in agent.comes_to_the_question()
    asked = agent.answers()
    assert isinstance(asked, Elicit)
    assert all(isinstance(question, Address) for question in asked.questions.values())
    shown = agent.answers(FormAnswer("accept"))
    assert isinstance(shown, Reply)
    assert "has shown the user the address of the question: end your turn" in shown.text
    assert BY_INBOX not in shown.text


@every
def test_where_the_agent_reports_it_asks_the_user_itself(bench: Bench, surface: str) -> None:
    text = Reader(bench, surface, "auto", NEITHER).comes_to_the_question()
    assert BY_INBOX not in text
    assert "the client" not in text


@every
def test_who_has_closed_a_form_is_left_the_inbox(bench: Bench, surface: str) -> None:
    """The agent is not told to send the user the same form again."""
    for decisions in ("auto", "client"):
        agent = Reader(bench, surface, decisions, FORMS)
        agent.comes_to_the_question()
        refused = agent.answers(FormAnswer("decline"))
        assert isinstance(refused, Reply)
        assert BY_INBOX in refused.text
        assert BY_FORM not in refused.text


@every
@pytest.mark.parametrize(("decisions", "client"), [("agent", FORMS), ("agent", NEITHER), ("auto", NEITHER)])
def test_where_the_agents_report_counts_it_asks_the_user(
    bench: Bench, surface: str, decisions: DecisionPolicy, client: Client
) -> None:
    agent = Reader(bench, surface, decisions, client)
    text = agent.comes_to_the_question()
    assert re.search("ask the user", text, re.IGNORECASE)
    assert not [other for other in (BY_FORM, BY_ADDRESS, BY_INBOX) if other in text]


HOW = {
    ("agent", NEITHER): "Ask the user, then call respond_checkpoint with their option_id.",
    ("auto", NEITHER): "Ask the user, then call respond_checkpoint with their option_id.",
    ("auto", FORMS): BY_FORM,
    ("client", FORMS): BY_FORM,
    ("client", NEITHER): BY_INBOX,
    ("user", ADDRESSES): BY_ADDRESS,
    ("user", FORMS): BY_INBOX,
}


@pytest.mark.parametrize(("decisions", "client"), HOW)
@pytest.mark.parametrize("surface", ["session", "gated"])
def test_the_tool_that_shows_a_checkpoint_says_how_it_is_answered(
    bench: Bench, surface: str, decisions: DecisionPolicy, client: Client
) -> None:
    agent = Reader(bench, surface, decisions, client)
    agent.comes_to_the_question()
    token = agent._session(agent.text)
    if surface == "session":
        shown = agent.call("present_checkpoint", session_token=token)
        refused = agent.call("get_activity", session_token=token)
        assert HOW[decisions, client] in refused
    else:
        asked = {"activity_id": "main", "checkpoint_id": "which", "session_token": token}
        shown = agent.call("get_checkpoint", **asked)
    assert HOW[decisions, client] in shown
    assert [how for how in HOW.values() if how in shown] == [
        how for how in HOW.values() if how == HOW[decisions, client]
    ]


STEP_ASKS: dict[tuple[DecisionPolicy, Client], str] = {
    ("agent", FORMS): "Ask the user",
    ("auto", NEITHER): "Ask the user",
    ("auto", FORMS): BY_FORM,
    ("client", FORMS): BY_FORM,
    ("client", NEITHER): BY_INBOX,
    ("user", FORMS): BY_INBOX,
    ("user", ADDRESSES): BY_ADDRESS,
}


@every
@pytest.mark.parametrize(("decisions", "client"), STEP_ASKS)
def test_a_question_of_a_step_says_how_it_comes_to_the_user(
    bench: Bench, surface: str, decisions: DecisionPolicy, client: Client
) -> None:
    agent = Reader(bench, surface, decisions, client)
    asked = {"reason": "needs_user_choice", "key": "color", "question": "Which color?"}
    step = {**steps("one")[0], "userInput": [{**asked, "nonAssumable": "preference_tradeoff"}]}
    bench.write(workflow(step, *steps("two")))
    if surface == "execution":
        text = agent.call("start_workflow", workflowId="test.flow")
    elif surface == "navigation":
        text = agent.call("nav_start", workflow_id="test.flow")
    else:
        starting = {"agent_id": "lone"} if surface == "session" else {}
        token = agent._session(agent.call("start_session", workflow_id="test.flow", **starting))
        token = agent._session(agent.call("next_activity", session_token=token, activity_id="main"))
        joining = {"workflow_id": "test.flow", "session_token": token, **starting}
        text = agent.call("start_session", **joining)
    ways = {way: way in text for way in STEP_ASKS.values()}
    assert ways == {way: way == STEP_ASKS[decisions, client] for way in STEP_ASKS.values()}
    if surface == "execution":
        assert ("context.color" in text) == (STEP_ASKS[decisions, client] not in (BY_INBOX, BY_ADDRESS))


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_a_step_that_has_shown_its_address_says_so(bench: Bench, surface: str) -> None:
    agent = Reader(bench, surface, "user", ADDRESSES)
    asked = {"reason": "needs_user_choice", "key": "color", "question": "Which color?"}
    step = {**steps("one")[0], "userInput": [{**asked, "nonAssumable": "preference_tradeoff"}]}
    bench.write(workflow(step, *steps("two")))
    starting = {"agent_id": "lone"} if surface == "session" else {}
    token = agent._session(agent.call("start_session", workflow_id="test.flow", **starting))
    token = agent._session(agent.call("next_activity", session_token=token, activity_id="main"))
    leaving = {"session_token": token, "activity_id": "__terminal__", "step_manifest": REPORT}
    shown = call_tool(agent.tools, "next_activity", leaving, Call(ADDRESSES))
    assert isinstance(shown, Elicit)
    reactions = dict.fromkeys(shown.questions, FormAnswer("accept"))
    told = call_tool(agent.tools, "next_activity", leaving, Call(ADDRESSES, reactions, shown.state))
    assert isinstance(told, Reply)
    assert AT_ADDRESS in told.text
    assert BY_INBOX not in told.text
