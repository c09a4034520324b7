"""What a surface is: tools as data, handlers that never wait, and replies that know nothing of MCP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from interlock.core.values import Json

Era = Literal["handshake", "modern"]
Profile = Literal["mcp", "lookup"]


class Client(Struct, frozen=True):
    """Who is calling: what the client said of itself, and what it can do for the user."""

    name: str = "unknown"
    version: str = ""
    era: Era = "handshake"
    can_elicit: bool = False


class Form(Struct, frozen=True):
    """A form for the user: a message and a flat JSON Schema of the answer."""

    message: str
    schema: Mapping[str, Json]


class FormAnswer(Struct, frozen=True):
    """What came back: only `accept` is an answer; decline and cancel are none (content is then empty)."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Json] = {}


class Call(Struct, frozen=True):
    """The circumstances of one tool call. `answers` and `asked` are set when an Ask comes back answered."""

    client: Client = Client()
    answers: Mapping[str, FormAnswer] = {}
    asked: str | None = None


class Reply(Struct, frozen=True, omit_defaults=True):
    """An answer: text first, JSON behind it (rule 41). `structured` may be JSON that is already encoded."""

    text: str
    structured: msgspec.Raw | Mapping[str, Json] | None = None
    meta: Mapping[str, Json] = {}
    is_error: bool = False


class Recorded(Struct, frozen=True):
    """A reply as it was recorded: its JSON is passed on as it is, never decoded and encoded again."""

    text: str
    structured: msgspec.Raw = msgspec.Raw()
    meta: Mapping[str, Json] = {}
    is_error: bool = False


_recorded = msgspec.json.Decoder(Recorded).decode


def recorded_reply(body: bytes) -> Reply:
    """Read an encoded reply back."""
    found: Recorded = _recorded(body)
    return Reply(found.text, found.structured or None, found.meta, found.is_error)


class Ask(Struct, frozen=True):
    """The user must be asked first; the same call comes again with the answers and this state."""

    questions: Mapping[str, Form]
    state: str


class RpcFailure(Struct, frozen=True):
    """A JSON-RPC error of the surface's own document. Only `lookup` uses it."""

    code: int
    message: str
    data: Json = None


Outcome: TypeAlias = Reply | Ask | RpcFailure


class Tool(Struct, frozen=True):
    """One tool as data. `params` is a Struct with `forbid_unknown_fields`; its schema is derived from it.

    One that is not `listed` can be called all the same.
    """

    name: str
    description: str
    params: type[Struct]
    handler: Callable[[Any, Call], Outcome]
    input_schema: Mapping[str, Json] | None = None
    output_schema: Mapping[str, Json] | None = None
    read_only: bool = False
    idempotent: bool = False
    examples: Mapping[str, Json] = {}
    listed: bool = True

    def accepts(self) -> Mapping[str, Json]:
        """Give the schema of the arguments, derived from `params` only when somebody asks."""
        if self.input_schema is not None:
            return self.input_schema
        from interlock.surfaces.input_schema import input_schema

        return input_schema(self.params)


class Surface(Protocol):
    """What a transport needs of a surface. A subclass speaks plain MCP unless it says otherwise."""

    name: str
    instructions: str
    tools: Mapping[str, Tool]
    profile: Profile = "mcp"

    def invalid(self, tool: Tool, diagnostic: str) -> Outcome:
        """Refuse arguments that do not fit the tool's parameters; `problem` says what and where."""

    def unknown(self, name: str) -> Outcome:
        """Refuse a tool that this surface does not have."""

    def failed(self, tool: Tool, error: Exception) -> Outcome:
        """Answer for an exception: a fault of ours, or of the store, never a traceback for the agent."""


def call_tool(surface: Surface, name: str, arguments: Json, call: Call) -> Outcome:
    """Check the arguments against the tool's parameters and run its handler."""
    tool = surface.tools.get(name)
    if tool is None:
        return surface.unknown(name)
    if holds_nul([arguments, call.asked, *(answer.content for answer in call.answers.values())]):
        return surface.invalid(tool, "A NUL character (\\u0000) is not accepted anywhere in the arguments")
    try:
        params = msgspec.convert({} if arguments is None else arguments, tool.params)
    except msgspec.ValidationError as error:
        return surface.invalid(tool, str(error))
    from interlock.ledger.retry import until_recorded

    try:
        return until_recorded(lambda: tool.handler(params, call))
    except Exception as error:  # the edge of the process: a fault must become an answer
        return surface.failed(tool, error)


def holds_nul(value: Json) -> bool:
    """Find a NUL character at any depth: it delimits the token slots of a recorded response."""
    pending: list[Json] = [value]
    while pending:
        match pending.pop():
            case str() as text if "\0" in text:
                return True
            case str():
                continue
            case Mapping() as members:
                pending.extend(members)
                pending.extend(members.values())
            case Sequence() as items:
                pending.extend(items)
    return False
