"""What an answer offers can be sent back: as it stands, or with something in the place of a <placeholder>.

The examples of refusals are sent back by the agents of `test_text_agents`; here are the other offers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from interlock.surfaces.call import Call, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.tool import call_tool
from support.corpus import needs_corpus
from support.every_field import write_every_field
from support.harness import Bench, compile_cache
from support.paths import CORPUS
from support.text_agents import AGENTS, NavigationTextAgent

MOST_STATES = 40
SET = {"ready": True, "parts": ["a"]}


class Curious(NavigationTextAgent):
    """Tries every action that it is offered, each from the same state, before it takes one."""

    def go_on(self, text: str) -> str:
        body = json.loads(text)
        if self.calls < MOST_STATES * 10:
            offered = body["availableActions"]
            for action in (*offered["required"], *offered["optional"]):
                if action["action"] != "abandon":  # which ends the run for every state of it
                    self.attempt(body, action)
        return super().go_on(text)

    def attempt(self, body: dict[str, Any], action: dict[str, Any]) -> None:
        tool = action["action"]
        if tool in self.surface.tools:  # something to read or to start beside the work
            given = {name: value for name, value in action.items() if name not in ("action", "description")}
            assert '"success":false' not in self.call(tool, **given), action
            return
        for option in action.get("options", [None]):
            arguments = {**self.arguments(body, action), **({"option_id": option} if option else {})}
            answer = json.loads(self.call("nav_action", **arguments))
            assert answer["success"], (action, answer["error"])


def try_everything(bench: Bench, library: Library, workflow_id: str, **inputs: Any) -> None:
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    ledger.library = library
    Curious(NavigationSurface(ledger), workflow_id, "pelican", inputs=inputs).walk()


@pytest.mark.parametrize("workflow_id", ["wr.small_task", "work-packages"])
def test_every_action_that_navigation_offers_passes(bench: Bench, workflow_id: str) -> None:
    try_everything(bench, Library([BUNDLED], compile_cache()), workflow_id)


def test_the_offer_to_abandon_a_run_passes(bench: Bench) -> None:
    agent = NavigationTextAgent(NavigationSurface(bench.ledger()), "wr.small_task", "pelican")
    body = json.loads(agent.begin())
    offer = next(offer for offer in body["availableActions"]["optional"] if offer["action"] == "abandon")
    assert offer["note"] == "<why>"
    answer = json.loads(agent.call("nav_action", state=body["state"], action="abandon", note="not needed"))
    assert answer["success"]


@pytest.mark.slow
def test_every_action_that_navigation_offers_in_a_bundled_workflow_passes(bench: Bench) -> None:
    library = Library([BUNDLED], compile_cache())
    for entry in library.listing().entries:
        try_everything(bench, library, entry.id)


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("folder", ["activities", "steps", "steps-v1"])
def test_every_action_that_navigation_offers_in_a_workflow_of_others_passes(
    bench: Bench, folder: str
) -> None:
    source = Source("configured", CORPUS / folder, "mounted")
    library = Library([BUNDLED, source], compile_cache())
    for entry in Library([source], compile_cache()).listing().entries:
        try_everything(bench, library, entry.id)


@pytest.mark.parametrize("surface", AGENTS)
def test_every_example_of_a_workflow_with_every_field_set_passes(
    bench: Bench, tmp_path: Path, surface: str
) -> None:
    library = Library([BUNDLED, Source("configured", write_every_field(tmp_path / "files"))])
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    ledger.library = library
    agent, tools = AGENTS[surface]
    for forgetful in (False, True):
        goal = f"pelican {forgetful}"
        agent(tools(ledger), "every-field-in-steps", goal, forgetful=forgetful, inputs=SET).walk()
    if surface == "navigation":
        try_everything(bench, library, "every-field-in-steps", **SET)


def test_every_next_action_of_a_reading_tool_passes(bench: Bench) -> None:
    surface = NavigationSurface(bench.ledger())

    def read(tool: str, **arguments: Any) -> dict[str, Any]:
        reply = call_tool(surface, tool, arguments, Call())
        assert isinstance(reply, Reply)
        assert not reply.is_error, (tool, arguments, reply.text)
        return json.loads(reply.text) if reply.text.startswith("{") else {}

    waiting = [read("get_activities"), read("get_skills"), read("list_skills")]
    followed = 0
    while waiting:
        for action in next_actions(waiting.pop()):
            if any(str(value).startswith("<") for value in action["parameters"].values()):
                continue
            answer = read(action["tool"], **action["parameters"])
            followed += 1
            if action["tool"] == "get_activity":
                waiting.append(answer)
    assert followed > 10


def next_actions(value: Any) -> list[dict[str, Any]]:
    """Return every `next_action` in an answer."""
    if isinstance(value, list):
        return [action for member in value for action in next_actions(member)]
    if not isinstance(value, dict):
        return []
    own = [value["next_action"]] if "next_action" in value else []
    return [*own, *(action for member in value.values() for action in next_actions(member))]


def test_a_template_shows_every_parameter_as_a_placeholder(bench: Bench) -> None:
    surface = ExecutionSurface(bench.ledger())
    for name, tool in surface.tools.items():
        reply = call_tool(surface, name, {"noSuchParameter": 1}, Call())
        assert isinstance(reply, Reply)
        template = json.loads(reply.text)["details"]["correctTemplate"]
        properties: Any = tool.argument_schema()["properties"]
        assert set(template) == set(properties)
        assert all(value.startswith("<") and value.endswith(">") for value in template.values()), template
