"""A bundle for people to read: Markdown or one self-contained HTML page.

Titles and notes are written by agents, so nothing in them is ever taken as markup, and no page has scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from unicodedata import category

from msgspec import Struct

from interlock.ledger.transfer.bundle import Bundle, Graph, Meta, Produced, Run

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
    """A heading and, under it, what was said; `kind` tells notes from artifacts."""

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
    for run in session.graph.runs:
        lines += ["", f"## {_plain(_run(run))}", ""]
        for passage in _passages(session.graph, run):
            lines += [f"### {_plain(passage.heading)}", "", *_fenced(passage.body, passage.kind), ""]
    return "\n".join(lines).rstrip() + "\n"


def as_html(bundle: Bundle) -> str:
    """Write the session as one HTML page that loads nothing and runs nothing."""
    meta = bundle.session.meta
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_html(meta.title)}</title><style>{STYLE}</style></head><body>",
            *_page(bundle),
            "</body></html>\n",
        )
    )


def _page(bundle: Bundle) -> Iterator[str]:
    meta, graph = bundle.session.meta, bundle.session.graph
    yield f'<h1>{_html(meta.title)}</h1><p class="quiet">{_html(_about(meta))}</p>'
    if banner := banner_of(meta):
        yield f'<p class="banner"><strong>{_html(banner)}</strong></p>'
    for key, value in graph.observations.items():
        yield f'<p class="quiet">{_html(key)}: {_html(value)}</p>'
    for run in graph.runs:
        yield f"<h2>{_html(_run(run))}</h2>"
        for passage in _passages(graph, run):
            yield f"<h3>{_html(passage.heading)}</h3><pre>{_html(passage.body)}</pre>"


def banner_of(meta: Meta) -> str:
    """What a reader of a damaged session must know first; nothing for a whole one."""
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


def _passages(graph: Graph, run: Run) -> Iterator[Passage]:
    """What was noted in a run, in the order in which it was recorded."""
    of_run = {node.node for node in graph.nodes if node.run == run.run}
    ordered = sorted((one for one in graph.outputs if one.node in of_run), key=_when)
    for one in ordered:
        where = "" if one.child is None else f" to node {one.child}"
        heading = f"{one.step or one.kind} (node {one.node}{where}, {_moment(one.recorded_at)})"
        yield Passage(heading, one.kind, "".join(char for char in one.body if _harmless(char)))


def _harmless(char: str) -> bool:
    """Say whether a character only shows itself, and steers no terminal and no direction of text."""
    return char in "\n\t" or category(char) not in ("Cc", "Cf", "Cs")


def _when(one: Produced) -> tuple[int, int, int]:
    return one.recorded_at, one.node, one.ordinal


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _html(text: str) -> str:
    return escape("".join(filter(_harmless, text)))


def _plain(text: str) -> str:
    """One line in which no character means anything."""
    line = " ".join("".join(filter(_harmless, text)).split())
    return SPECIAL.sub(r"\\\1", escape(line, quote=False))


def _fenced(body: str, kind: str) -> list[str]:
    """Text between fences that are longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + ("json" if kind == "artifact" else "text"), *body.splitlines(), fence]
