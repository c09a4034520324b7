"""`interlock gc`: remove sessions without recent activity, except those marked to be kept."""

from __future__ import annotations

from collections.abc import Sequence

import click

from interlock.cli.options import json_option, with_ledger
from interlock.cli.references import session_of
from interlock.cli.screen import counted, print_json, say
from interlock.ledger.ledger import Ledger
from interlock.ledger.retention import DAY, collect, set_keep, stale

SHOWN = 20


@click.command(epilog="Example: interlock gc --days 30 --dry-run")
@click.option(
    "--days",
    type=click.IntRange(min=0),
    metavar="N",
    help="Remove sessions without activity for this long; default: the setting retention-days.",
)
@click.option("--waiting", is_flag=True, help="Also remove sessions that wait for you at a gate.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--keep", "keep", metavar="ID", multiple=True, help="Mark this session to be kept; repeatable.")
@click.option("--unkeep", "unkeep", metavar="ID", multiple=True, help="Remove that mark; repeatable.")
@json_option
@with_ledger
def command(
    ledger: Ledger,
    days: int | None,
    waiting: bool,
    dry_run: bool,
    keep: tuple[str, ...],
    unkeep: tuple[str, ...],
    as_json: bool,
) -> None:
    """Remove old sessions, or mark sessions to be kept.

    Sessions that wait for you at a gate stay, unless you say --waiting.
    """
    days = ledger.settings.retention_days if days is None else days
    if keep or unkeep:
        mark(ledger, keep, unkeep, as_json)
    elif dry_run:
        preview(ledger, days, waiting, as_json)
    else:
        remove(ledger, days, waiting, as_json)


def mark(ledger: Ledger, keep: Sequence[str], unkeep: Sequence[str], as_json: bool) -> None:
    """Set and remove keep marks, once every session is found."""
    kept = [session_of(ledger, ref).session_id for ref in keep]
    unkept = [session_of(ledger, ref).session_id for ref in unkeep]
    for session_id in kept:
        set_keep(ledger.store, session_id, True)
    for session_id in unkept:
        set_keep(ledger.store, session_id, False)
    if as_json:
        print_json({"kept": kept, "unkept": unkept})
        return
    for session_id in kept:
        say(f"{session_id} is kept until `interlock gc --unkeep`.")
    for session_id in unkept:
        say(f"{session_id} is removed when it is old enough, like any other.")


def preview(ledger: Ledger, days: int, waiting: bool, as_json: bool) -> None:
    """Say which sessions would be removed."""
    session_ids = stale(ledger.store, last_kept(ledger, days), waiting=waiting)
    if as_json:
        print_json({"wouldRemove": len(session_ids), "days": days, "sessions": list(session_ids)})
        return
    say(f"Would remove {counted(len(session_ids), 'session')} without activity for {days} days.")
    for session_id in session_ids[:SHOWN]:
        say(f"  {session_id}")
    if len(session_ids) > SHOWN:
        say(f"  and {len(session_ids) - SHOWN} more; --json lists all")


def remove(ledger: Ledger, days: int, waiting: bool, as_json: bool) -> None:
    """Remove old sessions, and say how many stayed because they wait."""
    before = last_kept(ledger, days)
    held = 0 if waiting else len(stale(ledger.store, before, waiting=True)) - len(stale(ledger.store, before))
    removed = collect(ledger.store, before, ledger.clock(), waiting=waiting)
    if as_json:
        print_json({"removed": removed, "days": days, "waiting": held})
        return
    say(f"Removed {counted(removed, 'session')} without activity for {days} days.")
    if held:
        say(f"{counted(held, 'session')} waiting for you at a gate stayed; --waiting removes them too.")


def last_kept(ledger: Ledger, days: int) -> int:
    """Return the time since which a session must have been active to stay."""
    return max(0, ledger.clock() - days * DAY)
