"""What an exploration says about a workflow: where runs get stuck, what nothing reaches, how much is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from interlock.authoring.simulate.coverage import CoveragePart, parts_of
from interlock.authoring.simulate.explore import MOST_STATES, Explored, ExploredState, explore
from interlock.authoring.simulate.liveness import targets_of
from interlock.core.definition.workflow import Workflow
from interlock.core.run.outcomes import Done, NeedAnswer, NeedInput, NeedStep


class Stuck(Struct, frozen=True):
    """A place that a run can get to and not away from, and why."""

    location: str
    reason: str


class Simulated(Struct, frozen=True):
    """The findings. Unless `whole`, the bound was reached and more may be reachable than was seen."""

    workflow: str
    states: int
    whole: bool
    ends: bool
    dead_ends: tuple[Stuck, ...]
    impassable: tuple[str, ...]
    unreached: tuple[CoveragePart, ...]
    limited: tuple[str, ...]
    longest: tuple[str, ...]
    most_bytes: int
    least_bytes: int

    @property
    def broken(self) -> bool:
        """Some run would get stuck."""
        return not self.ends or bool(self.dead_ends or self.impassable)

    @property
    def sound(self) -> bool:
        """Nothing was found that a run would stumble over."""
        return not (self.broken or self.unreached or self.limited)


def simulate(workflow: Workflow, most: int = MOST_STATES) -> Simulated:
    """Explore the workflow and sum up."""
    found = explore(workflow, most)
    finishing = _finishing(found)
    opening = sum(len(line.encode()) for line in (*workflow.rules, *workflow.preconditions))
    forward = _Forward(workflow, found)
    return Simulated(
        workflow=workflow.id,
        states=len(found.locations),
        whole=not found.cut,
        ends=bool(finishing),
        dead_ends=tuple(_dead_ends(found, finishing)),
        impassable=tuple(_impassable(found, finishing)),
        unreached=tuple(_unreached(workflow, found)),
        limited=tuple(_limited(found)),
        longest=tuple(forward.longest()),
        most_bytes=opening + forward.heaviest(),
        least_bytes=opening + _lightest(found),
    )


def _label(location: ExploredState) -> str:
    return (
        location.id
        if location.activity in ("", "main", location.id)
        else f"{location.activity}/{location.id}"
    )


def _finishing(found: Explored) -> set[int]:
    """The states from which some way leads to the end."""
    before: list[list[int]] = [[] for _ in found.locations]
    for number, following in enumerate(found.edges):
        for after in following:
            before[after].append(number)
    todo = [number for number, location in enumerate(found.locations) if isinstance(location.awaited, Done)]
    reached = set(todo)
    while todo:
        for number in before[todo.pop()]:
            if number not in reached:
                reached.add(number)
                todo.append(number)
    return reached


def _dead_ends(found: Explored, finishing: set[int]) -> Iterator[Stuck]:
    """States without any way on; in a whole exploration also circles that no end follows."""
    stuck = [number for number, after in enumerate(found.edges) if not after and number not in finishing]
    reported = set[Stuck]()
    for number in stuck if not found.cut else []:
        one = _stuck(found.locations[number])
        if one not in reported:
            reported.add(one)
            yield one
    if not stuck and not found.cut and len(finishing) < len(found.locations):
        circle = [location for number, location in enumerate(found.locations) if number not in finishing]
        yield Stuck(_label(circle[0]), "from here the run goes round and never ends")


def _stuck(location: ExploredState) -> Stuck:
    awaited = location.awaited
    if isinstance(awaited, NeedInput):
        kind = "loop" if awaited.loop is not None else "activity"
        name = awaited.loop.id if awaited.loop is not None else location.activity
        return Stuck(f"{kind} {name}", awaited.message)
    return Stuck(_label(location), "no answer leads on")


def _impassable(found: Explored, finishing: set[int]) -> Iterator[str]:
    """Gates that are reached, and behind which no option ever leads to the end."""
    if found.cut:
        return
    asked = [
        (number, location)
        for number, location in enumerate(found.locations)
        if isinstance(location.awaited, NeedAnswer)
    ]
    passed = {_label(location) for number, location in asked if number in finishing}
    yield from dict.fromkeys(label for _, location in asked if (label := _label(location)) not in passed)


def _unreached(workflow: Workflow, found: Explored) -> Iterator[CoveragePart]:
    """Parts that no run touches; an item that is never passed by is no fault."""
    return (part for part in parts_of(workflow) if part not in found.parts and part.kind != "skip")


def _limited(found: Explored) -> Iterator[str]:
    for (activity, loop), reasons in found.exits.items():
        if reasons == {"limit"}:
            yield loop if activity in ("", "main") else f"{activity}/{loop}"


class _Forward:
    """The states and the edges that lead on: no circle is closed, and no activity entered from a later one.

    Runs may go round for ever, so the longest of them is looked for among those that only go on.
    """

    def __init__(self, workflow: Workflow, found: Explored) -> None:
        self._found = found
        rank = {name: number for number, name in enumerate(_in_order(workflow))}
        self._edges = [
            [after for after in following if not self._turns_back(number, after, rank)]
            for number, following in enumerate(found.edges)
        ]
        self._order = self._postorder()

    def _turns_back(self, number: int, after: int, rank: Mapping[str, int]) -> bool:
        here, there = (self._found.locations[one].activity for one in (number, after))
        return (number, after) in self._found.entering and rank.get(there, 0) <= rank.get(here, -1)

    def _postorder(self) -> list[int]:
        """States after their successors; an edge into an unfinished state closes a circle and is dropped."""
        order, begun, finished = list[int](), set[int](), set[int]()
        for root in range(len(self._edges)):
            stack = [root]
            while stack:
                number = stack[-1]
                if number in begun:
                    stack.pop()
                    if number not in finished:
                        finished.add(number)
                        order.append(number)
                    continue
                begun.add(number)
                kept = [after for after in self._edges[number] if after not in begun or after in finished]
                self._edges[number] = kept
                stack += [after for after in kept if after not in begun]
        return order

    def best(self, weights: Sequence[int]) -> tuple[list[int], list[int | None]]:
        """The greatest sum of weights from each state on, and the successor on that way."""
        best: list[int] = [0] * len(weights)
        then: list[int | None] = [None] * len(weights)
        location = {number: index for index, number in enumerate(self._order)}
        for number in self._order:
            later = [after for after in self._edges[number] if location[after] < location[number]]
            after = max(later, key=lambda one: best[one], default=None)
            best[number] = weights[number] + (best[after] if after is not None else 0)
            then[number] = after
        return best, then

    def heaviest(self) -> int:
        return max(self.best([location.size for location in self._found.locations])[0], default=0)

    def longest(self) -> Iterator[str]:
        locations = self._found.locations
        steps = [int(isinstance(location.awaited, (NeedStep, NeedAnswer))) for location in locations]
        best, then = self.best(steps)
        here: int | None = max(range(len(best)), key=lambda one: best[one], default=None)
        while here is not None:
            if steps[here]:
                yield _label(locations[here])
            here = then[here]


def _in_order(workflow: Workflow) -> list[str]:
    """Activities in the order in which a run meets them, each before those that follow it."""
    left, seen = list[str](), set[str]()

    def visit(name: str) -> None:
        activity = workflow.activity(name)
        if name in seen or activity is None:
            return
        seen.add(name)
        for target in reversed(list(targets_of(activity))):
            visit(target)
        left.append(name)

    for name in (workflow.initial or "", *(activity.id for activity in workflow.activities)):
        visit(name)
    return left[::-1]


def _lightest(found: Explored) -> int:
    """The fewest bytes on a way from a start to the end."""
    heap = [(found.locations[0].size, 0)] if found.locations else []
    seen = set[int]()
    while heap:
        size, number = heappop(heap)
        if isinstance(found.locations[number].awaited, Done):
            return size
        if number in seen:
            continue
        seen.add(number)
        for after in found.edges[number]:
            heappush(heap, (size + found.locations[after].size, after))
    return 0
