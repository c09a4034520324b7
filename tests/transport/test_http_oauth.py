"""Access tokens of an OAuth authorization server: verified by signature, issuer, audience and time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event, Thread
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.core.principals import Principal
from interlock.transport.http.admission import issuer_keys as issuer_keys_module
from interlock.transport.http.admission.issuer_keys import AT_URL, IN_FILE, IssuerKeys, issuer_keys
from interlock.transport.http.admission.oauth import OAuthSettings, OAuthVerifier
from support.http_server import HttpServer, serving

ISSUER, AUDIENCE = "https://login.example", "https://interlock.example/mcp"
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 2**33}


@cache
def key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def jwks(**keys: str) -> str:
    """A key set with these ids, each of a key by its name."""
    public = {
        kid: json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key(name).public_key()))
        for kid, name in (keys or {"k1": "own"}).items()
    }
    return json.dumps(
        {"keys": [{**each, "kid": kid, "alg": "ES256", "use": "sig"} for kid, each in public.items()]}
    )


def token(signed_by: str = "own", kid: str = "k1", **changes: Any) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 600, **changes}
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, key(signed_by), algorithm="ES256", headers={"kid": kid})


def verified(bearer: str) -> Principal | None:
    with NamedTemporaryFile("w") as file:
        file.write(jwks())
        file.flush()
        return anyio.run(OAuthVerifier(OAuthSettings(ISSUER, AUDIENCE, file.name)).principal_of, bearer)


def test_a_valid_token_names_its_principal_at_the_issuer() -> None:
    assert verified(token()) == Principal("ada at https://login.example", "user")


def test_a_scope_gives_the_role() -> None:
    found = verified(token(scope="openid interlock:approver"))
    assert found is not None
    assert found.role == "approver"


@pytest.mark.parametrize(
    "bearer",
    [
        token("another"),
        token(kid="k2"),
        token(iss="https://evil.example"),
        token(aud="https://other.example/mcp"),
        token(aud=None),
        token(exp=int(time.time()) - 600),
        token(exp=None),
        token(sub=None),
        token(sub=""),
        token(sub="a\0da"),
        token(sub="a\ud800da"),
        jwt.encode(CLAIMS, "s" * 32, headers={"kid": "k1"}),
        jwt.encode(CLAIMS, None, algorithm="none"),
        "a.b.c",
        "ilk_unknown",
        "",
    ],
)
def test_any_other_token_is_refused(bearer: str) -> None:
    assert verified(bearer) is None


# Keys that come and go.


class Issuer:
    """An issuer whose keys change, which can be away, and which counts how often it is asked."""

    def __init__(self) -> None:
        self.text, self.asked, self.now = jwks(), 0, 0.0

    def fetch(self) -> jwt.PyJWKSet:
        self.asked += 1
        return jwt.PyJWKSet.from_json(self.text)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def keys(issuer: Issuer) -> IssuerKeys:
    return IssuerKeys(issuer.fetch, AT_URL, lambda: issuer.now)


def test_a_key_that_the_issuer_has_removed_ends(issuer: Issuer, keys: IssuerKeys) -> None:
    assert keys.key("k1") is not None
    issuer.text = jwks(k2="another")
    issuer.now = AT_URL.fresh + 1
    assert keys.key("k1") is None
    assert keys.key("k2") is not None


def test_a_new_key_is_known_as_soon_as_it_is_used(issuer: Issuer, keys: IssuerKeys) -> None:
    assert keys.key("k1") is not None
    issuer.text = jwks(k1="own", k2="another")
    issuer.now = AT_URL.pause + 1
    assert keys.key("k2") is not None


def test_unknown_key_ids_do_not_reach_the_issuer_each(issuer: Issuer, keys: IssuerKeys) -> None:
    for number in range(1000):
        assert keys.key(f"unknown-{number}") is None
    assert issuer.asked == 1
    assert keys.key("k1") is not None


def test_keys_are_used_for_a_while_if_the_issuer_is_away_and_then_end(
    issuer: Issuer, keys: IssuerKeys
) -> None:
    assert keys.key("k1") is not None
    issuer.text = "no key set"
    issuer.now = AT_URL.fresh + 1
    assert keys.key("k1") is not None
    issuer.now = AT_URL.stale + 1
    assert keys.key("k1") is None


def test_an_issuer_that_hangs_is_waited_for_by_one_call() -> None:
    hangs = Event()
    answers = iter([lambda: True, lambda: hangs.wait(60)])
    now = [0.0]

    def fetch() -> jwt.PyJWKSet:
        if not next(answers)():
            raise TimeoutError
        return jwt.PyJWKSet.from_json(jwks())

    keys = IssuerKeys(fetch, AT_URL, lambda: now[0])
    assert keys.key("k1") is not None
    now[0] = AT_URL.fresh + 1
    with ThreadPoolExecutor(8) as pool:
        waiting = pool.submit(keys.key, "unknown")
        began = time.monotonic()
        while waiting.running() and time.monotonic() - began < 0.2:
            assert keys.key("k1") is not None
        assert time.monotonic() - began < 2
        hangs.set()
        assert waiting.result() is None


def test_keys_are_fetched_from_a_url_and_one_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(jwks().encode())

    with HTTPServer(("127.0.0.1", 0), Answers) as web:
        thread = Thread(target=web.handle_request)
        thread.start()
        assert issuer_keys(f"http://127.0.0.1:{web.server_port}/keys").key("k1") is not None
        thread.join()
    monkeypatch.setattr(issuer_keys_module, "FETCH_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        keys, began = issuer_keys(f"http://127.0.0.1:{silent.getsockname()[1]}/keys"), time.monotonic()
        assert keys.key("k1") is None
        assert keys.key("k1") is None  # at once: it was just asked
        assert time.monotonic() - began < 2


NO_KEY_SETS = (
    "",
    "{",
    "[]",
    "null",
    '{"keys": []}',
    "[" * 100_000,
    jwks().replace('"k1"', '["k1"]'),
)


@pytest.mark.parametrize("text", NO_KEY_SETS, ids=range(len(NO_KEY_SETS)))
def test_an_issuer_that_answers_with_anything_else_is_left_alone_for_a_while(
    issuer: Issuer, keys: IssuerKeys, text: str
) -> None:
    issuer.text = text
    for _ in range(3):
        assert keys.key("k1") is None
    assert issuer.asked == 1
    issuer.text, issuer.now = jwks(), AT_URL.pause + 1
    assert keys.key("k1") is not None


@pytest.mark.parametrize("change", [jwks(k2="another"), "", "{", '{"keys": []}'])
def test_a_file_of_keys_that_changes_holds_without_a_restart(tmp_path: Path, change: str) -> None:
    file, now = tmp_path / "jwks.json", [0.0]
    file.write_text(jwks())
    keys = IssuerKeys(lambda: jwt.PyJWKSet.from_json(file.read_text()), IN_FILE, lambda: now[0])
    assert keys.key("k1") is not None
    file.write_text(change)
    now[0] = 2.0
    assert keys.key("k1") is None
    file.write_text(jwks())
    now[0] = 4.0
    assert keys.key("k1") is not None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder: Path = tmp_path_factory.mktemp("oauth")
    (folder / "jwks.json").write_text(jwks())
    keys = ("--oauth-jwks", str(folder / "jwks.json"))
    with serving(folder, "--oauth-issuer", ISSUER, "--oauth-audience", AUDIENCE, *keys) as running:
        yield running


def test_the_server_takes_the_token_and_tells_others_where_to_get_one(server: HttpServer) -> None:
    assert server.request("GET", "/inbox", headers={"Authorization": f"Bearer {token()}"}).status == 200
    refused = server.request("GET", "/inbox")
    assert refused.status == 401
    path = "/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="https://interlock.example{path}"' in refused.headers["www-authenticate"]
    told = server.request("GET", path).json
    assert (told["resource"], told["authorization_servers"]) == (AUDIENCE, [f"{ISSUER}/"])
