"""What the navigation document promises beyond the ordinary path."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.run.commands import Terms
from support.authored import write
from support.harness import Bench
from support.navigation_client import NavigationClient, listed, opened

Payload = dict[str, Any]

HEAD = """
id: clauses
version: 1.0.0
title: Clauses
initialActivity: first
variables:
  - { name: ready, type: boolean }
  - { name: target, type: string }
"""
READY = "condition: { type: simple, variable: ready, operator: '==', value: true }"
NEXT = """
id: second
version: 1.0.0
name: Second
steps:
  - { id: go-on, name: Go on, description: Go on. }
"""
QUESTION = 'options: [{ id: "yes", label: "Yes" }, { id: "no", label: "No" }]'


def begun(bench: Bench, first: str, terms: Terms | None = None, **variables: Any) -> NavigationClient:
    """A run of a workflow whose first activity is given by its body."""
    client = opened(bench, terms=terms)
    files = {
        "clauses/workflow.yaml": HEAD,
        "clauses/activities/00-first.yaml": f"id: first\nversion: 1.0.0\nname: First\n{first}",
        "clauses/activities/01-second.yaml": NEXT,
    }
    write(bench.workflows, files)
    client.start("clauses", **variables)
    return client


STEP = "steps: [{ id: work, name: Work, description: Work. }]\n"


def test_h1_a_run_whose_exits_are_all_false_ends_and_says_so(bench: Bench) -> None:
    client = begun(bench, f"{STEP}transitions:\n  - {{ to: second, {READY} }}\n")
    client.done("work", variables={"ready": False})
    situation = client.situation()
    assert listed(situation) == [("transition", "__terminal__")]
    ended = client.go("__terminal__")
    assert ended["status"] == "completed"
    assert client.situation(ended["state"])["status"] == "completed"


def test_h1_variables_that_nobody_has_set_are_asked_for(bench: Bench) -> None:
    client = begun(bench, f"{STEP}transitions:\n  - {{ to: second, {READY} }}\n")
    situation = client.done("work")
    assert situation["availableActions"]["required"][0]["condition"] == "ready == true"
    assert client.go("second", variables={"ready": True})["position"]["activity"]["id"] == "second"


def test_h2_the_default_is_shut_while_a_condition_holds(bench: Bench) -> None:
    exits = f"transitions:\n  - {{ to: second, {READY} }}\n  - {{ to: __terminal__, isDefault: true }}\n"
    client = begun(bench, STEP + exits)
    situation = client.done("work", variables={"ready": True})
    assert listed(situation) == [("transition", "second")]
    assert ("transition", "__terminal__") in listed(situation, "blocked")
    assert client.go("__terminal__")["error"]["code"] == "INVALID_TRANSITION"


TIMED = f"""
steps:
  - {{ id: work, name: Work, description: Work., checkpoint: soon }}
checkpoints:
  - id: soon
    name: Soon
    message: "Soon?"
    defaultOption: "no"
    autoAdvanceMs: 30000
    {QUESTION}
"""


@pytest.mark.parametrize("policy", ["auto", "user", "agent"])
def test_h3_the_default_is_taken_when_the_time_has_passed(bench: Bench, policy: Any) -> None:
    """Rule 24."""
    client = begun(bench, TIMED, Terms(decisions=policy))
    shown = client.situation()["checkpoint"]
    assert (shown["defaultOption"], shown["autoAdvanceMs"]) == ("no", 30000)
    assert client.done("work")["error"]["code"] == "CHECKPOINT_BLOCKING"
    assert ("complete_step", "work") in listed(client.situation(), "blocked")
    bench.clock.pass_seconds(30)
    situation = client.situation()
    assert listed(situation) == [("complete_step", "work")], "what would be accepted is listed"
    answer = ("respond_to_checkpoint", "soon")
    assert (answer in listed(situation, "optional")) is (policy != "user")
    done = client.done("work")
    assert done["success"]
    assert "its default 'no' was taken" in done["warnings"][0]["message"]


def test_h3_an_answer_that_comes_after_the_time_still_counts(bench: Bench) -> None:
    client = begun(bench, TIMED)
    bench.clock.pass_seconds(60)
    assert client.respond("yes", "soon")["success"]
    assert "warnings" not in client.done("work")


def test_h3_a_gate_that_does_not_block_and_has_no_time_gives_way_at_once(bench: Bench) -> None:
    client = begun(bench, TIMED.replace("autoAdvanceMs: 30000", "blocking: false"))
    assert "its default 'no' was taken" in client.done("work")["warnings"][0]["message"]


OPTIONAL = """
steps:
  - { id: look, name: Look, description: Look., required: false }
  - { id: weigh, name: Weigh, description: Weigh., required: false }
  - { id: work, name: Work, description: Work. }
  - { id: polish, name: Polish, description: Polish., required: false }
"""


def test_h3_a_step_that_is_not_required_is_optional(bench: Bench) -> None:
    client = begun(bench, OPTIONAL)
    situation = client.situation()
    assert listed(situation) == [("complete_step", "work")]
    assert listed(situation, "optional")[:2] == [("complete_step", "look"), ("complete_step", "weigh")]
    described = {move["step"]: move["description"] for move in situation["availableActions"]["required"]}
    assert described == {"work": "Work."}
    done = client.done("weigh", "work")
    assert listed(done) == [("transition", "__terminal__")]
    assert ("complete_step", "polish") in listed(done, "optional")
    assert client.go("__terminal__")["status"] == "completed"


ASKING = f"""
steps:
  - {{ id: work, name: Work, description: Work. }}
checkpoints:
  - id: nice
    name: Nice
    message: "Is {{{{target}}}} nice?"
    required: false
    {QUESTION}
  - id: closing
    name: Closing
    message: "Close it?"
    {QUESTION}
"""


def test_h3_a_checkpoint_is_answered_where_it_stands(bench: Bench) -> None:
    """Rule 23."""
    client = begun(bench, ASKING, target="bread")
    assert not client.respond("no", "closing")["success"]
    client.done("work")
    offered = client.situation()["availableActions"]
    (nice,) = [move for move in offered["optional"] if "checkpoint" in move]
    assert (nice["checkpoint"], nice["options"]) == ("nice", ["yes", "no"])
    assert "Is «bread» nice?" in nice["description"]
    assert [move["checkpoint"] for move in offered["required"]] == ["closing"]
    assert client.respond("yes", "nice")["success"]
    assert client.respond("yes", "nice")["error"]["code"] == "CHECKPOINT_ALREADY_RESPONDED"
    assert client.respond("no", "closing")["success"]
    assert client.go("__terminal__")["status"] == "completed"


def test_h3_an_optional_checkpoint_holds_nobody_up(bench: Bench) -> None:
    client = begun(bench, ASKING)
    client.done("work")
    assert client.respond("yes", "closing")["success"]
    assert client.go("__terminal__")["status"] == "completed"


def test_h4_every_activity_of_the_index_can_be_begun_as_it_says(bench: Bench) -> None:
    client = opened(bench)
    index = client.call("get_activities")["activities"]
    assert {"start-workflow", "resume-workflow", "end-workflow", "open", "close"} <= {
        entry["id"] for entry in index
    }
    for entry in index:
        follow = entry["next_action"]
        begin = client.call(follow["tool"], **follow["parameters"])["next_action"]
        begun_at = client.call(begin["tool"], **begin["parameters"])
        assert begun_at["position"]["activity"]["id"] == entry["id"]


def test_h4_a_run_does_not_begin_in_the_middle(bench: Bench) -> None:
    client = opened(bench)
    answer = client.call("nav_start", workflow_id="build", activity_id="review")
    assert answer["error"]["code"] == "ACTIVITY_NOT_FOUND"
    assert client.call("nav_start", workflow_id="build", activity_id="plan")["success"]


def test_h5_health_names_the_workflows(bench: Bench) -> None:
    client = opened(bench)
    health = client.call("health_check")
    assert health["status"] == "healthy"
    assert {"build", "helper", "loose", "meta"} <= set(health["workflows"])
    assert health["workflows_available"] == len(health["workflows"])


def test_h5_a_workflow_with_errors_is_not_called_absent(bench: Bench) -> None:
    client = opened(bench)
    write(bench.workflows, {"broken/workflow.yaml": "id: broken\nversion: 1.0.0\ntitle: [\n"})
    error = client.call("nav_start", workflow_id="broken")["error"]
    assert error["code"] == "WORKFLOW_INVALID"
    assert "broken/workflow.yaml:" in error["message"]
    assert client.call("nav_start", workflow_id="nowhere")["error"]["code"] == "WORKFLOW_NOT_FOUND"


def test_h5_every_answer_about_a_run_says_where_it_is(bench: Bench) -> None:
    client = opened(bench)
    state = client.start(size="small")["state"]
    answers = [
        client.call("nav_checkpoint", state=state),
        client.act("complete_step", state),
        client.act("complete_step", state, step_id="analyze", variables={"a": "x" * 300_000}),
        client.act("complete_step", state, step_id="nowhere"),
    ]
    for answer in answers:
        assert answer["position"]["activity"]["id"] == "plan"
        assert answer["availableActions"]["required"]
        assert answer["state"] == state
    assert [answer["_error"] for answer in answers] == [False, True, True, False]


def test_e5_required_moves_show_what_they_go_by(bench: Bench) -> None:
    """The condition of a transition and of a loop, with the values of its variables."""
    client = opened(bench)
    client.start(external=False, tasks=["a", "b"])
    client.done("analyze")
    client.respond("yes")
    (onward,) = client.done("decide")["availableActions"]["required"]
    assert (onward["condition"], onward["reads"]) == ("approved == true", {"approved": True})
    assert "By taking it you state" not in onward["description"]
    client.go("build")
    (loop,) = client.done("prepare")["availableActions"]["required"]
    assert (loop["condition"], loop["reads"]) == (
        "it ends early when enough == true",
        {"enough": "[unset]"},
    )


def test_e5_an_exit_by_an_answer_shows_no_condition(bench: Bench) -> None:
    client = opened(bench)
    client.start()
    client.done("analyze")
    (onward,) = client.respond("redo")["availableActions"]["required"]
    assert "condition" not in onward
