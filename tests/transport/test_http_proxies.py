"""A server behind a proxy: whose word it takes for where a request came from, and what it prints."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from support.cli_process import interlock
from support.http_server import HttpServer, bearer, serving

OURS, ANOTHER = ("--trusted-proxies", "127.0.0.0/8"), ("--trusted-proxies", "10.9.8.7")


def cookie(server: HttpServer, token: str, **forwarded: str) -> str:
    """Sign in to the console and return the cookie that it gives."""
    headers = {
        "Content-Type": "application/json",
        **{f"X-Forwarded-{name}": forwarded[name] for name in forwarded},
    }
    answer = server.request("POST", "/console/login", msgspec.json.encode({"token": token}), headers)
    assert answer.status == 200
    return answer.headers["set-cookie"]


@pytest.mark.parametrize(("trusted", "secure"), [(OURS, True), (ANOTHER, False), ((), False)])
def test_a_cookie_is_secure_where_a_trusted_proxy_has_ended_tls(
    tmp_path: Path, trusted: tuple[str, ...], secure: bool
) -> None:
    token = AccessTokens(tmp_path).add("ada", "user", 1)
    with serving(tmp_path, "--quiet", *trusted) as server:
        assert ("Secure" in cookie(server, token, Proto="https", For="203.0.113.7")) is secure
        assert "Secure" not in cookie(server, token, Proto="http")
        assert "Secure" not in cookie(server, token)


def statuses(server: HttpServer, address: str, times: int = 5) -> set[int]:
    return {
        server.request("GET", "/inbox", headers={"X-Forwarded-For": address}).status for _ in range(times)
    }


def test_strangers_behind_a_trusted_proxy_have_limits_of_their_own(tmp_path: Path) -> None:
    AccessTokens(tmp_path).add("ada", "user", 1)
    with serving(tmp_path, "--quiet", "--rate-limit", "0.01", *OURS) as server:
        assert statuses(server, "203.0.113.7") == {401, 429}
        assert statuses(server, "203.0.113.8", times=1) == {401}
        # What the client itself has written stands before the address that the proxy adds.
        assert statuses(server, "198.51.100.1, 203.0.113.7") == {429}


def test_nobody_else_chooses_the_address_that_is_limited(tmp_path: Path) -> None:
    AccessTokens(tmp_path).add("ada", "user", 1)
    with serving(tmp_path, "--quiet", "--rate-limit", "0.01", *ANOTHER) as server:
        assert statuses(server, "203.0.113.7") == {401, 429}
        assert statuses(server, "203.0.113.8") == {429}


@pytest.mark.parametrize(
    ("proxy", "told"),
    [("nginx", "use an address or a network"), ("0.0.0.0/0", "is everybody"), ("::/0", "is everybody")],
)
def test_a_proxy_is_named_by_its_address(tmp_path: Path, proxy: str, told: str) -> None:
    refused = interlock(tmp_path, "serve", "--no-auth", "--port", "0", "--trusted-proxies", proxy)
    assert (refused.code, told in refused.err) == (2, True)


def test_the_secret_of_a_launch_is_printed_only_where_nobody_has_a_token(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert "secret=" in server.entrance
    access = AccessTokens(tmp_path)
    token = access.add("root", "admin", 1)
    with serving(tmp_path) as server:
        assert server.entrance == f"{server.url}/console/"
        assert server.request("GET", "/console/enter?secret=").status == 403
        assert server.request("GET", "/inbox", headers=bearer(token)).status == 200
    access.revoke("root")
    with serving(tmp_path) as server:
        assert server.entrance == f"{server.url}/console/"
