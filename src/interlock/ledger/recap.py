"""Recaps: what happened along one branch, newest kept, within a byte budget, honest about what was cut."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.store.protocol import AttemptRow, NodeRow, OutputRow, Reader

RECAP_BYTES = 12 * 1024
DOWNSTREAM_BYTES = 6 * 1024
FARTHEST = 500
POLICY = "kept most recent entries"


class Entry(Struct, frozen=True):
    """One note of the recap."""

    step: str
    notes: str
    recorded_at: int = 0


class Recap(Struct, frozen=True):
    """Entries, oldest first. `omitted` counts those that did not fit (rule 11)."""

    entries: tuple[Entry, ...]
    omitted: int = 0


class BranchChild(Struct, frozen=True):
    """A branch that already leaves from a node."""

    node: int
    steps: str
    notes: str
    preferred: bool


class Branches(Struct, frozen=True):
    """What a rewound node has behind it: its branches, and a recap of the preferred one."""

    children: tuple[BranchChild, ...]
    downstream: Recap


def recap(reader: Reader, node: NodeRow, budget: int = RECAP_BYTES, above: NodeRow | None = None) -> Recap:
    """Walk from the node towards the root, or down to the node `above`, until the budget is spent."""
    kept: list[Entry] = []
    earlier = above.entries if above else 0
    room = budget
    for visited, (at, entries) in enumerate(_upwards(reader, node, above)):
        for number, entry in enumerate(entries):
            room -= len(entry.notes.encode()) + len(entry.step) + 8
            if (room < 0 and kept) or visited > FARTHEST:
                return Recap(tuple(reversed(kept)), len(entries) - number + at.entries - earlier)
            kept.append(entry)
        if visited > FARTHEST and at.entries > earlier:
            return Recap(tuple(reversed(kept)), at.entries - earlier)
    return Recap(tuple(reversed(kept)))


def count_entries(reader: Reader, node: NodeRow, child: int) -> int:
    """How many recap entries the child's path has: its parent's, and those made on the way to it."""
    return node.entries + len(_entries(reader, node, child))


def _upwards(reader: Reader, node: NodeRow, above: NodeRow | None) -> Iterator[tuple[NodeRow, list[Entry]]]:
    """Yield each node of the path with its own entries, newest first."""
    here: NodeRow | None = node
    came_from: int | None = None
    while here is not None:
        yield here, list(reversed(_entries(reader, here, came_from)))
        if here.parent is None or (above is not None and here.node == above.node):
            return
        came_from, here = here.node, reader.node(here.session_id, here.parent)


def _entries(reader: Reader, node: NodeRow, child: int | None) -> list[Entry]:
    """Notes made at this node on the way to the child: checkpoints, blocked attempts, the last attempt."""
    rows = [row for row in reader.outputs(node.session_id, node.node) if row.kind == "notes"]
    if not rows:
        return []
    mine = _attempts_towards(reader, node, child)
    return [
        Entry(row.step, row.body, row.recorded_at)
        for row in rows
        if row.child == child or row.attempt in mine
    ]


def _attempts_towards(reader: Reader, node: NodeRow, child: int | None) -> set[int]:
    """The attempts on this node that led to the child, or, on the tip, those that led nowhere yet."""
    attempts = {row.attempt: row for row in reader.attempts(node.session_id, node.node)}
    before = {row.successor: row for row in attempts.values() if row.successor is not None}
    last = next((row for row in attempts.values() if row.child == child and child is not None), None)
    checkpoints = {row.attempt for row in attempts.values() if row.outcome == "checkpointed"}
    if child is None:
        open_ends = {row.attempt for row in attempts.values() if row.outcome == "blocked"}
        return checkpoints | open_ends
    return checkpoints | _chain(before, last)


def _chain(before: dict[int, AttemptRow], last: AttemptRow | None) -> set[int]:
    chain: set[int] = set()
    while last is not None and last.attempt not in chain:
        chain.add(last.attempt)
        last = before.get(last.attempt)
    return chain


def branches(reader: Reader, node: NodeRow, tip: NodeRow | None) -> Branches | None:
    """What already leaves from this node; None on a tip."""
    children = [one for one in reader.children(node.session_id, node.node) if one.kind == "step"]
    if not children:
        return None
    outputs = reader.outputs(node.session_id, node.node)
    towards = _child_towards(reader, node, tip)
    listed = tuple(_child(one, outputs, one.node == towards) for one in children)
    under = (
        recap(reader, tip, DOWNSTREAM_BYTES, node) if tip is not None and towards is not None else Recap(())
    )
    return Branches(listed, under)


def _child(child: NodeRow, outputs: list[OutputRow], preferred: bool) -> BranchChild:
    notes = next((row for row in outputs if row.child == child.node and row.kind == "notes"), None)
    return BranchChild(child.node, notes.step if notes else "", notes.body if notes else "", preferred)


def _child_towards(reader: Reader, node: NodeRow, tip: NodeRow | None) -> int | None:
    """Which child of the node lies on the way to the tip."""
    here = tip
    steps = 0
    while here is not None and here.depth > node.depth and steps < FARTHEST * 20:
        if here.parent == node.node:
            return here.node
        here = reader.node(here.session_id, here.parent) if here.parent is not None else None
        steps += 1
    return None
