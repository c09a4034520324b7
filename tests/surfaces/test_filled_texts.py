"""Variables in the texts of activity files, in both spellings (rule 32)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from interlock.authoring.compile.braces import with_double_braces
from interlock.authoring.library import Library, Loaded, Source
from interlock.core.run.events import GateResolved
from interlock.core.values import Json
from interlock.store.protocol import SessionFilter
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.navigation import NavigationSurface
from support.authored import write
from support.harness import Agent, Bench, gate, steps, workflow
from support.log import logged_events
from support.navigation_client import NavigationClient, opened
from support.session_agents import SessionAgent, gated, session, start_flow, write_flow

FILES = {
    "pull/workflow.yaml": """
id: pull
version: 1.0.0
title: Pull
initialActivity: review
variables:
  - { name: number, type: number }
  - { name: branch, type: string }
  - { name: found, type: string }
  - { name: merge, type: boolean }
""",
    "pull/activities/00-review.yaml": """
id: review
version: 1.0.0
name: "Review of {number}"
steps:
  - id: read
    name: "Read {number}"
    description: "Read {{branch}} and {number}. Write {\\"a\\": {other}}."
checkpoints:
  - id: keep
    name: "Keep {number}"
    message: "Keep {number} of {{branch}}?"
    options:
      - id: "yes"
        label: "Keep {number}"
        effect: { setVariable: { merge: true, found: "{number} on {branch}" } }
      - { id: "no", label: "No", effect: { transitionTo: "__terminal__" } }
transitions: [{ to: __terminal__, isDefault: true }]
""",
}
GIVEN = {"number": 7, "branch": "main"}


def navigator(bench: Bench) -> NavigationClient:
    client = opened(bench)
    write(bench.workflows, FILES)
    client.start("pull", **GIVEN)
    return client


def worker(bench: Bench) -> SessionAgent:
    write(bench.workflows, FILES)
    agent = session(bench)
    agent.call("start_session", agent_id="worker", workflow_id="pull")
    agent.go("review", variables=GIVEN)
    return agent


def test_navigation_fills_titles_and_questions(bench: Bench) -> None:
    client = navigator(bench)
    situation = client.situation()
    assert situation["position"]["activity"]["name"] == "Review of 7"
    assert situation["position"]["step"]["name"] == "Read 7"
    assert "Read main and 7." in situation["availableActions"]["required"][0]["description"]
    asked = client.done("read")["checkpoint"]
    assert (asked["name"], asked["message"]) == ("Keep 7", "Keep 7 of «main»?")
    assert asked["options"] == [
        {"id": "yes", "label": "Keep 7", "effect": "merge = true; found = «7 on main»"},
        {"id": "no", "label": "No", "effect": "ends the workflow"},
    ]


def test_session_fills_the_activity_and_lists_the_options_with_their_effects(bench: Bench) -> None:
    agent = worker(bench)
    text = agent.tell("get_activity").text
    assert "Read main and 7." in text
    assert "{other}" in text
    handle = agent.tell("yield_checkpoint", checkpoint_id="keep").body["checkpoint_handle"]
    shown = agent.call("present_checkpoint", checkpoint_handle=handle).text
    assert "Keep 7 of «main»?" in shown
    assert (
        "options[2]:\n  - id: yes\n    label: Keep 7\n    effect: merge = true; found = «7 on main»" in shown
    )
    answer = agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    assert answer.body["effect"]["setVariable"] == {"merge": True, "found": "7 on main"}


def test_an_effect_without_its_variable_stores_nothing(bench: Bench) -> None:
    files = {path: text.replace(" of {{branch}}?", "?") for path, text in FILES.items()}
    assert files != FILES
    write(bench.workflows, files)
    agent = session(bench)
    agent.call("start_session", agent_id="worker", workflow_id="pull")
    agent.go("review", variables={"number": 7})
    agent.tell("yield_checkpoint", checkpoint_id="keep")
    answer = agent.tell("respond_checkpoint", option_id="yes")
    assert answer.body["effect"]["setVariable"] == {"merge": True}
    assert any("nobody has set 'branch'" in warning for warning in answer.warnings)


def test_only_names_of_the_workflow_are_meant(bench: Bench) -> None:
    loaded = Library([Source("configured", write(bench.workflows, FILES))]).load("pull")
    assert isinstance(loaded, Loaded)
    (activity,) = loaded.workflow.activities
    (step,) = activity.steps()
    assert step.title == "Read {{number}}"
    assert "{other}" in step.prompt[0].text
    assert with_double_braces(loaded.workflow) == loaded.workflow


def test_e9_joining_says_who_joined_and_warns_of_nothing(bench: Bench) -> None:
    lead = start_flow(bench)
    answer = session(bench).call("start_session", agent_id="worker-1", session_token=lead.token)
    assert answer.body["message"] == "Joined as worker-1."
    assert answer.warnings == []


def test_e9_the_variables_can_be_seen(bench: Bench) -> None:
    agent = worker(bench)
    shown = agent.tell("get_workflow_status").body["context"]
    assert (shown["number"], shown["branch"]) == (7, "main")


def test_e9_gated_shows_the_variables_to_whoever_joins(bench: Bench) -> None:
    write_flow(bench)
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow", agent_id="one")
    agent.go("gather", variables={"goal": "bread"})
    joined = gated(bench).call("start_session", workflow_id="flow", agent_id="two", session_token=agent.token)
    assert (joined.body["current_activity"], joined.body["context"]["goal"]) == ("gather", "bread")


@pytest.mark.parametrize("text", ["${number}", "\\{number}", "{{number}}", "{ number }", "{}"])
def test_other_braces_stay(bench: Bench, text: str) -> None:
    files = {name: body.replace("Write {", f"Write {text} {{") for name, body in FILES.items()}
    files = {name: body.replace("\\{", "\\\\{") for name, body in files.items()}
    loaded = Library([Source("configured", write(bench.workflows, files))]).load("pull")
    assert isinstance(loaded, Loaded)
    (step,) = loaded.workflow.activities[0].steps()
    assert f"Write {text} " in step.prompt[0].text


def test_gated_fills_the_activity_it_returns(bench: Bench) -> None:
    write(bench.workflows, FILES)
    agent = gated(bench)
    agent.call("start_session", workflow_id="pull")
    entered = agent.go("review", variables=GIVEN).body
    assert entered["name"] == "Review of 7"
    assert entered["steps"][0]["name"] == "Read 7"
    assert entered["checkpoints"][0]["message"] == "Keep 7 of main?"
    assert entered["checkpoints"][0]["options"][0]["effect"]["setVariable"]["found"] == "7 on main"


def test_execution_names_the_effect_of_each_option(bench: Bench) -> None:
    write(bench.workflows, FILES)
    agent = bench.agent()
    agent.start("pull", **GIVEN)
    while "## Keep 7 (keep)" not in agent.text:
        agent.ack("done")
    assert "- `yes` Keep 7 (effect: merge = true; found = «7 on main»)" in agent.text
    assert "- `no` No (effect: ends the workflow)" in agent.text


OPTION = {
    "id": "go",
    "label": "Deploy to {{target}}",
    "effect": {"setVariable": {"deployed": "{{parts.length}} parts to {{target}}", "by": "{{nobody}}"}},
}
DEPLOY = workflow(
    *steps("look", sets=["target"]),
    gate("deploy", OPTION, "stop", message="Deploy {{target}}?"),
    *steps("report"),
    id="test.deploy",
    variables=[{"name": name} for name in ("target", "parts", "nobody", "deployed", "by")],
)
PARTS: dict[str, Json] = {"parts": ["a", "b"]}
STAGING: dict[str, Json] = {"target": "staging"}
NOT_STORED = "Effect of checkpoint 'deploy' was passed over: nobody has set 'nobody'."


def execution_decides(bench: Bench) -> str:
    agent = Agent(ExecutionSurface(bench.ledger()))
    agent.start("test.deploy", **PARTS)
    agent.ack("looked", **STAGING)
    asked = agent.text
    agent.decide("go")
    return asked + agent.text


def session_decides(bench: Bench) -> str:
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.deploy")
    agent.go("main", variables=PARTS)
    agent.tell("yield_checkpoint", checkpoint_id="deploy", variables=STAGING)
    asked = agent.tell("present_checkpoint").text
    return asked + agent.tell("respond_checkpoint", option_id="go").text


def gated_decides(bench: Bench) -> str:
    agent = gated(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.deploy")
    agent.go("main", variables={**PARTS, **STAGING})
    asked = agent.tell("get_checkpoint", activity_id="main", checkpoint_id="deploy").text
    return asked + agent.tell("respond_checkpoint", checkpoint_id="deploy", option_id="go").text


def navigation_decides(bench: Bench) -> str:
    client = NavigationClient(NavigationSurface(bench.ledger()))
    client.call("nav_start", workflow_id="test.deploy", initial_variables=PARTS)
    output = {"notesMarkdown": "looked"}
    asked = client.act("complete_step", step_id="look", variables=STAGING, output=output)
    return str(asked) + str(client.respond("go", "deploy"))


@pytest.mark.parametrize("decides", [execution_decides, session_decides, gated_decides, navigation_decides])
def test_a_gate_of_a_step_file_fills_its_options_and_effects(
    bench: Bench, decides: Callable[[Bench], str]
) -> None:
    """Rule 32: an effect whose variable nobody has set stores nothing, and the text says so."""
    bench.write(DEPLOY)
    told = decides(bench)
    assert "Deploy «staging»?" in told
    assert "Deploy to «staging»" in told
    assert NOT_STORED in told
    store = bench.ledger().store
    with store.reading() as reader:
        (session,) = reader.sessions(SessionFilter())
    answer = logged_events(store, session.session_id, "gate_resolved")[-1].event
    assert isinstance(answer, GateResolved)
    assert (answer.sets, answer.unset) == ({"deployed": "2 parts to staging"}, ("nobody",))


def test_the_title_of_a_loop_is_filled_wherever_it_is_shown(bench: Bench) -> None:
    each = {"id": "each", "type": "loop", "title": "Parts of {{car}}", "body": steps("paint")}
    each["loop"] = {"type": "forEach", "items": "parts", "maxIterations": 3}
    bench.write(workflow(*steps("look"), each))
    agent = bench.agent()
    agent.start("test.flow", car="T")
    agent.ack("looked")
    assert "Loop 'Parts of T' goes through the list 'parts'" in agent.text
    agent.ack(parts=["door"])
    assert "Round 1 of 1 of loop 'Parts of T', item: door." in agent.text
    client = Agent(NavigationSurface(bench.ledger()))
    client.call("nav_start", workflow_id="test.flow", initial_variables={"car": "T"})
    client.call(
        "nav_action",
        state=client.last["state"],
        action="complete_step",
        step_id="look",
        variables={"car": "T"},
    )
    assert "Start loop 'Parts of T': send its list 'parts' as loop_items." in client.text


@pytest.mark.parametrize("field", ["label", "effect", "title of a loop"])
def test_an_unknown_variable_in_a_filled_text_is_an_error(bench: Bench, field: str) -> None:
    option = {**OPTION, "effect": {"setVariable": {"deployed": "{{targt}}"}}}
    if field == "label":
        option = {"id": "go", "label": "Deploy to {{targt}}"}
    items = [*steps("look", sets=["target"]), gate("deploy", option, message="Deploy {{target}}?")]
    if field == "title of a loop":
        counted = {"type": "for", "count": 2, "maxIterations": 2}
        items = [
            *items[:1],
            {"id": "l", "type": "loop", "title": "{{targt}}", "loop": counted, "body": steps("x")},
        ]
    path = bench.workflows / "typo.yaml"  # of our own format, and JSON is YAML
    path.write_text(json.dumps(workflow(*items, id="test.typo")))
    (listed,) = Library([Source("configured", path.parent)]).listing().diagnostics
    assert (listed.code, listed.severity) == ("IL513", "error")
    assert "'targt'" in listed.message
