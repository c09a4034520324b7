"""`interlock config`: the effective settings, where each comes from, and the PIN."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click
from msgspec import to_builtins

from interlock.authoring.sources.atomic_write import replace_file
from interlock.cli.compose import ledger_of
from interlock.cli.config import (
    LISTS,
    checked_setting,
    is_looser,
    origins,
    setting_names,
    settings_in,
    shown_values,
    text_of_setting,
    user_file,
    variable_of,
)
from interlock.cli.interactive import require_pin, require_terminal
from interlock.cli.options import (
    config_of,
    data_dir_option,
    data_options,
    flags_of,
    json_option,
    with_ledger,
)
from interlock.cli.screen import NOT_FOUND, USAGE, inform, print_json, say, stop, table
from interlock.core.run.preferences import LABELS, PRESETS
from interlock.ledger.decisions.user_pin import set_pin
from interlock.ledger.ledger import Ledger


@click.group()
def command() -> None:
    """Show or change the settings, or set the PIN for decisions."""


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


@command.command("set", epilog="Example: interlock config set decisions user")
@click.argument("name", metavar="NAME")
@click.argument("values", metavar="VALUE…", nargs=-1, required=True)
@data_dir_option
def set_(name: str, values: tuple[str, ...], data_dir: str | None) -> None:
    """Change a setting in your config file. A looser mode, policy or enforcement needs a terminal."""
    _require_setting(name)
    if len(values) > 1 and name not in LISTS:
        stop(USAGE, f"{name} takes one value.")
    value = checked_setting(name, list(values) if name in LISTS else values[0], "config set")
    _write(name, value, data_dir)


@command.command(epilog="Example: interlock config unset decisions")
@click.argument("name", metavar="NAME")
@data_dir_option
def unset(name: str, data_dir: str | None) -> None:
    """Remove a setting from your config file, so that its default is in force."""
    _require_setting(name)
    _write(name, None, data_dir)


def _require_setting(name: str) -> None:
    """End the command unless the user's file can have this setting."""
    names = [known for known in setting_names() if known != "data-dir"]
    if name == "data-dir":
        stop(USAGE, "data-dir says where the config file is. Use --data-dir or INTERLOCK_DATA_DIR.")
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Settings: {', '.join(names)}."
        stop(NOT_FOUND, f"There is no setting '{name}'. {hint}")


def _write(name: str, value: Any, data_dir: str | None) -> None:
    """Change one setting of the user's file, keep the rest as it is written, and say what is in force."""
    import tomlkit

    path = user_file(data_dir)
    present = settings_in(path)
    if value is None and name not in present:
        stop(NOT_FOUND, f"{name} is not set in {path}.")
    if is_looser(name, value, present.get(name)):
        _require_person(data_dir, name)
    document = tomlkit.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
    if value is None:
        del document[name]
    else:
        document[name] = to_builtins(value)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path.resolve(), tomlkit.dumps(document).encode())
    say(f"{name}: {'removed from' if value is None else 'written to'} {path}")
    shown = text_of_setting(shown_values(config_of(data_dir))[name]) or "none"
    origin = origins(flags_of(data_dir, None, ())).get(name, "user")
    if origin != "user":
        by = variable_of(name) if origin == "variable" else f"the {origin}'s setting"
        inform(f"But {by} outranks it here: {name} is {shown}.")
    elif value is None:
        inform(f"In force now: {shown}.")
    inform("Servers that are running keep their settings; restart the client or `interlock serve`.")


def _require_person(data_dir: str | None, name: str) -> None:
    """Ask for a terminal and the PIN, as for a looser mode."""
    require_terminal(f"A looser value of {name}")
    ledger = ledger_of(config_of(data_dir))
    try:
        require_pin(ledger)
    finally:
        ledger.store.close()


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
