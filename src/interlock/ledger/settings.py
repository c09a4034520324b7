"""What the user has chosen, and what every session copies at its start (rule 29)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from interlock.core.run.commands import Terms
from interlock.core.run.preferences import PRESETS, RETENTION_DAYS, STALE_HOURS, Preferences
from interlock.ledger.outbox.announcements import Recipient


class Settings(Struct, frozen=True):
    """The user's terms. `preferences` is the mode that new sessions begin with.

    `preferences_fixed` says that this process was started with a mode, which outranks the stored one.
    `recipients` are the channels that notifications go to.
    """

    preferences: Preferences = PRESETS["guided"]
    preferences_fixed: bool = False
    terms: Terms = Terms()
    owner: str = "local"
    project: Path | None = None
    check_folders: Mapping[str, Path] = {}  # where checks run, by owner: for whom there is none, none run
    retention_days: int = RETENTION_DAYS
    stale_hours: int = STALE_HOURS
    console_url: str = ""
    recipients: Mapping[str, Recipient] = {}

    @property
    def check_folder(self) -> Path | None:
        """The folder that checks of this owner run in."""
        return self.check_folders.get(self.owner)
