"""A drawing as SVG: cards in layers and arrows between them, for light and dark pages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from html import escape

from msgspec import Struct

from interlock.authoring.graph.layout import ArrowLine, Box, Layout, Placed, layout
from interlock.authoring.graph.model import END, START, Drawing, Row

LINE = 18.0
INDENT = 14.0
PADDING = 12.0
MARGIN = 24.0
NARROW, SLIM, WIDE = frozenset("ijl'|.,:;! "), frozenset('frt()[]{}-/"*'), frozenset("mwMW@%")
WIDTHS = {"narrow": 0.33, "slim": 0.44, "wide": 0.98, "capital": 0.76, "other": 0.64}  # of the size
TEXT, NOTE, BOLD = 12.0, 10.5, 1.1
LONGEST = 46
LONGEST_LABEL = 34
SHAPES = {
    "d": '<circle class="d" cx="{x:.1f}" cy="{y:.1f}" r="3.4"/>',
    "g": '<path class="g" d="M{left:.1f} {y:.1f}l5 -5l5 5l-5 5z"/>',
    "r": '<circle class="o" cx="{x:.1f}" cy="{y:.1f}" r="3.8"/>',
}
HEAD = """
<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img">
<title>{title}</title>
<style>{style}</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto-start-reverse"><path class="e" d="M0 0L8 4L0 8z"/></marker></defs>
<g transform="translate({margin:.0f} {margin:.0f})">
""".strip()
MARKS = {"step": "d", "gate": "g", "loop": "r"}
STYLE = """
.b{fill:#fff;stroke:#c9ced6}.h{font-weight:600;fill:#1c2430}.s{fill:#3b4656}.n{fill:#7a8494;font-size:10px}
.l{fill:none;stroke:#8fb3e8;stroke-dasharray:4 3}.d{fill:#3f7fd0}
.o{fill:none;stroke:#3f7fd0;stroke-width:2}.g{fill:#d9822b}
.a{fill:none;stroke:#7a8494;stroke-width:1.3}.k{stroke-dasharray:5 4}.e{fill:#7a8494}.t{fill:#1c2430}
.p{fill:#fff;opacity:.9}text{font:12px system-ui,"Segoe UI","DejaVu Sans",sans-serif}
@media(prefers-color-scheme:dark){.b,.p{fill:#1d232c}.b{stroke:#3c4653}.h,.t{fill:#e8ecf2}.s{fill:#c3cad5}
.n,.e{fill:#98a2b3}}
""".strip()


class Line(Struct, frozen=True):
    """One line of a card: its text, its depth, the mark before it, and how many lines a loop spans.

    `item` is the step, gate or loop that the line is the title of.
    """

    text: str
    depth: int
    css: str
    mark: str = ""
    span: int = 0
    item: str = ""


class Picture(Struct, frozen=True):
    """A drawing with coordinates: the lines of each card, the labels of arrows, and where everything is."""

    cards: Mapping[str, list[Line]]
    labels: Mapping[tuple[str, str], str]
    placed: Layout


def picture_of(drawing: Drawing) -> Picture:
    """Place the cards and arrows of a drawing."""
    cards = {card.id: [Line(_short(card.title), 0, "h"), *_rows(card.rows, 0)] for card in drawing.cards}
    arrows = drawing.arrows
    if len(drawing.cards) == 1:  # a list of steps: each is a card of its own
        (card,) = drawing.cards
        cards, arrows = {row.id: list(_rows((row,), 0)) for row in card.rows}, card.flow
    boxes = [Box(START, 60, 24)]
    for name, lines in cards.items():
        widths = (
            text_width(line.text, NOTE if line.css == "n" else TEXT * BOLD) + line.depth * INDENT
            for line in lines
        )
        boxes.append(Box(name, max(max(widths) + 2 * PADDING + 16, 120), len(lines) * LINE + PADDING + 4))
    boxes.append(Box(END, 60, 24))
    labels = {(arrow.start, arrow.end): arrow.label for arrow in arrows}
    placed = layout(boxes, {pair: _label_width(label) for pair, label in labels.items()})
    return Picture(cards, labels, placed)


def svg_of(drawing: Drawing) -> str:
    """Draw the workflow."""
    picture = picture_of(drawing)
    cards, labels, placed = picture.cards, picture.labels, picture.placed
    loop_labels = [_label_width(label) for (start, end), label in labels.items() if start == end]
    width = placed.width + max(loop_labels, default=0.0) + 2 * MARGIN
    body = [*(_arrow(route) for route in placed.routes)]
    for name, at in placed.boxes.items():
        if name in cards:
            body += _card(at, cards[name])
        else:
            body.append(_rect("b", at.x, at.y, at.box.width, at.box.height, 12))
            body.append(_text("t", at.middle, at.y + 16, name.strip("()"), middle=True))
    for route in placed.routes:
        if label := labels[route.start, route.end]:
            body.append(_label(route, label))
    height = placed.height + 2 * MARGIN
    head = HEAD.format(width=width, height=height, title=escape(drawing.title), style=STYLE, margin=MARGIN)
    return "\n".join((head, *body, "</g>", "</svg>")) + "\n"


def text_width(text: str, size: float) -> float:
    """Measure a text as wide fonts draw it, so that it fits in every other one."""
    return sum(WIDTHS[_class_of(letter)] for letter in text) * size


def _class_of(letter: str) -> str:
    if letter in NARROW:
        return "narrow"
    if letter in SLIM:
        return "slim"
    if letter in WIDE or ord(letter) > 0x2E80:
        return "wide"
    return "capital" if letter.isupper() else "other"


def _label_width(label: str) -> float:
    return text_width(_short(label, LONGEST_LABEL), NOTE) + 6 if label else 0.0


def _rows(rows: tuple[Row, ...], depth: int) -> Iterator[Line]:
    for row in rows:
        inner = list(_rows(row.rows, depth + 1))
        note = [Line(_short(row.note, LONGEST + 8), depth, "n", "-")] if row.note else []
        span = len(inner) + len(note) if inner else 0
        yield Line(_short(row.title), depth, "s", MARKS[row.kind], span, row.id)
        yield from note
        for choice in row.choices:
            target = f" → {choice.to}" if choice.to else ""
            yield Line(_short(f"{choice.id}{target}"), depth, "n", "-")
        yield from inner


def _short(text: str, most: int = LONGEST) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


def _rect(css: str, x: float, y: float, width: float, height: float, radius: int) -> str:
    geometry = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css}" {geometry} rx="{radius}"/>'


def _text(css: str, x: float, y: float, text: str, *, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{css}"{anchor} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _card(placed: Placed, lines: list[Line]) -> Iterator[str]:
    x, y, box = placed.x, placed.y, placed.box
    yield _rect("b", x, y, box.width, box.height, 8)
    for number, line in enumerate(lines):
        top = y + PADDING / 2 + number * LINE
        left = x + PADDING + line.depth * INDENT
        if line.span:
            yield _rect("l", left - 4, top + 1, x + box.width - 2 - left, (line.span + 1) * LINE, 5)
        if line.mark in SHAPES:
            yield SHAPES[line.mark].format(x=left + 4, left=left - 1, y=top + LINE / 2 + 1)
        yield _text(line.css, left + (14 if line.mark else 0), top + 13.5, line.text)


def _arrow(route: ArrowLine) -> str:
    points = route.points
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        half = (to_y - y) / 2
        path += f"C{x:.1f} {y + half:.1f} {to_x:.1f} {to_y - half:.1f} {to_x:.1f} {to_y:.1f}"
    css = "a k" if route.back or route.start == route.end else "a"
    return f'<path class="{css}" d="{path}" marker-end="url(#tip)"/>'


def _label(route: ArrowLine, label: str) -> str:
    """Draw the label near the start of its arrow, with the whole text as a tooltip."""
    (x, y), (to_x, to_y) = route.points[0], route.points[1]
    text, width = _short(label, LONGEST_LABEL), _label_width(label)
    middle_x, middle_y = x + (to_x - x) * 0.86, y + (to_y - y) * 0.66
    if route.start == route.end:
        middle_x, middle_y = to_x + width / 2 + 2, to_y
    background = _rect("p", middle_x - width / 2, middle_y - 8, width, 15, 3)
    caption = _text("n", middle_x, middle_y + 3.5, text, middle=True)
    return f"<g><title>{escape(label)}</title>{background}{caption}</g>"
