"""The navigation surface at its boundary: its document's response, every action, every code."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from interlock.core.run.commands import Terms
from interlock.surfaces.call import Call, Client, Elicit, FormAnswer, Reply
from support.harness import Bench, filled, gate, steps, workflow
from support.navigation_client import NavigationClient, Payload, events, listed, opened

ENDED = "Loop 'task-loop' ended without another round; take one of availableActions"


@pytest.fixture
def client(bench: Bench) -> NavigationClient:
    return opened(bench)


def test_the_response_is_the_documents(client: NavigationClient) -> None:
    first = client.start()
    assert list(first)[:6] == ["success", "position", "message", "availableActions", "checkpoint", "state"]
    assert first["position"] == {
        "workflow": "build",
        "activity": {"id": "plan", "name": "Planning"},
        "step": {"id": "analyze", "index": 0, "name": "Analyze"},
        "loop": None,
    }
    assert (first["success"], first["message"]) == (True, "Started workflow 'Build' at activity 'plan'")
    assert first["availableActions"]["required"][0]["description"].startswith("Look at it.")
    assert first["checkpoint"] is None
    assert first["state"].startswith("v1.gzB64.H4sIAAAA")
    assert not first["_error"]


def test_an_answer_is_sent_once(client: NavigationClient) -> None:
    """The text is the whole answer, and no structure repeats it."""
    replies = [client.raw("nav_start", workflow_id="build"), client.raw("nav_start", workflow_id="nowhere")]
    for reply in replies:
        assert isinstance(reply, Reply)
        assert json.loads(reply.text)["message"]
        assert reply.structured is None


def test_what_every_agent_reads_of_the_tools_is_short(client: NavigationClient) -> None:
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.argument_schema()}
        for tool in client.surface.tools.values()
    ]
    assert len(msgspec.json.encode(listed)) <= 6200


def test_a_step_is_completed_in_order(client: NavigationClient) -> None:
    first = client.start()
    early = client.act("complete_step", step_id="decide")
    assert (early["success"], early["error"]["code"]) == (False, "STEP_NOT_PENDING")
    assert early["state"] == first["state"]
    assert early["message"].startswith("Action failed: ")
    assert client.done("analyze")["message"] == "Completed step 'analyze'"


def test_a_checkpoint_blocks_when_its_step_is_reached(client: NavigationClient) -> None:
    client.start(size="small")
    reached = client.done("analyze")
    assert listed(reached) == [("respond_to_checkpoint", "approve")]
    assert ("complete_step", "decide") in listed(reached, "blocked")
    assert reached["checkpoint"]["message"] == "Approve the plan of size «small»?"
    assert reached["checkpoint"]["options"][1] == {
        "id": "redo",
        "label": "Redo",
        "description": "Begin again",
        "effect": "goes to plan",
    }
    refused = client.done("decide")
    assert refused["error"]["code"] == "CHECKPOINT_BLOCKING"
    assert refused["error"]["message"] == "Must respond to checkpoint before completing steps"
    answered = client.respond("yes")
    assert answered["message"] == "Responded to checkpoint 'approve' with 'yes'"
    assert listed(answered) == [("complete_step", "decide")]


def test_nav_checkpoint_shows_the_open_question_and_nothing_else(client: NavigationClient) -> None:
    client.start(size="small")
    quiet = client.call("nav_checkpoint", state=client.state)
    assert quiet["active"] is False
    assert quiet["message"] == "No checkpoint is currently blocking progress"
    reached = client.done("analyze")
    shown = client.call("nav_checkpoint", state=client.state)
    assert (shown["active"], shown["checkpoint"]) == (True, reached["checkpoint"])


def test_effects_are_applied_and_decide_the_way(client: NavigationClient) -> None:
    """Rules 19 and 21: the option set a variable; the server evaluates the condition with it."""
    client.start()
    client.done("analyze")
    client.respond("yes")
    ready = client.done("decide")
    assert listed(ready) == [("transition", "build")]
    assert client.go("build")["message"] == "Transitioned to activity 'build'"


def test_an_option_that_leads_elsewhere_leaves_only_that_way(client: NavigationClient) -> None:
    """Rule 21: at once, over the remaining steps."""
    client.start()
    client.done("analyze")
    away = client.respond("redo")
    assert listed(away) == [("transition", "plan")]
    assert ("transition", "build") in listed(away, "blocked")
    assert client.go("build")["error"]["code"] == "INVALID_TRANSITION"
    again = client.go("plan")
    assert again["position"]["step"]["id"] == "analyze"


def test_a_way_over_unset_variables_is_offered_with_its_condition_and_recorded_as_a_claim(
    client: NavigationClient, bench: Bench
) -> None:
    """Rule 22."""
    client.start()
    client.done("analyze")
    client.respond("yes")
    ready = client.done("decide")
    offer = next(item for item in ready["availableActions"]["optional"] if item.get("activity") == "review")
    assert offer["condition"] == "external == true"
    assert client.go("review")["position"]["activity"]["id"] == "review"
    assert [event["via"] for event in events(bench, "activity_left")] == ["claim"]


def test_a_false_way_is_refused(client: NavigationClient) -> None:
    """Rule 22."""
    client.start(external=False)
    client.done("analyze")
    client.respond("yes")
    ready = client.done("decide")
    assert listed(ready, "optional") == []
    assert ("transition", "review") in listed(ready, "blocked")
    assert client.go("review")["error"]["code"] == "INVALID_TRANSITION"


def test_a_loop_starts_with_its_items_iterates_and_ends(client: NavigationClient) -> None:
    """Rule 30."""
    client.into_build()
    waiting = client.done("prepare")
    assert listed(waiting) == [("advance_loop", "task-loop")]
    offer = waiting["availableActions"]["required"][0]
    assert offer["description"] == "Start loop 'Tasks': send its list 'tasks' as loop_items."
    assert offer["loop_items"] == ["<item>"]
    starved = client.loop()
    assert starved["error"]["code"] == "LOOP_ITEMS_REQUIRED"
    inside = client.loop(loop_items=["login", "logout"])
    assert inside["message"] == "Started loop 'task-loop'"
    loop = {"id": "task-loop", "name": "Tasks", "iteration": 1, "total": 2, "item": "login"}
    loop["round"] = "Round 1 of 2 of loop 'Tasks', item: login; it ends early when enough == true."
    assert inside["position"]["loop"] == loop
    assert inside["position"]["step"] == {"id": "code", "index": 1, "name": "Write Code"}
    assert inside["availableActions"]["required"][0]["description"] == "Write login."
    client.done("code", "test")
    second = client.loop()
    assert second["message"] == "Advanced loop 'task-loop' to iteration 2"
    assert second["position"]["loop"]["item"] == "logout"
    after = client.done("code", "test")
    assert after["position"]["loop"] is None
    assert listed(after) == [("transition", "review")]


def test_a_loop_breaks_when_its_condition_says_so(client: NavigationClient) -> None:
    client.into_build()
    client.done("prepare")
    client.loop(loop_items=["login", "logout"])
    client.done("code")
    broken = client.done("test", variables={"enough": True})
    assert listed(broken) == [("transition", "review")]


def test_a_loop_over_nothing_is_passed(client: NavigationClient) -> None:
    client.into_build()
    client.done("prepare")
    passed = client.loop(loop_items=[])
    assert passed["message"] == ENDED
    assert listed(passed) == [("transition", "review")]


def test_variables_sent_with_an_advance_may_end_the_loop(client: NavigationClient) -> None:
    client.into_build()
    client.done("prepare")
    client.loop(loop_items=["login", "logout"])
    client.done("code")
    waiting = client.done("test")
    assert listed(waiting) == [("advance_loop", "task-loop")]
    ended = client.loop(variables={"enough": True})
    assert (ended["success"], ended["message"]) == (True, ENDED)
    assert ended["position"]["loop"] is None
    assert listed(ended) == [("transition", "review")]
    assert client.loop(state=waiting["state"], variables={"enough": True}) == ended


def test_variables_sent_with_an_advance_may_empty_a_loop_that_waits_to_start(
    client: NavigationClient,
) -> None:
    client.into_build()
    client.done("prepare")
    passed = client.loop(variables={"tasks": []})
    assert (passed["success"], passed["message"]) == (True, ENDED)
    assert listed(passed) == [("transition", "review")]


def test_a_loop_that_is_not_waiting_is_refused_with_what_comes_first(client: NavigationClient) -> None:
    client.start()
    client.done("analyze")
    held = client.loop(variables={"enough": True})
    assert (held["error"]["code"], held["error"]["next"]) == (
        "CHECKPOINT_BLOCKING",
        "Send action respond_to_checkpoint for 'approve' first.",
    )
    client.respond("yes")
    client.done("decide")
    client.go("build")
    client.done("prepare")
    client.loop(loop_items=["login"])
    inside = client.loop(variables={"size": "small"})
    assert (inside["error"]["code"], inside["error"]["next"]) == (
        "LOOP_NOT_FOUND",
        "Complete step 'code' first.",
    )


def test_a_loop_whose_list_is_known_needs_no_items(client: NavigationClient) -> None:
    client.start(tasks=["login"])
    client.done("analyze")
    client.respond("yes")
    client.done("decide")
    client.go("build")
    waiting = client.done("prepare")
    assert "loop_items" not in waiting["availableActions"]["required"][0]
    assert client.loop()["position"]["loop"]["total"] == 1


def test_a_workflow_ends_and_then_only_reading_is_left(client: NavigationClient) -> None:
    """Rule 21: an activity without transitions has the way to the end."""
    client.start(external=True)
    client.done("analyze")
    client.respond("yes")
    client.done("decide")
    client.go("review")
    last = client.done("read")
    assert listed(last) == [("transition", "__terminal__")]
    ended = client.go("__terminal__")
    assert (ended["success"], ended["status"]) == (True, "completed")
    assert ended["availableActions"] == {"required": [], "optional": [], "blocked": []}
    for refused in (client.done("read"), client.go("plan"), client.loop(), client.respond("yes")):
        assert not refused["success"]
    assert client.go("plan")["error"]["code"] == "WORKFLOW_COMPLETED"
    assert client.situation()["status"] == "completed"


def test_the_other_words_for_the_end_mean_the_end(client: NavigationClient) -> None:
    """Rule 21."""
    client.start()
    client.done("analyze")
    client.respond("stop")
    assert client.go("end-workflow")["status"] == "completed"


REFUSALS: list[tuple[str, Payload, str]] = [
    ("complete_step", {"step_id": "nothing"}, "STEP_NOT_FOUND"),
    ("complete_step", {"step_id": "analyze"}, "STEP_ALREADY_COMPLETE"),
    ("respond_to_checkpoint", {"checkpoint_id": "nothing", "option_id": "yes"}, "CHECKPOINT_NOT_FOUND"),
    (
        "respond_to_checkpoint",
        {"checkpoint_id": "approve", "option_id": "yes"},
        "CHECKPOINT_ALREADY_RESPONDED",
    ),
    ("transition", {"activity_id": "nowhere"}, "TARGET_ACTIVITY_NOT_FOUND"),
    ("transition", {"activity_id": "build"}, "ACTIVITY_NOT_COMPLETE"),
    ("advance_loop", {"loop_id": "task-loop"}, "LOOP_NOT_FOUND"),
]


@pytest.mark.parametrize(("action", "arguments", "code"), REFUSALS, ids=lambda one: str(one)[:30])
def test_a_refusal_has_its_code_and_changes_nothing(
    client: NavigationClient, action: str, arguments: Payload, code: str
) -> None:
    """Rule 40."""
    client.start()
    client.done("analyze")
    before = client.respond("yes")
    refused = client.act(action, **arguments)
    assert (refused["success"], refused["error"]["code"], refused["_error"]) == (False, code, False)
    assert refused["state"] == before["state"]
    assert refused["position"] == before["position"]
    assert refused["error"]["next"]
    assert listed(client.situation()) == listed(before)


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("transition", {"activity_id": "nowhere"}),
        ("respond_to_checkpoint", {"checkpoint_id": "nothing", "option_id": "yes"}),
    ],
)
def test_a_name_that_there_is_not_is_answered_with_what_is_available(
    client: NavigationClient, action: str, arguments: Payload
) -> None:
    """The names of the workflow are no answer: while a step is due, none of them would be taken."""
    client.start()
    assert client.act(action, **arguments)["error"]["next"] == "Take one of availableActions."


def test_parameters_of_other_actions_are_said_to_be_unread(client: NavigationClient) -> None:
    client.start()
    done = client.done("analyze", option_id="yes", checkpoint_id="approve", note="go")
    unread = "Not read by complete_step: checkpoint_id, option_id, note."
    assert [(warning["code"], warning["message"]) for warning in done["warnings"]] == [
        ("ARGUMENTS_IGNORED", unread)
    ]
    assert done["checkpoint"]["id"] == "approve"
    assert "warnings" not in client.respond("yes", note="go")


def test_a_checkpoint_that_is_not_reached_is_not_called_pending(client: NavigationClient) -> None:
    client.start()
    early = client.respond("yes", "approve")["error"]
    assert early["code"] == "CHECKPOINT_NOT_ACTIVE"
    assert early["message"] == "Checkpoint 'approve' is not reached yet: other things come before it."


def test_an_unknown_option_is_refused(client: NavigationClient) -> None:
    client.start()
    client.done("analyze")
    assert client.respond("perhaps")["error"]["code"] == "OPTION_NOT_FOUND"


@pytest.mark.parametrize(
    ("action", "missing"),
    [
        ("complete_step", "step_id"),
        ("respond_to_checkpoint", "checkpoint_id and option_id"),
        ("transition", "activity_id"),
        ("advance_loop", "loop_id"),
    ],
)
def test_a_missing_parameter_is_an_error_of_the_call(
    client: NavigationClient, action: str, missing: str
) -> None:
    client.start()
    answer = client.act(action)
    assert answer["_error"]
    assert answer["error"]["code"] == "MISSING_PARAMETER"
    assert answer["error"]["message"] == f"{action} needs {missing}"


def test_the_situation_writes_nothing_and_says_where_the_run_stands(
    bench: Bench, client: NavigationClient
) -> None:
    client.into_build()
    client.done("prepare")
    inside = client.loop(loop_items=["login", "logout"])
    written = events(bench)
    again = client.situation()
    assert client.call("nav_checkpoint", state=client.state)["position"] == again["position"]
    assert events(bench) == written
    assert again["state"] == inside["state"]
    assert again["availableActions"]["required"] == inside["availableActions"]["required"]
    assert listed(inside, "blocked") == listed(again, "blocked") == [("transition", "review")]
    texts = [offer for offer in again["availableActions"]["optional"] if offer["action"] == "get_resource"]
    assert texts, "a read lists again what can be read beside the work"
    assert again["message"] == "Activity: Building | Step 2: Write Code | Loop: Tasks (iteration 1 of 2)"


def test_independent_activities_are_shown_as_transitions(client: NavigationClient) -> None:
    """Rule 35."""
    first = client.start("loose")
    assert first["position"]["activity"] is None
    assert listed(first) == [("transition", "open"), ("transition", "close")]
    assert client.done("do-close")["error"]["code"] in ("STEP_NOT_FOUND", "STEP_NOT_PENDING")
    inside = client.go("close")
    assert inside["position"]["step"]["id"] == "do-close"
    client.done("do-close")
    assert client.go("__terminal__")["status"] == "completed"


def test_a_confirmation_is_a_checkpoint_and_revise_makes_its_step_pending_again(
    bench: Bench, client: NavigationClient
) -> None:
    """Rule 25: a step workflow walks through this surface too."""
    bench.write(workflow(*steps("draft", requireConfirmation=True), *steps("send")))
    client.start("test.flow")
    asked = client.done("draft")
    assert listed(asked) == [("respond_to_checkpoint", "confirm-draft")]
    revised = client.respond("revise", "confirm-draft")
    assert listed(revised) == [("complete_step", "draft")]
    client.done("draft", output={"notesMarkdown": "better"})
    assert listed(client.respond("proceed", "confirm-draft")) == [("complete_step", "send")]


def test_what_a_step_must_deliver_is_listed_and_demanded(bench: Bench, client: NavigationClient) -> None:
    contract = {"contractRef": "wr.contracts.loop_control"}
    bench.write(workflow(*steps("judge", output=contract)))
    first = client.start("test.flow")
    need = first["availableActions"]["required"][0]["needs"][0]
    assert need["parameter"] == "output.artifacts"
    refused = client.done("judge")
    assert refused["error"]["code"] == "OUTPUT_REQUIRED"
    assert need["example"] in refused["error"]["examples"]
    assert client.done("judge", output={"artifacts": [filled(need["example"])]})["success"]


def test_under_policy_user_only_the_user_opens_a_gate(bench: Bench) -> None:
    """Rule 27."""
    client = opened(bench, terms=Terms(decisions="user"))
    client.start()
    reached = client.done("analyze")
    assert listed(reached) == []
    assert ("respond_to_checkpoint", "approve") in listed(reached, "blocked")
    assert client.respond("yes")["error"]["code"] == "USER_MUST_DECIDE"


def test_never_stop_takes_the_agents_option_and_records_a_critical_gap(bench: Bench) -> None:
    """Rule 27."""
    client = opened(bench, mode="never-stop")
    client.start()
    client.done("analyze")
    assert client.respond("yes")["success"]
    assert [event["severity"] for event in events(bench, "gap_recorded")] == ["critical"]


ELICITING = Client("asking-client", can_elicit=True)


def test_a_client_that_can_ask_asks_the_user_and_the_users_choice_counts(client: NavigationClient) -> None:
    """Rule 27: the agent said yes, the user said stop."""
    client.start()
    state = client.done("analyze")["state"]
    asked = {
        "state": state,
        "action": "respond_to_checkpoint",
        "checkpoint_id": "approve",
        "option_id": "yes",
    }
    ask = client.raw("nav_action", Call(ELICITING), **asked)
    assert isinstance(ask, Elicit)
    answers = {"approve": FormAnswer("accept", {"choice": "stop"})}
    reply = client.raw("nav_action", Call(ELICITING, answers, ask.state), **asked)
    assert isinstance(reply, Reply)
    body = json.loads(reply.text)
    assert body["message"] == "Responded to checkpoint 'approve' with 'stop'"
    assert listed(body) == [("transition", "__terminal__")]
    again = client.raw("nav_action", Call(ELICITING), **asked)
    assert isinstance(again, Reply)
    assert again.text == reply.text


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_who_was_asked_and_did_not_answer_still_must(client: NavigationClient, action: Any) -> None:
    client.start()
    state = client.done("analyze")["state"]
    asked = {
        "state": state,
        "action": "respond_to_checkpoint",
        "checkpoint_id": "approve",
        "option_id": "yes",
    }
    ask = client.raw("nav_action", Call(ELICITING), **asked)
    assert isinstance(ask, Elicit)
    answers = {"approve": FormAnswer(action)}
    reply = client.raw("nav_action", Call(ELICITING, answers, ask.state), **asked)
    assert isinstance(reply, Reply)
    assert json.loads(reply.text)["error"]["code"] == "USER_MUST_DECIDE"
    situation = client.situation(state)
    assert listed(situation) == []
    assert "inbox" in situation["availableActions"]["blocked"][0]["reason"]


def test_nav_action_shows_no_state_before_its_words_are_checked(client: NavigationClient) -> None:
    assert client.call("nav_action", state="x", action="fly")["error"]["code"] == "INVALID_PARAMETERS"
    assert client.call("nav_situation", state="x", more=1)["error"]["code"] == "INVALID_PARAMETERS"


def test_a_gate_in_a_step_workflow_is_a_checkpoint(bench: Bench, client: NavigationClient) -> None:
    bench.write(workflow(*steps("one"), gate("ship", "go", "wait"), *steps("two")), "gated")
    client.start("test.flow")
    assert client.done("one")["checkpoint"]["id"] == "ship"
    assert listed(client.respond("go", "ship")) == [("complete_step", "two")]


def test_what_is_passed_over_for_want_of_a_variable_is_named(bench: Bench, client: NavigationClient) -> None:
    """Rule 20."""
    optional = steps("extra", runCondition={"var": "wanted", "equals": True})
    bench.write(workflow(*steps("one"), *optional, *steps("two")))
    client.start("test.flow")
    warned = client.done("one")["warnings"]
    assert [item["code"] for item in warned] == ["PASSED_OVER"]
    assert "extra" in warned[0]["message"]
    assert "wanted" in warned[0]["message"]
