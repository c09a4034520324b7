"""Every workflow walks to its end with an agent that only follows `availableActions`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from interlock.surfaces.call import Call, Reply
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.tool import call_tool
from support.corpus import needs_corpus
from support.harness import compile_cache
from support.navigator import Navigator
from support.paths import CORPUS

NOTES = f"test of POST /auth/login: 401\n# Impact\n{'x' * 300}\n# Timeline\n# Factors\n# Actions\n"
FOLDERS = [CORPUS / name for name in ("activities", "steps", "steps-v1")]


def client(tmp_path: Path, folder: Path | None) -> NavigationSurface:
    sources = [BUNDLED] if folder is None else [BUNDLED, Source("configured", folder)]
    return NavigationSurface(
        Ledger(open_store(tmp_path), Keys(tmp_path), Library(sources, compile_cache()), Settings())
    )


def caller(surface: NavigationSurface) -> Any:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        reply = call_tool(surface, tool, arguments, Call())
        assert isinstance(reply, Reply)
        answer: dict[str, Any] = json.loads(reply.text)
        return answer

    return call


def cases() -> Iterator[Any]:
    """Every bundled workflow, and every one of the corpus or one skipped case per folder of it."""
    for entry in Library([BUNDLED], compile_cache()).listing().entries:
        yield pytest.param(None, entry.id, id=entry.id)
    for folder in FOLDERS:
        if not folder.is_dir():
            yield pytest.param(folder, "", id=folder.name, marks=needs_corpus)
            continue
        for entry in Library([Source("configured", folder)], compile_cache()).listing().entries:
            yield pytest.param(folder, entry.id, id=f"{folder.name}-{entry.id}")


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "workflow_id"), list(cases()))
def test_a_workflow_walks_to_its_end(tmp_path: Path, folder: Path | None, workflow_id: str) -> None:
    agent = Navigator(caller(client(tmp_path, folder)), NOTES)
    last = agent.walk(workflow_id)
    assert (last["availableActions"]["required"], last["availableActions"]["blocked"]) == ([], [])
    assert len(agent.taken) > 1
