"""The key that signs statements, in a file that only its owner can read; its public keys beside it.

The file is an Ed25519 key in PEM, as other tools write and read it. The public keys of all rotations stay in
one file, the newest first: with it, older statements can still be checked. Nothing here is needed to run
workflows, so `cryptography` (`interlock[sign]`) is imported late.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.authoring.sources.atomic_write import replace_file
from interlock.ledger.errors import LedgerError
from interlock.ledger.evidence.standalone import key_id, signed_bytes

if TYPE_CHECKING:
    from types import ModuleType

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FILE = "signing.pem"  # beside the keyring, unless a command names another
INSTALL = "pip install 'interlock[sign]'"


@dataclass(frozen=True)  # a Struct's types are looked up, and this one's module is imported late
class SigningKey:
    """A key and the public name of it."""

    id: str
    private: Ed25519PrivateKey

    def __repr__(self) -> str:
        return f"SigningKey({self.id})"

    def signature(self, payload_type: str, payload: bytes) -> bytes:
        """Sign a payload of a type, as DSSE says."""
        return self.private.sign(signed_bytes(payload_type, payload))


def public_file(path: Path) -> Path:
    """Return where the public keys of a key file are kept."""
    return path.with_suffix(".pub.pem")


def create_key(path: Path) -> SigningKey:
    """Make a key; refuse where there is one, because statements depend on it."""
    if path.exists():
        raise LedgerError("CONFLICT", f"{path} exists.", "Run `interlock signing rotate` to replace its key.")
    return _write_new(path)


def rotate_key(path: Path) -> SigningKey:
    """Replace the key; its public key stays, so that what it has signed can be checked."""
    load_key(path)
    return _write_new(path)


def load_key(path: Path) -> SigningKey:
    """Read a key; refuse one that others on this machine can read."""
    serialization = serialization_library()
    if not path.exists():
        raise LedgerError("NOT_FOUND", f"There is no signing key {path}.", "Run `interlock signing create`.")
    if os.name == "posix" and path.stat().st_mode & 0o077:
        next_action = f"Run `chmod 600 {path}`, or `interlock signing rotate` after it if others may have it."
        raise LedgerError("VALIDATION_ERROR", f"Others can read the signing key {path}.", next_action)
    try:
        private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        raw = private.public_key().public_bytes_raw()
    except (ValueError, TypeError, AttributeError) as error:
        raise LedgerError(
            "VALIDATION_ERROR", f"{path} holds no Ed25519 key.", "Name another file."
        ) from error
    return SigningKey(key_id(raw), private)


def public_pem(path: Path) -> bytes:
    """Return the public keys that belong to a key file, the newest first."""
    file = public_file(path)
    return file.read_bytes() if file.exists() else _public(load_key(path))


def _write_new(path: Path) -> SigningKey:
    serialization = serialization_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    key = SigningKey(key_id(private.public_key().public_bytes_raw()), private)
    earlier = public_pem(path) if path.exists() else b""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The public key first: a key that signs is never one that nobody can check.
    replace_file(public_file(path), _public(key) + earlier, durable=True)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    pem = private.private_bytes(encoding, form, serialization.NoEncryption())
    replace_file(path, pem, durable=True)
    return key


def _public(key: SigningKey) -> bytes:
    serialization = serialization_library()
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.private.public_key().public_bytes(encoding, form)


def serialization_library() -> ModuleType:
    """Return the part of `cryptography` that reads and writes keys; say how to install it if it is absent."""
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        message = "Signing needs `cryptography`, which is not installed."
        raise LedgerError("VALIDATION_ERROR", message, f"Run `{INSTALL}`.") from error
    return serialization
