"""Bounded search: every move from every position that is found, to a depth, within a budget."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from interlock.core.definition.program import Plan
from tools.search.adapter import Engine, Position, Setting
from tools.search.alphabet import Alphabet, Move
from tools.search.oracle import Oracle, Seen, Violation
from tools.search.workflows import START, WorkflowData, compiled

DEPTH = 5


@dataclass(frozen=True)
class Node:
    """A position in the search, how the run came to it, and what the oracle has learned on the way."""

    position: Position
    seen: Seen
    depth: int = 0
    parent: Node | None = None
    move: Move | None = None

    def story(self) -> tuple[Move, ...]:
        """Return the moves that led here."""
        moves: list[Move] = []
        node: Node | None = self
        while node is not None and node.move is not None:
            moves.append(node.move)
            node = node.parent
        return tuple(reversed(moves))


@dataclass(frozen=True)
class Found:
    """A violation, with the moves that lead to it."""

    data: WorkflowData
    setting: Setting
    violation: Violation
    moves: tuple[Move, ...]


@dataclass
class Figures:
    """What a search has covered."""

    workflows: int = 0
    states: int = 0
    commands: int = 0
    ended: int = 0
    seconds: float = 0.0
    violations: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    first: dict[tuple[str, str], Found] = field(default_factory=dict)

    def add(self, other: Figures) -> None:
        """Take in the figures of another part of the search; the shortest story of a rule is kept."""
        self.workflows += other.workflows
        self.states += other.states
        self.commands += other.commands
        self.ended += other.ended
        self.seconds = max(self.seconds, other.seconds)
        self.violations += other.violations
        self.kinds += other.kinds
        for key, found in other.first.items():
            self.note(key, found)

    def note(self, key: tuple[str, str], found: Found) -> None:
        known = self.first.get(key)
        if known is None or len(found.moves) < len(known.moves):
            self.first[key] = found


def explore(
    data: WorkflowData,
    setting: Setting,
    figures: Figures,
    *,
    depth: int = DEPTH,
    most: int = 5000,
    until: float = float("inf"),
) -> None:
    """Search one workflow under one setting, breadth first."""
    engine = Engine(Plan(compiled(data)), setting)
    alphabet, oracle = Alphabet(data, engine), Oracle(data)
    sent = engine.start(START)
    seen, violations = oracle.read(Seen(), sent.events)
    assert not violations, violations
    known = {(sent.position.key, seen.key())}
    waiting = deque([Node(sent.position, seen)])
    while waiting and len(known) < most and perf_counter() < until:
        node = waiting.popleft()
        for move in alphabet.moves(node.position):
            after = _after(engine, oracle, node, move, figures)
            if after is None or (key := (after[0].position.key, after[0].seen.key())) in known:
                continue
            known.add(key)
            reached, violations = after
            for violation in violations:
                figures.violations[violation.rule] += 1
                figures.note(
                    (violation.rule, setting.surface), Found(data, setting, violation, reached.story())
                )
            figures.ended += bool(reached.seen.status)
            if not violations and reached.depth < depth:
                waiting.append(reached)
    figures.states += len(known)


def _after(
    engine: Engine, oracle: Oracle, node: Node, move: Move, figures: Figures
) -> tuple[Node, Sequence[Violation]] | None:
    """Return where a move leads, and what is wrong with it; None if nothing came of it."""
    figures.commands += 1
    if move.command is None:
        assert move.position is not None
        return Node(move.position, node.seen, node.depth, node, move), ()
    sent = engine.send(node.position, move.command)
    if not sent.events and sent.position == node.position:
        return None
    seen, violations = oracle.read(node.seen, sent.events)
    return Node(sent.position, seen, node.depth + (not move.by_user), node, move), violations


def search(
    workflows: Iterable[WorkflowData],
    settings: Sequence[Setting],
    *,
    seconds: float,
    depth: int = DEPTH,
    most: int = 5000,
) -> Figures:
    """Search workflows one after the other until the time is over."""
    began, figures = perf_counter(), Figures()
    until = began + seconds
    for data in workflows:
        if perf_counter() >= until:
            break
        for setting in settings:
            explore(data, setting, figures, depth=depth, most=most, until=until)
        figures.workflows += 1
        figures.kinds.update(data.name.partition("[")[2].rstrip("]").split("+"))
    figures.seconds = perf_counter() - began
    return figures


def shared(workflows: Iterable[WorkflowData], part: int, parts: int) -> Iterator[WorkflowData]:
    """Yield every `parts`-th workflow, from `part` on."""
    return (data for index, data in enumerate(workflows) if index % parts == part)
