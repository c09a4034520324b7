"""The examples of the authoring guide: what it shows must load as written, and its scenario must fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.authoring.library import Library, Loaded, Source

GUIDE = Path(__file__).parent.parent / "docs" / "authoring.md"
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
    assert load(text, tmp_path).problems == ()


@pytest.mark.parametrize("text", SCENARIOS)
def test_an_example_scenario_names_what_its_workflow_has(text: str, tmp_path: Path) -> None:
    file: dict[str, Any] = yaml.safe_load(text)
    workflow = next(one for one in WORKFLOWS if one.startswith(f"id: {file['workflow']}\n"))
    main = load(workflow, tmp_path).workflow.activities[0]
    steps, gates = {one.id for one in main.steps()}, {one.id for one in main.gates()}
    for scenario in file["scenarios"]:
        assert set(scenario["expect"]["path"]) <= steps | gates
        assert set(scenario["outputs"]) <= steps
        assert set(scenario.get("answers", {})) <= gates
