"""A workflow that another source hides is named wherever workflows are listed (rule 38a)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from interlock.authoring.library import BUNDLED, Library, Source
from interlock.core.run.commands import Terms
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import Surface
from support.authored import ASK, head
from support.cli_process import interlock
from support.harness import Agent, Bench


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory whose own workflow hides one of a cloned repository."""
    for folder, name in (("sources/team", "Theirs"), ("workflows", "Mine")):
        path = tmp_path / "data" / folder
        path.mkdir(parents=True)
        (path / f"{name.lower()}.json").write_text(json.dumps(head(ASK, name=name)))
    return tmp_path / "data"


MESSAGE = "'t.w' of git team (theirs.json) is shadowed by user (mine.json)"


def test_the_list_names_both_sources(data: Path) -> None:
    ran = interlock(data, "list", "--json")
    assert ran.json["shadowed"] == [
        {
            "workflowId": "t.w",
            "source": "git team",
            "file": "theirs.json",
            "shadowedBy": {"source": "user", "file": "mine.json"},
        }
    ]
    assert [entry["name"] for entry in ran.json["workflows"] if entry["workflowId"] == "t.w"] == ["Mine"]
    assert MESSAGE in interlock(data, "list").err


def test_validation_and_the_doctor_name_them(data: Path) -> None:
    for folder in ("sources/team", "workflows"):
        ran = interlock(data, "validate", "--json", str(data / folder))
        assert [(problem["code"], problem["message"]) for problem in ran.json["problems"]] == [
            ("IL407", MESSAGE)
        ]
        assert ran.code == 0
    checks = interlock(data, "doctor", "--json").json["checks"]
    assert [check["detail"] for check in checks if check["name"] == "workflows"] == [MESSAGE]


def test_a_bundled_workflow_is_not_shadowed_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However its path is spelled."""
    bundled = BUNDLED.path
    (tmp_path / "link").symlink_to(bundled)
    monkeypatch.chdir(bundled.parent)
    spelled = [
        bundled,
        Path(bundled.name, "small_task.yaml"),
        Path(bundled.name, "meta"),
        tmp_path / "link" / "meta",
    ]
    ran = interlock(tmp_path / "data", "validate", "--json", *map(str, spelled))
    assert (ran.code, ran.json["problems"]) == (0, [])


def test_a_bundled_workflow_says_which_own_one_hides_it(tmp_path: Path) -> None:
    shutil.copytree(BUNDLED.path / "work-packages", tmp_path / "data" / "workflows" / "mine")
    ran = interlock(tmp_path / "data", "validate", "--json", str(BUNDLED.path / "work-packages"))
    hidden = [problem["message"] for problem in ran.json["problems"] if problem["code"] == "IL407"]
    assert hidden == ["'work-packages' of bundled (work-packages) is shadowed by user (mine)"]


def test_validation_of_another_folder_says_what_it_would_hide(data: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "w.yaml").write_text(json.dumps(head(ASK)))
    ran = interlock(data, "validate", "--json", str(tmp_path / "new"))
    assert {problem["code"] for problem in ran.json["problems"]} == {"IL407"}
    assert any(
        "is shadowed by --workflows new (w.yaml)" in problem["message"] for problem in ran.json["problems"]
    )


def test_agents_are_told(data: Path, bench: Bench) -> None:
    ledger = bench.ledger(terms=Terms())
    ledger.library = Library(
        [Source("git", data / "sources/team", "team"), Source("user", data / "workflows")]
    )
    surfaces: list[tuple[Surface, str]] = [
        (ExecutionSurface(ledger), "list_workflows"),
        (SessionSurface(ledger), "list_workflows"),
        (GatedSurface(ledger), "list_workflows"),
        (NavigationSurface(ledger), "list_workflows"),
        (LookupSurface(ledger.library), "workflow_list"),
    ]
    for surface, tool in surfaces:
        agent = Agent(surface)
        agent.call(tool)
        assert MESSAGE in agent.text
        assert str(data) not in agent.text
