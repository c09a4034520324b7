"""Coming back in a new chat: what fits, best first, and the best match with all that is needed to go on."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import Candidate, is_reference
from interlock.ledger.runs.brief import NOTES_BYTES
from interlock.ledger.runs.recap import session_notes
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.briefs import one_line, quoted
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.elicitation import terms_of
from interlock.surfaces.execution.errors import envelope
from interlock.surfaces.execution.render import answer
from interlock.surfaces.recorded import live
from interlock.surfaces.shared.found_work import found_work


def resumed(ledger: Ledger, query: str, reference: str | None, call: Call) -> Outcome:
    """Find the runs that fit, tips only, best first, and show the best one as a rehydrate does."""
    if reference is not None and not is_reference(ledger, reference):
        return envelope(
            "NOT_FOUND",
            f"'{reference}' is not the id, nor an unambiguous beginning of one, of a stored session or run.",
            "Call resume_session with query instead: a few words about the work.",
        )
    work = found_work(ledger, reference or query)
    candidates, matched, lines = work.candidates, work.matched, [work.headline]
    listed: list[Json] = []
    for candidate in candidates:
        session, run = candidate.session, candidate.run
        named, what, kind = dict[str, Json](), "notes only, no run", "sessionToken"
        token = ledger.mint("sst", candidate.handle)
        if run is not None:
            named = {"runId": run.run_id, "workflowId": run.workflow_id, "status": run.status}
            what, kind = f"{run.workflow_id}, {run.status}", "stateToken"
            token = ledger.mint("st", candidate.handle, candidate.tip)
        about: dict[str, Json] = {"sessionId": session.session_id, **named, "title": session.title}
        listed.append({**about, "whyMatched": candidate.why, "snippet": candidate.snippet, kind: token})
        lines.append(f"- {one_line(session.title)} ({what}, {candidate.why})")
        if candidate.snippet:
            lines.append(f"  {one_line(candidate.snippet)}")
        lines.append(f"  {kind}: {token}")
    body: dict[str, Json] = {"candidates": listed, "matched": matched}
    if not candidates:
        return Reply(f"{work.headline} Start with start_workflow.", body)
    if not matched:
        lines.append(
            "Call again with other words, or continue_workflow with the stateToken of the right one."
        )
        return Reply("\n".join(lines), body)
    best = candidates[0]
    if best.run is None:
        return _with_notes(ledger, best, lines, body)
    try:
        position = ledger.at(Pointer("st", best.handle, best.tip))
    except LedgerError:
        return Reply("\n".join(lines), body)
    view = replace(ledger.rehydrate(position), terms=terms_of(position.terms, call))
    shown = live(answer(view), ledger, best.handle, position.lines)
    assert isinstance(shown.structured, msgspec.Raw)
    body["best"] = msgspec.json.decode(shown.structured)
    ended = position.state.abandoned is not None or position.state.finished
    ready = "" if ended else ", ready to go on"
    return Reply("\n\n".join(["\n".join(lines), f"The best match{ready}:", shown.text]), body)


def _with_notes(ledger: Ledger, best: Candidate, lines: list[str], body: dict[str, Json]) -> Reply:
    """Show the newest notes of a session that has no run, within the budget of a brief."""
    with ledger.store.reading() as reader:
        notes = list(session_notes(reader, best.session.session_id))
    kept = notes
    while len("".join(kept).encode()) > NOTES_BYTES:
        kept = kept[1:]
    omitted = [f"[{len(notes) - len(kept)} earlier notes omitted]"] if len(kept) < len(notes) else []
    body["best"] = {"notes": list(kept), "omitted": len(notes) - len(kept)}
    shown = [f"- {quoted(note)}" for note in kept] or ["- none"]
    ready = "Start a workflow in it: start_workflow with its sessionToken."
    return Reply("\n".join([*lines, "", "Notes of the best match:", *omitted, *shown, "", ready]), body)
