"""Power loss: whatever was never synced may be gone, torn or out of order; what was acknowledged is not.

A file system in between remembers which bytes have reached the disk. After each answer the power fails, and
a new store is opened on what the disk can be left with.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from interlock.ledger.log.health import examine
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import SqliteStore, open_store
from support.harness import Agent, Bench, FormAnswer, gate, steps, workflow
from support.log import logged_events

SECTOR = 512
TURNS = 24
FLOW = workflow(
    {
        "id": "again",
        "type": "loop",
        "title": "Again",
        "loop": {"type": "for", "count": 100, "maxIterations": 100},
        "body": [*steps("once"), gate("ok", "yes", "no")],
    },
)


class Disk:
    """What has surely reached the disk, by file of the folder, and what was written since."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.safe: dict[str, bytes] = {}
        self.loose: dict[str, list[tuple[int, bytes | None]]] = {}
        self.before_sync: Callable[[], None] = lambda: None

    def written(self, name: str, offset: int, data: bytes | None) -> None:
        """A write, or with no data a cut at that length."""
        self.loose.setdefault(name, []).append((offset, data))

    def synced(self, name: str) -> None:
        self.before_sync()
        self.safe[name] = applied(self.safe.get(name, b""), self.loose.pop(name, []))

    def dropped(self, name: str) -> None:
        self.safe.pop(name, None)
        self.loose.pop(name, None)

    def after_power_loss(self, folder: Path, chance: random.Random | None) -> None:
        """Leave in the folder what the disk holds: nothing that was loose, or any sectors of it."""
        folder.mkdir()
        for name in {*self.safe, *self.loose}:
            loose = self.loose.get(name, []) if chance else []
            survivors = [
                piece for write in loose for piece in sectors(write) if chance and chance.random() < 0.5
            ]
            (folder / name).write_bytes(applied(self.safe.get(name, b""), survivors))


def sectors(write: tuple[int, bytes | None]) -> Iterator[tuple[int, bytes | None]]:
    offset, data = write
    if data is None:
        yield write
        return
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR - (offset + start) % SECTOR)
        yield offset + start, data[start:end]
        start = end


def applied(content: bytes, writes: list[tuple[int, bytes | None]]) -> bytes:
    result = bytearray(content)
    for offset, data in writes:
        if data is None:
            del result[offset:]
            continue
        result.extend(bytes(max(0, offset - len(result))))
        result[offset : offset + len(data)] = data
    return bytes(result)


class LosingVFS(apsw.VFS):
    """SQLite's own file system, with every write and sync told to the disk."""

    def __init__(self, disk: Disk, usual: str) -> None:
        super().__init__("losing", usual, makedefault=True)
        self.disk = disk
        self.usual = usual

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name))
        if path.parent != self.disk.folder:
            return apsw.VFSFile(self.usual, name, flags)
        return LosingFile(self.disk, path.name, self.usual, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        if Path(filename).parent == self.disk.folder:
            self.disk.dropped(Path(filename).name)


class LosingFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str, *opening: Any) -> None:
        super().__init__(*opening)
        self.disk, self.name = disk, name

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self.disk.written(self.name, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self.disk.written(self.name, newsize, None)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.disk.synced(self.name)


def alone(connection: apsw.Connection) -> None:
    """A file system in Python shares no memory, so the log of writes needs the file to itself."""
    connection.pragma("locking_mode", "exclusive")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk, usual = Disk(tmp_path), apsw.vfs_names()[0]
    vfs = LosingVFS(disk, usual)
    apsw.connection_hooks.append(alone)
    yield disk
    apsw.connection_hooks.remove(alone)
    apsw.set_default_vfs(usual)
    vfs.unregister()


def acknowledged(agent: Agent) -> Iterator[FormAnswer]:
    """A stream of answers: advances, blocked attempts, gates and checkpoints."""
    yield agent.start("test.flow")
    for number in range(TURNS):
        match number % 4:
            case 0:
                yield agent.ack(f"note {number} " + "x" * 900)
            case 1:
                yield agent.ack(f"blocked {number}")
            case 2:
                yield agent.decide("yes", at=agent.last)
            case _:
                tokens = {name: agent.last[name] for name in ("stateToken", "checkpointToken")}
                output = {"notesMarkdown": f"kept {number}"}
                yield agent.call("checkpoint_workflow", **tokens, output=output)


def kept(folder: Path, answers: list[FormAnswer]) -> int:
    """How many attempts of the acknowledged answers the store in the folder holds; it must be sound."""
    store = open_store(folder)
    assert store.integrity() == []
    with store.reading() as reader:
        session = reader.session(answers[0]["session"]["sessionId"])
    found = 0
    if session is not None:
        assert examine(store, session).health == "healthy"
        found = 1 + len(logged_events(store, session.session_id, "advance_recorded"))
    store.close()
    return found


def shortfalls(bench: Bench, disk: Disk, level: str, chance: random.Random | None) -> list[int]:
    """Pull the plug after every answer; give how many answers were missing each time."""
    bench.write(FLOW)
    agent = bench.agent()
    store = agent.ledger.store
    assert isinstance(store, SqliteStore)
    store._connection.pragma("synchronous", level)
    missing, answers = [], list[FormAnswer]()
    for number, answer in enumerate(acknowledged(agent)):
        assert not answer["_error"], answer
        store._connection.pragma("wal_autocheckpoint", 20)
        answers.append(answer)
        after = bench.folder / f"after-{number}"
        disk.after_power_loss(after, chance)
        missing.append(len(answers) - kept(after, answers))
    store.close()
    return missing


@pytest.mark.parametrize("torn", [False, True], ids=["nothing loose survives", "any sectors survive"])
def test_nothing_that_was_acknowledged_is_lost_with_the_power(bench: Bench, disk: Disk, torn: bool) -> None:
    """Rule 43: the answer is sent after COMMIT, and COMMIT waits for the disk."""
    assert set(shortfalls(bench, disk, "full", random.Random(3) if torn else None)) == {0}


def test_power_that_fails_within_a_command_takes_all_of_it_or_nothing(bench: Bench, disk: Disk) -> None:
    """Rule 43: just before each sync, with any loose sectors on disk, only the call in flight is in doubt."""
    chance, answers, moments = random.Random(5), list[FormAnswer](), list[tuple[Path, int]]()
    bench.write(FLOW)
    agent = bench.agent()

    def fail() -> None:
        after = bench.folder / f"within-{len(moments)}"
        disk.after_power_loss(after, chance)
        moments.append((after, len(answers)))

    disk.before_sync = fail
    for answer in acknowledged(agent):
        agent.ledger.store._connection.pragma("wal_autocheckpoint", 20)  # type: ignore[attr-defined]
        answers.append(answer)
    assert len(moments) > TURNS
    for after, told in moments:
        assert kept(after, answers) - told in (0, 1)


def test_a_weaker_setting_would_lose_answers(bench: Bench, disk: Disk) -> None:
    """The check can fail: without a sync at each commit the last answers are gone."""
    assert max(shortfalls(bench, disk, "normal", None)) > 0


def test_a_new_keyring_has_its_place_on_disk_before_it_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token must not outlive its key: the file, its folder and the folder above are all synced."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc/self/fd to see which file a descriptor is open on")
    monkeypatch.setattr(os, "fsync", noted)
    Keys(tmp_path / "data").keyring()
    assert synced[0].startswith(".keyring.json.")
    assert synced[1:] == ["keys", "data"]
