"""What a server needs of the program that starts it, and what is known about each request."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from interlock.core.principals import LOCAL, Principal
from interlock.core.run.surface_policy import SurfaceName
from interlock.core.values import Json
from interlock.surfaces.tool import Surface

KEY = "interlock.request"


class InboxAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision on exactly one question as it was shown: the names are those of the inbox (rule 26).

    `shown` is the digest of what was read; a node has each question once, so that `run` only makes sure.
    """

    session: str
    node: int
    question: str
    shown: str
    option: str
    note: str = ""
    run: str = ""


class Undecided(Struct, frozen=True):
    """Why nothing was recorded, and the question that waits now, if there is one."""

    code: str
    message: str
    question: Json = None


class InboxSlice(Struct, frozen=True):
    """Some of the questions, oldest first, how many wait in all, and where the next ones begin.

    While `counting`, there may be more than `total`.
    """

    questions: tuple[Json, ...]
    total: int
    counting: bool
    after: str


class AnswerPage(Struct, frozen=True):
    """What a person sees behind a link: the question with a button, or what became of it."""

    title: str
    text: str
    button: str = ""
    report: str = ""
    status: int = 200


class Unavailable(Exception):
    """The store cannot be used now: a code and a sentence, and after how many seconds to come back."""

    def __init__(self, code: str, message: str, after: int | None) -> None:
        super().__init__(message)
        self.code, self.message, self.after = code, message, after


class Service(Protocol):
    """The ledger behind the surfaces, as far as HTTP may know it. What uses the store raises Unavailable."""

    version: str

    def surface(self, name: SurfaceName, principal: Principal) -> Surface:
        """Return a surface onto the sessions of one principal."""

    def principal_of(self, token: str) -> Principal | None:
        """Return whom a bearer token was given to."""

    def secrets(self) -> Sequence[bytes]:
        """Return what seals the state of a call that waits for the user: the current secret first."""

    def inbox(self, principal: Principal, after: str, limit: int) -> InboxSlice:
        """Return the questions that a principal may see: its own, and others' if it decides for others."""

    def decide(self, principal: Principal, answer: InboxAnswer) -> Undecided | bool:
        """Record an answer to the question that was shown; return whether that decides it, or why not."""

    def linked(self, link: str) -> AnswerPage:
        """Show what a link would answer; nothing is recorded."""

    def answer_linked(self, link: str) -> AnswerPage:
        """Record the answer of a link, once."""

    def not_ready(self) -> str | None:
        """Say why calls cannot be answered now; None if they can."""

    def gates_waiting(self) -> int:
        """Count the sessions that wait for a decision or an input."""

    def messages_unsent(self) -> tuple[int, int]:
        """Count the messages that wait to be sent, and those that never will be."""

    def idle(self) -> None:
        """Do what can wait until nobody waits for an answer."""

    def close(self) -> None:
        """Finish what is left to do before the process exits."""


class RequestRecord(Struct):
    """What the access log and the metrics say about a request. No token and no content is kept."""

    principal: Principal = LOCAL
    surface: str = ""
    tool: str = ""


def record_in(scope: MutableMapping[str, Any]) -> RequestRecord:
    """Return the record of a request."""
    record = scope.get(KEY)
    if not isinstance(record, RequestRecord):
        record = scope[KEY] = RequestRecord()
    return record
