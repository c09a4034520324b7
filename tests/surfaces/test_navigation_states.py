"""Navigation states: replay, fork, rewind, other surfaces, children, damage and forgery."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import apsw
import pytest

from interlock.cli.doctor_checks import renders
from interlock.ledger.log.repair import inspect, repair
from interlock.ledger.tokens.tokens import STATE_PREFIX
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Reply
from support.harness import Bench, steps, workflow
from support.navigation_client import NavigationClient, Payload, events, listed, opened


@pytest.fixture
def client(bench: Bench) -> NavigationClient:
    return opened(bench)


def test_the_same_action_again_is_a_replay_byte_for_byte(client: NavigationClient) -> None:
    """Rules 7 and 9."""
    first = client.start()
    asked = {"state": first["state"], "action": "complete_step", "step_id": "analyze"}
    once, twice = client.raw("nav_action", **asked), client.raw("nav_action", **asked)
    assert isinstance(once, Reply)
    assert isinstance(twice, Reply)
    assert once.text == twice.text


def test_a_different_action_on_an_old_state_forks(client: NavigationClient) -> None:
    """Rule 9: the branches know nothing of each other."""
    client.start()
    asked = client.done("analyze")["state"]
    yes, stop = client.respond("yes", state=asked), client.respond("stop", state=asked)
    assert yes["state"] != stop["state"]
    assert listed(client.situation(yes["state"])) == [("complete_step", "decide")]
    assert listed(client.situation(stop["state"])) == [("transition", "__terminal__")]
    assert client.act("complete_step", state=yes["state"], step_id="decide")["success"]


def test_a_rewind_restores_the_variables(client: NavigationClient) -> None:
    """Rule 19."""
    client.start()
    before = client.done("analyze", variables={"size": "large"})
    assert "large" in before["checkpoint"]["message"]
    client.respond("yes", variables={"size": "tiny"})
    assert "large" in client.situation(before["state"])["checkpoint"]["message"]


def test_variables_are_kept_when_a_gate_refuses_the_call(client: NavigationClient) -> None:
    """Rules 19 and 40: what came with the call is known from then on, but for what the question shows."""
    client.start()
    reached = client.done("analyze")
    refused = client.done("decide", variables={"size": "huge", "tasks": ["one"]})
    assert refused["state"] == reached["state"]
    assert refused["checkpoint"]["message"] == "Approve the plan of size «any»?"
    assert client.respond("yes", state=reached["state"])["success"]


def test_null_deletes_a_variable(client: NavigationClient) -> None:
    """Rule 19."""
    client.start(size="small")
    reached = client.done("analyze", variables={"size": None})
    assert "size «any»?" in reached["checkpoint"]["message"]


def test_the_situation_takes_the_token_of_another_surface(bench: Bench, client: NavigationClient) -> None:
    """Rule 34."""
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("first")
    seen = client.call("nav_situation", state=agent.last["stateToken"])
    assert seen["position"]["step"]["id"] == "two"
    assert seen["state"].startswith(STATE_PREFIX)
    done = client.act("complete_step", state=seen["state"], step_id="two")
    assert listed(done) == [("transition", "__terminal__")]
    shown = agent.call("continue_workflow", stateToken=done["state"])
    assert shown["pending"]["stepId"] == "__terminal__", "the run has not ended yet"
    assert agent.ack(at=shown)["isComplete"] is True
    assert client.call("nav_situation", state=agent.last["stateToken"])["status"] == "completed"


def test_a_state_whose_call_was_refused_is_taken_up_with_what_was_kept(
    bench: Bench, client: NavigationClient
) -> None:
    """Rules 19 and 34: the state stays, and leads to the node that holds the variables."""
    state = client.start()["state"]
    client.act("complete_step", state=state, step_id="unknown", variables={"size": "large"})
    agent = bench.agent()
    shown = agent.call("continue_workflow", stateToken=state)
    assert shown["context"]["size"] == "large"
    assert "branches" not in shown
    assert "branches" not in agent.look(agent.ack("done", at=shown))


def test_a_child_gets_what_is_passed_on_and_returns_what_the_parent_declares(
    client: NavigationClient,
) -> None:
    """Rule 35."""
    client.start(tasks=["login"])
    client.done("analyze")
    client.respond("yes")
    client.done("decide")
    parent = client.go("build")
    offers = parent["availableActions"]["optional"]
    trigger = next(offer for offer in offers if offer["action"] == "nav_start")
    assert (trigger["workflow_id"], trigger["parent_state"]) == ("helper", parent["state"])
    child = client.call("nav_start", workflow_id="helper", parent_state=trigger["parent_state"])
    assert child["availableActions"]["required"][0]["description"] == 'Help with ["login"].'
    assert client.situation(parent["state"])["children"] == [{"workflow": "helper", "status": "running"}]
    sent = {"tasks": ["other", "more"], "undeclared": 1}
    done = client.act("complete_step", state=child["state"], step_id="aid", variables=sent)
    ended = client.act("transition", state=done["state"], activity_id="__terminal__")
    assert ended["status"] == "completed"
    after = client.situation(parent["state"])
    assert "children" not in after
    client.act("complete_step", state=parent["state"], step_id="prepare")
    assert client.loop()["position"]["loop"]["total"] == 2


def test_what_the_parent_passes_on_is_not_replaced_at_the_childs_start(client: NavigationClient) -> None:
    client.start(tasks=["login"])
    client.done("analyze")
    client.respond("yes")
    client.done("decide")
    parent = client.go("build")["state"]
    sent = {"tasks": ["something else"], "more": 1}
    child = client.call("nav_start", workflow_id="helper", parent_state=parent, initial_variables=sent)
    assert child["availableActions"]["required"][0]["description"] == 'Help with ["login"].'
    assert child["warnings"][0]["code"] == "USER_VALUE_KEPT"


def test_a_child_that_nobody_triggers_gets_nothing_and_a_warning(client: NavigationClient) -> None:
    parent = client.start(tasks=["login"])
    child = client.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    assert child["warnings"][0]["code"] == "NOT_TRIGGERED"
    assert "[unset: tasks]" in child["availableActions"]["required"][0]["description"]


def test_a_parent_that_goes_on_leaves_its_child_behind(client: NavigationClient, bench: Bench) -> None:
    """Rule 35: an abandoned child is recorded."""
    client.start(external=True)
    client.done("analyze")
    client.respond("yes")
    parent = client.done("decide")
    client.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    held = client.act("transition", state=parent["state"], activity_id="build")
    assert (held["error"]["code"], held["availableActions"]["required"]) == ("CHILD_RUNNING", [])
    left = client.act("transition", state=parent["state"], activity_id="build", abandon_children=True)
    assert left["position"]["activity"]["id"] == "build"
    assert [event["outcome"] for event in events(bench, "child_returned")] == ["abandoned"]


def packed(content: bytes) -> str:
    return STATE_PREFIX + base64.b64encode(gzip.compress(content, mtime=0)).decode()


BAD_STATES = [
    ("", "INVALID_FORMAT"),
    ("v2.gzB64.H4sI", "INVALID_FORMAT"),
    (STATE_PREFIX, "DECODE_FAILED"),
    (f"{STATE_PREFIX}***", "DECODE_FAILED"),
    (STATE_PREFIX + base64.b64encode(b"no gzip at all").decode(), "DECOMPRESS_FAILED"),
    (packed(json.dumps({"workflowId": "build", "currentActivity": "review"}).encode()), "VALIDATION_FAILED"),
    (packed(bytes(200)), "VALIDATION_FAILED"),
]


@pytest.mark.parametrize("tool", ["nav_situation", "nav_action", "nav_checkpoint"])
@pytest.mark.parametrize(("state", "code"), BAD_STATES, ids=lambda one: str(one)[:24])
def test_a_state_that_is_not_ours_is_refused_with_its_code(
    client: NavigationClient, tool: str, state: str, code: str
) -> None:
    """Rules 1 and 2."""
    arguments = {"action": "complete_step", "step_id": "analyze"} if tool == "nav_action" else {}
    answer = client.call(tool, state=state, **arguments)
    assert (answer["error"]["code"], answer["_error"]) == (code, True)


def test_one_changed_character_is_never_believed(client: NavigationClient) -> None:
    """Rule 2."""
    state = client.start()["state"]
    for target in range(len(STATE_PREFIX), len(state)):
        other = "A" if state[target] != "A" else "B"
        damaged = state[:target] + other + state[target + 1 :]
        assert client.call("nav_situation", state=damaged)["_error"], target


def test_a_state_of_another_data_directory_is_refused(client: NavigationClient, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    foreign = opened(Bench(elsewhere)).start()["state"]
    assert client.call("nav_situation", state=foreign)["error"]["code"] == "VALIDATION_FAILED"


def test_a_token_of_another_kind_cannot_act(bench: Bench, client: NavigationClient) -> None:
    bench.write(workflow(*steps("one")))
    agent = bench.agent()
    agent.start("test.flow")
    answer = client.act("complete_step", state=agent.last["stateToken"], step_id="one")
    assert answer["error"]["code"] == "INVALID_FORMAT"


@pytest.mark.slow
def test_states_and_answers_stay_small_over_a_thousand_actions(client: NavigationClient) -> None:
    client.into_build()
    first = client.done("prepare")["state"]
    inside = client.loop(loop_items=[f"task {number}" for number in range(100)])
    size, sizes = len(json.dumps(inside)), set[int]()
    for _ in range(5):
        client.state = inside["state"]
        for _ in range(100):
            client.done("code", variables={"note": f"{len(sizes)}"})
            last = client.done("test")
            sizes.add(len(last["state"]))
            assert len(json.dumps(last)) < 2 * size
            if last["position"]["loop"] is not None:
                last = client.loop()
        sizes.add(len(client.state))
    assert sizes == {len(first)}
    assert len(first) <= 96


def test_nothing_is_lost_when_the_store_is_opened_again(bench: Bench, client: NavigationClient) -> None:
    reached = client.into_build()
    again = opened(bench)
    assert listed(again.situation(reached["state"])) == listed(reached)
    assert again.act("complete_step", state=reached["state"], step_id="prepare")["success"]


def broken(bench: Bench) -> list[str]:
    """The sessions whose rows are not what their events make of them."""
    ledger = bench.ledger()
    with ledger.store.reading() as reader:
        sessions = [session.session_id for session in reader.sessions(SessionFilter())]
    return [
        session_id for session_id in sessions if inspect(ledger.store, session_id, ledger.pins) is not None
    ]


def test_every_row_of_this_surface_can_be_rebuilt_from_its_events(
    bench: Bench, client: NavigationClient
) -> None:
    """Rule 44: kept variables, forks and a child's return included."""
    parent = client.into_build()
    client.act("complete_step", state=parent["state"], step_id="nothing", variables={"size": "odd"})
    child = client.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    done = client.act("complete_step", state=child["state"], step_id="aid")
    client.act("transition", state=done["state"], activity_id="__terminal__")
    client.act("complete_step", state=parent["state"], step_id="prepare")
    client.act("complete_step", state=parent["state"], step_id="prepare", variables={"other": "branch"})
    assert broken(bench) == []


def test_a_lost_response_is_rendered_again_by_a_repair(bench: Bench, client: NavigationClient) -> None:
    """Rules 7 and 44."""
    first = client.start()
    done = client.done("analyze")
    connection = apsw.Connection(str(bench.folder / "interlock.db"))
    connection.execute("UPDATE nodes SET response = x'7b7d' WHERE attempt IS NOT NULL")
    connection.close()
    [session] = broken(bench)
    ledger = bench.ledger()
    repair(ledger.store, session, ledger.pins, ledger.library, renders(), owner="local", now=ledger.clock())
    again = client.act("complete_step", state=first["state"], step_id="analyze")
    told = ("position", "availableActions", "checkpoint", "state")
    assert [again[name] for name in told] == [done[name] for name in told]


def test_notes_belong_to_what_the_action_was_about(client: NavigationClient) -> None:
    """Those of a transition or a loop are not the next step's, which nobody has done."""

    def noted(text: str) -> Payload:
        return {"output": {"notesMarkdown": text}}

    client.start()
    client.done("analyze", **noted("looked"))
    client.respond("yes", **noted("agreed"))
    client.done("decide", **noted("decided"))
    client.go("build", **noted("on to building"))
    client.done("prepare", **noted("prepared"))
    client.loop(loop_items=["login"], **noted("one task"))
    recap = client.situation()["brief"]["recap"]["entries"]
    assert [(entry["stepId"], entry["notes"]) for entry in recap] == [
        ("analyze", "looked"),
        ("approve", "agreed"),
        ("decide", "decided"),
        ("plan", "on to building"),
        ("prepare", "prepared"),
        ("task-loop", "one task"),
    ]
