"""The ledger: open an attempt, start a run or session, show a run again. All surfaces record here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.compile.ids import LEGACY_ID
from interlock.authoring.library import Library, Loaded
from interlock.checks.jobs import CheckJobs
from interlock.core.definition.program import Plan
from interlock.core.guard.audit import Audit
from interlock.core.principals import Principal
from interlock.core.run.commands import Claim, StartRun
from interlock.core.run.events import RunStarted
from interlock.core.run.notices import Notice, Notices
from interlock.core.run.outcomes import Decided
from interlock.core.run.output import Output
from interlock.core.run.polls import Approver
from interlock.core.run.preferences import Preferences, SessionTerms, stricter
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, SurfacePolicy
from interlock.core.values import Json, Variables
from interlock.core.variables.inheritance import Passed
from interlock.ledger.attempt import Attempt
from interlock.ledger.errors import LedgerError, error_of, not_healthy, unknown_session
from interlock.ledger.git_context import observe
from interlock.ledger.heard_clients import HeardClients
from interlock.ledger.ids import new_id
from interlock.ledger.log.chain import GENESIS, entries_of
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.health import damage
from interlock.ledger.log.projection import Rows, begun_run, terms_within
from interlock.ledger.log.records import CallTraced, SessionCreated
from interlock.ledger.outbox.announcements import addressed
from interlock.ledger.outbox.courier import Courier
from interlock.ledger.queries.indexing import index_batch
from interlock.ledger.queries.run_words import named
from interlock.ledger.repeatable import Repeatable, Replayed, digest_of_request, start_row
from interlock.ledger.runs.brief import Brief, brief
from interlock.ledger.runs.children import begin_in_parent, passed_by
from interlock.ledger.runs.drift import DriftCheck
from interlock.ledger.runs.guarding import surely_decided
from interlock.ledger.runs.pinned_workflows import PinDamaged, is_whole
from interlock.ledger.runs.position import Position, View, tip_of
from interlock.ledger.runs.positions import Positions, milliseconds
from interlock.ledger.runs.recap import NOTED, branches
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.tokens import Pointer, new_attempt, new_handle
from interlock.store.protocol import (
    Changes,
    HandleRow,
    LoadedRows,
    NodeRow,
    Reader,
    Recorded,
    SessionRow,
    Store,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
)

IDLE_BATCHES = 10


class Start(Struct, frozen=True):
    """A run that is ready to be recorded. `view` is what the answer shows."""

    view: View
    handle: bytes
    commit: Commit
    new: bool
    contents: Mapping[str, bytes]
    parent: Changes | None = None
    agent: str = ""

    def disclosed(self, tool: str, client: str, notices: Notices) -> CallTraced | None:
        """Return the call as the trace holds it, for a surface that traces a start only for its notices."""
        if not notices.listed:
            return None
        state = self.view.state
        return CallTraced(
            tool=tool,
            agent=client,
            at=self.commit.now,
            ms=0.0,
            ok=True,
            activity=state.visit.activity,
            visit=state.visit.number,
            warnings=notices.messages,
        )


class NewSession(Struct, frozen=True):
    """A session without a run that is ready to be recorded."""

    session_id: str
    handle: bytes
    commit: Commit


class Ledger(Positions):
    """One log behind all surfaces."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        library: Library,
        settings: Settings,
        clock: Callable[[], int] = milliseconds,
    ) -> None:
        super().__init__(store, keys, settings, DriftCheck(library, clock), clock)
        self.library = library
        self.clients = HeardClients()
        self.jobs = CheckJobs()
        self._indexed_to = ""
        self.approvers: Callable[[str], Approver] = Approver  # who a principal is, with groups
        self.principal_of: Callable[[str], Principal | None] = lambda token: None
        self.may_decide: Callable[[str], bool] = lambda name: False  # whether it is an approver today
        self.courier: Callable[[], Courier] | None = None  # who sends what is due, if this process does

    def of(self, owner: str, principal: str = "") -> Ledger:
        """Return the same ledger for another owner: it finds and writes only that owner's sessions.

        `principal` is who acts on them, if that is not the owner.
        """
        ledger = copy(self)
        ledger.settings, ledger.owner = replace(self.settings, owner=owner), owner
        ledger.principal = principal or owner
        self.used = True  # whoever is idle indexes for every owner
        return ledger

    def attempt(self, pointer: Pointer, number: int, request: Mapping[str, Json]) -> Attempt | Replayed:
        """Read all that a call on a node needs, or return the recorded response of the same attempt.

        A repeated attempt computes nothing again (rule 7).
        """
        call, node = Repeatable(digest_of_request(request)), pointer.node
        while True:
            loaded = self.load(pointer.handle, node=node, attempt=number)
            if node == pointer.node:
                self.given_at(pointer, loaded)
            if loaded is not None and (recorded := loaded.recorded) is not None:
                return call.replayed(recorded, pointer.handle, lines_of(loaded, recorded))
            position = self._position(loaded, pointer.handle)
            carried_to = self.led_on_to(position, pointer.kind)
            onward = self.after_end(position) if carried_to is None else carried_to
            if onward is None:
                return Attempt(self, position, number, call.request)
            node = onward

    def start_session(self, title: str, policy: SurfacePolicy = EXECUTION) -> NewSession:
        """Prepare a session without a run. Nothing is stored before `record_session`."""
        commit, _ = self._new_session(title, policy, None)
        return NewSession(commit.rows.session.session_id, new_handle(), commit)

    def record_session(self, new: NewSession, response: bytes, start: Repeatable | None) -> None:
        """Store a session that was prepared, and its answer where the call can be repeated."""
        begun = new.session_id, new.handle, response, new.commit.now
        starts = (start_row(self.owner, start, *begun),) if start else ()
        self.append(new.commit.finish(handles=(HandleRow(new.handle, new.session_id),), starts=starts))

    def start(
        self,
        loaded: Loaded,
        context: Variables,
        *,
        policy: SurfacePolicy = EXECUTION,
        within: Pointer | None = None,
        parent: Position | None = None,
        agent: str = "",
        activity: str | None = None,
    ) -> Start:
        """Prepare a run pinned to the compiled workflow's hash, in a new session or in the given one.

        `parent` is the run that triggers it, `activity` the one to begin with. Nothing is stored before
        `record_start`.
        """
        triggered = passed_by(parent, loaded.workflow.id) if parent is not None else None
        passed = triggered or Passed()
        handle = new_handle() if within is None else within.handle
        if within is None:
            names = named({**context, **passed.variables})  # what it calls the work (rule 42)
            title = names[0] if names else loaded.workflow.name
            commit, began = self._new_session(title, policy, parent)
        else:
            commit, began = self._next_run(within)
        number = len(commit.rows.runs)
        plan, contents = self.pins.pin(self.content, loaded)
        decided = self._started(plan, loaded, context, policy, commit.now, began, activity, passed)
        began_by = next(event for event in decided.events if isinstance(event, RunStarted))
        node = commit.add_node(number, None, decided, "started")
        session, notices = commit.rows.session, decided.notices.plus(_legacy(loaded))
        if parent is not None and triggered is None:
            notices = notices.plus([_not_triggered(parent, loaded)])
        self.drift.seen(loaded)
        view = View(
            session=session,
            run=replace(begun_run(session.session_id, number, node, began_by), status=decided.state.status),
            plan=plan,
            state=decided.state,
            told=decided.state,
            awaited=decided.awaited,
            node=node,
            notices=notices,
            started=True,
            terms=self.settings.terms.within(decided.state.terms),
        )
        begun = (session.session_id, loaded.workflow.id, self.principal, commit.now)
        above = begin_in_parent(parent, *begun) if parent is not None else None
        return Start(view, handle, commit, within is None, contents, above, agent)

    def _next_run(self, within: Pointer) -> tuple[Commit, SessionTerms]:
        """Prepare another run of a session, under the terms of its next run."""
        session = self._healthy(within)
        rows = Rows(session)
        with self.store.reading() as reader:
            rows.runs.update({run.run: run for run in reader.runs(session.session_id)})
        return Commit(rows, self.principal, self.clock()), self.terms_within(session.session_id)

    def record_start(
        self,
        start: Start,
        response: bytes = b"",
        key: Repeatable | None = None,
        trace: CallTraced | None = None,
    ) -> None:
        """Store a run that was prepared, its answer where the call can be repeated, and the call's trace."""
        if trace is not None:
            start.commit.add(trace)
        session_id = start.view.session.session_id
        handles = (HandleRow(start.handle, session_id, start.agent),) if start.new else ()
        begun = session_id, start.handle, response, start.commit.now
        starts = (start_row(self.owner, key, *begun),) if key else ()
        changes = [start.commit.finish(handles=handles, starts=starts, contents=start.contents)]
        self.append(*changes, *([start.parent] if start.parent else []))

    def _started(
        self,
        plan: Plan,
        loaded: Loaded,
        context: Variables,
        policy: SurfacePolicy,
        now: int,
        began: SessionTerms,
        activity: str | None,
        passed: Passed,
    ) -> Decided:
        """Start a run under the terms of its session, which this process can only tighten (rule 29)."""
        own = self.own_mode or began.preferences
        start = StartRun(
            policy=policy,
            now=now,
            workflow_hash=loaded.hash,
            source=loaded.source.kind,
            preferences=stricter(began.preferences, own),
            variables=context,
            terms=self.settings.terms.within(began),
            activity=activity,
            passed=passed.variables,
            inherited=passed.inherited,
            by=self.principal,
        )
        return surely_decided(plan, RunState(), Audit(), start, loaded.workflow.id)

    def _new_session(
        self, title: str, policy: SurfacePolicy, parent: Position | None
    ) -> tuple[Commit, SessionTerms]:
        """Begin a session under the user's terms; those of a parent are not loosened in its child."""
        now, owner, above = self.clock(), self.owner, parent.session_id if parent else None
        session = SessionRow(new_id("sess"), owner, title, now, now, -1, GENESIS, 0, parent_session=above)
        commit = Commit(Rows(session), self.principal, now, new=True)
        terms = self.session_terms()
        if parent is not None:
            terms = terms.tightened(parent.state.terms)
        created = SessionCreated(
            owner,
            title,
            now,
            policy.name,
            above,
            preferences=terms.preferences,
            policy=terms.policy,
            enforcement=terms.enforcement,
        )
        commit.add(created)
        for observation in observe(self.settings.project):
            commit.add(observation)
        return commit, terms

    def _healthy(self, pointer: Pointer) -> SessionRow:
        loaded = self.load(pointer.handle)
        if loaded is None:
            raise unknown_session()
        if (reason := damage(loaded)) is not None:
            raise not_healthy(loaded.session.session_id, reason)
        return loaded.session

    def preferences(self) -> Preferences:
        """Return the mode of new sessions: the one this process was started with, else the user's choice."""
        with self.store.reading() as reader:
            stored = reader.setting(self.owner, "preferences")
        if stored is None or self.settings.preferences_fixed:
            return self.settings.preferences
        return msgspec.json.decode(stored, type=Preferences)

    def session_terms(self) -> SessionTerms:
        """Return the terms of new sessions."""
        terms = self.settings.terms
        return SessionTerms(self.preferences(), terms.decisions, terms.enforcement)

    def terms_within(self, session_id: str) -> SessionTerms:
        """Return the terms of a session's next run: the last change to them, else those of its start."""
        with self.store.reading() as reader:
            return terms_within(began_with(reader, session_id), reader.modes(session_id))

    def rehydrate(self, position: Position) -> View:
        """Show a node again: recap on a tip, branches on a rewound node. Nothing is written."""
        number, loaded = position.node.node, position.loaded
        used, after = any(row.attempt == 0 for row in loaded.blocked), None
        with self.store.reading() as reader:
            if loaded.branches and position.state.abandoned is None:
                used = used or reader.recorded(position.session_id, number, 0) is not None
                tip = reader.node(position.session_id, tip_of(position.session, position.run))
                after = branches(reader, position.node, tip)
            return replace(
                position.view(position.terms),
                attempt=new_attempt() if used else 0,
                note_attempt=new_attempt(),
                notices=Notices(self.standing(position)),
                brief=self.brief(reader, position),
                branches=after,
                decided=position.decisions,
                told=position.told(position.state),
            )

    def brief(self, reader: Reader, position: Position) -> Brief:
        """Return what an agent needs to go on from here after losing everything."""
        state, kept = position.state, {**position.kept, **position.answered}
        stated = state.variables.get("goal")
        goal = stated if isinstance(stated, str) and stated.strip() else position.session.title
        return brief(reader, position.node, position.plan, state, goal, kept)

    def note(self, pointer: Pointer, output: Output) -> str:
        """Keep notes in a session without a run, once however often they are sent; returns its id."""
        key = f"{NOTED}{sha256(msgspec.json.encode(output)).hexdigest()}"
        session = self._healthy(pointer)
        with self.store.reading() as reader:
            if reader.commit_by_key(session.session_id, key) is not None:
                return session.session_id
        commit = Commit(Rows(session), self.principal, self.clock())
        commit.add_outputs(None, -1, session.head_index + 1, [Claim("", output)])
        self.append(commit.finish(key))
        return session.session_id

    def append(self, *changes: Changes) -> None:
        """Write what a command changed, and what it has to say to those who want to hear of it."""
        super().append(*(addressed(change, self.settings.recipients) for change in changes))

    def idle(self) -> None:
        """Write traces, index and send what is due, while nobody waits."""
        with suppress(StoreBusy, StoreConflict, StoreUnavailable, StoreCorrupt, StoreTooNew):
            self.write_traces()
            self.clients.write(self.store, self.clock())
            if self.used:
                self.index_some()
                self._send_some()

    def _send_some(self) -> None:
        if self.courier is None:
            return
        with self.store.reading() as reader:
            is_due = bool(reader.due_messages(self.clock(), 1))
        if is_due:
            self.courier().wake()

    def index_some(self) -> None:
        """Go on with the index where it was left, so that busy sessions do not keep others waiting."""
        for _ in range(IDLE_BATCHES):
            self._indexed_to = index_batch(self.store, self.pins, self._indexed_to) or ""
            if not self._indexed_to:
                return

    def readiness(self) -> LedgerError | None:
        """Return what keeps this process from serving calls now: the store or the keys; None if nothing."""
        try:
            self.store.probe()
            self.keys.keyring()
        except Exception as error:
            known = error_of(error)
            if known is None:
                raise
            return known
        return None

    def close(self) -> None:
        """End what runs, write what is left and close the store, which folds its log into the file."""
        self.jobs.close()
        with suppress(StoreBusy, StoreConflict, StoreUnavailable, StoreCorrupt, StoreTooNew):
            self.write_traces()
            self.clients.write(self.store, self.clock())
        self.store.close()

    def text(self, digest: str) -> str:
        """Return a text that a run is pinned to."""
        body = self.content(digest)
        if body is None or not is_whole(body, digest):
            raise PinDamaged(f"the text {digest} is missing or damaged")
        return body.decode()


def _legacy(loaded: Loaded) -> Iterator[Notice]:
    """Say what a workflow with a legacy id should be called (rule 38)."""
    for diagnostic in loaded.diagnostics:
        if diagnostic.code == LEGACY_ID:
            yield Notice("LEGACY_WORKFLOW_ID", f"{diagnostic.message}; {diagnostic.next_action}.")


def _not_triggered(parent: Position, child: Loaded) -> Notice:
    """Say that a run begins a child which its workflow does not foresee."""
    where = parent.state.visit.activity or "none"
    text = f"Activity '{where}' declares no trigger of '{child.workflow.id}'; no context was passed on."
    return Notice("NOT_TRIGGERED", text)


def began_with(reader: Reader, session_id: str) -> SessionCreated:
    """Return the event that a session began with."""
    first = next(iter(reader.commits(session_id, limit=1)))
    return next(entry.event for entry in entries_of(first) if isinstance(entry.event, SessionCreated))


def lines_of(loaded: LoadedRows, recorded: Recorded) -> dict[int, bytes]:
    """Return the time lines of the nodes that a recorded response names: where it was asked and led to."""
    rows = (loaded.node, recorded if isinstance(recorded, NodeRow) else None)
    return {row.node: row.line for row in rows if row is not None}


def note_attempt(attempt: int) -> int:
    """Return the number of an attempt that only keeps notes: below zero, apart from a node's advances."""
    return -1 - attempt
