"""What is recorded of a project's git checkout, and what never is."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from interlock.ledger.git_context import observe

SHA = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40
SECRET = "canary-5ebe2294"


@pytest.fixture
def git(tmp_path: Path) -> Path:
    """Return the git directory of a small checkout on branch main."""
    folder = tmp_path / "project" / ".git"
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "refs/heads/main").write_text(SHA + "\n")
    return folder


def observed(project: Path) -> dict[str, str]:
    """Observe the project, and fail if that hangs or fails."""
    begun = time.monotonic()
    events = {event.key: event.value for event in observe(project)}
    assert time.monotonic() - begun < 60
    assert SECRET not in repr(events)
    assert "root:" not in repr(events)
    return events


def test_branch_head_and_root_are_recorded(git: Path) -> None:
    assert observed(git.parent) == {
        "repo_root": str(git.parent.resolve()),
        "git_branch": "main",
        "git_head_sha": SHA,
    }


def test_a_folder_below_the_root_belongs_to_the_checkout(git: Path) -> None:
    (git.parent / "a/b").mkdir(parents=True)
    assert observed(git.parent / "a/b") == observed(git.parent)


def test_a_detached_head_has_no_branch(git: Path) -> None:
    (git / "HEAD").write_text(OTHER)
    assert observed(git.parent) == {"repo_root": str(git.parent.resolve()), "git_head_sha": OTHER}


@pytest.mark.parametrize("sha", [SHA, "a" * 64])
def test_a_packed_branch_is_found(git: Path, sha: str) -> None:
    (git / "refs/heads/main").unlink()
    lines = ["# pack-refs with: peeled", f"{OTHER} refs/heads/mainly", f"{sha} refs/heads/main", f"^{OTHER}"]
    (git / "packed-refs").write_text("\n".join(lines))
    assert observed(git.parent)["git_head_sha"] == sha


@pytest.mark.parametrize("branch", ["feature/login", "fix-#12", "größe", "v1.2", "a@b"])
def test_usual_branch_names_are_recorded(git: Path, branch: str) -> None:
    (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    assert observed(git.parent)["git_branch"] == branch


@pytest.mark.parametrize(
    "head",
    [
        "ref: /etc/passwd",
        "ref: ../../secret",
        "ref: ../secret",
        "ref: secret",
        "ref: refs/heads/../../../secret",
        "ref: refs/heads//etc/passwd",
        "ref: refs/heads/.hidden",
        "ref: refs/heads/a.lock",
        "ref: refs/heads/",
        "ref: refs/heads/a\x1b[31m",
        "ref: refs/heads/a\u202eb",
        "ref: refs/heads/a b",
        "ref: refs/heads/a\nb",
        "ref: refs/heads/" + "a" * 300,
        "ref: ",
        SECRET,
        "g" * 40,
        SHA[:39],
        SHA + "0",
        SHA.upper(),
    ],
)
def test_a_head_that_is_no_reference_and_no_commit_is_not_recorded(git: Path, head: str) -> None:
    (git.parent / "secret").write_text(SHA)
    (git / "secret").write_text(SHA)
    (git / "HEAD").write_text(head)
    assert observed(git.parent) == {"repo_root": str(git.parent.resolve())}


def replace_by(path: Path, kind: str, outside: Path) -> None:
    """Put something that is not a small regular file in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link to a system file":
        path.symlink_to("/etc/passwd")
    elif kind == "link to a commit":
        path.symlink_to(outside)
    elif kind == "link to itself":
        path.symlink_to(path.name)
    elif kind == "huge":
        path.write_text(f"{OTHER} refs/heads/main\n" * 400_000)
    elif kind == "long":
        path.write_text(SHA + "\n" * 10_000)
    elif kind == "secret":
        path.write_text(SECRET)
    elif kind == "bytes":
        path.write_bytes(b"ref: refs/heads/\xff\xfe\n")


KINDS = [
    "fifo", "directory", "link to a system file", "link to a commit", "link to itself", "huge", "secret",
    "bytes",
]  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, "long"])
@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
def test_only_small_regular_files_are_read(git: Path, tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "outside").write_text(SHA)
    replace_by(git / name, kind, tmp_path / "outside")
    assert "git_head_sha" not in observed(git.parent)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_references_are_read_from_a_regular_file(git: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "outside").write_text(f"{SHA} refs/heads/main")
    (git / "refs/heads/main").unlink()
    replace_by(git / "packed-refs", kind, tmp_path / "outside")
    assert "git_head_sha" not in observed(git.parent)


@pytest.mark.parametrize("line", [f"{SECRET} refs/heads/main", "/etc/passwd refs/heads/main"])
def test_a_packed_line_without_a_commit_is_not_recorded(git: Path, line: str) -> None:
    (git / "refs/heads/main").unlink()
    (git / "packed-refs").write_text(line)
    assert "git_head_sha" not in observed(git.parent)


def test_a_linked_folder_of_references_is_not_followed(git: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/main").write_text(SHA)
    shutil.rmtree(git / "refs/heads")
    (git / "refs/heads").symlink_to(tmp_path / "outside")
    assert "git_head_sha" not in observed(git.parent)


def test_the_marker_itself_may_be_anything(git: Path, tmp_path: Path) -> None:
    project = git.parent
    (tmp_path / "outside").write_text(SECRET)
    for kind in ("fifo", "link to a system file", "link to a commit", "link to itself", "secret", "huge"):
        shutil.rmtree(git) if git.is_dir() else git.unlink(missing_ok=True)
        replace_by(git, kind, tmp_path / "outside")
        assert set(observed(project)) <= {"repo_root"}


@pytest.mark.parametrize("target", ["/etc", "/proc/self/fd", "../secrets", "", "missing", "a\x00b"])
def test_a_marker_leads_only_to_a_git_directory(tmp_path: Path, target: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/HEAD").write_text(SHA)
    project = tmp_path / "project"
    project.mkdir()
    (project / ".git").write_text(f"gitdir: {target}")
    assert observed(project) == {"repo_root": str(project.resolve())}


def test_a_worktree_reads_the_references_of_its_repository(tmp_path: Path) -> None:
    def run(*words: str, at: Path) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
        return subprocess.run(
            ["git", *identity, *words], cwd=at, check=True, capture_output=True, text=True
        ).stdout.strip()

    repository = tmp_path / "repository"
    repository.mkdir()
    run("init", at=repository)
    run("commit", "--allow-empty", "-m", "first", at=repository)
    run("worktree", "add", "-b", "side", str(tmp_path / "side"), at=repository)
    sha = run("rev-parse", "HEAD", at=repository)
    assert observed(repository)["git_head_sha"] == sha
    expected = {"repo_root": str(tmp_path / "side"), "git_branch": "side", "git_head_sha": sha}
    assert observed(tmp_path / "side") == expected
    run("pack-refs", "--all", at=repository)
    assert observed(tmp_path / "side") == expected


def test_a_worktree_shares_only_with_the_repository_around_it(git: Path, tmp_path: Path) -> None:
    own = git / "worktrees" / "side"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side")
    elsewhere = tmp_path / "elsewhere"
    for name in ("objects", "refs/heads"):
        (elsewhere / name).mkdir(parents=True)
    (elsewhere / "HEAD").write_text(SHA)
    (elsewhere / "refs/heads/side").write_text(OTHER)
    (own / "commondir").write_text(str(elsewhere))
    side = tmp_path / "side"
    side.mkdir()
    (side / ".git").write_text(f"gitdir: {own}")
    assert "git_head_sha" not in observed(side)


def test_a_link_leads_to_a_git_directory_too(git: Path, tmp_path: Path) -> None:
    project = tmp_path / "linked"
    project.mkdir()
    (project / ".git").symlink_to(git)
    assert observed(project)["git_head_sha"] == SHA


def test_no_project_shows_nothing(tmp_path: Path) -> None:
    assert list(observe(None)) == []
    assert not observed(tmp_path / "missing").get("git_branch")


def test_a_root_whose_name_cannot_be_printed_is_not_recorded(tmp_path: Path, git: Path) -> None:
    odd = tmp_path / "a\x1b[31m\udcff"
    git.parent.rename(odd)
    assert observed(odd) == {"git_branch": "main", "git_head_sha": SHA}
