"""Parents and children (rule 35): a child begins with what its parent passes on, and returns to it.

Both sides are appended together, so that no crash can part them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.core.definition.workflow import Activity, Trigger
from interlock.core.engine.decide import decide
from interlock.core.run.commands import Command, ReturnChild, StartChild
from interlock.core.run.events import ActivityEntered, ChildStarted, GateResolved
from interlock.core.run.outcomes import Decided
from interlock.core.values import Json, Missing, Variables
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.chain import entries_of, logged
from interlock.ledger.log.commit import Commit
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import Changes, Reader, SessionRow

DEEPEST = 16


def passed_on(parent: Position, workflow_id: str) -> dict[str, Json] | None:
    """What the parent's current activity passes to a child of this workflow; None if it triggers none."""
    activity = parent.plan.workflow.activity(parent.state.activity)
    trigger = next((trigger for trigger in _triggers(activity) if trigger.workflow == workflow_id), None)
    if trigger is None:
        return None
    scope = parent.plan.scope(parent.state.variables)
    values = {name: scope.value(name) for name in trigger.pass_context}
    return {name: value for name, value in values.items() if not isinstance(value, Missing)}


def _triggers(activity: Activity | None) -> Iterator[Trigger]:
    if activity is None:
        return
    yield from activity.triggers
    for step in activity.steps():
        yield from step.triggers


def begin_in_parent(parent: Position, child_id: str, workflow_id: str, now: int) -> Changes:
    """Record in the parent that the child has begun."""
    return _recorded(parent, StartChild(workflow_id, child_id), now, _key(child_id))


def return_to_parent(
    positions: Positions, child: SessionRow, workflow_id: str, variables: Variables, now: int
) -> list[Changes]:
    """Record in the parent, if it still waits for this child, that it has returned."""
    if child.parent_session is None:
        return []
    parent = _waiting(positions, child.parent_session, child.session_id)
    if parent is None:
        return []
    return [_recorded(parent, ReturnChild(workflow_id, child.session_id, True, variables), now, None)]


def _waiting(positions: Positions, parent_id: str, child_id: str) -> Position | None:
    """The parent where it waits for the child: at its head, else on the branch where the child was begun."""
    at = positions.position(parent_id)
    if isinstance(at, LedgerError):
        return None
    if child_id in at.state.children:
        return at
    with positions.store.reading() as reader:
        row = reader.commit_by_key(parent_id, _key(child_id))
        began = (
            next((entry.node for entry in entries_of(row) if entry.node is not None), None) if row else None
        )
        if began is None or _is_behind(reader, at, began):
            return None
    at = positions.position_onward(parent_id, began)
    return None if isinstance(at, LedgerError) or child_id not in at.state.children else at


def _is_behind(reader: Reader, tip: Position, began: int) -> bool:
    """Say whether the tip comes after the node at which the child was begun: the child was left behind."""
    number: int | None = tip.node.node
    while number is not None and number > began:
        node = reader.node(tip.session_id, number)
        number = node.parent if node is not None else None
    return number == began


def _recorded(at: Position, command: Command, now: int, key: str | None) -> Changes:
    decided = decide(at.plan, at.state, command)
    assert isinstance(decided, Decided), "a child can always begin and return"
    commit = Commit(at.rows(), now)
    held = decided.state.open is not None
    commit.add_node(at.run.run, at.node.node, decided.events, "advanced", decided.awaited, held=held)
    return commit.finish(key)


def origin(reader: Reader, parent_id: str, child_id: str) -> ChildStarted | None:
    """The parent's record of the child's beginning."""
    row = reader.commit_by_key(parent_id, _key(child_id))
    events = [entry.event for entry in entries_of(row)] if row is not None else []
    return next((event for event in events if isinstance(event, ChildStarted)), None)


class Ancestor(Struct, frozen=True):
    """A session above: what it runs, and the activity that triggered the one below."""

    session_id: str
    workflow_id: str
    version: str
    activity: str | None


def ancestors(positions: Positions, at: Position) -> list[Ancestor]:
    """The session that triggered this one, and what triggered that, all the way up."""
    above: list[Ancestor] = []
    while at.session.parent_session is not None and len(above) < DEEPEST:
        parent = positions.position(at.session.parent_session)
        if isinstance(parent, LedgerError):
            break
        with positions.store.reading() as reader:
            began = origin(reader, parent.session_id, at.session_id)
        activity = began.activity if began else parent.state.activity
        version = parent.plan.workflow.version
        above.append(Ancestor(parent.session_id, parent.run.workflow_id, version, activity))
        at = parent
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
