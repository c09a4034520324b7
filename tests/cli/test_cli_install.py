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


def install(home: Path, *arguments: str, command: str = "install") -> Ran:
    """Run the command where only the fake clients of this test can be found."""
    where = {"HOME": str(home), "XDG_CONFIG_HOME": "", "PATH": str(home / "bin")}
    return interlock(home / "data", command, *arguments, **where)


def uninstall(home: Path, *arguments: str) -> Ran:
    return install(home, *arguments, command="uninstall")


def fake_client(home: Path, name: str, code: int = 0) -> Path:
    """Put an executable on the path that records its arguments, one a line; return the record."""
    (home / "bin").mkdir(exist_ok=True)
    record, script = home / f"{name}.args", home / "bin" / name
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {record}\nexit {code}\n')
    script.chmod(0o755)
    return record


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
    assert install(tmp_path, "claude-desktop", "--project", str(project)).code == 2


def test_codex_reads_the_file_of_a_project_that_is_trusted(tmp_path: Path) -> None:
    fake_client(tmp_path, "codex")
    ran = install(tmp_path, "codex", "--project", str(tmp_path / "project"), "--decisions", "user")
    assert "once you trust the project" in ran.err
    whole = tomllib.loads((tmp_path / "project" / ".codex" / "config.toml").read_text())
    assert whole["mcp_servers"]["interlock"] == {"command": "interlock", "args": ["mcp", "--decisions=user"]}


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
    where = {"HOME": str(tmp_path), "PATH": "", variable: str(elsewhere)}
    ran = interlock(tmp_path / "data", "install", client, **where)
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


COMMANDS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "vscode": "code"}


def recorded(record: Path) -> list[str]:
    return record.read_text().splitlines()


@pytest.mark.parametrize("client", COMMANDS)
def test_a_client_on_the_path_adds_the_server_itself(tmp_path: Path, client: str) -> None:
    record = fake_client(tmp_path, COMMANDS[client])
    ran = install(tmp_path, client, "--surface", "gated")
    assert (ran.code, ran.out) == (0, f"interlock: added by {client}\n")
    assert not (tmp_path / HOMES[client]).exists()
    arguments = recorded(record)
    if client == "vscode":
        assert arguments[0] == "--add-mcp"
        entry = json.loads(arguments[1])
        assert (entry["name"], entry["type"], entry["args"]) == (
            "interlock",
            "stdio",
            ["mcp", "--surface=gated"],
        )
        return
    expected = {
        "claude-code": [
            "mcp",
            "add",
            "--scope",
            "user",
            "--transport",
            "stdio",
            "interlock",
            "--",
            "COMMAND",
        ],
        "codex": ["mcp", "add", "interlock", "--", "COMMAND"],
        "gemini": ["mcp", "add", "--scope", "user", "interlock", "COMMAND", "--"],
    }[client]
    command = next(word for word in arguments if word.startswith("/"))
    assert Path(command).is_file()
    assert arguments == [
        *(command if word == "COMMAND" else word for word in expected),
        "mcp",
        "--surface=gated",
    ]


def test_a_client_that_fails_leaves_the_file_to_us(tmp_path: Path) -> None:
    fake_client(tmp_path, "codex", code=1)
    ran = install(tmp_path, "codex")
    assert ran.code == 0
    assert "`codex mcp` failed" in ran.err
    assert read(tmp_path, "codex")["mcp_servers"]["interlock"]["args"] == ["mcp"]


def test_an_entry_that_is_there_is_changed_in_the_file_and_keeps_what_the_user_added(tmp_path: Path) -> None:
    record = fake_client(tmp_path, "claude")
    (tmp_path / ".claude.json").write_text(
        '{"mcpServers": {"interlock": {"type": "stdio", "command": "old", "args": [], "env": {"A": "1"}}}}'
    )
    assert install(tmp_path, "claude-code").out.startswith("interlock: changed in")
    assert not record.exists()
    assert read(tmp_path, "claude-code")["mcpServers"]["interlock"]["env"] == {"A": "1"}


def test_the_file_of_a_project_is_written_by_us(tmp_path: Path) -> None:
    record = fake_client(tmp_path, "claude")
    assert install(tmp_path, "claude-code", "--project", str(tmp_path / "project")).code == 0
    assert (tmp_path / "project" / ".mcp.json").is_file()
    assert not record.exists()


URL = "https://interlock.example.org"
REMOTE = ("--url", URL, "--token-env", "TEAM_TOKEN")
HTTP_ENTRIES: dict[str, dict[str, Any]] = {
    "claude-code": {
        "type": "http",
        "url": f"{URL}/mcp",
        "headers": {"Authorization": "Bearer ${TEAM_TOKEN}"},
    },
    "cursor": {"url": f"{URL}/mcp", "headers": {"Authorization": "Bearer ${env:TEAM_TOKEN}"}},
    "codex": {"url": f"{URL}/mcp", "bearer_token_env_var": "TEAM_TOKEN"},
    "gemini": {
        "type": "http",
        "url": f"{URL}/mcp",
        "headers": {"Authorization": "Bearer ${TEAM_TOKEN}"},
    },
    "vscode": {
        "type": "http",
        "url": f"{URL}/mcp",
        "headers": {"Authorization": "Bearer ${input:interlock-token}"},
    },
}


@pytest.mark.parametrize("client", HTTP_ENTRIES)
def test_a_server_at_an_address_is_written_with_the_name_of_its_token(tmp_path: Path, client: str) -> None:
    ran = install(tmp_path, client, *REMOTE)
    assert ran.code == 0, ran.err
    whole = read(tmp_path, client)
    assert whole[KEYS.get(client, "mcpServers")]["interlock"] == HTTP_ENTRIES[client]
    told = "asks for the token once" if client == "vscode" else "Put the token in TEAM_TOKEN"
    assert told in ran.err
    assert "unchanged" in install(tmp_path, client, *REMOTE).out
    if client == "vscode":
        (question,) = whole["inputs"]
        assert (question["id"], question["password"]) == ("interlock-token", True)


def test_clients_add_a_server_at_an_address_by_their_own_command(tmp_path: Path) -> None:
    records = {name: fake_client(tmp_path, COMMANDS[name]) for name in ("claude-code", "codex", "gemini")}
    for client in records:
        assert (
            install(tmp_path, client, *REMOTE, "--surface", "session").out
            == f"interlock: added by {client}\n"
        )
    url, header = f"{URL}/mcp/session", ["--header", "Authorization: Bearer ${TEAM_TOKEN}"]
    add = ["mcp", "add", "--scope", "user", "--transport", "http"]
    assert recorded(records["claude-code"]) == [*add, "interlock", url, *header]
    assert recorded(records["gemini"]) == [*add, *header, "interlock", url]
    assert recorded(records["codex"]) == [
        *("mcp", "add", "interlock", "--url", url),
        *("--bearer-token-env-var", "TEAM_TOKEN"),
    ]


def test_vscode_adds_a_server_without_a_token_itself_and_its_file_gets_the_question_else(
    tmp_path: Path,
) -> None:
    record = fake_client(tmp_path, "code")
    assert install(tmp_path, "vscode", "--url", URL, "--name", "open").out == "open: added by vscode\n"
    assert json.loads(recorded(record)[1]) == {"name": "open", "type": "http", "url": f"{URL}/mcp"}
    assert install(tmp_path, "vscode", *REMOTE).out.startswith("interlock: added in")


def test_an_entry_that_changes_its_form_keeps_nothing_of_the_old_one(tmp_path: Path) -> None:
    for client in ("codex", "cursor"):
        assert install(tmp_path, client).code == 0
        assert "changed" in install(tmp_path, client, *REMOTE).out
        entry = read(tmp_path, client)[KEYS.get(client, "mcpServers")]["interlock"]
        assert entry == HTTP_ENTRIES[client]
        assert "changed" in install(tmp_path, client).out
        entry = read(tmp_path, client)[KEYS.get(client, "mcpServers")]["interlock"]
        assert sorted(entry) == ["args", "command"]


def test_a_project_file_holds_an_address_and_no_token(tmp_path: Path) -> None:
    ran = install(tmp_path, "cursor", "--project", str(tmp_path / "project"), *REMOTE, "--surface", "gated")
    assert ran.code == 0
    text = (tmp_path / "project" / ".cursor" / "mcp.json").read_text()
    assert f"{URL}/mcp/gated" in text
    assert "${env:TEAM_TOKEN}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("codex", "--url", "interlock.example.org"), "takes an address"),
        (("codex", "--url", "ftp://host"), "takes an address"),
        (("codex", "--url", "https://[host"), "takes an address"),
        (("codex", "--url", "https://me:secret@host"), "no user, password"),
        (("codex", "--url", "https://host/mcp?token=secret"), "no user, password"),
        (("codex", "--url", URL, "--token-env", "il_secret-token"), "not a token"),
        (("codex", "--token-env", "TEAM_TOKEN"), "Give --url too"),
        (("codex", "--url", f"{URL}/mcp/gated", "--surface", "session"), "already names /mcp/gated"),
        (("codex", "--url", URL, "--workflows", "."), "belong to `interlock serve`"),
        (("codex", "--url", URL, "--decisions", "user"), "belong to `interlock serve`"),
        (("claude-desktop", "--url", URL), "Connectors"),
    ],
)
def test_what_cannot_be_an_address_is_refused_without_repeating_a_secret(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = install(tmp_path, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "secret" not in ran.err
    assert not (tmp_path / ".codex").exists()


def test_a_token_over_plain_http_is_warned_of(tmp_path: Path) -> None:
    assert "unencrypted" in install(tmp_path, "codex", "--url", "http://host", "--token-env", "T").err
    local = install(tmp_path, "codex", "--url", "http://127.0.0.1:8750", "--token-env", "T", "--name", "l")
    assert "unencrypted" not in local.err


@pytest.mark.parametrize("client", HOMES)
def test_an_entry_is_removed_and_the_rest_stays(tmp_path: Path, client: str) -> None:
    assert install(tmp_path, client, "--name", "other").code == 0
    before = read(tmp_path, client)
    assert install(tmp_path, client).code == 0
    ran = uninstall(tmp_path, client)
    assert (ran.code, ran.out) == (0, f"interlock: removed from {tmp_path / HOMES[client]}\n")
    assert read(tmp_path, client) == before
    assert str(tmp_path / "data") in ran.err
    again = uninstall(tmp_path, client)
    assert (again.code, again.out) == (3, "")
    assert "no server 'interlock'" in again.err
    assert "Its servers: other." in again.err


def test_the_last_entry_of_codex_leaves_its_other_tables_as_written(tmp_path: Path) -> None:
    path = tmp_path / HOMES["codex"]
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "x"\n\n[other]\nkey = 1\n')
    assert install(tmp_path, "codex").code == 0
    assert uninstall(tmp_path, "codex").code == 0
    assert read(tmp_path, "codex") == {"model": "x", "other": {"key": 1}}
    assert path.read_text().startswith('# mine\nmodel = "x"\n\n[other]\nkey = 1\n')


def test_the_question_for_a_token_goes_with_its_entry(tmp_path: Path) -> None:
    assert install(tmp_path, "vscode", *REMOTE).code == 0
    assert uninstall(tmp_path, "vscode").code == 0
    assert read(tmp_path, "vscode") == {"inputs": [], "servers": {}}


def test_a_client_on_the_path_removes_the_server_itself(tmp_path: Path) -> None:
    assert install(tmp_path, "codex").code == 0
    file, script = tmp_path / HOMES["codex"], tmp_path / "bin" / "codex"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {tmp_path}/args\n: > {file}\n')
    script.chmod(0o755)
    assert uninstall(tmp_path, "codex").out == "interlock: removed by codex\n"
    assert (tmp_path / "args").read_text() == "mcp remove interlock "


def test_what_the_clients_own_command_leaves_is_removed_from_the_file(tmp_path: Path) -> None:
    assert install(tmp_path, "claude-code").code == 0
    fake_client(tmp_path, "claude")
    assert uninstall(tmp_path, "claude-code").out.startswith("interlock: removed from")
    assert read(tmp_path, "claude-code")["mcpServers"] == {}


def test_a_project_file_is_cleaned_where_it_is_named(tmp_path: Path) -> None:
    project = str(tmp_path / "project")
    assert install(tmp_path, "cursor", "--project", project).code == 0
    assert uninstall(tmp_path, "cursor").code == 3
    assert uninstall(tmp_path, "cursor", "--project", project).code == 0


def test_the_installed_server_serves_the_chosen_policy(tmp_path: Path) -> None:
    assert install(tmp_path, "cursor", "--decisions", "client").code == 0
    assert read(tmp_path, "cursor")["mcpServers"]["interlock"]["args"] == ["mcp", "--decisions=client"]
