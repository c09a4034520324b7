"""Webhooks as https://www.standardwebhooks.com describes them: an id, a time, and a signature over both."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from interlock.core.message import Message
from interlock.transport.notify.posting import post

PREFIX = "whsec_"


class BadSecret(ValueError):
    """A secret that does not have the form whsec_ and base64; the message says so."""


def key_of(secret: str) -> bytes:
    """Return the key that a secret stands for."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise BadSecret("a webhook's secret is whsec_ and base64") from error
    if not secret.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise BadSecret("a webhook's secret is whsec_ and the base64 of 24 to 64 bytes")
    return key


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Sign the id, the time in seconds and the body."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return f"v1,{base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()}"


def webhook_body(message: Message) -> bytes:
    """Encode what happened, when, and the data."""
    subject = "run" if message.occasion == "ended" else "question"
    at = datetime.fromtimestamp(message.at / 1000, UTC).isoformat().replace("+00:00", "Z")
    data = {**message.data, "summary": message.title, "url": message.url}
    return msgspec.json.encode({"type": f"{subject}.{message.occasion}", "timestamp": at, "data": data})


class Webhook:
    """A receiver that checks signatures."""

    def __init__(self, url: str, secret: str) -> None:
        self._url, self._key = url, key_of(secret)

    def __call__(self, message: Message) -> None:
        body, now = webhook_body(message), int(time.time())
        headers = {
            "content-type": "application/json",
            "webhook-id": message.id,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(self._key, message.id, now, body),
        }
        post(self._url, body, headers)
