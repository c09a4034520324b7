"""`interlock mode`: what runs stop for, in new sessions or in one that is running."""

from __future__ import annotations

from typing import get_args

import click
import msgspec
from msgspec.structs import replace

from interlock.cli.interactive import require_pin, require_terminal
from interlock.cli.options import json_option, owner_option, with_ledger
from interlock.cli.references import owned_session, session_named
from interlock.cli.screen import fit, inform, paint, print_json, say, width
from interlock.core.run.preferences import AUTONOMY, PRESETS, RISK, Mode, Preferences, RiskPolicy
from interlock.ledger.decisions.modes import (
    ModeLine,
    global_mode,
    session_modes,
    set_global_mode,
    set_session_mode,
)
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import ref_of


@click.command(epilog="Example: interlock mode stop --session hmc3gzdk")
@click.argument("mode", required=False, type=click.Choice(get_args(Mode)))
@click.option("--risk", type=click.Choice(RISK), help="Another risk policy than the mode's own.")
@click.option(
    "--session", "ref", metavar="ID", help="Only this session: its current tips, and what it begins later."
)
@owner_option
@json_option
@with_ledger
def command(
    ledger: Ledger, mode: Mode | None, risk: RiskPolicy | None, ref: str | None, owner: str, as_json: bool
) -> None:
    """Show or set what runs stop for.

    guided stops for confirmations and gates; stop only for gates and for inputs that you alone can give;
    never-stop for nothing, and records a gap for everything it had to assume.
    """
    session = None
    if ref is not None:
        ledger, session = owned_session(ledger, ref, owner)
    modes = session_modes(ledger, session) if session else (global_mode(ledger),)
    if mode is not None or risk is not None:
        wanted = PRESETS[mode] if mode else Preferences(modes[0].autonomy, modes[0].risk_policy)
        wanted = replace(wanted, risk_policy=risk) if risk else wanted
        if any(stops_for_less(wanted, line) for line in modes):
            require_terminal("A looser mode")
            require_pin(ledger)
        if session is None:
            set_global_mode(ledger, wanted)
            inform("Set for new sessions; sessions that have started keep their mode.")
        else:
            changed = set_session_mode(ledger, session.session_id, wanted, "cli")
            short = ref_of(session.session_id)
            nodes = f"at {changed} nodes and " if changed else ""
            inform(f"Set {nodes}for later runs of session {short}; earlier nodes keep a tighter mode.")
        if ledger.settings.preferences_fixed:
            outranked = "But a mode in the environment or a config file outranks a looser one"
            inform(f"{outranked}: see `interlock config show`.")
        modes = session_modes(ledger, session_named(ledger, ref, owner)) if ref else (global_mode(ledger),)
    if as_json:
        print_json(
            {"sessionId": session.session_id if session else None, "modes": msgspec.to_builtins(modes)}
        )
        return
    for line in modes:
        later = "the next run" if ref else "new sessions"
        scope = f"node {line.node}" if line.node is not None else later
        say(f"{paint(line.mode, 'accent')}  {scope}, {line.risk_policy} risk")
        say(paint(fit(f"  {line.label}: {line.description}", width()), "quiet"))


def stops_for_less(wanted: Preferences, current: ModeLine) -> bool:
    """Say whether a mode stops for less than the current one; only the user may set such a mode."""
    return AUTONOMY.index(wanted.autonomy) > AUTONOMY.index(current.autonomy) or (
        RISK.index(wanted.risk_policy) > RISK.index(current.risk_policy)
    )
