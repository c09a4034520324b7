"""The values of one tool call: who calls, what comes back, and what the user is asked. Nothing knows MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from interlock.core.values import Json

Era = Literal["handshake", "modern"]


class Client(Struct, frozen=True):
    """The calling client: its name, its version, and whether it can show the user a form or an address."""

    name: str = "unknown"
    version: str = ""
    era: Era = "handshake"
    can_elicit: bool = False
    opens_addresses: bool = False


class Form(Struct, frozen=True):
    """A form for the user: a message and a flat JSON Schema of the answer."""

    message: str
    schema: Mapping[str, Json]


class Address(Struct, frozen=True):
    """Where the user can answer a question in the console; the answer never comes by the client."""

    message: str
    url: str


class FormAnswer(Struct, frozen=True):
    """The user's reaction to a form. Only `accept` is an answer; otherwise `content` is empty."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Json] = {}


class Call(Struct, frozen=True):
    """The context of one tool call. `answers` and `asked` are set when the call follows an `Elicit`.

    Whether it `may_wait`: not when its time is over. `console` is the address of the console, if there is one
    and the client can show it. `unread` names members of its arguments that the tool does not know, where
    they are not an error.
    """

    client: Client = Client()
    answers: Mapping[str, FormAnswer] = {}
    asked: str | None = None
    may_wait: bool = True
    console: str = ""
    unread: tuple[str, ...] = ()


class Reply(Struct, frozen=True, omit_defaults=True):
    """An answer: text first, then JSON (rule 41). `structured` may be JSON that is already encoded."""

    text: str
    structured: msgspec.Raw | Mapping[str, Json] | None = None
    meta: Mapping[str, Json] = {}
    is_error: bool = False


class Refused(Exception):
    """Ends a call at once, wherever it is noticed: the reply says what is wrong and what to do next."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.text)
        self.reply = reply


class Elicit(Struct, frozen=True):
    """A request to ask the user first; the same call is then made again with the answers and this state."""

    questions: Mapping[str, Form | Address]
    state: str


class Wait(Struct, frozen=True):
    """A request to make the same call again every second for this long: the user may decide meanwhile.

    One that `works` is for something that goes on meanwhile: it has this long from now, whatever else the
    call has waited for.
    """

    seconds: float
    message: str = "Waiting for the user's decision"
    works: bool = False


class RpcError(Struct, frozen=True):
    """A JSON-RPC error. Of the surfaces only `lookup` returns one, because its document says so."""

    code: int
    message: str
    data: Json = None


Outcome: TypeAlias = Reply | Elicit | Wait | RpcError


class PromptTexts(Struct, frozen=True):
    """How a surface tells an agent to begin a workflow, with inputs that the user gave, and to find back.

    `{id}` is the workflow, `{inputs}` the second text with its `{json}`, `{token}` a token of the run.
    """

    start: str
    inputs: str
    resume: str = ""
