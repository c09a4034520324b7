"""A PIN that only the user knows, kept as a slow salted digest; deciding asks for it where one is set."""

from __future__ import annotations

import hmac
import os
from hashlib import scrypt

from interlock.store.protocol import SettingRow, Store

SETTING = "pin"


def has_pin(store: Store, owner: str) -> bool:
    with store.reading() as reader:
        return bool(reader.setting(owner, SETTING))


def set_pin(store: Store, owner: str, pin: str) -> None:
    """Keep a new PIN; an empty one removes it."""
    salt = os.urandom(16)
    value = f"{salt.hex()}:{_digest(pin, salt).hex()}" if pin else ""
    with store.writing() as writer:
        writer.set_setting(SettingRow(owner, SETTING, value))


def pin_matches(store: Store, owner: str, pin: str) -> bool:
    with store.reading() as reader:
        salt, _, digest = (reader.setting(owner, SETTING) or "").partition(":")
    return hmac.compare_digest(_digest(pin, bytes.fromhex(salt)).hex(), digest)


def _digest(pin: str, salt: bytes) -> bytes:
    return scrypt(pin.encode(), salt=salt, n=2**14, r=8, p=1)
