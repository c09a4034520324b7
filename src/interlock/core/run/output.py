"""What an agent sends as the result of a step: notes and artifacts, within their budgets."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from interlock.core.hashing import digest_of
from interlock.core.values import Json, cut

NOTES_BYTES = 4096


class Output(Struct, frozen=True, omit_defaults=True):
    """Durable results of a step. An `output` with a `kind` arrives here as one artifact (rule 31)."""

    notes: str = ""
    artifacts: tuple[Mapping[str, Json], ...] = ()

    def text(self) -> str:
        """What text criteria look at: the notes, else the artifacts as JSON."""
        if self.notes:
            return self.notes
        if len(self.artifacts) == 1:
            return msgspec.json.encode(self.artifacts[0]).decode()
        return msgspec.json.encode(self.artifacts).decode() if self.artifacts else ""

    @property
    def digest(self) -> str:
        """What tells whether another output of the step is the same, in few bytes; empty for no output."""
        return digest_of(msgspec.json.encode(self))[-10:] if self.notes or self.artifacts else ""

    @property
    def has_content(self) -> bool:
        """Say whether anything was written down: notes or artifacts."""
        return bool(self.notes.strip() or self.artifacts)

    def of_kind(self, *kinds: str) -> list[Mapping[str, Json]]:
        return [artifact for artifact in self.artifacts if artifact.get("kind") in kinds]


def within_budget(output: Output) -> Output:
    """Cut notes that are over their budget; nothing else is ever cut."""
    return Output(cut(output.notes, NOTES_BYTES), output.artifacts)
