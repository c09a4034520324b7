"""What the lookup document promises and was found missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.authoring.library import Library, Source
from interlock.surfaces.lookup import LookupSurface
from interlock.transport.stdio.lookup import Lookup
from support.authored import write
from support.cli_process import interlock
from support.lookup_client import Ask, document, lookup_client, save, step
from support.stdio_pipe import Pipe, request

WORK = """
id: work
version: 1.0.0
name: Work
steps: [{ id: do-it, name: Do it, description: Do it. }]
transitions:
  - { to: more, condition: { type: simple, variable: more, operator: "==", value: true } }
"""
FILES = {
    "flow/workflow.yaml": "id: flow\nversion: 1.0.0\ntitle: Flow\ninitialActivity: work\n"
    "variables: [{ name: more, type: boolean }]\n",
    "flow/activities/00-work.yaml": WORK,
    "flow/activities/01-more.yaml": "id: more\nversion: 1.0.0\nname: More\n"
    "steps: [{ id: do-more, name: Do more, description: Do more. }]\n",
}


@pytest.mark.parametrize(("more", "offered"), [(True, "do-more"), (False, None)])
def test_no_step_is_offered_behind_a_false_transition(
    tmp_path: Path, more: bool, offered: str | None
) -> None:
    ask = lookup_client(Library([Source("configured", write(tmp_path, FILES))]))
    answer = ask("workflow_next", workflowId="flow", completedSteps=["do-it"], context={"more": more})
    assert answer["step"].get("id") == offered
    assert answer["isComplete"] is not more


def test_role_and_guidance_are_fields_of_their_own(ask_about: Callable[..., Ask]) -> None:
    role, lines = "You are a careful reviewer.", ["Read twice.", "Say what is missing."]
    ask = ask_about(step("review", agentRole=role, guidance=lines))
    (shown,) = ask("workflow_get", id="team-some-flow")["steps"]
    assert (shown["prompt"], shown["agentRole"], shown["guidance"]) == ("Do review.", role, lines)
    answer = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])
    assert (answer["step"]["prompt"], answer["step"]["agentRole"]) == ("Do review.", role)
    worked_in = answer["guidance"]["prompt"]
    assert worked_in == f"Role: {role}\n\nDo review.\n\nGuidance:\n- Read twice.\n- Say what is missing."


def test_an_answer_is_one_line(tmp_path: Path) -> None:
    lookup = Lookup(LookupSurface(save(tmp_path, document(step("one", prompt="Look.\nThen tell.\u2028")))))
    lookup.receive(request(1, "initialize", {"protocolVersion": "2024-11-05", "capabilities": {}}))
    asked = {"workflowId": "team-some-flow", "completedSteps": []}
    (line,) = lookup.receive(request(2, "workflow_next", asked))
    assert json.loads(line)["result"]["step"]["prompt"] == "Look.\nThen tell.\u2028"
    assert line.index(b"\n") == len(line) - 1


def test_the_message_of_a_rule_under_not_is_told(ask_about: Callable[..., Ask]) -> None:
    rule = {"not": {"type": "contains", "value": "TODO", "message": "No TODO may be left"}}
    ask = ask_about(step("one", validationCriteria=rule))
    verdict = ask("workflow_validate", workflowId="team-some-flow", stepId="one", output="a TODO")
    assert verdict["issues"] == ["No TODO may be left"]


@pytest.mark.parametrize("word", ["and", "or"])
def test_an_empty_list_of_rules_is_an_error(ask_about: Callable[..., Ask], word: str) -> None:
    text = json.dumps(
        {
            "id": "team.flow",
            "name": "Flow",
            "description": "For a test.",
            "version": "1.0.0",
            "steps": [step("one", validationCriteria={word: []})],
        }
    )
    verdict = ask_about(step("one"))("workflow_validate_json", workflowJson=text)
    assert verdict["valid"] is False
    assert f"'{word}' needs a list of rules" in verdict["issues"][0]


def test_the_workflows_are_the_resources_that_are_announced(tmp_path: Path) -> None:
    lookup = Lookup(LookupSurface(Library([Source("configured", write(tmp_path, FILES))])))

    def answer(method: str, **params: object) -> object:
        (line,) = lookup.receive(request(1, method, params))
        return json.loads(line)["result"]

    answer("initialize", protocolVersion="2024-11-05", capabilities={})
    listed = answer("resources/list")
    assert isinstance(listed, dict)
    (resource,) = listed["resources"]
    assert (resource["uri"], resource["name"]) == ("workflow://flow", "Flow")
    read = answer("resources/read", uri=resource["uri"])
    assert isinstance(read, dict)
    assert json.loads(read["contents"][0]["text"])["id"] == "flow"
    assert answer("resources/templates/list") == {"resourceTemplates": []}


def test_a_server_that_cannot_start_says_so_on_the_pipe() -> None:
    with Pipe("mcp", "--surface", "lookup", "--no-such-option", "1", module="interlock") as pipe:
        error = pipe.read()
        assert (error["id"], error["error"]["code"]) == (None, -32000)
        assert "no-such-option" in error["error"]["data"]["details"]
        assert pipe.end() == 2


def test_installing_it_warns_that_clients_refuse_its_version(tmp_path: Path) -> None:
    ran = interlock(tmp_path / "data", "install", "claude-code", "--surface", "lookup", "--print")
    assert "2024-11-05" in ran.err
    assert "2024-11-05" not in interlock(tmp_path / "data", "install", "claude-code", "--print").err
