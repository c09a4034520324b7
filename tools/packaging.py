"""Write the manifests of the plugin, its catalogues and the registry's file: `python -m tools.packaging`.

`python -m tools.packaging mcpb FILE` writes a bundle with the sources, which a client runs with uv.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from interlock.cli.compose import surface_of
from interlock.cli.config import Config

ROOT = Path(__file__).parent.parent
NAME, TITLE = "interlock", "Interlock"
SUMMARY = "Workflows for AI agents: one step at a time, every step on record, no gate without its decision"
AUTHOR = {"name": "The Interlock authors"}
KEYWORDS = ["mcp", "workflow", "agents", "approval"]
SERVER = {"command": "interlock", "args": ["mcp"]}
PORTABLE = "https://agent-plugins.org/schemas/1.0.0/{}.schema.json"
REGISTRY = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
MCP_NAME = re.compile(r"<!-- mcp-name: \S+ -->")
BUNDLED = ("pyproject.toml", "README.md", "LICENSE", "src")
MOMENT = (2026, 1, 1, 0, 0, 0)  # the same sources make the same bundle

Manifest = dict[str, Any]


def pyproject() -> Manifest:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def manifests() -> dict[str, Manifest]:
    """Return every manifest by its path in the repository."""
    project = pyproject()["project"]
    about = {"name": NAME, "version": project["version"], "description": SUMMARY}
    plugin = {**about, "author": AUTHOR, "license": project["license"], "keywords": KEYWORDS}
    parts = {"skills": "./skills/", "mcpServers": "./.mcp.json"}
    interface = {
        "displayName": TITLE,
        "shortDescription": SUMMARY,
        "developerName": AUTHOR["name"],
        "category": "Productivity",
    }
    return {
        "plugin/plugin.json": {"$schema": PORTABLE.format("plugin"), **plugin},
        "plugin/mcp.json": {
            "$schema": PORTABLE.format("mcp"),
            "mcpServers": {NAME: {"type": "stdio", **SERVER}},
        },
        "plugin/.mcp.json": {"mcpServers": {NAME: SERVER}},
        "plugin/.claude-plugin/plugin.json": plugin,
        "plugin/.codex-plugin/plugin.json": {**plugin, **parts, "interface": interface},
        "plugin/.cursor-plugin/plugin.json": {**plugin, "displayName": TITLE, **parts},
        "plugin/gemini-extension.json": {**about, "mcpServers": {NAME: SERVER}},
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": AUTHOR,
            "description": SUMMARY,
            "plugins": [{"name": NAME, "source": "./plugin", "description": SUMMARY}],
        },
        ".agents/plugins/marketplace.json": {
            "name": NAME,
            "interface": {"displayName": TITLE},
            "plugins": [
                {
                    "name": NAME,
                    "source": {"source": "local", "path": "./plugin"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": interface["category"],
                }
            ],
        },
        "server.json": registry_entry(),
    }


def registry_entry() -> Manifest:
    """Return the entry for the MCP registry, under the name that the project sets."""
    whole = pyproject()
    version = whole["project"]["version"]
    return {
        "$schema": REGISTRY,
        "name": whole["tool"]["interlock"]["registry-name"],
        "title": TITLE,
        "description": SUMMARY,
        "version": version,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": whole["project"]["name"],
                "version": version,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "mcp"}],
            }
        ],
    }


def bundle_manifest() -> Manifest:
    """Return the manifest of the bundle: what the client runs, asks the user, and shows."""
    project = pyproject()["project"]
    tools = surface_of(Config(data_dir=str(ROOT / "build" / "packaging"))).tools.values()
    return {
        "manifest_version": "0.4",
        "name": NAME,
        "display_name": TITLE,
        "version": project["version"],
        "description": SUMMARY,
        "author": AUTHOR,
        "license": project["license"],
        "keywords": KEYWORDS,
        "server": {
            "type": "uv",
            "entry_point": "src/interlock/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": [
                    *("run", "--directory", "${__dirname}", "interlock", "mcp"),
                    "--decisions=${user_config.decisions}",
                ],
            },
        },
        "tools": [
            {"name": tool.name, "description": tool.description.partition("\n")[0]}
            for tool in tools
            if tool.listed
        ],
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": project["requires-python"]},
        },
        "user_config": {
            "decisions": {
                "type": "string",
                "title": "Who may answer gates",
                "description": "agent, auto, client or user; see `interlock mcp --help`.",
                "default": "auto",
                "required": False,
            }
        },
    }


def write_bundle(target: Path) -> None:
    """Write the bundle: the manifest and what uv needs to install the server."""
    files = [path for name in BUNDLED for path in (ROOT / name, *sorted((ROOT / name).rglob("*")))]
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        _add(bundle, "manifest.json", text_of(bundle_manifest()).encode())
        for path in files:
            if path.is_file() and "__pycache__" not in path.parts:
                _add(bundle, path.relative_to(ROOT).as_posix(), path.read_bytes())


def _add(bundle: zipfile.ZipFile, name: str, body: bytes) -> None:
    entry = zipfile.ZipInfo(name, MOMENT)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    bundle.writestr(entry, body)


def text_of(manifest: Manifest) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def readme(text: str) -> str:
    """Return the README with the name by which the registry knows the package."""
    return MCP_NAME.sub(f"<!-- mcp-name: {registry_entry()['name']} -->", text)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["mcpb"]:
        write_bundle(Path(arguments[1]))
        return
    for name, manifest in manifests().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(manifest), encoding="utf-8")
    path = ROOT / "README.md"
    path.write_text(readme(path.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
