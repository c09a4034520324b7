"""The log as people read it: one line per event, with a summary instead of its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from interlock.core.run.channels import OF_CHANNEL, named, strength
from interlock.core.values import Json
from interlock.ledger.decisions.recorded import imported_up_to
from interlock.ledger.log.chain import Logged, kind_of, logged
from interlock.ledger.log.records import LogEntry
from interlock.ledger.queries.status import Shown, step_label
from interlock.ledger.runs.positions import Positions

# Digests and times say nothing to a reader; the line shows the position of the event itself.
NOT_SUMMARIZED = frozenset(
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
DECISIONS = ("gate_resolved", "decision_recorded")
EMPTY: tuple[Json, ...] = (None, "", [], {})
EVENT_KINDS = tuple(sorted(str(event.__struct_config__.tag) for event in get_args(LogEntry)))


class EventLine(Shown, frozen=True):
    """One event with its position in the log."""

    index: int
    kind: str
    at: int
    run: int | None
    node: int | None
    event: Mapping[str, Json]
    principal: str
    imported: bool = False

    def summary(self, owner: str) -> str:
        """Return the event in a few words, and whose it is if that is not the owner of the session.

        A decision that came with a bundle is not this store's own.
        """
        text = summary_of(self.event)
        if self.imported and self.kind in DECISIONS:
            text += ", imported"
        return text if self.principal == owner else f"{self.principal}: {text}"

    def fields(self) -> dict[str, Json]:
        fields: dict[str, Json] = msgspec.to_builtins(self)
        return fields


def event_lines(
    positions: Positions, session_id: str, kinds: Sequence[str] = (), *, start: int = 0, end: int
) -> list[EventLine]:
    """Return the events from `start` up to `end`, of these kinds or of all."""
    lines: list[EventLine] = []
    with positions.store.reading() as reader:
        imported = imported_up_to(reader, session_id)
        for row in logged(reader.commits(session_id, start=start), end=end):
            if start <= row.index < end and (not kinds or kind_of(row.event) in kinds):
                lines.append(event_line(row, imported))
    return lines


def event_line(row: Logged, imported: int) -> EventLine:
    """Return an event with its fields, and the strength of its channel; `imported` is the last that was."""
    fields: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(row.event))
    if (channel := fields.get("channel")) in OF_CHANNEL:
        fields["strength"] = strength(str(channel))
    is_imported = row.index <= imported
    return EventLine(
        row.index, kind_of(row.event), row.at, row.run, row.node, fields, row.principal, is_imported
    )


def summary_of(event: Mapping[str, Json]) -> str:
    """Summarize an event without its digests and times."""
    match event:
        case {"kind": "node_output_appended", "notes": str(notes)}:
            return f"{step_label(str(event['step']))}: {notes}"
        case {"kind": "node_output_appended", "artifact": {"kind": artifact}}:
            return f"{step_label(str(event['step']))}: artifact {artifact}"
        case {"kind": "gate_resolved", "gate": gate, "channel": str(channel)}:
            return f"{gate}: {event.get('option') or event['how']}, by {named(channel)}"
        case {"kind": "step_completed", "key": str(key)}:
            return step_label(key)
        case {"kind": "check_ran", "check": check, "ended": str(ended)}:
            how = f"exit {event.get('exit')}" if ended == "exited" else ended.replace("_", " ")
            why = f": {event['reason']}" if event.get("reason") else ""
            return f"{check} {'passed' if event.get('passed') else 'failed'}, run by the server, {how}{why}"
        case {"kind": "node_created", "node": node}:
            return (
                f"{node} after {event['parent']}, {event['cause']}"
                if event.get("parent") is not None
                else f"{node}, root"
            )
        case {"kind": "context_set", "delta": Mapping() as delta}:
            return ", ".join(f"{name}={_short(value)}" for name, value in delta.items())
        case {"kind": "call_traced", "tool": tool, "agent": agent}:
            return f"{tool}, {agent}{': ' + str(event['error']) if event.get('error') else ''}"
        case {"kind": "validation_performed", "key": str(key)}:
            return f"{step_label(key)}{_blockers_or_child(event)}"
        case {"kind": "advance_recorded", "outcome": str(outcome)}:
            return f"from {event['node']}: {outcome}{_blockers_or_child(event)}"
        case _:
            return " ".join(
                f"{name}={_short(value)}"
                for name, value in event.items()
                if name not in NOT_SUMMARIZED and value not in EMPTY
            )


def _blockers_or_child(event: Mapping[str, Json]) -> str:
    blockers = event.get("blockers")
    if isinstance(blockers, list):
        return ", " + ", ".join(
            str(blocker.get("code")) for blocker in blockers if isinstance(blocker, Mapping)
        )
    return f" to {event['child']}" if "child" in event else ""


def _short(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
