"""What one run is found by: what its context calls the work, its newest notes, and its workflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from unicodedata import normalize

from msgspec import Struct

from interlock.core.definition.program import Plan
from interlock.core.run.output import NOTES_BYTES
from interlock.core.values import Variables, cut
from interlock.ledger.log.projection import StoredOutput, outputs_of, state_of
from interlock.ledger.runs.pinned_workflows import PinDamaged, Pins
from interlock.ledger.runs.position import tip_of
from interlock.store.protocol import NodeRow, Reader, Recorded, RunRow, SessionRow

PREVIEW = 2048
MARK = "wf"
NAMES = (
    *("title", "goal", "ticketId", "ticket_id", "ticket", "issueTitle", "issue_title", "issue", "issueRef"),
    *("issue_ref", "issueNumber", "issue_number", "request"),
)
LONGEST_NAME = 200
NEAREST = 10  # nodes on the path to a tip that are looked at for notes


class RunWords(Struct, frozen=True):
    """The texts of one run, in the columns of the search index."""

    title: str
    notes: str
    workflows: str


def run_words(reader: Reader, pins: Pins, session: SessionRow, run: RunRow) -> RunWords:
    """Return what a run is found by at its preferred tip."""
    node = reader.node(session.session_id, tip_of(session, run))
    names = named(state_of(node).variables) if node else []
    plans = list[Plan]()
    with suppress(PinDamaged):
        plans.append(pins.plan(reader.content, run.workflow_hash))
    newest = next(newest_outputs(reader, session, run), ())
    return RunWords(folded(" ".join(names)), output_words(newest), workflow_words(plans))


def newest_outputs(reader: Reader, session: SessionRow, run: RunRow) -> Iterator[Sequence[StoredOutput]]:
    """Yield the outputs of each attempt that has some, newest first, at the last nodes of a run's path."""
    session_id = session.session_id
    for node in reader.path(session_id, tip_of(session, run), NEAREST):
        rows: list[NodeRow | Recorded] = [node, *reader.blocked(session_id, (node.node,))]
        rows += reader.notes(session_id, (node.node,))
        rows.sort(key=lambda row: row.event_index, reverse=True)
        yield from filter(None, map(outputs_of, rows))


def output_words(outputs: Sequence[StoredOutput]) -> str:
    """Return the notes of an attempt and previews of its artifacts."""
    notes = "\n".join(output.body for output in outputs if output.channel == "recap")
    previews = (cut(output.body, PREVIEW, "") for output in outputs if output.channel == "artifact")
    return folded(" ".join((cut(notes, NOTES_BYTES, ""), *previews)).strip())


def workflow_words(plans: Sequence[Plan]) -> str:
    """Return the marked words of ids, names and tags."""
    texts = (text for plan in plans for text in (plan.workflow.id, plan.workflow.name, *plan.workflow.tags))
    return " ".join(dict.fromkeys(word for text in texts for word in marked(text)))


def marked(text: str) -> list[str]:
    """Mark words as a workflow's: many sessions share them, so a search of notes must not match them."""
    letters = "".join(char if char.isalnum() else " " for char in folded(text).lower())
    return [MARK + word for word in letters.split()]


def named(context: Variables) -> list[str]:
    """Return what the context calls the work, best first (rule 42)."""
    values = (context.get(key) for key in NAMES)
    numbered = (f"#{value}" if type(value) is int else value for value in values)
    return [value[:LONGEST_NAME] for value in numbered if isinstance(value, str) and value.strip()]


def folded(text: str) -> str:
    """Normalize text, so that a query finds it whichever way equal characters are encoded."""
    return normalize("NFKC", text)
