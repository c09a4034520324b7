"""What a client may send to an MCP route, and what it is told otherwise.

The SDK refuses some of this without a word and some in the words of its own types, and a repeated id makes it
forget the first request.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp.server.streamable_http import GET_STREAM_KEY
from mcp_types import HEADER_MISMATCH
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import Response as HttpResponse

from interlock.surfaces.call import RpcError
from interlock.transport.results import has_envelope, unsupported_version
from interlock.transport.rpc import (
    ID_IN_USE,
    Malformed,
    Message,
    Request,
    RequestId,
    Response,
    error_line,
    invalid_request,
)

VERSION_HEADER = "mcp-protocol-version"
SESSION_HEADER = "mcp-session-id"
JSON_TYPE, STREAM_TYPE = "application/json", "text/event-stream"
LISTEN = "subscriptions/listen"
VERSIONS_DIFFER = (
    "the header MCP-Protocol-Version must name the version in _meta; a proxy may have removed it"
)
NO_SESSION = (
    "send initialize first, and the Mcp-Session-Id header of its answer with every further request;"
    " a proxy may have removed it"
)
SESSION_ENDED = (
    "this session has ended or is unknown here; send initialize without Mcp-Session-Id to get a new one,"
    " in which your runs continue with their tokens"
)
NO_STREAM = f"this version of the protocol has no sessions; POST {LISTEN} to hear of changes"


def rpc_refusal(
    status: int, id: RequestId, error: RpcError | str, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return a refusal as a JSON-RPC error; a text says what is wrong with the request."""
    line = error_line(id, invalid_request(error) if isinstance(error, str) else error)
    return HttpResponse(line, status, headers, JSON_TYPE)


def refused_post(message: Message, headers: Headers) -> HttpResponse | None:
    """Return the refusal of a message, by its id where it has one."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        return rpc_refusal(415, None, f"send the header Content-Type: {JSON_TYPE}")
    match message:
        case Malformed(id, error):
            return rpc_refusal(400, id, error)
        case Request(id=float() | None) | Response(id=float()):
            return rpc_refusal(400, None, "id must be a string or an integer")
    version, id, opens = headers.get(VERSION_HEADER), None, False
    if isinstance(message, Request):
        id, opens = message.id, message.method == "initialize"
        if id == GET_STREAM_KEY:  # the SDK keeps a session's own stream under this id
            return rpc_refusal(400, id, ID_IN_USE)
        if not opens and (wrong := _wrong_version(message, version)):
            return rpc_refusal(400, id, wrong)
    accepted = {
        part.partition(";")[0].strip().lower()
        for value in headers.getlist("accept")
        for part in value.split(",")
    }
    takes_json = not accepted.isdisjoint({"*/*", "application/*", JSON_TYPE})
    takes_stream = not accepted.isdisjoint({"*/*", "text/*", STREAM_TYPE})
    if not takes_json or not (takes_stream or is_answered_as_json(message, version)):
        return rpc_refusal(406, id, f"send the header Accept: {JSON_TYPE}, {STREAM_TYPE}")
    return rpc_refusal(400, id, NO_SESSION) if not opens and _lacks_session(headers) else None


def refused_stream(headers: Headers) -> HttpResponse | None:
    """Return the refusal to open or end a session's own stream."""
    if not is_handshake(headers.get(VERSION_HEADER)):
        return rpc_refusal(405, None, NO_STREAM, {"Allow": "POST"})
    return rpc_refusal(400, None, NO_SESSION) if _lacks_session(headers) else None


def is_handshake(version: str | None) -> bool:
    """Tell whether a request belongs to the handshake era; the header came only with its third version."""
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def is_answered_as_json(message: Message, version: str | None) -> bool:
    """Tell whether one JSON text answers a message: in the modern era, but for what only a stream carries.

    That is progress and changes. A call that may wait needs one too: only from a stream does the SDK hear
    that the client has gone.
    """
    match message:
        case (
            Request(method="subscriptions/listen")
            | Request(params={"_meta": {"progressToken": _}})
            | Request(params={"arguments": {"waitSeconds": _}})
        ):
            return False
        case _:
            return not is_handshake(version)


def _wrong_version(message: Request, version: str | None) -> RpcError | None:
    if is_handshake(version):
        differ = has_envelope(message.params)
        return RpcError(HEADER_MISMATCH, VERSIONS_DIFFER) if differ else None
    if version in KNOWN_PROTOCOL_VERSIONS or has_envelope(message.params):
        return None
    return unsupported_version(version, *KNOWN_PROTOCOL_VERSIONS)


def _lacks_session(headers: Headers) -> bool:
    return is_handshake(headers.get(VERSION_HEADER)) and SESSION_HEADER not in headers
