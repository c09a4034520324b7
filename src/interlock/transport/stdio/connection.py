"""One MCP client over one pipe: the first request that is served settles the era of the connection.

A `server/discover` settles nothing, because a client may give up waiting for it and send `initialize`.
"""

from __future__ import annotations

from typing import assert_never

from interlock.surfaces.tool import Era, RpcFailure, Surface
from interlock.transport.stdio.handshake import BATCHING, Handshake
from interlock.transport.stdio.modern import Modern, enveloped, unsupported
from interlock.transport.stdio.results import Server
from interlock.transport.stdio.rpc import (
    INVALID_REQUEST,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    batch_line,
    error_line,
    guarded,
    parse,
)


class Connection:
    """Takes lines and gives the lines to send back, in order."""

    finished = False

    def __init__(self, surface: Surface, server: Server) -> None:
        self._era: Era | None = None
        self._handshake = Handshake(surface, server)
        self._modern = Modern(surface, server)

    def receive(self, line: bytes) -> list[bytes]:
        """Take one line of the client."""
        parsed = parse(line)
        if isinstance(parsed, list):
            return self._batch(parsed)
        return self._one(parsed)

    def _batch(self, messages: list[Message]) -> list[bytes]:
        if self._handshake.version != BATCHING:
            return [error_line(None, _refusal("batches are not part of this version of the protocol"))]
        lines = [line for message in messages for line in self._one(message)]
        return [batch_line(lines)] if lines else []

    def _one(self, message: Message) -> list[bytes]:
        match message:
            case Request(None):
                return [error_line(None, _refusal("id must not be null"))]
            case Request():
                return guarded(message.id, lambda: self._answer(message))
            case Notification():
                return self._handshake.notice(message)
            case Response():
                return self._handshake.hear(message)
            case Malformed(id, failure):
                return [error_line(id, failure)]
            case _:
                assert_never(message)

    def _answer(self, request: Request) -> list[bytes]:
        modern = request.method != "initialize" and enveloped(request.params)
        match self._era:
            case "modern" if request.method == "initialize":
                return [error_line(request.id, unsupported(request.params.get("protocolVersion")))]
            case "handshake" if modern:
                return [error_line(request.id, _refusal("this connection was opened by initialize"))]
        if modern or self._era == "modern":
            return self._in_modern(request)
        return self._in_handshake(request)

    def _in_modern(self, request: Request) -> list[bytes]:
        if request.method != "server/discover":
            self._era = "modern"
        return self._modern.answer(request)

    def _in_handshake(self, request: Request) -> list[bytes]:
        lines = self._handshake.answer(request)
        if self._handshake.version is not None:
            self._era = "handshake"
        return lines


def _refusal(details: str) -> RpcFailure:
    return RpcFailure(INVALID_REQUEST, f"Invalid Request: {details}", {"details": details})
