"""Coming back in a new chat: candidates with reasons, snippets, and a token that works at once."""

from __future__ import annotations

from interlock.core.values import Json
from interlock.ledger.git_context import observe
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import Candidate, find, is_reference
from interlock.surfaces.call import Outcome, Reply
from interlock.surfaces.execution.errors import envelope


def resumed(ledger: Ledger, query: str, reference: str | None) -> Outcome:
    """Find the runs that fit, tips only, best first."""
    seen: dict[str, str] = {event.key: event.value for event in observe(ledger.settings.project)}
    if reference is not None and not is_reference(ledger, reference):
        return envelope(
            "NOT_FOUND",
            f"“{reference}” is not the id, or an unambiguous beginning of the id, of a stored session.",
            "Call resume_session with query instead: a few words about the work.",
        )
    candidates = find(ledger, reference or query, ledger.settings.owner, seen)
    tokens = [ledger.mint("st", candidate.handle, candidate.tip) for candidate in candidates]
    body: list[Json] = [_fields(*found) for found in zip(candidates, tokens, strict=True)]
    lines = [_line(*found) for found in zip(candidates, tokens, strict=True)]
    text = "\n".join(lines) if lines else "Nothing stored fits. Try other words, or start_workflow."
    return Reply(text, {"candidates": body})


def _fields(one: Candidate, token: str) -> dict[str, Json]:
    return {
        "sessionId": one.session.session_id,
        "runId": one.run.run_id,
        "title": one.session.title,
        "workflowId": one.run.workflow_id,
        "status": one.run.status,
        "whyMatched": one.why,
        "snippet": one.snippet,
        "stateToken": token,
    }


def _line(one: Candidate, token: str) -> str:
    head = f"- {one.session.title} ({one.run.workflow_id}, {one.run.status}, {one.why})"
    notes = f"\n  {one.snippet}" if one.snippet else ""
    return f"{head}{notes}\n  stateToken: {token}"
