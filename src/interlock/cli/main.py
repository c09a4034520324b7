"""The command line. A command is imported only when it is called, to keep the others quick."""

from __future__ import annotations

from importlib import import_module

import click
import msgspec

from interlock import __version__
from interlock.cli.config import BadConfig
from interlock.cli.screen import CHECK_FAILED, CONFLICT, NOT_FOUND, USAGE

# What is no longer, or not only, what the user meant.
MOVED = ("AMBIGUOUS", "CONFLICT", "ALREADY_DECIDED", "QUESTION_CHANGED")

COMMANDS = {
    "Serve": ("mcp", "serve", "auth", "console", "demo"),
    "Workflows": (
        "list",
        "show",
        "validate",
        "schema",
        "explain",
        "simulate",
        "test",
        "graph",
        "init",
        "convert",
        "source",
        "trust",
    ),
    "Sessions": (
        "sessions",
        "abandon",
        "status",
        "log",
        "tree",
        "notes",
        "resume",
        "play",
        "inbox",
        "decide",
        "delegate",
        "gaps",
        "mode",
    ),
    "Evidence": ("verify", "attest", "receipt", "signing"),
    "Upkeep": (
        "export",
        "import",
        "gc",
        "doctor",
        "store",
        "keys",
        "token",
        "install",
        "uninstall",
        "config",
        "notify",
    ),
}


class LazyGroup(click.Group):
    """Finds `interlock NAME` in `cli/commands/GROUP/NAME_.py`, in the group that lists it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        group = next((heading.lower() for heading, names in COMMANDS.items() if cmd_name in names), None)
        if group is None:
            return None
        command = import_module(f"interlock.cli.commands.{group}.{cmd_name}_").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in COMMANDS.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            rows = [(name, command.get_short_help_str(64)) for name, command in commands.items() if command]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BadConfig as error:
            click.echo(f"interlock: {error}", err=True)
            ctx.exit(USAGE)
        except (click.ClickException, click.Abort, click.exceptions.Exit, KeyboardInterrupt, BrokenPipeError):
            raise
        except OSError as error:
            location = f"{error.filename or 'a file'}: {error.strerror}"
            click.echo(f"interlock: {location}. See `interlock config show`.", err=True)
            ctx.exit(CHECK_FAILED)
        except msgspec.DecodeError:
            click.echo("interlock: The stored data cannot be read. Run `interlock doctor`.", err=True)
            ctx.exit(CHECK_FAILED)
        except Exception as error:
            from interlock.ledger.errors import error_of

            known = error_of(error)
            if known is None:
                raise  # a bug
            for_user = known.next_action.replace("Ask the user to run", "Run")
            next_action = "Try again." if known.after_ms else for_user
            click.echo(f"interlock: {known.message.rstrip('.')}. {next_action}".rstrip(), err=True)
            moved = known.after_ms or known.code in MOVED
            ctx.exit(NOT_FOUND if known.code == "NOT_FOUND" else CONFLICT if moved else CHECK_FAILED)


AFTER_COMMANDS = """
New here? `interlock demo` shows it at work, `interlock install CLIENT` connects your agent, and
`interlock COMMAND --help` explains a command.

\b
Shell completion (bash; for others zsh_source or fish_source):
  eval "$(_INTERLOCK_COMPLETE=bash_source interlock)"
"""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=AFTER_COMMANDS)
@click.version_option(__version__, prog_name="interlock")
def cli() -> None:
    """Make AI agents follow a workflow: one step at a time, with gates that wait for a decision."""
