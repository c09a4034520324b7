"""A brief as agents read it: one text and one set of fields for every surface that takes up a run again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from interlock.core.run.notices import HOW_GAPS_CLOSE
from interlock.core.values import Json
from interlock.ledger.runs.brief import Brief
from interlock.ledger.runs.recap import POLICY, Recap, RecapEntry


def brief_text(brief: Brief) -> str:
    """Return the brief as text; what others wrote is quoted, so that no line of it is taken for a step."""
    parts = [
        f"Goal: {quoted(brief.goal)}" if brief.goal else "",
        *_section("Context", [f"{line.name}: {line.text}" for line in brief.context]),
        *_section("Throughout", brief.rules),
        *_section("References, in full at the start", brief.references),
        *_section("Decided so far", [f"{line.name}: {line.text}" for line in brief.decisions]),
        *_section("Open gaps", [f"{line.name}: {line.text}" for line in brief.gaps]),
        *([HOW_GAPS_CLOSE] if brief.gaps else ()),
        *brief.loops,
        *_section("Notes of the session", brief.notes),
        recap_text(brief.recap, "So far on this branch"),
        *_section("Left out here", brief.omitted),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(heading: str, lines: list[str] | tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield "\n".join([f"{heading}:", *(f"- {quoted(line)}" for line in lines)])


def quoted(text: str) -> str:
    """Return text that somebody else wrote: one line as it is, more of them each behind a mark."""
    lines = text.splitlines()
    return text if len(lines) < 2 else "\n".join(["", *(f"  > {line}" for line in lines)])


def one_line(text: str) -> str:
    """Return text that somebody else wrote where it is part of a line."""
    return " ".join(text.split())


def recap_text(recap: Recap, heading: str) -> str:
    """Return a recap as text; notes of attempts that did not pass are marked."""
    lines = [f"{heading}:"]
    if recap.omitted:
        lines.append(f"[{recap.omitted} earlier entries omitted: {POLICY}]")
    lines += [f"- {_label(entry)}: {quoted(entry.notes)}" for entry in recap.entries]
    lines += [f"- {_label(entry)}, artifact: {entry.notes}" for entry in recap.artifacts]
    return "\n".join(lines) if len(lines) > 1 else ""


def _label(entry: RecapEntry) -> str:
    return f"{entry.step} (blocked attempt)" if entry.blocked else entry.step


def recap_fields(recap: Recap) -> dict[str, Json]:
    """Return a recap as fields."""
    body: dict[str, Json] = {
        "entries": [
            {"stepId": entry.step, "notes": entry.notes, **({"blocked": True} if entry.blocked else {})}
            for entry in recap.entries
        ],
        "truncated": bool(recap.omitted),
    }
    if recap.artifacts:
        body["artifacts"] = [
            {"stepId": entry.step, "preview": entry.notes, **({"blocked": True} if entry.blocked else {})}
            for entry in recap.artifacts
        ]
    return {**body, "omitted": recap.omitted, "policy": POLICY} if recap.omitted else body


def brief_fields(brief: Brief) -> dict[str, Json]:
    """Return a brief as fields; empty parts are left out."""
    body: dict[str, Json] = {"goal": brief.goal} if brief.goal else {}
    if brief.context:
        body["context"] = {
            line.name: line.text if line.value is UNSET else line.value for line in brief.context
        }
    if brief.rules:
        body["rules"] = list(brief.rules)
    if brief.references:
        body["references"] = list(brief.references)
    if brief.decisions:
        body["decisions"] = {line.name: line.text for line in brief.decisions}
    if brief.gaps:
        body["openGaps"] = {**{line.name: line.text for line in brief.gaps}, "next_action": HOW_GAPS_CLOSE}
    if brief.loops:
        body["loops"] = list(brief.loops)
    if brief.notes:
        body["sessionNotes"] = list(brief.notes)
    if brief.recap.entries or brief.recap.omitted or brief.recap.artifacts:
        body["recap"] = recap_fields(brief.recap)
    return {**body, "leftOut": list(brief.omitted)} if brief.omitted else body
