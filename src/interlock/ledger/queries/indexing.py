"""What a session is found by: its title and goal, its newest notes and previews, its workflows.

A command only marks its session. The index catches up before a search, and when the server is idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from unicodedata import normalize

import msgspec

from interlock.core.definition.program import Plan
from interlock.core.run.output import Output, within_budget
from interlock.core.run.state import RunState
from interlock.core.values import Variables, cut
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.projection import state_of
from interlock.ledger.log.records import OutputAppended
from interlock.ledger.runs.pinned_workflows import PinDamaged, Pins
from interlock.store.protocol import Reader, SearchRow, SessionRow, Store

PREVIEW = 2048
MARK = "wf"
NAMES = ("title", "goal", "ticketId")
BATCH = 50

_encode = msgspec.json.Encoder().encode


def catch_up(store: Store, pins: Pins, most: int | None = None) -> int:
    """Index the sessions that have changed since they were indexed, a batch to a transaction."""
    done = 0
    while most is None or done < most:
        with store.reading() as reader:
            waiting = reader.unindexed(BATCH if most is None else min(BATCH, most - done))
        if not waiting:
            break
        with store.writing() as writer:
            for session_id in waiting:
                session = writer.session(session_id)
                if session is None:
                    continue
                try:
                    row, texts = _entry(writer, pins, session, writer.search_row(session_id))
                except (ValueError, TypeError):
                    # Its bytes are damaged: it is found only by its title, until a repair marks it again.
                    title_only = search_row(session, (), None, Output())
                    row, texts = msgspec.structs.replace(title_only, indexed_to=session.head_index), []
                writer.index(row, texts)
        done += len(waiting)
        if len(waiting) < BATCH:
            break
    return done


def is_found_wrongly(reader: Reader, pins: Pins, session: SessionRow) -> bool:
    """Say whether a session that is indexed up to its head has another search row than its log makes."""
    known = reader.search_row(session.session_id)
    if known is None or known.indexed_to < session.head_index:
        return False
    return known != _entry(reader, pins, session, None)[0]


def _entry(
    reader: Reader, pins: Pins, session: SessionRow, known: SearchRow | None
) -> tuple[SearchRow, list[str]]:
    """Return the search row of a session, and the texts of the outputs that are not in its known one."""
    start = known.indexed_to + 1 if known else 0
    texts, newest = list[str](), list[OutputAppended]()
    for commit in reader.commits(session.session_id, start=start):
        events = [entry.event for entry in entries_of(commit)]
        outputs = [event for event in events if isinstance(event, OutputAppended)]
        texts += [event.notes or _encode(event.artifact).decode() for event in outputs]
        newest = outputs or newest
    head = reader.node(session.session_id, session.head_node) if session.head_node is not None else None
    notes = "\n".join(event.notes for event in newest if event.notes)
    output = Output(notes, tuple(event.artifact for event in newest if event.artifact))
    plans: list[Plan] = []
    for run in reader.runs(session.session_id):
        with suppress(PinDamaged):
            plans.append(pins.plan(reader.content, run.workflow_hash))
    row = search_row(session, plans, state_of(head) if head else None, output)
    if not newest and known is not None:
        row = msgspec.structs.replace(row, notes=known.notes)
    return msgspec.structs.replace(row, indexed_to=session.head_index), texts


def search_row(
    session: SessionRow, plans: Sequence[Plan], state: RunState | None, output: Output
) -> SearchRow:
    """Return the session's row as its newest output makes it."""
    title = " ".join(dict.fromkeys([session.title, *(named(state.variables) if state else ())]))
    kept = within_budget(output)
    previews = (cut(_encode(artifact).decode(), PREVIEW, "") for artifact in kept.artifacts)
    notes = " ".join((kept.notes, *previews)).strip()
    return SearchRow(session.session_id, session.owner, _folded(title), _folded(notes), workflow_words(plans))


def _folded(text: str) -> str:
    """Normalize text, so that a query finds it whichever way equal characters are encoded."""
    return normalize("NFKC", text)


def workflow_words(plans: Sequence[Plan]) -> str:
    """Return the marked words of ids, names and tags."""
    texts = (text for plan in plans for text in (plan.workflow.id, plan.workflow.name, *plan.workflow.tags))
    return " ".join(dict.fromkeys(word for text in texts for word in marked(text)))


def marked(text: str) -> list[str]:
    """Mark words as a workflow's: many sessions share them, so a search of notes must not match them."""
    letters = "".join(char if char.isalnum() else " " for char in _folded(text).lower())
    return [MARK + word for word in letters.split()]


def named(context: Variables) -> list[str]:
    """Return what the context calls the work, best first (rule 42)."""
    values = (context.get(key) for key in NAMES)
    return [value[:200] for value in values if isinstance(value, str) and value.strip()]
