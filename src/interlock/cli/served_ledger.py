"""The service behind `interlock serve`: one ledger, seen by each principal as its own."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from importlib.metadata import version
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock import __version__
from interlock.authoring.library import Library
from interlock.cli.commands.sessions.inbox_ import option_text
from interlock.cli.compose import ConfiguredBackend
from interlock.cli.config import BadConfig, Config, without_password
from interlock.console.console import Console
from interlock.console.pages.health import DoctorLine, DoctorReport, HealthFact, SettingLine
from interlock.console.pages.inbox_pages import WaitingQuestions
from interlock.core.principals import LOCAL, Principal
from interlock.core.run.surface_policy import SurfaceName
from interlock.ledger.decisions.inbox import AskedQuestion, answer_question
from interlock.ledger.decisions.linked import answer_by_link, linked_question
from interlock.ledger.decisions.substance import substance_of, substance_text
from interlock.ledger.errors import LedgerError, error_of
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox.unsent import outbox_status
from interlock.ledger.tokens.access_tokens import AccessTokens, PrincipalsDamaged
from interlock.store.protocol import SessionFilter
from interlock.surfaces.registry import SURFACES, build_surface
from interlock.surfaces.tool import Surface
from interlock.surfaces.warm_up import warm_up
from interlock.transport.http.service import AnswerPage, InboxAnswer, InboxSlice, Unavailable, Undecided

P = ParamSpec("P")
T = TypeVar("T")

MOST_SURFACES = 1000
MOST_GATES = 10_000
DOCTOR_SECONDS = 120


class ServedUpkeep:
    """The store of a configuration, examined from outside: by `interlock doctor` in a process of its own."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def facts(self) -> tuple[HealthFact, ...]:
        versions = (
            ("Python", platform.python_version()),
            ("system", f"{platform.system()}, {platform.machine()}"),
        )
        packages = [(name, version(name)) for name in ("mcp", "starlette", "uvicorn", "apsw")]
        return (*self._store(), *(HealthFact(name, value) for name, value in (*versions, *packages)))

    def _store(self) -> Iterator[HealthFact]:
        if self._config.postgres_url is not None:
            yield HealthFact("store", without_password(self._config.postgres_url))
            return
        database = self._config.database
        yield HealthFact("store", str(database))
        files = [path for path in database.parent.glob(f"{database.name}*") if path.is_file()]
        yield HealthFact("stored", f"{sum(path.stat().st_size for path in files) / 2**20:.1f} MB")
        if database.parent.is_dir():
            yield HealthFact("free on this disk", f"{shutil.disk_usage(database.parent).free / 2**30:.1f} GB")

    def doctor(self) -> DoctorReport:
        """Run the command; one that is not done in time is ended."""
        given = {"INTERLOCK_DATA_DIR": str(self._config.folder)} if self._config.folder.is_dir() else {}
        if self._config.store is not None:
            given["INTERLOCK_STORE"] = self._config.store
        command = [sys.executable, "-m", "interlock", "doctor", "--json"]
        began = time.monotonic()
        try:
            ran = subprocess.run(
                command,
                env={**os.environ, **given},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=DOCTOR_SECONDS,
                check=False,
            )
            found = msgspec.json.decode(ran.stdout, type=DoctorFound)
        except (subprocess.TimeoutExpired, msgspec.DecodeError):
            spent = round((time.monotonic() - began) * 1000)
            unfinished = "The doctor gave no report in time; run `interlock doctor` on a terminal."
            return DoctorReport(False, (), spent, unfinished)
        return DoctorReport(found.ok, found.checks, round((time.monotonic() - began) * 1000))


class DoctorFound(Struct, frozen=True):
    """What `interlock doctor --json` prints."""

    ok: bool
    checks: tuple[DoctorLine, ...]


def unavailable_told(call: Callable[P, T]) -> Callable[P, T]:
    """Raise Unavailable where the store cannot be used."""

    @wraps(call)
    def told(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            known = error_of(error)
            if known is None:
                raise
            after = None if known.after_ms is None else max(1, known.after_ms // 1000)
            raise Unavailable(known.code, known.message, after) from error

    return told


def check_folders(config: Config) -> dict[str, Path]:
    """Return where checks run for whom: nowhere, unless the server was started with a folder for them."""
    folders: dict[str, Path] = {}
    for argument in config.check_folders:
        owner, separator, path = argument.partition("=")
        if not separator or not Path(path).is_dir():
            raise BadConfig(f"check-folders: '{argument}' is not PRINCIPAL=FOLDER with a folder that exists")
        folders[owner] = Path(path)
    return folders


def _no_answer(error: LedgerError) -> AnswerPage:
    status = 404 if error.code in ("VALIDATION_ERROR", "NOT_FOUND") else 409
    return AnswerPage("Nothing was recorded", f"{error.message} {error.next_action}".strip(), status=status)


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
        self._config = config
        self._disabled = frozenset(config.disable_tools)
        self._ledger = ConfiguredBackend(config).ledger()
        self._ledger.settings = replace(self._ledger.settings, check_folders=check_folders(config))
        self._waiting = WaitingQuestions(self._ledger)
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
        return Console(self._ledger, self.version, settings, ServedUpkeep(self._config), self._waiting)

    def principal_of(self, token: str) -> Principal | None:
        return self.tokens.principal_of(token)

    @unavailable_told
    def secrets(self) -> Sequence[bytes]:
        return [key.secret for key in self._ledger.keys.keyring().believed()]

    @unavailable_told
    def inbox(self, principal: Principal, after: str, limit: int) -> InboxSlice:
        part = self._waiting.part(principal, after, limit)
        listed = tuple({"owner": owner, **msgspec.to_builtins(each)} for owner, each in part.questions)
        return InboxSlice(listed, part.total, part.counting, part.after)

    @unavailable_told
    def decide(self, principal: Principal, answer: InboxAnswer) -> Undecided | bool:
        with self._ledger.store.reading() as reader:
            session = reader.session(answer.session)
        owner = session.owner if session is not None else principal.name
        asked = AskedQuestion(answer.session, answer.node, answer.question, answer.shown, answer.run)
        ledger = self._ledger.of(owner, principal.name)
        try:
            return answer_question(ledger, asked, answer.option, answer.note, "inbox")
        except LedgerError as error:
            told = f"{error.message} {error.next_action}"
            return Undecided(error.code, told, error.details.get("question"))

    @unavailable_told
    def linked(self, link: str) -> AnswerPage:
        try:
            found = linked_question(self._ledger, link)
            position, question = found.located.position, found.located.question
            substance = substance_of(self._ledger.of(position.session.owner), position, question)
        except LedgerError as error:
            return _no_answer(error)
        who = f"You answer as {found.approver}."
        chosen = (option_text(each, substance) for each in question.options if each.id == found.option)
        status = f"\n{question.decide.text}" if question.decide is not None else ""
        text = f"{question.message}\n\nYour answer: {''.join(chosen)}\n{who}{status}"
        return AnswerPage(question.name, text, f"Answer: {found.label}", substance_text(substance))

    @unavailable_told
    def answer_linked(self, link: str) -> AnswerPage:
        try:
            found = answer_by_link(self._ledger, link)
        except LedgerError as error:
            return _no_answer(error)
        return AnswerPage("Recorded", f"{found.located.question.name}: {found.label}")

    def not_ready(self) -> str | None:
        try:
            self.tokens.all()
            error = self._ledger.readiness()
        except PrincipalsDamaged:
            return "PRINCIPALS_DAMAGED"
        except Exception:  # whatever it is, calls cannot be answered
            return "INTERNAL_ERROR"
        # A store that is busy answers, only later.
        return error.code if error is not None and error.code != "TOKEN_SESSION_LOCKED" else None

    @unavailable_told
    def gates_waiting(self) -> int:
        with self._ledger.store.reading() as reader:
            return len(reader.sessions(SessionFilter(awaiting=True, limit=MOST_GATES)))

    @unavailable_told
    def messages_unsent(self) -> tuple[int, int]:
        unsent = outbox_status(self._ledger.store)
        return unsent.waiting, unsent.dead

    def idle(self) -> None:
        self._ledger.idle()

    def close(self) -> None:
        self._ledger.close()
