"""The pages that follow from the command line and the surfaces; a stale one fails the tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from interlock.cli.compose import surface_of
from interlock.cli.config import Config
from interlock.cli.main import COMMANDS, cli
from interlock.core.run.surface_policy import SurfaceName
from interlock.surfaces.registry import SURFACES
from tools.pages.reference import with_reference

WIDTH = 80


def pages(docs: Path) -> dict[str, str]:
    """Every page as it should be now, by its path within the documentation."""
    surfaces = {f"surfaces/{name}.md": _surface(docs, name) for name in SURFACES}
    return {"cli.md": "\n".join(_commands()), **surfaces}


def _surface(docs: Path, name: SurfaceName) -> str:
    page = (docs / "surfaces" / f"{name}.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        return with_reference(page, surface_of(Config(surface=name, data_dir=folder)))


def _commands() -> Iterator[str]:
    yield from ("# The command line", "")
    yield "The `--help` text of every command. Every command that reads has `--json`. Results go to stdout,"
    yield "messages to stderr. Exit codes: 0 ok, 1 a check failed, 2 usage, 3 not found, 4 waits for a"
    yield "decision, 5 conflict or stale. `NO_COLOR` is honoured."
    root = click.Context(cli, info_name="interlock", terminal_width=WIDTH, max_content_width=WIDTH)
    for heading, names in COMMANDS.items():
        yield from ("", f"## {heading}")
        for name in names:
            command = cli.get_command(root, name)
            if command is not None:
                yield from _command(root, name, command)
    yield ""


def _command(parent: click.Context, name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, parent, name, terminal_width=WIDTH, max_content_width=WIDTH)
    context.help_option_names = ["-h", "--help"]
    yield from ("", f"### {context.command_path}", "", "```text", command.get_help(context), "```")
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            yield from _command(context, part, inner)
