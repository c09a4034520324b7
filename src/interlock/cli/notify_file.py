"""The channels of `notify.toml` in the data directory. Nothing is sent to anybody who is not named there.

A project has no such file: an agent could edit it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from interlock.cli.config import BadConfig
from interlock.core.message import OCCASIONS, Occasion, Send
from interlock.ledger.outbox.announcements import Detail, Recipient

FILE = "notify.toml"

Url: TypeAlias = Annotated[str, Meta(pattern=r"^https?://[^\s/]+\S*$")]


class Channel(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", kw_only=True):
    """What every channel can say: what it wants to hear about, how much, and who answers by its links."""

    events: tuple[Occasion, ...] = OCCASIONS
    detail: Detail = "title"
    approver: str = ""


class WebhookChannel(Channel, frozen=True, tag="webhook", kw_only=True):
    url: Url
    secret: str


Channels: TypeAlias = WebhookChannel


class NotifyFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The file: channels by the names that the outbox knows them by."""

    channels: dict[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")], Channels] = {}


def recipients_in(folder: Path, environment: Mapping[str, str] = os.environ) -> dict[str, Recipient]:
    """Read the channels of a data directory that has the file."""
    path = folder / FILE

    try:
        written = tomllib.loads(path.read_text())
        file = msgspec.convert(_filled(written, environment), NotifyFile)
        return {name: _recipient(channel) for name, channel in file.channels.items()}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise BadConfig(f"{path}: {error}") from error


def _filled(value: Any, environment: Mapping[str, str]) -> Any:
    """Replace each text that is `$NAME` by that variable, so that the file need not hold secrets."""
    if isinstance(value, dict):
        return {key: _filled(inner, environment) for key, inner in value.items()}
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value[1:] not in environment:
        raise ValueError(f"the variable {value[1:]} is not set")
    return environment[value[1:]]


def _recipient(channel: Channels) -> Recipient:
    return Recipient(_sender(channel), channel.events, channel.detail, channel.approver)


def _sender(channel: Channels) -> Send:
    """Return what sends to a channel; its module is imported when it first does."""
    from interlock.transport.notify.webhook import Webhook

    return Webhook(channel.url, channel.secret)
