"""Which parts of a Markdown outline are the steps of a procedure, and what the other sections are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct

from interlock.authoring.procedures.approvals import quoted_sentence
from interlock.authoring.procedures.outline import (
    ItemList,
    Section,
    TextLine,
    bullet_list,
    numbered_list,
)

LONGEST_TITLE = 72
MOST_STEPS = 200

_ORDINAL = re.compile(
    r"(?:(?:step|phase|stage|part)\s+(?:\d+|[ivx]+|[a-z])\b\s*[.:)–—-]*|\d+\s*[.:)–—-]+)\s*(.*)",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(
    r"\b(?:overview|background|introduction|when to use|when not to|purpose|examples?|sample|references?"
    r"|resources?|see also|further reading|faq|troubleshooting|limitations|license|changelog|glossary"
    r"|output format|quick start|anti-?patterns|best practices)\b"
    r"|^(?:about|links?|tips|templates?|install\w*|(?:\w+ )?notes)$",
    re.IGNORECASE,
)
_RULES = re.compile(
    r"\b(?:rules|guidelines|guardrails|constraints|principles|important|conventions|requirements|policy"
    r"|policies|do'?s and don'?ts|boundaries)\b",
    re.IGNORECASE,
)
_PRECONDITIONS = re.compile(
    r"\b(?:prerequisites?|preconditions?|before you (?:begin|start)|inputs?)\b", re.IGNORECASE
)
_PROCEDURE = re.compile(
    r"\b(?:steps?|process|procedure|workflow|instructions?|checklist|how to|tasks?|plan|playbook|runbook)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"\*\*(.+?)\*\*|__(.+?)__")
_CLAUSE = re.compile(r"(?<=\w)[.:;!?](?:\s|$)|\s[–—-]\s")

AsideKind = Literal["rules", "preconditions", "other"]


class StepDraft(Struct, frozen=True):
    """A part of the text that becomes a step."""

    title: str
    line: int
    lines: tuple[TextLine, ...]


class Aside(Struct, frozen=True):
    """A section that is not a step."""

    kind: AsideKind
    section: Section


class Parts(Struct, frozen=True):
    """A procedure: its steps, and the sections around them."""

    drafts: tuple[StepDraft, ...]
    asides: tuple[Aside, ...] = ()


def holds_steps(section: Section) -> bool:
    """Say whether a section is a procedure by itself."""
    return numbered_list(section.lines) is not None or _has_bullets_to_do(section)


def parts_of(outline: Sequence[Section], name: str) -> Parts:
    """Find the steps: numbered headings, else numbered lists, headings, bullets, or the text as a whole."""
    for find in (_by_ordinal_headings, _by_numbered_lists, _by_headings, _by_bullets):
        if (found := find(outline)) is not None:
            return found
    lines = [line for section in outline for line in _all_lines(section)]
    return Parts((StepDraft(name, outline[0].line, tuple(lines)),))


def _by_ordinal_headings(outline: Sequence[Section]) -> Parts | None:
    """Take the sections "Step 1: …" and "2. …" of the level that has most of them."""
    levels = [section.level for section in outline if _ORDINAL.fullmatch(section.title)]
    level = max(sorted(set(levels)), key=levels.count, default=0)
    if levels.count(level) < 2:
        return None
    return _from_sections(
        outline,
        [section.level == level and _ORDINAL.fullmatch(section.title) is not None for section in outline],
    )


def _by_headings(outline: Sequence[Section]) -> Parts | None:
    """Take the sections of the outermost level that has two or more about the work itself."""
    working = [section.level if _is_work(section) else 0 for section in outline]
    level = next((level for level in range(1, 7) if working.count(level) > 1), None)
    return None if level is None else _from_sections(outline, [found == level for found in working])


def _is_work(section: Section) -> bool:
    is_aside = any(pattern.search(section.title) for pattern in (_RULES, _PRECONDITIONS))
    return not section.is_empty and not is_aside and not _is_background(section)


def _from_sections(outline: Sequence[Section], is_step: Sequence[bool]) -> Parts:
    """Make a step of each chosen section; deeper sections below it are a part of its text."""
    level = next(section.level for section, chosen in zip(outline, is_step, strict=True) if chosen)
    drafts, asides, is_inside = list[StepDraft](), list[Aside](), False
    for section, chosen in zip(outline, is_step, strict=True):
        if chosen:
            ordinal = _ORDINAL.fullmatch(section.title)
            title = plain_title((ordinal[1] if ordinal else "") or section.title) or "Step"
            drafts.append(StepDraft(title, section.line, section.lines))
        elif is_inside and section.level > level:
            draft = drafts[-1]
            drafts[-1] = StepDraft(draft.title, draft.line, (*draft.lines, *_all_lines(section)))
            continue
        else:
            asides += _asides(outline, section)
        is_inside = chosen
    return Parts(tuple(drafts), tuple(asides))


def _by_numbered_lists(outline: Sequence[Section]) -> Parts | None:
    """Take the items of numbered lists, outside of examples and the like."""
    drafts, asides = list[StepDraft](), list[Aside]()
    for section in outline:
        if numbered_list(section.lines) is None or _is_background(section):
            asides += _asides(outline, section)
        else:
            drafts += islice(_from_numbered(section), MOST_STEPS + 1 - len(drafts))
    return Parts(tuple(drafts), tuple(asides)) if drafts else None


def _is_background(section: Section) -> bool:
    """Say whether a section is about the procedure; the title of the text says what the procedure is for."""
    return section.level > 1 and _BACKGROUND.search(section.title) is not None


def _from_numbered(section: Section) -> Iterator[StepDraft]:
    found = numbered_list(section.lines)
    while found is not None:
        following = numbered_list(found.after)
        yield from _from_items(found if following is None else ItemList(found.before, found.items, ()))
        found = following


def _by_bullets(outline: Sequence[Section]) -> Parts | None:
    """Take the bullets of the first section that calls itself a procedure."""
    chosen = next((section for section in outline if _has_bullets_to_do(section)), None)
    found = bullet_list(chosen.lines) if chosen else None
    if found is None:
        return None
    others = [aside for section in outline if section is not chosen for aside in _asides(outline, section)]
    return Parts(tuple(_from_items(found)), tuple(others))


def _has_bullets_to_do(section: Section) -> bool:
    found = bullet_list(section.lines) if _PROCEDURE.search(section.title) else None
    return found is not None and len(found.items) > 1


def _from_items(found: ItemList) -> Iterator[StepDraft]:
    """Yield the items of a list; the text around it goes with its first and its last item."""
    last = len(found.items) - 1
    for index, item in enumerate(found.items):
        before, after = found.before if index == 0 else (), found.after if index == last else ()
        # Its title are the bold words that an item begins with, else its first clause.
        first = next((line.text for line in item.lines if not line.is_blank and not line.is_code), "")
        lead = _LEAD.match(first.strip())
        text = (lead[1] or lead[2]) if lead else _CLAUSE.split(quoted_sentence(first), maxsplit=1)[0]
        yield StepDraft(plain_title(text) or "Step", item.line, _joined(before, item.lines, after))


def _asides(outline: Sequence[Section], section: Section) -> Iterator[Aside]:
    """Yield what a section beside the steps is; what introduces the text holds for all of it."""
    if section.is_empty:
        return
    if _PRECONDITIONS.search(section.title):
        yield Aside("preconditions", section)
    elif section is outline[0] or _RULES.search(section.title):
        yield Aside("rules", section)
    else:
        yield Aside("other", section)


def _all_lines(section: Section) -> Iterator[TextLine]:
    if section.level:
        yield section.heading
    yield from section.lines


def _joined(*parts: Sequence[TextLine]) -> tuple[TextLine, ...]:
    """Join parts with a blank line between them."""
    joined = list[TextLine]()
    for part in parts:
        if all(line.is_blank for line in part):
            continue
        if joined:
            joined.append(TextLine(joined[-1].number, ""))
        joined += part
    return tuple(joined)


def plain_title(text: str) -> str:
    """Return a title: one line without marks, bounded."""
    plain = printable(quoted_sentence(text)).strip(" :.-–—")
    return plain if len(plain) <= LONGEST_TITLE else plain[: LONGEST_TITLE - 1].rstrip() + "…"


def printable(text: str) -> str:
    """Remove the characters that YAML cannot hold or people cannot see."""
    return "".join(letter for letter in text if letter in "\n\t" or letter.isprintable())
