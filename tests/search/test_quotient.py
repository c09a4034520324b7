"""Nodes that the search takes for alike: leaving all but one of them out loses nothing."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from tools.search.adapter import Setting
from tools.search.explore import MAIN, Figures, Frontier, explore
from tools.search.quotient import Quotient, is_plain, whole_key
from tools.search.workflows import KINDS, GateData, WorkflowData, workflow_of

SAMPLE = [
    ("two", "while-plain+optional-gate"),
    ("one", "each+confirm"),
    ("two", "checked+each-plain"),
    ("one", "away+nested"),
    ("one", "approvers+contract"),
    ("two", "conditional+value"),
    ("one", "setter+confirm"),
    ("two", "optional-setter+waiting"),
]
SETTINGS = [
    *MAIN,
    Setting("execution", "user", "strict", "never-stop"),
    Setting("session", "client", "advisory"),
    Setting("gated", "auto", "strict", "stop"),
]


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda it: f"{it.surface} {it.enforcement} {it.mode}")
@pytest.mark.parametrize(("shape", "kinds"), SAMPLE)
def test_a_reduced_search_reaches_all_that_a_whole_one_does(shape: str, kinds: str, setting: Setting) -> None:
    data = workflow_of(kinds.split("+"), shape)
    reduced, whole = (_reached(data, setting, Frontier(key)) for key in (Quotient(data).key, whole_key))
    assert reduced == whole


def _reached(data: WorkflowData, setting: Setting, frontier: Frontier) -> set[Hashable]:
    """Return all that a few commands and one write reach, as the reduced search tells it apart."""
    figures, depth = Figures(), 3 if setting in MAIN else 2
    assert explore(data, setting, figures, depth=depth, writes=1, most=100_000, frontier=frontier)
    assert not figures.violations
    nodes = [node for alike in frontier.found.values() for node in alike]
    return {Quotient(data).key(node.position, node.seen) for node in nodes}


def test_only_gates_whose_options_do_the_same_are_plain() -> None:
    gates = {kind: item for kind, item in KINDS.items() if isinstance(item, GateData)}
    assert {kind for kind, gate in gates.items() if is_plain(gate)} == {"optional-gate", "conditional"}
