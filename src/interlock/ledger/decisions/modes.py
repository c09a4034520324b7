"""How far runs may go by themselves: the user's global choice, and changes that attach to tips (rule 29)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from interlock.core.engine.evolve import evolve
from interlock.core.run.events import PreferencesChanged
from interlock.core.run.preferences import Autonomy, Mode, Preferences, RiskPolicy, mode_of
from interlock.ledger.errors import LedgerError, not_healthy, unknown_session
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.commit import Commit, decode_state, encode_state
from interlock.ledger.log.health import damage
from interlock.ledger.queries.status import Shown, tips
from interlock.store.protocol import NodeRow, Reader, SessionRow

SETTING = "preferences"


class ModeLine(Shown, frozen=True):
    """The mode that holds at one tip, or for new sessions where there is none."""

    mode: Mode
    autonomy: Autonomy
    risk_policy: RiskPolicy
    run_id: str | None = None
    node: int | None = None


def global_mode(ledger: Ledger, reader: Reader) -> ModeLine:
    """What new sessions begin with."""
    return _line(ledger.preferences(reader))


def set_global_mode(ledger: Ledger, preferences: Preferences) -> None:
    """Choose what new sessions begin with; sessions that have begun keep theirs."""
    with ledger.store.writing() as tx:
        tx.set_setting(SETTING, msgspec.json.encode(preferences).decode())


def session_modes(reader: Reader, session: SessionRow) -> tuple[ModeLine, ...]:
    """What holds at every tip of a session's unfinished branches."""
    return tuple(
        _line(decode_state(tip).preferences, run.run_id, tip.node)
        for run in reader.runs(session.session_id)
        for tip in tips(reader, run)
        if not decode_state(tip).finished
    )


def _line(chosen: Preferences, run_id: str | None = None, node: int | None = None) -> ModeLine:
    return ModeLine(mode_of(chosen), chosen.autonomy, chosen.risk_policy, run_id, node)


def set_session_mode(ledger: Ledger, session_id: str, preferences: Preferences) -> int | LedgerError:
    """Attach a change to all current tips; a rewind to before it is not touched. Returns how many."""
    with ledger.store.writing() as tx:
        session = tx.session(session_id)
        if session is None:
            return unknown_session()
        if found := damage(tx, session):
            return not_healthy(session_id, found)
        commit, changed = Commit(tx, session, ledger.clock()), 0
        for run in tx.runs(session_id):
            for tip in tips(tx, run):
                changed += _attach(commit, tip, preferences)
        if changed:
            commit.finish()
    return changed


def _attach(commit: Commit, tip: NodeRow, preferences: Preferences) -> bool:
    state = decode_state(tip)
    if state.finished or state.preferences == preferences:
        return False
    event = PreferencesChanged(preferences)
    commit.chain.add(event, run=tip.run, node=tip.node)
    body, digest = encode_state(evolve(state, event))
    commit.tx.set_node(replace(tip, state=body, state_digest=digest))
    return True
