"""A person who reads every question, in a form or in the inbox, and takes each option in turn."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, cast

from interlock.core.definition.program import NOT_HANDED_IN
from interlock.ledger.decisions.inbox import WaitingQuestion, answer_question, inbox
from interlock.ledger.decisions.substance import REPORT
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.surfaces.call import Elicit, Form, FormAnswer

ANSWERS = ("yes", '["yes"]', "1", '{"name": "one"}', "true", "provided")  # to a question without options
HOLE = re.compile(rf"\[unset: |\{{\{{|{NOT_HANDED_IN}")


class Person:
    """Decides at forms, and in the inbox when the agent has ended its turn."""

    def __init__(self, ledger: Ledger, *, reads_inbox: bool) -> None:
        self.ledger, self.reads_inbox = ledger, reads_inbox
        self.asked: list[str] = []
        self.taken: Counter[str] = Counter()

    def fill_in(self, asked: Elicit) -> dict[str, FormAnswer]:
        """Fill in the forms that a call is held up by."""
        return {name: self._filled_in(name, cast("Form", form)) for name, form in asked.questions.items()}

    def _filled_in(self, name: str, form: Form) -> FormAnswer:
        choice = cast("Any", form.schema)["properties"]["choice"]
        options = [option["const"] for option in choice.get("oneOf", [])] or list(ANSWERS)
        return FormAnswer("accept", {"choice": self._option(name, form.message, options)})

    def decide(self) -> bool:
        """Answer what waits in the inbox; say whether anything did."""
        waiting = inbox(self.ledger) if self.reads_inbox else ()
        for question in waiting:
            options = [option.id for option in question.options] or list(ANSWERS)
            assert any(self._is_recorded(question, options) for _ in options), question
        return bool(waiting)

    def _is_recorded(self, question: WaitingQuestion, options: list[str]) -> bool:
        """Answer a question; one without options may want an answer of another type."""
        try:
            answer_question(self.ledger, question, self._option(question.id, question.message, options))
        except LedgerError as error:
            if error.code != "VALIDATION_ERROR":
                raise
            return False
        return True

    def _option(self, gate: str, text: str, options: list[str]) -> str:
        asked = text.partition(REPORT)[0]
        assert not HOLE.search(asked), f"a question with a hole: {asked}"
        self.asked.append(text)
        self.taken[gate] += 1
        return options[(self.taken[gate] - 1) % len(options)]
