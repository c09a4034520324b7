"""What came of checks, as people are shown it: run by the server, or only claimed by the agent."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Literal

from interlock.core.run.events import CheckRan
from interlock.core.run.keys import item_of
from interlock.ledger.log.chain import logged
from interlock.ledger.queries.status import Shown
from interlock.ledger.runs.position import Position
from interlock.store.protocol import Store


class ShownCheck(Shown, frozen=True):
    """One result. A check that no project has defined is `by` the agent, and has nothing but its name.

    `output` is the end of what it printed. `tree` is the digest of the files that the result is valid for; it
    is empty if they changed while the check ran. Without `trusted_by` it was not run.
    """

    id: str
    by: Literal["server", "agent"] = "server"
    passed: bool = False
    outcome: str = ""
    command: str = ""
    folder: str = ""
    at: int = 0
    duration_ms: int = 0
    output: str = ""
    reason: str = ""
    head: str = ""
    tree: str = ""
    trusted_by: str = ""

    @property
    def text(self) -> str:
        """The result in a line, with its strength."""
        if self.by == "agent":
            return f"check {self.id}: claimed by the agent, not run by the server"
        details = ", ".join(filter(None, (self.command, self.outcome)))
        result = "passed" if self.passed else "failed"
        return f"check {self.id}, run by the server: {result}{f' ({details})' if details else ''}"


def shown_check(ran: CheckRan) -> ShownCheck:
    """Show the event of a check."""
    return ShownCheck(
        id=ran.check,
        passed=ran.passed,
        outcome=ran.outcome,
        command=shlex.join(ran.argv),
        folder=ran.folder,
        at=ran.at,
        duration_ms=ran.duration_ms,
        output=ran.output,
        reason=ran.reason,
        head=ran.head,
        tree=ran.tree,
        trusted_by=ran.trusted_by,
    )


def checks_at(store: Store, position: Position) -> tuple[ShownCheck, ...]:
    """Return the last results on the way to a position, then what is only claimed there."""
    return with_runs(position, _last_runs(store, position))


def with_runs(position: Position, runs: Iterable[CheckRan]) -> tuple[ShownCheck, ...]:
    """Return the results that a position has, told by these runs where they are theirs, and the claims."""
    known = {name: ShownCheck(name, passed=last.passed) for name, last in position.state.checks.items()}
    ran = known | {ran.check: shown_check(ran) for ran in runs}
    workflow, visit = position.plan.workflow, position.state.visit
    done = {item_of(key) for key in visit.done}
    activity = workflow.activity(visit.activity)
    steps = activity.steps() if activity is not None else ()
    claimed = (check.id for step in steps if step.id in done for check in step.checks if not check.run)
    return (*ran.values(), *(ShownCheck(name, "agent") for name in dict.fromkeys(claimed)))


def _last_runs(store: Store, position: Position) -> Iterator[CheckRan]:
    """Yield the newest event of each check whose result the position has."""
    wanted = set(position.state.checks)
    if not wanted:
        return
    with store.reading() as reader:
        path = {
            row.node for row in reader.path(position.session_id, position.node.node, position.node.depth + 1)
        }
        for entry in logged(reader.commits(position.session_id, newest_first=True), newest_first=True):
            if isinstance(entry.event, CheckRan) and entry.node in path and entry.event.check in wanted:
                wanted.remove(entry.event.check)
                yield entry.event
            if not wanted:
                return
