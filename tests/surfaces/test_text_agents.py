"""Agents that read only the text walk every workflow to its end, also when they lose their memory."""

from __future__ import annotations

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from interlock.ledger.ledger import Ledger
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.navigation import NavigationSurface
from support.corpus import needs_corpus
from support.harness import Bench, compile_cache
from support.paths import CORPUS
from support.text_agents import ExecutionTextAgent, NavigationTextAgent, TextAgent

BUNDLED_IDS = [
    "meta",
    "work-package",
    "work-packages",
    *(
        f"wr.{name}"
        for name in ("bug_investigation", "code_review", "documentation", "feature", "incident_review")
    ),
    *(f"wr.{name}" for name in ("refactoring", "release", "research", "small_task", "test_writing")),
]
FOLDERS = ["cicd-pipeline-security-audit", "meta", "prism", "prism-evaluate", "work-packages"]
SURFACES = ("execution", "navigation")


def ledger(bench: Bench, *sources: Source) -> Ledger:
    """Return a ledger on these workflows."""
    opened = bench.ledger(terms=Terms(min_response_ms=0))
    opened.library = Library([BUNDLED, *sources], compile_cache())
    return opened


def agent(surface: str, on: Ledger, workflow_id: str, goal: str, *, forgetful: bool) -> TextAgent:
    if surface == "execution":
        return ExecutionTextAgent(ExecutionSurface(on), workflow_id, goal, forgetful=forgetful)
    return NavigationTextAgent(NavigationSurface(on), workflow_id, goal, forgetful=forgetful)


@pytest.mark.parametrize("forgetful", [False, True], ids=["remembers", "forgets"])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("workflow_id", ["wr.small_task", "wr.release", "work-packages"])
def test_an_agent_that_reads_only_the_text_finishes(
    bench: Bench, workflow_id: str, surface: str, forgetful: bool
) -> None:
    goal = f"{workflow_id} pelican"
    agent(surface, ledger(bench), workflow_id, goal, forgetful=forgetful).walk()


@pytest.mark.slow
@pytest.mark.parametrize("forgetful", [False, True], ids=["remembers", "forgets"])
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("workflow_id", BUNDLED_IDS)
def test_every_bundled_workflow_is_finished_by_its_text(
    bench: Bench, workflow_id: str, surface: str, forgetful: bool
) -> None:
    agent(surface, ledger(bench), workflow_id, f"{workflow_id} pelican", forgetful=forgetful).walk()


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_activity_folder_of_others_is_finished_by_its_text(
    bench: Bench, folder: str, surface: str
) -> None:
    source = Source("configured", CORPUS / "activities" / folder)
    on = ledger(bench, source)
    for forgetful in (False, True):
        agent(surface, on, folder, f"{folder} pelican {forgetful}", forgetful=forgetful).walk()
