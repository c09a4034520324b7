"""Borrowed activities use the skills of their own lender, at every surface that serves skills (rule 36)."""

from __future__ import annotations

import json

import pytest

from interlock.surfaces.navigation import NavigationSurface
from support.authored import write
from support.harness import Agent, Bench
from support.session_agents import SessionAgent, gated, session

BORROWER = {
    "borrower/workflow.yaml": "id: borrower\nversion: 1.0.0\ntitle: Borrower\ninitialActivity: own\n"
    "activities: [north/01-north-work.yaml, south/01-south-work.yaml]\n",
    "borrower/activities/00-own.yaml": "id: own\nversion: 1.0.0\nname: Own\n"
    "steps: [{id: begin, name: Begin, description: Begin., skill: craft}]\n"
    "transitions: [{to: north-work, isDefault: true}]\n",
}
OWN_CRAFT = {"borrower/skills/00-craft.yaml": "id: craft\nversion: 1.0.0\ncapability: Craft of borrower\n"}


def lender(name: str) -> dict[str, str]:
    return {
        f"{name}/workflow.yaml": f"id: {name}\nversion: 1.0.0\ntitle: L\ninitialActivity: {name}-work\n",
        f"{name}/activities/01-{name}-work.yaml": f"id: {name}-work\nversion: 1.0.0\nname: Work\n"
        "skills: {primary: lead}\nsteps: [{id: make, name: Make, description: Make it., skill: craft}]\n",
        f"{name}/skills/00-craft.yaml": "id: craft\nversion: 1.0.0\n"
        f"capability: Craft of {name}\nresources: ['00']\n",
        f"{name}/skills/01-lead.yaml": f"id: lead\nversion: 1.0.0\ncapability: Lead of {name}\n",
        f"{name}/resources/00-guide.md": f"# Guide of {name}\n",
    }


def start(bench: Bench, surface: str, **more: str) -> SessionAgent:
    write(bench.workflows, {**BORROWER, **lender("north"), **lender("south"), **more})
    agent = session(bench) if surface == "session" else gated(bench)
    agent.call("start_session", agent_id="a", workflow_id="borrower")
    agent.go("own")
    return agent


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_two_lenders_with_the_same_skill_id_each_serve_their_own_activity(bench: Bench, surface: str) -> None:
    agent = start(bench, surface)
    assert agent.tell("get_skill", step_id="begin").code == "NOT_FOUND"  # neither lender's is the borrower's
    for name in ("north", "south"):
        agent.go(f"{name}-work")
        skill = agent.tell("get_skill", step_id="make").text
        assert f"Craft of {name}" in skill
        assert f"{name}/00" in skill
        parameter = "resource_id" if surface == "session" else "resource_index"
        assert f"Guide of {name}" in agent.tell("get_resource", **{parameter: f"{name}/00"}).text
        if surface == "session":
            assert f"Lead of {name}" in agent.tell("get_skill").text


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_the_borrowers_own_skill_comes_before_a_lenders(bench: Bench, surface: str) -> None:
    agent = start(bench, surface, **OWN_CRAFT)
    for name in ("north", "south"):
        agent.go(f"{name}-work")
        assert "Craft of borrower" in agent.tell("get_skill", step_id="make", full=True).text


def test_navigation_offers_the_skill_of_the_lender(bench: Bench) -> None:
    write(bench.workflows, {**BORROWER, **lender("north"), **lender("south")})
    agent = Agent(NavigationSurface(bench.ledger()))
    agent.call("nav_start", workflow_id="borrower")
    for action in (
        {"action": "complete_step", "step_id": "begin"},
        {"action": "transition", "activity_id": "north-work"},
    ):
        agent.call("nav_action", state=json.loads(agent.text)["state"], **action)
    available = json.loads(agent.text)["availableActions"]
    assert "Use the skill `north/craft`." in available["required"][0]["description"]
    offers = [offer["skill_id"] for offer in available["optional"] if offer["action"] == "get_skill"]
    assert offers == ["north/craft"]
    for name in ("north", "south"):
        agent.call("get_skill", skill_id=f"{name}/craft", workflow_id="borrower")
        assert f"Craft of {name}" in agent.text


@pytest.mark.parametrize("surface", ["session", "gated", "navigation"])
def test_a_workflows_own_skill_comes_before_the_universal_one_of_its_name(bench: Bench, surface: str) -> None:
    files = {
        "w/workflow.yaml": "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: only\n",
        "w/activities/00-only.yaml": "id: only\nversion: 1.0.0\nname: Only\n"
        "steps: [{id: work, name: Work, skill: execute-activity}]\n",
    }
    own = {"w/skills/07-execute-activity.toon": "id: execute-activity\ncapability: Our own\n"}
    write(bench.workflows, files)
    assert "Carry out one activity" in skill_of_work(bench, surface)
    write(bench.workflows, own)
    bench.clock.pass_seconds(1)
    assert "Our own" in skill_of_work(bench, surface)


def skill_of_work(bench: Bench, surface: str) -> str:
    if surface == "navigation":
        reader = Agent(NavigationSurface(bench.ledger()))
        reader.call("get_skill", skill_id="execute-activity", workflow_id="w")
        return reader.text
    agent = session(bench) if surface == "session" else gated(bench)
    agent.call("start_session", agent_id="a", workflow_id="w")
    agent.go("only")
    return agent.tell("get_skill", step_id="work").text
