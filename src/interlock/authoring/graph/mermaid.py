"""A drawing as a Mermaid flowchart, for pages that render it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.authoring.graph.model import END, START, Arrow, Drawing, Row

LONGEST_LABEL = 60


def mermaid_of(drawing: Drawing) -> str:
    """Write a flowchart: a subgraph per activity or loop, a node per item."""
    return "\n".join(_Chart(drawing).lines()) + "\n"


class _Sequence(Struct, frozen=True):
    """A card or the body of a loop: its lines, and the nodes at which arrows enter and leave it."""

    lines: list[str]
    entries: list[tuple[str, str]]
    exits: list[tuple[str, str]]


class _Chart:
    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._count = 0
        self._card_id = ""
        self._gates: dict[tuple[str, str], str] = {}

    def lines(self) -> Iterator[str]:
        yield "flowchart TD"
        yield '  start(["start"])'
        cards = {END: _Sequence([], [("finish", "")], []), START: _Sequence([], [], [("start", "")])}
        for card in self._drawing.cards:
            self._card_id = card.id
            yield f"  subgraph {self._name()}[{_quoted(card.title)}]"
            cards[card.id] = self._sequence(card.rows, card.flow, "    ")
            yield from cards[card.id].lines
            yield "  end"
        yield '  finish(["end"])'
        for arrow in self._drawing.arrows:
            for reason in arrow.reasons or ("",):
                # An arrow starts at the gate whose option it is, else where its card is left.
                gate, _, option = reason.partition(": ")
                node = self._gates.get((arrow.start, gate)) if option else None
                starts = [(node, "")] if node else cards[arrow.start].exits
                yield from _joined(starts, option if node else reason, cards[arrow.end].entries, "  ")

    def _sequence(self, rows: tuple[Row, ...], flow: tuple[Arrow, ...], indent: str) -> _Sequence:
        lines, parts = list[str](), dict[str, _Sequence]()
        for row in rows:
            parts[row.id] = self._part(row, indent)
            lines += parts[row.id].lines
        entries, exits = list[tuple[str, str]](), list[tuple[str, str]]()
        if any((arrow.start, arrow.end) == (START, END) for arrow in flow):  # all of it may be passed over
            name = self._name()
            lines.append(f"{indent}{name}(( ))")
            parts[START] = _Sequence([], [(name, "")], [(name, "")])
            entries.append((name, ""))
        for arrow in flow:
            if arrow.start == START and START not in parts:
                entries += [(node, _both(arrow.label, label)) for node, label in parts[arrow.end].entries]
            elif arrow.end == END:
                exits += [(node, _both(label, arrow.label)) for node, label in parts[arrow.start].exits]
            else:
                lines += _joined(parts[arrow.start].exits, arrow.label, parts[arrow.end].entries, indent)
        return _Sequence(lines, entries, exits)

    def _part(self, row: Row, indent: str) -> _Sequence:
        name = self._name()
        if row.rows:
            inner = self._sequence(row.rows, row.flow, f"{indent}  ")
            head = f"{indent}subgraph {name}[{_quoted(f'{row.title}: {row.note}')}]"
            again = _joined(inner.exits, "", inner.entries, f"{indent}  ", "-.->")
            return _Sequence([head, *inner.lines, *again, f"{indent}end"], inner.entries, inner.exits)
        choices = " | ".join(choice.id for choice in row.choices)
        text = _quoted("<br>".join(part for part in (row.title, choices, row.note) if part))
        if row.kind == "gate":
            self._gates[self._card_id, row.id] = name
        node = f"{name}{{{{{text}}}}}" if row.kind == "gate" else f"{name}[{text}]"
        return _Sequence([f"{indent}{node}"], [(name, "")], [(name, "")])

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _joined(
    starts: list[tuple[str, str]], label: str, ends: list[tuple[str, str]], indent: str, arrow: str = "-->"
) -> Iterator[str]:
    """Yield an arrow from each start to each end, with all that must hold for it."""
    for start, before in starts:
        for end, after in ends:
            shown = _both(_both(before, label), after)
            yield f"{indent}{start} {arrow}{f'|{_quoted(shown)}|' if shown else ''} {end}"


def _both(left: str, right: str) -> str:
    return "; ".join(dict.fromkeys(part for part in (left, right) if part))


def _quoted(text: str) -> str:
    """Quote a text for Mermaid: no quotes and no markup in it except our own line breaks."""
    lines = []
    for line in text.split("<br>"):
        short = line if len(line) <= LONGEST_LABEL else line[: LONGEST_LABEL - 1] + "…"
        lines.append(
            short.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
        )
    return '"' + "<br>".join(lines).replace("\n", " ") + '"'
