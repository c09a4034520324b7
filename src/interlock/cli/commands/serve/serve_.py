"""`interlock serve`: the HTTP server."""

from __future__ import annotations

import ipaddress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from interlock.cli.config import BadConfig, Config, resolve
from interlock.cli.options import data_options, store_option
from interlock.core.run.preferences import DecisionPolicy, Enforcement, Mode

if TYPE_CHECKING:
    from interlock.transport.http.admission.oauth import OAuthSettings

PACKAGES = ("mcp", "starlette", "uvicorn", "httptools")


@click.command(epilog="Example: interlock serve --port 8750")
@click.option("--host", help="The address to listen on; default: 127.0.0.1.")
@click.option("--port", type=int, help="The port to listen on; default: 8750; 0 takes a free one.")
@click.option(
    "--allowed-hosts",
    metavar="NAME",
    multiple=True,
    help="A name that clients call it by; repeatable.",
)
@click.option("--rate-limit", type=float, metavar="N", help="Requests a second per principal; default: 100.")
@click.option(
    "--concurrency-limit", type=int, metavar="N", help="Requests at a time per principal; default: 256."
)
@click.option("--oauth-issuer", metavar="URL", help="Accept the access tokens of this authorization server.")
@click.option("--oauth-audience", metavar="URL", help="This server's own URL, which tokens must be made for.")
@click.option("--oauth-jwks", metavar="URL|FILE", help="The keys that the tokens are signed with.")
@click.option("--mode", type=click.Choice(get_args(Mode)), help="What new runs stop for; see interlock mode.")
@click.option("--decisions", type=click.Choice(get_args(DecisionPolicy)), help="Who may answer gates.")
@click.option("--enforcement", type=click.Choice(get_args(Enforcement)), help="How strict gates are.")
@click.option("--min-response-seconds", type=float, metavar="N", help="Refuse an answer within N seconds.")
@click.option("--disable-tools", metavar="NAME", multiple=True, help="Leave out a tool; repeatable.")
@click.option("--quiet", is_flag=True, help="Write no access log.")
@store_option
@data_options
def command(quiet: bool, **flags: Any) -> None:
    """Serve agents over HTTP: /mcp, /mcp/SURFACE, /healthz, /readyz, /metrics.

    Listens on loopback only. To listen elsewhere, make tokens with `interlock auth add` first.
    """
    given = {name: value for name, value in flags.items() if value not in (None, ())}
    config = resolve({name.replace("_", "-"): value for name, value in given.items()})
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise BadConfig(f"serve: {missing[0]} is not installed; run `pip install 'interlock[serve]'`")
    from interlock.cli.served_ledger import ServedLedger
    from interlock.transport.http.access_log import write_to_stderr
    from interlock.transport.http.admission.guard import LOOPBACK
    from interlock.transport.http.admission.oauth import OAuthVerifier, challenge, metadata_routes
    from interlock.transport.http.admission.principals import TokenVerifier, Verifier
    from interlock.transport.http.app import HttpSettings, application
    from interlock.transport.http.server import listening, run

    service = ServedLedger(config)
    verifier: Verifier | None = TokenVerifier(service) if service.tokens.all() else None
    oauth = oauth_settings(config)
    if oauth is not None:
        verifier = OAuthVerifier(oauth, verifier)
    if not is_loopback(config.host):
        if verifier is None:
            raise BadConfig(
                f"host: {config.host} is not loopback; make a token with `interlock auth add` first"
            )
        if not config.allowed_hosts:
            raise BadConfig("host: name what clients call this server with --allowed-hosts")
    settings = HttpSettings(
        hosts=(*LOOPBACK, *config.allowed_hosts),
        verifier=verifier,
        challenge=challenge(oauth) if oauth is not None else {},
        requests_per_second=config.rate_limit,
        requests_in_flight=config.concurrency_limit,
        log=None if quiet else write_to_stderr,
    )
    try:
        listener = listening(config.host, config.port)
    except OSError as error:
        raise BadConfig(f"cannot listen on {config.host}:{config.port}: {error.strerror}") from error
    raise click.exceptions.Exit(
        run(application(service, settings, metadata_routes(oauth) if oauth else ()), listener)
    )


def oauth_settings(config: Config) -> OAuthSettings | None:
    """Return the authorization server that the settings name; keys in a file are read."""
    from interlock.transport.http.admission.oauth import OAuthSettings

    issuer, audience, jwks = config.oauth_issuer, config.oauth_audience, config.oauth_jwks
    if issuer is None and audience is None and jwks is None:
        return None
    if issuer is None or audience is None or jwks is None:
        raise BadConfig("oauth: set all of oauth-issuer, oauth-audience and oauth-jwks")
    if jwks.startswith(("https://", "http://")):
        return OAuthSettings(issuer, audience, jwks)
    try:
        return OAuthSettings(issuer, audience, Path(jwks).read_text())
    except OSError as error:
        raise BadConfig(f"oauth-jwks: {jwks} cannot be read: {error.strerror}") from error


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
