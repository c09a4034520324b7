"""Every workflow walks to its end with an agent that only follows `availableActions`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus import CORPUS
from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources import Source
from interlock.ledger.keyring import Keys
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.store.sqlite import open_store
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.surface import Call, Reply, call_tool
from navigator import Navigator

NOTES = f"test of POST /auth/login: 401\n# Impact\n{'x' * 300}\n# Timeline\n# Factors\n# Actions\n"
FOLDERS = [None, *(CORPUS / name for name in ("activities", "steps", "steps-v1"))]


def door(tmp_path: Path, folder: Path | None) -> NavigationSurface:
    sources = [BUNDLED] if folder is None else [BUNDLED, Source("configured", folder)]
    return NavigationSurface(Ledger(open_store(tmp_path), Keys(tmp_path), Library(sources), Settings()))


def caller(surface: NavigationSurface) -> Any:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        reply = call_tool(surface, tool, arguments, Call())
        assert isinstance(reply, Reply)
        answer: dict[str, Any] = json.loads(reply.text)
        return answer

    return call


def cases() -> list[tuple[Path | None, str]]:
    found = []
    for folder in FOLDERS:
        if folder is not None and not folder.is_dir():
            continue
        library = Library([BUNDLED] if folder is None else [Source("configured", folder)])
        found += [(folder, entry.id) for entry in library.listing().entries]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "workflow_id"), cases(), ids=lambda one: getattr(one, "name", str(one)))
def test_a_workflow_walks_to_its_end(tmp_path: Path, folder: Path | None, workflow_id: str) -> None:
    agent = Navigator(caller(door(tmp_path, folder)), NOTES)
    last = agent.walk(workflow_id)
    assert last["availableActions"] == {"required": [], "optional": [], "blocked": []}
    assert len(agent.taken) > 1
