"""A layered layout: ranks from top to bottom, few crossings, long arrows around the boxes.

It gives boxes of known sizes their coordinates, and does not know what is drawn in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

GAP_X = 36.0
GAP_Y = 64.0
BEND_WIDTH = 14.0
SWEEPS = 8


class Box(Struct, frozen=True):
    """A rectangle to place."""

    id: str
    width: float
    height: float


class Placed(Struct, frozen=True):
    """A box and its upper left corner."""

    box: Box
    x: float
    y: float

    @property
    def middle(self) -> float:
        return self.x + self.box.width / 2


class ArrowLine(Struct, frozen=True):
    """An arrow as points from its start to its end; `back` means that it leads up."""

    start: str
    end: str
    points: tuple[tuple[float, float], ...]
    back: bool = False


class Layout(Struct, frozen=True):
    """The whole picture."""

    boxes: Mapping[str, Placed]
    routes: tuple[ArrowLine, ...]
    width: float
    height: float


def layout(boxes: Sequence[Box], arrows: Mapping[tuple[str, str], float]) -> Layout:
    """Place the boxes and route the arrows; `arrows` gives the room that each label needs."""
    names = [box.id for box in boxes]
    known = {pair: room for pair, room in arrows.items() if pair[0] in names and pair[1] in names}
    reversed_ = _reversed(names, list(known))
    downward = [(b, a) if (a, b) in reversed_ else (a, b) for a, b in known if a != b]
    ranks = dict.fromkeys(names, 0)  # the length of the longest path down to each box
    for _ in names:
        lifted = [(start, end) for start, end in downward if ranks[end] <= ranks[start]]
        if not lifted:
            break
        for start, end in lifted:
            ranks[end] = max(ranks[end], ranks[start] + 1)
    layers = _Layers(boxes, known, reversed_, ranks)
    layers.order()
    return layers.placed()


def _reversed(names: Sequence[str], arrows: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the arrows that close a circle, in a depth-first walk from the first box."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for start, end in arrows:
        after[start].append(end)
    closing, state = set[tuple[str, str]](), dict.fromkeys(names, 0)
    for root in names:
        stack = [(root, iter(after[root]))] if not state[root] else []
        state[root] = state[root] or 1
        while stack:
            name, following = stack[-1]
            target = next(following, None)
            if target is None:
                state[name] = 2
                stack.pop()
            elif state[target] == 1:
                closing.add((name, target))
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, iter(after[target])))
    return closing


class _Layers:
    """Rows of boxes, and of bends where an arrow passes a row."""

    def __init__(
        self,
        boxes: Sequence[Box],
        arrows: Mapping[tuple[str, str], float],
        reversed_: set[tuple[str, str]],
        ranks: Mapping[str, int],
    ) -> None:
        self._boxes = {box.id: box for box in boxes}
        self._reversed = reversed_
        self._rows: list[list[str]] = [[] for _ in range(max(ranks.values(), default=0) + 1)]
        for box in boxes:
            self._rows[ranks[box.id]].append(box.id)
        # A chain has the boxes and bends of an arrow from top to bottom.
        self._chains: dict[tuple[str, str], list[str]] = {}
        for arrow, label_width in arrows.items():
            top, bottom = arrow[::-1] if arrow in reversed_ else arrow
            passed = range(ranks[top] + 1, ranks[bottom])
            labelled = passed[-1:] if arrow in reversed_ else passed[:1]
            bends = {rank: f"{arrow[0]}\0{arrow[1]}\0{rank}" for rank in passed}
            for rank, bend in bends.items():
                self._boxes[bend] = Box(
                    bend, max(BEND_WIDTH, label_width - GAP_X if rank in labelled else 0), 0
                )
                self._rows[rank].append(bend)
            self._chains[arrow] = [top, *bends.values(), bottom]
        self._neighbours: dict[str, list[str]] = {name: [] for name in self._boxes}
        for chain in self._chains.values():
            for upper, lower in itertools.pairwise(chain):
                self._neighbours[upper].append(lower)
                self._neighbours[lower].append(upper)

    def order(self) -> None:
        """Sort each row by the mean index of its neighbours, downwards and upwards in turn."""
        for sweep in range(SWEEPS):
            rows = self._rows if sweep % 2 == 0 else self._rows[::-1]
            for fixed, row in itertools.pairwise(rows):
                index_of = {name: index for index, name in enumerate(fixed)}
                keys = dict[str, float]()
                for index, name in enumerate(row):
                    near = [index_of[other] for other in self._neighbours[name] if other in index_of]
                    keys[name] = sum(near) / len(near) if near else index
                row.sort(key=keys.__getitem__)

    def placed(self) -> Layout:
        x = self._across()
        left = min((x[name] - self._boxes[name].width / 2 for name in x), default=0.0)
        boxes, y = dict[str, Placed](), 0.0
        for row in self._rows:
            height = max((self._boxes[name].height for name in row), default=0.0)
            for name in row:
                box = Box(name, self._boxes[name].width, height if "\0" in name else self._boxes[name].height)
                boxes[name] = Placed(box, x[name] - box.width / 2 - left, y)
            y += height + GAP_Y
        width = max((placed.x + placed.box.width for placed in boxes.values()), default=0.0)
        ports, routes = _Ports(self._chains, boxes), list[ArrowLine]()
        for arrow, chain in self._chains.items():
            back = arrow in self._reversed
            if arrow[0] == arrow[1]:  # along the right side of its box
                placed = boxes[arrow[0]]
                right, top, bottom = placed.x + placed.box.width, placed.y, placed.y + placed.box.height
                points = [(right, bottom - 12), (right + GAP_X / 2, (top + bottom) / 2), (right, top + 12)]
            else:
                points = list(ports.points(arrow, chain))[:: -1 if back else 1]
            routes.append(ArrowLine(arrow[0], arrow[1], tuple(points), back))
        shown = {name: placed for name, placed in boxes.items() if "\0" not in name}
        return Layout(shown, tuple(routes), width, max(y - GAP_Y, 0.0))

    def _across(self) -> dict[str, float]:
        """Return the horizontal middle of each box: packed first, then moved towards its neighbours."""
        x: dict[str, float] = {}
        for row in self._rows:
            at = 0.0
            for name in row:
                x[name] = at + self._boxes[name].width / 2
                at += self._boxes[name].width + GAP_X
            shift = (at - GAP_X) / 2
            x.update({name: x[name] - shift for name in row})
        for sweep in range(SWEEPS * 2):
            for row in self._rows if sweep % 2 == 0 else self._rows[::-1]:
                self._settle(row, x)
        return x

    def _settle(self, row: Sequence[str], x: dict[str, float]) -> None:
        """Move a row towards its neighbours without changing its order."""
        wanted = {
            name: sum(x[other] for other in near) / len(near) if (near := self._neighbours[name]) else x[name]
            for name in row
        }
        groups: list[list[str]] = []
        for name in row:
            groups.append([name])
            while len(groups) > 1:
                left, left_x = list(self._spread(groups[-2], wanted))[-1]
                right, right_x = next(self._spread(groups[-1], wanted))
                if right_x - left_x >= self._distance(left, right):
                    break
                groups[-2:] = [groups[-2] + groups[-1]]
        for group in groups:
            x.update(self._spread(group, wanted))

    def _spread(self, group: list[str], wanted: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """Place a group side by side, as near as possible to where its members should be."""
        offsets, at = list[float](), 0.0
        for before, name in zip([None, *group], group, strict=False):
            if before is not None:
                at += self._distance(before, name)
            offsets.append(at)
        base = sum(wanted[name] - offset for name, offset in zip(group, offsets, strict=True)) / len(group)
        return ((name, base + offset) for name, offset in zip(group, offsets, strict=True))

    def _distance(self, left: str, right: str) -> float:
        """Return the least distance between the middles of two neighbours in a row."""
        return (self._boxes[left].width + self._boxes[right].width) / 2 + GAP_X


class _Ports:
    """Where arrows leave and enter a box: along its edges, in the order of their other ends."""

    def __init__(self, chains: Mapping[tuple[str, str], list[str]], boxes: Mapping[str, Placed]) -> None:
        self._boxes = boxes
        below: dict[str, list[tuple[float, tuple[str, str]]]] = {}
        above: dict[str, list[tuple[float, tuple[str, str]]]] = {}
        for arrow, chain in chains.items():
            if arrow[0] != arrow[1]:
                below.setdefault(chain[0], []).append((boxes[chain[1]].middle, arrow))
                above.setdefault(chain[-1], []).append((boxes[chain[-2]].middle, arrow))
        self._below = {name: self._along(name, arrows) for name, arrows in below.items()}
        self._above = {name: self._along(name, arrows) for name, arrows in above.items()}

    def _along(self, name: str, arrows: list[tuple[float, tuple[str, str]]]) -> dict[tuple[str, str], float]:
        placed, ordered = self._boxes[name], sorted(arrows)
        span = min(placed.box.width * 0.8, 60.0 * (len(ordered) - 1))
        step = span / (len(ordered) - 1) if len(ordered) > 1 else 0.0
        return {arrow: placed.middle - span / 2 + step * index for index, (_, arrow) in enumerate(ordered)}

    def points(self, arrow: tuple[str, str], chain: list[str]) -> Iterator[tuple[float, float]]:
        top, bottom = self._boxes[chain[0]], self._boxes[chain[-1]]
        yield self._below[chain[0]][arrow], top.y + top.box.height
        for bend in chain[1:-1]:
            placed = self._boxes[bend]
            yield placed.middle, placed.y
            yield placed.middle, placed.y + placed.box.height
        yield self._above[chain[-1]][arrow], bottom.y
