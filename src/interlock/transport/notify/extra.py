"""Every other service, through Apprise (`interlock[notify]`), which is imported when it is used first."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from interlock.core.message import Message, Undelivered

INSTALL = "pip install 'interlock[notify]'"


class Apprise:
    """An address in the form of Apprise."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, message: Message) -> None:
        if find_spec("apprise") is None:
            raise Undelivered(f"Apprise is not installed; run `{INSTALL}`")
        service = import_module("apprise").Apprise()
        if not service.add(self._url):
            raise Undelivered("Apprise does not know this kind of address", final=True)
        links = "".join(f"\n{link.label}: {link.url}" for link in message.links)
        if not service.notify(title=message.title, body=f"{message.text}{links}"):
            raise Undelivered("Apprise could not deliver it")
