"""The log as people read it: one line an event, with the fields that tell the story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlock.core.values import Json
from interlock.ledger.log.chain import Logged, kind_of, logged
from interlock.ledger.queries.status import Shown, placed
from interlock.ledger.runs.positions import Positions

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
    """One event with its place in the log."""

    index: int
    kind: str
    at: int
    run: int | None
    node: int | None
    event: Mapping[str, Json]

    @property
    def summary(self) -> str:
        """The event in a few words."""
        return summary_of(self.event)

    def fields(self) -> dict[str, Json]:
        fields: dict[str, Json] = msgspec.to_builtins(self)
        return fields


def event_lines(
    positions: Positions, session_id: str, kinds: Sequence[str] = (), *, start: int = 0, end: int
) -> list[EventLine]:
    """The events from `start` up to `end`, of these kinds or of all."""
    with positions.store.reading() as reader:
        rows = logged(reader.commits(session_id, start=start), end=end)
        lines = [_line(row) for row in rows if start <= row.index < end]
    return [line for line in lines if not kinds or line.kind in kinds]


def _line(row: Logged) -> EventLine:
    event: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(row.event))
    return EventLine(row.index, kind_of(row.event), row.at, row.run, row.node, event)


def summary_of(event: Mapping[str, Json]) -> str:
    """Say what an event tells, without its digests."""
    match event:
        case {"kind": "node_output_appended", "notes": str(notes)}:
            return f"{placed(str(event['step']))}: {notes}"
        case {"kind": "node_output_appended", "artifact": {"kind": artifact}}:
            return f"{placed(str(event['step']))}: artifact {artifact}"
        case {"kind": "gate_resolved", "gate": gate, "channel": channel}:
            return f"{gate}: {event.get('option') or event['how']}, by {channel}"
        case {"kind": "step_completed", "key": str(key)}:
            return placed(key)
        case {"kind": "node_created", "node": node}:
            return (
                f"{node} after {event['parent']}, {event['cause']}"
                if event.get("parent") is not None
                else f"{node}, root"
            )
        case {"kind": "context_set", "delta": Mapping() as delta}:
            return ", ".join(f"{name}={_short(value)}" for name, value in delta.items())
        case {"kind": "call_traced", "tool": tool, "agent": who}:
            return f"{tool}, {who}{': ' + str(event['error']) if event.get('error') else ''}"
        case {"kind": "validation_performed", "key": str(key)}:
            return f"{placed(key)}{_whither(event)}"
        case {"kind": "advance_recorded", "outcome": str(outcome)}:
            return f"from {event['node']}: {outcome}{_whither(event)}"
        case _:
            told = {
                name: value for name, value in event.items() if name not in UNSAID and value not in NOTHING
            }
            return " ".join(f"{name}={_short(value)}" for name, value in told.items())


def _whither(event: Mapping[str, Json]) -> str:
    blockers = event.get("blockers")
    if isinstance(blockers, list):
        return ", " + ", ".join(str(one.get("code")) for one in blockers if isinstance(one, Mapping))
    return f" to {event['child']}" if "child" in event else ""


def _short(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
