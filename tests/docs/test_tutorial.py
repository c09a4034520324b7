"""The tutorial, run from its first block to its last in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.documented import NOT_RUN, ROOT, World, blocks, sayings

TUTORIAL = ROOT / "docs" / "tutorial.md"


@pytest.mark.slow
def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    world = World(tmp_path)
    for block in blocks(TUTORIAL):
        world.perform(block)


def test_the_tutorial_leaves_nothing_out() -> None:
    """All its blocks are run, and it shows what it promises."""
    found = list(blocks(TUTORIAL))
    assert not [item for item in found if item.name == NOT_RUN]
    lines = [said.line for item in found if item.language == "console" for said in sayings(item.body)]
    shown = {line.split()[1] for line in lines if line.startswith("interlock ")}
    assert {"init", "validate", "simulate", "test", "inbox", "decide", "tree", "export", "import"} <= shown
