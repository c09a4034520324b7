"""Recaps: the notes of one branch, the newest ones within a byte budget, with a count of those left out.

Notes that belong to a session and to none of its runs are read apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter

from msgspec import Struct

from interlock.core.values import cut
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.projection import leading_to, notes_in, outputs_of
from interlock.ledger.log.records import OutputAppended
from interlock.store.protocol import BlockedRow, NodeRow, Reader

RECAP_BYTES = 8 * 1024
DOWNSTREAM_BYTES = 4 * 1024
ENTRY_BYTES = 16
ARTIFACT_BYTES = 200
MOST_ARTIFACTS = 20
MOST_BRANCHES = 20
CHUNK = 32  # how much of a path is read at first; then twice as much, and so on
FARTHEST = 512
DECISION = '{"kind":"wr.decision"'
POLICY = "kept most recent entries"
NOTED = "noted:"  # the key of a commit of notes that belong to no run begins so
MOST_NOTED = 1000


class RecapEntry(Struct, frozen=True):
    """One note of the recap, or an artifact in one line; `blocked` says that its attempt did not pass."""

    step: str
    notes: str
    recorded_at: int = 0
    blocked: bool = False
    artifact: bool = False


class Recap(Struct, frozen=True):
    """Notes and artifacts, oldest first. `omitted` counts the notes that did not fit (rule 11)."""

    entries: tuple[RecapEntry, ...]
    omitted: int = 0
    artifacts: tuple[RecapEntry, ...] = ()


class BranchChild(Struct, frozen=True):
    """A branch that already leaves from a node."""

    node: int
    notes: str
    preferred: bool


class Branches(Struct, frozen=True):
    """What a rewound node has after it: its newest branches, and a recap of the preferred one."""

    children: tuple[BranchChild, ...]
    downstream: Recap
    omitted: int = 0


def recap(
    reader: Reader,
    node: NodeRow,
    budget: int = RECAP_BYTES,
    above: NodeRow | None = None,
    farthest: int = FARTHEST,
) -> Recap:
    """Walk from the node towards the root, or to the node `above`, until the budget is spent."""
    kept: list[RecapEntry] = []
    artifacts: list[RecapEntry] = []
    room, omitted = budget, 0
    for visited, (step, outputs) in enumerate(_upwards(reader, node, above), 1):
        noted = [entry for entry in outputs if not entry.artifact]
        if len(noted) < len(outputs):
            named = [entry for entry in outputs if entry.artifact]
            artifacts += named[: MOST_ARTIFACTS - len(artifacts)]
        for number, entry in enumerate(noted):
            room -= len(entry.notes.encode()) + len(entry.step) + ENTRY_BYTES
            if room < 0 and kept:
                omitted = len(noted) - number
                break
            kept.append(entry)
        if omitted or visited >= farthest:
            omitted += _noted_above(reader, step, above)
            break
    return Recap(tuple(reversed(kept)), omitted, tuple(reversed(artifacts)))


def _noted_above(reader: Reader, step: NodeRow, above: NodeRow | None) -> int:
    """Count the notes on the path before a node: as its row says, or one by one if some were saved late."""
    if step.parent is None or (above is not None and step.node == above.node):
        return 0
    run = reader.run(step.session_id, step.run)
    if run is None or not run.late_notes:
        return step.entries - (above.entries if above else 0)
    path = _upwards(reader, step, above)
    next(path)  # what was noted at the node itself
    return sum(not entry.artifact for _, outputs in path for entry in outputs)


def _upwards(
    reader: Reader, node: NodeRow, above: NodeRow | None
) -> Iterator[tuple[NodeRow, list[RecapEntry]]]:
    """Yield the nodes of the path, each with what was noted at it on the way down, newest first."""
    start, towards, chunk = node.node, None, CHUNK
    while True:
        path = reader.path(node.session_id, start, chunk)
        numbers, chunk = [step.node for step in path], min(chunk * 2, FARTHEST)
        blocked: dict[int, list[BlockedRow]] = defaultdict(list)
        for row in reader.blocked(node.session_id, numbers):
            blocked[row.node].append(row)
        notes: dict[int | None, list[NodeRow]] = defaultdict(list)
        for note in reader.notes(node.session_id, numbers):
            notes[note.parent].append(note)
        for step in path:
            yield step, _noted_at(blocked.get(step.node, ()), notes.get(step.node, ()), towards)
            if step.parent is None or (above is not None and step.node == above.node):
                return
            start, towards = step.parent, step


def _noted_at(
    blocked: Sequence[BlockedRow], notes: Sequence[NodeRow], towards: NodeRow | None
) -> list[RecapEntry]:
    """Return the outputs at a node, newest first: of blocked attempts, note nodes and the attempt towards."""
    made = [(row.event_index, row.created_at, outputs_of(row), False) for row in notes]
    if blocked:
        leading = leading_to(blocked, towards)
        made += [(row.event_index, row.recorded_at, outputs_of(row), True) for row in leading]
    if towards:
        made.append((towards.event_index, towards.created_at, outputs_of(towards), False))
    if len(made) > 1:
        made.sort(key=itemgetter(0), reverse=True)
    return [
        RecapEntry(output.step, output.body, at, failed)
        if output.channel == "recap"
        else RecapEntry(output.step, cut(output.body, ARTIFACT_BYTES, "…"), at, failed, artifact=True)
        for _, at, outputs, failed in made  # decisions are told by themselves
        for output in reversed(outputs)
        if output.channel == "recap" or not output.body.startswith(DECISION)
    ]


def branches(reader: Reader, node: NodeRow, tip: NodeRow | None) -> Branches | None:
    """Return the newest branches that leave from a node, and the preferred one; None on a tip."""
    children = [child for child in reader.children(node.session_id, node.node) if child.kind == "step"]
    if not children:
        return None
    towards = _child_towards(reader, node, tip)
    older = [child for child in children[:-MOST_BRANCHES] if child.node == towards]
    listed = tuple(
        BranchChild(child.node, next((note.body for note in notes_in(child)), ""), child.node == towards)
        for child in (*older, *children[-MOST_BRANCHES:])
    )
    downstream = Recap(())
    if tip is not None and towards is not None:
        downstream = recap(reader, tip, DOWNSTREAM_BYTES, node)
    return Branches(listed, downstream, len(children) - len(listed))


def _child_towards(reader: Reader, node: NodeRow, tip: NodeRow | None) -> int | None:
    """Return the child of the node that lies on the path to the tip."""
    if tip is None or tip.depth <= node.depth:
        return None
    start = tip.node
    for _ in range((tip.depth - node.depth) // FARTHEST + 2):
        for step in reader.path(node.session_id, start, FARTHEST):
            if step.parent == node.node:
                return step.node
            start = step.parent if step.parent is not None else step.node
    return None


def session_outputs(reader: Reader, session_id: str) -> list[OutputAppended]:
    """Return the notes and artifacts of a session itself, oldest first."""
    commits = sorted(reader.keyed_commits(session_id, NOTED, MOST_NOTED), key=lambda commit: commit.last)
    events = (entry.event for commit in commits for entry in entries_of(commit))
    return [event for event in events if isinstance(event, OutputAppended)]


def session_notes(reader: Reader, session_id: str) -> tuple[str, ...]:
    """Return the notes of a session itself, oldest first."""
    return tuple(event.notes for event in session_outputs(reader, session_id) if event.notes)
