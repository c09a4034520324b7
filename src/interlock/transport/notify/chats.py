"""ntfy, Slack and Teams: each takes one JSON document at an address."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.core.message import Message
from interlock.core.values import Json, cut
from interlock.transport.notify.posting import post

MOST_OF_NTFY = 3_500  # bytes; its server makes an attachment of what is longer than 4,096
MOST_ACTIONS = 3


class Ntfy:
    """A topic of an ntfy server; the answers become buttons."""

    def __init__(self, url: str, topic: str, token: str) -> None:
        self._url, self._topic = url, topic
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __call__(self, message: Message) -> None:
        body: dict[str, Json] = {
            "topic": self._topic,
            "title": message.title,
            "message": cut(message.text, MOST_OF_NTFY),
            "priority": 4 if message.occasion == "escalated" else 3,
        }
        if message.url:
            body["click"] = message.url
        actions = [
            {"action": "view", "label": link.label, "url": link.url} for link in message.links[:MOST_ACTIONS]
        ]
        if actions:
            body["actions"] = actions
        _post(self._url, body, self._headers)


class Slack:
    """An incoming webhook of Slack."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, message: Message) -> None:
        links = " · ".join(f"<{link.url}|{_slack(link.label)}>" for link in message.links)
        _post(self._url, {"text": f"*{_slack(message.title)}*\n{_slack(message.text)}\n{links}".strip()})


def _slack(text: str) -> str:
    """Escape what Slack would read as a link or a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Teams:
    """A workflow of Teams that waits for a webhook; it takes an adaptive card."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, message: Message) -> None:
        card: dict[str, Json] = {
            "type": "AdaptiveCard",
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "version": "1.4",
            "body": [
                {"type": "TextBlock", "text": _teams(message.title), "weight": "Bolder", "wrap": True},
                *(
                    {"type": "TextBlock", "text": _teams(line), "wrap": True}
                    for line in message.text.splitlines()
                    if line
                ),
            ],
            "actions": [
                {"type": "Action.OpenUrl", "title": link.label, "url": link.url} for link in message.links
            ],
        }
        attachment: Json = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
        _post(self._url, {"type": "message", "attachments": [attachment]})


def _teams(text: str) -> str:
    """Escape what a card would read as Markdown: a link could hide where it leads."""
    return "".join(f"\\{char}" if char in "\\[]()*_`" else char for char in text)


def _post(url: str, body: Mapping[str, Json], headers: Mapping[str, str] = {}) -> None:
    post(url, msgspec.json.encode(body), {"content-type": "application/json", **headers})
