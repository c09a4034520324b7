"""Parents and children (rule 35): a child begins with what its parent passes on, and returns to it.

Both sides are appended in one transaction, so that no crash can separate them. A child that its parent leaves
behind is abandoned in its own session too, and so is what it has begun.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from interlock.core.run.commands import AbandonRun, Command, ReturnChild, StartChild
from interlock.core.run.events import ActivityEntered, ChildReturned, ChildStarted, GateResolved
from interlock.core.run.outcomes import Decided, Refusal
from interlock.core.values import Variables
from interlock.core.variables.inheritance import Passed, passed_on
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.chain import entries_of, logged
from interlock.ledger.log.commit import Commit
from interlock.ledger.runs.position import Position, tip_of
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import Changes, Reader, SessionRow, StoreConflict

DEEPEST = 16


def passed_by(parent: Position, workflow_id: str) -> Passed | None:
    """Return what the parent passes to a child of this workflow; a run that has ended begins none."""
    if parent.state.finished:
        how = "was abandoned" if parent.state.abandoned is not None else "has ended"
        message = f"Run {parent.run.run_id} {how}; it starts no child."
        raise LedgerError("CONFLICT", message, "Start the workflow without a parent.")
    return passed_on(parent.plan, parent.state, workflow_id)


def begin_in_parent(parent: Position, child_id: str, workflow_id: str, principal: str, now: int) -> Changes:
    """Record in the parent that the child has begun."""
    return _recorded(parent, StartChild(workflow_id, child_id), principal, now, _key(child_id))


def return_to_parent(
    positions: Positions, child: SessionRow, workflow_id: str, values: Variables | None, now: int
) -> list[Changes]:
    """Record in the parent, if it still waits for this child, that it has ended with these values.

    None says that it was abandoned.
    """
    if child.parent_session is None:
        return []
    parent = _waiting_parent(positions, child.parent_session, child.session_id)
    if parent is None:
        return []
    returned = ReturnChild(workflow_id, child.session_id, values is not None, values or {})
    return [_recorded(parent, returned, positions.principal, now, None)]


def abandoned_below(positions: Positions, parent: Position, decided: Decided, now: int) -> list[Changes]:
    """Abandon the runs of the children that the parent goes on or ends without, and all that they began.

    One that has ended by itself stays as it is, and so does one that cannot be read.
    """
    changes: list[Changes] = []
    how = decided.state.abandoned
    reason = f"the parent was {how.text}" if how is not None else "the parent went on without it"
    command = AbandonRun(now, "server", parent.run.workflow_id, reason)
    for event in decided.events:
        if not isinstance(event, ChildReturned) or event.outcome != "abandoned":
            continue
        with positions.store.reading() as reader:
            session, run = reader.session(event.session), reader.run(event.session, 0)
        if session is None or run is None or session.parent_session != parent.session_id:
            continue  # it was deleted, or the parent is the copy of another
        with suppress(LedgerError):
            gone = given_up(positions, positions.position(event.session, tip_of(session, run)), command)
            changes += gone if isinstance(gone, list) else []
    return changes


def given_up(positions: Positions, position: Position, command: AbandonRun) -> list[Changes] | Refusal:
    """Abandon a run at its tip, with its children; the head stays in another run of the session."""
    if not position.is_tip:
        raise StoreConflict(position.session_id)  # it has advanced between the two reads
    decided = position.decide_unasked(command)
    if isinstance(decided, Refusal):
        return decided
    commit = Commit(position.rows(), positions.principal, command.now)
    commit.add_node(position.run.run, position.node.node, decided)
    commit.keep_head(position.run.run)
    return [commit.finish(), *abandoned_below(positions, position, decided, command.now)]


def _waiting_parent(positions: Positions, parent_id: str, child_id: str) -> Position | None:
    """Return the parent where it waits for the child: at its head, else on the branch that began the child.

    A head that comes after the node at which the child was begun has left the child behind.
    """
    try:
        head = positions.position(parent_id)
    except LedgerError:
        return None
    if child_id in head.state.children:
        return head if not head.state.finished else None
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
    try:
        branch = positions.position_onward(parent_id, began_at)
    except LedgerError:
        return None
    return branch if not branch.state.finished and child_id in branch.state.children else None


def _recorded(position: Position, command: Command, principal: str, now: int, key: str | None) -> Changes:
    decided = position.surely_decide(command)
    commit = Commit(position.rows(), principal, now)
    held = decided.state.visit.open is not None
    run, node = position.run.run, position.node.node
    commit.add_node(run, node, decided, held=held)
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
        try:
            parent = positions.position(child.session.parent_session)
        except LedgerError:
            break
        with positions.store.reading() as reader:
            began = origin(reader, parent.session_id, child.session_id)
        activity = began.activity if began else parent.state.visit.activity
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
