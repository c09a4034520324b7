"""An agent at a question for named people reads who has answered, who is missing, until when, and to stop."""

from __future__ import annotations

from typing import Any

from support.approvers import RULE, Desk
from support.attacker import EVERY, Attacker, on
from support.harness import Bench, gate, steps, workflow

FAR = (
    "Answered: ada: yes; missing: ben, leads. Until 2027-01-15 08:01:00 UTC, then escalated to board.",
    "end your turn",
)
FIRST = "Answered: nobody yet; missing: ada, ben, leads."


def calls(agent: Attacker) -> list[tuple[str, dict[str, Any]]]:
    """Every call that an agent may make while the question waits."""
    tokens = agent.tokens
    match agent.surface:
        case "execution":
            state = {"stateToken": tokens["stateToken"]}
            notes = {"output": {"notesMarkdown": "So far."}, "checkpointToken": tokens["checkpointToken"]}
            return [
                ("continue_workflow", state),
                ("checkpoint_workflow", {**state, **notes}),
                ("resume_session", {"query": "flow"}),
                agent.responding("ship", "yes"),
            ]
        case "navigation":
            state = {"state": tokens["state"]}
            return [
                ("nav_situation", state),
                ("nav_checkpoint", state),
                ("nav_action", {**state, "action": "complete_step", "step_id": "last"}),
                ("nav_action", {**state, "action": "transition", "activity_id": "__terminal__"}),
                agent.responding("ship", "yes"),
            ]
    token = {"session_token": tokens["session_token"]}
    both = [
        ("next_activity", {**token, "activity_id": "__terminal__"}),
        ("start_session", {**token, "workflow_id": "test.flow", "agent_id": "another"}),
        agent.responding("ship", "yes"),
    ]
    if agent.surface == "session":
        reading = ("get_workflow_status", "get_activity", "get_workflow", "resume_checkpoint")
        return [*((name, token) for name in (*reading, "present_checkpoint")), *both]
    named = {"activity_id": "main", "checkpoint_id": "ship"}
    reread = ("next_activity", {**token, "activity_id": "main"})
    return [("get_workflow", token), ("get_checkpoint", {**token, **named}), reread, *both]


@on(*EVERY)
def test_every_answer_says_how_far_the_approvers_are(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    assert FIRST in desk.agent.text
    desk.answers("ada")
    for tool, arguments in calls(desk.agent):
        desk.agent.call(tool, **arguments)
        for told in FAR:
            assert told in desk.agent.text, (tool, desk.agent.text)


@on(*EVERY)
def test_after_the_time_the_others_are_named(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    desk.answers("ada", "no")
    desk.passes(60)
    for tool, arguments in calls(desk.agent):
        desk.agent.call(tool, **arguments)
        assert "Answered: ada: no; missing: ben, leads, board." in desk.agent.text, tool
        assert "then escalated" not in desk.agent.text


@on(*EVERY)
def test_the_option_that_time_takes_is_named(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface, {"by": ["ada"], "within": "60s", "then": {"option": "no"}})
    assert "Until 2027-01-15 08:01:00 UTC, then 'no' is taken." in desk.agent.text


@on(*EVERY)
def test_an_agent_is_sent_away_no_longer_than_they_need(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    desk.answers("ada")
    desk.answers("ben")
    desk.agent.use_decision("ship", "yes")
    if surface == "gated":
        desk.agent.tell("get_workflow")
    assert "missing:" not in desk.agent.text
    assert "end your turn" not in desk.agent.text


@on(*EVERY)
def test_a_started_run_that_waits_at_once_says_so(bench: Bench, surface: str) -> None:
    bench.write(workflow(gate("ship", "yes", "no", decide=RULE), *steps("last")))
    agent = Attacker(bench, surface)
    agent.start("test.flow", "main")
    agent.reach("ship", "main")
    assert FIRST in agent.text
