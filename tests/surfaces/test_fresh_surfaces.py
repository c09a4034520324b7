"""Files written by hand, as other people write them, brought to the real surfaces."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.server import INITIALIZE, Server

pytestmark = pytest.mark.slow

BARE = """id: bare
version: 1.0.0
title: Bare
initialActivity: one
activities[1]:
  - id: one
    version: 1.0.0
    name: One
    steps[1]:
      - id: first
        name: Count the surfaces
"""


def test_a_step_of_an_activity_needs_only_its_id_and_name(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "bare.toon").write_text(BARE)
    with Server(tmp_path / "data", "--workflows", str(flows)) as server:
        here = server.call("start_workflow", workflowId="bare")
        assert here["pending"]["prompt"] == "Count the surfaces"
        assert here["_text"].startswith("Bare\n")
        assert server.ack(here, "three")["isComplete"]


EACH = """{"id": "team.each", "name": "Each", "description": "D", "version": "1.0.0", "steps": [
  {"id": "all", "type": "loop", "title": "All",
   "body": [{"id": "see", "title": "See {{one}}", "prompt": "Look."}],
   "loop": {"type": "forEach", "items": "list", "itemVar": "one", "maxIterations": 3}}]}"""


def test_lookup_works_the_variables_into_a_title_as_the_other_surfaces_do(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "each.json").write_text(EACH)
    with Server(tmp_path / "data", "--workflows", str(flows)) as server:
        title = server.call("start_workflow", workflowId="team.each", context={"list": ["a"]})["pending"][
            "title"
        ]
    with Server(tmp_path / "data", "--workflows", str(flows), "--surface", "lookup") as server:
        server.request("initialize", {**INITIALIZE, "protocolVersion": "2024-11-05"})
        asked = {"workflowId": "team.each", "completedSteps": [], "context": {"list": ["a"]}}
        answer = server.request("workflow_next", asked)
    assert answer["result"]["step"]["title"] == title == "See a"


def test_a_gated_workflow_without_resources_says_that_it_has_none(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "bare.toon").write_text(BARE)
    with Server(tmp_path / "data", "--workflows", str(flows), "--surface", "gated") as server:
        started = msgspec.json.decode(server.call("start_session", workflow_id="bare")["_text"])
        token = started["session_token"]
        assert (
            server.call("get_resource", session_token=token, resource_index="00")["next"]
            == "Use one of: none."
        )
