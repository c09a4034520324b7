"""Tools that say that they do not use the store answer while it cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.core.run.surface_policy import SurfaceName
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.lazy import LazyStore
from interlock.store.protocol import Store, StoreAway
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.registry import build_surface
from interlock.surfaces.tool import call_tool

EVERYTHING = {  # what the tools need; each takes its own part
    "workflowId": "wr.small_task",
    "workflow_id": "meta",
    "activity_id": "resume-workflow",
    "skill_id": "activity-resolution",
    "checkpoint_id": "none",
    "from_activity": "resume-workflow",
    "to_activity": "resume-workflow",
    "index": "00",
    "id": "wr.small_task",
    "mode": "preview",
}


class WithoutStore:
    """What surfaces are built on where the database is away."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.tried = 0

    def ledger(self) -> Ledger:
        return Ledger(LazyStore(self._away), Keys(self._folder), self.library(), Settings())

    def library(self) -> Library:
        return Library([BUNDLED], self._folder / "cache")

    def _away(self) -> Store:
        self.tried += 1
        raise StoreAway("the database is away")


@pytest.mark.parametrize("name", [name for name in get_args(SurfaceName) if name != "lookup"])
def test_a_tool_that_uses_no_store_answers_without_one(tmp_path: Path, name: SurfaceName) -> None:
    backend = WithoutStore(tmp_path)
    surface = build_surface(name, backend)
    free = [tool for tool in surface.tools.values() if not tool.uses_store]
    assert free
    for tool in free:
        taken = {field: EVERYTHING[field] for field in tool.params.__struct_fields__ if field in EVERYTHING}
        assert isinstance(call_tool(surface, tool.name, taken, Call(Client("test"))), Reply), tool.name
        assert backend.tried == 0, tool.name
