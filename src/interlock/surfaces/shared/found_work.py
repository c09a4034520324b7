"""Earlier work by words, for every surface: what fits, best first, with a token to go on with."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.values import Json
from interlock.ledger.git_context import observe
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import Candidate, find, is_reference
from interlock.ledger.queries.status import ref_of
from interlock.ledger.tokens.tokens import Kind

LEFT_OUT = "Some of the newest work was not searched; search again in a few seconds."
NOTHING_STORED = "Nothing is stored yet."
START = "Call again without find to start a workflow."


class FoundWork(Struct, frozen=True):
    """The candidates for a query; where none of its words matched, they are only the newest work."""

    query: str
    candidates: tuple[Candidate, ...]
    matched: bool
    left_out: bool = False

    @property
    def headline(self) -> str:
        """One line that says what the candidates are, and whether something was not searched."""
        return f"{LEFT_OUT} {self._about}" if self.left_out else self._about

    @property
    def _about(self) -> str:
        if not self.candidates:
            return NOTHING_STORED
        if not self.query.strip():
            return "The newest work:"
        return (
            "Found, best first:" if self.matched else f"Nothing matches '{self.query}'. The newest work is:"
        )


def found_work(ledger: Ledger, query: str) -> FoundWork:
    """Find work by words or by an id; without either, by what is checked out now, then the newest."""
    observed: dict[str, str] = {event.key: event.value for event in observe(ledger.settings.project)}
    found = find(ledger, query, observed)
    matched = not query.strip() or any(one.why != "recency_fallback" for one in found.candidates)
    return FoundWork(query, found.candidates, matched, found.left_out)


def names_work(ledger: Ledger, token: str) -> bool:
    """Say whether what came as a token is the id of a session or run, as people see it."""
    return token.isascii() and is_reference(ledger, token.strip())


def candidate_fields(candidate: Candidate) -> dict[str, Json]:
    """Return what tells a candidate from others, without a token."""
    run = candidate.run
    about: dict[str, Json] = {"title": candidate.session.title, "id": ref_of(candidate.session.session_id)}
    if run is not None:
        about |= {"workflow_id": run.workflow_id, "status": run.status}
    else:
        about["status"] = "notes only, no run"
    snippet: dict[str, Json] = {"snippet": candidate.snippet} if candidate.snippet else {}
    return {**about, "why_matched": candidate.why, **snippet}


def found_fields(ledger: Ledger, query: str, kind: Kind, name: str, next_action: str) -> dict[str, Json]:
    """Return found work as fields: each run with a token of this kind, under the name of its parameter."""
    work = found_work(ledger, query)
    listed: list[Json] = []
    for candidate in work.candidates:
        token = ledger.mint(kind, candidate.handle, candidate.tip)
        listed.append({**candidate_fields(candidate), **({name: token} if candidate.run else {})})
    has_run = [candidate.run is not None for candidate in work.candidates]
    told = next_action
    if not work.matched:
        told = f"Call again with other words in find. If one of these is meant: {next_action}"
    if not all(has_run):
        told = f"{told} A candidate with notes only has no run to take up."
    if not any(has_run):
        told = f"Only notes were found, and no run to take up. {START}" if listed else START
    message = f"Nothing was started. {work.headline}"
    return {"message": message, "matched": work.matched, "candidates": listed, "next_action": told}
