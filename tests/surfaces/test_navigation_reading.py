"""What can be read at the navigation surface: workflows, activities, skills, resources, templates."""

from __future__ import annotations

import re

import pytest
import toon_format

from support.harness import Bench
from support.navigation_client import NavigationClient, opened, text


@pytest.fixture
def client(bench: Bench) -> NavigationClient:
    return opened(bench)


@pytest.mark.parametrize("bad", ["../build", "/etc/passwd", "build/../meta", "a b", ""])
@pytest.mark.parametrize("tool", ["get_workflow", "nav_start", "list_workflow_resources", "list_templates"])
def test_an_id_that_is_no_id_reaches_nothing(client: NavigationClient, tool: str, bad: str) -> None:
    """Rule 39."""
    assert client.call(tool, workflow_id=bad)["error"]["code"] == "WORKFLOW_NOT_FOUND"


def test_an_unknown_workflow_is_named_with_what_is_near(client: NavigationClient) -> None:
    answer = client.call("nav_start", workflow_id="biuld")
    assert answer["error"]["code"] == "WORKFLOW_NOT_FOUND"
    assert answer["error"]["message"] == "There is no workflow 'biuld'; did you mean 'build'?"


def test_workflows_are_listed_with_meta(client: NavigationClient) -> None:
    workflows = {workflow["id"]: workflow for workflow in client.call("list_workflows")["workflows"]}
    assert {"meta", "build", "loose"} <= set(workflows)
    described = {"id": "build", "title": "Build", "version": "1.0.0", "description": "For a test."}
    assert workflows["build"] == described
    assert workflows["work-package"]["tags"]


def test_a_workflow_its_activity_and_its_checkpoint_can_be_read(client: NavigationClient) -> None:
    whole = client.call("get_workflow", workflow_id="build")
    assert [activity["id"] for activity in whole["activities"]] == ["plan", "build", "review"]
    activity = client.call("get_workflow_activity", workflow_id="build", activity_id="plan")
    assert [step["id"] for step in activity["steps"]] == ["analyze", "decide"]
    ids = {"workflow_id": "build", "activity_id": "plan"}
    question = client.call("get_checkpoint", **ids, checkpoint_id="approve")
    assert question["options"][0]["effect"] == {"setVariable": {"approved": True}}
    missing = client.call("get_checkpoint", **ids, checkpoint_id="other")
    assert missing["error"]["code"] == "CHECKPOINT_NOT_FOUND"
    gone = client.call("get_workflow_activity", workflow_id="build", activity_id="other")
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
    client: NavigationClient, source: str, target: str, reason: str | None
) -> None:
    answer = client.call("validate_transition", workflow_id="build", from_activity=source, to_activity=target)
    assert answer["valid"] is (reason is None)
    assert answer.get("reason") == reason


def test_health_names_the_server_and_counts_the_workflows(client: NavigationClient) -> None:
    answer = client.call("health_check")
    assert (answer["status"], answer["server"]) == ("healthy", "interlock")
    assert answer["workflows_available"] == len(client.call("list_workflows")["workflows"])
    assert answer["uptime_seconds"] >= 0


def test_the_index_of_activities_matches_recognition_patterns(client: NavigationClient) -> None:
    index = client.call("get_activities")
    ids = [activity["id"] for activity in index["activities"]]
    assert ids[:3] == ["start-workflow", "resume-workflow", "end-workflow"]
    assert index["quick_match"]["close it"] == "close"
    entry = next(activity for activity in index["activities"] if activity["id"] == "close")
    assert entry["workflowId"] == "loose"
    follow = entry["next_action"]
    found = client.call(follow["tool"], **follow["parameters"])
    assert found["problem"] == "The user wants to close"
    assert client.call("get_activity", activity_id="none")["error"]["code"] == "ACTIVITY_NOT_FOUND"


def test_skills_are_the_workflows_own_then_universal(client: NavigationClient) -> None:
    """Rule 36."""
    universal = client.call("list_skills")
    assert "workflow_specific" not in universal
    listing = client.call("list_skills", workflow_id="build")
    assert (listing["workflow_specific"], listing["universal"]) == (["looking"], universal["universal"])
    assert {"activity-resolution", "workflow-execution"} <= set(listing["universal"])
    assert "capability: See what is there" in text(
        client, "get_skill", skill_id="looking", workflow_id="build"
    )
    assert "id: workflow-execution" in text(
        client, "get_skill", skill_id="workflow-execution", workflow_id="build"
    )
    assert client.call("get_skill", skill_id="looking")["error"]["code"] == "SKILL_NOT_FOUND"
    index = client.call("get_skills")
    assert [skill["id"] for skill in index["universal"]] == universal["universal"]
    assert all(skill["capability"] for skill in index["universal"])
    assert index["workflow_specific"]["build"][0]["capability"] == "See what is there"


@pytest.mark.parametrize("index", ["03", "3", "003", 3])
def test_resources_are_found_by_number_whatever_its_zeros(client: NavigationClient, index: str | int) -> None:
    listing = client.call("list_workflow_resources", workflow_id="build")["resources"]
    assert listing == [{"index": "03", "name": "notes", "title": "Notes", "format": "markdown"}]
    assert text(client, "get_resource", workflow_id="build", index=index) == "# Notes\nRead me."


def test_templates_are_found_by_number(client: NavigationClient) -> None:
    listing = client.call("list_templates", workflow_id="build")["templates"]
    assert [item["index"] for item in listing] == ["00"]
    assert text(client, "get_template", workflow_id="build", index="0") == "# Report: <name>"
    missing = client.call("get_template", workflow_id="build", index="07")
    assert missing["error"]["code"] == "TEMPLATE_NOT_FOUND"


def test_discovery_names_everything(client: NavigationClient) -> None:
    found = client.call("discover_resources")
    assert "build" in found["workflows"]
    assert found["activities"]["build"] == ["plan", "build", "review"]
    assert (found["resources"]["build"], found["templates"]["build"]) == (["03"], ["00"])
    assert found["skills"]["build"] == ["looking"]


def test_a_skill_that_is_offered_can_be_read(client: NavigationClient) -> None:
    first = client.start()
    offers = first["availableActions"]["optional"]
    skill = next(offer for offer in offers if offer["action"] == "get_skill")
    assert text(client, "get_skill", skill_id=skill["skill_id"], workflow_id=skill["workflow_id"])
    resource = next(offer for offer in offers if offer["action"] == "get_resource")
    assert text(client, "get_resource", workflow_id=resource["workflow_id"], index=resource["index"])


PARTS = {"protocol", "tools", "state", "interpretation", "errors"}
NAMED = {
    "workflow-execution": "list_workflows get_workflow list_workflow_resources get_workflow_activity "
    "get_checkpoint get_resource validate_transition list_templates get_template",
    "activity-resolution": "get_activities get_activity get_skill discover_resources",
}


@pytest.mark.parametrize("skill", NAMED)
def test_a_universal_skill_has_the_documented_parts_and_names_the_documented_tools(
    client: NavigationClient, skill: str
) -> None:
    told = text(client, "get_skill", skill_id=skill)
    parts = toon_format.decode(told)
    assert isinstance(parts, dict)
    assert parts.keys() >= PARTS
    assert [tool for tool in NAMED[skill].split() if not re.search(rf"\b{tool}\b", told)] == []
    if skill == "workflow-execution":
        assert {"transition", "checkpoint", "decision", "trigger"} <= parts["interpretation"].keys()
