"""The checks of `interlock doctor`: the folder, the keys, the database file, and every session in it.

Each check is a value for the command to print. Repairs are made only on request, and report what they did.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from interlock.cli.compose import ledger_of, library_of
from interlock.cli.config import Config
from interlock.cli.screen import inform, person_reads
from interlock.core.run.surface_policy import EXECUTION, NAVIGATION
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import Finding, Renders, inspect, mark, repair, session_batches
from interlock.ledger.outbox.unsent import outbox_status
from interlock.ledger.tokens.keyring import KeyringDamaged, Keys
from interlock.store.protocol import StoreBusy, StoreCorrupt, StoreTooNew, StoreUnavailable
from interlock.store.sqlite.lock import FileLock
from interlock.store.sqlite.salvage import FewerRows, replace_damaged
from interlock.store.sqlite.store import SqliteStore, is_mislabelled, lock_path

SAFE_SQLITE = (3, 51, 3)  # older ones can corrupt a file that several connections write
LEAST_ROOM = 100 * 2**20
BATCH = 500
PROGRESS_EVERY = 10_000
LOCK_PATIENCE = 1.0
RUN_REPAIR = "interlock doctor --repair"
RESTORE = (
    "put back the file that ends in -wal if you have it; else `interlock doctor --repair` goes on without"
)
MOST_NAMED = 50


class Check(Struct, frozen=True, omit_defaults=True):
    """The result of one check. `fix` says what to do about it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def run_checks(config: Config, *, repairs: bool) -> Iterator[Check]:
    """Check everything, cheapest first; with `repairs`, repair what is damaged."""
    folder = config.folder
    if folder.exists() and not folder.is_dir():
        yield Check("store", False, f"{folder} is not a folder", "name a folder with --data-dir")
        return
    if config.data_dir and not folder.exists():
        yield Check(
            "store", False, f"there is no folder {folder}", "correct --data-dir or INTERLOCK_DATA_DIR"
        )
        return
    for shadowed in library_of(config).listing().shadowed:
        yield Check("workflows", True, shadowed.message)
    if config.postgres_url is not None:
        yield from _postgres(config, repairs)
        return
    database = config.database
    if not database.exists():
        yield Check("store", True, f"nothing is stored in {database.parent} yet")
        return
    yield _permissions(folder, database)
    yield _keyring(folder)
    free = shutil.disk_usage(database.parent).free
    size = sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*"))
    detail = f"{size / 2**20:.1f} MB stored, {free / 2**30:.1f} GB free"
    yield Check("disk", free > LEAST_ROOM, detail, "free some space, or run `interlock gc`")
    yield _lock(database)
    drafts = [*database.parent.glob(f"{database.name}.salvaged*"), *(folder / "keys").glob("*keyring.json.*")]
    old = [path.name for path in drafts if time.time() - path.stat().st_mtime > 60]
    leftovers = f"unfinished files: {', '.join(old)}" if old else "none"
    yield Check("leftovers", not old, leftovers, "remove them" if old else "")
    cache = folder / "cache"  # it rebuilds itself, if it can be written
    if cache.exists() and not os.access(cache, os.W_OK):
        yield Check("cache", False, "cannot be written", f"make {cache} writable, or remove it")
    else:
        files = [path for path in cache.rglob("*") if path.is_file()]
        yield Check("cache", True, f"{len(files)} compiled workflows" if cache.exists() else "empty")
    yield from _store(config, repairs)


def _postgres(config: Config, repairs: bool) -> Iterator[Check]:
    """Check the keys and every session; the database's files are its server's business."""
    yield _keyring(config.folder)
    try:
        ledger = ledger_of(config)
    except (StoreTooNew, StoreUnavailable, StoreCorrupt, StoreBusy) as error:
        yield Check("store", False, str(error), "see the message")
        return
    from interlock.store.postgres.database import database_status

    status = database_status(config.postgres_url or "")
    yield Check("version", True, f"{status.name}, version {status.server}, schema {status.schema_version}")
    yield Check("file", True, "does not apply: PostgreSQL checks its own files")
    yield from _sessions(ledger, repairs)
    ledger.store.close()


def _permissions(folder: Path, database: Path) -> Check:
    """Only the owner may read the data directory and the database."""
    if os.name != "posix":
        return Check("permissions", True, "left to the system")
    paths = [folder, database, folder / "keys", folder / "keys" / "keyring.json"]
    readable = [path for path in paths if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077]
    if not readable:
        return Check("permissions", True, "only the owner can read")
    names = ", ".join(path.name for path in readable)
    fix = f"chmod -R go-rwx {folder}" if database.is_relative_to(folder) else f"chmod go-rwx {database}"
    return Check("permissions", False, f"others can read {names}", fix)


def _keyring(folder: Path) -> Check:
    try:
        keyring = Keys(folder).keyring()
    except KeyringDamaged as error:
        return Check("keyring", False, str(error), "restore or remove the keyring file")
    except OSError as error:
        return Check("keyring", False, f"cannot be read: {error.strerror}", "make it yours and readable")
    return Check("keyring", True, f"signs with {keyring.current.id}")


def _lock(database: Path) -> Check:
    """The system frees a lock when its holder ends, so a lock that stays taken has a live holder."""
    lock = FileLock(lock_path(database), LOCK_PATIENCE)
    try:
        with lock:
            return Check("lock", True, "free")
    except StoreBusy:
        return Check("lock", False, f"held for over {LOCK_PATIENCE:g} s", "end the process that hangs")
    finally:
        lock.close()


def _store(config: Config, repairs: bool) -> Iterator[Check]:
    try:
        ledger = ledger_of(config)
    except (StoreTooNew, StoreUnavailable) as error:
        mislabelled = isinstance(error, StoreTooNew) and is_mislabelled(config.database)
        hint = "; its tables are those of this version: the number in its header is damaged"
        fix = RUN_REPAIR if mislabelled else "see the message"
        yield Check("store", False, f"{error}{hint * mislabelled}", fix)
        if mislabelled and repairs:
            yield from _salvaged(config)
        return
    except StoreCorrupt as error:
        yield Check("store", False, str(error), RUN_REPAIR)
        if repairs:
            yield from _salvaged(config)
        return
    store = ledger.store
    assert isinstance(store, SqliteStore)
    store.repairing = repairs
    is_safe = tuple(int(part) for part in store.sqlite_version.split(".")) >= SAFE_SQLITE
    detail = f"SQLite {store.sqlite_version}, schema {store.schema_version}"
    yield Check("version", is_safe, detail, "" if is_safe else "update apsw")
    damage = "; ".join(store.integrity()[:3])
    try:
        if not damage and repairs and store.missing():
            damage = "its log was cut short"
        if not damage:
            yield Check("file", True, "SQLite reports no errors")
            yield from _triggers(store, repairs)
            yield from _heads(ledger, repairs)
            yield from _sessions(ledger, repairs)
    except StoreCorrupt as error:
        damage = str(error)
    store.close()
    if damage:
        yield Check("file", False, damage, RUN_REPAIR)
        if repairs:
            yield from _salvaged(config)


def _salvaged(config: Config) -> Iterator[Check]:
    """Recover the file, then check every session again, because rows may be missing."""
    try:
        saved, damaged_file = replace_damaged(config.database.parent, config.database.name)
    except FewerRows as error:
        yield Check("recovery", False, f"refused: {error}", "keep the file as it is")
        return
    losses = ", ".join(saved.damaged) or "none"
    recovered = f"{sum(saved.rows.values())} rows recovered, losses in: {losses}"
    yield Check(
        "recovery",
        True,
        f"{recovered}; the damaged file is {damaged_file.name}; restart every server that used it",
    )
    ledger = ledger_of(config)
    store = ledger.store
    assert isinstance(store, SqliteStore)
    store.repairing = True
    yield from _sessions(ledger, repairs=True)
    yield from _heads(ledger, repairs=True)
    left = "; ".join(store.integrity()[:3])
    yield Check("file", not left, left or "SQLite reports no errors", "restore a backup" if left else "")
    store.close()


def _triggers(store: SqliteStore, repairs: bool) -> Iterator[Check]:
    """Report triggers that are gone: without them another program may change what was recorded."""
    if not (lost := store.lost_triggers()):
        return
    names = ", ".join(lost)
    if repairs:
        store.restore_triggers(lost)
        yield Check("triggers", True, f"defined again: {names}")
    else:
        yield Check("triggers", False, f"missing or changed: {names}", RUN_REPAIR)


def _heads(ledger: Ledger, repairs: bool) -> Iterator[Check]:
    """Compare each session with the witness of its head: a log that was cut short leaves no other trace."""
    store = ledger.store
    assert isinstance(store, SqliteStore)
    if not (missing := store.missing()):
        yield Check("heads", True, "every session has the events that it had")
        return
    for lost in missing[:MOST_NAMED]:
        detail = f"{lost.session_id} had {lost.had} events and has {lost.has}: the newest are lost"
        yield Check("heads", repairs, detail, "" if repairs else RESTORE)
    if len(missing) > MOST_NAMED:
        yield Check("heads", repairs, f"{len(missing) - MOST_NAMED} more sessions have lost events")
    if repairs:
        store.accept_heads()


def _sessions(ledger: Ledger, repairs: bool) -> Iterator[Check]:
    """Check every session's chain, and every row against what the events make of it."""
    unsent = outbox_status(ledger.store)
    detail = f"{unsent.waiting} waiting, {unsent.dead} undeliverable"
    yield Check("messages", not unsent.dead, detail, "see `interlock notify status`" if unsent.dead else "")
    checked, damaged = 0, 0
    for batch in session_batches(ledger.store, BATCH):
        for session_id in batch:
            finding = inspect(ledger.store, session_id, ledger.pins)
            if finding is not None:
                damaged += 1
                can_repair = repairs and not finding.violations
                yield _repaired(ledger, finding) if can_repair else _reported(ledger, finding)
        checked += len(batch)
        if batch and checked % PROGRESS_EVERY == 0 and person_reads():
            inform(f"{checked} sessions checked…")
    sound = repairs or damaged == 0
    yield Check("sessions", sound, f"{checked} checked, {damaged} damaged", "" if sound else RUN_REPAIR)


def _reported(ledger: Ledger, finding: Finding) -> Check:
    if finding.health != "healthy":
        mark(ledger.store, finding)
    details = finding.rows or finding.violations
    listed = f": {', '.join(details[:5])}" if details else ""
    fix = "update Interlock" if finding.health == "unknown_version" else RUN_REPAIR
    if finding.violations:
        fix = f"report it, with what `interlock verify {finding.session_id}` says"
    return Check("session", False, f"{finding.session_id}: {finding.reason}{listed}", fix)


def _repaired(ledger: Ledger, finding: Finding) -> Check:
    session_id = finding.session_id
    repaired = repair(
        ledger.store,
        session_id,
        ledger.pins,
        ledger.library,
        renders(),
        owner=ledger.owner,
        now=ledger.clock(),
    )
    if isinstance(repaired, Finding):
        return _reported(ledger, repaired)
    remaining = inspect(ledger.store, session_id, ledger.pins)
    if remaining is not None and remaining.violations:
        return _reported(ledger, remaining)
    if remaining is not None:
        return Check("session", False, f"{session_id}: {', '.join(remaining.rows)} cannot be recovered")
    parts = []
    if repaired.dropped:
        return Check("session", True, f"{session_id}: removed; it has no events and no handle")
    if repaired.recovered:
        parts.append(f"{repaired.recovered} commands found again by the chain")
    if repaired.removed:
        named = f"{', '.join(repaired.removed[:MOST_NAMED])}{', …' * (len(repaired.removed) > MOST_NAMED)}"
        parts.append(f"removed {len(repaired.removed)} events ({named}), kept as {repaired.kept_as}")
    if repaired.rebuilt:
        parts.append(f"rebuilt {', '.join(repaired.rebuilt[:5])}")
    if repaired.lost_responses:
        parts.append(f"{repaired.lost_responses} recorded responses are lost")
    summary = "; ".join(parts) or "its head and responses were restored"
    return Check("session", True, f"{session_id}: repaired; {summary}")


def renders() -> Renders:
    """Return the surfaces whose responses can be rendered again from what is recorded."""
    from interlock.surfaces.execution.render import answer
    from interlock.surfaces.navigation.render import again

    return {EXECUTION.name: answer, NAVIGATION.name: again}
