"""The channels of `notify.toml` in the data directory. Nothing is sent to anybody who is not named there.

A project has no such file: an agent could edit it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, assert_never

import msgspec
from msgspec import Meta, Struct

from interlock.cli.config import BadConfig
from interlock.core.message import OCCASIONS, Occasion, Send
from interlock.ledger.outbox.announcements import Detail, Recipient
from interlock.transport.notify.chats import Ntfy, Slack, Teams
from interlock.transport.notify.extra import Apprise
from interlock.transport.notify.mail import Mail, Mailbox, Security
from interlock.transport.notify.webhook import Webhook

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


class NtfyChannel(Channel, frozen=True, tag="ntfy", kw_only=True):
    topic: Annotated[str, Meta(pattern=r"^[-_A-Za-z0-9]{1,64}$")]
    url: Url = "https://ntfy.sh"
    token: str = ""


class SlackChannel(Channel, frozen=True, tag="slack", kw_only=True):
    url: Url


class TeamsChannel(Channel, frozen=True, tag="teams", kw_only=True):
    url: Url


class MailChannel(Channel, frozen=True, tag="smtp", rename={"sender": "from"}, kw_only=True):
    host: str
    sender: Annotated[str, Meta(pattern="@")]
    to: Annotated[tuple[Annotated[str, Meta(pattern="@")], ...], Meta(min_length=1)]
    port: int = 587
    security: Security = "starttls"
    user: str = ""
    password: str = ""


class AppriseChannel(Channel, frozen=True, tag="apprise", kw_only=True):
    url: str


Channels: TypeAlias = (
    WebhookChannel | NtfyChannel | SlackChannel | TeamsChannel | MailChannel | AppriseChannel
)


class NotifyFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The file: channels by the names that the outbox knows them by."""

    channels: dict[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")], Channels] = {}


def recipients_in(folder: Path, environment: Mapping[str, str] = os.environ) -> dict[str, Recipient]:
    """Read the channels of a data directory that has the file."""
    path = folder / FILE

    try:
        written = tomllib.loads(path.read_text())
        file = msgspec.convert(_filled(written, environment), NotifyFile)
        return {
            name: Recipient(_sender(channel), channel.events, channel.detail, channel.approver)
            for name, channel in file.channels.items()
        }
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


def _sender(channel: Channels) -> Send:
    """Return what sends to a channel."""
    match channel:
        case WebhookChannel():
            return Webhook(channel.url, channel.secret)
        case NtfyChannel():
            return Ntfy(channel.url, channel.topic, channel.token)
        case SlackChannel():
            return Slack(channel.url)
        case TeamsChannel():
            return Teams(channel.url)
        case MailChannel():
            if channel.user and channel.security == "none":
                raise ValueError("smtp: a password needs security tls or starttls")
            mailbox = Mailbox(
                channel.host,
                channel.port,
                channel.sender,
                channel.to,
                channel.security,
                channel.user,
                channel.password,
            )
            return Mail(mailbox)
        case AppriseChannel():
            return Apprise(channel.url)
        case _:
            assert_never(channel)
