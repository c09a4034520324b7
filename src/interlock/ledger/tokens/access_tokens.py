"""The tokens that callers over HTTP identify themselves with: a file of hashes that only its owner can read.

A token is shown once, when it is made. It is long and random, so a plain hash does not give it away.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.sources.atomic_write import replace_file
from interlock.core.principals import LOCAL, Principal, Role
from interlock.core.run.polls import Approver
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


class Delegated(Struct, frozen=True):
    """Who answers in whose place, until when."""

    of: str
    to: str
    until: int


class PrincipalsFile(Struct, frozen=True, forbid_unknown_fields=True):
    """Everybody who has a token, the groups that gates may name, and who stands in for whom."""

    tokens: tuple[AccessToken, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = {}
    delegated: tuple[Delegated, ...] = ()


class AccessTokens:
    """The file of hashes. A change by another process is seen at the next look."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "keys" / "principals.json"
        self._seen: tuple[int, int, int] | None = None
        self._file = PrincipalsFile()
        self._by_hash: dict[str, AccessToken] = {}

    def all(self) -> Sequence[AccessToken]:
        """Return everyone who has a token, by name."""
        return sorted(self.read().tokens, key=lambda token: token.name)

    def principal_of(self, token: str) -> Principal | None:
        """Return whom a token was given to; nobody, if the file is gone, empty or damaged."""
        try:
            self.read()
            known = self._by_hash.get(_hash(token))
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
            if name in self.read().groups:
                raise InvalidPrincipal(f"'{name}' is a group")
            self._write(tokens=(*tokens, AccessToken(name, role, _hash(secret), now)))
        return secret

    def revoke(self, name: str) -> bool:
        """Forget the token of a principal; its sessions stay. Tell whether there was one."""
        with locked(self._lock()):
            tokens = self.all()
            kept = [token for token in tokens if token.name != name]
            self._write(tokens=tuple(kept))
        return len(kept) < len(tokens)

    def set_group(self, name: str, members: Sequence[str]) -> None:
        """Say who belongs to a group; without members there is no such group any more."""
        _require_names(name, *members)
        with locked(self._lock()):
            file = self.read()
            if name in TAKEN or any(token.name == name for token in file.tokens):
                raise InvalidPrincipal(f"'{name}' is a principal")
            others = {known: listed for known, listed in file.groups.items() if known != name}
            listed_once = tuple(dict.fromkeys(members))
            self._write(groups={**others, name: listed_once} if members else others)

    def delegate(self, of: str, to: str, until: int, now: int) -> None:
        """Let one principal answer in another's place for a time; what has ended is forgotten."""
        _require_names(of, to)
        if of == to:
            raise InvalidPrincipal("name two different principals")
        if group := next((name for name in (of, to) if name in self.read().groups), None):
            raise InvalidPrincipal(f"'{group}' is a group, and only a person has a seat; name its members")
        with locked(self._lock()):
            if named := [name for name in (of, to) if name in self.read().groups]:
                raise InvalidPrincipal(f"'{named[0]}' is a group; a delegation is between two people")
            current = (each for each in self.read().delegated if each.until > now and each.of != of)
            added = (Delegated(of, to, until),) if until > now else ()
            self._write(delegated=(*current, *added))

    def may_decide(self, name: str) -> bool:
        """Say whether a principal of this name may decide, as the file is now."""
        try:
            return any(token.name == name and Principal(name, token.role).decides for token in self.all())
        except PrincipalsDamaged:
            return False

    def approver(self, name: str) -> Approver:
        """Return who a principal is to a gate that names its approvers; with a damaged file only a name."""
        try:
            file = self.read()
        except PrincipalsDamaged:
            return Approver(name)
        now = time.time_ns() // 1_000_000
        away = (each.of for each in file.delegated if each.to == name and each.until > now)
        return Approver(name, _groups(file, name), tuple(Approver(of, _groups(file, of)) for of in away))

    def read(self) -> PrincipalsFile:
        """Read the file again if it has changed; without one nobody is known."""
        try:
            status = os.stat(self.path)
            stamp = status.st_ino, status.st_mtime_ns, status.st_size
            if stamp != self._seen:
                self._file = msgspec.json.decode(self.path.read_bytes(), type=PrincipalsFile)
                self._by_hash, self._seen = {token.sha256: token for token in self._file.tokens}, stamp
        except FileNotFoundError:
            self._file, self._by_hash, self._seen = PrincipalsFile(), {}, None
        except (OSError, ValueError) as error:  # text that is not UTF-8 is no DecodeError
            raise PrincipalsDamaged(
                f"{self.path} cannot be read ({error}): restore it, or remove it and give out new tokens"
            ) from error
        return self._file

    def _lock(self) -> Path:
        self.path.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.parent.mkdir(exist_ok=True, mode=0o700)
        return self.path.with_suffix(".lock")

    def _write(self, **changed: Any) -> None:
        replace_file(self.path, msgspec.json.encode(replace(self.read(), **changed)), durable=True)


def _require_names(*names: str) -> None:
    for name in names:
        if name != LOCAL.name and (name in TAKEN or not NAME.fullmatch(name)):
            raise InvalidPrincipal(f"'{name}' is not a name: use up to 64 of a-z, 0-9, '.', '_', '@', '-'")


def _groups(file: PrincipalsFile, name: str) -> tuple[str, ...]:
    return tuple(group for group, members in file.groups.items() if name in members)


def _hash(token: str) -> str:
    return sha256(token.encode(errors="surrogateescape")).hexdigest()
