"""JSON-RPC 2.0 in lines: what a line says, and how an answer is written.

Nothing here knows MCP; a line that is no message becomes a `Malformed` value, never an exception.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.tool import RpcFailure

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

RequestId: TypeAlias = int | float | str | None
Params: TypeAlias = Mapping[str, Json]


class Request(Struct, frozen=True):
    """A call that wants an answer."""

    id: RequestId
    method: str
    params: Params


class Notification(Struct, frozen=True):
    """A call that wants none."""

    method: str
    params: Params


class Response(Struct, frozen=True):
    """The client's answer to a request of ours; `result` is None when it was an error."""

    id: RequestId
    result: Json


class Malformed(Struct, frozen=True):
    """What is no message, and the error that says so."""

    id: RequestId
    failure: RpcFailure


Message: TypeAlias = Request | Notification | Response | Malformed


def parse(line: bytes) -> Message | list[Message]:
    """Read one line: a message, or the messages of a batch."""
    try:
        value = msgspec.json.decode(line.decode())
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        return Malformed(None, RpcFailure(PARSE_ERROR, "Parse error", {"details": str(error)}))
    match value:
        case [_, *_]:
            return [_message(item) for item in value]
        case _:
            return _message(value)


def _message(value: Json) -> Message:
    if not isinstance(value, Mapping):
        return _invalid(value, "a message is an object")
    match value:
        case {"jsonrpc": "2.0", "method": str(method)}:
            return _call(value, method)
        case {"jsonrpc": "2.0", "id": str() | int() | float() as id, "result": result}:
            return Response(id, result)
        case {"jsonrpc": "2.0", "id": str() | int() | float() as id, "error": {}}:
            return Response(id, None)
        case {"method": str()}:
            return _invalid(value, 'jsonrpc must be "2.0"')
        case _:
            return _invalid(value, "a message has a method, or a result or error with the id it answers")


def _call(value: Mapping[str, Json], method: str) -> Message:
    params = value.get("params")
    if params is not None and not isinstance(params, Mapping):
        return _invalid(value, "params must be an object")
    if "id" not in value:
        return Notification(method, params or {})
    if not _is_id(value["id"]):
        return _invalid(value, "id must be a string or a number")
    return Request(_id(value), method, params or {})


def _invalid(value: Json, details: str) -> Malformed:
    return Malformed(_id(value), RpcFailure(INVALID_REQUEST, "Invalid Request", {"details": details}))


def _id(value: Json) -> RequestId:
    match value:
        case {"id": str() | int() | float() as id} if _is_id(id):
            return id
        case _:
            return None


def _is_id(value: Json) -> bool:
    return value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))


def guarded(id: RequestId, answer: Callable[[], list[bytes]]) -> list[bytes]:
    """Make an answer; a fault of ours is told on stderr and must not end the connection."""
    try:
        return answer()
    except Exception:  # the edge of the process
        sys.excepthook(*sys.exc_info())
        return [error_line(id, RpcFailure(INTERNAL_ERROR, "Internal error"))]


def result_line(id: RequestId, result: Json | msgspec.Raw | Struct) -> bytes:
    """Write the answer to a request."""
    return _line({"jsonrpc": "2.0", "id": id, "result": result})


def error_line(id: RequestId, failure: RpcFailure) -> bytes:
    """Write the refusal of a request; an id of None is for one that could not be read."""
    error: dict[str, Json] = {"code": failure.code, "message": failure.message}
    if failure.data is not None:
        error["data"] = failure.data
    return _line({"jsonrpc": "2.0", "id": id, "error": error})


def request_line(id: RequestId, method: str, params: Params) -> bytes:
    """Write a request of ours."""
    return _line({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notification_line(method: str, params: Params) -> bytes:
    """Write a notification of ours."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def batch_line(lines: Iterable[bytes]) -> bytes:
    """Join the answers to a batch into one line."""
    return b"[" + b",".join(line.rstrip(b"\n") for line in lines) + b"]\n"


def _line(message: Mapping[str, object]) -> bytes:
    # A line break can only be white space here (strings escape it), and it would end the message early.
    return msgspec.json.encode(message).replace(b"\n", b" ") + b"\n"
