"""What the compiler chose for files of others is listed by `validate`, `show` and `graph`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.authored import write
from support.cli_process import Ran, interlock

pytestmark = pytest.mark.slow

HEAD = "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n"
ACTIVITY = """\
id: a
name: A
steps[2]:
  - id: judge
    name: Judge
    description: Judge it. Set risky.
  - id: repair
    name: Repair
    description: Repair it.
checkpoints[1]:
  - id: ask
    name: Ask
    message: Is it worth it?
    condition:
      type: simple
      variable: risky
      operator: ==
      value: true
    options[1]:
      - id: go
        label: Go
"""
INFERRED = "by its text sets risky"
PLACE = "at the end of the activity"


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    return write(tmp_path / "flows", {"w/workflow.toon": HEAD, "w/activities/00-a.toon": ACTIVITY})


def run(flows: Path, *arguments: str) -> Ran:
    return interlock(flows.parent / "data", *arguments, "--workflows", str(flows))


def test_validate_lists_both_and_does_not_fail(flows: Path) -> None:
    ran = run(flows, "validate", str(flows))
    assert ran.code == 0
    assert "info IL516 the text of 'judge' is taken to set risky" in ran.out
    assert f"no step names the checkpoint 'ask'; it is asked {PLACE}" in ran.out


def test_infos_do_not_fail_a_strict_validation_and_are_notes_in_sarif(flows: Path) -> None:
    declared = HEAD + "variables[1]:\n  - name: risky\n    type: boolean\n"
    without_gate = ACTIVITY.partition("checkpoints")[0]
    write(flows, {"w/workflow.toon": declared, "w/activities/00-a.toon": without_gate})
    assert run(flows, "validate", str(flows), "--strict").code == 0
    results = json.loads(run(flows, "validate", str(flows), "--format", "sarif").out)["runs"][0]["results"]
    assert [(result["ruleId"], result["level"]) for result in results] == [("IL516", "note")]


@pytest.mark.parametrize("command", ["show", "graph"])
def test_show_and_graph_say_it_at_the_item(flows: Path, command: str) -> None:
    out = run(flows, command, "w").out
    assert INFERRED in out
    assert PLACE in out
