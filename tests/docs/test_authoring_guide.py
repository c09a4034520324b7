"""The examples of the authoring guide: what it shows must load as written, and its scenarios must pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from interlock.authoring.library import Library, Loaded, Source
from interlock.authoring.simulate.findings import simulate
from interlock.authoring.simulate.scenarios import run_file
from support.paths import DOCS

GUIDE = DOCS / "authoring.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
WORKFLOWS = [block for block in BLOCKS if block.startswith("id:")]
SCENARIOS = [block for block in BLOCKS if block.startswith("workflow:")]


def load(text: str, folder: Path) -> Loaded:
    (folder / "example.yaml").write_text(text, "utf-8")
    found = Library([Source("user", folder)]).load(yaml.safe_load(text)["id"])
    assert isinstance(found, Loaded), found
    return found


def test_the_guide_shows_workflows_and_a_scenario() -> None:
    assert (len(WORKFLOWS), len(SCENARIOS), len(BLOCKS)) == (2, 1, 3)


@pytest.mark.parametrize("text", WORKFLOWS)
def test_an_example_loads_without_a_warning(text: str, tmp_path: Path) -> None:
    assert load(text, tmp_path).diagnostics == ()


@pytest.mark.parametrize("text", WORKFLOWS)
def test_an_example_is_sound(text: str, tmp_path: Path) -> None:
    assert simulate(load(text, tmp_path).workflow).sound


@pytest.mark.parametrize("text", SCENARIOS)
def test_the_example_scenarios_pass(text: str, tmp_path: Path) -> None:
    named = yaml.safe_load(text)["workflow"]
    load(next(workflow for workflow in WORKFLOWS if workflow.startswith(f"id: {named}\n")), tmp_path)
    (tmp_path / "example.scenario.yaml").write_text(text, "utf-8")
    tested = run_file(tmp_path / "example.scenario.yaml", Library([]))
    assert (tested.diagnostics, [outcome.differences for outcome in tested.outcomes]) == ((), [(), ()])
