"""`interlock config`: the effective settings, where each comes from, and the PIN."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.config import PROJECT_WORKFLOWS, origins, setting_names, without_password
from interlock.cli.interactive import require_pin, require_terminal
from interlock.cli.options import config_of, data_options, flags_of, json_option, with_ledger
from interlock.cli.screen import inform, print_json, say, table
from interlock.core.values import Json
from interlock.ledger.decisions.user_pin import set_pin
from interlock.ledger.ledger import Ledger


@click.group()
def command() -> None:
    """Show the settings, or set the PIN for decisions."""


@command.command(epilog="Example: interlock config show --project .")
@data_options
@json_option
def show(data_dir: str | None, project: str | None, workflows: tuple[str, ...], as_json: bool) -> None:
    """Show every setting, and where it is set."""
    config = config_of(data_dir, project, workflows)
    origin = origins(flags_of(data_dir, project, workflows))
    values: dict[str, Json] = {
        name: msgspec.to_builtins(getattr(config, attribute)) for name, attribute in setting_names().items()
    }
    values["data-dir"] = str(config.folder)
    if config.project_workflows:
        values[PROJECT_WORKFLOWS] = list(config.project_workflows)
    if config.store is not None:
        values["store"] = without_password(config.store)
    if as_json:
        print_json(
            {name: {"value": value, "from": origin.get(name, "default")} for name, value in values.items()}
        )
        return
    rows = []
    for name, value in values.items():
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value or "")
        rows.append((name, text or "-", origin.get(name, "default")))
    table(rows, [("accent", "plain", "quiet")] * len(rows))


@command.command(epilog="Example: interlock config pin")
@with_ledger
def pin(ledger: Ledger) -> None:
    """Set, change or remove the PIN that decisions require. Needs a terminal."""
    require_terminal("Setting a PIN")
    require_pin(ledger)
    chosen = click.prompt(
        "New PIN (empty: none)",
        default="",
        show_default=False,
        hide_input=True,
        confirmation_prompt=True,
        err=True,
    )
    set_pin(ledger.store, ledger.owner, chosen)
    say("PIN set." if chosen else "PIN removed.")
    if chosen:
        inform("You will be asked for it when you decide, play, or loosen a mode.")
