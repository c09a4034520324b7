"""What a surface is: a set of tools as data, with handlers that never wait."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.values import Json
from interlock.surfaces.call import Call, Client, Outcome, PromptTexts, Refused, RpcError
from interlock.surfaces.parameters import input_schema

if TYPE_CHECKING:
    from interlock.surfaces.prompts import Prompts
    from interlock.surfaces.resources import Resources

Profile = Literal["mcp", "lookup"]

MOST_TRIES = 100
INVALID_PARAMS = -32602
RETRY_SECONDS = 4.0
MOST_CHARACTERS = 8 * 1024
_CONTAINERS: Mapping[str, type] = {"object": dict, "array": list}


class Tool(Struct, frozen=True):
    """One tool as data. `params` is a Struct with `forbid_unknown_fields`; its schema is derived from it.

    A tool that is not `listed` can still be called. One without `uses_store` answers while the store hangs.
    """

    name: str
    description: str
    params: type[Struct]
    handler: Callable[..., Outcome]
    input_schema: Mapping[str, Json] | None = None
    output_schema: Mapping[str, Json] | None = None
    read_only: bool = False
    idempotent: bool = False
    examples: Mapping[str, Json] = {}
    listed: bool = True
    uses_store: bool = True

    def argument_schema(self) -> Mapping[str, Json]:
        """Return the JSON Schema of the arguments, derived from `params` on demand."""
        if self.input_schema is not None:
            return self.input_schema
        return input_schema(self.params)

    @property
    def title(self) -> str:
        """The name as people read it."""
        return self.name.replace("_", " ").capitalize()


Handler = TypeVar("Handler", bound=Callable[[Any, Any, Call], Outcome])


def tool(
    *,
    read_only: bool = False,
    idempotent: bool = False,
    listed: bool = True,
    uses_store: bool = True,
    input_schema: Mapping[str, Json] | None = None,
    output_schema: Mapping[str, Json] | None = None,
    examples: Mapping[str, Json] | None = None,
) -> Callable[[Handler], Handler]:
    """Declare a method as the tool of its name. An agent reads its docstring, and sends its `params`."""

    def declared(handler: Handler) -> Handler:
        handler.__dict__["tool"] = Tool(
            name=handler.__name__,
            description=" ".join((handler.__doc__ or "").split()),
            params=get_type_hints(handler)["params"],
            handler=handler,
            input_schema=input_schema,
            output_schema=output_schema,
            read_only=read_only,
            idempotent=idempotent,
            examples=examples or {},
            listed=listed,
            uses_store=uses_store,
        )
        return handler

    return declared


def tools_of(*parts: object) -> dict[str, Tool]:
    """Return the tools that the classes of these objects declare, in the order of their declaration."""
    return {
        name: replace(member.tool, handler=getattr(part, name))
        for part in parts
        for name, member in vars(type(part)).items()
        if hasattr(member, "tool")
    }


class Surface(Protocol):
    """What a transport needs of a surface. A subclass speaks plain MCP unless it says otherwise.

    One with prompt texts has prompts and resources. `take_folders` is called with the folders that the client
    works in, where nothing else has named a project. `console` is the address where people decide.
    """

    name: str
    instructions: str
    tools: Mapping[str, Tool]
    profile: Profile = "mcp"
    prompt_texts: PromptTexts | None = None
    take_folders: Callable[[Sequence[Path]], None] | None = None
    console: str = ""

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        """Refuse arguments that do not fit the tool's parameters; `reason` is msgspec's message."""

    def unknown(self, name: str) -> Outcome:
        """Refuse a tool that this surface does not have, as an error of the protocol."""
        return RpcError(INVALID_PARAMS, f"Unknown tool: {name[:128]}. Use one of: {', '.join(self.tools)}")

    def expected(self, error: Exception) -> Outcome | None:
        """Answer for an error that is not a bug, such as a store that cannot be used; None for a bug."""

    def failed(self, tool: Tool, error: Exception, reference: str) -> Outcome:
        """Answer for a bug; `reference` leads to the traceback on stderr."""

    def prompts(self) -> Prompts:
        """Return the prompts of a surface that has prompt texts."""
        raise NotImplementedError

    def resources(self) -> Resources:
        """Return the resources of a surface that has prompt texts."""
        raise NotImplementedError

    def hear(self, client: Client) -> None:
        """Remember that this client calls."""
        return

    def idle(self) -> None:
        """Do what can wait until nobody waits for an answer."""
        return

    def close(self) -> None:
        """Finish what is left to do before the process exits."""
        return


def call_tool(surface: Surface, name: str, arguments: Json, call: Call) -> Outcome:
    """Check the arguments against the tool's parameters and run its handler."""
    surface.hear(call.client)
    tool = surface.tools.get(name)
    if tool is None:
        return surface.unknown(name)
    arguments = {} if arguments is None else arguments
    if surface.profile == "mcp" and isinstance(arguments, dict):
        arguments = _as_meant(tool, arguments)
    if contains_nul([arguments, call.asked, *(answer.content for answer in call.answers.values())]):
        return surface.invalid(tool, "A NUL character (\\u0000) is not accepted anywhere in the arguments")
    try:
        params = msgspec.convert(arguments, tool.params)
    except msgspec.ValidationError as error:
        return surface.invalid(tool, str(error))
    if too_long := _too_long(surface, arguments):
        return surface.invalid(tool, f"Expected `str` of length <= {MOST_CHARACTERS} - at `$.{too_long}`")
    from interlock.core.patterns import SECONDS_OF_A_CALL, limited_time  # late: not needed to list tools

    if call.client.opens_addresses:
        call = msgspec.structs.replace(call, console=surface.console)
    with limited_time(SECONDS_OF_A_CALL, time.monotonic):
        return _handled(surface, tool, params, replace(call, unread=tuple(_unread(arguments, params))))


def _as_meant(tool: Tool, arguments: dict[str, Json]) -> dict[str, Json]:
    """Read objects and lists that came as JSON text, and leave out optional parameters that are null.

    Some clients send every argument as a string, or every parameter that a tool has.
    """
    odd = {name for name, value in arguments.items() if value is None or _may_be_json(value)}
    if not odd:
        return arguments
    schema = tool.argument_schema()
    parameters, required = schema["properties"], schema.get("required", ())
    assert isinstance(parameters, Mapping)
    assert isinstance(required, Sequence)
    meant: dict[str, Json] = {}
    for name, value in arguments.items():
        known = parameters.get(name)
        if value is None and known is not None and name not in required:
            continue
        wanted = _CONTAINERS.get(str(known.get("type"))) if isinstance(known, Mapping) else None
        meant[name] = _json_in(value, wanted) if name in odd and wanted is not None else value
    return meant


def _may_be_json(value: Json) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def _json_in(text: Json, wanted: type) -> Json:
    """Return the object or list that a text holds; the text itself if it holds anything else."""
    with suppress(msgspec.DecodeError, RecursionError):
        value: Json = msgspec.json.decode(text) if isinstance(text, str) else text
        if type(value) is wanted:
            return value
    return text


def _too_long(surface: Surface, arguments: Json) -> str:
    """Name a text that no id, token or remark can be, so that no refusal repeats it; empty if none is."""
    if surface.profile == "lookup" or not isinstance(arguments, dict):  # there an output is such a text
        return ""
    texts = ((name, value) for name, value in arguments.items() if isinstance(value, str))
    return next((name for name, text in texts if len(text) > MOST_CHARACTERS), "")


def _unread(arguments: Json, params: Struct) -> Iterator[str]:
    """Name the members of the entries of lists that the parameters do not know, each once."""
    sent = arguments if isinstance(arguments, dict) else {}
    unread: dict[str, None] = {}
    for name, entries in sent.items():
        taken = getattr(params, name, None)
        if not isinstance(entries, list) or not isinstance(taken, list):
            continue
        for entry, read in zip(entries, taken, strict=True):
            if isinstance(entry, dict) and isinstance(read, Struct):
                known = read.__struct_encode_fields__
                unread |= {f"{name}[].{member}": None for member in entry if member not in known}
    yield from unread


def _handled(surface: Surface, tool: Tool, params: Struct, call: Call) -> Outcome:
    tries, ends = 0, time.monotonic() + RETRY_SECONDS
    while True:
        try:
            return tool.handler(params, call)
        except Refused as refused:
            return refused.reply
        except Exception as error:  # the edge of the process: every call gets an answer
            from interlock.ledger.retry import StoreConflict

            # Another call was faster: this one runs again from its read, and nothing is lost.
            tries += 1
            if isinstance(error, StoreConflict) and tries < MOST_TRIES and time.monotonic() < ends:
                continue
            outcome = surface.expected(error)
            if outcome is not None:
                return outcome
            return surface.failed(tool, error, report_exception(tool.name, error))


def refuse_as_busy(surface: Surface) -> Outcome:
    """Refuse a call that has waited too long for its turn, in the surface's words."""
    from interlock.ledger.retry import StoreBusy

    busy = StoreBusy("the server has more to do than it can answer in time")
    outcome = surface.expected(busy)
    if outcome is None:
        raise busy
    return outcome


def contains_nul(value: Json) -> bool:
    """Tell whether there is a NUL at any depth: it delimits the token slots of a recorded response."""
    pending: list[Json] = [value]
    while pending:
        match pending.pop():
            case str() as text if "\0" in text:
                return True
            case str():
                continue
            case dict() as members:
                pending.extend(members)
                pending.extend(members.values())
            case list() | tuple() as items:
                pending.extend(items)
    return False


def report_exception(origin: str, error: Exception) -> str:
    """Print a traceback to stderr and return the reference that it is printed under."""
    from traceback import format_exception

    reference = os.urandom(4).hex()
    report = f"interlock: {origin} failed. Reference {reference}\n{''.join(format_exception(error))}"
    with suppress(OSError, ValueError):  # nobody may be reading stderr any more
        if sys.stderr is not None:
            sys.stderr.write(report)
            sys.stderr.flush()
    return reference
