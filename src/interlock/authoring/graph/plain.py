"""A drawing as lines of text that fit a terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from interlock.authoring.graph.model import END, START, Arrow, Drawing, Row

MARKS = {"step": "•", "gate": "◆", "loop": "↻"}
WIDEST_ID = 30


def drawing_text(drawing: Drawing, width: int) -> str:
    """Write cards one below the other, each with its exits."""
    lines = [f"{drawing.title} ({drawing.id})"]
    starts = [arrow.end for arrow in drawing.exits(START)]
    for card in drawing.cards:
        if len(drawing.cards) == 1:
            lines += ["", *_rows(card.rows, "", card.flow)]
            continue
        lines += ["", f"{'▶' if card.id in starts else '■'} {card.id}  {card.title}"]
        lines += _rows(card.rows, "  ")
        lines += [f"  {_exit(arrow)}" for arrow in drawing.exits(card.id)]
    shown = (line if len(line) <= width else line[: width - 1].rstrip() + "…" for line in lines)
    return "\n".join(shown) + "\n"


def _rows(rows: tuple[Row, ...], indent: str, flow: tuple[Arrow, ...] = ()) -> Iterator[str]:
    """Yield the items in order; with `flow`, also what may follow an item that the next one need not."""
    width = min(max((len(row.id) for row in rows), default=0), WIDEST_ID)
    after = {row.id: (following.id,) for row, following in itertools.pairwise(rows)}
    for row in rows:
        yield f"{indent}{MARKS[row.kind]} {row.id:{width}}  {row.title}".rstrip()
        if row.note:
            yield f"{indent}  {row.note}"
        for choice in row.choices:
            yield f"{indent}  ○ {choice.id}{f' → {choice.to}' if choice.to else ''}"
        if row.rows:
            yield from (f"{indent}│ {line}" for line in _rows(row.rows, "", row.flow if flow else ()))
        arrows = [arrow for arrow in flow if arrow.start == row.id]
        if tuple(arrow.end for arrow in arrows) != after.get(row.id, (END,)):
            for arrow in arrows:
                yield f"{indent}  {_exit(arrow)}"


def _exit(arrow: Arrow) -> str:
    target = "end" if arrow.end == END else arrow.end
    label = f"  {arrow.label}" if arrow.label in ("", "else") else f"  if {arrow.label}"
    return f"→ {target}{label}".rstrip()
