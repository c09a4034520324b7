"""An honest agent comes to the end on every surface, and its log is right by the second oracle."""

from __future__ import annotations

from itertools import islice

import pytest

from support.proof import FULL, SEED, line
from tools.search.adapter import Setting
from tools.search.explore import MAIN, all_workflows
from tools.search.honest import walk_all
from tools.search.workflows import KINDS, workflow_of

SINGLE = [workflow_of([kind]) for kind in KINDS]
WORKFLOWS = 3000 if FULL else 300

each_surface = pytest.mark.parametrize("setting", MAIN, ids=lambda setting: setting.surface)


@each_surface
def test_every_kind_of_item_can_be_done(setting: Setting) -> None:
    assert [walk.data.name for walk in walk_all(SINGLE, [setting], 60).stuck] == []


@each_surface
def test_an_honest_log_is_right(setting: Setting) -> None:
    assert [walk.violations for walk in walk_all(SINGLE, [setting], 60).suspected] == []


@pytest.mark.slow
@pytest.mark.proof
@each_surface
def test_honest_agents_come_to_the_end(setting: Setting) -> None:
    walked = walk_all(islice(all_workflows(SEED), WORKFLOWS), [setting], 600)
    stuck = [(walk.data.name, walk.refused) for walk in walked.stuck]
    print(line(f"honest agents on {setting.surface}", walks=walked.walks, stuck=len(stuck)))
    assert stuck == []
