"""What waits for the user is what was put, and an answer is for nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.core.run import events as e
from interlock.ledger.decisions.inbox import (
    AskedQuestion,
    LocatedQuestion,
    answer_question,
    inbox,
    questions,
)
from interlock.ledger.errors import LedgerError
from interlock.ledger.queries.status import find_session, session_status
from interlock.ledger.runs.whole_session import WholeSession
from interlock.store.protocol import SessionRow
from support.attacker import CLAIMING, EVERY, USER, Attacker, on
from support.harness import Bench, gate, steps, workflow
from support.log import logged_events

LOOP = {"type": "forEach", "items": "hosts", "itemVar": "host", "maxIterations": 5}


def asking_in_rounds(bench: Bench, surface: str = "execution") -> Attacker:
    """Ask the same words in every round of a loop."""
    body = [gate("deploy", "yes", "no", message="Deploy it?"), *steps("launch")]
    bench.write(workflow({"type": "loop", "id": "each", "title": "Each", "loop": LOOP, "body": body}))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", hosts=["a", "b"])
    return agent


def test_an_answer_to_one_round_is_never_one_to_the_next(bench: Bench) -> None:
    agent = asking_in_rounds(bench)
    (first,) = agent.waiting("deploy")
    agent.user_decides("deploy", "yes")
    agent.ack()
    agent.ack()
    (second,) = agent.waiting("deploy")
    assert (first.key, second.key) == ("each@0::deploy", "each@1::deploy")
    assert first.shown == second.shown
    with pytest.raises(LedgerError) as refused:
        answer_question(agent.ledger, first, "no")
    assert refused.value.code == "ALREADY_DECIDED"
    assert refused.value.details["question"]["key"] == second.key  # type: ignore[index, call-overload]
    for other in (
        replace(second, key=first.key),
        replace(second, run_id="run_another"),
        replace(second, node=first.node),
        replace(second, shown="sha256:another"),
    ):
        with pytest.raises(LedgerError):
            answer_question(agent.ledger, other, "no")
    assert agent.waiting("deploy") == [second]


def test_a_question_in_a_loop_names_its_round_and_item(bench: Bench) -> None:
    agent = asking_in_rounds(bench)
    (first,) = agent.waiting("deploy")
    agent.user_decides("deploy", "yes")
    agent.ack()
    agent.ack()
    (second,) = agent.waiting("deploy")
    assert [first.name, second.name] == ["Deploy (round 1 of 2: «a»)", "Deploy (round 2 of 2: «b»)"]


def test_a_question_of_a_step_in_nested_loops_names_all_its_rounds(bench: Bench) -> None:
    need = {"reason": "needs_user_approval", "key": "signed", "question": "Wipe it?"}
    disks = {"type": "forEach", "items": "disks", "itemVar": "disk", "maxIterations": 5}
    inner = {
        "type": "loop",
        "id": "disk",
        "title": "Disk",
        "loop": disks,
        "body": steps("wipe", userInput=[need]),
    }
    bench.write(workflow({"type": "loop", "id": "each", "title": "Each", "loop": LOOP, "body": [inner]}))
    agent = Attacker(bench, "execution", USER)
    agent.start("test.flow", hosts=["a", "b"], disks=["x"])
    agent.ack()
    (asked,) = agent.waiting("signed")
    assert asked.name == "Wipe (round 1 of 2: «a», round 1 of 1: «x»)"


def test_a_gated_checkpoint_names_its_round_and_item(bench: Bench) -> None:
    body = [gate("deploy", "yes", "no", message="Deploy it?"), *steps("launch")]
    bench.write(workflow({"type": "loop", "id": "each", "title": "Each", "loop": LOOP, "body": body}))
    agent = Attacker(bench, "gated")
    agent.start("test.flow", "main", hosts=["a", "b"])
    shown = agent.reach("deploy", "main")["checkpoint"]
    assert (shown["iteration"], shown["item"]) == (1, "a")
    assert agent.respond("deploy", "yes")["iteration"] == 1
    agent.do("launch")
    shown = agent.reach("deploy", "main")["checkpoint"]
    assert (shown["iteration"], shown["item"]) == (2, "b")


def test_a_question_that_has_changed_is_refused_with_what_it_is_now(bench: Bench) -> None:
    agent = asking_in_rounds(bench)
    (asked,) = agent.waiting("deploy")
    with pytest.raises(LedgerError) as refused:
        answer_question(agent.ledger, replace(asked, shown="sha256:another"), "yes")
    assert refused.value.code == "QUESTION_CHANGED"
    assert refused.value.details["question"]["message"] == "Deploy it?"  # type: ignore[index, call-overload]
    assert agent.waiting("deploy") == [asked]


def shown_with_position(agent: Attacker) -> LocatedQuestion:
    """Read the question that waits as a terminal does, together with its position."""
    (asked,) = agent.waiting("deploy")
    (located,) = questions(agent.ledger, find_session(agent.ledger, asked.session_id))
    return located


@pytest.mark.parametrize("surface", ["execution", "session"])
def test_a_question_that_was_answered_while_it_was_on_the_screen_is_refused(
    bench: Bench, surface: str
) -> None:
    agent = asking_in_rounds(bench, surface)
    agent.reach("deploy", "main")
    on_screen = shown_with_position(agent)
    agent.user_decides("deploy", "yes")
    with pytest.raises(LedgerError) as refused:
        answer_question(agent.ledger, on_screen, "no", "", "cli")
    assert refused.value.code == "ALREADY_DECIDED"


def test_a_question_that_still_waits_is_answered_although_its_session_has_changed(bench: Bench) -> None:
    agent = asking_in_rounds(bench)
    on_screen = shown_with_position(agent)
    head = find_session(agent.ledger, on_screen.question.session_id).head_index
    agent.ack()
    assert find_session(agent.ledger, on_screen.question.session_id).head_index > head
    assert answer_question(agent.ledger, on_screen, "yes", "", "cli")
    assert agent.waiting("deploy") == []


def test_the_inbox_shows_the_question_as_it_was_recorded(bench: Bench) -> None:
    agent = asking_in_rounds(bench)
    (asked,) = inbox(agent.ledger)
    events = [row.event for row in logged_events(agent.ledger.store, asked.session_id)]
    (put,) = [event for event in events if isinstance(event, e.QuestionShown)]
    assert (asked.key, asked.shown, asked.message, asked.since) == (
        put.key,
        put.shown,
        put.question,
        put.at,
    )


def test_an_answer_to_a_session_that_is_not_there_is_not_recorded(bench: Bench) -> None:
    with pytest.raises(LedgerError) as refused:
        answer_question(bench.ledger(), AskedQuestion("sess_none", 1, "deploy", "sha256:x"), "yes")
    assert refused.value.code == "ALREADY_DECIDED"


def test_a_run_waits_for_what_its_own_surface_says(bench: Bench) -> None:
    """A navigating agent begins the rounds itself; before that nothing in them is asked."""
    agent = asking_in_rounds(bench, "navigation")
    session = find_session(agent.ledger, agent.session_id)
    assert isinstance(session, SessionRow)
    (run,) = session_status(WholeSession(agent.ledger, session)).runs
    assert (run.pending.kind, run.pending.id) == ("choice", "each")
    assert questions(agent.ledger, session) == []


@on(*EVERY)
def test_a_rejection_is_used_once_and_the_user_is_asked_again(bench: Bench, surface: str) -> None:
    """Rule 26."""
    need = {"reason": "needs_user_approval", "question": "May it be deleted?"}
    bench.write(workflow(*steps("delete", userInput=[need]), *steps("last")))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main")

    def delete() -> None:
        agent.do("delete")
        if surface in CLAIMING:
            agent.go("__terminal__")

    delete()
    for option in ("reject", "reject", "reject", "approve"):
        agent.user_decides("delete:needs_user_approval", option)
        delete()
        assert agent.has_done("delete") is (option == "approve")
    answers = logged_events(agent.ledger.store, agent.session_id, "gate_resolved")
    assert [answer.event.option for answer in answers] == ["reject", "reject", "reject", "approve"]  # type: ignore[union-attr]
