"""Tokens of a log that was lost: a restored copy or a repair never lets them acknowledge another step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.doctor_checks import renders
from interlock.ledger.log.repair import Repaired, repair
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.tokens import Pointer, read
from support.harness import steps, workflow
from support.navigation_client import NavigationClient, opened
from support.restores import COPIES, Copies
from support.session_agents import SessionAgent, gated, join_session, manifest, session, write_flow

FLOW = workflow(*steps("first", "second", "third", "fourth"))
CODE = "TOKEN_OTHER_TIMELINE"


@pytest.fixture(params=COPIES)
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Copies]:
    copies: Copies = COPIES[request.param](tmp_path)
    copies.bench.write(FLOW)
    yield copies
    copies.bench.close()


def pointer_of(copies: Copies, token: str) -> Pointer:
    pointer = read(Keys(copies.bench.folder).keyring(), token, ("st", "ack", "ses", "nav"))
    assert isinstance(pointer, Pointer)
    return pointer


def lost_and_new(copies: Copies) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Walk on from a copy, restore it, walk on another way: the answers before, of the lost step, and now."""
    agent = copies.bench.agent()
    agent.start("test.flow")
    before = agent.ack("one")
    copies.copy()
    lost = copies.bench.agent().ack("lost", at=before)
    copies.restore()
    copies.bench.clock.pass_seconds(1)
    new = copies.bench.agent().ack("another", at=before)
    return before, lost, new


def test_the_same_node_of_two_time_lines_has_the_same_number(copies: Copies) -> None:
    _, lost, new = lost_and_new(copies)
    ours, theirs = pointer_of(copies, lost["ackToken"]), pointer_of(copies, new["ackToken"])
    assert (ours.handle, ours.node, ours.attempt) == (theirs.handle, theirs.node, theirs.attempt)
    assert ours.line != theirs.line


def test_an_ack_of_a_lost_step_acknowledges_nothing(copies: Copies) -> None:
    _, lost, new = lost_and_new(copies)
    agent = copies.bench.agent()
    refused = agent.ack("for the lost step", at=lost)
    assert refused["_error"]
    assert refused["code"] == CODE
    assert "'third'" in refused["message"]
    assert "continue_workflow" in refused["details"]["suggestion"]
    current = agent.look(refused["details"])
    assert current["pending"] == new["pending"]
    assert agent.ack("third")["pending"]["stepId"] == "fourth"


def test_every_token_of_a_lost_step_is_refused_and_those_before_it_are_not(copies: Copies) -> None:
    before, lost, new = lost_and_new(copies)
    agent = copies.bench.agent()
    note = {"output": {"notesMarkdown": "x"}}
    kept = agent.call(
        "checkpoint_workflow",
        stateToken=lost["stateToken"],
        checkpointToken=lost["checkpointToken"],
        **note,
    )
    assert kept["code"] == agent.look(lost)["code"] == CODE
    mixed = agent.call("continue_workflow", stateToken=new["stateToken"], ackToken=lost["ackToken"])
    assert mixed["code"] == "TOKEN_SCOPE_MISMATCH"
    assert agent.look(before)["pending"]["stepId"] == "second"
    assert agent.look(new)["pending"]["stepId"] == "third"


def test_a_step_that_is_not_there_yet_is_of_another_time_line(copies: Copies) -> None:
    agent = copies.bench.agent()
    began = agent.start("test.flow")
    copies.copy()
    lost = copies.bench.agent().ack("one", at=began)
    copies.restore()
    agent = copies.bench.agent()
    refused = agent.ack("two", at=lost)
    assert refused["code"] == CODE
    assert "'first'" in refused["message"]
    assert agent.look(refused["details"])["pending"]["stepId"] == "first"


def test_a_recorded_response_is_returned_byte_for_byte_after_a_restore(copies: Copies) -> None:
    agent = copies.bench.agent()
    began = agent.start("test.flow")
    agent.ack("one", at=began)
    told = agent.text
    copies.copy()
    copies.restore()
    agent = copies.bench.agent()
    again = agent.ack("one", at=began)
    assert agent.text == told
    assert agent.ack("two", at=again)["pending"]["stepId"] == "third"


@pytest.mark.parametrize("surface", [session, gated])
def test_a_session_token_of_a_lost_visit_moves_nothing(copies: Copies, surface: Any) -> None:
    write_flow(copies.bench)
    agent: SessionAgent = surface(copies.bench)
    agent.call("start_session", agent_id="lead", workflow_id="child")
    before = agent.token
    copies.copy()
    lost = surface(copies.bench).call("next_activity", session_token=before, activity_id="only").token
    copies.restore()
    copies.bench.clock.pass_seconds(1)
    agent = surface(copies.bench)
    new = agent.call("next_activity", session_token=before, activity_id="only").token
    done = manifest("work")
    refused = agent.call("next_activity", session_token=lost, activity_id="__terminal__", step_manifest=done)
    assert refused.code == CODE
    assert "in activity 'only'" in refused.text
    assert refused.token == new
    assert agent.call("get_trace", session_token=lost).code == CODE
    joined = agent.call("start_session", session_token=refused.token, agent_id="lead", workflow_id="child")
    assert joined.body["current_activity"] == "only"
    assert not agent.tell("next_activity", activity_id="__terminal__", step_manifest=done).error


def test_a_checkpoint_handle_of_a_lost_yield_answers_nothing(copies: Copies) -> None:
    write_flow(copies.bench)
    lead = session(copies.bench)
    lead.call("start_session", agent_id="lead", workflow_id="flow")
    lead.go("gather")
    worker = join_session(lead)
    before = worker.token
    copies.copy()
    yielded = {"checkpoint_id": "scope", "step_manifest": manifest("look")}
    again = session(copies.bench)
    lost = again.call("yield_checkpoint", session_token=before, **yielded).body["checkpoint_handle"]
    copies.restore()
    copies.bench.clock.pass_seconds(1)
    lead = session(copies.bench)
    new = lead.call("yield_checkpoint", session_token=before, **yielded).body["checkpoint_handle"]
    refused = lead.call("respond_checkpoint", checkpoint_handle=lost, option_id="yes")
    assert refused.code == CODE
    assert not lead.call("respond_checkpoint", checkpoint_handle=new, option_id="yes").error


def test_a_state_of_a_lost_action_takes_none(copies: Copies) -> None:
    client = opened(copies.bench)
    before = client.start()["state"]
    copies.copy()
    client = opened(copies.bench)
    lost = client.act("complete_step", state=before, step_id="analyze")["state"]
    copies.restore()
    copies.bench.clock.pass_seconds(1)
    client = NavigationClient(opened(copies.bench).surface)
    new = client.act("complete_step", state=before, step_id="analyze")["state"]
    refused = client.respond("yes", state=lost)
    assert refused["error"]["code"] == CODE
    assert "nav_situation" in refused["error"]["next"]
    assert refused["error"]["state"] == new
    assert client.situation(lost)["error"]["code"] == CODE
    assert client.respond("yes", state=refused["error"]["state"])["success"]


def test_after_a_repair_that_cut_the_lost_tokens_are_refused(copies: Copies) -> None:
    agent = copies.bench.agent()
    before = agent.start("test.flow")
    lost = agent.ack("one", at=before)
    ledger, session_id = agent.ledger, before["session"]["sessionId"]
    copies.change("DELETE FROM commits WHERE last = (SELECT max(last) FROM commits)")
    done = repair(
        ledger.store, session_id, ledger.pins, ledger.library, renders(), owner="local", now=ledger.clock()
    )
    assert isinstance(done, Repaired)
    refused = agent.ack("two", at=lost)
    assert refused["code"] == CODE
    assert "'first'" in refused["message"]
    copies.bench.clock.pass_seconds(1)
    assert agent.ack("one, again", at=before)["pending"]["stepId"] == "second"
    assert agent.ack("two", at=lost)["code"] == CODE
