"""A run's branches as a graph: what led to each node, where work forked and why, which tip is preferred."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from interlock.core.definition.program import Plan
from interlock.core.engine.settle import awaited
from interlock.core.run import events as e
from interlock.core.run.surface_policy import EXECUTION
from interlock.ledger.log.chain import logged
from interlock.ledger.log.projection import state_of
from interlock.ledger.log.records import AdvanceRecorded, Cause, LogEntry, NodeCreated
from interlock.ledger.queries.status import PendingLine, Shown, pending_line, placed
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import NodeKind, NodeRow, Reader, RunRow, SessionRow

NOTHING = PendingLine("nothing", "", "")


class TreeNode(Shown, frozen=True):
    """A node as people see it. `pending` is what a tip waits for; `blocked` counts attempts that failed."""

    node: int
    parent: int | None
    kind: NodeKind
    cause: Cause
    label: str
    at: int
    tip: bool
    preferred: bool
    blocked: int = 0
    pending: PendingLine = NOTHING


class Tree(Shown, frozen=True):
    """One run: its nodes in the order in which they came to be."""

    run_id: str
    workflow_id: str
    status: str
    tip: int
    forks: int
    nodes: tuple[TreeNode, ...]


def trees_of(positions: Positions, session: SessionRow, sound: int | None = None) -> list[Tree]:
    """Read the graphs of all runs from the log, or from the first `sound` events of a damaged one."""
    with positions.store.reading() as reader:
        return [_tree(reader, positions, session, run, sound) for run in reader.runs(session.session_id)]


def _tree(reader: Reader, positions: Positions, session: SessionRow, run: RunRow, sound: int | None) -> Tree:
    told, tip = _told(reader, run, sound), tip_of(session, run)
    nodes_of_run = reader.nodes(run.session_id, run.run)
    rows = [row for row in nodes_of_run if sound is None or row.event_index < sound]
    parents = {row.parent for row in rows if row.kind == "step"}
    plan = positions.pins.plan(reader.content, run.workflow_hash)
    nodes = tuple(_node(row, told, tip, plan, row.node not in parents) for row in rows)
    forks = sum(node.cause == "non_tip_advance" for node in nodes)
    return Tree(run.run_id, run.workflow_id, run.status, tip, forks, nodes)


class _Told:
    """What the log says about each node."""

    def __init__(self) -> None:
        self.events: dict[int, list[LogEntry]] = defaultdict(list)
        self.causes: dict[int, Cause] = {}
        self.blocked: Counter[int] = Counter()


def _told(reader: Reader, run: RunRow, sound: int | None) -> _Told:
    told = _Told()
    for row in logged(reader.commits(run.session_id), end=sound):
        if row.run != run.run or (sound is not None and row.index >= sound):
            continue
        match row.event:
            case NodeCreated() as made:
                told.causes[made.node] = made.cause
            case AdvanceRecorded(outcome="blocked") as tried:
                told.blocked[tried.node] += 1
            case event if row.node is not None:
                told.events[row.node].append(event)
    return told


def _node(row: NodeRow, told: _Told, preferred: int, plan: Plan, childless: bool) -> TreeNode:
    tip = childless and row.kind == "step"
    return TreeNode(
        node=row.node,
        parent=row.parent,
        kind=row.kind,
        cause=told.causes.get(row.node, "advanced"),
        label=label_of(told.events[row.node]) if row.kind == "step" else "notes",
        at=row.created_at,
        tip=tip,
        preferred=tip and row.node == preferred,
        blocked=told.blocked[row.node],
        pending=pending_line(awaited(plan, state_of(row), EXECUTION)) if tip else NOTHING,
    )


def label_of(events: Iterable[LogEntry]) -> str:
    """What happened on the way to a node, in a few words."""
    told = list(events)
    said = list(dict.fromkeys(_said(told))) or list(_aside(told))[:1]
    return ", ".join(said) or "noted"


def _said(events: Sequence[LogEntry]) -> Iterator[str]:
    for event in events:
        match event:
            case e.StepCompleted():
                yield placed(event.key)
            case e.GateResolved(option=option) if option and event.how == "chosen":
                yield f"{event.gate}: {option} ({event.channel})"
            case e.GateResolved():
                yield f"{event.gate}: {event.option or ''} ({event.how.replace('_', ' ')})".replace(
                    ":  ", " "
                )
            case e.PreferencesChanged():
                yield f"mode: {event.effective.autonomy}"
            case _:
                continue


def _aside(events: Sequence[LogEntry]) -> Iterator[str]:
    """What is worth saying where no step was done and nothing was decided."""
    for event in events:
        match event:
            case e.RunStarted():
                yield "started"
            case e.ActivityEntered():
                yield f"entered {event.activity}"
            case e.GateOpened():
                yield f"{event.gate}: asked"
            case e.GateResumed():
                yield f"{event.gate}: resumed"
            case e.RunCompleted():
                yield "completed"
            case e.ContextSet():
                yield "variables set"
            case _:
                continue


def children_of(nodes: Iterable[TreeNode]) -> Mapping[int | None, list[TreeNode]]:
    """Nodes by their parent, for those who draw."""
    found: dict[int | None, list[TreeNode]] = defaultdict(list)
    for one in nodes:
        found[one.parent].append(one)
    return found
