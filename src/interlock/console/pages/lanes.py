"""A tree in lanes, for drawing: the branch to the preferred tip is the first lane, each other a new one."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.ledger.queries.status import Shown
from interlock.ledger.queries.tree import Tree, TreeNode


class LaneNode(Shown, frozen=True):
    """A node and the lane that it is drawn in; `on_path` says that it leads to the branch that is shown.

    `branch` is the tip of the branch that shows the node: the preferred one if it can, else the newest.
    """

    node: TreeNode
    lane: int
    on_path: bool
    branch: int


class LaneTree(Shown, frozen=True):
    """A run's nodes in the order in which they were made, each in its lane."""

    run_id: str
    workflow_id: str
    status: str
    tip: int
    forks: int
    lanes: int
    nodes: tuple[LaneNode, ...]


def in_lanes(tree: Tree, shown: int | None = None) -> LaneTree:
    """Give each node a lane; a node stays in its parent's lane unless a sibling has taken it.

    Notes never take a lane from a step: they are drawn in the lane of the node that they hang on.
    """
    preferred = path_to(tree.nodes, tree.tip)
    on_path = preferred if shown is None else path_to(tree.nodes, shown)
    lane_of: dict[int, int] = {}
    continued: set[int] = set()
    lanes = 1
    for node in tree.nodes:
        parent = node.parent
        if node.node in preferred or parent is None or parent not in lane_of:
            lane = 0
        elif node.kind != "step":
            lane = lane_of[parent]
        elif lane_of[parent] != 0 and parent not in continued:
            lane = lane_of[parent]
            continued.add(parent)
        else:
            lane, lanes = lanes, lanes + 1
        lane_of[node.node] = lane
    branch_of = dict.fromkeys(preferred, tree.tip)
    steps = [node for node in tree.nodes if node.kind == "step"]
    for node in reversed(steps):
        newest = branch_of.setdefault(node.node, node.node)
        if node.parent is not None:
            branch_of.setdefault(node.parent, newest)
    for node in tree.nodes:
        branch_of.setdefault(node.node, branch_of.get(node.parent or 0, tree.tip))
    return LaneTree(
        run_id=tree.run_id,
        workflow_id=tree.workflow_id,
        status=tree.status,
        tip=tree.tip,
        forks=tree.forks,
        lanes=lanes,
        nodes=tuple(
            LaneNode(node, lane_of[node.node], node.node in on_path, branch_of[node.node])
            for node in tree.nodes
        ),
    )


def path_to(nodes: Sequence[TreeNode], tip: int) -> set[int]:
    """Return the nodes from the root to a node."""
    parents = {node.node: node.parent for node in nodes}
    path: set[int] = set()
    current: int | None = tip
    while current is not None and current in parents and current not in path:
        path.add(current)
        current = parents[current]
    return path
