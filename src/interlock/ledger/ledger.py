"""The ledger: open a token, decide, append once, answer. Every surface records its events through here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TypeAlias

import msgspec

from interlock.authoring.compile.ids import LEGACY_ID
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Library, Loaded
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolved
from interlock.core.engine.settle import awaited
from interlock.core.run.commands import Command, StartRun
from interlock.core.run.events import Event
from interlock.core.run.outcomes import Decided, Notice, Refusal
from interlock.core.run.output import NOTES_BYTES, Output
from interlock.core.run.preferences import Preferences
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, NAVIGATION, SurfacePolicy
from interlock.core.values import Json, Variables
from interlock.ledger.decisions.recorded import recorded_decisions
from interlock.ledger.errors import LedgerError, not_healthy, response_lost, unknown_node, unknown_session
from interlock.ledger.git_context import observe
from interlock.ledger.ids import new_id, run_id
from interlock.ledger.log.commit import Commit, decode_state, run_after
from interlock.ledger.log.health import intact
from interlock.ledger.log.records import Cause, SessionCreated
from interlock.ledger.queries.indexing import named, search_row
from interlock.ledger.runs import children as family
from interlock.ledger.runs.onward import onward
from interlock.ledger.runs.pinned_workflows import PinDamaged, Pins
from interlock.ledger.runs.position import (
    Answered,
    Attempted,
    Position,
    Target,
    head_node,
    healthy,
    kept_before,
)
from interlock.ledger.runs.recap import branches, recap
from interlock.ledger.runs.view import View
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.slots import fill
from interlock.ledger.tokens.slots import named as with_names
from interlock.ledger.tokens.tokens import Kind, Pointer, TokenProblem, mint, new_attempt, new_handle, read
from interlock.store.protocol import (
    AttemptRow,
    HandleRow,
    Reader,
    RunRow,
    SessionRow,
    Store,
    Writer,
)


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


Build: TypeAlias = Callable[[Position], Command]
Render: TypeAlias = Callable[[View], bytes]


class Ledger:
    """One log behind all surfaces."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        library: Library,
        settings: Settings,
        clock: Callable[[], int] = milliseconds,
    ) -> None:
        self.store = store
        self.keys = keys
        self.library = library
        self.settings = settings
        self.clock = clock
        self.pins = Pins()

    def open(self, token: str, *kinds: Kind) -> Target | LedgerError:
        """Check a token, then look its handle up in the store, never in memory (rule 2)."""
        pointer = self.point(token, *kinds)
        return pointer if isinstance(pointer, LedgerError) else self.target(pointer)

    def point(self, token: str, *kinds: Kind) -> Pointer | LedgerError:
        """Check a token's form and signature; nothing is looked up."""
        pointer = read(self.keys.keyring(), token, kinds)
        if isinstance(pointer, TokenProblem):
            return LedgerError(pointer.code, pointer.message, pointer.suggestion)
        return pointer

    def target(self, pointer: Pointer) -> Target | LedgerError:
        with self.store.reading() as reader:
            found = reader.handle(pointer.handle)
        if found is None:
            return unknown_session()
        return Target(
            pointer.kind, pointer.handle, found.session_id, pointer.node, pointer.attempt, found.agent
        )

    def mint(self, kind: Kind, handle: bytes, node: int = 0, attempt: int = 0) -> str:
        """Sign a pointer; nothing is stored (rule 3)."""
        return mint(self.keys.keyring().current, Pointer(kind, handle, node, attempt))

    def filled(self, response: bytes, handle: bytes) -> bytes:
        """Put live tokens into a recorded response."""
        key = self.keys.keyring().current
        return fill(response, lambda kind, node, attempt: mint(key, Pointer(kind, handle, node, attempt)))

    def start_session(
        self, title: str, policy: SurfacePolicy = EXECUTION, context: Variables | None = None
    ) -> Target:
        """Begin a session without a run."""
        with self.store.writing() as tx:
            commit, handle = self._new_session(tx, title_of(context or {}, title), policy)
            commit.finish()
        return Target("sst", handle, commit.session.session_id, 0, 0)

    def start_run(
        self,
        loaded: Loaded,
        context: Variables,
        render: Render,
        *,
        policy: SurfacePolicy = EXECUTION,
        within: Target | None = None,
        parent: str | None = None,
        parent_node: int | None = None,
        agent: str = "",
        trace: Callable[[Writer, View], None] | None = None,
    ) -> Answered | LedgerError:
        """Start a run pinned to the compiled workflow's hash, in a new session or in the given one.

        `parent` is the session that triggers it, at its head or at `parent_node`; `trace` records the call
        in the same transaction.
        """
        with self.store.writing() as tx:
            if within is None:
                title = title_of(context, loaded.workflow.name)
                commit, handle = self._new_session(tx, title, policy, parent, agent)
            else:
                session = healthy(tx, within.session_id)
                if isinstance(session, LedgerError):
                    return session
                commit, handle = Commit(tx, session, self.clock()), within.handle
            view = self._first_node(tx, commit, loaded, context, policy)
            self.index(tx, commit.session, view.state, Output())
            if parent is not None:
                child = commit.session.session_id
                family.begin(self, tx, parent, child, loaded.workflow.id, parent_node)
            if trace is not None:
                trace(tx, view)
            response = render(view)
        return Answered(self.filled(response, handle))

    def _new_session(
        self, tx: Writer, title: str, policy: SurfacePolicy, parent: str | None = None, agent: str = ""
    ) -> tuple[Commit, bytes]:
        now, session_id, handle = self.clock(), new_id("sess"), new_handle()
        session = SessionRow(
            session_id=session_id,
            owner=self.settings.owner,
            title=title,
            created_at=now,
            updated_at=now,
            head_index=-1,
            head_digest=bytes(32),
            next_node=0,
            parent_session=parent,
        )
        tx.add_session(session)
        tx.add_handle(HandleRow(handle, session_id, agent))
        commit = Commit(tx, session, now)
        commit.chain.add(SessionCreated(self.settings.owner, title, now, policy.name, parent))
        for seen in observe(self.settings.project):
            commit.chain.add(seen, key=f"observation_recorded:{seen.key}:{seen.value}")
            tx.set_observation(session_id, seen.key, seen.value)
        return commit, handle

    def _first_node(
        self, tx: Writer, commit: Commit, loaded: Loaded, context: Variables, policy: SurfacePolicy
    ) -> View:
        plan, now = self.pins.pin(tx, loaded), commit.now
        start = StartRun(policy, now, loaded.hash, loaded.source.kind, self.preferences(tx), context)
        decided = decide(plan, RunState(), start)
        assert isinstance(decided, Decided), "a run can always be started"
        number = len(tx.runs(commit.session.session_id))
        node = commit.add_node(number, None, decided.state, decided.events, "started")
        run = RunRow(
            session_id=commit.session.session_id,
            run=number,
            run_id=run_id(commit.session.session_id, number),
            workflow_id=loaded.workflow.id,
            workflow_hash=loaded.hash,
            status=decided.state.status,
            tip=node.node,
            started_at=now,
            updated_at=now,
        )
        run = run_after(run, node.node, decided.state, decided.awaited, now, blocked=False)
        tx.add_run(run)
        session = commit.finish(number, node.node)
        return View(
            session=session,
            run=run,
            plan=plan,
            state=decided.state,
            awaited=decided.awaited,
            node=node.node,
            notices=(*decided.notices, *_legacy(loaded)),
            started=True,
        )

    def preferences(self, reader: Reader) -> Preferences:
        """The global mode: what the user set, unless this process was told otherwise."""
        stored = reader.setting("preferences")
        if stored is None or self.settings.preferences_fixed:
            return self.settings.preferences
        return msgspec.json.decode(stored, type=Preferences)

    def advance(
        self,
        target: Target,
        attempt: int,
        request: Mapping[str, Json],
        build: Build,
        render: Render,
        output: Output,
    ) -> Answered | Refusal | LedgerError:
        """Decide the command on the place's node and record what came of it, exactly once per attempt."""
        digest = request_digest(request)
        with self.store.writing() as tx:
            node = onward(tx, target.session_id, target.node) if target.kind == "nav" else target.node
            seen = tx.attempt(target.session_id, target.node, attempt)
            seen = seen or tx.attempt(target.session_id, node, attempt)
            if seen is not None:
                return self._replay(seen, digest, target.handle)
            position = self.position(tx, target.session_id, node, attempt)
            if isinstance(position, LedgerError):
                return position
            command = build(position)
            decided = decide(position.plan, position.state, command)
            if isinstance(decided, Refusal):
                self._keep(tx, position, decided.kept if target.kind == "nav" else ())
                return decided
            attempted = Attempted(attempt, digest, output, command.variables, _door(command))
            response = self._record(tx, position, attempted, decided, render)
        return Answered(self.filled(response, target.handle))

    def _keep(self, tx: Writer, at: Position, kept: tuple[Event, ...]) -> None:
        """Keep the variables of a refused call (rule 19); the token it came with leads to them now."""
        state = evolved(at.state, kept)
        if at.state.finished or state == at.state:
            return
        commit, leads = Commit(tx, at.session, self.clock()), at.run.tip == at.node.node
        node = commit.add_node(at.run.run, at.node, state, kept, "advanced")
        if leads:
            pending = awaited(at.plan, state, NAVIGATION)
            tx.set_run(run_after(at.run, node.node, state, pending, commit.now, blocked=False))
        commit.finish(at.run.run if leads else None, node.node if leads else None)

    def _replay(self, seen: AttemptRow, digest: bytes, handle: bytes) -> Answered | LedgerError:
        """Return the recorded event; nothing is computed again (rule 7)."""
        if not intact(seen.response, seen.response_digest):
            return not_healthy(seen.session_id, "a recorded response does not match its digest")
        if not seen.response:
            return response_lost()
        return Answered(
            self.filled(with_names(seen.response, seen.session_id), handle),
            replayed=True,
            differs=seen.request_digest != digest,
        )

    def position(
        self, reader: Reader, session_id: str, node: int, attempt: int = 0
    ) -> Position | LedgerError:
        """Read one node's state, never the log, and check what is read (rule 44)."""
        session = healthy(reader, session_id)
        if isinstance(session, LedgerError):
            return session
        row = reader.node(session_id, node)
        if row is None:
            return unknown_node()
        if not intact(row.state, row.state_digest):
            return not_healthy(session_id, "a node's state does not match its digest")
        run = reader.run(session_id, row.run)
        assert run is not None, "a node belongs to a run"
        plan, state = self.pins.plan(reader, run.workflow_hash), decode_state(row)
        pending = awaited(plan, state, EXECUTION)
        decisions = recorded_decisions(reader, session_id, node, pending)
        return Position(session, run, row, plan, state, pending, kept_before(reader, row, attempt), decisions)

    def _record(self, tx: Writer, at: Position, tried: Attempted, decided: Decided, render: Render) -> bytes:
        if decided.blockers:
            return self._record_blocked(tx, at, tried, decided, render)
        commit = Commit(tx, at.session, self.clock())
        forks = any(child.kind == "step" for child in tx.children(at.node.session_id, at.node.node))
        cause: Cause = "non_tip_advance" if forks else "advanced"
        commit.add_outputs(at.node, tried.attempt, at.step, tried.output, commit.session.next_node)
        child = commit.add_node(at.run.run, at.node, decided.state, decided.events, cause)
        run = run_after(at.run, child.node, decided.state, decided.awaited, commit.now, blocked=False)
        response = render(self._view(at, commit.session, run, decided, child.node, tried.output))
        commit.add_attempt(
            at.node,
            tried.attempt,
            "advanced",
            tried.request,
            response,
            child=child.node,
            notices=decided.notices,
            surface=tried.surface,
        )
        tx.set_run(run)
        if tried.output.notes or tried.output.artifacts:
            self.index(tx, commit.session, decided.state, tried.output)
        commit.finish(at.run.run, child.node)
        if decided.state.finished:
            family.finish(self, tx, commit.session, at.run.workflow_id, decided.state.variables)
        return response

    def _record_blocked(
        self, tx: Writer, at: Position, tried: Attempted, decided: Decided, render: Render
    ) -> bytes:
        """Record a blocked attempt; its answer carries one fresh attempt, and that one works (rule 10)."""
        commit, successor = Commit(tx, at.session, self.clock()), new_attempt()
        commit.chain.add_all(decided.events, run=at.run.run, node=None)
        commit.add_outputs(at.node, tried.attempt, at.step, tried.output, None)
        on_tip = at.run.tip == at.node.node
        run = run_after(at.run, at.run.tip, decided.state, decided.awaited, commit.now, blocked=on_tip)
        response = render(self._view(at, commit.session, run, decided, at.node.node, tried.output, successor))
        commit.add_attempt(
            at.node,
            tried.attempt,
            "blocked",
            tried.request,
            response,
            successor=successor,
            blockers=decided.blockers,
            kept=tried.variables,
            notices=decided.notices,
            surface=tried.surface,
        )
        if on_tip:
            tx.set_run(run)
        commit.finish()
        return response

    def _view(
        self,
        at: Position,
        session: SessionRow,
        run: RunRow,
        decided: Decided,
        node: int,
        output: Output,
        attempt: int = 0,
    ) -> View:
        return View(
            session=session,
            run=run,
            plan=at.plan,
            state=decided.state,
            awaited=decided.awaited,
            node=node,
            attempt=attempt,
            blockers=decided.blockers,
            notices=decided.notices,
            notes_cut=len(output.notes.encode()) > NOTES_BYTES,
        )

    def rehydrate(self, target: Target) -> View | LedgerError:
        """Show a node again: recap on a tip, branches on a rewound node. Nothing is written."""
        with self.store.reading() as reader:
            node = head_node(reader, target)
            at = self.position(reader, target.session_id, node)
            if isinstance(at, LedgerError):
                return at
            used = reader.attempt(target.session_id, node, 0) is not None
            tip = reader.node(target.session_id, at.run.tip)
            return View(
                session=at.session,
                run=at.run,
                plan=at.plan,
                state=at.state,
                awaited=at.awaited,
                node=node,
                attempt=new_attempt() if used else 0,
                recap=recap(reader, at.node),
                branches=branches(reader, at.node, tip),
            )

    def checkpoint(
        self, target: Target, attempt: int, request: Mapping[str, Json], render: Render, output: Output
    ) -> Answered | LedgerError:
        """Keep notes at a node without advancing; the same token again changes nothing."""
        digest, key = request_digest(request), checkpoint_key(attempt)
        with self.store.writing() as tx:
            seen = tx.attempt(target.session_id, target.node, key)
            if seen is not None:
                return self._replay(seen, digest, target.handle)
            at = self.position(tx, target.session_id, target.node)
            if isinstance(at, LedgerError):
                return at
            commit = Commit(tx, at.session, self.clock())
            commit.add_outputs(at.node, key, at.step, output, None)
            node = commit.add_checkpoint(at.run.run, at.node, at.state)
            decided = Decided((), at.state, at.awaited)
            response = render(self._view(at, commit.session, at.run, decided, at.node.node, output))
            commit.add_attempt(at.node, key, "checkpointed", digest, response, child=node.node)
            commit.finish()
            self.index(tx, commit.session, at.state, output)
        return Answered(self.filled(response, target.handle))

    def note(self, target: Target, output: Output) -> str | LedgerError:
        """Keep notes in a session without a run, once however often they are sent; returns its id."""
        key = f"noted:{sha256(msgspec.json.encode(output)).hexdigest()}"
        with self.store.writing() as tx:
            session = healthy(tx, target.session_id)
            if isinstance(session, LedgerError):
                return session
            if tx.event_by_key(target.session_id, key) is not None:
                return target.session_id
            commit = Commit(tx, session, self.clock())
            commit.add_session_outputs(output, key)
            commit.finish()
            head = tx.node(target.session_id, session.head_node) if session.head_node is not None else None
            self.index(tx, commit.session, decode_state(head) if head else None, output)
        return target.session_id

    def index(self, tx: Writer, session: SessionRow, state: RunState | None, output: Output) -> None:
        """Keep what the session is found by up to date."""
        plans = [self.pins.plan(tx, run.workflow_hash) for run in tx.runs(session.session_id)]
        tx.set_search(search_row(session, plans, state, output))

    def text(self, digest: str) -> str:
        """A text that a run is pinned to."""
        with self.store.reading() as reader:
            body = reader.content(digest)
        if body is None:
            raise PinDamaged(f"the text {digest} is not in the store")
        return body.decode()

    def drift(self, run: RunRow) -> tuple[Notice, ...]:
        """Say when the workflow on disk is no longer the one that the run is pinned to."""
        now = self.library.load(run.workflow_id)
        if isinstance(now, Diagnostic):
            text = (
                f"Workflow “{run.workflow_id}” can no longer be loaded; the run goes on with its pinned copy."
            )
            return (Notice("WORKFLOW_GONE", text),)
        if now.hash != run.workflow_hash:
            text = f"Workflow “{run.workflow_id}” has changed on disk; the run goes on with its pinned copy."
            return (Notice("WORKFLOW_CHANGED", text),)
        return ()


def _door(command: Command) -> str:
    policy: SurfacePolicy = getattr(command, "policy", EXECUTION)
    return policy.name


def checkpoint_key(attempt: int) -> int:
    """Checkpoint attempts live beside a node's advances, below zero."""
    return -1 - attempt


def request_digest(request: Mapping[str, Json]) -> bytes:
    """What a repeated call is compared by."""
    return sha256(msgspec.json.encode(request, order="deterministic")).digest()


def title_of(context: Variables, name: str) -> str:
    """A session's title: what the context says, else the workflow's name (rule 42)."""
    return next(iter(named(context)), name)


def _legacy(loaded: Loaded) -> tuple[Notice, ...]:
    """Using a workflow with a legacy id always says what it should be called (rule 38)."""
    found = [diagnostic for diagnostic in loaded.diagnostics if diagnostic.code == LEGACY_ID]
    return tuple(Notice("LEGACY_WORKFLOW_ID", f"{one.message}; {one.next_action}.") for one in found)
