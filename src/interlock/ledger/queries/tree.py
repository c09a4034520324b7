"""A run's branches as a graph: what led to each node, where work forked and why, which tip is preferred."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from interlock.core.definition.workflow import Step, walk
from interlock.core.run import events as e
from interlock.core.run.channels import labels
from interlock.core.run.keys import item_of
from interlock.core.run.outcomes import PendingLine, pending_line
from interlock.ledger.log.projection import state_of
from interlock.ledger.log.records import AdvanceRecorded, Cause, LogEntry, NodeCreated
from interlock.ledger.queries.status import Shown, step_label, tips
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.whole_session import WholeSession
from interlock.store.protocol import NodeKind, NodeRow, RunRow

NOTHING = PendingLine("nothing", "", "")
ABANDONED = PendingLine("nothing", "", "abandoned")


class TreeNode(Shown, frozen=True):
    """A node as people see it. `pending` is what a tip waits for; `blocked` counts attempts that failed.

    `diverged` are the reasons for which the agent left the instructions. A `probe` only tried a capability.
    """

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
    diverged: tuple[str, ...] = ()
    probe: bool = False


class Tree(Shown, frozen=True):
    """One run: its nodes in the order in which they were made."""

    run_id: str
    workflow_id: str
    status: str
    tip: int
    forks: int
    nodes: tuple[TreeNode, ...]


def trees_of(reading: WholeSession) -> list[Tree]:
    """Return the graphs of all runs of a session."""
    history = _History(reading)
    return [history.tree(run) for run in reading.runs]


class _History:
    """What the log says about each node of a session: how it was made, and what was tried at it."""

    def __init__(self, reading: WholeSession) -> None:
        self._reading = reading
        self._events: dict[int, list[LogEntry]] = defaultdict(list)
        self._causes: dict[int, Cause] = {}
        self._blocked: Counter[int] = Counter()
        for row in reading.log:
            if row.run is None:
                continue
            match row.event:
                case NodeCreated() as created:
                    self._causes[created.node] = created.cause
                case AdvanceRecorded(outcome="blocked") as attempt:
                    self._blocked[attempt.node] += 1
                case event if row.node is not None:
                    self._events[row.node].append(event)

    def tree(self, run: RunRow) -> Tree:
        """Return the graph of a run."""
        reading, tip = self._reading, tip_of(self._reading.session, run)
        ends = {row.node for row in tips(reading.nodes(run))}
        activities = reading.plan(run).workflow.activities
        items = (item for activity in activities for item in walk(activity.items))
        probes = {item.id for item in items if isinstance(item, Step) and item.probes is not None}
        nodes = tuple(
            self._node(row, run, tip, probes, is_tip=row.node in ends) for row in reading.nodes(run)
        )
        if run.status == "abandoned":
            nodes = tuple(replace(node, pending=ABANDONED) for node in nodes)
        forks = sum(node.cause == "non_tip_advance" for node in nodes)
        return Tree(run.run_id, run.workflow_id, run.status, tip, forks, nodes)

    def _node(self, row: NodeRow, run: RunRow, preferred: int, probes: set[str], *, is_tip: bool) -> TreeNode:
        """Return a node as people see it; `preferred` is the preferred tip of its run."""
        reading, state = self._reading, state_of(row)
        scope = reading.plan(run).scope(state.variables)
        keys = [event.key for event in self._events[row.node] if isinstance(event, e.StepCompleted)]
        return TreeNode(
            node=row.node,
            parent=row.parent,
            kind=row.kind,
            cause=self._causes.get(row.node, "advanced"),
            label=label_of(self._events[row.node]) if row.kind == "step" else "notes",
            at=row.created_at,
            tip=is_tip,
            preferred=is_tip and row.node == preferred,
            blocked=self._blocked[row.node],
            pending=pending_line(reading.awaited(run, state), scope) if is_tip else NOTHING,
            diverged=tuple(
                event.reason for event in self._events[row.node] if isinstance(event, e.DivergenceRecorded)
            ),
            probe=bool(keys) and {item_of(key) for key in keys} <= probes,
        )


def label_of(events: Iterable[LogEntry]) -> str:
    """Say in a few words what led to a node: steps and decisions, else the first other event."""
    done: dict[str, None] = {}  # in order, each once
    other = ""
    for event in events:
        match event:
            case e.StepCompleted():
                done[step_label(event.key)] = None
            case e.GateResolved(option=option, how="chosen") if option:
                done[f"{event.gate}: {option} ({', '.join(labels(event.channel))})"] = None
            case e.GateResolved():
                chosen = f": {event.option}" if event.option else ""
                done[f"{event.gate}{chosen} ({event.how.replace('_', ' ')})"] = None
            case e.PreferencesChanged():
                done[f"mode: {event.effective.autonomy}"] = None
            case _:
                other = other or _other_label(event)
    return ", ".join(done) or other or "noted"


def _other_label(event: LogEntry) -> str:
    match event:
        case e.RunStarted():
            return "started"
        case e.ActivityEntered():
            return f"entered {event.activity}"
        case e.QuestionShown():
            return f"{event.gate}: asked"
        case e.GateResumed():
            return f"{event.gate}: resumed"
        case e.RunCompleted():
            return "completed"
        case e.RunAbandoned():
            return "abandoned"
        case e.ContextSet():
            return "variables set"
        case _:
            return ""


def children_of(nodes: Iterable[TreeNode]) -> Mapping[int | None, list[TreeNode]]:
    """Group nodes by their parent, for drawing."""
    children: dict[int | None, list[TreeNode]] = defaultdict(list)
    for node in nodes:
        children[node.parent].append(node)
    return children
