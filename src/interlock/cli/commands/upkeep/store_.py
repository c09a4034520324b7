"""`interlock store`: which database is in use, its version, and copies of it."""

from __future__ import annotations

from collections import Counter

import click

from interlock.cli.compose import require_postgres, store_of
from interlock.cli.config import BadConfig, Config, without_password
from interlock.cli.options import json_option, store_option, with_config
from interlock.cli.screen import CHECK_FAILED, counted, inform, person_reads, print_json, say, stop
from interlock.core.values import Json

PROGRESS_EVERY = 1000


@click.group()
def command() -> None:
    """Show the database, upgrade its tables, or copy it to another."""


@command.command(epilog="Example: interlock store status --store postgresql://db.internal/interlock")
@json_option
@with_config
@store_option
def status(config: Config, as_json: bool) -> None:
    """Show the database, its version, and how much it holds. Exits with 1 if it cannot be used as it is."""
    known, usable = _postgres_status(config) if config.postgres_url else _sqlite_status(config)
    if as_json:
        print_json({"ok": usable, **known})
    else:
        for name, value in known.items():
            say(f"{name:<10}  {value}")
    if not usable:
        raise click.exceptions.Exit(CHECK_FAILED)


def _postgres_status(config: Config) -> tuple[dict[str, Json], bool]:
    require_postgres()
    from interlock.store.postgres.database import database_status
    from interlock.store.postgres.tables import MIGRATIONS

    found = database_status(config.postgres_url or "")
    known: dict[str, Json] = {
        "store": found.name,
        "server": found.server,
        "schema": f"{found.schema_version} of {len(MIGRATIONS)}",
        "sessions": found.sessions,
        "unhealthy": found.unhealthy,
        "unindexed": found.unindexed,
        "bytes": found.size,
    }
    return known, found.schema_version == len(MIGRATIONS) and not found.unhealthy


def _sqlite_status(config: Config) -> tuple[dict[str, Json], bool]:
    database = config.database
    if not database.exists():
        return {"store": str(database), "sessions": 0}, True
    from interlock.store.sqlite.schema import MIGRATIONS
    from interlock.store.sqlite.store import open_store

    store = open_store(database.parent, database.name)
    try:
        sessions, unhealthy, after = 0, 0, ""
        with store.reading() as reader:
            while session_ids := reader.session_ids(after, PROGRESS_EVERY):
                rows = [reader.session(session_id) for session_id in session_ids]
                sessions, after = sessions + len(rows), session_ids[-1]
                unhealthy += sum(row is not None and row.health != "healthy" for row in rows)
        known: dict[str, Json] = {
            "store": str(database),
            "server": f"SQLite {store.sqlite_version}",
            "schema": f"{store.schema_version} of {len(MIGRATIONS)}",
            "sessions": sessions,
            "unhealthy": unhealthy,
            "bytes": sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*")),
        }
    finally:
        store.close()
    return known, not unhealthy


@command.command(epilog="Example: interlock store migrate --store postgresql://db.internal/interlock")
@with_config
@store_option
def migrate(config: Config) -> None:
    """Create or upgrade the tables. Servers also do this when they start; here it can be done before."""
    store_of(config).close()
    where = without_password(config.postgres_url) if config.postgres_url else config.database
    say(f"{where} is up to date.")


@command.command(
    epilog="Example: interlock store copy sqlite:///srv/interlock/work.db postgresql://db.internal/interlock"
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy everything from one database into another, and check every log in the copy.

    Can be stopped and run again: sessions that are already in TO are skipped. Stop the servers on FROM first,
    and start them on TO: what waits to be sent is copied too. Not in a database are keys/ and notify.toml of
    the data folder (keys, principals, groups, delegations, channels). Exits with 1 if a session was not
    copied.
    """
    from interlock.ledger.transfer.store_copy import copy_store

    if source == target:
        raise BadConfig("FROM and TO are the same database")
    source_config = Config(store=source)
    if source_config.postgres_url is None and not source_config.database.exists():
        stop(CHECK_FAILED, f"There is no database {source_config.database}.")
    read_from, write_to = store_of(source_config), store_of(Config(store=target))
    outcomes: Counter[str] = Counter()
    refused: dict[str, Json] = {}
    try:
        for session in copy_store(read_from, write_to):
            outcomes[session.outcome] += 1
            if session.outcome == "refused":
                refused[session.session_id] = session.reason
                if not as_json:
                    inform(f"{session.session_id}: {session.reason}")
            if outcomes.total() % PROGRESS_EVERY == 0 and person_reads():
                inform(f"{outcomes.total()} sessions…")
    finally:
        read_from.close()
        write_to.close()
    if as_json:
        print_json({"copied": outcomes["copied"], "present": outcomes["present"], "refused": refused})
    else:
        say(
            f"Copied {counted(outcomes['copied'], 'session')}; {outcomes['present']} were there already;"
            f" {len(refused)} refused."
        )
    if refused:
        raise click.exceptions.Exit(CHECK_FAILED)
