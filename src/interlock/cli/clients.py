"""Where each client keeps its MCP servers, and how an entry gets into that file without harming the rest."""

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

from interlock.core.values import Json

ClientName = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]
Change = Literal["added", "changed", "unchanged"]


class UnreadableConfig(Exception):
    """A configuration file that is not what its client would accept; it is left alone."""


class ServerEntry(Struct, frozen=True):
    """How a client starts the server."""

    name: str
    command: str
    args: tuple[str, ...]


class ClientConfig(Struct, frozen=True):
    """A client: its file for the user, its file within a project, and what an entry looks like there."""

    user: Callable[[], Path]
    project: str | None
    key: str = "mcpServers"
    typed: bool = False


def _application(*parts: str) -> Path:
    """A folder of an application's own settings, by platform."""
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
    """How to start this very installation, wherever the client runs it from."""
    script = Path(sys.executable).parent / ("interlock.exe" if sys.platform == "win32" else "interlock")
    if script.is_file():
        return ServerEntry(name, str(script), ("mcp", *arguments))
    return ServerEntry(name, sys.executable, ("-m", "interlock", "mcp", *arguments))


def snippet(client: ClientConfig, entry: ServerEntry) -> str:
    """The entry alone, as it stands in the client's file."""
    if client.key == "mcp_servers":
        return _toml(entry)
    return _formatted({client.key: {entry.name: _fields(client, entry)}})


def installed(client: ClientConfig, path: Path, entry: ServerEntry) -> tuple[str, Change]:
    """The file's text with the entry in it, and whether that is a change."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if client.key == "mcp_servers":
        return _with_table(before, entry)
    return _with_member(before, client, entry, path.name)


def _with_member(before: str, client: ClientConfig, entry: ServerEntry, name: str) -> tuple[str, Change]:
    try:
        whole = msgspec.json.decode(before) if before.strip() else {}
    except msgspec.DecodeError as error:
        raise UnreadableConfig(f"{name} is not plain JSON") from error
    if not isinstance(whole, dict) or not isinstance(whole.get(client.key, {}), dict):
        raise UnreadableConfig(f"{name} has no object {client.key}")
    servers = whole.setdefault(client.key, {})
    wanted, known = _fields(client, entry), servers.get(entry.name)
    if known == wanted:
        return before, "unchanged"
    servers[entry.name] = wanted
    return _formatted(whole), "added" if known is None else "changed"


def _fields(client: ClientConfig, entry: ServerEntry) -> dict[str, Json]:
    fields: dict[str, Json] = {"command": entry.command, "args": list(entry.args)}
    return {"type": "stdio", **fields} if client.typed else fields


def _formatted(value: Mapping[str, Json]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _with_table(before: str, entry: ServerEntry) -> tuple[str, Change]:
    """Replace or append one TOML table; everything else stays as written."""
    import tomllib

    try:
        tomllib.loads(before)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableConfig(f"config.toml is not valid TOML: {error}") from error
    table = _toml(entry)
    found = re.search(rf"^\[mcp_servers\.{re.escape(entry.name)}\]\n(?:(?!\[).*\n?)*", before, re.MULTILINE)
    if found is None:
        return f"{before.rstrip()}\n\n{table}".lstrip(), "added"
    if found.group().strip() == table.strip():
        return before, "unchanged"
    rest = before[found.end() :]
    return before[: found.start()] + table + (f"\n{rest}" if rest else ""), "changed"


def _toml(entry: ServerEntry) -> str:
    quoted = msgspec.json.encode(list(entry.args)).decode()
    command = msgspec.json.encode(entry.command).decode()
    return f"[mcp_servers.{entry.name}]\ncommand = {command}\nargs = {quoted}\n"


def save(path: Path, text: str) -> Path | None:
    """Replace the file in one step, keeping what was there beside it; returns the copy."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = _backed_up(target) if target.exists() else None
    fresh = target.with_name(f".{target.name}.interlock")
    fresh.touch(0o600 if backup else 0o644)
    fresh.write_text(text, encoding="utf-8")
    if backup is not None:
        shutil.copymode(target, fresh)
    fresh.replace(target)
    return backup


def _backed_up(path: Path) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    backup = path.with_name(f"{path.name}.{stamp}.bak")
    shutil.copy2(path, backup)
    return backup
