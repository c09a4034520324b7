"""`interlock delegate`: let somebody answer in a person's place for a time."""

from __future__ import annotations

import re
import time

import click

from interlock.cli.interactive import require_terminal
from interlock.cli.options import config_of, data_dir_option
from interlock.cli.screen import USAGE, clock, say, stop
from interlock.ledger.tokens.access_tokens import AccessTokens, InvalidPrincipal

UNITS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


@click.command(epilog="Example: interlock delegate ada ben --for 2d")
@click.argument("of", metavar="FROM")
@click.argument("to", metavar="TO")
@click.option("--for", "duration", default="1d", show_default=True, metavar="TIME", help="Such as 4h or 2d.")
@click.option("--end", is_flag=True, help="End it now.")
@data_dir_option
def command(of: str, to: str, duration: str, end: bool, data_dir: str | None) -> None:
    """Let TO answer gates in the place of FROM for a time.

    Needs a terminal. It gives FROM's seat to TO: a person still counts once, and whoever started a run does
    not count.
    """
    require_terminal("A delegation")
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mhd]", duration):
        stop(USAGE, f"'{duration}' is not a time; write a number and m, h or d.")
    now = time.time_ns() // 1_000_000
    until = 0 if end else now + int(duration[:-1]) * UNITS[duration[-1]]
    try:
        AccessTokens(config_of(data_dir).folder).delegate(of, to, until, now)
    except InvalidPrincipal as error:
        stop(USAGE, f"{error}.")
    say(f"{of}: ended" if end else f"{to} stands in for {of} until {clock(until)}")
