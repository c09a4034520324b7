"""`interlock resume QUERY`: find earlier work, as an agent's `resume_session` does."""

from __future__ import annotations

import click

from interlock.cli.commands.sessions.sessions_ import START_ONE
from interlock.cli.options import json_option, with_ledger
from interlock.cli.screen import (
    NOT_FOUND,
    STATUS_TONES,
    age,
    fit,
    inform,
    line_of,
    paint,
    print_json,
    say,
    status_words,
    stop,
    width,
)
from interlock.core.values import Json
from interlock.ledger.git_context import observe
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import find
from interlock.ledger.queries.status import ref_of

INDENT = " " * 10


@click.command(epilog="Example: interlock resume flaky login")
@click.argument("query", nargs=-1)
@json_option
@with_ledger
def command(ledger: Ledger, query: tuple[str, ...], as_json: bool) -> None:
    """Find earlier work by words or by id. Without a query, show the newest."""
    observed: dict[str, str] = {event.key: event.value for event in observe(ledger.settings.project)}
    found = find(ledger, " ".join(query), observed)
    candidates = found.candidates
    if found.left_out:
        inform("Some of the newest work was not searched; search again in a few seconds.")
        ledger.index_some()
    if as_json:
        listed: list[Json] = [
            {
                "sessionId": candidate.session.session_id,
                "ref": ref_of(candidate.session.session_id),
                "runId": candidate.run.run_id if candidate.run else None,
                "title": candidate.session.title,
                "workflowId": candidate.run.workflow_id if candidate.run else None,
                "status": candidate.run.status if candidate.run else "no run",
                "whyMatched": candidate.why,
                "snippet": candidate.snippet,
                "updatedAt": candidate.session.updated_at,
            }
            for candidate in candidates
        ]
        print_json({"candidates": listed, "leftOut": found.left_out})
    for candidate in () if as_json else candidates:
        session, run = candidate.session, candidate.run
        about = status_words(run.status) if run else "notes only"
        say(paint(fit(f"{ref_of(session.session_id)}  {line_of(session.title)}", width()), "strong"))
        status = paint(about, STATUS_TONES.get(run.status, "plain") if run else "plain")
        named = f"{run.workflow_id}, " if run else ""
        say(f"{INDENT}{named}{status}, {age(session.updated_at)}, {status_words(candidate.why)}")
        if candidate.snippet:
            say(paint(fit(f"{INDENT}{line_of(candidate.snippet)}", width()), "quiet"))
    matched = any(candidate.why != "recency_fallback" for candidate in candidates)
    if not matched and (query or not candidates):
        if not candidates:
            stop(NOT_FOUND, f"No session is stored yet. {START_ONE}")
        stop(NOT_FOUND, "Nothing matches; these are the newest sessions. Try other words.")
    if not as_json:
        ref = ref_of(candidates[0].session.session_id)
        inform(f"To continue in a chat, say: resume the Interlock session {ref}")
