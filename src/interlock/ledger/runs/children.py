"""Parents and children (rule 35): a child begins with what its parent passes on, and returns to it.

Both sides are appended in one transaction, so that no crash can separate them.
"""

from __future__ import annotations

from msgspec import Struct

from interlock.core.engine.decide import decide
from interlock.core.run.commands import Command, ReturnChild, StartChild
from interlock.core.run.events import ActivityEntered, ChildStarted, GateResolved
from interlock.core.run.outcomes import Decided
from interlock.core.run.state import RunState
from interlock.core.values import Json, Missing
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.chain import entries_of, logged
from interlock.ledger.log.commit import Commit
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import Changes, Reader, SessionRow

DEEPEST = 16


def passed_on(parent: Position, workflow_id: str) -> dict[str, Json] | None:
    """Return what the parent's activity passes to a child of this workflow; None if it triggers none."""
    activity = parent.plan.workflow.activity(parent.state.activity)
    if activity is None:
        return None
    triggers = [*activity.triggers, *(trigger for step in activity.steps() for trigger in step.triggers)]
    trigger = next((trigger for trigger in triggers if trigger.workflow == workflow_id), None)
    if trigger is None:
        return None
    scope = parent.plan.scope(parent.state.variables)
    values = {name: scope.value(name) for name in trigger.pass_context}
    return {name: value for name, value in values.items() if not isinstance(value, Missing)}


def begin_in_parent(parent: Position, child_id: str, workflow_id: str, principal: str, now: int) -> Changes:
    """Record in the parent that the child has begun."""
    return _recorded(parent, StartChild(workflow_id, child_id), principal, now, _key(child_id))


def return_to_parent(
    positions: Positions, child: SessionRow, workflow_id: str, state: RunState, now: int
) -> list[Changes]:
    """Record in the parent, if it still waits for this child, that it has ended or was abandoned."""
    if child.parent_session is None:
        return []
    parent = _waiting_parent(positions, child.parent_session, child.session_id)
    if parent is None:
        return []
    completed = state.abandoned is None
    values = state.variables if completed else {}
    returned = ReturnChild(workflow_id, child.session_id, completed, values)
    return [_recorded(parent, returned, positions.principal, now, None)]


def _waiting_parent(positions: Positions, parent_id: str, child_id: str) -> Position | None:
    """Return the parent where it waits for the child: at its head, else on the branch that began the child.

    A head that comes after the node at which the child was begun has left the child behind.
    """
    head = positions.position(parent_id)
    if isinstance(head, LedgerError):
        return None
    if child_id in head.state.children:
        return head
    with positions.store.reading() as reader:
        row = reader.commit_by_key(parent_id, _key(child_id))
        entries = entries_of(row) if row is not None else ()
        began_at = next((entry.node for entry in entries if entry.node is not None), None)
        if began_at is None:
            return None
        number: int | None = head.node.node
        while number is not None and number > began_at:
            node = reader.node(parent_id, number)
            number = node.parent if node is not None else None
        if number == began_at:
            return None
    branch = positions.position_onward(parent_id, began_at)
    return None if isinstance(branch, LedgerError) or child_id not in branch.state.children else branch


def _recorded(position: Position, command: Command, principal: str, now: int, key: str | None) -> Changes:
    decided = decide(position.plan, position.state, command)
    assert isinstance(decided, Decided), "a child can always begin and return"
    commit = Commit(position.rows(), principal, now)
    held = decided.state.open is not None
    run, node = position.run.run, position.node.node
    commit.add_node(run, node, decided.events, "advanced", decided.awaited, held=held)
    return commit.finish(key)


def origin(reader: Reader, parent_id: str, child_id: str) -> ChildStarted | None:
    """Return the parent's record of the beginning of a child."""
    row = reader.commit_by_key(parent_id, _key(child_id))
    events = [entry.event for entry in entries_of(row)] if row is not None else []
    return next((event for event in events if isinstance(event, ChildStarted)), None)


class Ancestor(Struct, frozen=True):
    """A session above: what it runs, and the activity that triggered the one below."""

    session_id: str
    workflow_id: str
    version: str
    activity: str | None


def ancestors(positions: Positions, position: Position) -> list[Ancestor]:
    """Return the session that triggered this one, and what triggered that, all the way up."""
    above: list[Ancestor] = []
    child = position
    while child.session.parent_session is not None and len(above) < DEEPEST:
        parent = positions.position(child.session.parent_session)
        if isinstance(parent, LedgerError):
            break
        with positions.store.reading() as reader:
            began = origin(reader, parent.session_id, child.session_id)
        activity = began.activity if began else parent.state.activity
        version = parent.plan.workflow.version
        above.append(Ancestor(parent.session_id, parent.run.workflow_id, version, activity))
        child = parent
    return above


class LastAnswer(Struct, frozen=True):
    """The newest decision of a session, and the activity it was made in."""

    event: GateResolved
    activity: str | None


def last_answer(positions: Positions, session_id: str) -> LastAnswer | None:
    """Find the newest decision; the activity entered last before it is where it belongs."""
    answer: GateResolved | None = None
    with positions.store.reading() as reader:
        for row in logged(reader.commits(session_id, newest_first=True), newest_first=True):
            if answer is None and isinstance(row.event, GateResolved) and row.event.how != "given":
                answer = row.event
            elif answer is not None and isinstance(row.event, ActivityEntered):
                return LastAnswer(answer, row.event.activity)
    return LastAnswer(answer, None) if answer else None


def _key(child_id: str) -> str:
    return f"child_started:{child_id}"
