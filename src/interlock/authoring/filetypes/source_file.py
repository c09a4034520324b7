"""The settings of a source: the file `interlock.yaml` at the top of a folder of workflows."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.authoring.filetypes.field_types import Camel

SETTINGS_FILE = "interlock.yaml"


class SourceSettings(Camel, frozen=True):
    """Settings for all workflows of a folder, in the file `interlock.yaml` at its top."""

    infer: bool = True
    """Whether what a step sets is inferred from its text, in JSON and TOON of others."""
    places: Mapping[str, str] = {}
    """Where listed checkpoints are asked, instead of where the compiler puts them:
    `WORKFLOW/ACTIVITY/CHECKPOINT: before STEP`, `after STEP` or `end`."""


DEFAULTS = SourceSettings()
