"""Where each client lists its MCP servers, what an entry looks like there, and how to add one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from interlock.authoring.sources.atomic_write import replace_file
from interlock.core.values import Json

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

ClientName = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]
Change = Literal["added", "changed", "unchanged"]
Fields: TypeAlias = dict[str, Json]

OURS = ("type", "command", "args", "url", "httpUrl", "headers", "bearer_token_env_var")  # fields of an entry


class UnreadableConfig(Exception):
    """A configuration file that its client would not accept either; it is not changed."""


class LocalServer(Struct, frozen=True):
    """A server that the client starts."""

    name: str
    command: str
    args: tuple[str, ...]


class RemoteServer(Struct, frozen=True):
    """A server at an address; its token is in a variable of the client's environment, never in a file."""

    name: str
    url: str
    token_env: str | None = None


ServerEntry: TypeAlias = LocalServer | RemoteServer


class ClientConfig(Struct, frozen=True):
    """A client: its file for the user, its file within a project, and what an entry looks like in them.

    `typed` are the kinds of server whose entry says its type. `secret` is how the file names a variable; None
    means that the client cannot send a token from there.
    `own_command` is the client's own way to add an entry for the user, `own_removal` its way to remove one.
    """

    user: Callable[[], Path]
    project: str | None
    key: str = "mcpServers"
    typed: tuple[Literal["stdio", "http"], ...] = ()
    takes_addresses: bool = True
    secret: str | None = "${{{}}}"
    own_command: Callable[[ServerEntry], list[str] | None] = lambda _: None
    own_removal: tuple[str, ...] = ()

    @property
    def is_toml(self) -> bool:
        return self.key == "mcp_servers"

    def fields(self, server: ServerEntry) -> Fields:
        """Return the entry of a server as the client's file has it."""
        if isinstance(server, LocalServer):
            local: Fields = {"command": server.command, "args": list(server.args)}
            return {"type": "stdio", **local} if "stdio" in self.typed else local
        remote: Fields = {"url": server.url}
        if server.token_env and self.is_toml:
            remote["bearer_token_env_var"] = server.token_env
        elif server.token_env:
            value = self.secret.format(server.token_env) if self.secret else f"${{input:{server.name}-token}}"
            remote["headers"] = {"Authorization": f"Bearer {value}"}
        return {"type": "http", **remote} if "http" in self.typed else remote

    def inputs(self, server: ServerEntry) -> list[Fields]:
        """Return the questions that the client asks the user once, if that is how it gets a token."""
        if self.secret or not isinstance(server, RemoteServer) or not server.token_env:
            return []
        about = f"Token for the MCP server {server.name}"
        return [
            {"type": "promptString", "id": f"{server.name}-token", "description": about, "password": True}
        ]


def _header(server: RemoteServer) -> list[str]:
    """Return the option that names the token's variable, for clients that fill it in."""
    return ["--header", f"Authorization: Bearer ${{{server.token_env}}}"] if server.token_env else []


def _claude(server: ServerEntry) -> list[str]:
    adding = ["claude", "mcp", "add", "--scope", "user", "--transport"]
    if isinstance(server, LocalServer):
        return [*adding, "stdio", server.name, "--", server.command, *server.args]
    return [*adding, "http", server.name, server.url, *_header(server)]


def _codex(server: ServerEntry) -> list[str]:
    adding = ["codex", "mcp", "add", server.name]
    if isinstance(server, LocalServer):
        return [*adding, "--", server.command, *server.args]
    token = ["--bearer-token-env-var", server.token_env] if server.token_env else []
    return [*adding, "--url", server.url, *token]


def _gemini(server: ServerEntry) -> list[str]:
    adding = ["gemini", "mcp", "add", "--scope", "user"]
    if isinstance(server, LocalServer):
        return [*adding, server.name, server.command, "--", *server.args]
    return [*adding, "--transport", "http", *_header(server), server.name, server.url]


def _vscode(server: ServerEntry) -> list[str] | None:
    """A server with a token needs a question beside its entry, which this command cannot add."""
    client = CLIENTS["vscode"]
    if client.inputs(server):
        return None
    entry = {"name": server.name, **client.fields(server)}
    return ["code", "--add-mcp", msgspec.json.encode(entry).decode()]


def _application(*parts: str) -> Path:
    """Return the folder of an application's settings on this platform."""
    if sys.platform == "darwin":
        return Path.home().joinpath("Library", "Application Support", *parts)
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", Path.home())).joinpath(*parts)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").joinpath(*parts)


def _folder(variable: str, default: Path) -> Path:
    """Return the folder that a client's own variable names."""
    return Path(os.environ.get(variable) or default).expanduser()


CLIENTS: Mapping[ClientName, ClientConfig] = {
    "claude-code": ClientConfig(
        lambda: _folder("CLAUDE_CONFIG_DIR", Path.home()) / ".claude.json",
        ".mcp.json",
        typed=("stdio", "http"),
        own_command=_claude,
        own_removal=("claude", "mcp", "remove", "--scope", "user"),
    ),
    "claude-desktop": ClientConfig(
        lambda: _application("Claude", "claude_desktop_config.json"), None, takes_addresses=False
    ),
    "cursor": ClientConfig(
        lambda: Path.home() / ".cursor" / "mcp.json", ".cursor/mcp.json", secret="${{env:{}}}"
    ),
    "vscode": ClientConfig(
        lambda: _application("Code", "User", "mcp.json"),
        ".vscode/mcp.json",
        key="servers",
        typed=("stdio", "http"),
        secret=None,
        own_command=_vscode,
    ),
    "codex": ClientConfig(
        lambda: _folder("CODEX_HOME", Path.home() / ".codex") / "config.toml",
        ".codex/config.toml",
        key="mcp_servers",
        own_command=_codex,
        own_removal=("codex", "mcp", "remove"),
    ),
    "gemini": ClientConfig(
        lambda: Path.home() / ".gemini" / "settings.json",
        ".gemini/settings.json",
        typed=("http",),
        own_command=_gemini,
        own_removal=("gemini", "mcp", "remove", "--scope", "user"),
    ),
}


def is_cached(prefix: str) -> bool:
    """Say whether Interlock runs from the cache of uvx or pipx run, which may be emptied at any time."""
    parts = Path(prefix).parts
    return bool({"archive-v0", "builds-v0"} & set(parts)) or parts[-2:-1] == (".cache",)


def local_server(name: str, arguments: Sequence[str], *, shared: bool) -> LocalServer:
    """Return the command that starts this installation from any folder.

    A file that a team shares gets a command without a path of this machine.
    """
    if shared:
        return LocalServer(name, "interlock", ("mcp", *arguments))
    script = Path(sys.executable).parent / ("interlock.exe" if sys.platform == "win32" else "interlock")
    if script.is_file():
        return LocalServer(name, str(script), ("mcp", *arguments))
    return LocalServer(name, sys.executable, ("-m", "interlock", "mcp", *arguments))


def snippet(client: ClientConfig, server: ServerEntry) -> str:
    """Return the entry as it is written in the client's file."""
    if client.is_toml:
        return _toml(server.name, client.fields(server))
    inputs = client.inputs(server)
    return _formatted(
        {**({"inputs": inputs} if inputs else {}), client.key: {server.name: client.fields(server)}}
    )


def with_entry(client: ClientConfig, path: Path, server: ServerEntry) -> tuple[str, Change]:
    """Return the text of the file with the entry in it, and what that changes."""
    text = _text_of(path)
    if client.is_toml:
        return _with_table(text, server.name, client.fields(server))
    settings = _settings(client, path, text)
    servers, asked = settings.setdefault(client.key, {}), settings.get("inputs", [])
    present = servers.get(server.name)
    wanted = updated(present, client.fields(server))
    known = [question.get("id") for question in asked if isinstance(question, dict)]
    missing = [question for question in client.inputs(server) if question["id"] not in known]
    if present == wanted and not missing:
        return text, "unchanged"
    servers[server.name] = wanted
    if missing:
        settings["inputs"] = [*asked, *missing]
    return _formatted(settings), "added" if present is None else "changed"


def without_entry(client: ClientConfig, path: Path, name: str) -> str | None:
    """Return the text of the file without the entry of that name; None if it has none."""
    text = _text_of(path)
    if client.is_toml:
        document, servers = _tables(text)
        if name not in servers:
            return None
        tables: Any = document["mcp_servers"]
        del tables[name]
        if not tables:
            del document["mcp_servers"]
        return document.as_string()
    settings = _settings(client, path, text)
    if settings.get(client.key, {}).pop(name, None) is None:
        return None
    if "inputs" in settings:
        token = f"{name}-token"
        settings["inputs"] = [
            question
            for question in settings["inputs"]
            if not isinstance(question, dict) or question.get("id") != token
        ]
    return _formatted(settings)


def names_in(client: ClientConfig, path: Path) -> list[str]:
    """Return the names of the servers in the client's file."""
    text = _text_of(path)
    return list(_tables(text)[1] if client.is_toml else _settings(client, path, text).get(client.key, {}))


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _settings(client: ClientConfig, path: Path, text: str) -> dict[str, Any]:
    """Return the settings in a JSON file that its client accepts too."""
    try:
        settings = msgspec.json.decode(text) if text.strip() else {}
    except msgspec.DecodeError as error:
        raise UnreadableConfig(f"{path.name} is not plain JSON") from error
    if not isinstance(settings, dict) or not isinstance(settings.get(client.key, {}), dict):
        raise UnreadableConfig(f"{path.name} has no object '{client.key}'")
    if not isinstance(settings.get("inputs", []), list):
        raise UnreadableConfig(f"{path.name} has no list 'inputs'")
    return settings


def _tables(text: str) -> tuple[TOMLDocument, dict[str, Any]]:
    """Return a TOML file as it is written, and the entries of its servers."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise UnreadableConfig(f"config.toml is not valid TOML: {error}") from error
    servers = document.unwrap().get("mcp_servers", {})
    if not isinstance(servers, dict):
        raise UnreadableConfig("config.toml has no table 'mcp_servers'")
    return document, servers


def updated(present: Json, wanted: Fields) -> Fields:
    """Return an entry with its own fields replaced, and with what the user has added to it kept."""
    if not isinstance(present, Mapping):
        return wanted
    kept = {name: value for name, value in present.items() if name not in OURS}
    headers, added = present.get("headers"), wanted.get("headers")
    if isinstance(headers, Mapping) and "command" not in wanted:
        kept["headers"] = {**headers, **(added if isinstance(added, Mapping) else {})}
    return {**wanted, **kept}


def _with_table(text: str, name: str, fields: Fields) -> tuple[str, Change]:
    """Set the fields of one TOML table, or append it; keep everything else as it is written."""
    document, servers = _tables(text)
    present = servers.get(name)
    if not isinstance(present, dict | None):
        raise UnreadableConfig(f"config.toml has no table 'mcp_servers.{name}'")
    if present is None:
        return f"{text.rstrip()}\n\n{_toml(name, fields)}".lstrip(), "added"
    wanted = updated(present, fields)
    if wanted == present:
        return text, "unchanged"
    tables: Any = document["mcp_servers"]
    for gone in present.keys() - wanted.keys():
        del tables[name][gone]
    tables[name].update(fields)
    return document.as_string(), "changed"


def _formatted(settings: Mapping[str, Json]) -> str:
    return msgspec.json.format(msgspec.json.encode(settings), indent=2).decode() + "\n"


def _toml(name: str, fields: Fields) -> str:
    lines = (f"{field} = {msgspec.json.encode(value).decode()}\n" for field, value in fields.items())
    return f"[mcp_servers.{name}]\n{''.join(lines)}"


def save(path: Path, text: str) -> Path | None:
    """Replace the file in one step; return the copy that is kept of the old one, if there was one."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = None
    if target.exists():
        backup = target.with_name(f"{target.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.bak")
        shutil.copy2(target, backup)
    replace_file(target, text.encode(), mode=0o644)
    return backup
