"""What runs stop for: the user's choice for new sessions, and changes that attach to tips (rule 29)."""

from __future__ import annotations

import msgspec

from interlock.core.run.events import PreferencesChanged
from interlock.core.run.preferences import LABELS, Autonomy, Mode, Preferences, RiskPolicy, mode_of
from interlock.core.run.state import RunState
from interlock.ledger.errors import LedgerError, not_healthy, unknown_session
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.health import damage
from interlock.ledger.log.projection import Rows, state_of
from interlock.ledger.queries.status import Shown, tips
from interlock.ledger.retry import until_recorded
from interlock.store.protocol import NodeRow, RunRow, SessionRow, SettingRow

SETTING = "preferences"


class ModeLine(Shown, frozen=True):
    """The mode that holds at one tip, or for what begins later where there is none."""

    mode: Mode
    label: str
    description: str
    autonomy: Autonomy
    risk_policy: RiskPolicy
    run_id: str | None = None
    node: int | None = None


def global_mode(ledger: Ledger) -> ModeLine:
    """Return the mode that new sessions begin with."""
    return _line(ledger.preferences())


def set_global_mode(ledger: Ledger, preferences: Preferences) -> None:
    """Choose what new sessions begin with; sessions that have begun keep theirs."""
    with ledger.store.writing() as writer:
        writer.set_setting(SettingRow(ledger.owner, SETTING, msgspec.json.encode(preferences).decode()))


def session_modes(ledger: Ledger, session: SessionRow) -> tuple[ModeLine, ...]:
    """Return the modes at the tips of a session's unfinished branches; without one, of its next run."""
    lines = tuple(
        _line(state.preferences, run.run_id, tip.node)
        for run, tip, state in _tips(ledger, session)
        if not state.finished
    )
    return lines or (_line(ledger.preferences_within(session.session_id)),)


def _line(chosen: Preferences, run_id: str | None = None, node: int | None = None) -> ModeLine:
    shown = LABELS[chosen.autonomy]
    return ModeLine(
        mode_of(chosen), shown.label, shown.description, chosen.autonomy, chosen.risk_policy, run_id, node
    )


def _tips(ledger: Ledger, session: SessionRow) -> list[tuple[RunRow, NodeRow, RunState]]:
    with ledger.store.reading() as reader:
        modes = {row.node: row.preferences for row in reader.modes(session.session_id)}
        return [
            (run, tip, state_of(tip, modes.get(tip.node)))
            for run in reader.runs(session.session_id)
            if run.status != "abandoned"
            for tip in tips(reader, run)
        ]


@until_recorded
def set_session_mode(ledger: Ledger, session_id: str, preferences: Preferences) -> int | LedgerError:
    """Attach a mode to all current tips and to the runs that begin later; earlier nodes keep theirs.

    Returns how many tips changed.
    """
    loaded = ledger.load(session_id)
    if loaded is None:
        return unknown_session()
    if reason := damage(loaded):
        return not_healthy(session_id, reason)
    rows, changed = Rows(loaded.session), list[NodeRow]()
    for run, tip, state in _tips(ledger, loaded.session):
        if not state.finished and state.preferences != preferences:
            rows.runs[run.run], rows.nodes[tip.node], rows.states[tip.node] = run, tip, state
            changed.append(tip)
    if not changed and ledger.preferences_within(session_id) == preferences:
        return 0
    commit = Commit(rows, ledger.principal, ledger.clock())
    commit.add(PreferencesChanged(preferences))
    for tip in changed:
        commit.add(PreferencesChanged(preferences), run=tip.run, node=tip.node)
    ledger.append(commit.finish())
    return len(changed)
