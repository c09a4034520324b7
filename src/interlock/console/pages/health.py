"""The state of a server as its user sees it: store, versions, clients, settings, and the doctor."""

from __future__ import annotations

from typing import Protocol

from interlock.core.principals import Principal
from interlock.ledger.decisions.modes import ModeLine, global_mode
from interlock.ledger.decisions.user_pin import has_pin
from interlock.ledger.heard_clients import HeardClient, clients_of, everyones_clients
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox.unsent import UnsentMessage, outbox_status
from interlock.ledger.queries.status import Shown

MOST_MESSAGES = 20


class SettingLine(Shown, frozen=True):
    """A setting, its value, and where it is set."""

    name: str
    value: str
    origin: str


class SettingsPage(Shown, frozen=True):
    """Every setting of the server; only the role admin sees them."""

    settings: tuple[SettingLine, ...]


class HealthFact(Shown, frozen=True):
    """Something to know about the server: a version, a size."""

    name: str
    value: str


class DoctorLine(Shown, frozen=True):
    """What one check of the doctor found; `fix` says what to do about it."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


class DoctorReport(Shown, frozen=True):
    """All that the doctor found. `unfinished` says why there is no more."""

    ok: bool
    checks: tuple[DoctorLine, ...]
    milliseconds: int
    unfinished: str = ""


class Upkeep(Protocol):
    """What the program that starts the console knows about its store."""

    def facts(self) -> tuple[HealthFact, ...]:
        """Return what is known without reading the store."""

    def doctor(self) -> DoctorReport:
        """Check everything that is stored, within a time."""


class NotificationsLine(Shown, frozen=True):
    """The channels that notifications go to, and what they have not taken: the first of it in full."""

    channels: tuple[str, ...]
    waiting: int
    dead: int
    messages: tuple[UnsentMessage, ...]


class HealthPage(Shown, frozen=True):
    """Who is looking, at what. Others than admins see only their own clients."""

    version: str
    principal: str
    role: str
    has_pin: bool
    new_sessions: ModeLine
    sources: tuple[str, ...]
    workflows: int
    errors: int
    facts: tuple[HealthFact, ...]
    clients: tuple[HeardClient, ...]
    notifications: NotificationsLine | None
    can_check: bool


def health_page(ledger: Ledger, principal: Principal, version: str, upkeep: Upkeep | None) -> HealthPage:
    """Return what a principal may know about this server; nothing here waits for a check."""
    is_admin = principal.role == "admin"
    listing = ledger.library.listing()
    with ledger.store.reading() as reader:
        clients = everyones_clients(reader) if is_admin else clients_of(reader, principal.name)
    return HealthPage(
        version=version,
        principal=principal.name,
        role=principal.role,
        has_pin=has_pin(ledger.store, principal.name),
        new_sessions=global_mode(ledger),
        sources=tuple(source.label for source in ledger.library.sources),
        workflows=sum(not entry.hidden for entry in listing.entries),
        errors=sum(diagnostic.severity == "error" for diagnostic in listing.diagnostics),
        facts=upkeep.facts() if upkeep is not None and is_admin else (),
        clients=tuple(clients),
        notifications=notifications_line(ledger) if is_admin else None,
        can_check=upkeep is not None and is_admin,
    )


def notifications_line(ledger: Ledger) -> NotificationsLine:
    """Return what `interlock notify status` lists."""
    unsent = outbox_status(ledger.store)
    channels = tuple(ledger.settings.recipients)
    return NotificationsLine(channels, unsent.waiting, unsent.dead, unsent.messages[:MOST_MESSAGES])
