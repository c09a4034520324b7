"""Bounded search: every move from every position that is found, to a depth, within a budget.

Positions that took few commands and few writes of variables come first.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from random import Random
from time import perf_counter
from typing import Any

from interlock.core.run.preferences import DECISIONS, ENFORCEMENT, PRESETS
from interlock.core.run.state import RunState
from tools.search.adapter import EDITED, Engine, Position, Sent, Setting, Surface
from tools.search.alphabet import Alphabet, Move, alphabets
from tools.search.kept import Kept
from tools.search.oracle import ASKED, STRENGTH, USER, Oracle, Violation
from tools.search.quotient import Quotient
from tools.search.seen import Seen
from tools.search.workflows import WorkflowData, is_held_up, larger, spread, two_items

DEPTH = 5
WRITES = 2  # commands of a run that bring variables, at most
GUARD_REFUSED = "GUARD_REFUSED"
MOST = 1000  # states of one workflow under one setting
WHOLE = 100_000  # the same where it is searched to its end; far more than any has
STRIDE = 37  # between the other settings of successive workflows, so that few of them mix all terms
COUNTS = ("workflows", "runs", "whole", "small", "states", "commands", "ended")
COUNTERS = ("violations", "judged", "kinds", "settings")
SMALL = frozenset(data.name for data in two_items() if is_held_up(data))


@dataclass(frozen=True)
class Node:
    """A position in the search, how the run came to it, and what the oracle has learned on the way."""

    position: Position
    seen: Seen
    depth: int = 0
    writes: int = 0
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
    runs: int = 0
    whole: int = 0
    small: int = 0
    states: int = 0
    commands: int = 0
    ended: int = 0
    kept: int = 0
    seconds: float = 0.0
    violations: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    settings: Counter[str] = field(default_factory=Counter)
    first: dict[tuple[str, str], Found] = field(default_factory=dict)

    def add(self, other: Figures) -> None:
        """Take in the figures of another part of the search."""
        self.take(other.plain())
        self.kept += other.kept
        self.seconds = max(self.seconds, other.seconds)
        for found in other.first.values():
            self.note(found)

    def plain(self) -> dict[str, Any]:
        """Return what was counted."""
        return {name: getattr(self, name) for name in (*COUNTS, *COUNTERS)}

    def take(self, counted: Mapping[str, Any]) -> None:
        """Add what was counted elsewhere."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + counted[name])
        for name in COUNTERS:
            getattr(self, name).update(counted[name])

    def note(self, found: Found) -> None:
        """Keep the shortest story of each rule on each surface."""
        key = (found.violation.rule, found.setting.surface)
        known = self.first.get(key)
        if known is None or len(found.moves) < len(known.moves):
            self.first[key] = found

    def lines(self) -> Iterator[str]:
        """Tell the figures."""
        yield (
            f"{self.workflows} workflows, {self.runs} searches ({self.whole} to their end), "
            f"{self.states} states, {self.commands} commands, {self.ended} runs ended"
        )
        if self.kept:
            yield f"{self.kept} of the workflows were searched by a run that was stopped"
        else:
            yield f"{self.states / max(self.seconds, 0.001):.0f} states/s"
        if self.small:
            every = len(SMALL) * len(MAIN)
            yield f"two items: {self.small} of {every} searches to their end, with one write a run"
        yield f"states by setting: {_listed(self.settings)}"
        yield f"states by item: {_listed(self.kinds)}"
        yield f"rules applied: {_listed(self.judged)}"
        yield f"violations: {_listed(self.violations) or 'none'}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


class Frontier:
    """The nodes that a search has found, and those that it has yet to go on from.

    One of several that `key_of` takes for alike is gone on from; again, where a shorter run or one that has
    written less leads to it.
    """

    def __init__(self, key_of: Callable[[Position, Seen], Hashable]) -> None:
        self.found: dict[Hashable, list[Node]] = {}
        self._key_of = key_of
        self._waiting: list[tuple[int, int, Node]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, node: Node) -> bool:
        """Say whether a node has to be gone on from."""
        others = self.found.setdefault(self._key_of(node.position, node.seen), [])
        if any(other.depth <= node.depth and other.writes <= node.writes for other in others):
            return False
        others.append(node)
        return True

    def push(self, node: Node) -> None:
        self._pushed += 1
        heappush(self._waiting, (node.depth + node.writes, self._pushed, node))

    def pop(self) -> Node:
        """Return a node that few commands and few writes have led to."""
        return heappop(self._waiting)[-1]


def explore(
    data: WorkflowData,
    setting: Setting,
    figures: Figures,
    *,
    depth: int = DEPTH,
    writes: int = WRITES,
    most: int = MOST,
    until: float = float("inf"),
    rule: str = "",
    frontier: Frontier | None = None,
) -> bool:
    """Search one workflow under one setting, the shortest runs first, and say whether to the end.

    Breaking `rule` ends the search.
    A rewind is no move: every position that was found is gone on from in every way.
    """
    surfaces, oracle = alphabets(data, setting), Oracle(data)
    frontier = Frontier(Quotient(data).key) if frontier is None else frontier
    start = Node(Position(RunState()), Seen(), depth=-1)  # to begin is no step
    frontier.add(start)
    frontier.push(start)
    while len(frontier) and len(frontier.found) < most and perf_counter() < until:
        if figures.violations[rule]:
            break
        node = frontier.pop()
        origins, results = list(_origins(surfaces[0], node)), set[Hashable]()
        for engine, move in _moves(surfaces, node, writes):
            for reached, wrong in _after(engine, oracle, origins, move, results):
                figures.commands += 1
                if reached is None:
                    continue
                for violation in wrong:
                    figures.violations[violation.rule] += 1
                    figures.note(Found(data, setting, violation, reached.story()))
                if frontier.add(reached) and reached.depth < depth and not wrong:
                    frontier.push(reached)
    states = len(frontier.found)
    figures.runs += 1
    figures.whole += not len(frontier)
    figures.states += states
    figures.ended += sum(bool(nodes[0].seen.status) for nodes in frontier.found.values())
    figures.judged += oracle.judged
    figures.kinds.update(dict.fromkeys(data.name.partition("[")[2].rstrip("]").split("+"), states))
    figures.settings[f"{setting.decisions} {setting.enforcement} {setting.mode}"] += states
    return not len(frontier)


def _origins(alphabet: Alphabet, node: Node) -> Iterator[Node]:
    """Yield a node, and the node after each edit of the files, which is no step.

    Before a check has run nothing tells sound files from edited ones that are sound: they are left out.
    """
    yield node
    for edit in alphabet.edits(node.position):
        assert edit.position is not None
        if node.seen.checked or edit.position.files != EDITED:
            yield Node(edit.position, node.seen, node.depth, node.writes, node, edit)


def _moves(surfaces: Sequence[Alphabet], node: Node, writes: int) -> Iterator[tuple[Engine, Move]]:
    """Yield what can be sent at a node, with variables as often as a run may bring them."""
    for alphabet in surfaces:
        listed = alphabet if node.writes < writes else alphabet.without_writes
        yield from ((alphabet.engine, move) for move in listed.moves(node.position))


def _after(
    engine: Engine, oracle: Oracle, origins: Sequence[Node], move: Move, results: set[Hashable]
) -> Iterator[tuple[Node | None, Sequence[Violation]]]:
    """Yield where a move leads from a node and after each edit of its files, and what is wrong with it.

    What has not read the files is decided once: after an edit the same events lead to the same node, but
    may be wrong.
    """
    if move.command is None:
        assert move.position is not None
        node = origins[0]
        yield Node(move.position, node.seen, node.depth, node.writes, node, move), ()
        return
    sent: Sent | None = None
    for origin in origins:
        if sent is None or sent.read_files:
            sent = engine.send(origin.position, move.command, move.form)
            reached, wrong = _judged(oracle, origin, move, sent, results)
            yield reached, wrong
            if reached is None and not sent.read_files:
                return
        else:
            reached, wrong = _read(oracle, origin, move, sent)
            yield reached if wrong else None, wrong


def _judged(
    oracle: Oracle, node: Node, move: Move, sent: Sent, results: set[Hashable]
) -> tuple[Node | None, Sequence[Violation]]:
    """Return where a move has led, and what is wrong with it.

    It is None if nothing came of the move, or what came of another, whose `results` are known: the same
    events lead to the same state, and to the same verdict.
    """
    is_idle = not sent.recorded and sent.position == node.position
    if is_idle and not sent.refused.startswith(GUARD_REFUSED):
        return None, ()
    result = (sent.told, move.by_user, move.writes, node.position.files if sent.read_files else "")
    if result in results:
        return None, ()
    results.add(result)
    if wrong := beside_the_log(node.position, move, sent):
        return Node(node.position, node.seen, node.depth, node.writes, node, move), wrong
    return _read(oracle, node, move, sent)


def _read(oracle: Oracle, node: Node, move: Move, sent: Sent) -> tuple[Node, Sequence[Violation]]:
    """Let the oracle read what was recorded."""
    seen, violations = oracle.read(node.seen, sent.events, node.position.files)
    depth, writes = node.depth + (not move.by_user), node.writes + move.writes
    return Node(sent.position, seen, depth, writes, node, move), violations


def beside_the_log(position: Position, move: Move, sent: Sent) -> list[Violation]:
    """Return what no log shows: a refusal by the guard alone, an answer that the user has not given."""
    wrong = []
    if sent.refused.startswith(GUARD_REFUSED):
        wrong.append(Violation("guard", f"only the guard has refused it: {sent.refused}"))
    for event in sent.events if not move.by_user else ():
        is_the_users = event["kind"] == "gate_resolved" and event["channel"] in USER
        if is_the_users and event["shown"] not in position.decisions:
            wrong.append(Violation("not-given", f"the user has not answered {event['gate']}"))
        decided = position.decisions.get(event["shown"]) if event["kind"] == "gate_resolved" else None
        if decided is not None and STRENGTH[event["channel"]] < STRENGTH[decided.channel]:
            wrong.append(Violation("replaced", f"the user's answer to {event['gate']} was not used"))
    given = Counter(
        it["shown"] for it in sent.events if it["kind"] == "gate_resolved" and it["channel"] in ASKED
    )
    if any(count > 1 for count in given.values()):
        wrong.append(Violation("not-given", "one answer of the user serves two questions"))
    return wrong


SURFACES: tuple[Surface, ...] = ("execution", "session", "gated", "navigation")
MAIN = tuple(Setting(surface) for surface in SURFACES)
OTHERS = tuple(
    setting
    for setting in (
        Setting(surface, decisions, enforcement, mode)
        for mode in PRESETS
        for enforcement in ENFORCEMENT
        for decisions in DECISIONS
        for surface in SURFACES
    )
    if setting not in MAIN
) + tuple(Setting(surface, also=other) for surface in SURFACES for other in SURFACES if surface != other)


def search(
    workflows: Iterable[WorkflowData],
    seconds: float,
    *,
    most: int = MOST,
    least: int = 0,
    whole: float = 0,
    kept: Kept | None = None,
) -> Figures:
    """Search workflows one after the other until the time is over, and at least so many states.

    Each is searched on every surface under policy `user`, strict and guided, and under one other setting.
    Those of two items are searched to their end, for `whole` seconds at most, unless that was `kept`.
    """
    began, figures = perf_counter(), Figures()
    for index, data in enumerate(workflows):
        is_whole = perf_counter() < began + whole and data.name in SMALL
        if is_whole and kept is not None and data.name in kept.figures:
            figures.take(kept.figures[data.name])
            figures.kept += 1
            continue
        end = began + (whole if is_whole else seconds) if figures.states >= least else float("inf")
        found = _searched(data, OTHERS[index * STRIDE % len(OTHERS)], most, end, is_whole=is_whole)
        figures.add(found)
        if perf_counter() >= end:
            break
        if kept is not None and is_whole and not found.violations:
            kept.keep(data.name, found.plain())
        gc.collect()
    figures.seconds = perf_counter() - began
    return figures


def _searched(data: WorkflowData, other: Setting, most: int, end: float, *, is_whole: bool) -> Figures:
    """Search a workflow under the main settings and another."""
    figures = Figures(workflows=1)
    for setting in MAIN:
        if is_whole:
            figures.small += explore(data, setting, figures, writes=1, most=WHOLE, until=end)
        else:
            explore(data, setting, figures, most=most, until=end)
    explore(data, other, figures, most=most, until=end)
    return figures


def all_workflows(seed: int) -> Iterator[WorkflowData]:
    """Yield every workflow of two items in an order that the seed gives, then larger ones for ever."""
    random = Random(seed)
    for workflows in (two_items(), spread()):
        listed = [data for data in workflows if is_held_up(data)]
        random.shuffle(listed)
        yield from listed
    yield from larger(seed)


def search_in_parallel(
    seed: int, seconds: float, processes: int, *, most: int = MOST, least: int = 0, whole: float = 0
) -> Figures:
    """Share the workflows out to processes, and add up what they find."""
    figures = Figures()
    with ProcessPoolExecutor(processes) as pool:
        parts = [
            pool.submit(_part, seed, seconds, part, processes, most, least // processes, whole)
            for part in range(processes)
        ]
        for part in parts:
            figures.add(part.result())
    return figures


def _part(seed: int, seconds: float, part: int, parts: int, most: int, least: int, whole: float) -> Figures:
    gc.disable()  # it finds next to nothing while a workflow is searched, and takes a sixth of the time
    shared = islice(all_workflows(seed), part, None, parts)
    return search(shared, seconds, most=most, least=least, whole=whole, kept=Kept() if whole else None)
