"""Questions as the user is asked them: one value for forms, inbox, terminal and console."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from interlock.core.definition.workflow import Option
from interlock.core.hashing import digest_of

DECISION = "wr.decision"  # the artifact that reports an answer, and the contract that describes it
DECISION_REF = "wr.contracts.decision"


class Question(Struct, frozen=True):
    """What the user is asked, as it is shown: text and options with their effects (rule 26).

    `roots` are the variables that it reads or sets; without options the answer is free text. `key` is the
    instance of what a step asks: a call may claim many rounds, and an answer serves one of them.
    """

    id: str
    name: str
    text: str
    options: tuple[Option, ...] = ()
    roots: tuple[str, ...] = ()
    key: str = ""

    @property
    def digest(self) -> str:
        """What a decision is bound to: a question that would be shown differently is another one."""
        return digest_of(msgspec.json.encode([self.key or self.id, self.name, self.text, self.options]))

    def option(self, option_id: str) -> Option | None:
        return next((option for option in self.options if option.id == option_id), None)


class Unanswered(Struct, frozen=True):
    """A question that lacks an answer which counts, and the instance that it belongs to."""

    key: str
    question: Question
