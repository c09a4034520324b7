"""What the surfaces over a ledger share: expected errors, bugs and the end of the process."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from interlock.ledger.errors import LedgerError, error_of, internal_error
from interlock.ledger.heard_clients import HeardClient
from interlock.ledger.ledger import Ledger
from interlock.surfaces.call import Client, Outcome, Reply
from interlock.surfaces.tool import Surface, Tool

if TYPE_CHECKING:
    from interlock.surfaces.prompts import Prompts
    from interlock.surfaces.resources import Resources


class LedgerSurface(Surface):
    """A surface over a ledger. A subclass says how it answers an error of the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.console = ledger.settings.console_url

    @abstractmethod
    def error_reply(self, error: LedgerError) -> Reply:
        """Answer an error of the ledger in the words of this surface."""

    def expected(self, error: Exception) -> Outcome | None:
        known = error_of(error)
        return self.error_reply(known) if known is not None else None

    def failed(self, tool: Tool, error: Exception, reference: str) -> Outcome:
        return self.error_reply(internal_error(error, reference))

    def prompts(self) -> Prompts:
        from interlock.surfaces.prompts import Prompts  # late: many chats never list prompts

        assert self.prompt_texts is not None
        return Prompts(self.ledger.library, self.ledger, self.prompt_texts)

    def resources(self) -> Resources:
        from interlock.surfaces.resources import Resources

        return Resources(self.ledger.library, self.ledger)

    def hear(self, client: Client) -> None:
        owner, calling = self.ledger.owner, self.ledger.clients.calling
        calling.add(HeardClient(owner, client.name, client.version, self.name))

    def idle(self) -> None:
        self.ledger.idle()

    def close(self) -> None:
        self.ledger.close()
