"""`interlock mcp`: the help of the stdio server, which itself goes past click."""

from __future__ import annotations

from typing import Any, get_args

import click

from interlock.cli.config import SURFACES
from interlock.cli.mcp import run
from interlock.cli.options import data_options
from interlock.core.run.commands import DecisionPolicy, Enforcement
from interlock.core.run.preferences import Mode


@click.command(epilog="Example: claude mcp add interlock -- interlock mcp --mode stop")
@click.option("--surface", type=click.Choice(SURFACES), help="Which tool set to serve; execution by default.")
@click.option("--mode", type=click.Choice(get_args(Mode)), help="How far new runs go by themselves.")
@click.option("--decisions", type=click.Choice(get_args(DecisionPolicy)), help="Through whom decisions come.")
@click.option("--enforcement", type=click.Choice(get_args(Enforcement)), help="Whether gates hold or warn.")
@click.option("--min-response-seconds", type=float, metavar="N", help="The fastest answer to a gate.")
@click.option("--disable-tools", metavar="NAME", multiple=True, help="Leave a tool out; repeatable.")
@click.option("--store", metavar="URL", help="Another store, such as sqlite:///PATH.")
@data_options
def command(**flags: Any) -> None:
    """Serve agents over stdio. Agents start this; people need it only to configure a client."""
    raise click.exceptions.Exit(run(list(_arguments(flags))))


def _arguments(flags: dict[str, Any]) -> list[str]:
    """The options as the server reads them."""
    spelled = []
    for name, value in flags.items():
        for one in value if isinstance(value, tuple) else (value,):
            spelled += [] if one is None else [f"--{name.replace('_', '-')}={one}"]
    return spelled
