"""A run as navigation sees it, whichever surface its token comes from (rule 34)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.authoring.library import Loaded
from interlock.core.engine.moves import Decisions, settled_for_navigation
from interlock.core.run.notices import Notice, Notices
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Position, View, tip_of
from interlock.ledger.tokens.tokens import STATE_PREFIX, Pointer, StateError, bare, read_state
from interlock.surfaces.call import Call, Refused
from interlock.surfaces.elicitation import terms_of
from interlock.surfaces.navigation.errors import of_state
from interlock.surfaces.navigation.render import Situation

OLD_STATE = Notice(
    "OLD_STATE",
    "This state is old: the run has gone on from here. Go on with newest_state; another action from this "
    "state begins a new branch.",
)
LEFT_BRANCH = Notice(
    "OTHER_BRANCH",
    "This branch is not the one that was continued last: newest_state leads to that one.",
)
OTHER_PREFIXES = ("st.", "ses.")


def state_pointer(ledger: Ledger, state: str) -> Pointer:
    """Check a state before anything in it is trusted."""
    pointer = read_state(ledger.keys.keyring(), state)
    if isinstance(pointer, StateError):
        raise Refused(of_state(pointer))
    return pointer


def run_pointer(ledger: Ledger, token: str) -> Pointer:
    """Check any surface's token of a run."""
    token = bare(token)
    if token.startswith(STATE_PREFIX) or not token.startswith(OTHER_PREFIXES):
        return state_pointer(ledger, token)
    return ledger.read_token(token, "st", "ses")


def situation_at(ledger: Ledger, position: Position, call: Call) -> Situation:
    """Return the run as it is at a position; nothing is written."""
    state, pending = settled_for_navigation(position.plan, position.state, ledger.clock())
    notices = Notices(ledger.standing(position))
    newest = None if position.is_tip else tip_of(position.session, position.run)
    if newest is not None and state.abandoned is None:
        notices = notices.plus([OLD_STATE if position.loaded.branches else LEFT_BRANCH])
    view = View(
        session=position.session,
        run=position.run,
        plan=position.plan,
        state=state,
        told=position.told(state),
        awaited=pending,
        node=position.node.node,
        notices=notices,
        terms=position.terms,
    )
    situation = situation_of(ledger, view, position.decisions, call)
    return replace(situation, handle=position.handle, newest=newest, is_read=True)


def situation_of(ledger: Ledger, view: View, decisions: Decisions, call: Call) -> Situation:
    """Return a view with all that decides what is open in it."""

    def startable(workflow_id: str) -> bool:
        return isinstance(ledger.library.load(workflow_id), Loaded)

    terms = terms_of(view.terms, call)
    return Situation(view, terms, decisions, startable, now=ledger.clock())
