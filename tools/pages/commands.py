"""Pages from the command line and the surfaces: docs/cli.md and the references in docs/surfaces."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from interlock.cli.compose import surface_of
from interlock.cli.config import Config
from interlock.cli.main import COMMANDS, cli
from interlock.surfaces.registry import SURFACES
from tools.pages.reference import with_reference

WIDTH = 80


def pages(docs: Path) -> dict[str, str]:
    """Return every page as it should be now, by its path within the documentation."""
    generated = {"cli.md": "\n".join(_command_line())}
    for name in SURFACES:
        page = (docs / "surfaces" / f"{name}.md").read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder:
            surface = surface_of(Config(surface=name, data_dir=folder))
            generated[f"surfaces/{name}.md"] = with_reference(page, surface)
    return generated


def _command_line() -> Iterator[str]:
    yield from ("# The command line", "")
    yield "What `--help` prints, command by command. Every reading command has `--json`. Results go to"
    yield "stdout, messages to stderr. Exit codes: 0 ok, 1 a check failed, 2 usage, 3 not found, 4 waits for"
    yield "a decision, 5 conflict or stale. `NO_COLOR` is honoured."
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
        for subcommand in command.list_commands(context):
            inner = command.get_command(context, subcommand)
            assert inner is not None
            yield from _command(context, subcommand, inner)
