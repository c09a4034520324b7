"""What a measurement prints: figures in one table, each beside the goal that it is held to."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Figure(Struct, frozen=True):
    """One measured number; `most` is its goal, if it has one."""

    name: str
    value: float
    unit: str = "ms"
    most: float | None = None

    @property
    def row(self) -> str:
        digits = 0 if self.unit == "bytes" else 2
        goal = "" if self.most is None else f"≤ {self.most:,g}"
        missed = self.most is not None and self.value > self.most
        line = f"{self.name:<68} {self.value:>10,.{digits}f} {self.unit:<5} {goal:>9}"
        return f"{line}  missed" if missed else line.rstrip()


HEAD = f"{'figure':<68} {'measured':>10} {'':<5} {'goal':>9}"


def show(figures: Iterable[Figure]) -> list[Figure]:
    """Print figures as they come, and return them."""
    shown: list[Figure] = []
    for figure in figures:
        print(figure.row, flush=True)
        shown.append(figure)
    return shown
