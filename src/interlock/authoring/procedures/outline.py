"""The outline of a Markdown text: its sections, and the items of their lists, with line numbers.

Only what the conversion needs is told apart: headings, fenced code, comments, list items and everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent

from msgspec import Struct

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t](.*))?")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})([^`]*)")
_NUMBERED = re.compile(r" {0,3}(\d{1,9})[.)](?:[ \t]+(.*))?")
_BULLET = re.compile(r" {0,3}[-*+](?:[ \t]+(.*))?")
_NO_PARAGRAPH = re.compile(r"\s*(?:[-*+>|#]|\d{1,9}[.)]|$)")


class TextLine(Struct, frozen=True):
    """A line with its number in the file; `is_code` lines are shown and never read."""

    number: int
    text: str
    is_code: bool = False

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


class Section(Struct, frozen=True):
    """A heading and the lines up to the next heading; the text before the first heading has level 0."""

    level: int
    title: str
    line: int
    lines: tuple[TextLine, ...]

    @property
    def heading(self) -> TextLine:
        return TextLine(self.line, f"{'#' * self.level} {self.title}")

    @property
    def is_empty(self) -> bool:
        return all(line.is_blank for line in self.lines)


class ListItem(Struct, frozen=True):
    """An item of a list, with everything that is written below it."""

    line: int
    lines: tuple[TextLine, ...]


class ItemList(Struct, frozen=True):
    """A list, and the lines of its section before and after it."""

    before: tuple[TextLine, ...]
    items: tuple[ListItem, ...]
    after: tuple[TextLine, ...]


def read_lines(body: str, first: int) -> tuple[list[TextLine], list[int]]:
    """Return the lines of a text, without comments, and the numbers of the lines where comments were."""
    lines, comments = list[TextLine](), list[int]()
    fence, in_comment = "", False
    for number, text in enumerate(body.split("\n"), first):
        if not fence and not in_comment and text.lstrip().startswith("<!--"):
            in_comment = True
            comments.append(number)
        if in_comment:
            in_comment = "-->" not in text
            continue
        found = _FENCE.match(text.strip())
        if fence:
            closes = found is not None and found[1].startswith(fence) and not found[2].strip()
            lines.append(TextLine(number, text, is_code=True))
            fence = "" if closes else fence
        else:
            fence = found[1] if found else ""
            lines.append(TextLine(number, text, is_code=bool(fence)))
    return lines, comments


def sections(lines: Sequence[TextLine]) -> list[Section]:
    """Split lines at their headings."""
    found = list[Section]()
    level, title, start, own = 0, "", lines[0].number if lines else 1, list[TextLine]()
    for line in lines:
        heading = None if line.is_code else _HEADING.fullmatch(line.text)
        underline = None if line.is_code else _UNDERLINE.fullmatch(line.text)
        if heading is not None:
            found.append(Section(level, title, start, tuple(own)))
            level, title, start, own = len(heading[1]), _unclosed(heading[2] or ""), line.number, []
        elif underline is not None and own and _is_paragraph(own[-1]):
            text = own.pop()
            found.append(Section(level, title, start, tuple(own)))
            level, title, start, own = (
                1 if underline[1][0] == "=" else 2,
                text.text.strip(),
                text.number,
                [],
            )
        else:
            own.append(line)
    found.append(Section(level, title, start, tuple(own)))
    return [section for section in found if section.level or not section.is_empty]


def _unclosed(title: str) -> str:
    """Return a heading's text without the # that may close it."""
    plain = title.strip()
    opened = plain.rstrip("#")
    return opened.strip() if not opened or opened[-1:].isspace() else plain


def _is_paragraph(line: TextLine) -> bool:
    return not line.is_code and _NO_PARAGRAPH.match(line.text) is None


def numbered_list(lines: Sequence[TextLine]) -> ItemList | None:
    """Return the first numbered list with two items or more, and what comes before and after it."""
    return next((found for found in _lists(lines, _NUMBERED) if len(found.items) > 1), None)


def bullet_list(lines: Sequence[TextLine]) -> ItemList | None:
    """Return the first list of bullets, and what comes before and after it."""
    return next(_lists(lines, _BULLET), None)


def _lists(lines: Sequence[TextLine], marker: re.Pattern[str]) -> Iterator[ItemList]:
    """Yield the lists of the outermost items; what is between two items belongs to the first of them."""
    starts = list[int]()
    counted = indent = 0
    for index, line in enumerate(lines):
        match = None if line.is_code and not _opens_code(lines, index) else marker.fullmatch(line.text)
        depth = len(line.text) - len(line.text.lstrip(" "))
        if match is None or (starts and depth > indent + 1):
            continue
        indent = indent if starts else depth
        number = int(match[1]) if marker is _NUMBERED else 0
        if marker is _NUMBERED and starts and number not in (counted, counted + 1):
            yield _list_of(lines, starts)
            starts = []
        starts.append(index)
        counted = number
    if starts:
        yield _list_of(lines, starts)


def _opens_code(lines: Sequence[TextLine], index: int) -> bool:
    return index == 0 or not lines[index - 1].is_code


def _list_of(lines: Sequence[TextLine], starts: Sequence[int]) -> ItemList:
    ends = [*starts[1:], _end_of_item(lines, starts[-1])]
    items = [
        ListItem(lines[start].number, _without_marker(lines[start:end]))
        for start, end in zip(starts, ends, strict=True)
    ]
    return ItemList(tuple(lines[: starts[0]]), tuple(items), tuple(lines[ends[-1] :]))


def _end_of_item(lines: Sequence[TextLine], start: int) -> int:
    """Return where the last item ends: before a line that is not indented and follows a blank one."""
    for index in range(start + 1, len(lines)):
        line = lines[index]
        is_outside = not line.is_blank and not line.text[0].isspace() and not line.is_code
        if is_outside and lines[index - 1].is_blank:
            return index
    return len(lines)


def _without_marker(lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
    first, *rest = lines
    match = _NUMBERED.fullmatch(first.text) or _BULLET.fullmatch(first.text)
    assert match is not None
    text = dedent("\n".join(line.text for line in rest)).split("\n") if rest else []
    shifted = [TextLine(line.number, shown, line.is_code) for line, shown in zip(rest, text, strict=True)]
    return (TextLine(first.number, match[match.lastindex or 0] or "", first.is_code), *shifted)


def text_from(lines: Sequence[TextLine]) -> str:
    """Return lines as one text without blank lines around it."""
    return "\n".join(line.text.rstrip() for line in lines).strip("\n")
