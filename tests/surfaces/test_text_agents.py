"""Agents that read only the text walk every workflow to its end, also if they lose their memory (rule 41)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from support.corpus import needs_corpus
from support.harness import Bench, compile_cache
from support.paths import CORPUS
from support.text_agents import AGENTS

FOLDERS = [CORPUS / name for name in ("activities", "steps", "steps-v1")]


def mounted(folder: Path) -> Source:
    """Return a folder of others, whose reserved ids get a namespace of ours."""
    return Source("configured", folder, "mounted")


def cases() -> Iterator[Any]:
    """Yield every bundled workflow, and every one of the corpus or one skipped case per folder of it."""
    for entry in Library([BUNDLED], compile_cache()).listing().entries:
        yield pytest.param(None, entry.id, id=entry.id)
    for folder in FOLDERS:
        if not folder.is_dir():
            yield pytest.param(folder, "", id=folder.name, marks=needs_corpus)
            continue
        for entry in Library([mounted(folder)], compile_cache()).listing().entries:
            yield pytest.param(folder, entry.id, id=f"{folder.name}-{entry.id}")


def walk_twice(bench: Bench, surface: str, workflow_id: str, folder: Path | None = None) -> None:
    """Walk a workflow with an agent that remembers, then with one that finds its own work by its goal."""
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    ledger.library = Library([BUNDLED, *([mounted(folder)] if folder else [])], compile_cache())
    agent, tools = AGENTS[surface]
    agent(tools(ledger), workflow_id, "walrus").walk()
    agent(tools(ledger), workflow_id, "pelican", forgetful=True).walk()


@pytest.mark.parametrize("surface", AGENTS)
@pytest.mark.parametrize("workflow_id", ["wr.small_task", "wr.release", "work-packages"])
def test_an_agent_that_reads_only_the_text_finishes(bench: Bench, workflow_id: str, surface: str) -> None:
    walk_twice(bench, surface, workflow_id)


@pytest.mark.slow
@pytest.mark.parametrize("surface", AGENTS)
@pytest.mark.parametrize(("folder", "workflow_id"), list(cases()))
def test_every_workflow_is_finished_by_its_text(
    bench: Bench, folder: Path | None, workflow_id: str, surface: str
) -> None:
    walk_twice(bench, surface, workflow_id, folder)
