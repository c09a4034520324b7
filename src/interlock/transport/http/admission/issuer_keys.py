"""The keys of an authorization server, from a URL or a file: what it has removed is not valid any more.

Anybody can send a token with an unknown key id, so the issuer is asked for it once in a while, by one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import jwt
from msgspec import Struct

FETCH_SECONDS = 5.0


class Patience(Struct, frozen=True):
    """How long keys are used: without asking, and while nobody answers; and how long not to ask again."""

    fresh: float
    stale: float
    pause: float


AT_URL = Patience(fresh=300.0, stale=3600.0, pause=10.0)
IN_FILE = Patience(fresh=1.0, stale=1.0, pause=1.0)


class IssuerKeys:
    """The keys by their id, asked for again when they are no longer fresh or an id is not among them."""

    def __init__(
        self,
        fetch: Callable[[], jwt.PyJWKSet],
        patience: Patience,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._patience = patience
        self._clock = clock
        self._turn = Lock()
        self._keys: Mapping[Any, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")

    def key(self, key_id: str) -> jwt.PyJWK | None:
        """Return a key, or None if the issuer has none of this id or has given no answer for too long."""
        if self._is_due(key_id):
            # Who knows some keys does not wait for more; at the beginning everybody waits for the first.
            waits = FETCH_SECONDS if not self._keys else 0.0
            if self._turn.acquire(timeout=waits):
                try:
                    self._refresh(key_id)
                finally:
                    self._turn.release()
        is_stale = self._clock() - self._fetched_at > self._patience.stale
        return None if is_stale else self._keys.get(key_id)

    def _is_due(self, key_id: str) -> bool:
        now = self._clock()
        is_wanted = key_id not in self._keys or now - self._fetched_at > self._patience.fresh
        return is_wanted and now - self._tried_at > self._patience.pause

    def _refresh(self, key_id: str) -> None:
        if not self._is_due(key_id):  # another thread has just asked
            return
        try:
            keys = {key.key_id: key for key in self._fetch().keys}
        except Exception:  # whatever the issuer has sent, it is not a key set; PyJWT trusts its shape
            self._tried_at = self._clock()
            return
        self._keys, self._fetched_at, self._tried_at = keys, self._clock(), self._clock()


def issuer_keys(jwks: str) -> IssuerKeys:
    """Return the keys at a URL or in a file."""
    if jwks.startswith(("https://", "http://")):
        client = jwt.PyJWKClient(jwks, cache_keys=False, cache_jwk_set=False, timeout=FETCH_SECONDS)
        return IssuerKeys(client.get_jwk_set, AT_URL)
    return IssuerKeys(lambda: jwt.PyJWKSet.from_json(Path(jwks).read_text()), IN_FILE)
