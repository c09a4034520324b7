"""A drawing as lines of text that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.graph.model import END, START, Drawing, Row

MARKS = {"step": "•", "gate": "◆", "loop": "↻"}
WIDEST_ID = 30


def text_of(drawing: Drawing, width: int) -> str:
    """Write cards one below the other, each with its exits."""
    lines = [f"{drawing.title} ({drawing.id})"]
    starts = [arrow.end for arrow in drawing.exits(START)]
    for card in drawing.cards:
        if len(drawing.cards) == 1:
            lines += ["", *_rows(card.rows, "")]
            continue
        lines += ["", f"{'▶' if card.id in starts else '■'} {card.id}  {card.title}"]
        lines += _rows(card.rows, "  ")
        for arrow in drawing.exits(card.id):
            target = "end" if arrow.end == END else arrow.end
            label = f"  {arrow.label}" if arrow.label in ("", "else") else f"  if {arrow.label}"
            lines.append(f"  → {target}{label}".rstrip())
    shown = (line if len(line) <= width else line[: width - 1].rstrip() + "…" for line in lines)
    return "\n".join(shown) + "\n"


def _rows(rows: tuple[Row, ...], indent: str) -> Iterator[str]:
    width = min(max((len(row.id) for row in rows), default=0), WIDEST_ID)
    for row in rows:
        yield f"{indent}{MARKS[row.kind]} {row.id:{width}}  {row.title}".rstrip()
        if row.note:
            yield f"{indent}  {row.note}"
        for choice in row.choices:
            yield f"{indent}  ○ {choice.id}{f' → {choice.to}' if choice.to else ''}"
        if row.rows:
            yield from (f"{indent}│ {line}" for line in _rows(row.rows, ""))
