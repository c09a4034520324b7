"""Repair of a damaged session: what cannot be trusted is cut and kept, all else is rebuilt (rule 44)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.library import Library, Loaded
from interlock.core.definition.program import Plan
from interlock.core.engine.settle import awaited
from interlock.core.hashing import digest_of
from interlock.core.run.commands import Terms
from interlock.core.run.notices import Notices
from interlock.core.run.surface_policy import POLICIES
from interlock.ledger.log.chain import GENESIS, Entry, commit_of, entries_of, kind_of
from interlock.ledger.log.health import (
    Trusted,
    chained,
    intact,
    start_digest,
    trusted,
    trusted_of,
)
from interlock.ledger.log.judgement import violations
from interlock.ledger.log.projection import Rows
from interlock.ledger.log.rebuild import (
    Answered,
    answered_in,
    differences,
    rebuild,
    recorded_in,
    session_rows,
)
from interlock.ledger.log.records import RepairRecorded, ResponseRestored, SessionCreated
from interlock.ledger.queries.indexing import is_found_wrongly
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.pinned_workflows import PinDamaged, Pins, contents_of
from interlock.ledger.runs.position import View
from interlock.ledger.tokens.slots import unnamed
from interlock.ledger.tokens.tokens import new_handle
from interlock.store.protocol import CommitRow, HandleRow, Health, Reader, RunRow, SessionRow, Store, Writer

Renders: TypeAlias = Mapping[str, Callable[[View], bytes]]
Responses: TypeAlias = dict[tuple[int, int], bytes]
PlanOf: TypeAlias = Callable[[str], Plan | None]


class Finding(Struct, frozen=True):
    """What is wrong with a session: its log, rows that are not what its events make, or what it recorded.

    `violations` are commands that the guard would have refused; no repair changes what was recorded.
    """

    session_id: str
    health: Health
    reason: str
    rows: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()


class Repaired(Struct, frozen=True):
    """What a repair did. The events that it `removed` are kept in the store under `kept_as`.

    `recovered` counts commits that were found again by the chain. A session of which no event and no handle
    is left is `dropped`: damage had invented it.
    """

    session_id: str
    removed: tuple[str, ...] = ()
    kept_as: str = ""
    recovered: int = 0
    dropped: bool = False
    rebuilt: tuple[str, ...] = ()
    lost_responses: int = 0


def session_batches(store: Store, size: int) -> Iterator[list[str]]:
    """Yield the ids of all sessions in batches; last, those that have commits but no session row."""
    after = ""
    while True:
        with store.reading() as reader:
            batch = reader.session_ids(after, size)
        if not batch:
            break
        yield batch
        after = batch[-1]
    with store.reading() as reader:
        strays = reader.stray_sessions()
    yield strays


def inspect(store: Store, session_id: str, pins: Pins) -> Finding | None:
    """Check a session's whole chain, every row against what the events make, and every command again."""
    with store.reading() as reader:
        session = reader.session(session_id)
        if session is None:
            return Finding(session_id, "corrupt_head", "its events are there, but the session is not")
        log = trusted(reader, session)
        if not log.whole:
            return Finding(session_id, log.report.health, log.report.reason)
        rebuilt, plan_of = rebuild(session_id, log.commits), plans_of(reader, pins)
        lost = [part for run in rebuilt.runs.values() for part in _lost_pins(reader, run, pins)]
        wrong = [*differences(reader, rebuilt), *lost]
        if not wrong and is_found_wrongly(reader, pins, session):
            wrong.append("words that it is found by")
        broken = tuple(judged.text for judged in violations(log.commits, plan_of)) if not wrong else ()
    if wrong:
        return Finding(session_id, "healthy", "rows are not what the events make", tuple(wrong))
    if broken:
        return Finding(session_id, "healthy", "the guard finds commands that break a promise", (), broken)
    if session.health != "healthy":
        return Finding(session_id, session.health, session.health_reason)
    return None


def plans_of(reader: Reader, pins: Pins) -> PlanOf:
    """Look pinned workflows up; a lost one leaves only what depends on it undone."""

    def plan(workflow_hash: str) -> Plan | None:
        try:
            return pins.plan(reader.content, workflow_hash)
        except PinDamaged:
            return None

    return plan


def _lost_pins(reader: Reader, run: RunRow, pins: Pins) -> list[str]:
    """Name what is lost of the workflow that a run is pinned to: all of it, or some of its texts."""
    try:
        texts = pins.lost_texts(reader.content, run.workflow_hash)
    except PinDamaged:
        return [f"pinned workflow {run.workflow_id}"]
    return [f"{text} of pinned workflow {run.workflow_id}" for text in texts]


def _repin(tx: Writer, session_id: str, pins: Pins, library: Library) -> None:
    """Take lost pinned workflows from the library again, where it still has exactly what was pinned."""
    for run in tx.runs(session_id):
        loaded = library.load(run.workflow_id) if _lost_pins(tx, run, pins) else None
        if isinstance(loaded, Loaded) and loaded.hash == run.workflow_hash:
            for digest, body in contents_of(loaded).items():
                tx.drop_content(digest)
                tx.add_content(digest, body)


def mark(store: Store, finding: Finding) -> None:
    """Mark a session as damaged, so that none of its runs is advanced until it is repaired."""
    with store.writing() as tx:
        session = tx.session(finding.session_id)
        if session is not None and session.health != finding.health:
            tx.set_health(finding.session_id, finding.health, finding.reason)


@until_recorded
def repair(
    store: Store, session_id: str, pins: Pins, library: Library, renders: Renders, *, owner: str, now: int
) -> Repaired | Finding:
    """Cut what cannot be trusted, keep it, and rebuild everything else from what remains."""
    with store.writing() as tx:
        _repin(tx, session_id, pins, library)
        session = tx.session(session_id)
        if session is None:  # its row is lost: its head is then the last commit
            last = next(tx.commits(session_id, newest_first=True, limit=1), None)
            index, digest, at = (last.last, last.digest, last.recorded_at) if last else (-1, GENESIS, 0)
            session = SessionRow(session_id, owner, "", at, at, index, digest, 0)
        stored = tuple(tx.commits(session_id))
        if not stored and not tx.handles(session_id):
            tx.remove_session(session_id, now)
            return Repaired(session_id, dropped=True)
        log, recovered = trusted_of(stored, session), 0
        if log.report.health == "unknown_version":
            return Finding(session_id, log.report.health, log.report.reason)
        if not log.whole:
            chain = tuple(chained(stored, _strays(tx, session_id), session))
            recovered = max(len(chain) - len(log.commits), 0)
            if recovered:
                _forget_strays(tx, session_id, chain)
                head = chain[-1]
                if head.last >= session.head_index:
                    session = replace(session, head_index=head.last, head_digest=head.digest)
                log = trusted_of(chain, session)
                known = {part for kept in chain for part in (kept.body, kept.digest)}
                stored = (*chain, *(row for row in stored if known.isdisjoint((row.body, row.digest))))
        damaged = tuple(differences(tx, rebuild(session_id, log.commits)))
        commits, kept_as, removed = _cut(tx, session, log, stored[len(log.commits) :], owner, now)
        rebuilt = rebuild(session_id, commits)
        responses = _recovered(tx, rebuilt, commits, plans_of(tx, pins), renders)
        # A response that is no longer, byte for byte, the one that was given is recorded with its new digest.
        digests = {key: sha256(response).digest() for key, response in responses.items()}
        restored = [
            ResponseRestored(node, row.attempt, digests[node, row.attempt].hex())
            for node, row in recorded_in(rebuilt)
            if row.attempt is not None and digests[node, row.attempt] != row.response_digest
        ]
        if restored:
            commits = (*commits, _commit(session_id, commits, owner, restored, now))
            rebuilt = rebuild(session_id, commits)
        rebuilt.session = replace(rebuilt.session, keep=session.keep)
        tx.replace_session(session_rows(rebuilt, commits, responses))
        if not tx.handles(session_id):
            tx.add_handle(HandleRow(new_handle(), session_id))
        _forget_answers(tx, session_id)
    lost = sum(not responses[event.node, event.attempt] for event in restored)
    return Repaired(session_id, removed, kept_as, recovered, rebuilt=damaged, lost_responses=lost)


def _forget_answers(tx: Writer, session_id: str) -> None:
    """Keep a start whose row is damaged without its answer, so that a repeated call starts nothing twice."""
    for row in tx.starts(session_id):
        if row.digest != start_digest(row):
            tx.drop_start(row)
            unanswered = replace(row, response=b"", digest=b"")
            tx.add_start(replace(unanswered, digest=start_digest(unanswered)))


def _strays(tx: Writer, session_id: str) -> list[CommitRow]:
    """Return the commits of which no session is known."""
    others = (stray for stray in tx.stray_sessions() if stray != session_id)
    return [row for stray in others for row in tx.commits(stray)]


def _forget_strays(tx: Writer, session_id: str, chain: Sequence[CommitRow]) -> None:
    """Take commits that have found their session away from the unknown ones."""
    bodies = {row.body for row in chain}
    for stray in tx.stray_sessions():
        if stray != session_id and bodies.issuperset(row.body for row in tx.commits(stray)):
            tx.remove_session(stray, 0)


def _cut(
    tx: Writer, session: SessionRow, log: Trusted, cut: Sequence[CommitRow], principal: str, now: int
) -> tuple[tuple[CommitRow, ...], str, tuple[str, ...]]:
    """Remove the commits after the trusted prefix, and record that and where they are kept."""
    if log.whole:
        return log.commits, "", ()
    kept_as = ""
    if cut:
        body = msgspec.json.encode(cut)
        kept_as = digest_of(body)
        tx.add_content(kept_as, body)
    events: list[SessionCreated | RepairRecorded] = []
    if not log.commits:
        title = session.title or "Recovered session"
        events.append(SessionCreated(session.owner, title, session.created_at, "execution"))
    removed = tuple(name for row in cut for name in _named(row))
    events.append(RepairRecorded(now, len(removed), kept_as, log.report.reason))
    return (*log.commits, _commit(session.session_id, log.commits, principal, events, now)), kept_as, removed


def _named(row: CommitRow) -> list[str]:
    """Name the events of a commit: position and kind, as far as they can be read."""
    try:
        kinds = [kind_of(entry.event) for entry in entries_of(row)]
    except (ValueError, TypeError):
        kinds = ["unreadable"] * max(row.last - row.first + 1, 1)
    return [f"{row.first + offset} {kind}" for offset, kind in enumerate(kinds)]


def _commit(
    session_id: str,
    commits: Sequence[CommitRow],
    principal: str,
    events: Sequence[SessionCreated | RepairRecorded | ResponseRestored],
    now: int,
) -> CommitRow:
    last = commits[-1] if commits else None
    index, digest = (last.last, last.digest) if last else (-1, GENESIS)
    return commit_of(session_id, index, digest, principal, [Entry(event) for event in events], now, None)


def _recovered(
    tx: Writer, made: Rows, commits: Sequence[CommitRow], plan_of: PlanOf, renders: Renders
) -> Responses:
    """Return every attempt's response: as stored if it is intact, else rendered again, else empty."""
    answered = answered_in(made, commits)
    responses: Responses = {}
    for node, row in recorded_in(made):
        assert row.attempt is not None
        key = node, row.attempt
        stored = tx.recorded(row.session_id, *key)
        if stored is not None and intact(stored.response, row.response_digest):
            responses[key] = stored.response
        else:
            responses[key] = _rendered(made, answered[key], plan_of, renders)
    return responses


def _rendered(made: Rows, answered: Answered, plan_of: PlanOf, renders: Renders) -> bytes:
    run = made.runs[answered.run]
    plan, render = plan_of(run.workflow_hash), renders.get(answered.event.surface)
    if plan is None or render is None:
        return b""
    event = answered.event
    advanced = event.outcome == "advanced" and event.child is not None
    view = View(
        session=made.session,
        run=run,
        plan=plan,
        state=answered.state,
        told=answered.state,
        awaited=awaited(plan, answered.state, POLICIES[event.surface]),
        node=event.child if advanced and event.child is not None else event.node,
        attempt=event.successor or 0 if event.outcome == "blocked" else 0,
        note_attempt=event.successor or 0,
        blockers=event.blockers,
        notices=Notices(event.notices),
        terms=Terms(answered.state.terms.policy, answered.state.terms.enforcement),
    )
    return unnamed(render(view), run)
