"""Laws of the lanes that a tree is drawn in, for any tree."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from interlock.console.pages.lanes import LaneTree, in_lanes, path_to
from interlock.ledger.queries.tree import Tree, TreeNode


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Return a tree: every node but the first has an earlier step as its parent."""
    kinds = draw(st.lists(st.sampled_from(["step", "step", "note"]), max_size=20))
    nodes = [TreeNode(0, None, "step", "started", "started", 0, False, False)]
    for number, kind in enumerate(kinds, 1):
        steps = [node.node for node in nodes if node.kind == "step"]
        parent = draw(st.sampled_from(steps))
        nodes.append(TreeNode(number, parent, kind, "advanced", "", number, False, False))
    tip = draw(st.sampled_from([node.node for node in nodes if node.kind == "step"]))
    return Tree("run", "test.flow", "in_progress", tip, 0, tuple(nodes))


def lanes(tree: LaneTree) -> dict[int, int]:
    return {each.node.node: each.lane for each in tree.nodes}


@given(trees())
def test_every_node_has_one_lane_and_no_lane_is_empty(tree: Tree) -> None:
    drawn = in_lanes(tree)
    assert [each.node for each in drawn.nodes] == list(tree.nodes)
    assert {each.lane for each in drawn.nodes} <= set(range(drawn.lanes))
    assert drawn.lanes == 1 or {each.lane for each in drawn.nodes} == set(range(drawn.lanes))


@given(trees())
def test_the_first_lane_is_the_branch_to_the_preferred_tip(tree: Tree) -> None:
    lane = lanes(in_lanes(tree))
    steps = [node for node in tree.nodes if node.kind == "step"]
    assert {node.node for node in steps if lane[node.node] == 0} == path_to(tree.nodes, tree.tip)


@given(trees())
def test_at_most_one_step_stays_in_its_parents_lane(tree: Tree) -> None:
    lane = lanes(in_lanes(tree))
    staying = defaultdict[int, int](int)
    for node in tree.nodes:
        if node.kind == "step" and node.parent is not None and lane[node.node] == lane[node.parent]:
            staying[node.parent] += 1
    assert all(count == 1 for count in staying.values())


@given(trees())
def test_notes_are_drawn_beside_the_node_that_they_hang_on(tree: Tree) -> None:
    lane = lanes(in_lanes(tree))
    for node in tree.nodes:
        if node.kind != "step" and node.parent is not None:
            assert lane[node.node] == lane[node.parent]


@given(trees())
def test_every_node_is_shown_by_the_branch_that_it_names(tree: Tree) -> None:
    steps = [node for node in tree.nodes if node.kind == "step"]
    leaves = {node.node for node in steps} - {node.parent for node in steps if node.node != tree.tip}
    for each in in_lanes(tree).nodes:
        shown = each.node.node if each.node.kind == "step" else each.node.parent
        assert shown in path_to(tree.nodes, each.branch)
        assert each.branch == tree.tip or each.branch in leaves
