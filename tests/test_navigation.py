"""The navigation door at its boundary: its document's response, every action, every code, replay and fork."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from authored import write
from harness import Bench, gate, steps, workflow
from interlock.cli.diagnosis import renders
from interlock.core.commands import Terms
from interlock.core.preferences import Mode
from interlock.ledger.repair import inspect, repair
from interlock.ledger.tokens import STATE_PREFIX
from interlock.store.protocol import SessionFilter
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.surface import Answer as UserAnswer
from interlock.surfaces.surface import Ask, Call, Client, Outcome, Reply, call_tool

Answer = dict[str, Any]

WORKFLOW = """
id: build
version: 1.0.0
title: Build
description: For a test.
initialActivity: plan
variables:
  - { name: tasks, type: array, description: What to do }
  - { name: size, type: string, description: How large }
  - { name: result, type: string, description: What came of it }
"""
PLAN = """
id: plan
version: 1.0.0
name: Planning
steps:
  - { id: analyze, name: Analyze, description: Look at it., skill: looking }
  - { id: decide, name: Decide, checkpoint: approve, description: Decide it. }
checkpoints:
  - id: approve
    name: Approve
    message: "Approve the plan of size {{size}}?"
    options:
      - { id: "yes", label: "Yes", effect: { setVariable: { approved: true } } }
      - { id: redo, label: Redo, description: Begin again, effect: { transitionTo: plan } }
      - { id: stop, label: Stop, effect: { transitionTo: __terminal__ } }
transitions:
  - { to: build, condition: { type: simple, variable: approved, operator: "==", value: true } }
  - { to: review, condition: { type: simple, variable: external, operator: "==", value: true } }
"""
BUILD = """
id: build
version: 1.0.0
name: Building
steps:
  - { id: prepare, name: Prepare, description: Make ready. }
loops:
  - id: task-loop
    name: Tasks
    type: forEach
    variable: task
    over: tasks
    breakCondition: { type: simple, variable: enough, operator: "==", value: true }
    steps:
      - { id: code, name: Write Code, description: "Write {{task}}." }
      - { id: test, name: Test, description: "Test {{task}}." }
transitions:
  - { to: review, isDefault: true }
triggers:
  - { workflow: helper, passContext: [tasks], description: Get help }
"""
REVIEW = """
id: review
version: 1.0.0
name: Review
steps:
  - { id: read, name: Read, description: Read it. }
"""
HELPER = """
id: helper
version: 1.0.0
title: Helper
description: Helps.
initialActivity: help
"""
HELP = """
id: help
version: 1.0.0
name: Help
steps:
  - { id: aid, name: Aid, description: "Help with {{tasks}}." }
"""
LOOSE = """
id: loose
version: 1.0.0
title: Loose
description: Independent activities.
"""


def entry(name: str) -> str:
    return f"""
id: {name}
version: 1.0.0
name: {name.title()}
problem: The user wants to {name}
recognition: ["{name.title()} It", please {name}]
skills: {{ primary: looking }}
steps:
  - {{ id: do-{name}, name: Do, description: Do it. }}
"""


FILES = {
    "build/workflow.yaml": WORKFLOW,
    "build/activities/00-plan.yaml": PLAN,
    "build/activities/01-build.yaml": BUILD,
    "build/activities/02-review.yaml": REVIEW,
    "build/skills/00-looking.yaml": "id: looking\nversion: 1.0.0\ncapability: See what is there\n",
    "build/resources/03-notes.md": "# Notes\nRead me.\n",
    "build/templates/00-report.md": "# Report: <name>\n",
    "helper/workflow.yaml": HELPER,
    "helper/activities/00-help.yaml": HELP,
    "loose/workflow.yaml": LOOSE,
    "loose/activities/00-open.yaml": entry("open"),
    "loose/activities/01-close.yaml": entry("close"),
}


PLAIN = Call()


class Door:
    """Calls the door's tools, and remembers the newest state as an agent's chat would."""

    def __init__(self, surface: NavigationSurface) -> None:
        self.surface = surface
        self.state = ""

    def raw(self, tool: str, call: Call = PLAIN, **arguments: Any) -> Outcome:
        return call_tool(self.surface, tool, arguments, call)

    def call(self, tool: str, **arguments: Any) -> Answer:
        reply = self.raw(tool, **arguments)
        assert isinstance(reply, Reply)
        answer: Answer = json.loads(reply.text)
        if answer.get("success"):
            self.state = answer["state"]
        return {**answer, "_error": reply.is_error}

    def start(self, workflow_id: str = "build", **variables: Any) -> Answer:
        return self.call("nav_start", workflow_id=workflow_id, initial_variables=variables)

    def act(self, action: str, state: str | None = None, **arguments: Any) -> Answer:
        return self.call("nav_action", state=state or self.state, action=action, **arguments)

    def done(self, *step_ids: str, **more: Any) -> Answer:
        answers = [self.act("complete_step", step_id=one, **more) for one in step_ids]
        return answers[-1]

    def respond(self, option: str, checkpoint: str = "approve", **more: Any) -> Answer:
        return self.act("respond_to_checkpoint", checkpoint_id=checkpoint, option_id=option, **more)

    def go(self, activity: str, **more: Any) -> Answer:
        return self.act("transition", activity_id=activity, **more)

    def loop(self, loop_id: str = "task-loop", **more: Any) -> Answer:
        return self.act("advance_loop", loop_id=loop_id, **more)

    def situation(self, state: str | None = None) -> Answer:
        return self.call("nav_situation", state=state or self.state)

    def into_build(self) -> Answer:
        """Walk to the step before the loop."""
        self.start(size="small")
        self.done("analyze")
        self.respond("yes")
        self.done("decide")
        return self.go("build")


def opened(bench: Bench, mode: Mode | None = None, terms: Terms | None = None) -> Door:
    write(bench.workflows, FILES)
    return Door(NavigationSurface(bench.ledger(mode, terms)))


@pytest.fixture
def door(bench: Bench) -> Door:
    return opened(bench)


def listed(answer: Answer, kind: str = "required") -> list[tuple[str, str]]:
    names = ("step", "checkpoint", "activity", "loop")
    found = answer["availableActions"][kind]
    return [(one["action"], next(one[name] for name in names if name in one)) for one in found if _move(one)]


def _move(offer: Answer) -> bool:
    return not offer["action"].startswith(("get_", "nav_"))


def test_the_response_is_the_documents(door: Door) -> None:
    first = door.start()
    assert list(first)[:6] == ["success", "position", "message", "availableActions", "checkpoint", "state"]
    assert first["position"] == {
        "workflow": "build",
        "activity": {"id": "plan", "name": "Planning"},
        "step": {"id": "analyze", "index": 0, "name": "Analyze"},
        "loop": None,
    }
    assert first["message"] == "Started workflow 'Build' at activity 'plan'"
    assert first["availableActions"]["required"][0]["description"].startswith("Look at it.")
    assert first["checkpoint"] is None
    assert first["state"].startswith("v1.gzB64.H4sIAAAA")
    assert not first["_error"]


def test_text_and_structure_say_the_same(door: Door) -> None:
    reply = door.raw("nav_start", workflow_id="build")
    assert isinstance(reply, Reply)
    assert json.loads(reply.text) == json.loads(bytes(reply.structured))  # type: ignore[arg-type]


def test_a_step_is_completed_in_order(door: Door) -> None:
    first = door.start()
    early = door.act("complete_step", step_id="decide")
    assert (early["success"], early["error"]["code"]) == (False, "STEP_NOT_PENDING")
    assert early["state"] == first["state"]
    assert early["message"].startswith("Action failed: ")
    assert door.done("analyze")["message"] == "Completed step 'analyze'"


def test_a_checkpoint_blocks_when_its_step_is_reached(door: Door) -> None:
    door.start(size="small")
    reached = door.done("analyze")
    assert listed(reached) == [("respond_to_checkpoint", "approve")]
    assert ("complete_step", "decide") in listed(reached, "blocked")
    assert reached["checkpoint"]["message"] == "Approve the plan of size small?"
    assert reached["checkpoint"]["options"][1] == {
        "id": "redo",
        "label": "Redo",
        "description": "Begin again",
    }
    refused = door.done("decide")
    assert refused["error"]["code"] == "CHECKPOINT_BLOCKING"
    assert refused["error"]["message"] == "Must respond to checkpoint before completing steps"
    answered = door.respond("yes")
    assert answered["message"] == "Responded to checkpoint 'approve' with 'yes'"
    assert listed(answered) == [("complete_step", "decide")]


def test_nav_checkpoint_shows_the_open_question_and_nothing_else(door: Door) -> None:
    door.start(size="small")
    quiet = door.call("nav_checkpoint", state=door.state)
    assert quiet["active"] is False
    assert quiet["message"] == "No checkpoint is currently blocking progress"
    reached = door.done("analyze")
    shown = door.call("nav_checkpoint", state=door.state)
    assert (shown["active"], shown["checkpoint"]) == (True, reached["checkpoint"])


def test_effects_are_applied_and_decide_the_way(door: Door) -> None:
    """Rules 19 and 21: the option set a variable; the server evaluates the condition with it."""
    door.start()
    door.done("analyze")
    door.respond("yes")
    ready = door.done("decide")
    assert listed(ready) == [("transition", "build")]
    assert door.go("build")["message"] == "Transitioned to activity 'build'"


def test_an_option_that_leads_elsewhere_leaves_only_that_way(door: Door) -> None:
    """Rule 21: at once, over the remaining steps."""
    door.start()
    door.done("analyze")
    away = door.respond("redo")
    assert listed(away) == [("transition", "plan")]
    assert ("transition", "build") in listed(away, "blocked")
    assert door.go("build")["error"]["code"] == "INVALID_TRANSITION"
    again = door.go("plan")
    assert again["position"]["step"]["id"] == "analyze"


def test_a_way_over_unset_variables_is_offered_with_its_condition_and_recorded_as_a_claim(
    door: Door, bench: Bench
) -> None:
    """Rule 22."""
    door.start()
    door.done("analyze")
    door.respond("yes")
    ready = door.done("decide")
    offer = next(one for one in ready["availableActions"]["optional"] if one.get("activity") == "review")
    assert offer["condition"] == "external == true"
    assert door.go("review")["position"]["activity"]["id"] == "review"
    assert [fact["via"] for fact in facts(bench, "activity_left")] == ["claim"]


def facts(bench: Bench, kind: str) -> list[Answer]:
    with bench.ledger().store.reading() as reader:
        sessions = [one.session_id for one in reader.sessions(SessionFilter())]
        rows = [row for one in sessions for row in reader.events(one, kinds=(kind,))]
        return [json.loads(row.payload) for row in rows]


def test_a_false_way_is_refused(door: Door) -> None:
    """Rule 22."""
    door.start(external=False)
    door.done("analyze")
    door.respond("yes")
    ready = door.done("decide")
    assert listed(ready, "optional") == []
    assert ("transition", "review") in listed(ready, "blocked")
    assert door.go("review")["error"]["code"] == "INVALID_TRANSITION"


def test_a_loop_starts_with_its_items_iterates_and_ends(door: Door) -> None:
    """Rule 30."""
    door.into_build()
    waiting = door.done("prepare")
    assert listed(waiting) == [("advance_loop", "task-loop")]
    assert "tasks" in waiting["availableActions"]["required"][0]["loop_items"]
    starved = door.loop()
    assert starved["error"]["code"] == "LOOP_ITEMS_REQUIRED"
    inside = door.loop(loop_items=["login", "logout"])
    assert inside["message"] == "Started loop 'task-loop'"
    loop = {"id": "task-loop", "name": "Tasks", "iteration": 1, "total": 2, "item": "login"}
    assert inside["position"]["loop"] == loop
    assert inside["position"]["step"] == {"id": "code", "index": 1, "name": "Write Code"}
    assert inside["availableActions"]["required"][0]["description"] == "Write login."
    door.done("code", "test")
    second = door.loop()
    assert second["message"] == "Advanced loop 'task-loop' to iteration 2"
    assert second["position"]["loop"]["item"] == "logout"
    after = door.done("code", "test")
    assert after["position"]["loop"] is None
    assert listed(after) == [("transition", "review")]


def test_a_loop_breaks_when_its_condition_says_so(door: Door) -> None:
    door.into_build()
    door.done("prepare")
    door.loop(loop_items=["login", "logout"])
    door.done("code")
    broken = door.done("test", variables={"enough": True})
    assert listed(broken) == [("transition", "review")]


def test_a_loop_over_nothing_is_passed(door: Door) -> None:
    door.into_build()
    door.done("prepare")
    passed = door.loop(loop_items=[])
    assert passed["message"] == "Loop 'task-loop' ended"
    assert listed(passed) == [("transition", "review")]


def test_a_loop_whose_list_is_known_needs_no_items(door: Door) -> None:
    door.start(tasks=["login"])
    door.done("analyze")
    door.respond("yes")
    door.done("decide")
    door.go("build")
    waiting = door.done("prepare")
    assert "loop_items" not in waiting["availableActions"]["required"][0]
    assert door.loop()["position"]["loop"]["total"] == 1


def test_a_workflow_ends_and_then_only_reading_is_left(door: Door) -> None:
    """Rule 21: an activity without transitions has the way to the end."""
    door.start(external=True)
    door.done("analyze")
    door.respond("yes")
    door.done("decide")
    door.go("review")
    last = door.done("read")
    assert listed(last) == [("transition", "__terminal__")]
    ended = door.go("__terminal__")
    assert (ended["success"], ended["status"]) == (True, "completed")
    assert ended["availableActions"] == {"required": [], "optional": [], "blocked": []}
    for refused in (door.done("read"), door.go("plan"), door.loop(), door.respond("yes")):
        assert not refused["success"]
    assert door.go("plan")["error"]["code"] == "WORKFLOW_COMPLETED"
    assert door.situation()["status"] == "completed"


def test_the_other_words_for_the_end_mean_the_end(door: Door) -> None:
    """Rule 21."""
    door.start()
    door.done("analyze")
    door.respond("stop")
    assert door.go("end-workflow")["status"] == "completed"


REFUSALS: list[tuple[str, Answer, str]] = [
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
    door: Door, action: str, arguments: Answer, code: str
) -> None:
    """Rule 40."""
    door.start()
    door.done("analyze")
    before = door.respond("yes")
    refused = door.act(action, **arguments)
    assert (refused["success"], refused["error"]["code"], refused["_error"]) == (False, code, False)
    assert refused["state"] == before["state"]
    assert refused["position"] == before["position"]
    assert refused["error"]["next"]
    assert listed(door.situation()) == listed(before)


def test_an_unknown_option_is_refused(door: Door) -> None:
    door.start()
    door.done("analyze")
    assert door.respond("perhaps")["error"]["code"] == "OPTION_NOT_FOUND"


@pytest.mark.parametrize("action", ["complete_step", "respond_to_checkpoint", "transition", "advance_loop"])
def test_a_missing_parameter_is_an_error_of_the_call(door: Door, action: str) -> None:
    door.start()
    answer = door.act(action)
    assert answer["_error"]
    assert answer["error"]["code"] == "MISSING_PARAMETER"


def test_the_same_action_again_is_a_replay_byte_for_byte(door: Door) -> None:
    """Rules 7 and 9."""
    first = door.start()
    asked = {"state": first["state"], "action": "complete_step", "step_id": "analyze"}
    once, twice = door.raw("nav_action", **asked), door.raw("nav_action", **asked)
    assert isinstance(once, Reply)
    assert isinstance(twice, Reply)
    assert once.text == twice.text


def test_a_different_action_on_an_old_state_forks(door: Door) -> None:
    """Rule 9: the branches know nothing of each other."""
    door.start()
    asked = door.done("analyze")["state"]
    yes, stop = door.respond("yes", state=asked), door.respond("stop", state=asked)
    assert yes["state"] != stop["state"]
    assert listed(door.situation(yes["state"])) == [("complete_step", "decide")]
    assert listed(door.situation(stop["state"])) == [("transition", "__terminal__")]
    assert door.act("complete_step", state=yes["state"], step_id="decide")["success"]


def test_a_rewind_restores_the_variables(door: Door) -> None:
    """Rule 19."""
    door.start()
    before = door.done("analyze", variables={"size": "large"})
    assert "large" in before["checkpoint"]["message"]
    door.respond("yes", variables={"size": "tiny"})
    assert "large" in door.situation(before["state"])["checkpoint"]["message"]


def test_variables_are_kept_when_a_gate_refuses_the_call(door: Door) -> None:
    """Rules 19 and 40: the state is the same, and what came with the call is known from then on."""
    door.start()
    reached = door.done("analyze")
    refused = door.done("decide", variables={"size": "huge"})
    assert refused["state"] == reached["state"]
    assert "huge" in refused["checkpoint"]["message"]
    assert "huge" in door.situation(reached["state"])["checkpoint"]["message"]
    assert door.respond("yes", state=reached["state"])["success"]


def test_null_deletes_a_variable(door: Door) -> None:
    """Rule 19."""
    door.start(size="small")
    reached = door.done("analyze", variables={"size": None})
    assert "[unset: size]" in reached["checkpoint"]["message"]


def test_the_situation_writes_nothing_and_says_where_the_run_stands(door: Door) -> None:
    door.into_build()
    door.done("prepare")
    inside = door.loop(loop_items=["login", "logout"])
    again = door.situation()
    assert again["state"] == inside["state"]
    assert again["availableActions"] == inside["availableActions"]
    assert again["message"] == "Activity: Building | Step 2: Write Code | Loop: Tasks (iteration 1 of 2)"


def test_the_situation_takes_the_token_of_another_door(bench: Bench, door: Door) -> None:
    """Rule 34."""
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("first")
    seen = door.call("nav_situation", state=agent.last["stateToken"])
    assert seen["position"]["step"]["id"] == "two"
    assert seen["state"].startswith(STATE_PREFIX)
    done = door.act("complete_step", state=seen["state"], step_id="two")
    assert listed(done) == [("transition", "__terminal__")]
    shown = agent.call("continue_workflow", stateToken=done["state"])
    assert shown["isComplete"] is True


def test_independent_activities_are_shown_as_transitions(door: Door) -> None:
    """Rule 35."""
    first = door.start("loose")
    assert first["position"]["activity"] is None
    assert listed(first) == [("transition", "open"), ("transition", "close")]
    assert door.done("do-close")["error"]["code"] in ("STEP_NOT_FOUND", "STEP_NOT_PENDING")
    inside = door.go("close")
    assert inside["position"]["step"]["id"] == "do-close"
    door.done("do-close")
    assert door.go("__terminal__")["status"] == "completed"


def test_a_confirmation_is_a_checkpoint_and_revise_makes_its_step_pending_again(
    bench: Bench, door: Door
) -> None:
    """Rule 25: a step workflow walks through this door too."""
    bench.write(workflow(*steps("draft", requireConfirmation=True), *steps("send")))
    door.start("test.flow")
    asked = door.done("draft")
    assert listed(asked) == [("respond_to_checkpoint", "confirm-draft")]
    revised = door.respond("revise", "confirm-draft")
    assert listed(revised) == [("complete_step", "draft")]
    door.done("draft", output={"notesMarkdown": "better"})
    assert listed(door.respond("proceed", "confirm-draft")) == [("complete_step", "send")]


def test_what_a_step_must_deliver_is_listed_and_demanded(bench: Bench, door: Door) -> None:
    contract = {"contractRef": "wr.contracts.loop_control"}
    bench.write(workflow(*steps("judge", output=contract)))
    first = door.start("test.flow")
    need = first["availableActions"]["required"][0]["needs"][0]
    assert need["parameter"] == "output.artifacts"
    refused = door.done("judge")
    assert refused["error"]["code"] == "OUTPUT_REQUIRED"
    assert need["example"] in refused["error"]["examples"]
    assert door.done("judge", output={"artifacts": [need["example"]]})["success"]


def test_under_policy_user_only_the_user_opens_a_gate(bench: Bench) -> None:
    """Rule 27."""
    door = opened(bench, terms=Terms(decisions="user"))
    door.start()
    reached = door.done("analyze")
    assert listed(reached) == []
    assert ("respond_to_checkpoint", "approve") in listed(reached, "blocked")
    assert door.respond("yes")["error"]["code"] == "USER_MUST_DECIDE"


def test_never_stop_takes_the_agents_option_and_records_a_critical_gap(bench: Bench) -> None:
    """Rule 27."""
    door = opened(bench, mode="never-stop")
    door.start()
    door.done("analyze")
    assert door.respond("yes")["success"]
    assert [one["severity"] for one in facts(bench, "gap_recorded")] == ["critical"]


ELICITING = Client("asking-client", can_elicit=True)


def test_a_client_that_can_ask_asks_the_user_and_the_users_choice_counts(door: Door) -> None:
    """Rule 27: the agent said yes, the user said stop."""
    door.start()
    state = door.done("analyze")["state"]
    asked = {
        "state": state,
        "action": "respond_to_checkpoint",
        "checkpoint_id": "approve",
        "option_id": "yes",
    }
    ask = door.raw("nav_action", Call(ELICITING), **asked)
    assert isinstance(ask, Ask)
    answers = {"approve": UserAnswer("accept", {"choice": "stop"})}
    reply = door.raw("nav_action", Call(ELICITING, answers, ask.state), **asked)
    assert isinstance(reply, Reply)
    body = json.loads(reply.text)
    assert body["message"] == "Responded to checkpoint 'approve' with 'stop'"
    assert listed(body) == [("transition", "__terminal__")]
    again = door.raw("nav_action", Call(ELICITING), **asked)
    assert isinstance(again, Reply)
    assert again.text == reply.text


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_who_was_asked_and_did_not_answer_still_must(door: Door, action: Any) -> None:
    door.start()
    state = door.done("analyze")["state"]
    asked = {
        "state": state,
        "action": "respond_to_checkpoint",
        "checkpoint_id": "approve",
        "option_id": "yes",
    }
    ask = door.raw("nav_action", Call(ELICITING), **asked)
    assert isinstance(ask, Ask)
    answers = {"approve": UserAnswer(action)}
    reply = door.raw("nav_action", Call(ELICITING, answers, ask.state), **asked)
    assert isinstance(reply, Reply)
    assert json.loads(reply.text)["error"]["code"] == "USER_MUST_DECIDE"
    assert listed(door.situation(state)) == [("respond_to_checkpoint", "approve")]


def test_a_child_gets_what_is_passed_on_and_returns_what_the_parent_declares(door: Door) -> None:
    """Rule 35."""
    door.start(tasks=["login"])
    door.done("analyze")
    door.respond("yes")
    door.done("decide")
    parent = door.go("build")
    assert {"action": "nav_start", "workflow_id": "helper"}.items() <= next(
        one for one in parent["availableActions"]["optional"] if one["action"] == "nav_start"
    ).items()
    child = door.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    assert child["availableActions"]["required"][0]["description"] == 'Help with ["login"].'
    assert door.situation(parent["state"])["children"] == [{"workflow": "helper"}]
    sent = {"tasks": ["other", "more"], "undeclared": 1}
    done = door.act("complete_step", state=child["state"], step_id="aid", variables=sent)
    ended = door.act("transition", state=done["state"], activity_id="__terminal__")
    assert ended["status"] == "completed"
    after = door.situation(parent["state"])
    assert "children" not in after
    door.act("complete_step", state=parent["state"], step_id="prepare")
    assert door.loop()["position"]["loop"]["total"] == 2


def test_a_child_that_nobody_triggers_gets_nothing_and_a_warning(door: Door) -> None:
    parent = door.start(tasks=["login"])
    child = door.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    assert child["warnings"][0]["code"] == "NOT_TRIGGERED"
    assert "[unset: tasks]" in child["availableActions"]["required"][0]["description"]


def test_a_parent_that_goes_on_leaves_its_child_behind(door: Door, bench: Bench) -> None:
    """Rule 35: an abandoned child is recorded."""
    door.start(external=True)
    door.done("analyze")
    door.respond("yes")
    parent = door.done("decide")
    door.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    door.act("transition", state=parent["state"], activity_id="build")
    assert [one["outcome"] for one in facts(bench, "child_returned")] == ["abandoned"]


def packed(content: bytes) -> str:
    return STATE_PREFIX + base64.b64encode(gzip.compress(content)).decode()


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
    door: Door, tool: str, state: str, code: str
) -> None:
    """Rules 1 and 2."""
    arguments = {"action": "complete_step", "step_id": "analyze"} if tool == "nav_action" else {}
    answer = door.call(tool, state=state, **arguments)
    assert (answer["error"]["code"], answer["_error"]) == (code, True)


def test_one_changed_character_is_never_believed(door: Door) -> None:
    """Rule 2."""
    state = door.start()["state"]
    for place in range(len(STATE_PREFIX), len(state)):
        other = "A" if state[place] != "A" else "B"
        damaged = state[:place] + other + state[place + 1 :]
        assert door.call("nav_situation", state=damaged)["_error"], place


def test_a_state_of_another_data_directory_is_refused(door: Door, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    foreign = opened(Bench(elsewhere)).start()["state"]
    assert door.call("nav_situation", state=foreign)["error"]["code"] == "VALIDATION_FAILED"


def test_a_token_of_another_kind_cannot_act(bench: Bench, door: Door) -> None:
    bench.write(workflow(*steps("one")))
    agent = bench.agent()
    agent.start("test.flow")
    answer = door.act("complete_step", state=agent.last["stateToken"], step_id="one")
    assert answer["error"]["code"] == "INVALID_FORMAT"


def test_nav_action_shows_no_state_before_its_words_are_checked(door: Door) -> None:
    assert door.call("nav_action", state="x", action="fly")["error"]["code"] == "INVALID_PARAMETERS"
    assert door.call("nav_situation", state="x", more=1)["error"]["code"] == "INVALID_PARAMETERS"


@pytest.mark.slow
def test_states_and_answers_stay_small_over_a_thousand_actions(door: Door) -> None:
    door.into_build()
    first = door.done("prepare")["state"]
    inside = door.loop(loop_items=[f"task {number}" for number in range(100)])
    size, sizes = len(json.dumps(inside)), set()
    for _ in range(5):
        door.state = inside["state"]
        for _ in range(100):
            door.done("code", variables={"note": f"{len(sizes)}"})
            last = door.done("test")
            sizes.add(len(last["state"]))
            assert len(json.dumps(last)) < 2 * size
            if last["position"]["loop"] is not None:
                last = door.loop()
        sizes.add(len(door.state))
    assert sizes == {len(first)}
    assert len(first) <= 96


def test_nothing_is_lost_when_the_store_is_opened_again(bench: Bench, door: Door) -> None:
    reached = door.into_build()
    again = opened(bench)
    assert listed(again.situation(reached["state"])) == listed(reached)
    assert again.act("complete_step", state=reached["state"], step_id="prepare")["success"]


def test_a_gate_in_a_step_workflow_is_a_checkpoint(bench: Bench, door: Door) -> None:
    bench.write(workflow(*steps("one"), gate("ship", "go", "wait"), *steps("two")), "gated")
    door.start("test.flow")
    assert door.done("one")["checkpoint"]["id"] == "ship"
    assert listed(door.respond("go", "ship")) == [("complete_step", "two")]


@pytest.mark.parametrize("bad", ["../build", "/etc/passwd", "build/../meta", "a b", ""])
@pytest.mark.parametrize("tool", ["get_workflow", "nav_start", "list_workflow_resources", "list_templates"])
def test_an_id_that_is_no_id_reaches_nothing(door: Door, tool: str, bad: str) -> None:
    """Rule 39."""
    assert door.call(tool, workflow_id=bad)["error"]["code"] == "INVALID_PARAMETERS"


def test_an_unknown_workflow_is_named_with_what_is_near(door: Door) -> None:
    answer = door.call("nav_start", workflow_id="biuld")
    assert answer["error"]["code"] == "WORKFLOW_NOT_FOUND"
    assert "build" in answer["error"]["next"]


def test_workflows_are_listed_with_meta(door: Door) -> None:
    names = [one["id"] for one in door.call("list_workflows")["workflows"]]
    assert {"meta", "build", "loose"} <= set(names)


def test_a_workflow_its_activity_and_its_checkpoint_can_be_read(door: Door) -> None:
    whole = door.call("get_workflow", workflow_id="build")
    assert [one["id"] for one in whole["activities"]] == ["plan", "build", "review"]
    activity = door.call("get_workflow_activity", workflow_id="build", activity_id="plan")
    assert [one["id"] for one in activity["steps"]] == ["analyze", "decide"]
    ids = {"workflow_id": "build", "activity_id": "plan"}
    question = door.call("get_checkpoint", **ids, checkpoint_id="approve")
    assert question["options"][0]["effect"] == {"setVariable": {"approved": True}}
    missing = door.call("get_checkpoint", **ids, checkpoint_id="other")
    assert missing["error"]["code"] == "CHECKPOINT_NOT_FOUND"
    gone = door.call("get_workflow_activity", workflow_id="build", activity_id="other")
    assert gone["error"]["code"] == "ACTIVITY_NOT_FOUND"


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("plan", "build", None),
        ("plan", "plan", None),
        ("plan", "workflow-end", None),
        ("review", "__terminal__", None),
        ("build", "plan", "No valid transition. Valid: review"),
        ("nowhere", "plan", "Source activity not found: nowhere"),
        ("plan", "nowhere", "Target activity not found: nowhere"),
    ],
)
def test_a_transition_is_validated_by_the_definition(
    door: Door, source: str, target: str, reason: str | None
) -> None:
    answer = door.call("validate_transition", workflow_id="build", from_activity=source, to_activity=target)
    assert answer["valid"] is (reason is None)
    assert answer.get("reason") == reason


def test_health_names_the_server_and_counts_the_workflows(door: Door) -> None:
    answer = door.call("health_check")
    assert (answer["status"], answer["server"]) == ("healthy", "interlock")
    assert answer["workflows_available"] == len(door.call("list_workflows")["workflows"])


def test_the_index_of_activities_matches_recognition_patterns(door: Door) -> None:
    index = door.call("get_activities")
    ids = [one["id"] for one in index["activities"]]
    assert ids[:3] == ["start-workflow", "resume-workflow", "end-workflow"]
    assert index["quick_match"]["close it"] == "close"
    entry = next(one for one in index["activities"] if one["id"] == "close")
    assert entry["workflowId"] == "loose"
    follow = entry["next_action"]
    found = door.call(follow["tool"], **follow["parameters"])
    assert found["problem"] == "The user wants to close"
    assert door.call("get_activity", activity_id="none")["error"]["code"] == "ACTIVITY_NOT_FOUND"


def test_skills_are_the_workflows_own_then_universal(door: Door) -> None:
    """Rule 36."""
    listing = door.call("list_skills", workflow_id="build")
    assert listing["workflow_specific"] == ["looking"]
    assert {"activity-resolution", "workflow-execution"} <= set(listing["universal"])
    assert "capability: See what is there" in text(door, "get_skill", skill_id="looking", workflow_id="build")
    assert "id: workflow-execution" in text(
        door, "get_skill", skill_id="workflow-execution", workflow_id="build"
    )
    assert door.call("get_skill", skill_id="looking")["error"]["code"] == "SKILL_NOT_FOUND"
    index = door.call("get_skills")
    assert index["workflow_specific"]["build"][0]["capability"] == "See what is there"


def text(door: Door, tool: str, **arguments: Any) -> str:
    reply = door.raw(tool, **arguments)
    assert isinstance(reply, Reply)
    assert not reply.is_error
    return reply.text


@pytest.mark.parametrize("index", ["03", "3", "003", 3])
def test_resources_are_found_by_number_whatever_its_zeros(door: Door, index: str | int) -> None:
    listing = door.call("list_workflow_resources", workflow_id="build")["resources"]
    assert listing == [{"index": "03", "name": "notes", "title": "Notes", "format": "markdown"}]
    assert text(door, "get_resource", workflow_id="build", index=index) == "# Notes\nRead me."


def test_templates_are_found_by_number(door: Door) -> None:
    listing = door.call("list_templates", workflow_id="build")["templates"]
    assert [one["index"] for one in listing] == ["00"]
    assert text(door, "get_template", workflow_id="build", index="0") == "# Report: <name>"
    missing = door.call("get_template", workflow_id="build", index="07")
    assert missing["error"]["code"] == "TEMPLATE_NOT_FOUND"


def test_discovery_names_everything(door: Door) -> None:
    found = door.call("discover_resources")
    assert "build" in found["workflows"]
    assert found["activities"]["build"] == ["plan", "build", "review"]
    assert (found["resources"]["build"], found["templates"]["build"]) == (["03"], ["00"])
    assert found["skills"]["build"] == ["looking"]


def test_a_skill_that_is_offered_can_be_read(door: Door) -> None:
    first = door.start()
    offers = first["availableActions"]["optional"]
    skill = next(one for one in offers if one["action"] == "get_skill")
    assert text(door, "get_skill", skill_id=skill["skill_id"], workflow_id=skill["workflow_id"])
    resource = next(one for one in offers if one["action"] == "get_resource")
    assert text(door, "get_resource", workflow_id=resource["workflow_id"], index=resource["index"])


def test_the_door_has_the_documents_twenty_tools(door: Door) -> None:
    assert list(door.surface.tools) == [
        "nav_start", "nav_situation", "nav_action", "nav_checkpoint",
        "list_workflows", "get_workflow", "get_workflow_activity", "get_checkpoint", "validate_transition",
        "health_check", "get_activities", "get_activity", "get_skills", "list_skills", "get_skill",
        "list_workflow_resources", "get_resource", "list_templates", "get_template", "discover_resources",
    ]  # fmt: skip


def broken(bench: Bench) -> list[str]:
    """The sessions whose rows are not what their events make of them."""
    ledger = bench.ledger()
    with ledger.store.reading() as reader:
        sessions = [one.session_id for one in reader.sessions(SessionFilter())]
        return [one for one in sessions if inspect(reader, one, ledger.pins) is not None]


def test_every_row_of_this_door_can_be_rebuilt_from_its_events(bench: Bench, door: Door) -> None:
    """Rule 44: kept variables, forks and a child's return included."""
    parent = door.into_build()
    door.act("complete_step", state=parent["state"], step_id="nothing", variables={"size": "odd"})
    child = door.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    done = door.act("complete_step", state=child["state"], step_id="aid")
    door.act("transition", state=done["state"], activity_id="__terminal__")
    door.act("complete_step", state=parent["state"], step_id="prepare")
    door.act("complete_step", state=parent["state"], step_id="prepare", variables={"other": "branch"})
    assert broken(bench) == []


def test_a_lost_response_is_rendered_again_by_a_repair(bench: Bench, door: Door) -> None:
    """Rules 7 and 44."""
    first = door.start()
    done = door.done("analyze")
    connection = apsw.Connection(str(bench.folder / "interlock.db"))
    connection.execute("UPDATE attempts SET response = x'7b7d'")
    connection.close()
    [session] = broken(bench)
    ledger = bench.ledger()
    with ledger.store.writing() as tx:
        repair(tx, session, ledger.pins, renders(), owner="local", now=ledger.clock())
    again = door.act("complete_step", state=first["state"], step_id="analyze")
    told = ("position", "availableActions", "checkpoint", "state")
    assert [again[name] for name in told] == [done[name] for name in told]


def test_what_is_passed_over_for_want_of_a_variable_is_named(bench: Bench, door: Door) -> None:
    """Rule 20."""
    optional = steps("extra", runCondition={"var": "wanted", "equals": True})
    bench.write(workflow(*steps("one"), *optional, *steps("two")))
    door.start("test.flow")
    warned = door.done("one")["warnings"]
    assert [one["code"] for one in warned] == ["PASSED_OVER"]
    assert "extra" in warned[0]["message"]
    assert "wanted" in warned[0]["message"]
