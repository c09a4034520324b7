"""The one function that replaces files: whole or not at all, with the permissions that were there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from interlock.authoring.sources.atomic_write import replace_file

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [False, True])
def test_the_content_is_replaced_and_no_draft_is_left(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old", durable=durable)
    replace_file(path, b"new\r\n", durable=durable)
    assert path.read_bytes() == b"new\r\n"
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_a_new_file_is_private_unless_a_mode_is_named(tmp_path: Path) -> None:
    replace_file(tmp_path / "private", b"")
    replace_file(tmp_path / "shared", b"", mode=0o640)
    assert mode_of(tmp_path / "private") == 0o600
    assert mode_of(tmp_path / "shared") == 0o640


@posix
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o664)
    replace_file(path, b"new")
    assert mode_of(path) == 0o664


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
