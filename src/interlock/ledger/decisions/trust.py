"""Which commands of checks the user has trusted, by what they are: a changed one is untrusted again.

Trust is given by a person, for a folder, and kept beside the sessions. No file of a project and no bundle
brings it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from interlock.checks.words import words_of
from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.workflow import Workflow
from interlock.core.hashing import check_digest
from interlock.core.run.channels import Channel
from interlock.store.protocol import SettingRow, Store

if TYPE_CHECKING:
    from interlock.ledger.ledger import Ledger

PREFIX = "trust:"


class GivenTrust(Struct, frozen=True):
    """A command that the user has trusted: its definition, what it runs, where, by whom and when."""

    definition: str
    workflow: str
    check: str
    run: str
    folder: str
    by: str
    channel: Channel
    at: int

    @property
    def named(self) -> str:
        """Who has trusted it, as events name them."""
        return f"{self.channel}:{self.by}"


class Trustable(Struct, frozen=True):
    """A check of a workflow as it is now; `trusted` is what was trusted under its name, if anything.

    `runs` is the command word by word, as a person has to read it, and `ran` the one that was trusted.
    """

    workflow: str
    check: CommandCheck
    definition: str
    trusted: GivenTrust | None
    runs: str
    ran: str

    @property
    def is_trusted(self) -> bool:
        return self.trusted is not None and self.trusted.definition == self.definition

    @property
    def has_changed(self) -> bool:
        return self.trusted is not None and not self.is_trusted


def trustable(ledger: Ledger, workflow: Workflow, folder: Path) -> Iterator[Trustable]:
    """Yield the commands that a workflow would run in a folder, each once."""
    checks = {check.id: check for check in workflow.checks() if check.run}
    for check in checks.values():
        known = trusted(ledger.store, ledger.owner, folder, workflow.id, check.id)
        ran = words_of(known.run) if known is not None else ""
        yield Trustable(workflow.id, check, check_digest(workflow.id, check), known, words_of(check.run), ran)


def trusted(store: Store, owner: str, folder: Path, workflow: str, check: str) -> GivenTrust | None:
    """Return what the user has trusted under this name in this folder."""
    with store.reading() as reader:
        kept = reader.setting(owner, _key(folder, workflow, check))
    return msgspec.json.decode(kept, type=GivenTrust) if kept else None


def give_trust(ledger: Ledger, shown: Trustable, folder: Path, channel: Channel) -> GivenTrust:
    """Keep that the user trusts a command exactly as it was shown, in this folder."""
    given = GivenTrust(
        shown.definition,
        shown.workflow,
        shown.check.id,
        shown.check.run,
        os.path.realpath(folder),
        ledger.principal,
        channel,
        ledger.clock(),
    )
    _set(ledger, folder, shown, msgspec.json.encode(given).decode())
    return given


def take_trust_back(ledger: Ledger, shown: Trustable, folder: Path) -> None:
    """Let a command no longer be trusted."""
    _set(ledger, folder, shown, "")


def _set(ledger: Ledger, folder: Path, shown: Trustable, value: str) -> None:
    key = _key(folder, shown.workflow, shown.check.id)
    with ledger.store.writing() as writer:
        writer.set_setting(SettingRow(ledger.owner, key, value))


def _key(folder: Path, workflow: str, check: str) -> str:
    place = sha256(os.path.realpath(folder).encode()).hexdigest()[:16]
    return f"{PREFIX}{place}:{workflow}:{check}"
