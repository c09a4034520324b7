"""A bundle for people to read: Markdown or one self-contained HTML page.

Titles and notes are written by agents, so nothing in them is ever taken as markup, and no page has scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from unicodedata import category

import msgspec
from msgspec import Struct

from interlock.core.run.channels import named
from interlock.core.run.events import GateResolved
from interlock.ledger.log.chain import logged
from interlock.ledger.log.records import DecisionRecorded, OutputAppended
from interlock.ledger.transfer.bundle import Bundle, Meta, Run, Session, commit_rows

SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$@]|!(?=\[)|(?<=\])\(|:(?=//))")
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;"
    "color:#1c1c1e;background:#fff}pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f6;"
    "padding:.75rem;border-radius:6px}.banner{border-left:4px solid #b3261e;padding:.5rem .75rem;"
    "background:#fdeceb}.quiet{color:#5f6368}"
    "@media(prefers-color-scheme:dark){body{color:#e8e8ea;background:#1c1c1e}pre{background:#2a2a2d}"
    ".banner{background:#3b1d1b}.quiet{color:#9aa0a6}}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Passage(Struct, frozen=True):
    """A heading and the text below it; `kind` tells notes, artifacts and decisions apart."""

    heading: str
    kind: str
    body: str


def as_markdown(bundle: Bundle) -> str:
    """Write the session as Markdown: notes and artifacts as fenced text, everything else escaped."""
    session = bundle.session
    lines = [f"# {_plain(session.meta.title)}", "", _plain(_about(session.meta)), ""]
    if banner := banner_of(session.meta):
        lines += [f"> **{_plain(banner)}**", ""]
    for key, value in session.graph.observations.items():
        lines.append(f"- {_plain(key)}: {_plain(value)}")
    for heading, passages in _chapters(session):
        lines += ["", f"## {_plain(heading)}", ""]
        for passage in passages:
            # The fence is longer than any in the text.
            longest = max((len(ticks) for ticks in re.findall(r"`+", passage.body)), default=0)
            fence, language = "`" * max(3, longest + 1), "json" if passage.kind == "artifact" else "text"
            lines += [f"### {_plain(passage.heading)}", "", fence + language, *passage.body.splitlines()]
            lines += [fence, ""]
    return "\n".join(lines).rstrip() + "\n"


def as_html(bundle: Bundle) -> str:
    """Write the session as one HTML page that loads nothing and runs nothing."""
    session = bundle.session
    meta, graph = session.meta, session.graph
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_html(meta.title)}</title><style>{STYLE}</style></head><body>",
        f'<h1>{_html(meta.title)}</h1><p class="quiet">{_html(_about(meta))}</p>',
    ]
    if banner := banner_of(meta):
        parts.append(f'<p class="banner"><strong>{_html(banner)}</strong></p>')
    for key, value in graph.observations.items():
        parts.append(f'<p class="quiet">{_html(key)}: {_html(value)}</p>')
    for heading, passages in _chapters(session):
        parts.append(f"<h2>{_html(heading)}</h2>")
        for passage in passages:
            parts.append(f"<h3>{_html(passage.heading)}</h3><pre>{_html(passage.body)}</pre>")
    return "".join((*parts, "</body></html>\n"))


def banner_of(meta: Meta) -> str:
    """Return what a reader of a damaged session must know first; nothing for a sound one."""
    if meta.health == "healthy":
        return ""
    return (
        f"This session is damaged ({meta.health}: {meta.health_reason}). What follows is the valid part:"
        f" {meta.events} events; {meta.lost_events} are lost. `interlock doctor --repair` lets it go on."
    )


def _about(meta: Meta) -> str:
    return f"{meta.session_id}, {_moment(meta.created_at)} to {_moment(meta.updated_at)}"


def _run(run: Run) -> str:
    return f"{run.workflow_id}, {run.status.replace('_', ' ')}"


def _chapters(session: Session) -> Iterator[tuple[str, list[Passage]]]:
    """Yield the notes of the session itself, if it has some, and each of its runs."""
    if own := list(_passages(session, None)):
        yield "Notes of the session", own
    for run in session.graph.runs:
        yield _run(run), list(_passages(session, run.run))


def _passages(session: Session, run: int | None) -> Iterator[Passage]:
    """Yield what was handed in and decided in a run, or in none, and by whom, in the order of the log."""
    log = logged(commit_rows(session, session.meta.session_id))
    decided: dict[tuple[str, str], str] = {}  # who answered a question before the agent used the answer
    for entry in (entry for entry in log if entry.run == run):
        event, by, at = entry.event, f"by {entry.principal}", _moment(entry.at)
        by = f"node {event.node}, {by}" if isinstance(event, OutputAppended) and event.node >= 0 else by
        match event:
            case OutputAppended(channel="recap"):
                heading = f"{event.step or 'notes'} ({by}, {at})"
                yield Passage(heading, "notes", "".join(filter(_harmless, event.notes)))
            case OutputAppended():
                heading = f"{event.step or 'artifact'} ({by}, {at})"
                body = msgspec.json.encode(event.artifact).decode()
                yield Passage(heading, "artifact", "".join(filter(_harmless, body)))
            case DecisionRecorded():
                decided[event.gate, event.shown] = by
            case GateResolved():
                by = decided.get((event.gate, event.shown), by)
                heading = (
                    f"{event.gate}: {event.option or event.how} ({by}, channel {named(event.channel)}, {at})"
                )
                body = f"{event.question}\n\n{event.note}".strip() or event.how
                yield Passage(heading, "decision", "".join(filter(_harmless, body)))


def _harmless(char: str) -> bool:
    """Say whether a character has no effect on a terminal or on the direction of text."""
    return char in "\n\t" or category(char) not in ("Cc", "Cf", "Cs")


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _html(text: str) -> str:
    return escape("".join(filter(_harmless, text)))


def _plain(text: str) -> str:
    """Escape a text as one line of Markdown without markup."""
    line = " ".join("".join(filter(_harmless, text)).split())
    return SPECIAL.sub(r"\\\1", escape(line, quote=False))
