"""One changed byte in a store's files: it is harmless, or `doctor` sees it and a repair undoes the damage."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import apsw
import msgspec
from msgspec import Struct

from interlock.cli.config import Config
from interlock.cli.doctor_checks import Check, run_checks
from interlock.store.protocol import CommitRow
from interlock.store.sqlite.schema import FILE, TABLES
from interlock.store.sqlite.store import PAGE_SIZE
from interlock.store.sqlite.stored_form import inflated
from support.harness import Agent, Bench, gate, steps, workflow

FLOW = workflow(*steps("one", "two"), gate("fork", "left", "right"), *steps("three"))
STAGES = ("folded", "wal")  # the log is in the file, or beside it


class Flip(Struct, frozen=True):
    """Which byte was changed, and what came of it."""

    file: str
    offset: int
    mask: int
    outcome: str
    detail: str = ""


class Subject:
    """A data folder whose copies are damaged: its files, and what is stored in them."""

    def __init__(self, folder: Path, stage: str) -> None:
        self.folder = folder / stage
        self.folder.mkdir()
        bench = Bench(self.folder)
        bench.write(FLOW)
        agent = bench.agent()
        for number in range(6):
            _work(agent, number)
        if stage == "folded":
            agent.ledger.close()
        self.kept = folder / f"{stage}-kept"
        shutil.copytree(self.folder, self.kept, ignore=shutil.ignore_patterns("*-shm"))
        if stage == "wal":
            agent.ledger.close()
        self.rows, self.commits = rows_of(self.kept, folder), commits_of(self.kept, folder)

    def files(self) -> list[Path]:
        return sorted(path for path in self.kept.glob(f"{FILE}*") if path.stat().st_size)


def _work(agent: Agent, number: int) -> None:
    """A session with notes, artifacts, a blocked attempt, a checkpoint and a branch."""
    context = {"goal": f"work number {number}"}
    first = agent.call("start_workflow", workflowId="test.flow", context=context, requestId=f"start {number}")
    second = agent.ack(f"first notes {number} " * 20, artifacts=[{"kind": "x", "n": number}])
    agent.ack("more", at=second)
    agent.ack("no decision")
    agent.look(first)
    agent.ack(f"another way {number}")
    agent.call("resume_session", query="work number")


def flipped(subject: Subject, scratch: Path, chance: Random) -> Flip:
    """Change one byte of a copy, and judge what `doctor` and `doctor --repair` make of it."""
    files = subject.files()
    sizes = [path.stat().st_size for path in files]
    file = chance.choices(files, sizes)[0]
    offset, mask = chance.randrange(file.stat().st_size), 1 << chance.randrange(8)
    return flip_at(subject, scratch, file.name, offset, mask)


def pages_of_commits(subject: Subject) -> list[int]:
    """Return the numbers of the pages that hold the commits, or lead to them."""
    with _copied(subject.kept, subject.kept) as connection:
        pages = connection.execute("SELECT pageno FROM dbstat WHERE name = 'commits'")
        return [int(str(number)) for (number,) in pages]


def in_structure(subject: Subject, chance: Random) -> int:
    """Return where a byte lies that says where the commits of some page are, or how one of them is read."""
    start = (chance.choice(pages_of_commits(subject)) - 1) * PAGE_SIZE
    page = (subject.kept / FILE).read_bytes()[start : start + PAGE_SIZE]
    is_leaf = page[0] == 13
    pointers = range(8 if is_leaf else 12, (8 if is_leaf else 12) + 2 * int.from_bytes(page[3:5], "big"), 2)
    cells = [int.from_bytes(page[at : at + 2], "big") for at in pointers]
    headers = [at + place for at in cells for place in range(13 if is_leaf else 5)]
    return start + chance.choice([*range(pointers.stop), *headers])


def flip_at(subject: Subject, scratch: Path, name: str, offset: int, mask: int) -> Flip:
    if scratch.exists():
        shutil.rmtree(scratch)
    shutil.copytree(subject.kept, scratch)
    scratch.chmod(0o700)
    with (scratch / name).open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ mask]))
    outcome, detail = _judged(subject, scratch)
    return Flip(name, offset, mask, outcome, detail)


def _judged(subject: Subject, scratch: Path) -> tuple[str, str]:
    checks = _doctor(scratch)
    if all(check.ok for check in checks):
        differing = _differing(subject.rows, rows_of(scratch, scratch))
        return ("harmless", "") if not differing else ("UNDETECTED", ", ".join(differing)[:300])
    seen = "; ".join(f"{check.name}: {check.detail}" for check in checks if not check.ok)
    repairs = _doctor(scratch, repairs=True)
    done = "; ".join(
        f"{check.name}: {check.detail}"
        for check in repairs
        if check.name in ("recovery", "session", "witness")
    )
    after = _doctor(scratch)
    if not all(check.ok for check in after):
        left = "; ".join(f"{check.name}: {check.detail}" for check in after if not check.ok)
        return "UNREPAIRED", f"{seen} | {done} | {left}"[:600]
    lost, kept = _lost(subject, scratch)
    known = {session_id for session_id, _ in subject.commits}
    invented = {session_id for session_id, _ in commits_of(scratch, scratch)} - known
    if invented:
        return "INVENTED", f"{sorted(invented)[:3]} | {seen} | {done}"[:600]
    if lost:
        return "LOST", f"{seen} | {done} | {lost}"[:600]
    return ("cut" if kept else "repaired"), f"{seen} | {done}"[:300]


def _doctor(folder: Path, *, repairs: bool = False) -> list[Check]:
    config = Config(data_dir=str(folder), workflows=(str(folder / "workflows-under-test"),))
    return list(run_checks(config, repairs=repairs))


def rows_of(folder: Path, scratch: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row that is not derived for searching, read without indexes from a copy of the files."""
    with _copied(folder, scratch) as connection:
        tables = {}
        for table in TABLES:
            columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            wanted = ", ".join(name for name in columns if name not in ("unindexed", "recent_at"))
            tables[table] = sorted(connection.execute(f"SELECT {wanted} FROM {table} NOT INDEXED"), key=repr)
        return tables


def commits_of(folder: Path, scratch: Path) -> dict[tuple[str, int], CommitRow]:
    with _copied(folder, scratch) as connection:
        columns = ", ".join(CommitRow.__struct_fields__)
        rows = [CommitRow(*row) for row in connection.execute(f"SELECT {columns} FROM commits NOT INDEXED")]
    return {(row.session_id, row.last): row for row in rows}


class _copied:
    """A connection to a copy of a store's files, so that looking changes nothing."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.copy = scratch.parent / f"{scratch.name}-looked-at"
        self.copy.mkdir(exist_ok=True)
        for old in self.copy.iterdir():
            old.unlink()
        for end in ("", "-wal"):
            if (folder / f"{FILE}{end}").exists():
                shutil.copyfile(folder / f"{FILE}{end}", self.copy / f"{FILE}{end}")

    def __enter__(self) -> apsw.Connection:
        self.connection = apsw.Connection(str(self.copy / FILE))
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def _differing(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> list[str]:
    return [table for table in before if before[table] != after[table]]


def _lost(subject: Subject, scratch: Path) -> tuple[list[tuple[str, int]], int]:
    """Return the commits that are neither in a log nor kept beside it, and how many are kept beside it."""
    left = {row.digest for row in commits_of(scratch, scratch).values()}
    with _copied(scratch, scratch) as connection:
        contents = [inflated(body) for (body,) in connection.execute("SELECT body FROM contents")]
    beside = [
        row
        for body in contents
        if body[:1] == b"["
        for row in msgspec.json.decode(body, type=list[CommitRow])
    ]
    kept = {row.digest for row in beside} | {row.body for row in beside}
    gone = [(key, row) for key, row in subject.commits.items() if row.digest not in left]
    lost = [key for key, row in gone if row.digest not in kept and row.body not in kept]
    return lost, len(gone) - len(lost)
