"""What a surface renders: the run as it stands after a command, with everything an answer may show."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.definition.program import Plan
from interlock.core.run.outcomes import Awaited, Notice
from interlock.core.run.reasons import Blocker
from interlock.core.run.state import RunState
from interlock.ledger.runs.recap import Branches, Recap
from interlock.store.protocol import RunRow, SessionRow


class View(Struct, frozen=True, kw_only=True):
    """One node of a run. `attempt` is the one to offer for the next advance."""

    session: SessionRow
    run: RunRow
    plan: Plan
    state: RunState
    awaited: Awaited
    node: int
    attempt: int = 0
    blockers: tuple[Blocker, ...] = ()
    notices: tuple[Notice, ...] = ()
    notes_cut: bool = False
    recap: Recap | None = None
    branches: Branches | None = None
    started: bool = False
