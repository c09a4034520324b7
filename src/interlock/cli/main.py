"""The command line for people: a group that imports a command only when it is called."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import click
import msgspec

from interlock import __version__
from interlock.cli.config import BadConfig
from interlock.cli.exits import CHECK_FAILED, CONFLICT, USAGE

COMMANDS = {
    "Serve": ("mcp", "demo"),
    "Workflows": (
        "list",
        "show",
        "validate",
        "explain",
        "simulate",
        "test",
        "graph",
        "init",
        "convert",
        "source",
    ),
    "Sessions": (
        "sessions",
        "status",
        "log",
        "tree",
        "notes",
        "resume",
        "play",
        "inbox",
        "decide",
        "mode",
    ),
    "Upkeep": ("export", "import", "gc", "doctor", "keys", "token", "install", "config"),
}


class LazyGroup(click.Group):
    """Finds `interlock NAME` in `cli/commands/NAME.py`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = f"interlock.cli.commands.{cmd_name}_"
        if cmd_name not in self.list_commands(ctx) or find_spec(module) is None:
            return None
        command = import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in COMMANDS.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name, one.get_short_help_str(64)) for name, one in found if one])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BadConfig as error:
            click.echo(f"interlock: {error}", err=True)
            ctx.exit(USAGE)
        except (click.ClickException, click.Abort, click.exceptions.Exit, KeyboardInterrupt):
            raise
        except BrokenPipeError:
            raise
        except Exception as error:
            ctx.exit(_told(error))


def _told(error: Exception) -> int:
    """Say what a store or a keyring cannot do; anything else is a fault of ours and stays loud."""
    from interlock.ledger.errors import error_of

    if isinstance(error, OSError):
        where = f"{error.filename or 'a file'}: {error.strerror}"
        click.echo(f"interlock: {where}. See `interlock config show`.", err=True)
        return CHECK_FAILED
    if isinstance(error, msgspec.DecodeError):
        click.echo("interlock: What is stored cannot be read. Run `interlock doctor`.", err=True)
        return CHECK_FAILED
    known = error_of(error)
    if known.code == "INTERNAL_ERROR":
        raise error
    click.echo(
        f"interlock: {known.message} {known.next_action.replace('Ask the user to run', 'Run')}", err=True
    )
    return CONFLICT if known.after_ms else CHECK_FAILED


COMPLETION = """\b
Completion for your shell, here bash (or zsh_source, fish_source):
  eval "$(_INTERLOCK_COMPLETE=bash_source interlock)"
"""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=COMPLETION)
@click.version_option(__version__, prog_name="interlock")
def cli() -> None:
    """Hand AI agents one workflow step at a time, and let nobody past a gate without its decision."""
