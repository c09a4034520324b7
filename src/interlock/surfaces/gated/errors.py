"""The refusals of the gated surface, where all checkpoints of an activity are pending at once."""

from __future__ import annotations

from interlock.core.run.outcomes import Code, Refusal
from interlock.surfaces.refusals import Words, names, sentence
from interlock.surfaces.shared import session_errors as shared


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    about = refusal.about
    match refusal.code:
        case Code.DECISION_PENDING | Code.GATE_UNANSWERED:
            gates = about.get("checkpoint") or names(about, "pending")
            return Words(sentence(refusal), f"Call respond_checkpoint with checkpoint_id: {gates}.")
        case _:
            return shared.words(refusal)
