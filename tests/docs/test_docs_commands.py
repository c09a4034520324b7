"""Every command example in the README and the documentation, run as written."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import click
import pytest

from interlock import __version__
from interlock.cli.compose import surface_of
from interlock.cli.config import Config
from interlock.cli.main import COMMANDS, cli
from interlock.surfaces.registry import SURFACES
from support.cli_process import agent, to_the_gate
from support.documented import NOT_RUN, PAGES, ROOT, SESSION, World, blocks

TUTORIAL = ROOT / "docs" / "tutorial.md"
WITH_COMMANDS = [
    page
    for page in PAGES
    if page != TUTORIAL and any(block.language in ("sh", "console") for block in blocks(page))
]
INLINE = re.compile(r"`(interlock [a-z][^`]*)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_examples_of_a_page_work_as_written(page: Path, tmp_path: Path) -> None:
    world = World(tmp_path)
    if SESSION in page.read_text("utf-8"):
        with agent(world.data) as one:
            world.session = to_the_gate(one).removeprefix("sess_")[:8]
    for block in blocks(page):
        world.perform(block)


def test_what_is_not_run_is_little_and_known() -> None:
    left_out = [block.body for page in PAGES for block in blocks(page) if block.name == NOT_RUN]
    lines = [line.partition("#")[0].strip() for body in left_out for line in body.splitlines()]
    assert lines == [
        "make run",
        "make test",
        "pipx install .",
        "pip install .",
        "uvx --from . interlock demo",
    ]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"run", "test"} <= set(targets)


def test_every_command_block_for_operators_is_run() -> None:
    languages = {
        block.language for block in blocks(ROOT / "docs" / "operations.md") if "interlock " in block.body
    }
    assert languages == {"sh", "console"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_named_in_a_sentence_exist(page: Path) -> None:
    root = click.Context(cli, info_name="interlock")
    for line in INLINE.findall(page.read_text("utf-8")):
        words = line.split()[1:]
        assert words[0] in {name for names in COMMANDS.values() for name in names}, line
        command = cli.get_command(root, words[0])
        assert command is not None, line
        flags = {flag for item in _all(command, root) for option in item.params for flag in option.opts}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= flags | {"--help"}, line


def _all(command: click.Command, root: click.Context) -> list[click.Command]:
    return [command, *command.commands.values()] if isinstance(command, click.Group) else [command]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text("utf-8")):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            text = target.read_text("utf-8")
            headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            named = {heading.lower().replace(" ", "-") for heading in headings}
            assert anchor in named | set(re.findall(r'<a id="([^"]*)">', text))


@pytest.mark.parametrize("name", SURFACES)
def test_the_readme_counts_the_tools_of_a_surface(name: str, tmp_path: Path) -> None:
    surface = surface_of(Config(surface=name, data_dir=str(tmp_path)))
    row = re.search(rf"^\| \[`{name}`\].*\| (\d+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert row
    assert int(row[1]) == sum(tool.listed for tool in surface.tools.values())


def test_the_registry_entry_is_of_this_package() -> None:
    entry = json.loads((ROOT / "server.json").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (package,) = entry["packages"]
    assert {entry["version"], package["version"], project["version"]} == {__version__}
    assert package["identifier"] == project["name"]
    assert f"<!-- mcp-name: {entry['name']} -->" in (ROOT / "README.md").read_text()
    assert len(entry["description"]) <= 100
