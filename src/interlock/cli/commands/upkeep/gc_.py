"""`interlock gc`: remove sessions without recent activity, except those marked to be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from interlock.cli.options import EVERYBODY, json_option, owner_option, with_ledger
from interlock.cli.references import session_named
from interlock.cli.screen import USAGE, counted, print_json, say, stop
from interlock.core.principals import LOCAL
from interlock.core.values import Json
from interlock.ledger.ledger import Ledger
from interlock.ledger.retention import DAY, PROFILES, collect, set_keep, stale

SHOWN = 20


@click.command(epilog="Example: interlock gc --days 30 --dry-run")
@click.option(
    "--days",
    type=click.IntRange(min=0),
    metavar="N",
    help="Remove sessions without activity for this long; default: the setting retention-days.",
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    help="Instead of --days: 30, 90 or 183 days.",
)
@click.option("--waiting", is_flag=True, help="Also remove sessions that wait for you at a gate.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--keep", "keep", metavar="ID", multiple=True, help="Mark this session to be kept; repeatable.")
@click.option("--unkeep", "unkeep", metavar="ID", multiple=True, help="Remove that mark; repeatable.")
@owner_option
@json_option
@with_ledger
def command(
    ledger: Ledger,
    days: int | None,
    profile: str | None,
    waiting: bool,
    dry_run: bool,
    keep: tuple[str, ...],
    unkeep: tuple[str, ...],
    owner: str,
    as_json: bool,
) -> None:
    """Remove old sessions, or mark sessions to be kept.

    Sessions that wait for you at a gate stay, unless you say --waiting. Those of others stay, unless you
    name their --owner. Of each one that is removed, the digest of its last event is kept.
    """
    if days is not None and profile is not None:
        stop(USAGE, "Give --days or --profile, not both.")
    if days is None:
        days = PROFILES[profile] if profile is not None else ledger.settings.retention_days
    if keep or unkeep:
        mark_kept(ledger, keep, unkeep, owner, as_json)
    elif dry_run:
        preview(ledger, days, waiting, owner, as_json)
    else:
        remove_old(ledger, days, waiting, owner, as_json)


def mark_kept(ledger: Ledger, keep: Sequence[str], unkeep: Sequence[str], owner: str, as_json: bool) -> None:
    """Set and remove keep marks, once every session is found."""
    kept = [session_named(ledger, ref, owner).session_id for ref in keep]
    unkept = [session_named(ledger, ref, owner).session_id for ref in unkeep]
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


def preview(ledger: Ledger, days: int, waiting: bool, owner: str, as_json: bool) -> None:
    """Say which sessions would be removed, and whose they are."""
    listed = stale(ledger.store, last_kept(ledger, days), waiting=waiting, owner=chosen(owner))
    whose = Counter(listed.values())
    if as_json:
        owners: dict[str, Json] = {**whose}
        print_json({"wouldRemove": len(listed), "days": days, "owners": owners, "sessions": list(listed)})
        return
    say(f"Would remove {counted(len(listed), 'session')} without activity for {days} days{split(whose)}.")
    for session_id, name in list(listed.items())[:SHOWN]:
        say(f"  {session_id}  {name}" if owner == EVERYBODY else f"  {session_id}")
    if len(listed) > SHOWN:
        say(f"  and {len(listed) - SHOWN} more; --json lists all")


def remove_old(ledger: Ledger, days: int, waiting: bool, owner: str, as_json: bool) -> None:
    """Remove old sessions, and say whose they were and how many stayed because they wait."""
    before, whose = last_kept(ledger, days), chosen(owner)
    removed = collect(ledger.store, before, ledger.clock(), waiting=waiting, owner=whose)
    held = 0 if waiting else len(stale(ledger.store, before, waiting=True, owner=whose))
    if as_json:
        owners: dict[str, Json] = {**removed}
        print_json({"removed": removed.total(), "days": days, "owners": owners, "waiting": held})
        return
    say(f"Removed {counted(removed.total(), 'session')} without activity for {days} days{split(removed)}.")
    if held:
        say(f"{counted(held, 'session')} waiting for you at a gate stayed; --waiting removes them too.")
    others = 0 if whose is None else len(stale(ledger.store, before, waiting=waiting))
    if others:
        say(f"{counted(others, 'session')} of others stayed; --owner all removes them too.")


def chosen(owner: str) -> str | None:
    """Return the owner to name to the store; None for everybody."""
    return None if owner == EVERYBODY else owner


def split(owners: Counter[str]) -> str:
    """Say how many sessions are whose, where not all are the local user's."""
    if not set(owners) - {LOCAL.name}:
        return ""
    return ": " + ", ".join(f"{count} of {name}" for name, count in sorted(owners.items()))


def last_kept(ledger: Ledger, days: int) -> int:
    """Return the time since which a session must have been active to stay."""
    return max(0, ledger.clock() - days * DAY)
