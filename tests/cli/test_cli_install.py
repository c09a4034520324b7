"""Writing the server into the configuration of clients: once, beside what is there, with a copy kept."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.clients import is_cached
from support.cli_process import Ran, interlock

pytestmark = pytest.mark.slow

HOMES = {
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "vscode": ".config/Code/User/mcp.json",
}
KEYS = {"codex": "mcp_servers", "vscode": "servers"}


def install(home: Path, *arguments: str) -> Ran:
    return interlock(home / "data", "install", *arguments, HOME=str(home), XDG_CONFIG_HOME="")


def read(home: Path, client: str) -> dict[str, Any]:
    text = (home / HOMES[client]).read_text()
    whole: dict[str, Any] = tomllib.loads(text) if client == "codex" else json.loads(text)
    return whole


@pytest.mark.parametrize("client", HOMES)
def test_an_entry_is_written_once(tmp_path: Path, client: str) -> None:
    assert install(tmp_path, client, "--surface", "gated").code == 0
    entry = read(tmp_path, client)[KEYS.get(client, "mcpServers")]["interlock"]
    assert Path(entry["command"]).is_file()
    assert entry["args"][-2:] == ["mcp", "--surface=gated"]
    before = (tmp_path / HOMES[client]).read_bytes()
    again = install(tmp_path, client, "--surface", "gated")
    assert "unchanged" in again.out
    assert (tmp_path / HOMES[client]).read_bytes() == before
    assert list((tmp_path / HOMES[client]).parent.glob("*.bak")) == []


def test_what_else_stands_there_is_kept_and_copied(tmp_path: Path) -> None:
    path = tmp_path / HOMES["cursor"]
    path.parent.mkdir()
    before = '{"mcpServers": {"other": {"command": "x"}}, "theme": "dark"}'
    path.write_text(before)
    os.chmod(path, 0o600)
    assert install(tmp_path, "cursor").code == 0
    whole = read(tmp_path, "cursor")
    assert (whole["theme"], sorted(whole["mcpServers"])) == ("dark", ["interlock", "other"])
    assert [item.read_text() for item in path.parent.glob("*.bak")] == [before]
    assert path.stat().st_mode & 0o777 == 0o600


def test_other_tables_of_a_toml_file_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / HOMES["codex"]
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "x"\n\n[mcp_servers.interlock]\ncommand = "old"\n\n[other]\nkey = 1\n')
    assert "changed" in install(tmp_path, "codex").out
    text, whole = path.read_text(), read(tmp_path, "codex")
    assert text.startswith('# mine\nmodel = "x"\n')
    assert (whole["other"], whole["mcp_servers"]["interlock"]["args"]) == ({"key": 1}, ["mcp"])
    assert install(tmp_path, "codex").out.startswith("interlock: unchanged")


@pytest.mark.parametrize(("client", "text"), [("vscode", '{ // mine\n"servers": {}}'), ("codex", "= broken")])
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, client: str, text: str) -> None:
    path = tmp_path / HOMES[client]
    path.parent.mkdir(parents=True)
    path.write_text(text)
    ran = install(tmp_path, client)
    assert (ran.code, path.read_text()) == (1, text)
    assert "--print" in ran.err


def test_printing_changes_nothing(tmp_path: Path) -> None:
    ran = install(tmp_path, "claude-code", "--print", "--name", "gates")
    assert ran.json["mcpServers"]["gates"]["type"] == "stdio"
    assert not (tmp_path / HOMES["claude-code"]).exists()


def test_a_project_has_its_own_file(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    assert install(tmp_path, "claude-code", "--project", str(project)).code == 0
    entry = json.loads((project / ".mcp.json").read_text())["mcpServers"]["interlock"]
    assert (entry["command"], entry["args"]) == ("interlock", ["mcp"])
    assert str(tmp_path) not in (project / ".mcp.json").read_text()
    assert install(tmp_path, "codex", "--project", str(project)).code == 2


def test_workflows_of_a_project_are_named_from_the_project(tmp_path: Path) -> None:
    (tmp_path / "project" / "flows").mkdir(parents=True)
    folder = str(tmp_path / "project")
    ran = install(tmp_path, "cursor", "--project", folder, "--workflows", f"team={folder}/flows")
    assert ran.err == "Restart cursor to use it.\n"
    entry = json.loads((tmp_path / "project" / ".cursor" / "mcp.json").read_text())["mcpServers"]["interlock"]
    assert entry["args"] == ["mcp", "--workflows=team=flows"]
    ran = install(tmp_path, "cursor", "--project", folder, "--workflows", str(tmp_path))
    assert "names folders of this machine" in ran.err


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml")],
)
def test_a_client_that_was_moved_is_found(tmp_path: Path, client: str, variable: str, file: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    ran = interlock(tmp_path / "data", "install", client, HOME=str(tmp_path), **{variable: str(elsewhere)})
    assert ran.code == 0
    assert (elsewhere / file).is_file()
    assert not (tmp_path / HOMES[client]).exists()


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers.interlock]\nenv = { A = "1" }\ncommand = "old"\nstartup_timeout_sec = 20\n',
        '[mcp_servers."interlock"]\ncommand = "old"\nstartup_timeout_sec = 20\n'
        '[mcp_servers.interlock.env]\nA = "1"\n',
        'mcp_servers.interlock = { command = "old", startup_timeout_sec = 20, env = { A = "1" } }\n',
    ],
)
def test_there_is_one_entry_for_codex_and_its_other_keys_stay(tmp_path: Path, text: str) -> None:
    path = tmp_path / HOMES["codex"]
    path.parent.mkdir()
    path.write_text(text)
    assert "changed" in install(tmp_path, "codex").out
    entry = read(tmp_path, "codex")["mcp_servers"]["interlock"]
    assert (entry["args"], entry["env"], entry["startup_timeout_sec"]) == (["mcp"], {"A": "1"}, 20)
    assert entry["command"] != "old"
    assert "unchanged" in install(tmp_path, "codex").out


@pytest.mark.parametrize(
    ("prefix", "cached"),
    [
        ("/home/me/.cache/uv/archive-v0/Xy1", True),
        ("/home/me/.local/pipx/.cache/0f3a", True),
        ("/home/me/.local/share/uv/tools/interlock", False),
        ("/home/me/project/.venv", False),
    ],
)
def test_an_installation_in_a_cache_is_recognised(prefix: str, cached: bool) -> None:
    assert is_cached(prefix) is cached


def test_lookup_is_installed_with_a_warning(tmp_path: Path) -> None:
    ran = install(tmp_path, "cursor", "--surface", "lookup")
    assert ran.code == 0
    assert "today's clients refuse" in ran.err


def test_a_name_that_would_break_the_file_is_refused(tmp_path: Path) -> None:
    assert install(tmp_path, "codex", "--name", "a]b").code == 2
    assert not (tmp_path / ".codex").exists()
