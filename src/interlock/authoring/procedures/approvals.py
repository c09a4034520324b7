"""Finds the sentences of a text that ask for a person's approval, and where the question belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from interlock.authoring.procedures.outline import TextLine

_PERSON = (
    r"(?:(?:the|your|a|an|our)\s+)?"
    r"(?:user|human|person|owner|maintainer|author|reviewer|team|lead|operator|customer|me\b)"
)
_CONSENT = r"(?:approv\w*|confirm\w*|permission|consent|sign(?:s|ed)?[- ]?off|go[- ]?ahead|agree\w*)"
_ASKS = re.compile(
    "|".join(
        (
            rf"\b(?:wait|hold|pause|stop)\b[^.!?]{{0,60}}\b(?:{_CONSENT}|response|reply|{_PERSON})",
            rf"\b(?:ask|prompt|check\s+with|consult)\s+{_PERSON}\b[^.!?]{{0,60}}\b(?:{_CONSENT}|if|whether|before|first)\b",
            rf"\b(?:ask|prompt|check\s+with|consult)\s+{_PERSON}[.!?]?$",
            rf"\bconfirm\b[^.!?]{{0,40}}\bwith\s+{_PERSON}",
            rf"\b(?:ask|get|obtain|request|seek|requires?|needs?|await|with|without)\b[^.!?]{{0,50}}\b{_CONSENT}\b",
            rf"\b(?:do\s+not|don['’]t|never)\b[^.!?]{{0,60}}\b(?:until|unless|before)\b[^.!?]{{0,60}}\b{_CONSENT}",
            rf"\b(?:do\s+not|don['’]t|never)\b[^.!?]{{0,60}}\bwithout\b[^.!?]{{0,20}}\b(?:asking|{_CONSENT})",
            rf"\b(?:once|after|when|until|unless|if)\s+{_PERSON}\b[^.!?]{{0,30}}\b(?:{_CONSENT}|accepts?|says?)\b",
            rf"\b{_PERSON}\s+(?:must|has\s+to|needs\s+to|should)\s+(?:{_CONSENT}|accept)\b",
            rf"\b{_CONSENT}\s+(?:is\s+)?(?:required|needed|necessary)\b",
            rf"\b(?:present|show|submit)\b[^.!?]{{0,60}}\bfor\s+(?:\w+\s+){{0,2}}{_CONSENT}\b",
        )
    ),
    re.IGNORECASE,
)
_WAIVES = re.compile(
    "|".join(
        (
            r"\b(?:do\s+not|don['’]t|never|no\s+need\s+to|need\s+not|without|avoid)\s+(?:\w+\s+){0,2}?"
            r"(?:ask|asking|prompt|prompting|wait|waiting|confirm|confirming|check(?:ing)?\s+with)\b",
            r"\bno\s+(?:\w+\s+)?(?:approval|confirmation|permission|sign[- ]?off)\b",
            r"\b(?:approval|confirmation|permission|sign[- ]?off)\s+is\s+not\s+(?:required|needed|necessary)",
        )
    ),
    re.IGNORECASE,
)
_QUESTION = re.compile(
    rf"\b(?:ask|prompt|consult)\s+{_PERSON}\b|\blet\s+{_PERSON}\s+(?:choose|decide|pick)\b", re.IGNORECASE
)
_FORBIDS = re.compile(r"\b(?:do not|don['’]t|never)\b", re.IGNORECASE)
_STANDS_BEFORE = re.compile(
    r"\bbefore\s+(?!continu|proceed|moving|going|the\s+next|you\s+(?:continue|proceed|move|go)|next)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+(?=[A-Z0-9*_`\"“])")
_MARKS = re.compile(r"[*_`]+|^\s*(?:[-+>]|\d{1,9}[.)])\s+|!?\[|\]\([^)]{0,300}\)")

LONGEST_QUOTE = 240

Side = Literal["before", "after"]


class Approval(Struct, frozen=True):
    """A sentence that asks for approval, and on which side of its step the question is asked."""

    line: int
    sentence: str
    side: Side


class NoGate(Struct, frozen=True):
    """A sentence about the user that becomes no gate, and why."""

    line: int
    sentence: str
    reason: str


def approvals_in(lines: Sequence[TextLine]) -> list[Approval | NoGate]:
    """Return what a step's text asks of a person, in reading order; code asks nothing."""
    found = list[Approval | NoGate]()
    sentences = list(_sentences(lines))
    for position, (number, sentence) in enumerate(sentences):
        if _WAIVES.search(sentence) and not _is_condition(sentence):
            found.append(NoGate(number, quoted_sentence(sentence), "it waives approval"))
        elif _ASKS.search(sentence):
            is_first = position == 0 and len(sentences) > 1
            stands_before = is_first or _STANDS_BEFORE.search(sentence) is not None
            found.append(Approval(number, quoted_sentence(sentence), "before" if stands_before else "after"))
        elif _QUESTION.search(sentence):
            found.append(NoGate(number, quoted_sentence(sentence), "its options are for you to write"))
    return found


def is_only_approval(lines: Sequence[TextLine]) -> bool:
    """Say whether a step's text does nothing but ask."""
    sentences = [sentence for _, sentence in _sentences(lines)]
    asks = [bool(_ASKS.search(sentence)) and not _WAIVES.search(sentence) for sentence in sentences]
    return bool(asks) and all(asks) and not any(line.is_code for line in lines)


def _is_condition(sentence: str) -> bool:
    """Say whether a sentence forbids something without approval: "Never deploy without asking the user"."""
    forbids = _FORBIDS.search(sentence)
    without = re.search(r"\bwithout\b", sentence, re.IGNORECASE)
    return forbids is not None and without is not None and forbids.start() < without.start()


def _sentences(lines: Sequence[TextLine]) -> Iterator[tuple[int, str]]:
    for line in lines:
        if not line.is_code and not line.is_blank:
            yield from ((line.number, part) for part in _SENTENCE.split(line.text.strip()) if part)


def quoted_sentence(text: str) -> str:
    """Return a sentence as it is quoted in a question: one line, without marks, bounded."""
    plain = " ".join(_MARKS.sub("", text).split()).replace("{{", "{").replace("}}", "}")
    return plain if len(plain) <= LONGEST_QUOTE else plain[: LONGEST_QUOTE - 1].rstrip() + "…"
