"""`interlock install CLIENT`: add the server to a client's configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from interlock.cli.clients import (
    CLIENTS,
    ClientName,
    UnreadableConfig,
    entry_of,
    is_cached,
    save,
    snippet,
    with_entry,
)
from interlock.cli.options import data_dir_option, workflows_option
from interlock.cli.screen import CHECK_FAILED, USAGE, inform, say, stop
from interlock.surfaces.registry import SURFACES


@click.command(epilog="Example: interlock install claude-code --surface session --name interlock-session")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--print", "only_print", is_flag=True, help="Print the entry; change nothing.")
@click.option("--project", metavar="PATH", help="Use this project's file instead of the user's.")
@click.option("--name", default="interlock", show_default=True, help="The server's name in the client.")
@click.option("--surface", type=click.Choice(list(SURFACES)), help="Which tool set to serve.")
@workflows_option
@data_dir_option
def command(
    client: ClientName,
    only_print: bool,
    project: str | None,
    name: str,
    surface: str | None,
    workflows: tuple[str, ...],
    data_dir: str | None,
) -> None:
    """Add the server to a client's configuration. A copy of the old file is kept."""
    if not name.replace("-", "").replace("_", "").isalnum():
        stop(USAGE, f"'{name}' cannot be the name of a server. Use letters, digits, - and _.")
    if is_cached(sys.prefix):
        advice = "Install it first, with `uv tool install` or `pipx install`, then run this again."
        stop(CHECK_FAILED, f"This interlock runs from a cache ({sys.prefix}) that may be emptied. {advice}")
    arguments = [f"--surface={surface}"] if surface else []
    root = Path(project).expanduser().resolve() if project else None
    for mount in workflows:
        namespace, separator, mounted = mount.rpartition("=")
        path = Path(mounted).expanduser().resolve()
        if root is not None and path.is_relative_to(root):  # clients start servers in the project
            path = path.relative_to(root)
        arguments.append(f"--workflows={namespace}{separator}{path}")
    if data_dir:
        arguments.append(f"--data-dir={Path(data_dir).expanduser().resolve()}")
    entry = entry_of(name, arguments, shared=project is not None)
    chosen = CLIENTS[client]
    if surface == "lookup":
        inform(
            "lookup speaks only MCP 2024-11-05, as its document says; today's clients refuse that version."
        )
    if only_print:
        say(snippet(chosen, entry).rstrip())
        return
    path = chosen.user()
    if project is not None:
        if chosen.project is None:
            stop(USAGE, f"{client} has no configuration file for projects. Leave out --project.")
        path = Path(project) / chosen.project
        if any("=/" in argument for argument in entry.args):
            inform(f"{chosen.project} now names folders of this machine; they are not on your team's.")
    try:
        text, change = with_entry(chosen, path, entry)
        backup = save(path, text) if change != "unchanged" else None
    except (UnreadableConfig, UnicodeDecodeError) as error:
        by_hand = f"Add this by hand: interlock install {client} --print"
        stop(CHECK_FAILED, f"{error}; it was not changed. {by_hand}")
    except OSError as error:
        stop(CHECK_FAILED, f"{path} cannot be written: {error.strerror}. Use --print and add it by hand.")
    say(f"{name}: {change} in {path}")
    if backup is not None:
        inform(f"The old file is kept as {backup.name}.")
    if change != "unchanged":
        inform(f"Restart {client} to use it.")
