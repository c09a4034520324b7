"""Sessions that several agents share (rules 6, 13 to 18): one head, a token each, every call traced.

A token names the visit of an activity, so that reading never makes it stale and only progress moves on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct, field

from interlock.authoring.library import Loaded
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolved
from interlock.core.run.commands import Claim, Command
from interlock.core.run.events import ActivityEntered, Event, GateOpened, GateResolved
from interlock.core.run.outcomes import Code, Decided, Notice, Refusal
from interlock.core.run.output import Output, within_budget
from interlock.core.run.state import OpenGate, RunState
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json, Variables
from interlock.ledger.errors import LedgerError, not_healthy
from interlock.ledger.ledger import Ledger, request_digest
from interlock.ledger.log.chain import read_event
from interlock.ledger.log.commit import Commit, run_after
from interlock.ledger.log.records import CallTraced
from interlock.ledger.runs import children as family
from interlock.ledger.runs.position import Answered, Position, Target
from interlock.ledger.runs.view import View
from interlock.ledger.tokens.slots import named
from interlock.ledger.tokens.tokens import TokenProblem, new_handle, peek, read
from interlock.store.protocol import EventRow, HandleRow, Reader, Writer

OWN_ATTEMPTS = 2**40  # above every attempt that a token can name: session calls are replayed by their visit

T = TypeVar("T")


class Calling(Struct, frozen=True):
    """One call of a tool, as it is traced. Nothing here may hold a token."""

    tool: str
    about: Mapping[str, Json] = {}
    began: float = field(default_factory=time.perf_counter)


class Said(Struct, Generic[T], frozen=True):
    """An answer, and what the trace keeps of it."""

    body: T
    error: str = ""
    warnings: tuple[str, ...] = ()


class Moved(Struct, frozen=True):
    """What a progress call has brought about. `trace` is the range of events that tell of the visit."""

    before: Position
    decided: Decided
    warnings: tuple[str, ...]
    trace: tuple[int, int]

    @property
    def state(self) -> RunState:
        return self.decided.state


class Stale(Struct, frozen=True):
    """A progress call with the token of another visit (rule 13)."""

    at: Position


class RefusedCall(Struct, frozen=True):
    """A progress call that the core refuses."""

    at: Position
    refusal: Refusal


class Joined(Struct, frozen=True):
    """An agent's place in a session that was there before it."""

    target: Target
    at: Position
    before: str
    adopted: bool = False


class Progress(Struct, frozen=True):
    """A progress call: the command it stands for, what it claims, and how its answer is made."""

    calling: Calling
    build: Callable[[Position], Command | Refusal]
    advise: Callable[[Position, Decided], tuple[str, ...]]
    render: Callable[[Moved], bytes]
    claims: tuple[Claim, ...] = ()
    target: str | None = None


Outcome: TypeAlias = Answered | RefusedCall | Stale | LedgerError


class Sessions:
    """The session surfaces' way into the ledger."""

    def __init__(self, ledger: Ledger, policy: SurfacePolicy) -> None:
        self.ledger = ledger
        self.policy = policy

    def start(
        self,
        loaded: Loaded,
        agent: str,
        render: Callable[[View], Said[bytes]],
        calling: Calling,
        parent: Target | None = None,
        variables: Variables | None = None,
    ) -> Answered | LedgerError:
        """Begin a session; a child takes over what its parent passes on (rule 35)."""
        said: list[Said[bytes]] = []

        def trace(tx: Writer, view: View) -> None:
            said.append(render(view))
            commit = Commit(tx, view.session, self.ledger.clock())
            commit.chain.add(self._traced(calling, agent, view.state, warnings=said[0].warnings))
            commit.finish()

        return self.ledger.start_run(
            loaded,
            variables or {},
            lambda _: said[0].body,
            policy=self.policy,
            parent=parent.session_id if parent else None,
            agent=agent,
            trace=trace,
        )

    def head(self, session_id: str) -> Position | LedgerError:
        with self.ledger.store.reading() as reader:
            return family.head(self.ledger, reader, session_id)

    def join(self, token: str, agent: str | None, calling: Calling) -> Joined | LedgerError | None:
        """Join a session by any surface's token of it; None if the token leads nowhere (rules 6, 34)."""
        pointer = read(self.ledger.keys.keyring(), token, ("ses", "st", "nav"))
        adopted = isinstance(pointer, TokenProblem)
        known = peek(token) if isinstance(pointer, TokenProblem) else pointer
        target = self.ledger.target(known) if known is not None else None
        if target is None or isinstance(target, LedgerError):
            return None
        with self.ledger.store.writing() as tx:
            session = tx.session(target.session_id)
            if session is None or session.owner != self.ledger.settings.owner:
                return None
            return self._joined(tx, target, agent or target.agent, calling, adopted)

    def _joined(
        self, tx: Writer, target: Target, agent: str, calling: Calling, adopted: bool
    ) -> Joined | LedgerError:
        at = self._head_of_run(tx, target)
        if isinstance(at, LedgerError):
            return at
        row = tx.agent_handle(target.session_id, agent)
        if row is None:
            row = HandleRow(new_handle(), target.session_id, agent)
            tx.add_handle(row)
        commit = Commit(tx, at.session, self.ledger.clock())
        commit.chain.add(self._traced(calling, agent, at.state), run=at.run.run)
        commit.finish(at.run.run, at.node.node)
        own = Target("ses", row.handle, target.session_id, at.state.visit, 0, agent)
        return Joined(own, at, target.agent, adopted)

    def _head_of_run(self, reader: Reader, target: Target) -> Position | LedgerError:
        """The head of the session; a token of another run in it makes that run's tip the head."""
        at = family.head(self.ledger, reader, target.session_id)
        node = reader.node(target.session_id, target.node) if target.kind != "ses" else None
        if isinstance(at, LedgerError) or node is None or node.run == at.run.run:
            return at
        run = reader.run(target.session_id, node.run)
        assert run is not None, "a node belongs to a run"
        return self.ledger.position(reader, target.session_id, run.tip)

    def read(
        self, target: Target, calling: Calling, answer: Callable[[Position], Said[T]]
    ) -> T | LedgerError:
        """Answer from the head and trace the call; the head stays where it is."""
        with self.ledger.store.writing() as tx:
            at = family.head(self.ledger, tx, target.session_id)
            if isinstance(at, LedgerError):
                return at
            said = answer(at)
            commit = Commit(tx, at.session, self.ledger.clock())
            traced = self._traced(calling, target.agent, at.state, said.error, said.warnings)
            commit.chain.add(traced, run=at.run.run)
            commit.finish()
        return said.body

    def act(self, target: Target, progress: Progress) -> Outcome:
        """Decide a progress call on the head and record what came of it, once."""
        with self.ledger.store.writing() as tx:
            at = family.head(self.ledger, tx, target.session_id)
            if isinstance(at, LedgerError):
                return at
            if target.node != at.state.visit or at.state.finished:
                replayed = self._replayed(tx, at, target, progress)
                if replayed is not None:
                    return replayed
            if target.node != at.state.visit:
                self._refused(tx, at, target, progress.calling, "stale token", ())
                return Stale(at)
            return self._decided(tx, at, target, progress)

    def _decided(self, tx: Writer, at: Position, target: Target, progress: Progress) -> Outcome:
        command = progress.build(at)
        decided = command if isinstance(command, Refusal) else decide(at.plan, at.state, command)
        if isinstance(decided, Refusal):
            self._refused(tx, at, target, progress.calling, decided.code.value, decided.kept)
            return RefusedCall(at, decided)
        response = self._record(tx, at, target, progress, decided)
        return Answered(named(self.ledger.filled(response, target.handle), target.session_id))

    def _record(
        self, tx: Writer, at: Position, target: Target, progress: Progress, decided: Decided
    ) -> bytes:
        commit = Commit(tx, at.session, self.ledger.clock())
        first = _visit_began(tx, target.session_id)
        kept = self._keep_outputs(commit, at, progress.claims)
        warnings = progress.advise(at, decided)
        child = self._add_node(commit, at, decided.state, decided.events, decided)
        commit.chain.add(self._traced(progress.calling, target.agent, at.state, "", warnings), run=at.run.run)
        response = progress.render(Moved(at, decided, warnings, (first, commit.chain.head_index)))
        commit.add_attempt(
            at.node,
            OWN_ATTEMPTS,
            "advanced",
            _request(progress),
            response,
            child=child,
            notices=tuple(Notice("SESSION_WARNING", text) for text in warnings),
            surface=self.policy.name,
        )
        session = commit.finish(at.run.run, child)
        if kept.notes or kept.artifacts:
            self.ledger.index(tx, session, decided.state, kept)
        if decided.state.finished:
            family.finish(self.ledger, tx, session, at.run.workflow_id, decided.state.variables)
        return response

    def _keep_outputs(self, commit: Commit, at: Position, claims: tuple[Claim, ...]) -> Output:
        """Keep what is claimed of steps that exist, and return all of it together."""
        activity = at.plan.workflow.activity(at.state.activity)
        kept: list[Output] = []
        for number, claim in enumerate(claims):
            if activity is not None and activity.step(claim.step) is not None:
                child = commit.session.next_node
                commit.add_outputs(at.node, OWN_ATTEMPTS + number, claim.step, claim.output, child)
                kept.append(within_budget(claim.output))
        return _together(kept)

    def _add_node(
        self,
        commit: Commit,
        at: Position,
        state: RunState,
        events: tuple[Event, ...],
        decided: Decided | None,
    ) -> int:
        child = commit.add_node(at.run.run, at.node, state, events, "advanced")
        awaits = decided.awaited if decided else at.awaited
        waits = state.open is not None
        commit.tx.set_run(run_after(at.run, child.node, state, awaits, commit.now, blocked=waits))
        return child.node

    def _refused(
        self,
        tx: Writer,
        at: Position,
        target: Target,
        calling: Calling,
        error: str,
        kept: tuple[Event, ...],
    ) -> None:
        """Trace a refusal; variables that came with the call are kept all the same (rule 19)."""
        commit = Commit(tx, at.session, self.ledger.clock())
        commit.chain.add(self._traced(calling, target.agent, at.state, error), run=at.run.run)
        node = self._add_node(commit, at, evolved(at.state, kept), kept, None) if kept else None
        commit.finish(at.run.run if kept else None, node)

    def _replayed(
        self, reader: Reader, at: Position, target: Target, progress: Progress
    ) -> Answered | LedgerError | None:
        """The recorded response of the call that made the current visit, or the end, asked for again."""
        made = _newest(reader, target.session_id, "activity_entered", "run_completed")
        if progress.target is None or made is None or made.node is None:
            return None
        node = reader.node(target.session_id, made.node)
        if node is None or node.parent is None or not _follows(target, at.state):
            return None
        seen = reader.attempt(target.session_id, node.parent, OWN_ATTEMPTS)
        if seen is None or not seen.response or seen.request_digest != _request(progress):
            return None
        if sha256(seen.response).digest() != seen.response_digest:
            return not_healthy(target.session_id, "a recorded response does not match its digest")
        body = named(self.ledger.filled(seen.response, target.handle), target.session_id)
        return Answered(body, replayed=True)

    def _traced(
        self,
        calling: Calling,
        agent: str,
        state: RunState,
        error: str = "",
        warnings: tuple[str, ...] = (),
    ) -> CallTraced:
        return CallTraced(
            tool=calling.tool,
            agent=agent,
            at=self.ledger.clock(),
            ms=round((time.perf_counter() - calling.began) * 1000, 3),
            ok=not error,
            activity=state.activity,
            visit=state.visit,
            error=error,
            warnings=warnings,
            about=calling.about,
        )


def _request(progress: Progress) -> bytes:
    """Calls are the same that have the same target (rule 13)."""
    return request_digest({"tool": progress.calling.tool, "target": progress.target})


def _follows(target: Target, state: RunState) -> bool:
    return target.node == state.visit - (not state.finished)


def _together(outputs: list[Output]) -> Output:
    notes = "\n".join(output.notes for output in outputs if output.notes)
    return Output(notes, tuple(one for output in outputs for one in output.artifacts))


def mark(opened: OpenGate) -> int:
    """What a checkpoint handle carries beside the visit: which opening of which gate it belongs to."""
    said = f"{opened.key}:{opened.opened_at}".encode()
    return int.from_bytes(sha256(said).digest()[:4], "big") or 1


def answer_of(reader: Reader, session_id: str, handle: Target) -> GateResolved | None:
    """The recorded answer to the question that a handle was given for."""
    answers: dict[str, GateResolved] = {}
    for event in _of_this_visit(reader, session_id):
        if isinstance(event, GateResolved):
            answers[event.key] = event
        elif isinstance(event, GateOpened):
            if mark(OpenGate(event.key, event.gate, event.at)) == handle.attempt:
                return answers.get(event.key)
            answers.pop(event.key, None)
    return None


def answer_to(reader: Reader, session_id: str, key: str) -> GateResolved | None:
    """The recorded answer of one instance of a gate in the current visit."""
    for event in _of_this_visit(reader, session_id):
        if isinstance(event, GateResolved) and event.key == key:
            return event
    return None


def _of_this_visit(reader: Reader, session_id: str) -> Iterator[object]:
    """What was asked and answered since the current activity was entered, newest first."""
    kinds = ("activity_entered", "gate_opened", "gate_resolved")
    for row in reader.events(session_id, kinds=kinds, newest_first=True):
        event = read_event(row)
        if isinstance(event, ActivityEntered):
            return
        yield event


def _newest(reader: Reader, session_id: str, *kinds: str) -> EventRow | None:
    return next(reader.events(session_id, kinds=kinds, newest_first=True, limit=1), None)


def _visit_began(reader: Reader, session_id: str) -> int:
    row = _newest(reader, session_id, "activity_entered")
    return row.index if row is not None else 0


def answered_already(refusal: Refusal) -> str | None:
    """The instance that a refusal names as answered."""
    key = refusal.about.get("instance")
    return key if refusal.code is Code.CHECKPOINT_ALREADY_ANSWERED and isinstance(key, str) else None
