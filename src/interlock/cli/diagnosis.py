"""What `interlock doctor` looks at: the folder, the keys, the file, and every session in it.

Each check is a value; the command prints them. Repairs are asked for explicitly and say what they did.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from interlock.cli.compose import ledger_of
from interlock.cli.config import Config
from interlock.cli.screen import person_reads, talk
from interlock.core.run.surface_policy import EXECUTION, NAVIGATION
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import Finding, Renders, Repaired, inspect, mark, repair, session_batches
from interlock.ledger.tokens.keyring import KeyringDamaged, Keys
from interlock.store.protocol import StoreBusy, StoreCorrupt, StoreTooNew, StoreUnavailable
from interlock.store.sqlite.lock import FileLock
from interlock.store.sqlite.salvage import replace_damaged
from interlock.store.sqlite.store import FILE, LOCK, SqliteStore

SAFE_SQLITE = (3, 51, 3)  # older ones can corrupt a file that several connections write
LEAST_ROOM = 100 * 2**20
BATCH = 500
WORTH_A_WORD = 10_000
LONGEST_TURN = 1.0
RUN_REPAIR = "interlock doctor --repair"


class Check(Struct, frozen=True, omit_defaults=True):
    """One thing looked at. `fix` is what to do about it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def examine(config: Config, *, mend: bool) -> Iterator[Check]:
    """Look at everything, cheapest first; with `mend`, repair what is damaged."""
    folder = config.folder
    if folder.exists() and not folder.is_dir():
        yield Check("store", False, f"{folder} is not a folder", "name a folder with --data-dir")
        return
    if not (folder / FILE).exists():
        yield Check("store", True, f"nothing is stored in {folder} yet")
        return
    yield _permissions(folder)
    yield _keyring(folder)
    yield _room(folder)
    yield _lock(folder)
    yield _leftovers(folder)
    yield _cache(folder)
    yield from _store(config, mend)


def _keyring(folder: Path) -> Check:
    try:
        keyring = Keys(folder).keyring()
    except KeyringDamaged as error:
        return Check("keyring", False, str(error), "restore or remove the keyring file")
    except OSError as error:
        return Check("keyring", False, f"cannot be read: {error.strerror}", "make it yours and readable")
    return Check("keyring", True, f"signs with {keyring.current.id}")


def _permissions(folder: Path) -> Check:
    """Nothing in the data directory is for others to read."""
    if os.name != "posix":
        return Check("permissions", True, "left to the system")
    paths = [folder, folder / FILE, folder / "keys", folder / "keys" / "keyring.json"]
    open_ones = [path for path in paths if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077]
    if not open_ones:
        return Check("permissions", True, "only the owner can read")
    names = ", ".join(path.name for path in open_ones)
    return Check("permissions", False, f"others can read {names}", f"chmod -R go-rwx {folder}")


def _room(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    size = sum(path.stat().st_size for path in folder.glob(f"{FILE}*"))
    detail = f"{size / 2**20:.1f} MB stored, {free / 2**30:.1f} GB free"
    return Check("disk", free > LEAST_ROOM, detail, "make room, or run `interlock gc`")


def _lock(folder: Path) -> Check:
    """The system frees a lock when its holder ends, so one that stays taken has a living holder."""
    lock = FileLock(folder / LOCK, LONGEST_TURN)
    try:
        with lock:
            return Check("lock", True, "free")
    except StoreBusy:
        return Check("lock", False, f"held for over {LONGEST_TURN:g} s", "end the process that hangs")
    finally:
        lock.close()


def _leftovers(folder: Path) -> Check:
    drafts = [*folder.glob(f"{FILE}.salvaged*"), *(folder / "keys").glob("keyring.json.*")]
    old = [path.name for path in drafts if time.time() - path.stat().st_mtime > 60]
    if old:
        return Check("leftovers", False, f"unfinished files: {', '.join(old)}", "remove them")
    return Check("leftovers", True, "none")


def _cache(folder: Path) -> Check:
    """The cache of compiled workflows rebuilds itself; only what it cannot write is worth a word."""
    cache = folder / "cache"
    if not cache.exists():
        return Check("cache", True, "empty")
    if not os.access(cache, os.W_OK):
        return Check("cache", False, "cannot be written", f"make {cache} writable, or remove it")
    files = [path for path in cache.rglob("*") if path.is_file()]
    return Check("cache", True, f"{len(files)} compiled workflows")


def _store(config: Config, mend: bool) -> Iterator[Check]:
    try:
        ledger = ledger_of(config)
    except (StoreTooNew, StoreUnavailable) as error:
        yield Check("store", False, str(error), "see the message")
        return
    except StoreCorrupt as error:
        yield Check("store", False, str(error), RUN_REPAIR)
        if mend:
            yield from _salvaged(config)
        return
    yield _version(ledger)
    wrong = _integrity(ledger)
    if wrong:
        ledger.store.close()
        yield Check("file", False, wrong, RUN_REPAIR)
        if mend:
            yield from _salvaged(config)
        return
    yield Check("file", True, "SQLite finds nothing wrong")
    yield from _sessions(ledger, mend)
    ledger.store.close()


def _version(ledger: Ledger) -> Check:
    assert isinstance(ledger.store, SqliteStore)
    found = ledger.store.sqlite_version
    ok = tuple(int(part) for part in found.split(".")) >= SAFE_SQLITE
    detail = f"SQLite {found}, schema {ledger.store.schema_version}"
    return Check("version", ok, detail, "" if ok else "update apsw")


def _integrity(ledger: Ledger) -> str:
    assert isinstance(ledger.store, SqliteStore)
    return "; ".join(ledger.store.integrity()[:3])


def _salvaged(config: Config) -> Iterator[Check]:
    """Recover the file, then look at every session again: rows may be missing."""
    saved, kept = replace_damaged(config.folder)
    lost = ", ".join(saved.damaged) or "none"
    detail = f"{sum(saved.rows.values())} rows recovered, losses in: {lost}; the damaged file is {kept.name}"
    yield Check("recovery", True, f"{detail}; restart every server that was running on it")
    ledger = ledger_of(config)
    yield from _sessions(ledger, mend=True)
    ledger.store.close()


def _sessions(ledger: Ledger, mend: bool) -> Iterator[Check]:
    """Every session's chain, and every row against what the events make."""
    number, damaged = 0, 0
    for found in _findings(ledger):
        number += 1
        if found is None:
            continue
        damaged += 1
        yield _mended(ledger, found) if mend else _reported(ledger, found)
    detail = f"{number} checked, {damaged} damaged"
    yield Check("sessions", mend or damaged == 0, detail, "" if mend or not damaged else RUN_REPAIR)


def _findings(ledger: Ledger) -> Iterator[Finding | None]:
    seen = 0
    for batch in session_batches(ledger.store, BATCH):
        yield from (inspect(ledger.store, session_id, ledger.pins) for session_id in batch)
        seen += len(batch)
        if seen % WORTH_A_WORD == 0 and seen and person_reads():
            talk(f"{seen} sessions checked…")


def _reported(ledger: Ledger, found: Finding) -> Check:
    if found.health != "healthy":
        mark(ledger.store, found)
    rows = f": {', '.join(found.rows[:5])}" if found.rows else ""
    detail = f"{found.session_id}: {found.reason}{rows}"
    fix = "update Interlock" if found.health == "unknown_version" else RUN_REPAIR
    return Check("session", False, detail, fix)


def _mended(ledger: Ledger, found: Finding) -> Check:
    done = repair(
        ledger.store,
        found.session_id,
        ledger.pins,
        ledger.library,
        renders(),
        owner=ledger.settings.owner,
        now=ledger.clock(),
    )
    if isinstance(done, Finding):
        return _reported(ledger, done)
    left = inspect(ledger.store, found.session_id, ledger.pins)
    if left is not None:
        return Check("session", False, f"{found.session_id}: {', '.join(left.rows)} cannot be recovered")
    return Check("session", True, f"{found.session_id}: repaired; {_did(done)}")


def _did(done: Repaired) -> str:
    parts = []
    if done.kept_as:
        parts.append(f"cut {done.cut_events} events, kept as {done.kept_as}")
    if done.rebuilt:
        parts.append(f"rebuilt {', '.join(done.rebuilt[:5])}")
    if done.lost_responses:
        parts.append(f"{done.lost_responses} recorded responses are lost")
    return "; ".join(parts) or "its head and responses were restored"


def renders() -> Renders:
    """The surfaces whose responses can be rendered again from what is recorded."""
    from interlock.surfaces.execution.render import answer
    from interlock.surfaces.navigation.render import again

    return {EXECUTION.name: answer, NAVIGATION.name: again}
