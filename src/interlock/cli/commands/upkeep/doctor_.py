"""`interlock doctor`: check what is stored, and repair it on request."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.config import Config
from interlock.cli.doctor_checks import run_checks
from interlock.cli.options import json_option, store_option, with_config
from interlock.cli.screen import CHECK_FAILED, line_of, paint, print_json, say


@click.command(epilog="Example: interlock doctor --repair")
@click.option(
    "--repair", "repairs", is_flag=True, help="Repair damage; events that are removed are kept aside."
)
@json_option
@with_config
@store_option
def command(config: Config, repairs: bool, as_json: bool) -> None:
    """Check keys, files, logs and rows. Exits with 1 if a check fails."""
    checks = []
    for check in run_checks(config, repairs=repairs):
        checks.append(check)
        if as_json:
            continue
        result = paint("ok   ", "good") if check.ok else paint("WRONG", "bad")
        say(f"{result}  {check.name:<11}  {line_of(check.detail)}")
        if not check.ok and check.fix:
            say(f"{'':<20}{check.fix}")
    # A damaged file that was recovered by this command is no longer wrong.
    recovered = repairs and any(check.name == "recovery" for check in checks)
    sound = all(check.ok or (recovered and check.name in ("store", "file")) for check in checks)
    if as_json:
        print_json({"ok": sound, "checks": msgspec.to_builtins(checks)})
    if not sound:
        raise click.exceptions.Exit(CHECK_FAILED)
