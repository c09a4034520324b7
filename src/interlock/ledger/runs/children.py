"""Parents and children (rule 35): a child begins with what its parent passes on, and returns to it.

Both sides are recorded in the transaction that brings them about, so that no kill can part them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from interlock.core.definition.workflow import Activity, Trigger
from interlock.core.engine.decide import decide
from interlock.core.run.commands import Command, ReturnChild, StartChild
from interlock.core.run.events import ActivityEntered, ChildStarted, GateResolved
from interlock.core.run.outcomes import Decided
from interlock.core.values import Json, Missing, Variables
from interlock.ledger.errors import LedgerError, unknown_session
from interlock.ledger.log.chain import read_event
from interlock.ledger.log.commit import Commit, run_after
from interlock.ledger.runs.onward import onward
from interlock.store.protocol import NodeRow, Reader, SessionRow, Writer

if TYPE_CHECKING:
    from interlock.ledger.ledger import Ledger
    from interlock.ledger.runs.position import Position

DEEPEST = 16


def head(ledger: Ledger, reader: Reader, session_id: str) -> Position | LedgerError:
    """A session's head: the run and node at which its work goes on."""
    session = reader.session(session_id)
    if session is None or session.head_node is None:
        return unknown_session()
    return ledger.position(reader, session_id, session.head_node)


def passed_on(parent: Position, workflow_id: str) -> dict[str, Json] | None:
    """What the parent's current activity passes to a child of this workflow; None if it triggers none."""
    activity = parent.plan.workflow.activity(parent.state.activity)
    trigger = next((one for one in _triggers(activity) if one.workflow == workflow_id), None)
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


def begin(
    ledger: Ledger, tx: Writer, parent_id: str, child_id: str, workflow_id: str, node: int | None
) -> None:
    """Record in the parent, at the given node or at its head, that the child has begun."""
    at = head(ledger, tx, parent_id) if node is None else ledger.position(tx, parent_id, node)
    if not isinstance(at, LedgerError):
        _record(ledger, tx, at, StartChild(workflow_id, child_id), _key(child_id))


def finish(ledger: Ledger, tx: Writer, child: SessionRow, workflow_id: str, variables: Variables) -> None:
    """Record in the parent, if it still waits for this child, that it has returned."""
    if child.parent_session is None:
        return
    at = _waiting(ledger, tx, child.parent_session, child.session_id)
    if at is not None:
        _record(ledger, tx, at, ReturnChild(workflow_id, child.session_id, True, variables), None)


def _waiting(ledger: Ledger, tx: Writer, parent_id: str, child_id: str) -> Position | None:
    """The parent where it waits for the child: at its head, else on the branch where the child was begun."""
    at = head(ledger, tx, parent_id)
    if isinstance(at, LedgerError) or child_id in at.state.children:
        return None if isinstance(at, LedgerError) else at
    row = tx.event_by_key(parent_id, _key(child_id))
    if row is None or row.node is None or _went_on(tx, at.node, row.node):
        return None
    at = ledger.position(tx, parent_id, onward(tx, parent_id, row.node))
    return None if isinstance(at, LedgerError) or child_id not in at.state.children else at


def _went_on(reader: Reader, tip: NodeRow, began: int) -> bool:
    """Say whether the tip lies behind the node that the child was begun at: it was left behind there."""
    here: NodeRow | None = tip
    while here is not None and here.node > began:
        here = reader.node(here.session_id, here.parent) if here.parent is not None else None
    return here is not None and here.node == began


def _record(ledger: Ledger, tx: Writer, at: Position, command: Command, key: str | None) -> None:
    decided = decide(at.plan, at.state, command)
    assert isinstance(decided, Decided), "a child can always begin and return"
    commit = Commit(tx, at.session, ledger.clock())
    node = commit.add_node(at.run.run, at.node, decided.state, decided.events, "advanced", key)
    waits = decided.state.open is not None
    tx.set_run(run_after(at.run, node.node, decided.state, decided.awaited, commit.now, blocked=waits))
    commit.finish(at.run.run, node.node)


def origin(reader: Reader, parent_id: str, child_id: str) -> ChildStarted | None:
    """The parent's record of the child's beginning."""
    row = reader.event_by_key(parent_id, _key(child_id))
    event = read_event(row) if row is not None else None
    return event if isinstance(event, ChildStarted) else None


class Ancestor(Struct, frozen=True):
    """A session above: what it runs, and the activity that triggered the one below."""

    session_id: str
    workflow_id: str
    version: str
    activity: str | None


def ancestors(ledger: Ledger, reader: Reader, at: Position) -> Iterator[Ancestor]:
    """The session that triggered this one, and what triggered that, all the way up."""
    for _ in range(DEEPEST):
        session_id = at.session.parent_session
        above = head(ledger, reader, session_id) if session_id else None
        if above is None or isinstance(above, LedgerError):
            return
        began = origin(reader, above.session.session_id, at.session.session_id)
        activity = began.activity if began else above.state.activity
        version = above.plan.workflow.version
        yield Ancestor(above.session.session_id, above.run.workflow_id, version, activity)
        at = above


class LastAnswer(Struct, frozen=True):
    """The newest decision of a session, and the activity it was made in."""

    event: GateResolved
    activity: str | None


def last_answer(reader: Reader, session_id: str) -> LastAnswer | None:
    """Find the newest decision; the activity entered last before it is where it belongs."""
    kinds = ("gate_resolved", "activity_entered")
    answer: GateResolved | None = None
    for row in reader.events(session_id, kinds=kinds, newest_first=True):
        event = read_event(row)
        if answer is None and isinstance(event, GateResolved):
            answer = event
        elif answer is not None and isinstance(event, ActivityEntered):
            return LastAnswer(answer, event.activity)
    return LastAnswer(answer, None) if answer else None


def _key(child_id: str) -> str:
    return f"child_started:{child_id}"
