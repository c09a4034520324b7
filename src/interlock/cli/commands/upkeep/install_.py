"""`interlock install CLIENT`: add the server to a client's configuration."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args
from urllib.parse import SplitResult, urlsplit

import click

from interlock.cli.clients import (
    CLIENTS,
    ClientName,
    LocalServer,
    RemoteServer,
    UnreadableConfig,
    is_cached,
    local_server,
    save,
    snippet,
    with_entry,
)
from interlock.cli.options import data_dir_option, workflows_option
from interlock.cli.screen import CHECK_FAILED, USAGE, inform, say, stop
from interlock.core.run.preferences import DecisionPolicy
from interlock.surfaces.registry import SURFACES

OWN_COMMAND_SECONDS = 60
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@click.command(epilog="Example: interlock install claude-code --surface session --name interlock-session")
@click.argument("client", metavar="CLIENT", type=click.Choice(list(CLIENTS)))
@click.option("--print", "only_print", is_flag=True, help="Print the entry; change nothing.")
@click.option("--project", metavar="PATH", help="Use this project's file instead of the user's.")
@click.option("--name", default="interlock", show_default=True, help="The server's name in the client.")
@click.option("--surface", type=click.Choice(list(SURFACES)), help="Which tool set to serve.")
@click.option(
    "--decisions",
    type=click.Choice(get_args(DecisionPolicy)),
    help="Who may answer gates; default: your config file's, else auto.",
)
@click.option("--url", metavar="URL", help="Connect to an `interlock serve` at this address.")
@click.option("--token-env", metavar="NAME", help="The variable that holds the token for --url.")
@workflows_option
@data_dir_option
def command(
    client: ClientName,
    only_print: bool,
    project: str | None,
    name: str,
    surface: str | None,
    decisions: str | None,
    url: str | None,
    token_env: str | None,
    workflows: tuple[str, ...],
    data_dir: str | None,
) -> None:
    """Add the server to a client's configuration.

    CLIENT is claude-code, claude-desktop, cursor, vscode, codex or gemini. The client's own command adds it
    where there is one; else its file is changed and a copy of it kept.
    """
    if not name.replace("-", "").replace("_", "").isalnum():
        stop(USAGE, f"'{name}' cannot be the name of a server. Use letters, digits, - and _.")
    chosen = CLIENTS[client]
    server: LocalServer | RemoteServer
    if url is not None:
        if workflows or data_dir or decisions:
            theirs = "--workflows, --data-dir and --decisions"
            stop(USAGE, f"{theirs} belong to `interlock serve`, not to its clients.")
        if not chosen.takes_addresses:
            stop(USAGE, f"{client} takes no addresses from its file. Add {url} under Settings, Connectors.")
        server = _remote(name, url, surface, token_env)
    elif token_env is not None:
        stop(USAGE, "--token-env is for a server at an address. Give --url too.")
    else:
        server = _local(name, {"surface": surface, "decisions": decisions}, project, workflows, data_dir)
    if surface == "lookup":
        inform(
            "lookup speaks only MCP 2024-11-05, as its document says; today's clients refuse that version."
        )
    if only_print:
        say(snippet(chosen, server).rstrip())
        return
    _add(client, server, project)
    if chosen.inputs(server):
        inform(f"{client} asks for the token once and keeps it.")
    elif token_env is not None:
        inform(f"Put the token in {token_env}, in the environment that {client} starts in.")
    if client == "codex" and project is not None:
        inform("codex reads this file once you trust the project.")


def _add(client: ClientName, server: LocalServer | RemoteServer, project: str | None) -> None:
    """Add the entry, by the client's own command where there is one, and say what was changed."""
    chosen, path = CLIENTS[client], file_of(client, project)
    arguments = server.args if isinstance(server, LocalServer) else ()
    if project is not None and any("=/" in argument for argument in arguments):
        inform(f"{chosen.project} now names folders of this machine; they are not on your team's.")
    try:
        _, change = with_entry(chosen, path, server)
        by_itself = change == "added" and project is None and done_by_client(chosen.own_command(server))
        is_ours = change != "unchanged" and not by_itself
        # The client's own command may have changed the file before it failed: it is read again.
        backup = save(path, with_entry(chosen, path, server)[0]) if is_ours else None
    except (UnreadableConfig, UnicodeDecodeError) as error:
        by_hand = f"To add the entry by hand, see `interlock install {client} --print`."
        stop(CHECK_FAILED, f"{error}; it was not changed. {by_hand}")
    except OSError as error:
        stop(CHECK_FAILED, f"{path} cannot be written: {error.strerror}. Use --print and add it by hand.")
    say(f"{server.name}: {change} {f'by {client}' if by_itself else f'in {path}'}")
    if backup is not None:
        inform(f"The old file is kept as {backup.name}.")
    if change != "unchanged":
        inform(f"Restart {client} to use it.")


def file_of(client: ClientName, project: str | None) -> Path:
    """Return the file that lists the client's servers: the user's, or a project's."""
    chosen = CLIENTS[client]
    if project is None:
        return chosen.user()
    if chosen.project is None:
        stop(USAGE, f"{client} has no configuration file for projects. Leave out --project.")
    return Path(project) / chosen.project


def _local(
    name: str,
    chosen_flags: Mapping[str, str | None],
    project: str | None,
    workflows: tuple[str, ...],
    data_dir: str | None,
) -> LocalServer:
    """Return the server that a client starts, with paths that hold wherever it does."""
    if is_cached(sys.prefix):
        advice = "Install it first, with `uv tool install` or `pipx install`, then run this again."
        stop(CHECK_FAILED, f"This interlock runs from a cache ({sys.prefix}) that may be emptied. {advice}")
    arguments = [f"--{flag}={value}" for flag, value in chosen_flags.items() if value]
    root = Path(project).expanduser().resolve() if project else None
    for mount in workflows:
        namespace, separator, mounted = mount.rpartition("=")
        path = Path(mounted).expanduser().resolve()
        if root is not None and path.is_relative_to(root):  # clients start servers in the project
            path = path.relative_to(root)
        arguments.append(f"--workflows={namespace}{separator}{path}")
    if data_dir:
        arguments.append(f"--data-dir={Path(data_dir).expanduser().resolve()}")
    return local_server(name, arguments, shared=project is not None)


def _remote(name: str, url: str, surface: str | None, token_env: str | None) -> RemoteServer:
    """Return the server at an address, which must hold no secret."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = SplitResult("", "", "", "", ""), ""
    if parts.scheme not in ("http", "https") or not host:
        stop(USAGE, "--url takes an address such as https://interlock.example.org")
    if "@" in parts.netloc or parts.query or parts.fragment:
        stop(
            USAGE, "--url takes no user, password, query or fragment. Name the token's variable: --token-env"
        )
    if token_env is not None and not VARIABLE.fullmatch(
        token_env
    ):  # it may be the token itself: say nothing of it
        stop(USAGE, "--token-env takes the name of a variable, such as INTERLOCK_TOKEN, not a token.")
    if token_env and parts.scheme == "http" and host not in ("127.0.0.1", "::1", "localhost"):
        inform(f"The token will go to {host} unencrypted. Use https.")
    path = parts.path.rstrip("/")
    if path not in ("", "/mcp") and surface is not None:
        stop(USAGE, f"The address already names {path}. Leave out --surface, or the path.")
    if path in ("", "/mcp"):
        path = f"/mcp/{surface}" if surface else "/mcp"
    return RemoteServer(name, f"{parts.scheme}://{parts.netloc}{path}", token_env)


def done_by_client(own_command: Sequence[str] | None) -> bool:
    """Let the client change its configuration by its own command; say whether it did."""
    found = shutil.which(own_command[0]) if own_command else None
    if not own_command or found is None:
        return False
    try:
        ran = subprocess.run(
            [found, *own_command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=OWN_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        ran = None
    if ran is not None and ran.returncode == 0:
        return True
    inform(f"`{own_command[0]} {own_command[1]}` failed; its file is changed instead.")
    return False
