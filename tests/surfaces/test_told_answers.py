"""After a decision every read says what was decided, by whom and with which remark, and none denies it."""

from __future__ import annotations

from typing import Any

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import answer_question, inbox
from support.attacker import (
    CLAIMING,
    EVERY,
    USER,
    Attacker,
    activity,
    on,
    question,
    sets,
    step,
    write_activities,
)
from support.harness import Bench, gate, steps, workflow

CHANNEL = {
    "reason": "needs_user_choice",
    "key": "channel",
    "question": "Which channel?",
    "nonAssumable": "scope_boundary",
}
AGAIN = {"agent_id": "agent", "workflow_id": "deploy"}
DENIALS = ("waits for the user", "must answer this in the inbox", "open the inbox", "decides in the inbox")


def reads(agent: Attacker) -> dict[str, str]:
    """Make every read of a run that the surface has; return the texts."""
    match agent.surface:
        case "execution":
            tools: dict[str, dict[str, Any]] = {
                "continue_workflow": {"stateToken": agent.tokens["stateToken"]}
            }
        case "navigation":
            tools = {name: {"state": agent.tokens["state"]} for name in ("nav_situation", "nav_checkpoint")}
        case "session":
            tools = {
                "get_workflow_status": {},
                "get_activity": {},
                "get_workflow": {},
                "start_session": AGAIN,
            }
        case _:
            tools = {"get_workflow": {}, "start_session": AGAIN, "next_activity": {"activity_id": "plan"}}
    texts: dict[str, str] = {}
    for tool, arguments in tools.items():
        token = {"session_token": agent.tokens["session_token"]} if agent.surface in CLAIMING else {}
        agent.call(tool, **arguments, **token)
        texts[tool] = agent.text
    return texts


def decide(agent: Attacker, gate: str, option: str, note: str) -> None:
    (asked,) = agent.waiting(gate)
    answer_question(agent.ledger, asked, option, note, "console")


@on(*EVERY)
def test_every_read_tells_the_answer_to_a_steps_question(bench: Bench, surface: str) -> None:
    publish = step("publish", "Publish to {{channel}}.", userInput=[CHANNEL])
    write_activities(bench, activity("plan", publish, step("tell", "Tell {{channel}}.")), channel="string")
    agent = Attacker(bench, surface, USER)
    agent.start(channel="evil")
    if surface in CLAIMING:
        agent.go("__terminal__")
    decide(agent, "channel", "stable", "not before noon")
    for tool, text in reads(agent).items():
        assert "The user has answered 'channel': stable (console), and says: not before noon" in text, tool
        assert "evil" not in text, tool
        assert not [denial for denial in DENIALS if denial in text], tool
    agent.walk("publish", "tell", ">__terminal__", channel="evil")
    assert agent.has_done("tell")
    assert agent.variables["channel"] == "stable"


@on(*EVERY)
def test_every_read_tells_that_the_user_has_rejected(bench: Bench, surface: str) -> None:
    need = {"reason": "needs_user_approval", "question": "May it be deleted?"}
    write_activities(bench, activity("plan", step("delete", userInput=[need])))
    agent = Attacker(bench, surface, USER)
    agent.start()
    if surface in CLAIMING:
        agent.go("__terminal__")
    decide(agent, "delete:needs_user_approval", "reject", "it is in use")
    for tool, text in reads(agent).items():
        said = "The user has answered 'delete:needs_user_approval': reject (console), and says: it is in use"
        assert said in text, tool
        assert not [denial for denial in DENIALS if denial in text], tool


@on(*EVERY)
def test_every_read_tells_the_answer_to_a_gate(bench: Bench, surface: str) -> None:
    asks = question("deploy", "Deploy?", yes=sets(approved=True), no=sets(approved=False))
    write_activities(
        bench, activity("plan", asks, step("send", "Approved: {{approved}}.")), approved="boolean"
    )
    agent = Attacker(bench, surface, USER)
    agent.start()
    agent.reach("deploy")
    decide(agent, "deploy", "no", "not today")
    for tool, text in reads(agent).items():
        assert "The user has answered 'deploy': no (console), and says: not today" in text, tool
        assert not [denial for denial in DENIALS if denial in text], tool


def test_a_read_tells_the_remark_of_every_decision(bench: Bench) -> None:
    """An agent that has lost its memory is told what the user said, also with earlier answers."""
    bench.write(workflow(gate("go", "yes", "no"), gate("where", "eu", "us"), *steps("ship")))
    agent = bench.agent(terms=Terms(decisions="user"))
    agent.start("test.flow")
    for gate_id, option, note in (("go", "yes", "only on a weekday"), ("where", "eu", "Frankfurt")):
        (asked,) = inbox(agent.ledger)
        assert asked.id == gate_id
        answer_question(agent.ledger, asked, option, note, "console")
        agent.ack()
    assert agent.pending == "ship"
    assert agent.look()["decisions"] == {
        "go": "yes (Yes), by the user; note: only on a weekday",
        "where": "eu (Eu), by the user; note: Frankfurt",
    }
    assert "The user has answered 'go': yes (console), and says: only on a weekday" in agent.text
    agent.ack("shipped")
    assert "go: yes (Yes), by the user; note: only on a weekday" in agent.text


def test_a_read_shows_values_with_their_types(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    long = ["x" * 100] * 10
    agent.start("test.flow", ready=False, count=3, parts=["a"], name="3", nothing=None, long=long)
    shown = agent.look()["context"]
    assert shown.pop("long").endswith("…")
    assert shown == {"ready": False, "count": 3, "parts": ["a"], "name": "3", "nothing": None}
