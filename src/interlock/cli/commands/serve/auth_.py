"""`interlock auth`: who may call a server over HTTP. A token is shown once and stored as a hash."""

from __future__ import annotations

import time
from typing import Any, get_args

import click
import msgspec

from interlock.cli.options import config_of, data_dir_option, json_option
from interlock.cli.screen import (
    CHECK_FAILED,
    NOT_FOUND,
    USAGE,
    age,
    clock,
    inform,
    print_json,
    say,
    stop,
    table,
)
from interlock.core.principals import Role
from interlock.ledger.tokens.access_tokens import AccessTokens, InvalidPrincipal, PrincipalsDamaged


class AuthCommands(click.Group):
    """The commands, which all say the same of a file that cannot be read."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PrincipalsDamaged as error:
            stop(CHECK_FAILED, str(error))


@click.group(cls=AuthCommands)
def command() -> None:
    """Give and revoke tokens for callers over HTTP; name groups."""


@command.command(epilog="Example: interlock auth add ada --role approver")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(get_args(Role)),
    default="user",
    show_default=True,
    help="approver: may decide for others. admin: that, and sees settings and metrics."
    " metrics: may read the metrics and nothing else.",
)
@data_dir_option
def add(name: str, role: Role, data_dir: str | None) -> None:
    """Make a token for a principal and show it, once."""
    try:
        token = AccessTokens(config_of(data_dir).folder).add(name, role, time.time_ns() // 1_000_000)
    except InvalidPrincipal as error:
        stop(USAGE, f"{error}. See `interlock auth --help`.")
    say(token)
    inform(f"This is the token of {name} ({role}). It is not stored and cannot be shown again.")


@command.command("list", epilog="Example: interlock auth list")
@json_option
@data_dir_option
def list_(data_dir: str | None, as_json: bool) -> None:
    """List who has a token."""
    tokens = AccessTokens(config_of(data_dir).folder).all()
    if as_json:
        shown: Any = [{"name": token.name, "role": token.role, "madeAt": token.made_at} for token in tokens]
        print_json({"principals": msgspec.to_builtins(shown)})
        return
    rows = [(token.name, token.role, age(token.made_at)) for token in tokens]
    table(rows, [("accent", "plain", "quiet")] * len(rows))
    if not rows:
        inform("Nobody has a token. Make one with `interlock auth add NAME`.")


@command.command(epilog="Example: interlock auth group release-leads ada ben")
@click.argument("name")
@click.argument("members", nargs=-1)
@data_dir_option
def group(name: str, members: tuple[str, ...], data_dir: str | None) -> None:
    """Say who belongs to a group that gates may name; without members it is removed."""
    try:
        AccessTokens(config_of(data_dir).folder).set_group(name, members)
    except InvalidPrincipal as error:
        stop(USAGE, f"{error}. See `interlock auth --help`.")
    say(f"{name}: {', '.join(dict.fromkeys(members)) or 'removed'}")


@command.command(epilog="Example: interlock auth groups")
@json_option
@data_dir_option
def groups(data_dir: str | None, as_json: bool) -> None:
    """List the groups, and who stands in for whom."""
    file = AccessTokens(config_of(data_dir).folder).read()
    if as_json:
        print_json(
            {"groups": msgspec.to_builtins(file.groups), "delegated": msgspec.to_builtins(file.delegated)}
        )
        return
    for name, members in sorted(file.groups.items()):
        say(f"{name}: {', '.join(members)}")
    for each in file.delegated:
        say(f"{each.to} stands in for {each.of} until {clock(each.until)}")
    if not file.groups:
        inform("There are no groups. Make one with `interlock auth group NAME MEMBER…`.")


@command.command(epilog="Example: interlock auth revoke ada")
@click.argument("name")
@data_dir_option
def revoke(name: str, data_dir: str | None) -> None:
    """Revoke the token of a principal. Running servers refuse it at once; its sessions stay."""
    if not AccessTokens(config_of(data_dir).folder).revoke(name):
        stop(NOT_FOUND, f"'{name}' has no token. See `interlock auth list`.")
    say(f"{name}: revoked")
