"""What the user has chosen, and what every session copies at its start (rule 29)."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from interlock.core.run.commands import Terms
from interlock.core.run.preferences import PRESETS, RETENTION_DAYS, STALE_HOURS, Preferences


class Settings(Struct, frozen=True):
    """The user's terms. `preferences` is the mode that new sessions begin with.

    `preferences_fixed` says that this process was started with a mode, which outranks the stored one.
    """

    preferences: Preferences = PRESETS["guided"]
    preferences_fixed: bool = False
    terms: Terms = Terms()
    owner: str = "local"
    project: Path | None = None
    check_folder: Path | None = None  # where checks run; a server of many clients has none unless it is named
    retention_days: int = RETENTION_DAYS
    stale_hours: int = STALE_HOURS
    console_url: str = ""
