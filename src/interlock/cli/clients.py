"""Where each client lists its MCP servers, and how to add an entry without changing the rest of the file."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

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


CLIENTS: Mapping[ClientName, ClientConfig] = {
    "claude-code": ClientConfig(lambda: Path.home() / ".claude.json", ".mcp.json", typed=True),
    "claude-desktop": ClientConfig(lambda: _application("Claude", "claude_desktop_config.json"), None),
    "cursor": ClientConfig(lambda: Path.home() / ".cursor" / "mcp.json", ".cursor/mcp.json"),
    "vscode": ClientConfig(
        lambda: _application("Code", "User", "mcp.json"), ".vscode/mcp.json", key="servers", typed=True
    ),
    "codex": ClientConfig(lambda: Path.home() / ".codex" / "config.toml", None, key="mcp_servers"),
    "gemini": ClientConfig(lambda: Path.home() / ".gemini" / "settings.json", ".gemini/settings.json"),
}


def entry_of(name: str, arguments: Sequence[str]) -> ServerEntry:
    """Return the command that starts this installation from any folder."""
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
    if present == wanted:
        return text, "unchanged"
    servers[entry.name] = wanted
    return _formatted(settings), "added" if present is None else "changed"


def _with_table(text: str, entry: ServerEntry) -> tuple[str, Change]:
    """Replace or append one TOML table; keep everything else as it is written."""
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableConfig(f"config.toml is not valid TOML: {error}") from error
    table = _toml(entry)
    present = re.search(rf"^\[mcp_servers\.{re.escape(entry.name)}\]\n(?:(?!\[).*\n?)*", text, re.MULTILINE)
    if present is None:
        return f"{text.rstrip()}\n\n{table}".lstrip(), "added"
    if present.group().strip() == table.strip():
        return text, "unchanged"
    rest = text[present.end() :]
    return text[: present.start()] + table + (f"\n{rest}" if rest else ""), "changed"


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
