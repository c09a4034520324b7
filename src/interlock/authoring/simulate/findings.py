"""What an exploration shows: where runs get stuck, what nothing reaches, and how much an agent reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from interlock.authoring.simulate.coverage import CoveragePart, coverage_parts, label
from interlock.authoring.simulate.explore import MOST_STATES, Explored, explore
from interlock.core.definition.workflow import Workflow
from interlock.core.engine.paths.exits import possible_exits
from interlock.core.run.outcomes import Done, NeedAnswer, NeedInput, NeedStep


class Stuck(Struct, frozen=True):
    """A position that a run can reach and not leave, and why."""

    position: str
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
        """Whether some run would get stuck."""
        return not self.ends or bool(self.dead_ends or self.impassable)

    @property
    def sound(self) -> bool:
        """Whether nothing was found that needs attention."""
        return not (self.broken or self.unreached or self.limited)


def simulate(workflow: Workflow, most: int = MOST_STATES) -> Simulated:
    """Explore the workflow and summarize."""
    explored = explore(workflow, most)
    finishing = _finishing(explored)
    gates = {
        number: label(state.activity, state.id)
        for number, state in enumerate(explored.states)
        if isinstance(state.awaited, NeedAnswer)
    }
    passable = {gate for number, gate in gates.items() if number in finishing}
    impassable = tuple(gate for gate in dict.fromkeys(gates.values()) if gate not in passable)
    opening = sum(len(line.encode()) for line in (*workflow.rules, *workflow.preconditions))
    forward = _ForwardGraph(workflow, explored)
    return Simulated(
        workflow=workflow.id,
        states=len(explored.states),
        whole=not explored.cut,
        ends=bool(finishing),
        dead_ends=() if explored.cut else tuple(dict.fromkeys(_dead_ends(explored, finishing))),
        impassable=() if explored.cut else impassable,
        # An item that is never skipped is fine.
        unreached=tuple(
            part for part in coverage_parts(workflow) if part not in explored.parts and part.kind != "skip"
        ),
        limited=tuple(
            label(activity, loop)
            for (activity, loop), reasons in explored.loop_exits.items()
            if reasons == {"limit"}
        ),
        longest=tuple(forward.longest()),
        most_bytes=opening + forward.most_bytes(),
        least_bytes=opening + _least_bytes(explored),
    )


def _finishing(explored: Explored) -> set[int]:
    """Return the states from which the end can be reached."""
    before: list[list[int]] = [[] for _ in explored.states]
    for number, following in enumerate(explored.edges):
        for after in following:
            before[after].append(number)
    pending = [number for number, state in enumerate(explored.states) if isinstance(state.awaited, Done)]
    reached = set(pending)
    while pending:
        for number in before[pending.pop()]:
            if number not in reached:
                reached.add(number)
                pending.append(number)
    return reached


def _dead_ends(explored: Explored, finishing: set[int]) -> Iterator[Stuck]:
    """Yield states without successors; if there are none, one of those that go round and never end."""
    unfinished = [state for number, state in enumerate(explored.states) if number not in finishing]
    stuck = [
        explored.states[number]
        for number, following in enumerate(explored.edges)
        if not following and number not in finishing
    ]
    for state in stuck:
        awaited = state.awaited
        if not isinstance(awaited, NeedInput):
            yield Stuck(label(state.activity, state.id), "no answer lets the run continue")
        elif awaited.loop is not None:
            yield Stuck(f"loop {awaited.loop.id}", awaited.message)
        else:
            yield Stuck(f"activity {state.activity}", awaited.message)
    if unfinished and not stuck:
        first = unfinished[0]
        yield Stuck(label(first.activity, first.id), "from here the run repeats and never ends")


class _ForwardGraph:
    """The states without the edges that close a circle or enter an earlier activity.

    Runs may repeat for ever, so the longest one is searched among those that only go forward.
    """

    def __init__(self, workflow: Workflow, explored: Explored) -> None:
        self._states = explored.states
        rank = {name: number for number, name in enumerate(_in_order(workflow))}

        def turns_back(number: int, after: int) -> bool:
            from_rank = rank.get(explored.states[number].activity, -1)
            return (number, after) in explored.entering and rank.get(
                explored.states[after].activity, 0
            ) <= from_rank

        self._edges = [
            [after for after in following if not turns_back(number, after)]
            for number, following in enumerate(explored.edges)
        ]
        self._order = self._postorder()

    def _postorder(self) -> list[int]:
        """Order states after their successors, and drop edges into unfinished states: they close circles."""
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

    def _best(self, weights: Sequence[int]) -> tuple[list[int], list[int | None]]:
        """Return the greatest sum of weights from each state on, and the successor on that path."""
        best: list[int] = [0] * len(weights)
        successor: list[int | None] = [None] * len(weights)
        index_of = {number: index for index, number in enumerate(self._order)}
        for number in self._order:
            later = [after for after in self._edges[number] if index_of[after] < index_of[number]]
            after = max(later, key=lambda candidate: best[candidate], default=None)
            best[number] = weights[number] + (best[after] if after is not None else 0)
            successor[number] = after
        return best, successor

    def most_bytes(self) -> int:
        return max(self._best([state.size for state in self._states])[0], default=0)

    def longest(self) -> Iterator[str]:
        weights = [int(isinstance(state.awaited, (NeedStep, NeedAnswer))) for state in self._states]
        best, successor = self._best(weights)
        number: int | None = max(range(len(best)), key=lambda candidate: best[candidate], default=None)
        while number is not None:
            if weights[number]:
                yield label(self._states[number].activity, self._states[number].id)
            number = successor[number]


def _in_order(workflow: Workflow) -> list[str]:
    """Return the activities in the order in which a run meets them, each before those that follow it."""
    left, seen = list[str](), set[str]()

    def visit(name: str) -> None:
        activity = workflow.activity(name)
        if name in seen or activity is None:
            return
        seen.add(name)
        for exit_ in reversed(list(possible_exits(workflow, activity))):
            visit(exit_.to)
        left.append(name)

    for name in (workflow.initial or "", *(activity.id for activity in workflow.activities)):
        visit(name)
    return left[::-1]


def _least_bytes(explored: Explored) -> int:
    """Return the fewest bytes on a path from the start to the end."""
    heap = [(explored.states[0].size, 0)] if explored.states else []
    seen = set[int]()
    while heap:
        size, number = heappop(heap)
        if isinstance(explored.states[number].awaited, Done):
            return size
        if number in seen:
            continue
        seen.add(number)
        for after in explored.edges[number]:
            heappush(heap, (size + explored.states[after].size, after))
    return 0
