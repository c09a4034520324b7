"""The keyring: made once, kept private, rotated in three steps, and clear about damage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from interlock.ledger.tokens.keyring import (
    FILE_VARIABLE,
    VARIABLE,
    Keyring,
    KeyringDamaged,
    KeyringFixed,
    Keys,
    RotationOutOfOrder,
)

posix = pytest.mark.skipif(os.name != "posix", reason="checks POSIX file permissions")


def keys(folder: Path, **environment: str) -> Keys:
    return Keys(folder, environment)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_keyring_is_made_once_and_read_again(tmp_path: Path) -> None:
    first = keys(tmp_path / "data").keyring()
    assert len(first.current.secret) == 32
    assert first.previous is None
    assert keys(tmp_path / "data").keyring() == first


@posix
def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    ring = keys(tmp_path / "data")
    ring.keyring()
    assert mode(ring.path) == 0o600
    assert mode(ring.path.parent) == 0o700


@posix
def test_loose_permissions_are_tightened_and_the_keyring_used(tmp_path: Path) -> None:
    ring = keys(tmp_path)
    made = ring.keyring()
    ring.path.chmod(0o644)
    ring.path.parent.chmod(0o755)
    assert keys(tmp_path).keyring() == made
    assert (mode(ring.path), mode(ring.path.parent)) == (0o600, 0o700)


def test_a_new_key_is_believed_before_it_signs_and_the_old_one_until_it_is_retired(tmp_path: Path) -> None:
    ring = keys(tmp_path)
    old = ring.keyring().current
    prepared = ring.prepare()
    new = prepared.prepared
    assert prepared.current == old
    assert prepared.believed() == (old, new)
    activated = ring.activate()
    assert activated.current == new
    assert activated.believed() == (new, old)
    retired = ring.retire()
    assert (retired.believed(), retired.retired) == ((new,), (old,))
    assert list(ring.path.parent.glob("keyring.json?*")) == []


@pytest.mark.parametrize(
    ("done", "step", "told"),
    [
        ((), "activate", "keys prepare` first"),
        ((), "retire", "keys prepare` first"),
        (("prepare",), "prepare", "keys activate`"),
        (("prepare",), "retire", "keys activate` first"),
        (("prepare", "activate"), "prepare", "keys retire` first"),
        (("prepare", "activate"), "activate", "keys prepare` first"),
        (("prepare", "activate", "retire"), "retire", "keys prepare` first"),
    ],
)
def test_a_step_out_of_order_changes_nothing_and_says_what_comes_first(
    tmp_path: Path, done: tuple[str, ...], step: str, told: str
) -> None:
    ring = keys(tmp_path)
    ring.keyring()
    for name in done:
        getattr(ring, name)()
    before = ring.path.read_bytes()
    with pytest.raises(RotationOutOfOrder, match=told):
        getattr(ring, step)()
    assert ring.path.read_bytes() == before


def test_a_running_server_sees_every_step_made_elsewhere(tmp_path: Path) -> None:
    server, operator = keys(tmp_path), keys(tmp_path)
    server.keyring()
    for step in (operator.prepare, operator.activate, operator.retire):
        assert step() == server.keyring()


def test_a_shared_file_is_rotated_where_it_can_be_written(tmp_path: Path) -> None:
    named = {FILE_VARIABLE: str(keys(tmp_path / "made").path)}
    keys(tmp_path / "made").keyring()
    replicas = [keys(tmp_path / name, **named) for name in ("a", "b")]
    for step in (replicas[0].prepare, replicas[0].activate, replicas[0].retire):
        assert step() == replicas[1].keyring()
    Path(named[FILE_VARIABLE]).with_suffix(".lock").unlink()
    Path(named[FILE_VARIABLE]).with_suffix(".lock").mkdir()  # as on a file system that is only read
    with pytest.raises(KeyringFixed, match="run this where the file is made"):
        replicas[0].prepare()


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"{}", b'{"current":{"id":"k","secret":"AAAA"}}', b'{"current":{"id":"\xff","secret":""}}'],
)
def test_a_damaged_keyring_says_what_to_do_and_is_left_alone(tmp_path: Path, damage: bytes) -> None:
    ring = keys(tmp_path)
    ring.keyring()
    ring.path.write_bytes(damage)
    with pytest.raises(KeyringDamaged, match="Restore it from a backup"):
        keys(tmp_path).keyring()
    with pytest.raises(KeyringDamaged):
        keys(tmp_path).prepare()
    assert ring.path.read_bytes() == damage


def test_replicas_take_it_from_the_environment(tmp_path: Path) -> None:
    made = keys(tmp_path / "a").keyring()
    given = {VARIABLE: msgspec.json.encode(made).decode()}
    assert keys(tmp_path / "b", **given).keyring() == made
    assert not (tmp_path / "b").exists()
    with pytest.raises(KeyringFixed, match=VARIABLE):
        keys(tmp_path / "b", **given).prepare()


def test_a_damaged_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyringDamaged, match=VARIABLE):
        keys(tmp_path, **{VARIABLE: "nonsense"}).keyring()


def test_processes_that_start_together_share_one_keyring(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from interlock.ledger.tokens.keyring import Keys;"
        " sys.stdin.read(1); print(Keys(pathlib.Path(sys.argv[1]), {}).keyring().current.id)"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("x")
        racer.stdin.flush()
    seen = {racer.communicate()[0] for racer in racers}
    assert seen == {keys(tmp_path).keyring().current.id + "\n"}


def test_a_key_does_not_show_its_secret(tmp_path: Path) -> None:
    ring: Keyring = keys(tmp_path).keyring()
    assert repr(ring.current.secret)[2:-1] not in repr(ring)
