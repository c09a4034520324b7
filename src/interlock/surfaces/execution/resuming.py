"""Coming back in a new chat: candidates with reasons, snippets, and a token that works at once."""

from __future__ import annotations

from interlock.core.values import Json
from interlock.ledger.git_context import observe
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import find, is_reference
from interlock.surfaces.call import Outcome, Reply
from interlock.surfaces.execution.errors import envelope


def resumed(ledger: Ledger, query: str, reference: str | None) -> Outcome:
    """Find the runs that fit, tips only, best first."""
    observed: dict[str, str] = {event.key: event.value for event in observe(ledger.settings.project)}
    if reference is not None and not is_reference(ledger, reference):
        return envelope(
            "NOT_FOUND",
            f"'{reference}' is not the id, or an unambiguous beginning of the id, of a stored session.",
            "Call resume_session with query instead: a few words about the work.",
        )
    body: list[Json] = []
    lines: list[str] = []
    for candidate in find(ledger, reference or query, observed):
        session, run = candidate.session, candidate.run
        token = ledger.mint("st", candidate.handle, candidate.tip)
        body.append(
            {
                "sessionId": session.session_id,
                "runId": run.run_id,
                "title": session.title,
                "workflowId": run.workflow_id,
                "status": run.status,
                "whyMatched": candidate.why,
                "snippet": candidate.snippet,
                "stateToken": token,
            }
        )
        lines.append(f"- {session.title} ({run.workflow_id}, {run.status}, {candidate.why})")
        if candidate.snippet:
            lines.append(f"  {candidate.snippet}")
        lines.append(f"  stateToken: {token}")
    text = "\n".join(lines) or "Nothing stored fits. Try other words, or start_workflow."
    return Reply(text, {"candidates": body})
