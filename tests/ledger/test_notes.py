"""The notes of a session: those of a branch, those of no run, and the error about a missing node."""

from __future__ import annotations

import pytest

from interlock.ledger.errors import LedgerError
from interlock.ledger.queries.status import Notes, find_session, notes_of, recent_references
from support.authored import write
from support.harness import Agent, Bench, FormAnswer, gate, steps, workflow
from support.navigation_client import opened

LONG = "x" * 3000


@pytest.fixture
def agent(bench: Bench) -> Agent:
    bench.write(workflow(*steps("first", "second", "third")))
    return bench.agent()


def session_id_of(agent: Agent) -> str:
    session_id: str = agent.last["session"]["sessionId"]
    return session_id


def read_notes(agent: Agent, session_id: str, node: int | None = None) -> Notes:
    with agent.ledger.store.reading() as reader:
        session = reader.session(session_id)
    assert session is not None
    return notes_of(agent.ledger, session, node)


def steps_noted(notes: Notes) -> list[tuple[str, str]]:
    return [(entry.step, entry.notes) for entry in notes.entries]


def test_notes_end_at_the_node_that_is_named_or_else_at_the_head(agent: Agent) -> None:
    agent.start("test.flow")
    first_node = head_node(agent)
    agent.ack("began")
    second_node = head_node(agent)
    agent.ack("went on")
    session_id = session_id_of(agent)
    assert steps_noted(read_notes(agent, session_id)) == [("first", "began"), ("second", "went on")]
    assert steps_noted(read_notes(agent, session_id, second_node)) == [("first", "began")]
    assert steps_noted(read_notes(agent, session_id, first_node)) == []


def head_node(agent: Agent) -> int:
    with agent.ledger.store.reading() as reader:
        session = reader.session(session_id_of(agent))
    assert session is not None
    assert session.head_node is not None
    return session.head_node


def test_a_node_that_is_not_there_is_an_error(agent: Agent) -> None:
    agent.start("test.flow")
    with pytest.raises(LedgerError) as error:
        read_notes(agent, session_id_of(agent), 99)
    assert error.value.code == "NOT_FOUND"
    assert "99" in error.value.message


def test_a_session_without_a_run_has_only_its_own_notes(agent: Agent) -> None:
    token = agent.call("start_session", title="Think first")["sessionToken"]
    agent.call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": "an idea"})
    notes = read_notes(agent, session_id_of(agent))
    assert (notes.entries, notes.session, notes.workflow_id) == ((), ("an idea",), "")
    with pytest.raises(LedgerError):
        read_notes(agent, session_id_of(agent), 0)


def test_notes_come_in_the_order_in_which_they_were_written(agent: Agent) -> None:
    """A note that is saved at a node after the run has left it comes after the notes of the step."""
    first = agent.start("test.flow")
    second = agent.ack("began", at=first)
    tokens = {name: first[name] for name in ("stateToken", "checkpointToken")}
    agent.call("checkpoint_workflow", **tokens, output={"notesMarkdown": "an afterthought"})
    agent.ack("went on", at=second)
    notes = [text for _, text in steps_noted(read_notes(agent, session_id_of(agent)))]
    assert notes == ["began", "an afterthought", "went on"]


def save_note(agent: Agent, at: FormAnswer, notes: str) -> None:
    tokens = {name: at[name] for name in ("stateToken", "checkpointToken")}
    agent.call("checkpoint_workflow", **tokens, output={"notesMarkdown": notes})


def shown_and_omitted(recap: FormAnswer) -> tuple[list[str], int]:
    return [entry["notes"].split(" x")[0] for entry in recap["entries"]], recap["omitted"]


def test_a_short_recap_counts_notes_saved_after_the_run_had_left_their_node(bench: Bench) -> None:
    bench.write(workflow(*steps("first", "second", "third", "fourth", "fifth")))
    agent = bench.agent()
    first = agent.start("test.flow")
    second = agent.ack("first " + LONG, at=first)
    third = agent.ack("second " + LONG, at=second)
    save_note(agent, first, "afterthought " + LONG)
    save_note(agent, agent.look(first), "another " + LONG)
    fourth = agent.ack("third " + LONG, at=third)
    agent.ack("fourth " + LONG, at=fourth)
    assert shown_and_omitted(agent.look()["recap"]) == (["third", "fourth"], 4)
    assert shown_and_omitted(agent.look(second)["branches"]["downstream"]) == (["fourth"], 2)
    assert shown_and_omitted(agent.look(first)["branches"]["downstream"]) == (["fourth"], 5)


def test_a_late_note_counts_on_every_branch_below_its_node_and_on_no_other(bench: Bench) -> None:
    bench.write(workflow(*steps("first", "second", "third", "fourth")))
    agent = bench.agent()
    first = agent.start("test.flow")
    left = agent.ack("left " + LONG, at=first)
    right = agent.ack("right " + LONG, at=agent.look(first))
    agent.ack("left again " + LONG, at=left)
    left_tip = agent.ack("left at last " + LONG)
    agent.ack("right again " + LONG, at=right)
    right_tip = agent.ack("right at last " + LONG)
    save_note(agent, left, "late on the left " + LONG)
    assert agent.look(left_tip)["recap"]["omitted"] == 2
    assert agent.look(right_tip)["recap"]["omitted"] == 1
    save_note(agent, first, "late for both " + LONG)
    assert agent.look(left_tip)["recap"]["omitted"] == 3
    assert agent.look(right_tip)["recap"]["omitted"] == 2


def test_a_short_recap_counts_what_it_leaves_out(bench: Bench) -> None:
    bench.write(workflow(gate("which", "left", "right"), *steps("second", "third")))
    agent = bench.agent()
    agent.start("test.flow")
    blocked = agent.ack("blocked " + "x" * 3000)
    tokens = {name: blocked[name] for name in ("stateToken", "checkpointToken")}
    agent.call("checkpoint_workflow", **tokens, output={"notesMarkdown": "saved " + "x" * 3000})
    agent.ack("blocked again " + "x" * 3000, at=blocked)
    agent.decide("left")
    agent.ack("second " + "x" * 3000)
    recap = agent.look()["recap"]
    assert [entry["notes"].split(" x")[0] for entry in recap["entries"]] == ["blocked again", "second"]
    assert recap["omitted"] == 2


def test_an_attempt_with_an_earlier_token_is_made_where_the_run_has_kept_variables_since(
    bench: Bench,
) -> None:
    navigator, agent = opened(bench), bench.agent()
    navigator.start()
    navigator.done("analyze")
    before = agent.call("resume_session", query="")["best"]
    assert agent.ack("an early attempt", at=before)["kind"] == "blocked"
    navigator.done("unknown", variables={"result": "none"})  # refused; a node of its own keeps its variables
    moved = agent.call("resume_session", query="")["best"]
    assert agent.ack("a late attempt", at=agent.look(before))["kind"] == "blocked"
    assert moved["stateToken"] != before["stateToken"]
    entries = agent.look(moved)["recap"]["entries"]
    assert [entry["notes"] for entry in entries] == ["done", "an early attempt", "a late attempt"]


HEAD = """
id: clauses
version: 1.0.0
title: Clauses
initialActivity: first
"""
PASSED_OVER = """
id: first
version: 1.0.0
name: First
steps:
  - { id: look, name: Look, description: Look., required: false }
  - { id: work, name: Work, description: Work. }
  - { id: polish, name: Polish, description: Polish., required: false }
checkpoints:
  - id: ship
    name: Ship
    message: Ship it?
    options: [{ id: "yes", label: "Yes" }, { id: "no", label: "No" }]
"""


def test_notes_belong_to_what_was_closed_also_past_optional_steps(bench: Bench) -> None:
    client = opened(bench)
    write(bench.workflows, {"clauses/workflow.yaml": HEAD, "clauses/activities/00-first.yaml": PASSED_OVER})
    client.start("clauses")
    client.done("work", output={"notesMarkdown": "worked"})
    client.respond("yes", "ship", output={"notesMarkdown": "asked"})
    client.go("__terminal__", output={"notesMarkdown": "left"})
    (session,) = recent_references(bench.ledger(), 2)
    noted = notes_of(bench.ledger(), find_session(bench.ledger(), session))
    assert steps_noted(noted) == [("work", "worked"), ("ship", "asked"), ("first", "left")]
