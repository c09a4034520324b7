"""The settings of a source: the file `interlock.yaml` at the top of a folder of workflows."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.authoring.filetypes.step_file import Camel

SETTINGS_FILE = "interlock.yaml"


class SourceSettings(Camel, frozen=True):
    """How the files of a source are compiled, for files that cannot be edited themselves."""

    infer: bool = True
    places: Mapping[str, str] = {}


DEFAULTS = SourceSettings()
