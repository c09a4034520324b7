"""Recaps: what happened along one branch, newest kept, within a byte budget, honest about what was cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from interlock.store.protocol import AttemptRow, NodeRow, OutputRow, PathRow, Reader

RECAP_BYTES = 8 * 1024
DOWNSTREAM_BYTES = 4 * 1024
ENTRY_BYTES = 16
CHUNK = 64
FARTHEST = 512
POLICY = "kept most recent entries"


class RecapEntry(Struct, frozen=True):
    """One note of the recap."""

    step: str
    notes: str
    recorded_at: int = 0


class Recap(Struct, frozen=True):
    """Entries, oldest first. `omitted` counts those that did not fit (rule 11)."""

    entries: tuple[RecapEntry, ...]
    omitted: int = 0


class BranchChild(Struct, frozen=True):
    """A branch that already leaves from a node."""

    node: int
    notes: str
    preferred: bool


class Branches(Struct, frozen=True):
    """What a rewound node has behind it: its branches, and a recap of the preferred one."""

    children: tuple[BranchChild, ...]
    downstream: Recap


def recap(
    reader: Reader,
    node: NodeRow,
    budget: int = RECAP_BYTES,
    above: NodeRow | None = None,
    farthest: int = FARTHEST,
) -> Recap:
    """Walk from the node towards the root, or to the node `above`, until the budget is spent."""
    kept: list[RecapEntry] = []
    earlier = above.entries if above else 0
    room = budget
    for target, entries in _upwards(reader, node, above, farthest):
        for number, entry in enumerate(entries):
            room -= len(entry.notes.encode()) + len(entry.step) + ENTRY_BYTES
            if room < 0 and kept:
                return Recap(tuple(reversed(kept)), len(entries) - number + target.entries - earlier)
            kept.append(entry)
        if target.last and target.entries > earlier:
            return Recap(tuple(reversed(kept)), target.entries - earlier)
    return Recap(tuple(reversed(kept)))


def count_entries(reader: Reader, node: NodeRow, child: int) -> int:
    """How many recap entries the child's path has: its parent's, and those made on the way to it."""
    rows = [row for row in reader.outputs(node.session_id, node.node) if row.kind == "notes"]
    loose = any(row.child is None for row in rows)
    mine = attempts_towards(reader.attempts(node.session_id, node.node), child) if loose else set()
    return node.entries + sum(row.child == child or row.attempt in mine for row in rows)


class _Place(Struct, frozen=True):
    """A node on the path; `last` where the walk gives up before the root."""

    entries: int
    last: bool = False


def _upwards(
    reader: Reader, node: NodeRow, above: NodeRow | None, farthest: int
) -> Iterator[tuple[_Place, list[RecapEntry]]]:
    """Yield each node of the path with its own entries, newest first."""
    visited, here, towards = 0, node.node, None
    while True:
        rows = reader.path(node.session_id, here, towards, CHUNK)
        groups = _grouped(rows)
        for number, group in enumerate(groups):
            visited += 1
            given_up = visited >= farthest and number == len(groups) - 1
            yield _Place(group[0].entries, given_up), _entries(reader, node.session_id, group)
            if group[0].parent is None or given_up or (above and group[0].node == above.node):
                return
        last = groups[-1][0]
        assert last.parent is not None
        here, towards = last.parent, last.node


def _grouped(rows: list[PathRow]) -> list[list[PathRow]]:
    groups: list[list[PathRow]] = []
    for row in rows:
        if not groups or groups[-1][0].node != row.node:
            groups.append([])
        groups[-1].append(row)
    return groups


def _entries(reader: Reader, session_id: str, group: list[PathRow]) -> list[RecapEntry]:
    """Notes made at this node on the way down: checkpoints, blocked attempts, the last attempt."""
    target = group[0]
    noted = [row for row in group if row.body is not None]
    loose = any(row.child is None for row in noted)
    mine = attempts_towards(reader.attempts(session_id, target.node), target.towards) if loose else set()
    return [
        RecapEntry(row.step or "", row.body or "", row.recorded_at or 0)
        for row in noted
        if (row.child is not None and row.child == target.towards) or row.attempt in mine
    ]


def attempts_towards(attempts: Sequence[AttemptRow], child: int | None) -> set[int]:
    """The attempts on a node that led to the child, all of them at the node itself.

    While the child is being made its own attempt is not recorded yet: then the open ones lead to it.
    """
    checkpoints = {row.attempt for row in attempts if row.outcome == "checkpointed"}
    if child is None:
        return checkpoints | {row.attempt for row in attempts if row.outcome == "blocked"}
    before = {row.successor: row for row in attempts if row.successor is not None}
    last = next((row for row in attempts if row.child == child), None)
    return checkpoints | (_chain(before, last) if last is not None else _open(attempts, before))


def _open(attempts: Sequence[AttemptRow], before: dict[int, AttemptRow]) -> set[int]:
    """Blocked attempts that have led to no child yet."""
    blocked = {row.attempt for row in attempts if row.outcome == "blocked"}
    return blocked.difference(*(_chain(before, row) for row in attempts if row.outcome == "advanced"))


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
    return BranchChild(child.node, notes.body if notes else "", preferred)


def _child_towards(reader: Reader, node: NodeRow, tip: NodeRow | None) -> int | None:
    """Which child of the node lies on the way to the tip."""
    if tip is None or tip.depth <= node.depth:
        return None
    here, towards = tip.node, None
    for _ in range((tip.depth - node.depth) // CHUNK + 2):
        for row in reader.path(node.session_id, here, towards, CHUNK):
            if row.node == node.node:
                return row.towards
            here, towards = row.parent if row.parent is not None else row.node, row.node
    return None
