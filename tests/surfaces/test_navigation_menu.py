"""What navigation offers is what the engine takes: with time, children, after the end, from old states."""

from __future__ import annotations

import json

import pytest

from interlock.core.run.commands import Terms
from interlock.surfaces.call import Call, Client, Elicit, Reply
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.tool import call_tool
from support.harness import Bench, gate, steps, workflow
from support.navigation_client import NavigationClient, Payload, listed, opened
from support.session_agents import write_flow


@pytest.fixture
def client(bench: Bench) -> NavigationClient:
    return opened(bench)


def codes(answer: Payload) -> list[str]:
    return [warning["code"] for warning in answer.get("warnings", ())]


def test_what_follows_a_gate_is_offered_once_its_time_is_over(bench: Bench, client: NavigationClient) -> None:
    """Rule 24: the default is taken by the next action, so the next action is on the menu."""
    timed = {"blocking": False, "defaultOption": "left", "autoAdvanceMs": 60_000}
    bench.write(workflow(gate("which", "left", "right", **timed), *steps("one")))
    client.start("test.flow")
    bench.clock.pass_seconds(59)
    early = client.situation()
    assert listed(early) == [("respond_to_checkpoint", "which")]
    assert client.done("one")["error"]["code"] == "CHECKPOINT_BLOCKING"
    bench.clock.pass_seconds(1)
    late = client.situation()
    assert listed(late) == [("complete_step", "one")]
    assert ("respond_to_checkpoint", "which") in listed(late, "optional")
    assert codes(client.done("one")) == ["DEFAULT_TAKEN"]


def test_an_answer_is_offered_where_the_client_can_ask_for_it(bench: Bench) -> None:
    """Under policy `client` a call answers the question by a form, and without forms only the inbox does."""
    bench.write(workflow(gate("which", "left", "right"), *steps("one")))
    surface = NavigationSurface(bench.ledger(terms=Terms("client", min_response_ms=0)))
    state = NavigationClient(surface).start("test.flow")["state"]
    offered = {
        can_elicit: json.loads(reply.text)
        for can_elicit in (True, False)
        if isinstance(
            reply := call_tool(
                surface, "nav_situation", {"state": state}, Call(Client(can_elicit=can_elicit))
            ),
            Reply,
        )
    }
    assert listed(offered[True]) == [("respond_to_checkpoint", "which")]
    assert ("respond_to_checkpoint", "which") in listed(offered[False], "blocked")
    answer = {"action": "respond_to_checkpoint", "checkpoint_id": "which", "option_id": "left"}
    asked = call_tool(surface, "nav_action", {"state": state, **answer}, Call(Client(can_elicit=True)))
    assert isinstance(asked, Elicit)


class TestWaitingParents:
    """Rule 35: a parent waits for its child, says so, and can go on without it."""

    @pytest.fixture
    def waiting(self, client: NavigationClient) -> str:
        parent: str = client.into_build()["state"]
        client.call("nav_start", workflow_id="helper", parent_state=parent)
        return parent

    def test_it_says_what_it_waits_for(self, client: NavigationClient, waiting: str) -> None:
        seen = client.situation(waiting)
        assert seen["message"].startswith("Waits for its child: helper.")
        assert seen["availableActions"]["required"] == []

    def test_what_is_offered_beside_the_child_is_taken(self, client: NavigationClient, waiting: str) -> None:
        offers = client.situation(waiting)["availableActions"]["optional"]
        offer = next(offer for offer in offers if offer.get("step") == "prepare")
        assert offer["abandon_children"] is True
        assert offer["description"].startswith("Goes on without the child, which is abandoned.")
        sent = {name: offer[name] for name in ("action", "step_id", "abandon_children")}
        assert client.act(state=waiting, **sent)["success"]

    def test_without_that_it_is_refused(self, client: NavigationClient, waiting: str) -> None:
        blocked = client.situation(waiting)["availableActions"]["blocked"]
        assert {move["reason"] for move in blocked} == {"The run waits for its child: helper"}
        assert (
            client.act("complete_step", state=waiting, step_id="prepare")["error"]["code"] == "CHILD_RUNNING"
        )


def test_after_the_end_only_the_closing_of_a_gap_is_offered(bench: Bench, client: NavigationClient) -> None:
    bench.write(workflow(*steps("one"), id="test.gaps"))
    client.start("test.gaps")
    gap = {"kind": "wr.gaps", "open": [{"summary": "no test yet"}]}
    client.done("one", output={"artifacts": [gap]})
    ended = client.go("__terminal__")
    assert ended["status"] == "completed"
    (offer,) = ended["availableActions"]["optional"]
    assert offer["action"] == "complete_step"
    offer["output"]["artifacts"][0]["resolved"][0] = {"gap": 1, "summary": "tested"}
    closed = client.act("complete_step", step_id=offer["step_id"], output=offer["output"])
    assert closed["success"]
    assert closed["availableActions"] == {"required": [], "optional": [], "blocked": []}


class TestOldStates:
    """An old state is still good for a branch, and every answer about it says that it is old."""

    def test_the_situation_of_an_old_state_leads_to_the_newest(self, client: NavigationClient) -> None:
        first = client.start()["state"]
        newest = client.done("analyze")["state"]
        seen = client.situation(first)
        assert codes(seen) == ["OLD_STATE"]
        assert seen["newest_state"] == newest
        assert codes(client.situation(newest)) == []

    def test_another_action_from_an_old_state_says_that_a_branch_began(
        self, client: NavigationClient
    ) -> None:
        client.start()
        asked = client.done("analyze")["state"]
        yes = client.respond("yes", state=asked)
        stop = client.respond("stop", state=asked)
        assert codes(yes) == []
        assert codes(stop) == ["NEW_BRANCH"]
        assert stop["other_branch_state"] == yes["state"]
        seen = client.situation(yes["state"])
        assert codes(seen) == ["OTHER_BRANCH"]
        assert seen["newest_state"] == stop["state"]

    def test_a_reworded_retry_is_a_replay_that_says_so(self, client: NavigationClient) -> None:
        """Rule 9: an action is known by its ids; what is only sent beside makes no branch."""
        first = client.start()["state"]
        once = client.done("analyze", state=first, output={"notesMarkdown": "looked at it"})
        again = client.done("analyze", state=first, output={"notesMarkdown": "I looked at it."})
        assert codes(again) == ["SENT_BEFORE"]
        assert {**again, "warnings": []} == {**once, "warnings": []}
        assert codes(client.situation(again["state"])) == []

    def test_two_gaps_are_closed_from_one_state(self, bench: Bench, client: NavigationClient) -> None:
        bench.write(workflow(*steps("one"), id="test.gaps"))
        client.start("test.gaps")
        gaps = [{"summary": "no test yet"}, {"summary": "no docs yet"}]
        client.done("one", output={"artifacts": [{"kind": "wr.gaps", "open": gaps}]})
        ended = client.go("__terminal__")["state"]
        for number in (1, 2):
            closed = {"kind": "wr.gaps", "resolved": [{"gap": number, "summary": "done"}]}
            answer = client.done("one", state=ended, output={"artifacts": [closed]})
            assert answer["success"]
        assert answer["message"].startswith("Workflow 'Flow' is completed. The record:")


BRANCHING = {
    "fork/workflow.yaml": """
{id: fork, version: 1.0.0, title: Fork, initialActivity: one, variables: [{name: urgent, type: boolean}]}
""",
    "fork/activities/00-one.yaml": """
id: one
version: 1.0.0
name: One
steps: [{ id: look, name: Look, actions: [{ action: set, target: urgent }] }]
transitions:
  - { to: fast, condition: { type: simple, variable: urgent, operator: "==", value: true } }
  - { to: slow, isDefault: true }
""",
    "fork/activities/01-fast.yaml": "{id: fast, version: 1.0.0, name: Fast, steps: [{id: run, name: Run}]}",
    "fork/activities/02-slow.yaml": "{id: slow, version: 1.0.0, name: Slow, steps: [{id: walk, name: Walk}]}",
}


def test_a_default_exit_that_is_closed_says_why(bench: Bench, client: NavigationClient) -> None:
    write_flow(bench, BRANCHING)
    client.start("fork")
    (shut,) = client.done("look", variables={"urgent": True})["availableActions"]["blocked"]
    reason = "It is open only when no other condition holds. It is decided by: urgent"
    assert (shut["activity"], shut["reason"]) == ("slow", reason)
