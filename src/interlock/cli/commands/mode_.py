"""`interlock mode`: how far runs may go by themselves, for new sessions or for one that is under way."""

from __future__ import annotations

from typing import get_args

import click
import msgspec
from msgspec.structs import replace

from interlock.cli.exits import CONFLICT
from interlock.cli.options import json_option, print_json
from interlock.cli.person import need_pin
from interlock.cli.reach import give_up, session_of, with_ledger
from interlock.cli.screen import paint, say, stop, talk
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
    """Show or set how far runs go by themselves.

    guided asks you to confirm; stop asks only what you alone can answer; never-stop asks nothing and
    records what it had to assume.
    """
    if mode is not None or risk is not None:
        _change(ledger, mode, risk, ref)
    lines = _lines(ledger, ref)
    if as_json:
        print_json({"session": ref, "modes": msgspec.to_builtins(lines)})
        return
    for line in lines:
        where = f"node {line.node}" if line.node is not None else "new sessions"
        say(f"{paint(line.mode, 'accent')}  {where}, {line.risk_policy} risk")


def _lines(ledger: Ledger, ref: str | None) -> tuple[ModeLine, ...]:
    if ref is None:
        return (global_mode(ledger),)
    return session_modes(ledger, session_of(ledger, ref))


def _change(ledger: Ledger, mode: Mode | None, risk: RiskPolicy | None, ref: str | None) -> None:
    before = _lines(ledger, ref)
    if not before:
        stop(CONFLICT, f"Session {ref} has no unfinished run to set a mode for.")
    wanted = PRESETS[mode] if mode else Preferences(before[0].autonomy, before[0].risk_policy)
    wanted = replace(wanted, risk_policy=risk) if risk else wanted
    if any(_loosens(one, wanted) for one in before):
        need_pin(ledger)
    if ref is None:
        set_global_mode(ledger, wanted)
        talk("Set for new sessions; those that have begun keep theirs.")
        if ledger.settings.preferences_fixed:
            talk("But a mode in the environment or a config file outranks it: see `interlock config show`.")
        return
    session = session_of(ledger, ref)
    changed = set_session_mode(ledger, session.session_id, wanted)
    if isinstance(changed, LedgerError):
        give_up(changed)
    talk(f"Set at {changed} tips of session {ref_of(session.session_id)}; earlier nodes keep theirs.")


def _loosens(before: ModeLine, wanted: Preferences) -> bool:
    return AUTONOMY.index(wanted.autonomy) > AUTONOMY.index(before.autonomy) or RISK.index(
        wanted.risk_policy
    ) > RISK.index(before.risk_policy)
