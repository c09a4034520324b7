"""`interlock gc`: remove sessions that nobody has touched for long, and keep those that are marked."""

from __future__ import annotations

import click

from interlock.cli.options import json_option, print_json
from interlock.cli.reach import session_of, with_ledger
from interlock.cli.screen import say
from interlock.ledger.ledger import Ledger
from interlock.ledger.retention import DAY, DAYS, collect, set_keep, stale

SHOWN = 20


@click.command(epilog="Example: interlock gc --days 30 --dry-run")
@click.option("--days", type=click.IntRange(min=0), default=DAYS, show_default=True, help="Without activity.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--keep", "keep", metavar="ID", multiple=True, help="Keep this session for good.")
@click.option("--unkeep", "unkeep", metavar="ID", multiple=True, help="Take the keep mark away.")
@json_option
@with_ledger
def command(
    ledger: Ledger, days: int, dry_run: bool, keep: tuple[str, ...], unkeep: tuple[str, ...], as_json: bool
) -> None:
    """Remove sessions without activity for 90 days, unless they are marked."""
    if keep or unkeep:
        _mark(ledger, keep, unkeep, as_json)
        return
    before = max(0, ledger.clock() - days * DAY)
    if dry_run:
        _foretell(ledger, before, days, as_json)
        return
    removed = collect(ledger.store, before, ledger.clock())
    if as_json:
        print_json({"removed": removed, "days": days})
    else:
        say(f"Removed {_sessions(removed)} without activity for {days} days.")


def _mark(ledger: Ledger, keep: tuple[str, ...], unkeep: tuple[str, ...], as_json: bool) -> None:
    kept = [session_of(ledger, ref).session_id for ref in keep]
    freed = [session_of(ledger, ref).session_id for ref in unkeep]
    for session_id in kept:
        set_keep(ledger.store, session_id, True)
    for session_id in freed:
        set_keep(ledger.store, session_id, False)
    if as_json:
        print_json({"kept": kept, "unkept": freed})
        return
    for session_id in kept:
        say(f"{session_id} is kept until `interlock gc --unkeep` says otherwise.")
    for session_id in freed:
        say(f"{session_id} is kept as long as the others.")


def _foretell(ledger: Ledger, before: int, days: int, as_json: bool) -> None:
    found = stale(ledger.store, before)
    if as_json:
        print_json({"wouldRemove": len(found), "days": days, "sessions": list(found)})
        return
    say(f"Would remove {_sessions(len(found))} without activity for {days} days.")
    for session_id in found[:SHOWN]:
        say(f"  {session_id}")
    if len(found) > SHOWN:
        say(f"  and {len(found) - SHOWN} more; --json lists all")


def _sessions(number: int) -> str:
    return "1 session" if number == 1 else f"{number} sessions"
