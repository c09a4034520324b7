"""What a client carries for us between two calls: sealed, so that it can neither be read nor changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp.server.request_state import AESGCMRequestStateCodec


class KeyringCodec:
    """Seals with the current secret and opens with any that is still believed; sees a rotation at once."""

    def __init__(self, secrets: Callable[[], Sequence[bytes]]) -> None:
        self._secrets = secrets
        self._known: tuple[bytes, ...] = ()
        self._codec: AESGCMRequestStateCodec | None = None

    def seal(self, payload: bytes) -> str:
        return self._current().seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._current().unseal(token)

    def _current(self) -> AESGCMRequestStateCodec:
        secrets = tuple(self._secrets())
        if self._codec is None or secrets != self._known:
            self._codec, self._known = AESGCMRequestStateCodec(secrets), secrets
        return self._codec
