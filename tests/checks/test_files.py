"""The digest of a project's files: whatever a check could have read and somebody has changed, it notices."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.checks import files
from interlock.checks.files import digest_of_files


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "tests").mkdir(parents=True)
    (tmp_path / "project" / "tests" / "test_sum.py").write_text("assert 1 + 1 == 2\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "test_more.py").write_text("assert True\n")
    return tmp_path / "project"


def linked_file(project: Path) -> Path:
    """A test that lies outside of the project, behind a link."""
    outside = project.parent / "elsewhere" / "test_more.py"
    (project / "tests" / "test_more.py").symlink_to(outside)
    return outside


def linked_by_links(project: Path) -> Path:
    outside = linked_file(project)
    (project.parent / "second").symlink_to(outside)
    (project / "tests" / "test_more.py").unlink()
    (project / "tests" / "test_more.py").symlink_to(project.parent / "second")
    return outside


def linked_into_a_folder_of_tools(project: Path) -> Path:
    hidden = project / ".venv" / "test_more.py"
    hidden.parent.mkdir()
    hidden.write_text("assert True\n")
    (project / "tests" / "test_more.py").symlink_to(hidden)
    return hidden


def hard_linked(project: Path) -> Path:
    outside = project.parent / "elsewhere" / "test_more.py"
    os.link(outside, project / "tests" / "test_more.py")
    return outside


def named_like_a_folder_of_tools(project: Path) -> Path:
    (project / "src").mkdir()
    (project / "src" / "venv").write_text("assert True\n")
    return project / "src" / "venv"


def package_named_target(project: Path) -> Path:
    (project / "src" / "target").mkdir(parents=True)
    (project / "src" / "target" / "aim.py").write_text("assert True\n")
    return project / "src" / "target" / "aim.py"


@pytest.mark.parametrize(
    "placed",
    [
        linked_file,
        linked_by_links,
        linked_into_a_folder_of_tools,
        hard_linked,
        named_like_a_folder_of_tools,
        package_named_target,
    ],
)
def test_an_edit_is_noticed_wherever_the_file_lies(project: Path, placed: Callable[[Path], Path]) -> None:
    file = placed(project)
    before = digest_of_files(project)
    assert before == digest_of_files(project)
    was = file.stat()
    file.write_text("assert 7777\n")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert digest_of_files(project) != before


def test_an_edit_behind_a_huge_file_is_noticed_though_its_time_was_set_back(project: Path) -> None:
    with open(project / "a_huge_file", "wb") as huge:
        huge.truncate(files.MOST_READ * 4)
    test = project / "tests" / "test_sum.py"
    was, before = test.stat(), digest_of_files(project)
    assert before == digest_of_files(project)
    test.write_text("assert 1 + 1 == 3\n")
    os.utime(test, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert digest_of_files(project) != before


def test_a_file_that_is_too_big_to_read_is_known_by_a_time_that_nobody_sets(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_READ", 4)
    test = project / "tests" / "test_sum.py"
    was, before = test.stat(), digest_of_files(project)
    assert before == digest_of_files(project)
    test.write_text("assert 1 + 1 == 3\n")
    os.utime(test, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert digest_of_files(project) != before


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"test_\xff.py", b"test_\xfe.py"), ("test_é.py".encode(), "test_e\u0301.py".encode())],
)
def test_names_differ_by_their_bytes(project: Path, first: bytes, second: bytes) -> None:
    folder = os.fsencode(project)
    try:
        os.close(os.open(os.path.join(folder, first), os.O_CREAT))
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    before = digest_of_files(project)
    os.rename(os.path.join(folder, first), os.path.join(folder, second))
    assert digest_of_files(project) != before


def test_one_field_does_not_run_into_the_next(project: Path) -> None:
    """A link that is made longer by what the next name loses."""
    (project / "a").symlink_to("x")
    (project / "ztest_it.py").write_text("assert False\n")
    before = digest_of_files(project)
    (project / "a").unlink()
    (project / "a").symlink_to("xz")
    (project / "ztest_it.py").rename(project / "test_it.py")
    assert digest_of_files(project) != before


def test_a_folder_that_leads_outside_or_cannot_be_listed_has_no_digest(project: Path) -> None:
    (project / "more").symlink_to(project.parent / "elsewhere")
    assert digest_of_files(project) == ""
    (project / "more").unlink()
    assert digest_of_files(project)
    if os.getuid() != 0:
        (project / "tests").chmod(0o333)
        assert digest_of_files(project) == ""
        (project / "tests").chmod(0o755)
    (project / "again").symlink_to(project / "tests")
    (project / "round").symlink_to(project)
    assert digest_of_files(project)


def test_a_project_of_more_files_than_are_looked_at_has_no_digest(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 3)
    for name in ("one", "two"):
        (project / name).touch()
    assert digest_of_files(project)
    (project / "three").touch()
    assert digest_of_files(project) == ""


def test_what_tools_write_does_not_count(project: Path) -> None:
    before = digest_of_files(project)
    for name in ("__pycache__", ".git", "node_modules", ".venv"):
        (project / "tests" / name).mkdir()
        (project / "tests" / name / "written").touch()
    (project / ".coverage").touch()
    assert digest_of_files(project) == before
    (project / "Cargo.toml").touch()
    built = digest_of_files(project)
    (project / "target").mkdir()
    (project / "target" / "written").touch()
    assert digest_of_files(project) == built


def test_pipes_sockets_and_loops_of_links_stop_nobody(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of_files(project)
    os.mkfifo(project / "pipe")
    (project / "gone").symlink_to(project / "nothing")
    (project / "one").symlink_to(project / "two")
    (project / "two").symlink_to(project / "one")
    (project / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(project)
        listening.bind("socket")
        assert digest_of_files(project) not in (before, "")


def test_the_digest_of_files_says_whether_they_have_changed(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1")
    before = digest_of_files(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "code.pyc").write_text("")
    assert digest_of_files(tmp_path) == before
    (tmp_path / ".gitignore").write_text("*\n")
    ignoring = digest_of_files(tmp_path)
    (tmp_path / "hidden.py").write_text("")
    assert digest_of_files(tmp_path) not in (before, ignoring)
    (tmp_path / "hidden.py").unlink()
    (tmp_path / ".gitignore").unlink()
    os.utime(tmp_path / "code.py", (1, 1))
    assert digest_of_files(tmp_path) == before
    (tmp_path / "code.py").write_text("x = 2")
    os.utime(tmp_path / "code.py", (1, 1))
    assert digest_of_files(tmp_path) != before
