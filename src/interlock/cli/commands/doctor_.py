"""`interlock doctor`: look at everything that can go wrong on disk, and repair it when asked."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from interlock.cli.diagnosis import Check, examine
from interlock.cli.exits import CHECK_FAILED
from interlock.cli.options import config_of, data_options, json_option, print_json
from interlock.cli.screen import line_of, paint, say


@click.command(epilog="Example: interlock doctor --repair")
@click.option("--repair", "mend", is_flag=True, help="Repair what is damaged; what is cut is kept.")
@data_options
@json_option
def command(mend: bool, as_json: bool, **where: Any) -> None:
    """Check keys, file, log and rows. Exits with 1 if something is wrong."""
    checks = []
    for check in examine(config_of(**where), mend=mend):
        checks.append(check)
        if not as_json:
            _show(check)
    sound = all(check.ok for check in checks if not mend or not _mended(check, checks))
    if as_json:
        print_json({"ok": sound, "checks": msgspec.to_builtins(checks)})
    if not sound:
        raise click.exceptions.Exit(CHECK_FAILED)


def _mended(check: Check, checks: list[Check]) -> bool:
    """A damaged file that was recovered in the same run is no longer wrong."""
    return check.name in ("store", "file") and any(one.name == "recovery" for one in checks)


def _show(check: Check) -> None:
    word = paint("ok   ", "good") if check.ok else paint("WRONG", "bad")
    say(f"{word}  {check.name:<11}  {line_of(check.detail)}")
    if not check.ok and check.fix:
        say(f"{'':<20}{check.fix}")
