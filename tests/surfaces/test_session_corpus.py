"""Real activity folders, and the bundled ones, walked to their end by scripted agents on three surfaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.sources.sources import Source
from support.authored import write
from support.corpus import needs_corpus
from support.harness import Bench, compile_cache
from support.paths import CORPUS
from support.session_agents import QUICK, gated, session
from support.walkers import ExecutionWalker, GatedWalker, SessionWalker

pytestmark = pytest.mark.slow

ACTIVITIES = CORPUS / "activities"
FOLDERS = ["cicd-pipeline-security-audit", "meta", "prism", "prism-evaluate", "work-packages"]
OURS = ["meta", "work-package", "work-packages"]
STEPS = ["wr.bug_investigation", "wr.code_review", "wr.feature", "wr.release", "wr.research", "wr.small_task"]

BORROWER = {
    "lender/workflow.yaml": "id: lender\nversion: 1.0.0\ntitle: Lender\ninitialActivity: one\n",
    "lender/activities/01-one.yaml": "id: one\nversion: 1.0.0\nname: One\n"
    "steps: [{id: a, name: A, description: Do a., skill: lent}]\n"
    "transitions: [{to: two, isDefault: true}]\n",
    "lender/activities/02-two.yaml": "id: two\nversion: 1.0.0\nname: Two\n"
    "steps: [{id: b, name: B, description: Do b.}]\n",
    "lender/skills/00-lent.yaml": "id: lent\nversion: 1.0.0\ncapability: Lend\n",
    "borrower/workflow.yaml": "id: borrower\nversion: 1.0.0\ntitle: Borrower\ninitialActivity: own\n"
    "activities: [lender/01-one.yaml, lender/activities/02-two.yaml]\n",
    "borrower/activities/00-own.yaml": "id: own\nversion: 1.0.0\nname: Own\n"
    "steps: [{id: c, name: C, description: Do c.}]\ntransitions: [{to: one, isDefault: true}]\n",
}


def library(folder: Path | None) -> Library:
    sources = [BUNDLED, *([Source("configured", folder)] if folder else [])]
    return Library(sources, compile_cache())


def walk_on_three_surfaces(bench: Bench, name: str, folder: Path | None) -> SessionWalker:
    """Walk the workflow to its end on each surface; return the walker of the session surface."""
    real_library = library(folder)
    loaded = real_library.load(name)
    assert isinstance(loaded, Loaded), loaded
    by_session, by_gated, by_execution = session(bench), gated(bench), bench.agent(terms=QUICK)
    for agent in (by_session, by_gated, by_execution):
        agent.ledger.library = real_library
    session_walker = SessionWalker(by_session, loaded.workflow)
    others = (GatedWalker(by_gated, loaded.workflow), ExecutionWalker(by_execution, loaded.workflow))
    for walker in (session_walker, *others):
        ended = walker.run()
        assert ended.get("isComplete") or ended["status"] == "completed"
    return session_walker


@needs_corpus
@pytest.mark.parametrize("name", FOLDERS)
def test_a_real_folder_is_walked_to_its_end_through_three_surfaces(bench: Bench, name: str) -> None:
    walk_on_three_surfaces(bench, name, ACTIVITIES)


@pytest.mark.parametrize("name", OURS)
def test_a_bundled_folder_is_walked_to_its_end_with_every_skill_there(bench: Bench, name: str) -> None:
    walker = walk_on_three_surfaces(bench, name, None)
    assert walker.reported == []


@pytest.mark.parametrize("name", STEPS)
def test_a_bundled_step_workflow_is_walked_to_its_end_as_one_activity(bench: Bench, name: str) -> None:
    walk_on_three_surfaces(bench, name, None)


def test_a_folder_that_borrows_activities_is_walked_with_what_they_need(bench: Bench) -> None:
    write(bench.workflows, BORROWER)
    walker = walk_on_three_surfaces(bench, "borrower", bench.workflows)
    assert walker.read["one:a"] == 1
    assert walker.reported == []


@needs_corpus
@pytest.mark.parametrize("name", FOLDERS)
def test_every_skill_and_resource_that_a_folder_names_is_loaded_or_reported(bench: Bench, name: str) -> None:
    real_library = library(ACTIVITIES)
    loaded = real_library.load(name)
    assert isinstance(loaded, Loaded), loaded
    agent = session(bench, QUICK)
    agent.ledger.library = real_library
    agent.call("start_session", agent_id="a", workflow_id=name)
    messages = " ".join(diagnostic.message for diagnostic in loaded.diagnostics)
    activities = loaded.workflow.activities
    refs = {step.skill for activity in activities for step in activity.steps() if step.skill}
    kept = {document.ref for document in loaded.workflow.documents}
    assert all(ref in kept or f"'{ref}'" in messages for ref in refs)
    for document in loaded.workflow.documents:
        if document.kind == "resource":
            assert not agent.tell("get_resource", resource_id=document.ref).error, document.ref
