"""`interlock config`: the settings that hold, where each comes from, and the PIN."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.config import Config, known, origins
from interlock.cli.options import config_of, data_options, json_option, print_json
from interlock.cli.person import need_pin, need_terminal
from interlock.cli.reach import with_ledger
from interlock.cli.screen import say, table, talk
from interlock.core.values import Json
from interlock.ledger.decisions.user_pin import set_pin
from interlock.ledger.ledger import Ledger


@click.group()
def command() -> None:
    """Show the settings, or set a PIN for decisions."""


@command.command(epilog="Example: interlock config show --project .")
@data_options
@json_option
def show(data_dir: str | None, project: str | None, workflows: tuple[str, ...], as_json: bool) -> None:
    """Show every setting that holds, and where it comes from."""
    config = config_of(data_dir, project, workflows)
    given = {"data-dir": data_dir, "project": project, "workflows": list(workflows) or None}
    said = origins({name: value for name, value in given.items() if value is not None})
    if as_json:
        print_json(
            {name: {"value": _value(config, name), "from": said.get(name, "default")} for name in known()}
        )
        return
    rows = [(name, _shown(config, name), said.get(name, "default")) for name in known()]
    table(rows, [("accent", "plain", "quiet")] * len(rows))


def _value(config: Config, name: str) -> Json:
    if name == "data-dir":
        return str(config.folder)
    value: Json = msgspec.to_builtins(getattr(config, known()[name]))
    return value


def _shown(config: Config, name: str) -> str:
    value = _value(config, name)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)


@command.command(epilog="Example: interlock config pin")
@with_ledger
def pin(ledger: Ledger) -> None:
    """Set, change or remove the PIN that deciding asks for. Needs a terminal."""
    need_terminal("Setting a PIN")
    need_pin(ledger)
    chosen = click.prompt(
        "New PIN (empty: none)",
        default="",
        show_default=False,
        hide_input=True,
        confirmation_prompt=True,
        err=True,
    )
    set_pin(ledger.store, chosen)
    say("PIN set." if chosen else "PIN removed.")
    talk("It is asked for when you decide, play, or loosen a mode.")
