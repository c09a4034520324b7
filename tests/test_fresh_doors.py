"""Files written by hand, as other people write them, brought to the real doors."""

from __future__ import annotations

from pathlib import Path

import pytest

from server import Server

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
        name: Count the doors
"""


def test_a_step_of_an_activity_needs_only_its_id_and_name(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "bare.toon").write_text(BARE)
    with Server(tmp_path / "data", "--workflows", str(flows)) as server:
        here = server.call("start_workflow", workflowId="bare")
        assert here["pending"]["prompt"] == "Count the doors"
        assert here["_text"].startswith("Bare\n")
        assert server.ack(here, "three")["isComplete"]
