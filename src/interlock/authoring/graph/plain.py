"""A drawing as lines of text that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.graph.model import END, START, Drawing, Row

MARKS = {"step": "•", "gate": "◆", "loop": "↻"}
WIDEST_ID = 30


def text_of(drawing: Drawing, width: int) -> str:
    """Draw cards one below the other, each with its ways out."""
    return "\n".join(_cut(line, width) for line in _lines(drawing)) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    yield f"{drawing.title} ({drawing.id})"
    starts = [arrow.end for arrow in drawing.exits(START)]
    alone = len(drawing.cards) == 1
    for card in drawing.cards:
        yield ""
        if not alone:
            mark = "▶" if card.id in starts else "■"
            yield f"{mark} {card.id}  {card.title}"
        yield from _rows(card.rows, "" if alone else "  ")
        yield from () if alone else _ways(drawing, card.id)


def _rows(rows: tuple[Row, ...], indent: str) -> Iterator[str]:
    wide = min(max((len(row.id) for row in rows), default=0), WIDEST_ID)
    for row in rows:
        yield f"{indent}{MARKS[row.kind]} {row.id:{wide}}  {row.title}".rstrip()
        if row.note:
            yield f"{indent}  {row.note}"
        for choice in row.choices:
            yield f"{indent}  ○ {choice.id}{f' → {choice.to}' if choice.to else ''}"
        if row.rows:
            yield from (f"{indent}│ {line}" for line in _rows(row.rows, ""))


def _ways(drawing: Drawing, card_id: str) -> Iterator[str]:
    for arrow in drawing.exits(card_id):
        target = "end" if arrow.end == END else arrow.end
        label = f"  {arrow.label}" if arrow.label in ("", "else") else f"  if {arrow.label}"
        yield f"  → {target}{label}".rstrip()


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
