"""`interlock uninstall CLIENT`: remove the server from a client's configuration."""

from __future__ import annotations

import click

from interlock.cli.clients import CLIENTS, ClientName, UnreadableConfig, names_in, save, without_entry
from interlock.cli.commands.upkeep.install_ import done_by_client, file_of
from interlock.cli.config import user_file
from interlock.cli.screen import CHECK_FAILED, NOT_FOUND, inform, say, stop


@click.command(epilog="Example: interlock uninstall claude-code")
@click.argument("client", metavar="CLIENT", type=click.Choice(list(CLIENTS)))
@click.option("--project", metavar="PATH", help="Use this project's file instead of the user's.")
@click.option("--name", default="interlock", show_default=True, help="The server's name in the client.")
def command(client: ClientName, project: str | None, name: str) -> None:
    """Remove the server from a client's configuration.

    Everything else in the client's file stays, and so do your sessions and settings.
    """
    chosen, path = CLIENTS[client], file_of(client, project)
    try:
        if without_entry(chosen, path, name) is None:
            others = ", ".join(names_in(chosen, path)) or "none"
            stop(NOT_FOUND, f"There is no server '{name}' in {path}. Its servers: {others}.")
        if project is None and chosen.own_removal:
            done_by_client((*chosen.own_removal, name))
        # A client may have another file than the one it changed.
        rest = without_entry(chosen, path, name)
        backup = save(path, rest) if rest is not None else None
    except (UnreadableConfig, UnicodeDecodeError) as error:
        stop(CHECK_FAILED, f"{error}; it was not changed. Remove '{name}' from {path} by hand.")
    except OSError as error:
        stop(CHECK_FAILED, f"{path} cannot be written: {error.strerror}.")
    say(f"{name}: removed {f'from {path}' if backup else f'by {client}'}")
    if backup is not None:
        inform(f"The old file is kept as {backup.name}.")
    inform(f"Your sessions and settings stay in {user_file(None).parent}. Restart {client}.")
