"""The log as people read it: one line a fact, with the fields that tell the story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlock.core.values import Json
from interlock.ledger.queries.status import Shown, placed
from interlock.store.protocol import EventRow, Reader

# Digests, times and places: true, but no help to a reader.
UNSAID = frozenset(
    {
        "kind",
        "at",
        "shown",
        "request",
        "response",
        "workflow_hash",
        "owner",
        "next",
        "question",
        "options",
        "key",
    }
)
NOTHING: tuple[Json, ...] = (None, "", [], {})


class EventLine(Shown, frozen=True):
    """One fact with its place in the log."""

    index: int
    kind: str
    at: int
    run: int | None
    node: int | None
    fact: Mapping[str, Json]

    @property
    def summary(self) -> str:
        """The fact in a few words."""
        return summary_of(self.fact)

    def fields(self) -> dict[str, Json]:
        fields: dict[str, Json] = msgspec.to_builtins(self)
        return fields


def event_lines(
    reader: Reader, session_id: str, kinds: Sequence[str] = (), *, start: int = 0, end: int
) -> list[EventLine]:
    """The facts from `start` up to `end`, of these kinds or of all."""
    rows = reader.events(session_id, start=start, kinds=kinds)
    return [_line(row) for row in rows if row.index < end]


def _line(row: EventRow) -> EventLine:
    return EventLine(
        row.index, row.kind, row.recorded_at, row.run, row.node, msgspec.json.decode(row.payload)
    )


def summary_of(fact: Mapping[str, Json]) -> str:
    """Say what a fact tells, without its digests."""
    match fact:
        case {"kind": "node_output_appended", "notes": str(notes)}:
            return f"{placed(str(fact['step']))}: {notes}"
        case {"kind": "node_output_appended", "artifact": {"kind": artifact}}:
            return f"{placed(str(fact['step']))}: artifact {artifact}"
        case {"kind": "gate_resolved", "gate": gate, "channel": channel}:
            return f"{gate}: {fact.get('option') or fact['how']}, by {channel}"
        case {"kind": "step_completed", "key": str(key)}:
            return placed(key)
        case {"kind": "node_created", "node": node}:
            return (
                f"{node} after {fact['parent']}, {fact['cause']}"
                if fact.get("parent") is not None
                else f"{node}, root"
            )
        case {"kind": "context_set", "delta": Mapping() as delta}:
            return ", ".join(f"{name}={_short(value)}" for name, value in delta.items())
        case {"kind": "call_traced", "tool": tool, "agent": who}:
            return f"{tool}, {who}{': ' + str(fact['error']) if fact.get('error') else ''}"
        case {"kind": "validation_performed", "key": str(key)}:
            return f"{placed(key)}{_whither(fact)}"
        case {"kind": "advance_recorded", "outcome": str(outcome)}:
            return f"from {fact['node']}: {outcome}{_whither(fact)}"
        case _:
            told = {
                name: value for name, value in fact.items() if name not in UNSAID and value not in NOTHING
            }
            return " ".join(f"{name}={_short(value)}" for name, value in told.items())


def _whither(fact: Mapping[str, Json]) -> str:
    blockers = fact.get("blockers")
    if isinstance(blockers, list):
        return ", " + ", ".join(str(one.get("code")) for one in blockers if isinstance(one, Mapping))
    return f" to {fact['child']}" if "child" in fact else ""


def _short(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
