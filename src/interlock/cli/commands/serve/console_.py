"""`interlock console`: the console on this machine, in the browser."""

from __future__ import annotations

from typing import Any

import click

from interlock.cli.commands.serve.serve_ import start_server
from interlock.cli.options import data_options, store_option


@click.command(epilog="Example: interlock console")
@click.option("--port", type=int, default=0, metavar="N", help="The port to listen on; default: a free one.")
@click.option("--no-open", is_flag=True, help="Print the address, and leave the browser alone.")
@data_options
@store_option
def command(no_open: bool, **flags: Any) -> None:
    """See every run and answer gates in the browser. Serves this machine only.

    The address that it prints holds a secret of this launch: whoever opens it may decide for you.
    """
    flags["host"] = "127.0.0.1"
    raise click.exceptions.Exit(start_server(flags, logs=False, opens=not no_open, personal=True))
