"""Real receivers on loopback that notifications are sent to: they keep what arrives, and can misbehave."""

from __future__ import annotations

import base64
import hmac
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(KEY).decode()


class Received(NamedTuple):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def is_signed(self) -> bool:
        """Whether the signature is the one that Standard Webhooks describes."""
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        wanted = "v1," + base64.b64encode(hmac.new(KEY, signed, sha256).digest()).decode()
        return hmac.compare_digest(wanted, self.headers["webhook-signature"])


class Receiver:
    """A server that answers with `status`, or not at all while it hangs."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.status = 204
        self.arrived, self.let_go = threading.Event(), threading.Event()
        self.hangs = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body))
                receiver.arrived.set()
                if receiver.hangs:
                    receiver.let_go.wait(60)
                    return
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiver() -> Iterator[Receiver]:
    opened = Receiver()
    try:
        yield opened
    finally:
        opened.close()


class MailReceiver:
    """The least of an SMTP server: it takes mail, or refuses it with a code."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.refuses = ""
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("220 loopback")
                while line := self.rfile.readline().decode().strip():
                    command = line.split()[0].upper()
                    if command == "QUIT":
                        self._say("221 bye")
                        return
                    if command == "DATA":
                        self._take()
                    elif command == "MAIL" and receiver.refuses:
                        self._say(receiver.refuses)
                    else:
                        self._say("250 ok")

            def _take(self) -> None:
                self._say("354 go on")
                lines: list[str] = []
                while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(line)
                receiver.received.append("\n".join(lines))
                self._say("250 taken")

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Stop listening; a second time changes nothing."""
        self._server.shutdown()
        self._server.server_close()
