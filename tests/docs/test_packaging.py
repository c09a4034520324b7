"""The plugin folder, the bundle and the registry's file: as generated, and as their clients check them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from interlock import __version__
from support.installation import install
from support.node_clients import claude_code, packaging_tools
from support.paths import ROOT
from tools.packaging import manifests, readme, registry_entry, text_of, write_bundle

PATIENCE = 300
PLUGIN = ROOT / "plugin"
# Closed sets of the published schemas: Agent Plugins 1.0.0, and Cursor's plugin.schema.json.
PORTABLE = {"$schema", "name", "version", "description", "author", "license", "keywords"}
CURSOR = {
    "name",
    "displayName",
    "version",
    "description",
    "author",
    "license",
    "keywords",
    "skills",
    "mcpServers",
}


@pytest.mark.parametrize("name", manifests())
def test_the_manifests_are_generated(name: str) -> None:
    """Write them anew with: python -m tools.packaging"""
    assert (ROOT / name).read_text("utf-8") == text_of(manifests()[name])


def test_every_manifest_names_the_same_server_and_version() -> None:
    every = manifests()
    assert {one["version"] for one in every.values() if "version" in one} == {__version__}
    servers = [
        one["mcpServers"]["interlock"] for one in every.values() if isinstance(one.get("mcpServers"), dict)
    ]
    assert {(one["command"], *one["args"]) for one in servers} == {("interlock", "mcp")}
    for name, one in every.items():
        for part in ("skills", "mcpServers"):
            if isinstance(one.get(part), str):
                assert (PLUGIN / one[part]).exists(), name


def test_the_manifests_without_a_tool_have_only_the_fields_of_their_schemas() -> None:
    every = manifests()
    assert set(every["plugin/plugin.json"]) <= PORTABLE
    assert set(every["plugin/.cursor-plugin/plugin.json"]) <= CURSOR
    assert set(every["plugin/mcp.json"]) == {"$schema", "mcpServers"}
    assert set(every["plugin/mcp.json"]["mcpServers"]["interlock"]) == {"type", "command", "args"}


def test_the_name_in_the_registry_is_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tools.packaging

    text = (ROOT / "pyproject.toml").read_text("utf-8")
    name = registry_entry()["name"]
    (tmp_path / "pyproject.toml").write_text(text.replace(name, "io.github.somebody/interlock"))
    monkeypatch.setattr(tools.packaging, "ROOT", tmp_path)
    assert registry_entry()["name"] == "io.github.somebody/interlock"
    assert "<!-- mcp-name: io.github.somebody/interlock -->" in readme(
        (ROOT / "README.md").read_text("utf-8")
    )


def test_the_skill_is_named_after_its_folder_and_names_tools_that_exist() -> None:
    from interlock.cli.compose import surface_of
    from interlock.cli.config import Config

    text = (PLUGIN / "skills" / "interlock" / "SKILL.md").read_text("utf-8")
    assert text.startswith("---\nname: interlock\ndescription: ")
    named = set(re.findall(r"`([a-z]+_[a-z]+)`", text))
    assert named <= set(surface_of(Config()).tools)
    assert len(named) >= 4


def ran(command: list[str | Path], home: Path) -> str:
    env = {**os.environ, "HOME": str(home), "CODEX_HOME": str(home / ".codex")}
    home.mkdir(exist_ok=True)
    (home / ".codex").mkdir(exist_ok=True)
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        env=env,
        cwd=home,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("folder", [PLUGIN, ROOT], ids=["plugin", "marketplace"])
def test_claude_code_accepts_the_plugin_and_its_marketplace(tmp_path: Path, folder: Path) -> None:
    assert "Validation passed" in ran(
        [claude_code(), "plugin", "validate", "--strict", folder], tmp_path / "home"
    )


@pytest.mark.slow
def test_codex_installs_the_plugin_and_lists_its_server(tmp_path: Path) -> None:
    codex, home = packaging_tools() / "codex", tmp_path / "home"
    ran([codex, "plugin", "marketplace", "add", ROOT], home)
    ran([codex, "plugin", "add", "interlock@interlock"], home)
    assert re.search(r"interlock +interlock +mcp", ran([codex, "mcp", "list"], home))


@pytest.mark.slow
def test_gemini_accepts_the_extension(tmp_path: Path) -> None:
    gemini = packaging_tools() / "gemini"
    said = ran([gemini, "extensions", "validate", PLUGIN], tmp_path / "home")
    assert "successfully validated" in said


@pytest.mark.slow
def test_the_bundle_is_valid_and_always_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "a.mcpb", tmp_path / "b.mcpb"
    write_bundle(first)
    write_bundle(second)
    assert first.read_bytes() == second.read_bytes()
    ran([packaging_tools() / "mcpb", "unpack", first, tmp_path / "unpacked"], tmp_path / "home")
    ran([packaging_tools() / "mcpb", "validate", tmp_path / "unpacked" / "manifest.json"], tmp_path / "home")


@pytest.mark.slow
def test_what_the_bundle_holds_is_a_server_with_the_tools_that_it_lists(tmp_path: Path) -> None:
    write_bundle(tmp_path / "interlock.mcpb")
    with zipfile.ZipFile(tmp_path / "interlock.mcpb") as bundle:
        bundle.extractall(tmp_path / "unpacked")
    manifest = json.loads((tmp_path / "unpacked" / "manifest.json").read_text("utf-8"))
    assert (tmp_path / "unpacked" / manifest["server"]["entry_point"]).is_file()
    programs = install(tmp_path / "installed", root=tmp_path / "unpacked")
    _, _, _, command, *arguments = manifest["server"]["mcp_config"]["args"]
    given = [word.replace("${user_config.decisions}", "auto") for word in arguments]
    listed = [tool["name"] for tool in manifest["tools"]]
    assert listed == tool_names([str(programs / command), *given, "--data-dir", str(tmp_path / "data")])


def tool_names(command: list[str]) -> list[str]:
    requests = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return [tool["name"] for tool in json.loads(done.stdout.splitlines()[1])["result"]["tools"]]
