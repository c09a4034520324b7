"""Arguments as clients send them: objects as JSON text, null members, names that are far too long."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.surfaces.call import Call, Client, Reply, RpcError
from interlock.surfaces.tool import call_tool
from support.harness import Bench, every_surface, gate, steps, workflow
from support.navigation_client import opened
from support.session_agents import gated, manifest, session

LONG = "a" * 100_000


def test_objects_that_come_as_json_text_are_read(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    agent.call("start_workflow", workflowId="test.flow", context='{"size": {"unit": null}}')
    assert agent.look()["context"] == {"size": {"unit": None}}
    tokens = {name: agent.last[name] for name in ("stateToken", "ackToken")}
    agent.call("continue_workflow", **tokens, output='{"notesMarkdown": "seen"}')
    assert agent.pending == "two"
    assert agent.look()["recap"]["entries"] == [{"stepId": "one", "notes": "seen"}]


@pytest.mark.parametrize("surface", [session, gated])
def test_manifests_and_variables_that_come_as_json_text_are_read(bench: Bench, surface: Any) -> None:
    bench.write(workflow(*steps("one")))
    agent = surface(bench)
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    done = json.dumps(manifest("one"))
    assert agent.go("__terminal__", step_manifest=done, variables='{"size": 3}').warnings == []


def test_text_that_is_not_the_json_wanted_says_what_to_send(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    agent = bench.agent()
    for sent in ("I did it", "[1]", "{"):
        error = agent.call("start_workflow", workflowId="test.flow", context=sent)
        assert error["details"]["suggestion"] == "Send context as a JSON object."
    hidden = agent.call("start_workflow", workflowId="test.flow", context='{"a": "\\u0000"}')
    assert "NUL" in hidden["message"]


def test_null_members_of_an_output_are_left_out(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    agent.start("test.flow")
    tokens = {name: agent.last[name] for name in ("stateToken", "ackToken")}
    agent.call("continue_workflow", **tokens, output={"notesMarkdown": "seen", "artifacts": None})
    assert agent.pending == "two"


def test_no_answer_repeats_a_name_that_is_far_too_long(bench: Bench) -> None:
    """A name that nobody can have meant is cut: an agent pays for every byte that it reads."""
    bench.write(workflow(*steps("one"), gate("ask", "yes")))
    sessions = [surface(bench) for surface in (session, gated)]
    for agent in sessions:
        agent.call("start_session", workflow_id="test.flow", agent_id="a")
        agent.go("main")
    tokens = {agent.surface.name: agent.token for agent in sessions}
    state = opened(bench).start("test.flow")["state"]
    for surface in every_surface(bench):
        for name, tool in surface.tools.items():
            parameters: Any = tool.argument_schema()["properties"]
            required: Any = tool.argument_schema().get("required", [])
            texts = [text for text, known in parameters.items() if known.get("type") == "string"]
            usual = {"session_token": tokens.get(surface.name, ""), "state": state, "action": "complete_step"}
            usual |= {"workflow_id": "test.flow", "workflowId": "test-flow", "activity_id": "main"}
            for text in texts:
                arguments = {other: usual.get(other, "one") for other in required} | {text: LONG}
                arguments |= {token: usual[token] for token in ("session_token", "state") if token in texts}
                reply = call_tool(surface, name, {**arguments, text: LONG}, Call(Client()))
                size = len(reply.text) if isinstance(reply, Reply) else 0
                size += len(str(reply.data)) + len(reply.message) if isinstance(reply, RpcError) else 0
                assert size < 20_000, (surface.name, name, text)


def test_null_stands_for_a_parameter_that_is_left_out(bench: Bench) -> None:
    """Some clients send every parameter that a tool has."""
    bench.write(workflow(*steps("one")))
    agent = session(bench)
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    assert not agent.tell("get_workflow", summary=None, full=None).error
    refused = agent.call("get_workflow", session_token=None)
    assert "expected a string, got null (session_token)" in refused.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workflowId": 5}, "expected a string, got an integer (workflowId)"),
        ({"workflowId": "test.flow", "context": "x"}, "expected an object, got a string (context)"),
        ({"workflowId": "test.flow", "context": [True]}, "expected an object, got an array (context)"),
        (
            {"workflowId": "test.flow", "requestId": "x" * 200},
            "expected a string of length <= 128 (requestId)",
        ),
    ],
)
def test_types_are_named_as_json_names_them(bench: Bench, arguments: dict[str, Any], message: str) -> None:
    agent = bench.agent()
    assert agent.call("start_workflow", **arguments)["message"] == f"start_workflow: {message}."
