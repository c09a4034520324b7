"""Tools on real servers: every call has its own process, which is killed after it has answered."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec

from interlock.core.run.preferences import PRESETS
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.positions import milliseconds
from interlock.surfaces.call import Call, Elicit, Era, Form, Outcome, Reply
from support.harness import Bench
from support.server import Server


class ServerBench(Bench):
    """A bench whose tools are called in real processes; its ledgers read the same store from outside."""

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
            sent: dict[str, Any] = {"name": tool, "arguments": arguments}
            if call.answers:
                sent["inputResponses"] = msgspec.to_builtins(dict(call.answers))
                sent["requestState"] = call.asked
            server.send("tools/call", sent)
        received = server.receive()
        match received:
            case {"method": "elicitation/create", "params": form}:
                self._asking = server, received
                return Elicit({"form": _form(form)}, "")  # this era does not say which question it is
            case {"result": {"inputRequests": requests, "requestState": state}}:
                server.kill()
                return Elicit({key: _form(request["params"]) for key, request in requests.items()}, state)
        server.kill()
        result = received["result"]
        text, structured = result["content"][0]["text"], result.get("structuredContent")
        return Reply(text, structured, result.get("_meta", {}), result.get("isError", False))

    def _start(self, surface: str, ledger: Ledger, call: Call) -> Server:
        """Start a server with the terms of this ledger, for a client like the caller's."""
        settings = ledger.settings
        modes = {preferences: mode for mode, preferences in PRESETS.items()}
        flags = ["--surface", surface, "--workflows", str(self.workflows)]
        flags += ["--decisions", settings.terms.decisions, "--enforcement", settings.terms.enforcement]
        flags += ["--min-response-seconds", str(settings.terms.min_response_ms // 1000)]
        if settings.preferences_fixed:
            flags += ["--mode", modes[settings.preferences]]
        era: Era = "modern" if call.answers else next(self._eras)
        return Server(self.folder, *flags, era=era, can_elicit=call.client.can_elicit)


def _form(sent: dict[str, Any]) -> Form:
    return Form(sent["message"], sent["requestedSchema"])
