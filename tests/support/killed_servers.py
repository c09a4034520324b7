"""Tools on real servers: killed after each answer, two that share a store, and one over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from signal import SIGKILL
from typing import Any

import msgspec

from interlock.core.run.preferences import PRESETS
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.positions import milliseconds
from interlock.surfaces.call import Call, Elicit, Era, Form, Outcome, Reply
from support.harness import Bench
from support.http_server import HttpServer, modern_request, modern_result
from support.server import FORMS, Server


class ServerBench(Bench):
    """A bench whose tools are called in real processes; its ledgers read the same store from outside.

    Every call has its own process, which is killed after it has answered.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.clock = milliseconds  # the servers' own
        self._eras: Iterator[Era] = cycle(("handshake", "modern"))
        self._asking: tuple[Server, Any] | None = None  # a handshake server, and its form

    def close(self) -> None:
        if self._asking is not None:
            self._asking[0].kill()
        super().close()

    def call(self, surface: str, ledger: Ledger, tool: str, arguments: dict[str, Any], call: Call) -> Outcome:
        if call.answers and self._asking is not None:
            (server, form), self._asking = self._asking, None
            (answer,) = call.answers.values()
            server.answer_form(form, msgspec.to_builtins(answer))
        else:
            server = self._start(surface, ledger, call)
            server.send("tools/call", _request(tool, arguments, call))
        received = server.receive()
        if received.get("method") == "elicitation/create":
            self._asking = server, received
            return Elicit(
                {"form": _form(received["params"])}, ""
            )  # this era does not say which question it is
        self._release(server)
        return _outcome(received["result"])

    def _start(self, surface: str, ledger: Ledger, call: Call) -> Server:
        """Start a server with the terms of this ledger, for a client like the caller's."""
        era: Era = "modern" if call.answers else next(self._eras)
        flags = ("--surface", surface, *self._flags(ledger))
        return Server(self.folder, *flags, era=era, can_elicit=call.client.can_elicit)

    def _release(self, server: Server) -> None:
        server.kill()

    def _flags(self, ledger: Ledger) -> list[str]:
        """Return the terms of a ledger as a server is told them."""
        settings = ledger.settings
        modes = {preferences: mode for mode, preferences in PRESETS.items()}
        flags = ["--workflows", str(self.workflows)]
        flags += ["--decisions", settings.terms.decisions, "--enforcement", settings.terms.enforcement]
        flags += ["--min-response-seconds", str(settings.terms.min_response_ms // 1000)]
        if settings.preferences_fixed:
            flags += ["--mode", modes[settings.preferences]]
        return flags


class AlternatingBench(ServerBench):
    """Two processes of different eras share one store, and answer in turn."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._pairs: dict[tuple[str, ...], Iterator[Server]] = {}
        self._modern: dict[tuple[str, ...], Server] = {}
        self._servers: list[Server] = []

    def close(self) -> None:
        for server in self._servers:
            server.kill()
        self._asking = None
        super(ServerBench, self).close()

    def _start(self, surface: str, ledger: Ledger, call: Call) -> Server:
        flags = ("--surface", surface, *self._flags(ledger))
        key = (*flags, str(call.client.can_elicit))
        if key not in self._pairs:
            eras: tuple[Era, Era] = ("handshake", "modern")
            pair = [Server(self.folder, *flags, era=era, can_elicit=call.client.can_elicit) for era in eras]
            self._servers += pair
            self._pairs[key], self._modern[key] = cycle(pair), pair[1]
        return self._modern[key] if call.answers else next(self._pairs[key])

    def _release(self, server: Server) -> None:
        """Keep it for the next call."""


class HttpBench(ServerBench):
    """Every call goes over HTTP, to a server that is killed after every fourth answer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server: tuple[list[str], HttpServer] | None = None
        self._answers = 0

    def close(self) -> None:
        self._kill()
        super().close()

    def call(self, surface: str, ledger: Ledger, tool: str, arguments: dict[str, Any], call: Call) -> Outcome:
        flags = self._flags(ledger)
        if self._server is None or self._server[0] != flags or self._answers == 4:
            self._kill()
            self._server, self._answers = (flags, HttpServer(self.folder, *flags, "--quiet")), 0
        self._answers += 1
        return http_outcome(self._server[1], surface, tool, arguments, call)

    def _kill(self) -> None:
        if self._server is not None:
            self._server[1].stop(SIGKILL)


def http_outcome(
    server: HttpServer,
    surface: str,
    tool: str,
    arguments: dict[str, Any],
    call: Call,
    headers: Mapping[str, str] | None = None,
) -> Outcome:
    """Call a tool over HTTP."""
    sent = _request(tool, arguments, call)
    body, needed = modern_request(sent, FORMS if call.client.can_elicit else None)
    answer = server.request("POST", f"/mcp/{surface}", body, {**needed, **(headers or {})})
    assert answer.status == 200, answer
    kind = {name.lower(): value for name, value in answer.headers.items()}["content-type"]
    return _outcome(modern_result(kind, answer.body))


def _request(tool: str, arguments: dict[str, Any], call: Call) -> dict[str, Any]:
    sent: dict[str, Any] = {"name": tool, "arguments": arguments}
    if call.answers:
        sent["inputResponses"] = msgspec.to_builtins(dict(call.answers))
        sent["requestState"] = call.asked
    return sent


def _outcome(result: dict[str, Any]) -> Outcome:
    if "inputRequests" in result:
        forms = {key: _form(request["params"]) for key, request in result["inputRequests"].items()}
        return Elicit(forms, result["requestState"])
    text, structured = result["content"][0]["text"], result.get("structuredContent")
    return Reply(text, structured, result.get("_meta", {}), result.get("isError", False))


def _form(sent: dict[str, Any]) -> Form:
    return Form(sent["message"], sent["requestedSchema"])
