"""The process around the application: uvicorn, with patience for slow clients limited and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
from collections import OrderedDict
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 75
HEADER_BYTES = 64 * 1024
MOST_CONNECTIONS = 2000
BACKLOG = 2048
DRAIN_SECONDS = 4  # for answers that are under way when a signal arrives
EXIT_SECONDS = 4.8  # for everything; what is not answered by then was not acknowledged either


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise OSError."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address[:2], family=family, backlog=BACKLOG)


def address_of(listener: socket.socket) -> str:
    """Return what a browser on this machine calls the server."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(app: Starlette, listener: socket.socket, *messages: str) -> int:
    """Print the messages, serve until a signal arrives, and return the exit code."""
    logging.basicConfig(level=logging.ERROR)  # below that libraries log what clients sent
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    for message in messages:
        print(message, file=sys.stderr, flush=True)
    server = OrderlyServer(config)
    server.run([listener])
    return 0 if server.started else 1


class OrderlyServer(uvicorn.Server):
    """Ends streams before it waits for answers, and exits with 0 after a signal, in time."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            # A thread that waits for a disk or a database cannot be cancelled; the process would wait for it.
            overdue = threading.Timer(EXIT_SECONDS, os._exit, (0,))
            overdue.daemon = True
            overdue.start()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.stopping.set()  # type: ignore[union-attr]
        await super().shutdown(sockets)


class ImpatientProtocol(HttpToolsProtocol):
    """A connection that must send a request's head in time, and that makes room when there are too many."""

    waiting: ClassVar[OrderedDict[ImpatientProtocol, None]] = (
        OrderedDict()
    )  # no request in flight, oldest first

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()
        if len(self.connections) > MOST_CONNECTIONS:
            idlest, _ = ImpatientProtocol.waiting.popitem(last=False)
            idlest.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deadline is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._deadline is not None and self._head_bytes > HEADER_BYTES:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            ImpatientProtocol.waiting[self] = None

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.close)
        ImpatientProtocol.waiting[self] = None

    def _stop_waiting(self) -> None:
        ImpatientProtocol.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
