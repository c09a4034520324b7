"""The service behind `interlock serve`: one ledger, seen by each principal as its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from interlock import __version__
from interlock.authoring.library import Library
from interlock.cli.compose import ConfiguredBackend
from interlock.cli.config import BadConfig, Config
from interlock.console.console import Console, SettingLine
from interlock.core.principals import LOCAL, Principal
from interlock.core.run.surface_policy import SurfaceName
from interlock.core.values import Json
from interlock.ledger.decisions.inbox import WaitingQuestion, decide_question, everyones_inbox, inbox
from interlock.ledger.errors import error_of
from interlock.ledger.ledger import Ledger
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.store.protocol import SessionFilter
from interlock.surfaces.registry import SURFACES, build_surface
from interlock.surfaces.tool import Surface
from interlock.surfaces.warm_up import warm_up

MOST_SURFACES = 1000
MOST_GATES = 10_000


class OwnedBackend:
    """What surfaces of one principal are built on."""

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger = ledger.of(owner)

    def ledger(self) -> Ledger:
        return self._ledger

    def library(self) -> Library:
        return self._ledger.library


class ServedLedger:
    """A ledger as HTTP may know it. The store is opened when it is first needed."""

    version = __version__

    def __init__(self, config: Config) -> None:
        self._disabled = frozenset(config.disable_tools)
        self._ledger = ConfiguredBackend(config).ledger()
        self.tokens = AccessTokens(config.folder)
        self._surface = lru_cache(MOST_SURFACES)(self._built)
        surfaces = [build_surface(name, OwnedBackend(self._ledger, LOCAL.name)) for name in SURFACES]
        known = {tool for surface in surfaces for tool in surface.tools}
        if unknown := self._disabled - known:
            raise BadConfig(f"disable-tools: '{min(unknown)}' is not a tool of any surface")
        warm_up(*surfaces)

    def surface(self, name: SurfaceName, principal: Principal) -> Surface:
        return self._surface(name, principal.name)

    def _built(self, name: SurfaceName, owner: str) -> Surface:
        surface = build_surface(name, OwnedBackend(self._ledger, owner))
        surface.tools = {name: tool for name, tool in surface.tools.items() if name not in self._disabled}
        return surface

    def console(self, settings: tuple[SettingLine, ...]) -> Console:
        """Return the console onto the same ledger."""
        return Console(self._ledger, self.version, settings)

    def principal_of(self, token: str) -> Principal | None:
        return self.tokens.principal_of(token)

    def secrets(self) -> Sequence[bytes]:
        return [key.secret for key in self._ledger.keys.keyring().believed()]

    def inbox(self, principal: Principal) -> Json:
        shown = [
            {"owner": owner, **msgspec.to_builtins(question)} for owner, question in self._waiting(principal)
        ]
        return {"questions": shown}

    def decide(
        self, principal: Principal, session: str, question: str, shown: str, option: str, note: str
    ) -> str | None:
        for owner, waiting in self._waiting(principal):
            if waiting.id != question or session not in (waiting.ref, waiting.session_id):
                continue
            if waiting.shown != shown:
                return f"Question '{question}' is no longer as it was shown to you. Read the inbox again."
            ledger = self._ledger.of(owner, principal.name)
            error = decide_question(ledger, waiting, option, note, "console")
            return f"{error.message} {error.next_action}" if error is not None else None
        return f"No question '{question}' waits in session '{session}'. Read the inbox again."

    def _waiting(self, principal: Principal) -> Iterator[tuple[str, WaitingQuestion]]:
        if principal.decides_for_others:
            return everyones_inbox(self._ledger)
        return ((principal.name, question) for question in inbox(self._ledger.of(principal.name)))

    def not_ready(self) -> str | None:
        try:
            self._ledger.content("")  # the shortest question; its answer does not matter
        except Exception as error:  # whatever it is, calls cannot be answered
            known = error_of(error)
            return known.code if known is not None else "INTERNAL_ERROR"
        return None

    def gates_waiting(self) -> int:
        with self._ledger.store.reading() as reader:
            return len(reader.sessions(SessionFilter(awaiting=True, limit=MOST_GATES)))

    def idle(self) -> None:
        self._ledger.idle()

    def close(self) -> None:
        self._ledger.close()
