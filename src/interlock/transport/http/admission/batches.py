"""Batches of JSON-RPC messages, which one version of the protocol has: each message is served on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response as HttpResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as ASGIMessage

from interlock.transport.http.admission.bodies import replay
from interlock.transport.http.admission.messages import JSON_TYPE, SESSION_ENDED, STREAM_TYPE, rpc_refusal
from interlock.transport.rpc import (
    BATCHING,
    Malformed,
    Message,
    Request,
    Response,
    batch_line,
    error_line,
    parse,
)

MOST_MESSAGES = 100
NOT_BATCHING = f"only version {BATCHING} of the protocol has batches; send each message in a POST of its own"
TOO_MANY = f"a batch has at most {MOST_MESSAGES} messages"
NO_INITIALIZE = "initialize is not part of a batch; send it in a POST of its own"


def refused_batch(messages: Sequence[Message], session_id: str, version: str | None) -> HttpResponse | None:
    """Return the refusal of a batch; `version` is that of its session, if there is one."""
    if session_id and version is None:
        return rpc_refusal(404, None, SESSION_ENDED)
    if any(isinstance(message, Request) and message.method == "initialize" for message in messages):
        return rpc_refusal(400, None, NO_INITIALIZE)
    if version != BATCHING:
        return rpc_refusal(400, None, NOT_BATCHING)
    return rpc_refusal(400, None, TOO_MANY) if len(messages) > MOST_MESSAGES else None


async def serve_batch(
    messages: Sequence[Message], body: bytes, serve: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve the messages one after the other, and send their answers together, if there are any."""
    try:
        texts = msgspec.json.decode(body, type=list[msgspec.Raw])
    except msgspec.DecodeError:  # then every message is refused by its id
        refused = [error_line(it.id, it.error) for it in messages if isinstance(it, Malformed)]
        await _batch(refused, 400)(scope, receive, send)
        return
    answers: list[bytes] = []
    for text in texts:
        answer = KeptAnswer()
        await serve({**scope, "headers": list(scope["headers"])}, replay(bytes(text), receive), answer.take)
        if answer.status == 404:  # the session has ended, for the rest of the batch too
            await HttpResponse(answer.body, 404, media_type=JSON_TYPE)(scope, receive, send)
            return
        answers += answer.responses()
    whole = _batch(answers) if answers else HttpResponse(b"", 202)
    await whole(scope, receive, send)


class KeptAnswer:
    """The answer to one message of a batch, kept instead of being sent."""

    def __init__(self) -> None:
        self.status, self.body, self._type = 0, b"", ""

    async def take(self, message: ASGIMessage) -> None:
        """Keep a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._type = Headers(raw=message["headers"]).get("content-type", "")
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    def responses(self) -> Iterator[bytes]:
        """Yield the responses in it, and leave out what a stream has told beside them."""
        if self._type.startswith(STREAM_TYPE):
            events = (line.removeprefix(b"data:") for line in self.body.splitlines())
            yield from (event.strip() for event in events if isinstance(parse(event), Response))
        elif self.body:
            yield self.body


def _batch(lines: Sequence[bytes], status: int = 200) -> HttpResponse:
    return HttpResponse(batch_line(lines), status, media_type=JSON_TYPE)
