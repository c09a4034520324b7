"""Whatever becomes of the file of principals, nobody becomes the local user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from support.cli_process import interlock
from support.http_server import HttpServer, bearer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    """A server that was started after its last token was revoked."""
    access = AccessTokens(tmp_path)
    access.add("eve", "user", 1)
    access.revoke("eve")
    running = HttpServer(tmp_path, "--quiet", "--allowed-hosts", "interlock.example")
    yield running
    running.stop()


def status(server: HttpServer, token: str = "") -> int:
    return server.request("GET", "/inbox", headers=bearer(token) if token else {}).status


def test_principals_that_change_under_a_live_server_hold_at_once(tmp_path: Path, server: HttpServer) -> None:
    assert status(server) == 401  # the file is empty
    access = AccessTokens(tmp_path)
    ada = access.add("ada", "user", 1)
    assert status(server, ada) == 200
    whole = access.path.read_bytes()
    for damage in (b"", b"{", whole[:-20], b"null", b"\xff" * 100, whole.replace(b"ada", b"\xffda")):
        access.path.write_bytes(damage)
        assert status(server, ada) == 401
        assert status(server) == 401
        ready = server.request("GET", "/readyz")
        assert (ready.status, ready.json["error"]["message"]) == (503, "PRINCIPALS_DAMAGED")
    access.path.write_bytes(whole)
    assert status(server, ada) == 200
    assert server.request("GET", "/readyz").status == 200
    access.path.unlink()
    assert status(server, ada) == 401
    assert status(server) == 401
    bob = access.add("bob", "user", 1)
    assert status(server, bob) == 200
    access.revoke("bob")
    assert status(server, bob) == 401
    assert status(server) == 401


@pytest.mark.parametrize(
    "more", [("--host", "0.0.0.0"), ("--allowed-hosts", "interlock.example")], ids=["host", "name"]
)
def test_no_auth_is_refused_where_others_reach_the_server(tmp_path: Path, more: tuple[str, ...]) -> None:
    refused = interlock(tmp_path, "serve", "--no-auth", "--port", "0", *more)
    assert refused.code == 2
    assert "no-auth" in refused.err


def test_the_command_line_names_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    access = AccessTokens(tmp_path)
    access.add("ada", "user", 1)
    for damage in (b"{", access.path.read_bytes().replace(b"ada", b"\xffda")):
        access.path.write_bytes(damage)
        for command in (("list",), ("add", "bob"), ("revoke", "ada")):
            said = interlock(tmp_path, "auth", *command)
            assert said.code == 1
            assert "principals.json cannot be read" in said.err
        assert access.path.read_bytes() == damage
