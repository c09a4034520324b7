"""Links that answer one question with one option as one approver: signed, for a time, and used once.

What a link says can be read by whoever has it; the tag keeps it from being changed.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import msgspec
from msgspec import Struct

from interlock.ledger.tokens.keyring import Keyring

PURPOSE = b"interlock answer link\0"  # no tag of a token is one of a link
TAG_BYTES = 20
MOST_CHARACTERS = 2_000


class AnswerLink(Struct, frozen=True, array_like=True):
    """Which answer to which question of which run, put at what time, by whom, until when."""

    session_id: str
    run_id: str
    key: str
    gate: str
    shown: str
    option: str
    approver: str
    until: int
    since: int


def sealed(keyring: Keyring, link: AnswerLink) -> str:
    """Return a link as it stands in an address."""
    body = msgspec.json.encode(link)
    return _text(body + _tag(keyring.current.secret, body))


def opened(keyring: Keyring, text: str) -> AnswerLink | None:
    """Return what a link says if a key of ours has signed it."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) <= MOST_CHARACTERS else b""
    except ValueError:
        return None
    body, tag = raw[:-TAG_BYTES], raw[-TAG_BYTES:]
    if not any(hmac.compare_digest(_tag(key.secret, body), tag) for key in keyring.believed()):
        return None
    return msgspec.json.decode(body, type=AnswerLink)


def _tag(secret: bytes, body: bytes) -> bytes:
    return hmac.new(secret, PURPOSE + body, sha256).digest()[:TAG_BYTES]


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
