"""A drawing as a Mermaid flowchart, for pages that render it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from interlock.authoring.graph.model import END, START, Drawing, Row

LONGEST_LABEL = 60


def mermaid_of(drawing: Drawing) -> str:
    """Write a flowchart: a subgraph per activity or loop, a node per item."""
    return "\n".join(_Chart(drawing).lines()) + "\n"


class _Chart:
    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._count = 0
        self._card_id = ""
        self._gates: dict[tuple[str, str], str] = {}
        self._ends: dict[str, tuple[str, str]] = {START: ("start", "start"), END: ("finish", "finish")}

    def lines(self) -> Iterator[str]:
        yield "flowchart TD"
        yield '  start(["start"])'
        for card in self._drawing.cards:
            self._card_id = card.id
            yield f"  subgraph {self._name()}[{_quoted(card.title)}]"
            if card.rows:
                inner, first, last = self._rows(card.rows, "    ")
            else:
                first = last = self._name()
                inner = [f"    {first}[{_quoted(card.id)}]"]
            yield from inner
            yield "  end"
            self._ends[card.id] = (first, last)
        yield '  finish(["end"])'
        for arrow in self._drawing.arrows:
            for reason in arrow.reasons or ("",):
                # An arrow starts at the gate whose option it is, else at the last item of its card.
                gate, _, option = reason.partition(": ")
                node = self._gates.get((arrow.start, gate)) if option else None
                label = option if node else reason
                shown = f"|{_quoted(label)}|" if label else ""
                yield f"  {node or self._ends[arrow.start][1]} -->{shown} {self._ends[arrow.end][0]}"

    def _rows(self, rows: tuple[Row, ...], indent: str) -> tuple[list[str], str, str]:
        """Return the lines of a sequence, with its first and last node."""
        lines, nodes = list[str](), list[tuple[str, str]]()
        for row in rows:
            name = self._name()
            if row.rows:
                inner, first, last = self._rows(row.rows, f"{indent}  ")
                lines.append(f"{indent}subgraph {name}[{_quoted(f'{row.title}: {row.note}')}]")
                lines += [*inner, f"{indent}  {last} -.-> {first}", f"{indent}end"]
                nodes.append((first, last))
                continue
            choices = " | ".join(choice.id for choice in row.choices)
            text = _quoted("<br>".join(part for part in (row.title, choices, row.note) if part))
            if row.kind == "gate":
                self._gates[self._card_id, row.id] = name
            lines.append(f"{indent}{name}{{{{{text}}}}}" if row.kind == "gate" else f"{indent}{name}[{text}]")
            nodes.append((name, name))
        lines += [f"{indent}{left[1]} --> {right[0]}" for left, right in itertools.pairwise(nodes)]
        return lines, nodes[0][0], nodes[-1][1]

    def _name(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _quoted(text: str) -> str:
    """Quote a text for Mermaid: no quotes and no markup in it except our own line breaks."""
    lines = []
    for line in text.split("<br>"):
        short = line if len(line) <= LONGEST_LABEL else line[: LONGEST_LABEL - 1] + "…"
        lines.append(
            short.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
        )
    return '"' + "<br>".join(lines).replace("\n", " ") + '"'
