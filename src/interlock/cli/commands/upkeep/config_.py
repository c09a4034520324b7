"""`interlock config`: the effective settings, where each comes from, and the PIN."""

from __future__ import annotations

import click

from interlock.cli.config import origins, shown_values, text_of_setting
from interlock.cli.interactive import require_pin, require_terminal
from interlock.cli.options import config_of, data_options, flags_of, json_option, with_ledger
from interlock.cli.screen import inform, print_json, say, table
from interlock.core.run.preferences import LABELS, PRESETS
from interlock.ledger.decisions.user_pin import set_pin
from interlock.ledger.ledger import Ledger


@click.group()
def command() -> None:
    """Show the settings, or set the PIN for decisions."""


@command.command(epilog="Example: interlock config show --project .")
@json_option
@data_options
def show(data_dir: str | None, project: str | None, workflows: tuple[str, ...], as_json: bool) -> None:
    """Show every setting, and where it is set."""
    config = config_of(data_dir, project, workflows)
    origin = origins(flags_of(data_dir, project, workflows))
    values = shown_values(config)
    label = LABELS[PRESETS[config.mode].autonomy] if config.mode else None
    if as_json:
        entries = {
            name: {"value": value, "from": origin.get(name, "default")} for name, value in values.items()
        }
        if label:
            entries["mode"] |= {"label": label.label, "description": label.description}
        print_json(entries)
        return
    shown = {name: text_of_setting(value) or "-" for name, value in values.items()}
    shown["mode"] = f"{config.mode} ({label.label})" if label else "as chosen with interlock mode"
    rows = [(name, text, origin.get(name, "default")) for name, text in shown.items()]
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
