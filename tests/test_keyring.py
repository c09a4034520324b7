"""The keyring: made once, kept private, rotated by command, and clear about damage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from interlock.ledger.keyring import VARIABLE, Keyring, KeyringDamaged, KeyringFixed, Keys

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


def test_rotation_keeps_one_key_back(tmp_path: Path) -> None:
    ring = keys(tmp_path)
    first = ring.keyring()
    second = ring.rotate()
    assert second.previous == first.current
    assert second.current not in first.believed()
    assert ring.rotate().previous == second.current
    assert list(ring.path.parent.glob("keyring.json?*")) == []


def test_a_running_server_sees_a_rotation_made_elsewhere(tmp_path: Path) -> None:
    server = keys(tmp_path)
    server.keyring()
    assert keys(tmp_path).rotate() == server.keyring()


@pytest.mark.parametrize("damage", [b"", b"{", b"{}", b'{"current":{"id":"k","secret":"AAAA"}}'])
def test_a_damaged_keyring_says_what_to_do_and_is_left_alone(tmp_path: Path, damage: bytes) -> None:
    ring = keys(tmp_path)
    ring.keyring()
    ring.path.write_bytes(damage)
    with pytest.raises(KeyringDamaged, match="Restore it from a backup"):
        keys(tmp_path).keyring()
    with pytest.raises(KeyringDamaged):
        keys(tmp_path).rotate()
    assert ring.path.read_bytes() == damage


def test_replicas_take_it_from_the_environment(tmp_path: Path) -> None:
    made = keys(tmp_path / "a").keyring()
    given = {VARIABLE: msgspec.json.encode(made).decode()}
    assert keys(tmp_path / "b", **given).keyring() == made
    assert not (tmp_path / "b").exists()
    with pytest.raises(KeyringFixed, match=VARIABLE):
        keys(tmp_path / "b", **given).rotate()


def test_a_damaged_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyringDamaged, match=VARIABLE):
        keys(tmp_path, **{VARIABLE: "nonsense"}).keyring()


def test_processes_that_start_together_share_one_keyring(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from interlock.ledger.keyring import Keys;"
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
