"""`interlock serve`: the HTTP server."""

from __future__ import annotations

import ipaddress
from importlib.util import find_spec
from typing import Any, get_args

import click

from interlock.cli.config import BadConfig, resolve
from interlock.cli.options import data_options, store_option
from interlock.core.run.preferences import DecisionPolicy, Enforcement, Mode

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
    from interlock.transport.http.app import HttpSettings, application
    from interlock.transport.http.guard import LOOPBACK
    from interlock.transport.http.principals import TokenVerifier
    from interlock.transport.http.server import listening, run

    service = ServedLedger(config)
    has_auth = bool(service.tokens.all())
    if not is_loopback(config.host):
        if not has_auth:
            raise BadConfig(
                f"host: {config.host} is not loopback; make a token with `interlock auth add` first"
            )
        if not config.allowed_hosts:
            raise BadConfig("host: name what clients call this server with --allowed-hosts")
    settings = HttpSettings(
        hosts=(*LOOPBACK, *config.allowed_hosts),
        verifier=TokenVerifier(service) if has_auth else None,
        requests_per_second=config.rate_limit,
        requests_in_flight=config.concurrency_limit,
        log=None if quiet else write_to_stderr,
    )
    try:
        listener = listening(config.host, config.port)
    except OSError as error:
        raise BadConfig(f"cannot listen on {config.host}:{config.port}: {error.strerror}") from error
    raise click.exceptions.Exit(run(application(service, settings), listener))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
