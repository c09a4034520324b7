"""Workflows from git: real repositories, and the ones that are refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from interlock.authoring.sources.discovery import plugins
from interlock.authoring.sources.git import GitError, Repository, add_repository, repositories
from support.authored import head, write
from support.cli_process import PATIENCE, Ran, agent, environment, interlock

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

WHO = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str, given: str = "") -> str:
    command = ["git", *WHO, "-C", str(folder), *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, env=environment(), timeout=PATIENCE, check=True
    )
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    folder = write(tmp_path / "flows", {"w.json": json.dumps(head(id="x"))})
    git(folder, "init", "-q")
    commit(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def url(folder: Path) -> str:
    return f"file://{folder}"


def source(data: Path, *arguments: str) -> Ran:
    return interlock(data, "source", *arguments)


def listed(data: Path) -> set[str]:
    return {workflow["workflowId"] for workflow in interlock(data, "list", "--json").json["workflows"]}


@pytest.mark.slow
def test_a_repository_is_added_listed_updated_and_removed(flows: Path, data: Path) -> None:
    added = source(data, "add", url(flows))
    assert (added.code, added.err) == (0, "")
    assert added.out == f"flows added at {git(flows, 'rev-parse', 'HEAD')[:12]}: 1 workflow\n"
    assert "flows.x" in listed(data)

    write(flows, {"v.json": json.dumps(head(id="y"))})
    now = commit(flows)
    assert source(data, "update").out == f"flows updated at {now[:12]}: 2 workflows\n"
    assert {"flows.x", "flows.y"} <= listed(data)
    assert source(data, "update", "flows").out == f"flows unchanged at {now[:12]}: 2 workflows\n"
    assert source(data, "list", "--json").json["sources"] == [
        {"name": "flows", "url": url(flows), "commit": now}
    ]

    assert source(data, "remove", "flows").code == 0
    assert "flows.x" not in listed(data)
    assert (
        source(data, "list").out == "No repository has been added. Add one with `interlock source add URL`.\n"
    )


def test_a_server_offers_what_was_added(flows: Path, data: Path) -> None:
    source(data, "add", url(flows), "--name", "team")
    with agent(data) as one:
        found = one.call("list_workflows")["workflows"]
        assert "team.x" in {entry["workflowId"] for entry in found}


def test_a_name_is_taken_once(flows: Path, data: Path) -> None:
    assert source(data, "add", url(flows)).code == 0
    assert source(data, "add", url(flows)).code == 5
    assert source(data, "add", url(flows), "--name", "other").code == 0


def test_a_branch_may_be_chosen(flows: Path, data: Path) -> None:
    git(flows, "checkout", "-q", "-b", "next")
    write(flows, {"n.json": json.dumps(head(id="new"))})
    commit(flows)
    git(flows, "checkout", "-q", "main")
    assert add_repository(data, url(flows), "old") != add_repository(data, url(flows), "new", "next")
    assert {"old.x", "new.x", "new.new"} <= listed(data)
    assert "old.new" not in listed(data)


@pytest.mark.parametrize(
    "bad",
    [
        "ext::sh -c touch% /tmp/x",
        "git://example.org/x",
        "http://example.org/x",
        "--upload-pack=touch",
        "/etc",
        "https://user:secret@example.org/x",
        "https://token@example.org/x",
        "https://example.org/",
        "ssh://-oProxyCommand=x/y",
        "https://example.org/a b",
        "https://[bad/x",
        "",
    ],
)
def test_a_url_that_git_must_not_see_is_refused(data: Path, bad: str) -> None:
    assert isinstance(add_repository(data, bad, "team"), GitError)
    assert not (data / "sources").exists()


@pytest.mark.parametrize("ref", ["--help", "a..b", "a@{1}", "-x", "a b", "a//b", "x.lock", "a/.b", "", "a\n"])
def test_an_invalid_ref_is_refused(flows: Path, data: Path, ref: str) -> None:
    assert isinstance(add_repository(data, url(flows), "team", ref), GitError)


@pytest.mark.parametrize("name", ["wr", "Team", "a.b", "../x", "1x", ".x", "a/b"])
def test_a_name_that_is_not_a_namespace_is_refused(flows: Path, data: Path, name: str) -> None:
    """Rule 38."""
    assert isinstance(add_repository(data, url(flows), name), GitError)


def refused(data: Path, folder: Path) -> str:
    found = add_repository(data, url(folder), "team")
    assert isinstance(found, GitError)
    assert [path for path in (data / "sources").iterdir() if path.is_dir()] == []
    return found.reason


def test_a_symbolic_link_is_refused(flows: Path, data: Path) -> None:
    (flows / "link.json").symlink_to("/etc/passwd")
    commit(flows)
    assert refused(data, flows) == "'link.json' is a symbolic link"


def planted(folder: Path, *entries: str) -> None:
    """Commit entries that no working tree could hold."""
    blob = git(folder, "hash-object", "-w", "w.json")
    git(
        folder,
        "update-index",
        "--add",
        "--index-info",
        given="".join(f"100644 {blob}\t{entry}\n" for entry in entries),
    )
    git(folder, "commit", "-q", "-m", "x")


def test_more_files_than_anyone_needs_are_refused(flows: Path, data: Path) -> None:
    planted(flows, *(f"many/{number}.json" for number in range(5_001)))
    assert refused(data, flows) == "the repository has 5,002 files; the limit is 5,000"


@pytest.mark.slow
def test_more_bytes_than_anyone_needs_are_refused(flows: Path, data: Path) -> None:
    with open(flows / "large.bin", "wb") as stream:
        stream.truncate(50_000_001)
    commit(flows)
    assert "bytes; the limit is 50,000,000" in refused(data, flows)


@pytest.mark.parametrize("path", ["a\\b.json", "a\x07b.json"])
def test_an_unsafe_path_is_refused(flows: Path, data: Path, path: str) -> None:
    planted(flows, path)
    assert refused(data, flows) == "a path contains control characters or backslashes"


@pytest.mark.slow
def test_submodules_are_not_fetched(flows: Path, data: Path, tmp_path: Path) -> None:
    inner = write(tmp_path / "inner", {"i.json": json.dumps(head(id="inner"))})
    git(inner, "init", "-q")
    commit(inner)
    git(flows, "-c", "protocol.file.allow=always", "submodule", "add", "-q", url(inner), "inner")
    commit(flows)
    assert isinstance(add_repository(data, url(flows), "team"), Repository)
    assert "team.inner" not in listed(data)


def test_hooks_and_filters_of_a_repository_never_run(flows: Path, data: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    template = write(tmp_path / "template", {"hooks/post-checkout": f"#!/bin/sh\ntouch {mark}\n"})
    (template / "hooks" / "post-checkout").chmod(0o755)
    settings = write(tmp_path / "home", {".gitconfig": f"[init]\n\ttemplateDir = {template}\n"})
    ran = interlock(data, "source", "add", url(flows), HOME=str(settings), XDG_CONFIG_HOME=str(settings))
    assert ran.code == 0
    assert not mark.exists()


@pytest.mark.slow
def test_a_repository_that_is_gone_leaves_the_clone_as_it_was(flows: Path, data: Path) -> None:
    source(data, "add", url(flows))
    shutil.rmtree(flows)
    ran = source(data, "update")
    assert ran.code == 1
    assert "was not changed" in ran.err
    assert "flows.x" in listed(data)


@pytest.mark.parametrize("arguments", [("update", "nobody"), ("remove", "nobody"), ("remove", "../data")])
def test_an_unknown_source_is_not_found(data: Path, arguments: tuple[str, ...]) -> None:
    assert source(data, *arguments).code == 3


def test_broken_files_of_a_repository_are_reported(flows: Path, data: Path) -> None:
    write(flows, {"broken.json": "{"})
    commit(flows)
    ran = source(data, "add", url(flows))
    assert ran.code == 0
    assert ran.err.startswith("1 file cannot be used; see `interlock validate flows=")


def test_a_damaged_index_forgets_names_but_not_files(flows: Path, data: Path) -> None:
    add_repository(data, url(flows))
    (data / "sources" / ".index.json").write_text("{")
    assert repositories(data) == []
    assert "flows.x" in listed(data)


def installed(folder: Path, name: str) -> None:
    about = f"{name}_flows-1.0.dist-info"
    write(
        folder,
        {
            f"{name}_flows/__init__.py": "",
            f"{name}_flows/w.json": json.dumps(head(id="x")),
            f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}-flows\nVersion: 1.0\n",
            f"{about}/entry_points.txt": f"[interlock.workflows]\n{name} = {name}_flows\n",
        },
    )
    os.utime(folder, ns=(time.time_ns(), time.time_ns()))


def test_packages_are_asked_again_only_when_something_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, kept = tmp_path / "site", tmp_path / "plugins.json"
    installed(site, "acme")
    monkeypatch.syspath_prepend(str(site))
    assert [plugin.namespace for plugin in plugins(kept)] == ["acme"]
    kept.write_bytes(kept.read_bytes().replace(b'"acme"', b'"kept"'))
    assert [plugin.namespace for plugin in plugins(kept)] == ["kept"]
    installed(site, "other")
    assert sorted(str(plugin.namespace) for plugin in plugins(kept)) == ["acme", "other"]


def test_the_command_line_offers_the_workflows_of_packages(data: Path, tmp_path: Path) -> None:
    installed(tmp_path / "site", "acme")
    found = interlock(data, "list", "--json", PYTHONPATH=str(tmp_path / "site")).json["workflows"]
    assert "acme.x" in {item["workflowId"] for item in found}
