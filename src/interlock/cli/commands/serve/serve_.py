"""`interlock serve`: the HTTP server."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.config import BadConfig, Config, origins, resolve, shown_values, text_of_setting
from interlock.cli.options import data_options, store_option, terms_options

if TYPE_CHECKING:
    from socket import socket

    from interlock.cli.served_ledger import ServedLedger
    from interlock.console.pages.health import SettingLine
    from interlock.transport.http.admission.oauth import OAuthSettings
    from interlock.transport.http.admission.principals import Verifier
    from interlock.transport.http.app import HttpSettings
    from interlock.transport.http.console.access import ConsoleAccess

NOBODY = "interlock: nobody may call yet; `interlock auth add NAME` makes a token, which holds at once"


@click.command(epilog="Example: interlock serve --port 8750")
@click.option("--host", metavar="ADDRESS", help="The address to listen on; default: 127.0.0.1.")
@click.option(
    "--port", type=int, metavar="N", help="The port to listen on; default: 8750; 0 takes a free one."
)
@click.option(
    "--allowed-hosts",
    metavar="NAME",
    multiple=True,
    help="A name that clients call it by; repeatable.",
)
@click.option(
    "--trusted-proxies",
    metavar="ADDRESS",
    multiple=True,
    help="A proxy, or a network of them, whose X-Forwarded-For and -Proto are believed; repeatable.",
)
@click.option(
    "--check-folders",
    metavar="NAME=FOLDER",
    multiple=True,
    help="Run the trusted checks of a principal in this folder; without it none are run; repeatable.",
)
@click.option("--rate-limit", type=float, metavar="N", help="Requests a second per principal; default: 100.")
@click.option(
    "--concurrency-limit", type=int, metavar="N", help="Requests at a time per principal; default: 256."
)
@click.option(
    "--store-deadline",
    type=float,
    metavar="SECONDS",
    help="How long a call waits for PostgreSQL; default: 4.",
)
@click.option("--oauth-issuer", metavar="URL", help="Accept the access tokens of this authorization server.")
@click.option("--oauth-audience", metavar="URL", help="This server's own URL, which tokens must be made for.")
@click.option("--oauth-jwks", metavar="URL|FILE", help="The keys that the tokens are signed with.")
@click.option("--no-auth", is_flag=True, help="Take everybody on this machine for you. On loopback only.")
@terms_options
@click.option("--quiet", is_flag=True, help="Write no access log.")
@data_options
@store_option
def command(quiet: bool, no_auth: bool, **flags: Any) -> None:
    """Serve agents and the console over HTTP.

    Its addresses: /mcp, /mcp/SURFACE, /console, /healthz, /readyz, /metrics. Callers need a token of
    `interlock auth add`, unless --no-auth is given. Listens on loopback only, unless --host is.
    """
    raise click.exceptions.Exit(start_server(flags, logs=not quiet, no_auth=no_auth))


def start_server(
    flags: Mapping[str, Any],
    *,
    logs: bool,
    opens: bool = False,
    no_auth: bool = False,
    personal: bool = False,
) -> int:
    """Serve until a signal arrives.

    `opens` shows the console in the browser. A `personal` server is the local user's own, whoever has tokens.
    """
    chosen = {name.replace("_", "-"): value for name, value in flags.items() if value not in (None, ())}
    config = resolve(chosen)
    # late: other commands need none of it
    from interlock.cli.served_ledger import ServedLedger
    from interlock.transport.http.admission.oauth import metadata_routes
    from interlock.transport.http.app import application
    from interlock.transport.http.console.access import ConsoleAccess
    from interlock.transport.http.console.routes import ConsoleRoutes
    from interlock.transport.http.server import address_of, run

    service, oauth = ServedLedger(config), oauth_settings(config)
    if no_auth:
        check_no_auth(config, oauth)
    verifier = None if no_auth else verifier_of(config, service, oauth)
    has_callers = oauth is not None or service.tokens.path.exists()
    # What is printed ends up in logs, and this secret makes whoever reads them the local user.
    is_mine = personal or no_auth or not has_callers
    secret = token_urlsafe(24) if is_loopback(config.host) and is_mine else None
    access = ConsoleAccess(service, secret)
    settings = http_settings(config, verifier, access, oauth, logs=logs)
    console = ConsoleRoutes(service.console(setting_lines(config, chosen)), access)
    listener = listening_at(config)
    address = address_of(listener)
    entrance = f"{address}/console/enter?secret={secret}" if secret else f"{address}/console/"
    if opens:
        open_browser(entrance)
    return run(
        application(service, settings, [*console.routes(), *(metadata_routes(oauth) if oauth else ())]),
        listener,
        f"interlock: listening on {address}/mcp",
        f"interlock: the console is at {entrance}",
        *([NOBODY] if verifier is not None and not has_callers else ()),
    )


def http_settings(
    config: Config,
    verifier: Verifier | None,
    access: ConsoleAccess,
    oauth: OAuthSettings | None,
    *,
    logs: bool,
) -> HttpSettings:
    """Return whom the server admits, and how many requests of each."""
    from interlock.transport.http.access_log import write_to_stderr
    from interlock.transport.http.admission.guard import LOOPBACK
    from interlock.transport.http.admission.oauth import challenge
    from interlock.transport.http.app import HttpSettings

    return HttpSettings(
        hosts=(*LOOPBACK, *config.allowed_hosts),
        trusted_proxies=trusted_proxies(config),
        verifier=verifier,
        signed_in=access.principal_in,
        challenge=challenge(oauth) if oauth is not None else {},
        requests_per_second=config.rate_limit,
        requests_in_flight=config.concurrency_limit,
        log=write_to_stderr if logs else None,
    )


def setting_lines(config: Config, chosen: Mapping[str, Any]) -> tuple[SettingLine, ...]:
    """Return the settings as the console shows them, each with where it comes from."""
    from interlock.console.pages.health import SettingLine

    origin = origins(chosen)
    return tuple(
        SettingLine(name, text_of_setting(value), origin.get(name, "default"))
        for name, value in shown_values(config).items()
    )


def listening_at(config: Config) -> socket:
    """Listen where the settings say, or end the command because something else does."""
    from interlock.transport.http.server import listening

    try:
        return listening(config.host, config.port)
    except OSError as error:
        raise BadConfig(f"cannot listen on {config.host}:{config.port}: {error.strerror}") from error


def verifier_of(config: Config, service: ServedLedger, oauth: OAuthSettings | None) -> Verifier:
    """Return who checks the tokens of callers. A server that others can reach needs tokens and a name."""
    from interlock.transport.http.admission.oauth import OAuthVerifier
    from interlock.transport.http.admission.principals import TokenVerifier

    verifier: Verifier = TokenVerifier(service)
    if oauth is not None:
        verifier = OAuthVerifier(oauth, verifier)
    if is_loopback(config.host):
        return verifier
    if oauth is None and not service.tokens.path.exists():
        raise BadConfig(f"host: {config.host} is not loopback; make a token with `interlock auth add` first")
    if not config.allowed_hosts:
        raise BadConfig("host: name what clients call this server with --allowed-hosts")
    return verifier


def trusted_proxies(config: Config) -> tuple[str, ...]:
    """Return the addresses and networks of the proxies in front of this server."""
    for proxy in config.trusted_proxies:
        try:
            network = ipaddress.ip_network(proxy)
        except ValueError as error:
            raise BadConfig(f"trusted-proxies: {error}; use an address or a network") from error
        if not network.prefixlen:
            raise BadConfig(f"trusted-proxies: {proxy} is everybody; name the proxy's address or network")
    return config.trusted_proxies


def check_no_auth(config: Config, oauth: OAuthSettings | None) -> None:
    """Refuse to serve everybody where others than this machine's user can reach the server."""
    if not is_loopback(config.host):
        raise BadConfig(f"no-auth: {config.host} is not loopback; make tokens with `interlock auth add`")
    if config.allowed_hosts:
        raise BadConfig("no-auth: others reach this server under the names of --allowed-hosts")
    if oauth is not None:
        raise BadConfig("no-auth: an authorization server is set; leave one of them out")


def open_browser(address: str) -> None:
    """Open the user's browser beside this process, where there is one with windows."""
    has_windows = sys.platform in ("darwin", "win32") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    )
    if has_windows:
        import threading
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def oauth_settings(config: Config) -> OAuthSettings | None:
    """Return the authorization server that the settings name; a file of keys must be there."""
    from interlock.transport.http.admission.oauth import OAuthSettings

    issuer, audience, jwks = config.oauth_issuer, config.oauth_audience, config.oauth_jwks
    if issuer is None and audience is None and jwks is None:
        return None
    if issuer is None or audience is None or jwks is None:
        raise BadConfig("oauth: set all of oauth-issuer, oauth-audience and oauth-jwks")
    if not jwks.startswith(("https://", "http://")):
        try:
            Path(jwks).read_text()
        except OSError as error:
            raise BadConfig(f"oauth-jwks: {jwks} cannot be read: {error.strerror}") from error
    return OAuthSettings(issuer, audience, jwks)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
