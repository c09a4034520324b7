"""Access tokens of an OAuth authorization server: verified by signature, issuer, audience and time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.core.principals import Principal
from interlock.transport.http.admission.oauth import OAuthSettings, OAuthVerifier
from support.http_server import HttpServer, serving

ISSUER, AUDIENCE = "https://login.example", "https://interlock.example/mcp"
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": 2**33}


@cache
def key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def jwks() -> str:
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key("own").public_key()))
    return json.dumps({"keys": [{**public, "kid": "k1", "alg": "ES256", "use": "sig"}]})


def token(signed_by: str = "own", kid: str = "k1", **changes: Any) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 600, **changes}
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, key(signed_by), algorithm="ES256", headers={"kid": kid})


def verified(bearer: str) -> Principal | None:
    return anyio.run(OAuthVerifier(OAuthSettings(ISSUER, AUDIENCE, jwks())).principal_of, bearer)


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
        jwt.encode(CLAIMS, "s" * 32, headers={"kid": "k1"}),
        jwt.encode(CLAIMS, None, algorithm="none"),
        "a.b.c",
        "ilk_unknown",
        "",
    ],
)
def test_any_other_token_is_refused(bearer: str) -> None:
    assert verified(bearer) is None


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
