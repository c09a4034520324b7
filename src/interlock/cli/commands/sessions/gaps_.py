"""`interlock gaps ID`: what a run had to assume, and resolving it afterwards."""

from __future__ import annotations

from typing import Literal

import click
import msgspec

from interlock.cli.interactive import require_pin, require_terminal
from interlock.cli.options import json_option, owner_option, session_argument, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import NOT_FOUND, USAGE, fit, line_of, print_json, say, stop, width
from interlock.core.run.state import KnownGap
from interlock.ledger.decisions.gaps import resolve_gap
from interlock.ledger.ledger import Ledger
from interlock.store.protocol import RunRow


@click.command(epilog='Example: interlock gaps hmc3gzdk resolve 2 --note "seen, it is fine"')
@session_argument
@click.argument("action", required=False, type=click.Choice(["resolve"]))
@click.argument("number", required=False, type=int)
@click.option("--note", default="", metavar="TEXT", help="How it was resolved.")
@click.option("--run", "wanted", metavar="RUN", help="Which run, by its id; default: the last with gaps.")
@owner_option
@json_option
@with_ledger
def command(
    ledger: Ledger,
    ref: str,
    action: Literal["resolve"] | None,
    number: int | None,
    note: str,
    wanted: str | None,
    owner: str,
    as_json: bool,
) -> None:
    """List the gaps of a run, or resolve one.

    What was decided without you, you alone can resolve. That needs a terminal, and the PIN if one is set.
    """
    if action is not None:
        require_terminal("Resolving a gap")
    if (action is None) != (number is None):
        stop(USAGE, "Name the gap to resolve: interlock gaps ID resolve N.")
    ledger, session = owned_session(ledger, ref, owner)
    with ledger.store.reading() as reader:
        runs = [run for run in reader.runs(session.session_id) if wanted is None or run.run_id == wanted]
    listed: list[tuple[RunRow, tuple[KnownGap, ...]]] = []
    for run in runs:
        position = ledger.at_tip(session.session_id, run.run)
        listed += [(run, position.state.gaps.newest)] if position.state.gaps.newest else []
    if not listed:
        stop(NOT_FOUND, f"Session {ref} has no gaps{' in that run' if wanted else ''}.")
    run, gaps = listed[-1]
    if number is not None:
        require_pin(ledger)
        note = note or "accepted by the user"
        position = resolve_gap(ledger, session.session_id, run.run, number, note, "cli")
        gaps = position.state.gaps.newest
    if as_json:
        named = {"sessionId": session.session_id, "runId": run.run_id}
        print_json({**named, "gaps": msgspec.to_builtins(gaps)})
        return
    for gap in gaps:
        say(fit(line_of(gap.text), width()))
