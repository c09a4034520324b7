"""`interlock install CLIENT`: put the server into a client's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from interlock.cli.clients import (
    CLIENTS,
    ClientConfig,
    ClientName,
    ServerEntry,
    UnreadableConfig,
    entry_of,
    installed,
    save,
    snippet,
)
from interlock.cli.config import SURFACES
from interlock.cli.exits import CHECK_FAILED, USAGE
from interlock.cli.screen import say, stop, talk


@click.command(epilog="Example: interlock install claude-code --surface session --name interlock-session")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--print", "only_print", is_flag=True, help="Print the entry; change nothing.")
@click.option("--project", metavar="PATH", help="Into this project's file instead of the user's.")
@click.option("--name", default="interlock", show_default=True, help="The server's name in the client.")
@click.option("--surface", type=click.Choice(SURFACES), help="Which tool set to serve.")
@click.option("--workflows", metavar="[NAME=]PATH", multiple=True, help="More workflows; repeatable.")
@click.option("--data-dir", metavar="PATH", help="Where sessions are kept.")
def command(
    client: ClientName,
    only_print: bool,
    project: str | None,
    name: str,
    surface: str | None,
    workflows: tuple[str, ...],
    data_dir: str | None,
) -> None:
    """Write the server into the configuration of a client, once, keeping a copy of what was there."""
    if not name.replace("-", "").replace("_", "").isalnum():
        stop(USAGE, f"“{name}” is no name for a server. Use letters, digits, - and _.")
    entry = entry_of(name, list(_arguments(surface, workflows, data_dir, project)))
    chosen = CLIENTS[client]
    if only_print:
        say(snippet(chosen, entry).rstrip())
        return
    _install(client, chosen, _path(client, chosen, project), entry)


def _arguments(
    surface: str | None, workflows: tuple[str, ...], data_dir: str | None, project: str | None
) -> Iterator[str]:
    if surface:
        yield f"--surface={surface}"
    for one in workflows:
        name, separator, path = one.rpartition("=")
        yield f"--workflows={name}{separator}{Path(path).expanduser().resolve()}"
    if data_dir:
        yield f"--data-dir={Path(data_dir).expanduser().resolve()}"
    if project:
        yield f"--project={Path(project).expanduser().resolve()}"


def _path(client: ClientName, chosen: ClientConfig, project: str | None) -> Path:
    if project is None:
        return chosen.user()
    if chosen.project is None:
        stop(USAGE, f"{client} has no configuration within a project. Leave --project out.")
    return Path(project) / chosen.project


def _install(client: ClientName, chosen: ClientConfig, path: Path, entry: ServerEntry) -> None:
    try:
        text, change = installed(chosen, path, entry)
        backup = save(path, text) if change != "unchanged" else None
    except (UnreadableConfig, UnicodeDecodeError) as error:
        stop(
            CHECK_FAILED,
            f"{error}, so it was left alone. Add this by hand: interlock install {client} --print",
        )
    except OSError as error:
        stop(CHECK_FAILED, f"{path} cannot be written: {error.strerror}. Use --print and add it by hand.")
    say(f"{entry.name}: {change} in {path}")
    if backup is not None:
        talk(f"What was there before is kept in {backup.name}.")
    if change != "unchanged":
        talk(f"Restart {client} to use it.")
