"""Only surfaces know the names of tools: below them, a run may be driven through any surface."""

from __future__ import annotations

import pytest

from support.harness import Bench, every_surface
from support.house import modules, named_tools, parse_module, room_of

BELOW = ("core", "authoring", "store", "ledger")

# What is known to name a tool; the list only shrinks.
KNOWN = {
    "interlock.ledger.queries.traces": {"next_activity"},  # where a trace is cut into visits
    "interlock.ledger.tokens.inspect": {"get_skill"},  # the field `skill` is what it was last called for
}


@pytest.fixture
def tools(bench: Bench) -> set[str]:
    return {name for surface in every_surface(bench) for name in surface.tools}


def test_no_room_below_the_surfaces_names_a_tool(tools: set[str]) -> None:
    assert len(tools) > 30
    below = [module for module in modules() if room_of(module.name) in BELOW]
    naming = {module.name: named_tools(module, tools) for module in below}
    assert {name: names for name, names in naming.items() if names} == KNOWN


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("fix = 'start a new run with start_workflow'", {"start_workflow"}),
        ("fix = f'{gate}: answer with respond_checkpoint'", {"respond_checkpoint"}),
        ("NEXT = {'get_activity': 1}", {"get_activity"}),
        ('def run():\n    """Serve start_workflow."""', set()),
        ("start_workflow = 1", set()),
        ("text = 'restart_workflows'", set()),
        ("text = 'discover the sources'", set()),
    ],
)
def test_a_tool_in_a_string_is_recognised(source: str, names: set[str], tools: set[str]) -> None:
    assert named_tools(parse_module("interlock.core.sample", source), tools) == names
