"""Every documented tool and parameter is there, and the documented order of calls leads through a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from interlock.surfaces.shared.workflow_shapes import as_toon
from interlock.surfaces.tool import Tool
from support.harness import STATEFUL, Bench
from support.navigation_client import opened
from support.session_agents import FLOW, Answer, SessionAgent, gated, manifest, session, write_flow

TOKEN = "session_token"
OF_WORKFLOW = "workflow_id"
MOVE = f"{TOKEN} activity_id transition_condition? step_manifest? activity_manifest?"
HOW = "option_id? auto_advance? condition_not_met?"
ALIKE = {
    **dict.fromkeys(("discover", "list_workflows", "health_check"), ""),
    "get_workflow": f"{TOKEN} summary?",
    "next_activity": MOVE,
    "get_skills": TOKEN,
    "get_trace": f"{TOKEN} trace_tokens?",
}
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "session": {
        **ALIKE,
        "start_session": f"agent_id workflow_id? parent_session_token? {TOKEN}?",
        "get_workflow_status": TOKEN,
        "get_activity": TOKEN,
        "yield_checkpoint": f"{TOKEN} checkpoint_id",
        "resume_checkpoint": TOKEN,
        "present_checkpoint": f"checkpoint_handle? {TOKEN}?",
        "respond_checkpoint": f"checkpoint_handle? {TOKEN}? {HOW}",
        "get_skill": f"{TOKEN} step_id?",
        "get_resource": f"{TOKEN} resource_id",
    },
    "gated": {
        **ALIKE,
        "start_session": f"workflow_id {TOKEN}? agent_id?",
        "get_checkpoint": f"{TOKEN} activity_id checkpoint_id",
        "respond_checkpoint": f"{TOKEN} checkpoint_id {HOW}",
        "get_skill": f"{TOKEN} step_id",
        "get_resource": f"{TOKEN} resource_index",
    },
    "navigation": {
        "nav_start": f"{OF_WORKFLOW} initial_variables?",
        "nav_situation": "state",
        "nav_action": "state action step_id? checkpoint_id? option_id? activity_id? loop_id? loop_items?",
        "nav_checkpoint": "state",
        "list_workflows": "",
        "get_workflow": OF_WORKFLOW,
        "get_workflow_activity": f"{OF_WORKFLOW} activity_id",
        "get_checkpoint": f"{OF_WORKFLOW} activity_id checkpoint_id",
        "validate_transition": f"{OF_WORKFLOW} from_activity to_activity",
        **dict.fromkeys(("health_check", "get_activities", "get_skills", "discover_resources"), ""),
        "get_activity": "activity_id",
        "list_skills": f"{OF_WORKFLOW}?",
        "get_skill": f"skill_id {OF_WORKFLOW}?",
        "list_workflow_resources": OF_WORKFLOW,
        "get_resource": f"{OF_WORKFLOW} index",
        "list_templates": OF_WORKFLOW,
        "get_template": f"{OF_WORKFLOW} index",
    },
}


@pytest.mark.parametrize("surface", PARAMETERS)
def test_every_tool_takes_the_parameters_of_its_document(bench: Bench, surface: str) -> None:
    """And needs no other, so that every documented call is served."""
    tools, documented = STATEFUL[surface](bench.ledger()).tools, PARAMETERS[surface]
    assert set(tools) == set(documented)
    for name, listed in documented.items():
        properties, required = parameters(tools[name])
        assert {word.rstrip("?") for word in listed.split()} <= properties, name
        assert required <= set(listed.split()), name
    takes_workflow = {name for name, tool in tools.items() if OF_WORKFLOW in parameters(tool)[0]}
    if surface != "navigation":
        assert takes_workflow == {"start_session"}, "elsewhere the token says which workflow"


def parameters(tool: Tool) -> tuple[set[str], set[str]]:
    schema: Any = tool.argument_schema()
    return set(schema["properties"]), set(schema.get("required", ()))


class Caller:
    """Calls the tools in turn, and looks at what every answer has."""

    def __init__(self, agent: SessionAgent) -> None:
        self.agent = agent
        self.called: list[str] = []
        self.trace_tokens: list[str] = []

    def tell(self, tool: str, **arguments: Any) -> Answer:
        answer = self.agent.tell(tool, **arguments) if tool != "start_session" else self.start(**arguments)
        self.called.append(tool)
        assert answer.meta["validation"] == {"status": "valid", "warnings": []}, tool
        assert answer.text.count(answer.token) == 1, tool
        assert ("trace_token" in answer.meta) is (tool == "next_activity"), tool
        self.trace_tokens += [answer.meta["trace_token"]] if tool == "next_activity" else []
        return answer

    def start(self, **arguments: Any) -> Answer:
        return self.agent.call("start_session", agent_id="a", **arguments)

    def answer(self, checkpoint: str, option: str, **more: Any) -> None:
        if "yield_checkpoint" not in self.agent.surface.tools:
            self.tell("get_checkpoint", activity_id="gather", checkpoint_id=checkpoint, **more)
            self.tell("respond_checkpoint", checkpoint_id=checkpoint, option_id=option)
            return
        self.tell("yield_checkpoint", checkpoint_id=checkpoint, **more)
        self.tell("present_checkpoint")
        self.tell("respond_checkpoint", option_id=option)
        self.tell("resume_checkpoint")


@pytest.mark.parametrize("make", [session, gated])
def test_the_documented_order_of_calls_leads_from_discover_to_the_trace(bench: Bench, make: Any) -> None:
    """Each answer has the newest token and a validation; only a move has a trace token."""
    write_flow(bench)
    agent = make(bench)
    assert "list_workflows" in agent.call("discover").text
    assert "flow" in agent.call("list_workflows").text
    assert agent.call("health_check").body["status"] == "healthy"
    caller = Caller(agent)
    started = caller.tell("start_session", workflow_id="flow").body
    assert (started["session_token"], started["workflow"]["id"]) == (agent.token, "flow")
    assert "Lead" in caller.tell("get_skills").text
    assert "gather" in caller.tell("get_workflow", summary=True).text
    caller.tell("next_activity", activity_id="gather")
    if make is session:
        caller.tell("get_activity")
        assert caller.tell("get_workflow_status").body["current_activity"] == "gather"
    assert "looking" in caller.tell("get_skill", step_id="look").text
    resource = {"resource_id" if make is session else "resource_index": "00"}
    assert "Read me." in caller.tell("get_resource", **resource).text
    caller.answer("scope", "skip", step_manifest=manifest("look"), variables={"goal": "bread"})
    caller.tell("next_activity", activity_id="finish", step_manifest=manifest("look"))
    trace = caller.tell("get_trace", trace_tokens=caller.trace_tokens).body
    untraced = ("get_workflow_status", "get_trace")
    assert [event["name"] for event in trace["events"]] == [
        tool for tool in caller.called if tool not in untraced
    ]
    assert trace["event_count"] == len(trace["events"])
    bootstrap = {"discover", "list_workflows", "health_check"}
    assert set(caller.called) == set(agent.surface.tools) - bootstrap


RICH = """
id: rich
version: 1.0.0
name: Rich
rules: [Be quick.]
skills: { primary: lead, supporting: [looking] }
modeOverrides: { short: { rules: [Leave out the rest.] } }
steps:
  - { id: prepare, name: Prepare, description: Prepare it., skill: looking }
loops:
  - { id: each, name: Each, type: forEach, variable: x, over: parts, steps: [{ id: make, name: Make }] }
checkpoints:
  - { id: ask, name: Ask, message: "Well?", options: [{ id: fine, label: Fine }] }
decisions:
  - { id: choose, name: Choose, branches: [{ id: else, label: Else, transitionTo: gather, isDefault: true }] }
transitions:
  - { to: finish, condition: { type: simple, variable: risky, operator: "==", value: true } }
"""


@pytest.mark.parametrize("surface", PARAMETERS)
def test_an_activity_is_returned_with_every_part_of_its_file(bench: Bench, surface: str) -> None:
    """Mode overrides too: the documents name them, and nobody but the agent interprets them."""
    write_flow(bench, {**FLOW, "flow/activities/03-rich.yaml": RICH})
    if surface == "navigation":
        named = {"workflow_id": "flow", "activity_id": "rich"}
        shown: Any = opened(bench).call("get_workflow_activity", **named)
    else:
        agent = session(bench) if surface == "session" else gated(bench)
        agent.call("start_session", agent_id="a", workflow_id="flow")
        entered = agent.go("rich")
        shown = toon(agent.tell("get_activity").text) if surface == "session" else entered.body
    assert shown["rules"] == ["Be quick."]
    assert shown["skills"] == {"primary": "lead", "supporting": ["looking"]}
    assert shown["modeOverrides"] == {"short": {"rules": ["Leave out the rest."]}}
    assert (shown["steps"][0]["id"], shown["steps"][0]["skill"]) == ("prepare", "looking")
    assert (shown["loops"][0]["over"], shown["loops"][0]["steps"][0]["id"]) == ("parts", "make")
    assert (shown["checkpoints"][0]["id"], shown["checkpoints"][0]["options"][0]["id"]) == ("ask", "fine")
    assert shown["decisions"][0]["branches"][0]["transitionTo"] == "gather"
    assert shown["transitions"] == [{"to": "finish", "condition": "risky == true"}]


def toon(text: str) -> Any:
    """Read the definition under the header of an answer."""
    import toon_format

    return toon_format.decode(text.partition("\n\n")[2])


BEGIN = "start_session get_skills get_workflow next_activity"
STEPS = "get_skill step_id get_resource"
ONWARD = "transitions next_activity step_manifest"
RESOLVED = "yield_checkpoint respond_checkpoint resume_checkpoint"
GOAL = "discover list_workflows match start_session get_skills next_activity"
PROTOCOLS = [
    (session, "session-protocol", (f"{BEGIN} get_activity", STEPS, ONWARD, RESOLVED)),
    (gated, "session-protocol", (BEGIN, STEPS, ONWARD)),
    (gated, "execute-activity", (GOAL, "steps checkpoints artifacts result")),
    (session, "orchestrator-management", ("next_activity worker present_checkpoint respond_checkpoint",)),
    (session, "worker-management", ("start_session get_activity yield_checkpoint resume_checkpoint report",)),
]


@pytest.mark.parametrize(("make", "skill", "told"), PROTOCOLS)
def test_a_universal_skill_tells_the_documented_order_of_calls(
    bench: Bench, make: Any, skill: str, told: tuple[str, ...]
) -> None:
    agent = make(bench)
    agent.call("start_session", agent_id="a", workflow_id="meta")
    answer = agent.tell("get_skill", skill_id=skill)
    text = (
        as_toon(answer.body["skill"]["protocol"]) if make is gated else answer.text.partition("protocol:")[2]
    )
    for words in told:
        assert re.search(r"\b.*\b".join(words.split()), text, re.DOTALL), words
