"""A run as navigation sees it, whichever surface its token comes from (rule 34)."""

from __future__ import annotations

from interlock.authoring.library import Loaded
from interlock.core.engine.moves import Decisions, settled_for_navigation
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Target
from interlock.ledger.runs.reaching import reached
from interlock.ledger.runs.view import View
from interlock.ledger.tokens.tokens import STATE_PREFIX, StateProblem, read_state
from interlock.surfaces.navigation.errors import of_error, of_state
from interlock.surfaces.navigation.render import Landscape
from interlock.surfaces.tool import Reply

OTHER_PREFIXES = ("st.", "ses.")


def opened(ledger: Ledger, state: str) -> Target | Reply:
    """Check a state before anything in it is trusted."""
    pointer = read_state(ledger.keys.keyring(), state)
    if isinstance(pointer, StateProblem):
        return of_state(pointer)
    target = ledger.target(pointer)
    return of_error(target) if isinstance(target, LedgerError) else target


def opened_anywhere(ledger: Ledger, token: str) -> Target | Reply:
    """Take any surface's token of a run."""
    if token.startswith(STATE_PREFIX) or not token.startswith(OTHER_PREFIXES):
        return opened(ledger, token)
    target = ledger.open(token, "st", "ses")
    return of_error(target) if isinstance(target, LedgerError) else target


def situation(ledger: Ledger, target: Target) -> Landscape | LedgerError:
    """Read the run at the place; nothing is written."""
    at = reached(ledger, target)
    if isinstance(at, LedgerError):
        return at
    state, pending = settled_for_navigation(at.plan, at.state)
    view = View(
        session=at.session,
        run=at.run,
        plan=at.plan,
        state=state,
        awaited=pending,
        node=at.node.node,
        notices=ledger.drift(at.run),
    )
    return landscape(ledger, view, at.decisions)


def landscape(ledger: Ledger, view: View, decisions: Decisions) -> Landscape:
    """A view with all that decides what is open in it."""

    def startable(workflow_id: str) -> bool:
        return isinstance(ledger.library.load(workflow_id), Loaded)

    return Landscape(view, ledger.settings.terms, decisions, startable)
