"""Which commands of checks the user has trusted, by what they are: a changed one is untrusted again.

Trust is given by a person, for a folder, and kept beside the sessions. No file of a project and no bundle
brings it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.workflow import Workflow
from interlock.core.hashing import check_digest
from interlock.core.run.channels import Channel
from interlock.store.protocol import SettingRow, Store

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


class Trustable(Struct, frozen=True):
    """A check of a workflow as it is now; `trusted` is what was trusted under its name, if anything."""

    workflow: str
    check: CommandCheck
    definition: str
    trusted: GivenTrust | None

    @property
    def is_trusted(self) -> bool:
        return self.trusted is not None and self.trusted.definition == self.definition

    @property
    def has_changed(self) -> bool:
        return self.trusted is not None and not self.is_trusted


def trustable(store: Store, owner: str, folder: Path, workflow: Workflow) -> Iterator[Trustable]:
    """Yield the commands that a workflow would run, each once."""
    checks = {check.id: check for check in workflow.checks() if check.run}
    for check in checks.values():
        known = trusted(store, owner, folder, workflow.id, check.id)
        yield Trustable(workflow.id, check, check_digest(workflow.id, check), known)


def trusted(store: Store, owner: str, folder: Path, workflow: str, check: str) -> GivenTrust | None:
    """Return what the user has trusted under this name in this folder."""
    with store.reading() as reader:
        kept = reader.setting(owner, _key(folder, workflow, check))
    return msgspec.json.decode(kept, type=GivenTrust) if kept else None


def trust(store: Store, owner: str, given: GivenTrust) -> None:
    """Keep that the user trusts a command."""
    _set(store, owner, given, msgspec.json.encode(given).decode())


def distrust(store: Store, owner: str, given: GivenTrust) -> None:
    """Take trust back."""
    _set(store, owner, given, "")


def all_trusted(store: Store, owner: str) -> list[GivenTrust]:
    """Return everything that an owner has trusted."""
    with store.reading() as reader:
        rows = [row for row in reader.settings() if row.owner == owner and row.key.startswith(PREFIX)]
    return [msgspec.json.decode(row.value, type=GivenTrust) for row in rows if row.value]


def _set(store: Store, owner: str, given: GivenTrust, value: str) -> None:
    key = _key(Path(given.folder), given.workflow, given.check)
    with store.writing() as writer:
        writer.set_setting(SettingRow(owner, key, value))


def _key(folder: Path, workflow: str, check: str) -> str:
    place = sha256(os.path.realpath(folder).encode()).hexdigest()[:16]
    return f"{PREFIX}{place}:{workflow}:{check}"
