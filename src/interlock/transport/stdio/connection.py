"""One MCP client on one pipe. The first request that is served decides the era of the connection.

A `server/discover` decides nothing: a client may stop waiting for its answer and send `initialize`.
"""

from __future__ import annotations

from typing import assert_never

from interlock.surfaces.call import Era, RpcError
from interlock.surfaces.tool import Surface
from interlock.transport.results import ServerInfo, has_envelope, unsupported_version
from interlock.transport.rpc import (
    BATCHING,
    ID_IN_USE,
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    RpcRefused,
    batch_line,
    error_line,
    guarded,
    invalid_request,
    parse,
)
from interlock.transport.stdio.handshake import Handshake
from interlock.transport.stdio.modern import VERSION, Modern
from interlock.transport.stdio.waiting import WaitingTurns


class Connection:
    """Takes lines and returns the lines to send back, in order."""

    finished = False

    def __init__(self, surface: Surface, server: ServerInfo) -> None:
        self._era: Era | None = None
        self._waiting = WaitingTurns()
        self._handshake = Handshake(surface, server, self._waiting)
        self._modern = Modern(surface, server, self._waiting)

    def patience(self) -> float | None:
        """Return the seconds until a waiting call is to be made again."""
        return self._waiting.patience()

    def look(self) -> list[bytes]:
        """Make waiting calls again and return the lines to send."""
        return self._waiting.look()

    def end(self) -> list[bytes]:
        """Return the lines that end the streams of changes."""
        return self._waiting.end()

    def receive(self, line: bytes) -> list[bytes]:
        """Answer one line of the client."""
        parsed = parse(line)
        if not isinstance(parsed, list):
            return self._answer_message(parsed)
        if self._handshake.version != BATCHING:
            return [error_line(None, invalid_request("batches are not part of this version of the protocol"))]
        answers = [answer for message in parsed for answer in self._answer_message(message)]
        return [batch_line(answers)] if answers else []

    def refuse_unread(self, id: RequestId, error: RpcError) -> list[bytes]:
        """Refuse what could not be read, by its id if that is known."""
        return [error_line(id, error)]

    def _answer_message(self, message: Message) -> list[bytes]:
        match message:
            case Request(None):
                return [error_line(None, invalid_request("id must not be null"))]
            case Request():
                return guarded(message.id, lambda: self._answer_request(message))
            case Notification():
                cancelled = message.params.get("requestId")
                if message.method == "notifications/cancelled" and cancelled is not None:
                    self._waiting.cancel(cancelled)
                return self._handshake.handle_notification(message)
            case Response():
                return self._handshake.handle_response(message)
            case Malformed(id, error):
                return self.refuse_unread(id, error)
            case _:
                assert_never(message)

    def _answer_request(self, request: Request) -> list[bytes]:
        if request.id in self._waiting:
            raise RpcRefused(invalid_request(ID_IN_USE))
        is_modern = request.method != "initialize" and has_envelope(request.params)
        match self._era:
            case "modern" if request.method == "initialize":
                raise RpcRefused(unsupported_version(request.params.get("protocolVersion"), VERSION))
            case "handshake" if is_modern:
                raise RpcRefused(invalid_request("this connection was opened by initialize"))
        if is_modern or self._era == "modern":
            if request.method != "server/discover":
                self._era = "modern"
            return self._modern.answer(request)
        answers = self._handshake.answer(request)
        if self._handshake.version is not None:
            self._era = "handshake"
        return answers
