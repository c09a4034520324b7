"""The session surface: its tools, and starting, joining and taking up sessions."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from interlock.core.run.commands import Terms
from interlock.surfaces.call import Call, Reply
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import call_tool
from support.harness import Bench
from support.session_agents import (
    QUICK,
    SessionAgent,
    answer_checkpoint,
    gated,
    join_session,
    session,
    start_flow,
    write_flow,
)


def test_it_is_the_surface_that_its_name_says(bench: Bench) -> None:
    surface = session(bench, QUICK).surface
    assert isinstance(surface, SessionSurface)
    assert surface.name == "session"


@pytest.mark.parametrize("make", [session, gated])
def test_its_tools_are_listed_within_8000_bytes(bench: Bench, make: Callable[[Bench], SessionAgent]) -> None:
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.argument_schema()}
        for tool in make(bench).surface.tools.values()
    ]
    assert len(msgspec.json.encode(listed)) <= 8000


def test_discover_tells_server_version_and_the_way_in(bench: Bench) -> None:
    text = session(bench).call("discover").text
    assert text.startswith("server: interlock\nversion: ")
    assert "`list_workflows`" in text
    assert "`start_session`" in text


@pytest.mark.parametrize(
    ("least", "told"),
    [(3000, "Answers under 3 seconds are refused here."), (1500, "Answers under 1.5 seconds"), (0, None)],
)
def test_discover_tells_the_configured_minimum_response_time(
    bench: Bench, least: int, told: str | None
) -> None:
    for agent in (session(bench, Terms(min_response_ms=least)), gated(bench, Terms(min_response_ms=least))):
        text = agent.call("discover").text
        assert (told in text) if told else ("seconds" not in text)


def test_the_list_has_id_title_version_and_tags(bench: Bench) -> None:
    write_flow(bench)
    agent = session(bench)
    text = agent.call("list_workflows").text
    assert "id: flow\n    title: Flow\n    version: 1.2.0\n    tags[2]: one,two" in text
    assert "id: meta" in text
    health = agent.call("health_check").body
    assert health["workflows_available"] == text.count("  - id: ")
    assert f"version: {health['version']}\n" in agent.call("discover").text
    assert (health["status"], health["uptime_seconds"] >= 0) == ("healthy", True)


def test_a_session_without_workflow_is_of_meta(bench: Bench) -> None:
    assert session(bench).call("start_session", agent_id="a").body["workflow"]["id"] == "meta"


def test_agent_id_is_required(bench: Bench) -> None:
    answer = session(bench).call("start_session", workflow_id="meta")
    assert (answer.error, answer.code) == (True, "VALIDATION_ERROR")
    assert "agent_id" in answer.text


def test_workflow_id_beside_a_token_is_ignored(bench: Bench) -> None:
    """Rule 17."""
    agent = start_flow(bench)
    answer = agent.call(
        "start_session", agent_id="orchestrator", session_token=agent.token, workflow_id="meta"
    )
    assert answer.body["workflow"]["id"] == "flow"
    assert "warning" not in answer.body


def test_another_agent_id_on_an_inherited_token_joins(bench: Bench) -> None:
    agent = start_flow(bench)
    answer = agent.call("start_session", agent_id="worker", session_token=agent.token)
    assert answer.body["message"] == "Joined as worker."
    assert answer.body["inherited"] is True
    assert answer.body["current_activity"] == "gather"
    assert answer.warnings == []


def test_agents_have_tokens_of_their_own_and_are_told_apart_in_the_trace(bench: Bench) -> None:
    agent = start_flow(bench)
    worker = join_session(agent)
    assert worker.token != agent.token
    worker.tell("get_activity")
    agent.tell("get_workflow")
    calls = {event["name"]: event["aid"] for event in agent.tell("get_trace").body["events"]}
    assert calls["get_activity"] == "worker"
    assert calls["get_workflow"] == "orchestrator"


def test_a_run_started_here_is_found_and_taken_up_at_the_execution_surface(bench: Bench) -> None:
    """Rule 34."""
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes", variables={"goal": "bread", "parts": []})
    executor = bench.agent()
    assert executor.call("resume_session", query="flow")["candidates"][0]["workflowId"] == "flow"
    shown = executor.call("continue_workflow", stateToken=agent.token)
    assert shown["pending"]["stepId"] == "weigh"
    executor.ack("weighed")
    assert executor.pending == "begin"
    status = agent.tell("get_workflow_status").body
    assert status["current_activity"] == "build"


def test_a_run_started_at_the_execution_surface_is_taken_up_here(bench: Bench) -> None:
    """Rule 34."""
    write_flow(bench)
    executor = bench.agent()
    begun = executor.start("flow")
    executor.ack("looked", goal="bread")
    agent = session(bench)
    answer = agent.call("start_session", agent_id="a", session_token=begun["stateToken"])
    assert answer.body["inherited"] is True
    assert agent.go("build").code == "GATE_UNANSWERED"
    answer_checkpoint(agent, agent, "scope", "yes")
    assert not agent.go("build").error


def test_a_run_started_by_navigation_is_taken_up_here(bench: Bench) -> None:
    """Rule 34."""
    write_flow(bench)
    surface = NavigationSurface(session(bench).ledger)
    reply = call_tool(surface, "nav_start", {"workflow_id": "flow"}, Call())
    assert isinstance(reply, Reply)
    state = json.loads(reply.text)["state"]
    agent = session(bench)
    answer = agent.call("start_session", agent_id="a", session_token=state)
    assert answer.body["inherited"] is True
    assert agent.tell("get_workflow_status").body["current_activity"] == "gather"
