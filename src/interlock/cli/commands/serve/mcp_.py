"""`interlock mcp`: the help of the stdio server. The server itself is started without click."""

from __future__ import annotations

from typing import Any

import click

from interlock.cli.mcp import serve_stdio
from interlock.cli.options import data_options, store_option, terms_options
from interlock.surfaces.registry import SURFACES


@click.command(epilog="Example: claude mcp add interlock -- interlock mcp --mode stop")
@click.option(
    "--surface", type=click.Choice(list(SURFACES)), help="Which tool set to serve; default: execution."
)
@terms_options
@data_options
@store_option
def command(**flags: Any) -> None:
    """Serve agents over stdio. MCP clients start this command."""
    arguments = []
    for name, value in flags.items():
        for item in value if isinstance(value, tuple) else (value,):
            if item is not None:
                arguments.append(f"--{name.replace('_', '-')}={item}")
    raise click.exceptions.Exit(serve_stdio(arguments))
