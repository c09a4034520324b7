"""Gates that named people decide, without an agent: explored by simulate, and played by scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.authoring.library import Library, Loaded
from interlock.authoring.simulate.explore import explore
from interlock.authoring.simulate.scenarios import run_file
from interlock.authoring.sources.paths import source_at
from support.harness import gate, steps, workflow

RULE = {"by": ["ada", "ben", "leads"], "atLeast": 2, "notBy": "starter", "within": "1h"}
BOARD = {**RULE, "then": {"escalate": "board"}}
STOP = {**RULE, "then": {"option": "no"}}


def write(folder: Path, rule: Any, **scenario: Any) -> Path:
    flow = workflow(gate("ship", "yes", "no", decide=rule), *steps("last"), id="test.flow")
    (folder / "flow.json").write_bytes(msgspec.json.encode(flow))
    path = folder / "flow.scenario.json"
    path.write_bytes(msgspec.json.encode({"workflow": "test.flow", "scenarios": [scenario]}))
    return path


def says(name: str, option: str = "yes", *groups: str) -> dict[str, Any]:
    return {"by": name, "option": option, "groups": list(groups)}


@pytest.mark.parametrize(
    ("rule", "approvals", "end"),
    [
        (RULE, [says("ada"), says("ben")], "complete"),
        (RULE, [says("ada"), says("cleo", "yes", "leads")], "complete"),
        (RULE, [says("ada"), says("ada")], "blocked"),
        (RULE, [says("ada"), says("ben", "no")], "blocked"),
        (RULE, [says("ada"), says("fay")], "blocked"),
        (RULE, [says("starter", "yes", "leads"), says("ada")], "blocked"),
        (BOARD, [says("ada"), says("eve", "yes", "board")], "blocked"),
        (BOARD, [says("ada"), {"after": "1h"}, says("eve", "yes", "board")], "complete"),
        (STOP, [says("ada"), {"after": "59m"}], "blocked"),
        (STOP, [says("ada"), {"after": "1h"}], "complete"),
    ],
)
def test_a_scenario_says_who_answers(tmp_path: Path, rule: Any, approvals: Any, end: str) -> None:
    path = write(tmp_path, rule, approvals={"ship": approvals}, expect={"end": end})
    ran = run_file(path, Library([source_at(tmp_path)]))
    assert ran.diagnostics == ()
    assert [outcome.differences for outcome in ran.outcomes] == [()]


@pytest.mark.parametrize("field", ["within", "remind"])
def test_a_time_beyond_all_numbers_is_an_error_of_its_own_file(tmp_path: Path, field: str) -> None:
    """A file of a project must not keep everybody else's workflows from being listed."""
    write(tmp_path, {"by": ["ada"], field: "99999999999d"})
    other = workflow(*steps("last"), id="test.other")
    (tmp_path / "other.json").write_bytes(msgspec.json.encode(other))
    library = Library([source_at(tmp_path)])
    assert isinstance(library.load("test.other"), Loaded)
    failed = library.load("test.flow")
    assert not isinstance(failed, Loaded)


def test_a_plain_answer_is_one_that_the_approvers_agree_on(tmp_path: Path) -> None:
    ran = run_file(write(tmp_path, RULE, answers={"ship": "no"}), Library([source_at(tmp_path)]))
    assert ran.passed


def test_a_scenario_with_a_gate_that_names_nobody_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, RULE, approvals={"last": [says("ada")]})
    assert [each.code for each in run_file(path, Library([source_at(tmp_path)])).diagnostics] == ["IL601"]


def test_every_option_is_explored(tmp_path: Path) -> None:
    write(tmp_path, RULE, answers={})
    loaded = Library([source_at(tmp_path / "flow.json")]).load("test.flow")
    assert isinstance(loaded, Loaded)
    reached = {state.id for state in explore(loaded.workflow).states}
    assert reached >= {"ship", "last"}
