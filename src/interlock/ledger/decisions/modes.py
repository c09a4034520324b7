"""What runs stop for: the user's choice for new sessions, and changes in a session that runs (rule 29)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from interlock.core.guard.audit import Audit
from interlock.core.run.channels import Channel
from interlock.core.run.events import PreferencesChanged
from interlock.core.run.preferences import (
    LABELS,
    Autonomy,
    Mode,
    Preferences,
    RiskPolicy,
    SessionTerms,
    mode_of,
    stricter,
)
from interlock.core.run.state import RunState
from interlock.ledger.errors import not_healthy, unknown_session
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.health import damage
from interlock.ledger.log.projection import Rows, audited_state_of
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
        _line(state.terms.preferences, run.run_id, node.node)
        for run, node, state, _, where in _open_nodes(ledger, session)
        if where == "tip"
    )
    return lines or (_line(ledger.terms_within(session.session_id).preferences),)


def _line(chosen: Preferences, run_id: str | None = None, node: int | None = None) -> ModeLine:
    shown = LABELS[chosen.autonomy]
    return ModeLine(
        mode_of(chosen), shown.label, shown.description, chosen.autonomy, chosen.risk_policy, run_id, node
    )


def _open_nodes(
    ledger: Ledger, session: SessionRow
) -> Iterator[tuple[RunRow, NodeRow, RunState, Audit, Literal["tip", "earlier"]]]:
    """Yield every node that can be continued, and whether it is the tip of its branch."""
    with ledger.store.reading() as reader:
        modes = {row.node: row.preferences for row in reader.modes(session.session_id)}
        for run in reader.runs(session.session_id):
            if run.status == "abandoned":
                continue
            nodes = list(reader.nodes(session.session_id, run.run))
            ends = {node.node for node in tips(nodes)}
            for node in nodes:
                state, audit = audited_state_of(node, modes.get(node.node))
                if not state.finished:
                    yield run, node, state, audit, "tip" if node.node in ends else "earlier"


@until_recorded
def set_session_mode(ledger: Ledger, session_id: str, preferences: Preferences, channel: Channel) -> int:
    """Attach a mode to all current tips and to the runs that begin later.

    What it tightens, it tightens at every node that can be continued, so that a rewind does not undo it.
    Returns how many nodes changed.
    """
    loaded = ledger.load(session_id)
    if loaded is None:
        raise unknown_session()
    if reason := damage(loaded):
        raise not_healthy(session_id, reason)
    rows, later = Rows(loaded.session), ledger.terms_within(session_id)
    changes: dict[int, SessionTerms] = {}
    for run, node, state, audit, where in _open_nodes(ledger, loaded.session):
        chosen = preferences if where == "tip" else stricter(state.terms.preferences, preferences)
        if chosen != state.terms.preferences:
            rows.runs[run.run], rows.nodes[node.node] = run, node
            rows.states[node.node], rows.audits[node.node] = state, audit
            changes[node.node] = replace(state.terms, preferences=chosen)
    if not changes and later.preferences == preferences:
        return 0
    commit = Commit(rows, ledger.principal, ledger.clock())
    commit.add(PreferencesChanged.to(replace(later, preferences=preferences), channel))
    for number, terms in changes.items():
        commit.add(PreferencesChanged.to(terms, channel), run=rows.nodes[number].run, node=number)
    ledger.append(commit.finish())
    return len(changes)
