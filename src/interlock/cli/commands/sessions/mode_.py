"""`interlock mode`: what runs stop for, in new sessions or in one that is running."""

from __future__ import annotations

from typing import get_args

import click
import msgspec
from msgspec.structs import replace

from interlock.cli.interactive import require_pin, require_terminal
from interlock.cli.options import json_option, with_ledger
from interlock.cli.references import session_of, stop_with
from interlock.cli.screen import CONFLICT, inform, paint, print_json, say, stop
from interlock.core.run.preferences import AUTONOMY, PRESETS, RISK, Mode, Preferences, RiskPolicy
from interlock.ledger.decisions.modes import (
    ModeLine,
    global_mode,
    session_modes,
    set_global_mode,
    set_session_mode,
)
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import ref_of


@click.command(epilog="Example: interlock mode stop --session hmc3gzdk")
@click.argument("mode", required=False, type=click.Choice(get_args(Mode)))
@click.option("--risk", type=click.Choice(RISK), help="Another risk policy than the mode's own.")
@click.option("--session", "ref", metavar="ID", help="Only this session, at all its current tips.")
@json_option
@with_ledger
def command(
    ledger: Ledger, mode: Mode | None, risk: RiskPolicy | None, ref: str | None, as_json: bool
) -> None:
    """Show or set what runs stop for.

    guided stops for confirmations and gates; stop only for gates and for inputs that you alone can give;
    never-stop for nothing, and records a gap for everything it had to assume.
    """
    if mode is not None or risk is not None:
        _change(ledger, mode, risk, ref)
    modes = _modes(ledger, ref)
    if as_json:
        print_json({"session": ref, "modes": msgspec.to_builtins(modes)})
        return
    for line in modes:
        scope = f"node {line.node}" if line.node is not None else "new sessions"
        say(f"{paint(line.mode, 'accent')}  {scope}, {line.risk_policy} risk")


def _modes(ledger: Ledger, ref: str | None) -> tuple[ModeLine, ...]:
    if ref is None:
        return (global_mode(ledger),)
    return session_modes(ledger, session_of(ledger, ref))


def _change(ledger: Ledger, mode: Mode | None, risk: RiskPolicy | None, ref: str | None) -> None:
    before = _modes(ledger, ref)
    if not before:
        stop(CONFLICT, f"Session {ref} has no unfinished run to set a mode for.")
    wanted = PRESETS[mode] if mode else Preferences(before[0].autonomy, before[0].risk_policy)
    wanted = replace(wanted, risk_policy=risk) if risk else wanted
    if any(
        AUTONOMY.index(wanted.autonomy) > AUTONOMY.index(line.autonomy)
        or RISK.index(wanted.risk_policy) > RISK.index(line.risk_policy)
        for line in before
    ):
        require_terminal("A looser mode")
        require_pin(ledger)
    if ref is None:
        set_global_mode(ledger, wanted)
        inform("Set for new sessions; sessions that have started keep their mode.")
        if ledger.settings.preferences_fixed:
            inform("But a mode in the environment or a config file outranks it: see `interlock config show`.")
        return
    session = session_of(ledger, ref)
    changed = set_session_mode(ledger, session.session_id, wanted)
    if isinstance(changed, LedgerError):
        stop_with(changed)
    inform(f"Set at {changed} tips of session {ref_of(session.session_id)}; earlier nodes keep their mode.")
