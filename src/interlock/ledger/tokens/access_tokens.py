"""The tokens that callers over HTTP identify themselves with: a file of hashes that only its owner can read.

A token is shown once, when it is made. It is long and random, so a plain hash does not give it away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.authoring.sources.atomic_write import replace_file
from interlock.core.principals import LOCAL, Principal, Role
from interlock.store.sqlite.lock import locked

PREFIX = "ilk_"
SECRET_BYTES = 32
TAKEN = (LOCAL.name, "all")  # --owner means everybody by the second
NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")


class InvalidPrincipal(Exception):
    """A name that cannot be given a token; the message says why."""


class PrincipalsDamaged(Exception):
    """The file of hashes is there and cannot be read: nobody gets in until it can."""


class AccessToken(Struct, frozen=True):
    """Who may call with the token of this hash."""

    name: str
    role: Role
    sha256: str
    made_at: int


class AccessTokens:
    """The file of hashes. A change by another process is seen at the next look."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "keys" / "principals.json"
        self._seen: tuple[int, int, int] | None = None
        self._by_hash: dict[str, AccessToken] = {}

    def all(self) -> Sequence[AccessToken]:
        """Return everyone who has a token, by name."""
        return sorted(self._current().values(), key=lambda token: token.name)

    def principal_of(self, token: str) -> Principal | None:
        """Return whom a token was given to; nobody, if the file is gone, empty or damaged."""
        try:
            known = self._current().get(_hash(token))
        except PrincipalsDamaged:
            return None
        return Principal(known.name, known.role) if known is not None else None

    def add(self, name: str, role: Role, now: int) -> str:
        """Make a token for a new principal and return it; it cannot be shown again."""
        if not NAME.fullmatch(name) or name in TAKEN:
            raise InvalidPrincipal(
                f"'{name}' cannot be a principal: use up to 64 of a-z, 0-9, '.', '_', '@', '-';"
                " not 'local' or 'all'"
            )
        secret = PREFIX + os.urandom(SECRET_BYTES).hex()
        with locked(self._lock()):
            tokens = self.all()
            if any(token.name == name for token in tokens):
                raise InvalidPrincipal(f"'{name}' has a token already; revoke it first")
            self._write([*tokens, AccessToken(name, role, _hash(secret), now)])
        return secret

    def revoke(self, name: str) -> bool:
        """Forget the token of a principal; its sessions stay. Tell whether there was one."""
        with locked(self._lock()):
            tokens = self.all()
            kept = [token for token in tokens if token.name != name]
            self._write(kept)
        return len(kept) < len(tokens)

    def _current(self) -> dict[str, AccessToken]:
        try:
            status = os.stat(self.path)
            stamp = status.st_ino, status.st_mtime_ns, status.st_size
            if stamp != self._seen:
                tokens = msgspec.json.decode(self.path.read_bytes(), type=list[AccessToken])
                self._by_hash, self._seen = {token.sha256: token for token in tokens}, stamp
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:  # text that is not UTF-8 is no DecodeError
            raise PrincipalsDamaged(
                f"{self.path} cannot be read ({error}): restore it, or remove it and give out new tokens"
            ) from error
        return self._by_hash

    def _lock(self) -> Path:
        self.path.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.parent.mkdir(exist_ok=True, mode=0o700)
        return self.path.with_suffix(".lock")

    def _write(self, tokens: Sequence[AccessToken]) -> None:
        replace_file(self.path, msgspec.json.encode(tokens), durable=True)


def _hash(token: str) -> str:
    return sha256(token.encode(errors="surrogateescape")).hexdigest()
