"""`interlock resume QUERY`: find earlier work, as an agent's `resume_session` does."""

from __future__ import annotations

import click

from interlock.cli.exits import NOT_FOUND
from interlock.cli.options import json_option, print_json
from interlock.cli.reach import with_ledger
from interlock.cli.screen import STATUS_TONES, age, fit, line_of, paint, say, stop, talk, width, words
from interlock.core.values import Json
from interlock.ledger.git_context import observe
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import Candidate, find
from interlock.ledger.queries.status import ref_of


@click.command(epilog="Example: interlock resume flaky login")
@click.argument("query", nargs=-1)
@json_option
@with_ledger
def command(ledger: Ledger, query: tuple[str, ...], as_json: bool) -> None:
    """Find earlier work by words, by id, or, without either, by what was worked on last."""
    seen: dict[str, str] = {event.key: event.value for event in observe(ledger.settings.project)}
    found = find(ledger, " ".join(query), ledger.settings.owner, seen)
    if as_json:
        print_json({"candidates": [_fields(one) for one in found]})
    for one in () if as_json else found:
        _show(one)
    if not any(one.why != "recency_fallback" for one in found) and (query or not found):
        rest = "These are the newest." if found else "Nothing is stored yet."
        stop(NOT_FOUND, f"Nothing fits. {rest} Try other words, or see `interlock sessions`.")
    if not as_json:
        talk(f"To go on in a chat, say: resume the Interlock session {ref_of(found[0].session.session_id)}")


def _show(one: Candidate) -> None:
    tone = STATUS_TONES.get(one.run.status, "plain")
    head = f"{ref_of(one.session.session_id)}  {line_of(one.session.title)}"
    say(paint(fit(head, width()), "strong"))
    about = f"          {one.run.workflow_id}, "
    why = f", {age(one.session.updated_at)}, {words(one.why)}"
    say(f"{about}{paint(words(one.run.status), tone)}{why}")
    if one.snippet:
        say(paint(fit(f"          {line_of(one.snippet)}", width()), "quiet"))


def _fields(one: Candidate) -> dict[str, Json]:
    return {
        "sessionId": one.session.session_id,
        "resumeRef": ref_of(one.session.session_id),
        "runId": one.run.run_id,
        "title": one.session.title,
        "workflowId": one.run.workflow_id,
        "status": one.run.status,
        "whyMatched": one.why,
        "snippet": one.snippet,
        "updatedAt": one.session.updated_at,
    }
