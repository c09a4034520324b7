"""The session surface: the trace of calls, and the events that it is made of."""

from __future__ import annotations

from interlock.ledger.log.health import examine
from interlock.ledger.log.records import CallTraced
from support.harness import Bench
from support.log import logged_events
from support.session_agents import (
    answer_checkpoint,
    session_id_of,
    start_flow,
    walk_to_finish,
)


def test_a_trace_token_names_the_calls_of_its_activity(bench: Bench) -> None:
    agent = start_flow(bench)
    agent.tell("get_activity")
    answer_checkpoint(agent, agent, "scope", "yes", variables={"parts": []})
    first = agent.go("build").meta["trace_token"]
    agent.tell("get_skills")
    second = agent.go("finish").meta["trace_token"]
    names = [event["name"] for event in agent.tell("get_trace", trace_tokens=[first]).body["events"]]
    assert names == [
        "get_activity",
        "yield_checkpoint",
        "respond_checkpoint",
        "resume_checkpoint",
        "next_activity",
    ]
    body = agent.tell("get_trace", trace_tokens=[second, first[:-1] + "!"]).body
    assert [event["name"] for event in body["events"]] == ["get_skills", "next_activity"]
    assert body["source"] == "tokens"
    assert body["token_errors"][0]["index"] == 1
    assert all(event["act"] == "build" for event in body["events"])


def test_the_trace_says_why_a_call_was_refused(bench: Bench) -> None:
    agent = start_flow(bench)
    refused = agent.go("nowhere")
    assert refused.error
    last = agent.tell("get_trace").body["events"][-1]
    assert (last["name"], last["s"]) == ("next_activity", "error")
    assert last["err"] == refused.text.partition("\n")[0]


def test_the_trace_itself_leaves_no_trace(bench: Bench) -> None:
    agent = start_flow(bench)
    before = agent.tell("get_trace").body["event_count"]
    agent.tell("get_workflow_status")
    assert agent.tell("get_trace").body["event_count"] == before


def test_the_log_of_a_session_is_whole_and_its_calls_are_events(bench: Bench) -> None:
    agent = walk_to_finish(start_flow(bench))
    store = agent.ledger.store
    with store.reading() as reader:
        session = reader.session(session_id_of(agent))
    assert session is not None
    assert examine(store, session).health == "healthy"
    events = [row.event for row in logged_events(store, session.session_id, "call_traced")]
    tools = [event.tool for event in events if isinstance(event, CallTraced)]
    assert tools.count("next_activity") == 3
    assert {"yield_checkpoint", "respond_checkpoint", "resume_checkpoint", "start_session"} <= set(tools)
