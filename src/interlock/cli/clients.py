"""Where each client lists its MCP servers, and how to add an entry without changing the rest of the file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock.authoring.sources.atomic_write import replace_file
from interlock.core.values import Json

ClientName = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]
Change = Literal["added", "changed", "unchanged"]


class UnreadableConfig(Exception):
    """A configuration file that its client would not accept either; it is not changed."""


class ServerEntry(Struct, frozen=True):
    """How a client starts the server."""

    name: str
    command: str
    args: tuple[str, ...]


class ClientConfig(Struct, frozen=True):
    """A client: its file for the user, its file within a project, and what an entry looks like in them."""

    user: Callable[[], Path]
    project: str | None
    key: str = "mcpServers"
    typed: bool = False


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
        lambda: _folder("CLAUDE_CONFIG_DIR", Path.home()) / ".claude.json", ".mcp.json", typed=True
    ),
    "claude-desktop": ClientConfig(lambda: _application("Claude", "claude_desktop_config.json"), None),
    "cursor": ClientConfig(lambda: Path.home() / ".cursor" / "mcp.json", ".cursor/mcp.json"),
    "vscode": ClientConfig(
        lambda: _application("Code", "User", "mcp.json"), ".vscode/mcp.json", key="servers", typed=True
    ),
    "codex": ClientConfig(
        lambda: _folder("CODEX_HOME", Path.home() / ".codex") / "config.toml", None, key="mcp_servers"
    ),
    "gemini": ClientConfig(lambda: Path.home() / ".gemini" / "settings.json", ".gemini/settings.json"),
}


def is_cached(prefix: str) -> bool:
    """Say whether Interlock runs from the cache of uvx or pipx run, which may be emptied at any time."""
    parts = Path(prefix).parts
    return bool({"archive-v0", "builds-v0"} & set(parts)) or parts[-2:-1] == (".cache",)


def entry_of(name: str, arguments: Sequence[str], *, shared: bool) -> ServerEntry:
    """Return the command that starts this installation from any folder.

    A file that a team shares gets a command without a path of this machine.
    """
    if shared:
        return ServerEntry(name, "interlock", ("mcp", *arguments))
    script = Path(sys.executable).parent / ("interlock.exe" if sys.platform == "win32" else "interlock")
    if script.is_file():
        return ServerEntry(name, str(script), ("mcp", *arguments))
    return ServerEntry(name, sys.executable, ("-m", "interlock", "mcp", *arguments))


def snippet(client: ClientConfig, entry: ServerEntry) -> str:
    """Return the entry as it is written in the client's file."""
    if client.key == "mcp_servers":
        return _toml(entry)
    return _formatted({client.key: {entry.name: _fields(client, entry)}})


def with_entry(client: ClientConfig, path: Path, entry: ServerEntry) -> tuple[str, Change]:
    """Return the text of the file with the entry in it, and what that changes."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if client.key == "mcp_servers":
        return _with_table(text, entry)
    try:
        settings = msgspec.json.decode(text) if text.strip() else {}
    except msgspec.DecodeError as error:
        raise UnreadableConfig(f"{path.name} is not plain JSON") from error
    if not isinstance(settings, dict) or not isinstance(settings.get(client.key, {}), dict):
        raise UnreadableConfig(f"{path.name} has no object '{client.key}'")
    servers = settings.setdefault(client.key, {})
    wanted, present = _fields(client, entry), servers.get(entry.name)
    if isinstance(present, dict) and {**present, **wanted} == present:
        return text, "unchanged"
    servers[entry.name] = {**present, **wanted} if isinstance(present, dict) else wanted
    return _formatted(settings), "added" if present is None else "changed"


def _with_table(text: str, entry: ServerEntry) -> tuple[str, Change]:
    """Set `command` and `args` of one TOML table, or append it; keep everything else as it is written."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise UnreadableConfig(f"config.toml is not valid TOML: {error}") from error
    servers = document.unwrap().get("mcp_servers", {})
    present = servers.get(entry.name) if isinstance(servers, dict) else None
    if not isinstance(servers, dict) or not isinstance(present, dict | None):
        raise UnreadableConfig("config.toml has no table 'mcp_servers'")
    wanted = {"command": entry.command, "args": list(entry.args)}
    if present is None:
        return f"{text.rstrip()}\n\n{_toml(entry)}".lstrip(), "added"
    if {**present, **wanted} == present:
        return text, "unchanged"
    tables: Any = document["mcp_servers"]
    tables[entry.name].update(wanted)
    return tomlkit.dumps(document), "changed"


def _fields(client: ClientConfig, entry: ServerEntry) -> dict[str, Json]:
    fields: dict[str, Json] = {"command": entry.command, "args": list(entry.args)}
    return {"type": "stdio", **fields} if client.typed else fields


def _formatted(settings: Mapping[str, Json]) -> str:
    return msgspec.json.format(msgspec.json.encode(settings), indent=2).decode() + "\n"


def _toml(entry: ServerEntry) -> str:
    command, args = (msgspec.json.encode(value).decode() for value in (entry.command, list(entry.args)))
    return f"[mcp_servers.{entry.name}]\ncommand = {command}\nargs = {args}\n"


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
