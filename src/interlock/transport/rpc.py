"""JSON-RPC 2.0, one message per line: reading messages and writing answers.

Nothing here knows MCP. A line that cannot be read becomes a `Malformed` value, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.call import RpcError
from interlock.surfaces.tool import report_exception

BATCHING = "2025-03-26"  # the version of the protocol that has batches
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
ID_IN_USE = "a request with this id is not answered yet; use another id"

RequestId: TypeAlias = int | float | str | None
Params: TypeAlias = Mapping[str, Json]


class Request(Struct, frozen=True):
    """A call that expects an answer."""

    id: RequestId
    method: str
    params: Params


class Notification(Struct, frozen=True):
    """A call that expects no answer."""

    method: str
    params: Params


class Response(Struct, frozen=True):
    """The client's answer to our request; `result` is None if it is an error or cannot be read."""

    id: RequestId
    result: Json


class Malformed(Struct, frozen=True):
    """Input that is not a message, and the error to answer it with."""

    id: RequestId
    error: RpcError


Message: TypeAlias = Request | Notification | Response | Malformed


class RpcRefused(Exception):
    """Ends a request at once, wherever the reason is noticed; the client gets the error as it is."""

    def __init__(self, error: RpcError) -> None:
        super().__init__(error.message)
        self.error = error


def parse(line: bytes) -> Message | list[Message]:
    """Read one line: a message, or the messages of a batch."""
    try:
        value = msgspec.json.decode(line.decode())
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        return _unreadable(_leniently_decoded(line), parse_error(str(error)))
    match value:
        case [_, *_]:
            return [_message(item) for item in value]
        case _:
            return _message(value)


def parse_error(details: str) -> RpcError:
    """Return the error for a line that cannot be read."""
    return RpcError(PARSE_ERROR, "Parse error", {"details": details})


def invalid_request(details: str) -> RpcError:
    """Return the error for a message that may not be sent like this."""
    return RpcError(INVALID_REQUEST, f"Invalid Request: {details}", {"details": details})


def _unreadable(value: Json, error: RpcError) -> Message | list[Message]:
    """Refuse a line by the ids in it, so that nobody waits for an answer that never comes."""
    match value:
        case [_, *_]:
            messages = (_unreadable(item, error) for item in value)
            return [message for message in messages if not isinstance(message, list)]
        case {"method": _}:
            return Malformed(_id(value), error)
        case {"id": _, "result": _} | {"id": _, "error": _}:
            return Response(_id(value), None)
        case _:
            return Malformed(_id(value), error)


def _leniently_decoded(line: bytes) -> Json:
    """Decode also what we do not accept: numbers out of range, lone surrogates, bytes that are not UTF-8."""
    import json  # only here: no well-behaved client pays for it

    try:
        value: Json = json.loads(line.decode(errors="replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return value


def id_at_either_end(head: bytes, tail: bytes) -> RequestId:
    """Return the id of a request of which only the two ends are known; None if it is at neither.

    Clients write the id before the parameters or after them; what is between may hold other ids.
    """
    import re  # only here: no well-behaved client pays for it

    named = rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*'
    plain = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*'
    members = re.match(rb"\s*\{(?:\s*(?:%b|%b),)*" % (plain, named), head)
    if members is None or b'"method"' not in members[0]:
        return None  # no request: nobody waits for an answer
    found = re.search(named + b",", members[0]) or re.search(
        rb",\s*%b(?:,\s*%b)*\}\s*$" % (named, plain), tail
    )
    return _id(_leniently_decoded(b'{"id":%b}' % found[1])) if found is not None else None


def _message(value: Json) -> Message:
    if not isinstance(value, Mapping):
        return _invalid(value, "a message is an object")
    match value:
        case {"jsonrpc": "2.0", "method": str(method)}:
            params = value.get("params")
            if params is not None and not isinstance(params, Mapping):
                return _invalid(value, "params must be an object")
            if "id" not in value:
                return Notification(method, params or {})
            if not _is_id(value["id"]):
                return _invalid(value, "id must be a string or a number")
            return Request(_id(value), method, params or {})
        case {"jsonrpc": "2.0", "id": str() | int() | float() as id, "result": result}:
            return Response(id, result)
        case {"jsonrpc": "2.0", "id": str() | int() | float() as id, "error": {}}:
            return Response(id, None)
        case {"method": str()}:
            return _invalid(value, 'jsonrpc must be "2.0"')
        case _:
            return _invalid(value, "a message has a method, or a result or error with the id it answers")


def _invalid(value: Json, details: str) -> Malformed:
    return Malformed(_id(value), RpcError(INVALID_REQUEST, "Invalid Request", {"details": details}))


def _id(value: Json) -> RequestId:
    match value:
        case {"id": str() | int() | float() as id} if _is_id(id):
            return id
        case _:
            return None


def _is_id(value: Json) -> bool:
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def guarded(id: RequestId, answer: Callable[[], list[bytes]]) -> list[bytes]:
    """Return the answer to a request; report an exception on stderr and answer with an internal error."""
    try:
        return answer()
    except RpcRefused as refused:
        return [error_line(id, refused.error)]
    except Exception as error:  # the edge of the process: a bug must not end the connection
        reference = report_exception("a request", error)
        details = f"Reference {reference} on the server's stderr"
        return [error_line(id, RpcError(INTERNAL_ERROR, "Internal error", {"details": details}))]


def result_line(id: RequestId, result: Json | msgspec.Raw | Struct) -> bytes:
    """Encode the answer to a request."""
    return _line({"jsonrpc": "2.0", "id": id, "result": result})


def error_line(id: RequestId, error: RpcError) -> bytes:
    """Encode the refusal of a request; the id is None if it could not be read."""
    body: dict[str, Json] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return _line({"jsonrpc": "2.0", "id": id, "error": body})


def request_line(id: RequestId, method: str, params: Params) -> bytes:
    """Encode a request to the client."""
    return _line({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notification_line(method: str, params: Params) -> bytes:
    """Encode a notification to the client."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def batch_line(lines: Iterable[bytes]) -> bytes:
    """Join the answers to a batch into one line."""
    return b"[" + b",".join(line.rstrip(b"\n") for line in lines) + b"]\n"


def _line(message: Mapping[str, object]) -> bytes:
    # Strings escape line breaks, so one can only be white space here, and it would end the message early.
    return msgspec.json.encode(message).replace(b"\n", b" ") + b"\n"
