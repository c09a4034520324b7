"""`interlock mcp`: the help of the stdio server. The server itself is started without click."""

from __future__ import annotations

from typing import Any, get_args

import click

from interlock.cli.mcp import run
from interlock.cli.options import data_options, store_option
from interlock.core.run.preferences import DecisionPolicy, Enforcement, Mode
from interlock.surfaces.registry import SURFACES


@click.command(epilog="Example: claude mcp add interlock -- interlock mcp --mode stop")
@click.option(
    "--surface", type=click.Choice(list(SURFACES)), help="Which tool set to serve; default: execution."
)
@click.option("--mode", type=click.Choice(get_args(Mode)), help="What new runs stop for; see interlock mode.")
@click.option(
    "--decisions",
    type=click.Choice(get_args(DecisionPolicy)),
    help="Who may answer gates. auto: the user if the client can ask, else the agent.",
)
@click.option(
    "--enforcement",
    type=click.Choice(get_args(Enforcement)),
    help="strict stops at gates; advisory warns about gates that were not opened.",
)
@click.option(
    "--min-response-seconds",
    type=float,
    metavar="N",
    help="Refuse an answer within N seconds after a gate opened.",
)
@click.option("--disable-tools", metavar="NAME", multiple=True, help="Leave out a tool; repeatable.")
@store_option
@data_options
def command(**flags: Any) -> None:
    """Serve agents over stdio. MCP clients start this command."""
    arguments = []
    for name, value in flags.items():
        for item in value if isinstance(value, tuple) else (value,):
            if item is not None:
                arguments.append(f"--{name.replace('_', '-')}={item}")
    raise click.exceptions.Exit(run(arguments))
