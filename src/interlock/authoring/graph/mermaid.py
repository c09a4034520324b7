"""A drawing in Mermaid, for pages that render it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from interlock.authoring.graph.model import END, START, Arrow, Card, Drawing, Row

LONGEST_LABEL = 60


def mermaid_of(drawing: Drawing) -> str:
    """Write a flowchart: a subgraph an activity or loop, a node an item."""
    return "\n".join(_Chart(drawing).lines()) + "\n"


class _Chart:
    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._count = 0
        self._here = ""
        self._gates: dict[tuple[str, str], str] = {}
        self._ends: dict[str, tuple[str, str]] = {START: ("start", "start"), END: ("finish", "finish")}

    def lines(self) -> Iterator[str]:
        yield "flowchart TD"
        yield '  start(["start"])'
        for card in self._drawing.cards:
            yield from self._card(card)
        yield '  finish(["end"])'
        for arrow in self._drawing.arrows:
            if arrow.end in self._ends:
                yield from self._arrow(arrow)

    def _arrow(self, arrow: Arrow) -> Iterator[str]:
        """An arrow leaves from the gate whose option takes it, else from the last item of its card."""
        for reason in arrow.reasons or ("",):
            gate, _, option = reason.partition(": ")
            node = self._gates.get((arrow.start, gate)) if option else None
            label = option if node else reason
            shown = f"|{_quoted(label)}|" if label else ""
            yield f"  {node or self._ends[arrow.start][1]} -->{shown} {self._ends[arrow.end][0]}"

    def _card(self, card: Card) -> Iterator[str]:
        group, self._here = self._name(), card.id
        yield f"  subgraph {group}[{_quoted(card.title)}]"
        if card.rows:
            inner, first, last = self._rows(card.rows, "    ")
            yield from inner
        else:
            first = last = self._name()
            yield f"    {first}[{_quoted(card.id)}]"
        yield "  end"
        self._ends[card.id] = (first, last)

    def _rows(self, rows: tuple[Row, ...], indent: str) -> tuple[list[str], str, str]:
        """The lines of a sequence, with its first and last node."""
        lines, nodes = list[str](), list[tuple[str, str]]()
        for row in rows:
            inner, first, last = self._row(row, indent)
            lines += inner
            nodes.append((first, last))
        lines += [f"{indent}{left[1]} --> {right[0]}" for left, right in itertools.pairwise(nodes)]
        return lines, nodes[0][0], nodes[-1][1]

    def _row(self, row: Row, indent: str) -> tuple[list[str], str, str]:
        if row.rows:
            return self._loop(row, indent)
        name = self._name()
        if row.kind == "gate":
            self._gates[self._here, row.id] = name
        text = _quoted("<br>".join(one for one in (row.title, _choices(row), row.note) if one))
        shape = f"{name}{{{{{text}}}}}" if row.kind == "gate" else f"{name}[{text}]"
        return [f"{indent}{shape}"], name, name

    def _loop(self, row: Row, indent: str) -> tuple[list[str], str, str]:
        group = self._name()
        inner, first, last = self._rows(row.rows, f"{indent}  ")
        head = f"{indent}subgraph {group}[{_quoted(f'{row.title}: {row.note}')}]"
        return [head, *inner, f"{indent}  {last} -.-> {first}", f"{indent}end"], first, last

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _choices(row: Row) -> str:
    return " | ".join(choice.id for choice in row.choices)


def _quoted(text: str) -> str:
    """Text that Mermaid takes as it is: no quotes, no markup but the line breaks we put in."""
    parts = [
        one if len(one) <= LONGEST_LABEL else one[: LONGEST_LABEL - 1] + "…" for one in text.split("<br>")
    ]
    safe = [
        one.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
        for one in parts
    ]
    return '"' + "<br>".join(safe).replace("\n", " ") + '"'
