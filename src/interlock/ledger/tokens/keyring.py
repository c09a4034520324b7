"""The keys that sign tokens, in a file that only its owner can read.

A rotation has three steps: the new key is believed everywhere before it signs anywhere, and the old one is
believed until it is retired. Retired keys are kept only to recognise what they have signed. Keys are never in
the database, so a copied database opens no session. Replicas share them by a file that INTERLOCK_KEYRING_FILE
names, such as a mounted secret, or by the variable INTERLOCK_KEYRING.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from interlock.authoring.sources.atomic_write import replace_file, sync_folder
from interlock.store.sqlite.lock import locked

VARIABLE = "INTERLOCK_KEYRING"
FILE_VARIABLE = "INTERLOCK_KEYRING_FILE"
SECRET_BYTES = 32

Secret = Annotated[bytes, Meta(min_length=SECRET_BYTES, max_length=SECRET_BYTES)]


class Key(Struct, frozen=True):
    """A signing key and the public name of it."""

    id: str
    secret: Secret

    def __repr__(self) -> str:
        return f"Key({self.id})"


class Keyring(Struct, frozen=True):
    """What signs (`current`), is believed too (`prepared`, `previous`), or is only recognised (`retired`).

    `made_at` is when its first key was made, in milliseconds: what was recorded since, it has signed. A
    keyring that does not say it counts as older than every session.
    """

    current: Key
    prepared: Key | None = None
    previous: Key | None = None
    retired: tuple[Key, ...] = ()
    made_at: int = 0
    v: int = 1

    def believed(self) -> tuple[Key, ...]:
        """Return the keys to try, the likelier first."""
        return tuple(key for key in (self.current, self.previous, self.prepared) if key is not None)


class KeyringDamaged(Exception):
    """The keyring cannot be read; the message says what to do."""


class KeyringFixed(Exception):
    """The keyring cannot be changed here; the message says where."""


class RotationOutOfOrder(Exception):
    """A step of a rotation before the one that must come first; the message says which."""


class Keys:
    """Where the keyring is kept. A rotation by another process is seen at the next look."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._mounted = environment.get(FILE_VARIABLE)
        self.folder = data_dir / "keys"
        self.path = Path(self._mounted) if self._mounted else self.folder / "keyring.json"
        self._name = str(self.path)  # looked at in every call, and a path is slower
        self._lock = self.path.with_suffix(".lock")
        self._from_variable = environment.get(VARIABLE)
        self._known: tuple[tuple[int, int, int] | None, Keyring] | None = None

    def keyring(self) -> Keyring:
        """Return the keyring; make one where there is none."""
        known = self._known  # one value, so that a thread never sees a keyring with another one's stamp
        if known is not None and (self._from_variable or self._stamp() == known[0]):
            return known[1]
        if self._from_variable:
            keyring = _decoded(self._from_variable.encode(), VARIABLE)
            self._known = None, keyring
            return keyring
        if self._mounted:
            stamp = self._stamp()
            keyring = _decoded(self.path.read_bytes(), str(self.path))
            self._known = stamp, keyring
            return keyring
        if self._stamp() is None:
            self.path.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.parent.mkdir(exist_ok=True, mode=0o700)
            with locked(self._lock):  # of two processes that make a keyring one wins, and both use it
                if not self.path.exists():
                    _write(self.path, Keyring(_new_key(), made_at=time.time_ns() // 1_000_000))
        seen, keyring = self._stamp(), _read(self.path)
        self._known = seen, keyring
        return keyring

    def prepare(self) -> Keyring:
        """Add a new key that is believed and does not sign yet."""
        return self._changed(_prepared)

    def activate(self) -> Keyring:
        """Sign with the prepared key; the one that signed until now is still believed."""
        return self._changed(_activated)

    def retire(self) -> Keyring:
        """Believe the previous key no longer."""
        return self._changed(_retired)

    def _changed(self, change: Callable[[Keyring], Keyring]) -> Keyring:
        if self._from_variable:
            raise KeyringFixed(f"the keyring is set by {VARIABLE}; change it there, on every replica")
        self.keyring()
        try:
            with locked(self._lock):
                _write(self.path, change(_decoded(self.path.read_bytes(), str(self.path))))
        except OSError as error:
            reason = f"{self.path} cannot be written here ({error.strerror})"
            raise KeyringFixed(f"{reason}; run this where the file is made, then replace it") from error
        return self.keyring()

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._name)
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


def _prepared(keyring: Keyring) -> Keyring:
    if keyring.prepared is not None:
        raise RotationOutOfOrder(
            f"{keyring.prepared.id} is prepared. When all servers have it, run `interlock keys activate`"
        )
    if keyring.previous is not None:
        raise RotationOutOfOrder(
            f"{keyring.previous.id} of the last rotation is still valid. Run `interlock keys retire` first"
        )
    return replace(keyring, prepared=_new_key())


def _activated(keyring: Keyring) -> Keyring:
    if keyring.prepared is None:
        raise RotationOutOfOrder("no key is prepared. Run `interlock keys prepare` first")
    return replace(keyring, current=keyring.prepared, prepared=None, previous=keyring.current)


def _retired(keyring: Keyring) -> Keyring:
    if keyring.previous is not None:
        return replace(keyring, previous=None, retired=(*keyring.retired, keyring.previous))
    before = "activate" if keyring.prepared is not None else "prepare"
    raise RotationOutOfOrder(
        f"{keyring.current.id} signs and no other key has been replaced. Run `interlock keys {before}` first"
    )


def _new_key() -> Key:
    return Key("key_" + os.urandom(4).hex(), os.urandom(SECRET_BYTES))


def _write(path: Path, keyring: Keyring) -> None:
    """Replace the file so that it survives a power loss: a token must not outlive its key."""
    replace_file(path, msgspec.json.encode(keyring), durable=True)
    sync_folder(path.parent.parent)


def _read(path: Path) -> Keyring:
    _tighten(path.parent, 0o700)
    _tighten(path, 0o600)
    return _decoded(path.read_bytes(), str(path))


def _tighten(path: Path, mode: int) -> None:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(mode)


def _decoded(raw: bytes, origin: str) -> Keyring:
    try:
        return msgspec.json.decode(raw, type=Keyring)
    except ValueError as error:  # text that is not UTF-8 is no MsgspecError
        raise KeyringDamaged(
            f"The keyring in {origin} cannot be read ({error}). Restore it from a backup; or remove it, and a"
            " new one is made: recorded sessions stay, tokens handed out before stop working and are"
            " replaced by resuming the session."
        ) from error
