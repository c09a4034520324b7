"""Making a damaged session whole: what cannot be trusted is cut and kept, all else rebuilt (rule 44)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.library import Library, Loaded
from interlock.core.definition.program import Plan
from interlock.core.engine.settle import awaited
from interlock.core.hashing import digest_of
from interlock.core.run.surface_policy import POLICIES
from interlock.ledger.log.chain import GENESIS, Chain
from interlock.ledger.log.health import intact
from interlock.ledger.log.prefix import Trusted, trusted
from interlock.ledger.log.rebuild import (
    PlanOf,
    Rebuilt,
    Told,
    differences,
    plans_of,
    rebuild,
    restore,
)
from interlock.ledger.log.records import RepairRecorded, ResponseRestored, SessionCreated
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.ledger.runs.view import View
from interlock.ledger.tokens.slots import unnamed
from interlock.ledger.tokens.tokens import new_handle
from interlock.store.protocol import (
    AttemptRow,
    EventRow,
    HandleRow,
    Health,
    Reader,
    SessionRow,
    Store,
    Writer,
)

Renders: TypeAlias = Mapping[str, Callable[[View], bytes]]
Responses: TypeAlias = dict[tuple[int, int], bytes]


class Finding(Struct, frozen=True):
    """What is wrong with a session: its log, or rows that are not what its events make."""

    session_id: str
    health: Health
    reason: str
    rows: tuple[str, ...] = ()


class Repaired(Struct, frozen=True):
    """What a repair did. What it cut is kept in the store under `kept_as`."""

    session_id: str
    cut_events: int = 0
    kept_as: str = ""
    rebuilt: tuple[str, ...] = ()
    lost_responses: int = 0


def inspect(reader: Reader, session_id: str, pins: Pins) -> Finding | None:
    """Check a session's whole chain, and every row against what the events make."""
    session = reader.session(session_id)
    if session is None:
        return Finding(session_id, "corrupt_head", "its events are there, but the session is not")
    log = trusted(reader, session)
    if not log.whole:
        return Finding(session_id, log.report.health, log.report.reason)
    plan_of = plans_of(reader, pins)
    made = rebuild(session_id, log.events, plan_of)
    wrong = (*differences(reader, made), *_lost_pins(made, plan_of))
    if wrong:
        return Finding(session_id, "healthy", "rows are not what the events make", wrong)
    if session.health != "healthy":
        return Finding(session_id, session.health, session.health_reason)
    return None


def _lost_pins(made: Rebuilt, plan_of: PlanOf) -> Iterator[str]:
    for run in made.runs:
        if plan_of(run.workflow_hash) is None:
            yield f"pinned workflow {run.workflow_id}"


def repin(tx: Writer, session_id: str, pins: Pins, library: Library) -> None:
    """Take lost pinned workflows from the library again, where it still has exactly what was pinned."""
    plan_of = plans_of(tx, pins)
    for run in tx.runs(session_id):
        loaded = library.load(run.workflow_id) if plan_of(run.workflow_hash) is None else None
        if isinstance(loaded, Loaded) and loaded.hash == run.workflow_hash:
            for digest in (loaded.hash, *(text.digest for text in loaded.workflow.documents)):
                tx.drop_content(digest)
            pins.pin(tx, loaded)


def mark(store: Store, found: Finding) -> None:
    """Let no run of a damaged session go on until it is repaired."""
    with store.writing() as tx:
        session = tx.session(found.session_id)
        if session is not None and session.health != found.health:
            tx.set_session(replace(session, health=found.health, health_reason=found.reason))


def repair(
    tx: Writer, session_id: str, pins: Pins, renders: Renders, *, owner: str, now: int
) -> Repaired | Finding:
    """Cut what cannot be trusted, keep it, and rebuild everything else from what remains."""
    session = tx.session(session_id) or _stray(tx, session_id, owner)
    log, plan_of = trusted(tx, session), plans_of(tx, pins)
    if log.report.health == "unknown_version":
        return Finding(session_id, log.report.health, log.report.reason)
    damaged = tuple(differences(tx, rebuild(session_id, log.events, plan_of)))
    chain = _onto(session_id, log, now)
    kept_as, cut = _cut(tx, session, log, chain)
    made = rebuild(session_id, (*log.events, *chain.rows), plan_of)
    responses = _recovered(tx, made, plan_of, renders)
    restored = list(_restored(made, responses))
    for event in restored:
        chain.add(event)
    tx.clear_projections(session_id)
    tx.add_events(chain.rows)
    _write(tx, rebuild(session_id, (*log.events, *chain.rows), plan_of), session, responses)
    lost = sum(not responses[one.node, one.attempt] for one in restored)
    return Repaired(session_id, cut, kept_as, damaged, lost)


def _stray(tx: Writer, session_id: str, owner: str) -> SessionRow:
    """A stand-in for a session row that is gone: its head is the last event."""
    last = tx.last_event(session_id)
    index, digest = (last.index, last.digest) if last else (-1, GENESIS)
    at = last.recorded_at if last else 0
    return SessionRow(session_id, owner, "", at, at, index, digest, 0)


def _onto(session_id: str, log: Trusted, now: int) -> Chain:
    head = log.events[-1].digest if log.events else GENESIS
    return Chain(session_id, len(log.events) - 1, head, now)


def _cut(tx: Writer, session: SessionRow, log: Trusted, chain: Chain) -> tuple[str, int]:
    """Take off what is behind the trusted events, and record that and where it is kept."""
    if log.whole:
        return "", 0
    behind = list(tx.events(session.session_id))[len(log.events) :]
    kept_as = _kept(tx, behind) if behind else ""
    tx.cut_events(session.session_id, len(log.events))
    if not log.events:
        title = session.title or "Recovered session"
        chain.add(SessionCreated(session.owner, title, session.created_at, "execution"))
    chain.add(RepairRecorded(chain.now, len(behind), kept_as, log.report.reason))
    return kept_as, len(behind)


def _kept(tx: Writer, behind: list[EventRow]) -> str:
    body = msgspec.json.encode(behind)
    digest = digest_of(body)
    tx.add_content(digest, body)
    return digest


def _recovered(tx: Writer, made: Rebuilt, plan_of: PlanOf, renders: Renders) -> Responses:
    """Every attempt's response: as stored where it is whole, else rendered again, else empty."""
    found = {}
    for one in made.attempts:
        at = one.node, one.attempt
        stored = tx.attempt(one.session_id, *at)
        if stored is not None and intact(stored.response, one.response_digest):
            found[at] = stored.response
        else:
            found[at] = _rendered(one, made, made.told[at], plan_of, renders)
    return found


def _rendered(
    attempt: AttemptRow,
    made: Rebuilt,
    told: Told,
    plan_of: PlanOf,
    renders: Renders,
) -> bytes:
    run = next(one for one in made.runs if one.run == told.run)
    plan, render = plan_of(run.workflow_hash), renders.get(told.event.surface)
    if plan is None or render is None:
        return b""
    response = render(_view(made, told, plan))
    return unnamed(response, attempt.session_id, told.run)


def _view(made: Rebuilt, told: Told, plan: Plan) -> View:
    event = told.event
    advanced = event.outcome == "advanced" and event.child is not None
    return View(
        session=made.session,
        run=next(one for one in made.runs if one.run == told.run),
        plan=plan,
        state=told.state,
        awaited=awaited(plan, told.state, POLICIES[event.surface]),
        node=event.child if advanced and event.child is not None else event.node,
        attempt=event.successor or 0,
        blockers=event.blockers,
        notices=event.notices,
        notes_cut=told.notes_cut,
    )


def _restored(made: Rebuilt, responses: Responses) -> Iterator[ResponseRestored]:
    """One event for every response that is no longer, byte for byte, the one that was given."""
    for one in made.attempts:
        digest = sha256(responses[one.node, one.attempt]).digest()
        if digest != one.response_digest:
            yield ResponseRestored(one.node, one.attempt, digest.hex())


def _write(tx: Writer, made: Rebuilt, before: SessionRow, responses: Responses) -> None:
    """Store the rebuilt rows; what the user set beside the log stays."""
    tx.add_session(replace(made.session, owner=before.owner, keep=before.keep))
    if not tx.handles(before.session_id):
        tx.add_handle(HandleRow(new_handle(), before.session_id))
    restore(tx, made, responses)
