"""From a token or an id to a run at one node: one read, then every check (rules 2 and 44)."""

from __future__ import annotations

import time
from _thread import allocate_lock  # threading costs start-up and adds nothing here
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from interlock.core.engine.evolve import abandoned
from interlock.core.run.notices import Notice, of_mode
from interlock.core.run.preferences import stricter
from interlock.core.run.state import waits_alike
from interlock.core.run.surface_policy import EXECUTION
from interlock.ledger.decisions.approvals import of_approvers
from interlock.ledger.decisions.recorded import approved, recorded_decisions
from interlock.ledger.errors import LedgerError, not_healthy, other_time_line, unknown_node, unknown_session
from interlock.ledger.log.health import damage, intact
from interlock.ledger.log.projection import audited_state_of, kept_at, state_of, with_run_wide
from interlock.ledger.runs.drift import DriftCheck
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.ledger.runs.position import Position, subject_of, tip_of
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keyring, Keys
from interlock.ledger.tokens.slots import fill
from interlock.ledger.tokens.tokens import NAMES, OF_NODES, Kind, Pointer, TokenError, mint, read
from interlock.store.protocol import Changes, LoadedRows, NodeRow, Store, TraceRow


class ProcessClock:
    """Milliseconds since 1970 that never go back within a process, also when the clock does (rule 24)."""

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._read = wall(), monotonic()

    def __call__(self) -> int:
        last, at = self._read
        ticks = self._monotonic()
        self._read = max(self._wall(), last + ticks - at), ticks
        return self._read[0] // 1_000_000


milliseconds = ProcessClock()


class Positions:
    """Opens tokens, reads positions, and appends what was decided on them."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        settings: Settings,
        drift: DriftCheck,
        clock: Callable[[], int],
    ) -> None:
        self.store = store
        self.settings = settings
        self.owner = self.principal = settings.owner
        self.keys = keys
        self.drift = drift
        self.clock = clock
        # The mode of this process tightens its calls, and nothing that is recorded.
        self.own_mode = settings.preferences if settings.preferences_fixed else None
        self.pins = Pins()
        self.unwritten: list[TraceRow] = []
        self._writing_traces = allocate_lock()
        self.used = False

    def read_token(self, token: str, *kinds: Kind) -> Pointer:
        """Check a token's form and signature; nothing is looked up."""
        return _pointer(self.keys.keyring(), token, *kinds)

    def read_pair(self, state_token: str, token: str, kind: Kind) -> Pointer:
        """Check a state token and the token beside it, which must belong to the same node."""
        keyring = self.keys.keyring()
        state = _pointer(keyring, state_token, "st")
        beside = _pointer(keyring, token, kind)
        if (beside.handle, beside.node, beside.line) == (state.handle, state.node, state.line):
            return beside
        which = "another run" if beside.handle != state.handle else "another step of this session"
        raise LedgerError(
            "TOKEN_SCOPE_MISMATCH",
            f"This is {NAMES[kind]} of {which}, not of the state token beside it.",
            "Use the tokens of one and the same response together.",
        )

    def mint(self, kind: Kind, handle: bytes, node: int = 0, attempt: int = 0, line: bytes = b"") -> str:
        """Sign a pointer; nothing is stored (rule 3). A time line that is not given is looked up."""
        if kind in OF_NODES and not line:
            line = self._line(handle, node)
        return mint(self.keys.keyring().current, Pointer(kind, handle, node, attempt, line))

    def filled(self, response: bytes, handle: bytes, lines: Mapping[int, bytes] | None = None) -> bytes:
        """Put live tokens into an encoded response. `lines` are the time lines that the caller has read."""
        known = lines or {}

        def line_of(node: int) -> bytes:
            return known.get(node) or self._line(handle, node)

        return fill(response, self.keys.keyring().current, handle, line_of)

    def _line(self, handle: bytes, node: int) -> bytes:
        with self.store.reading() as reader:
            return reader.line(handle, node) or b""

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs; a session of another owner is not found (rule 46)."""
        loaded = self.store.load(handle, node=node, attempt=attempt)
        return loaded if loaded is not None and loaded.session.owner == self.owner else None

    def open(self, token: str, *kinds: Kind) -> Position:
        """Read the run that a token leads to: at its node, or at the head for a token of a visit."""
        return self.at(self.read_token(token, *kinds))

    def taken_up(self, token: str) -> Position:
        """Read the run that any surface's token leads to by now (rule 34)."""
        return self.onward(self.read_token(token, "st", "nav", "ses"))

    def at(self, pointer: Pointer) -> Position:
        """Read the run at the node that a pointer names, or at the head if it names a visit.

        A pointer to a run's end leads to what was resolved since.
        """
        node = None if pointer.kind in ("ses", "sst") else pointer.node
        loaded = self.load(pointer.handle, node=node)
        given = self.given_at(pointer, loaded)
        position = self._position(loaded, pointer.handle)
        while (node := self.after_end(position)) is not None:
            position = self._position(self.load(pointer.handle, node=node), pointer.handle)
        if given is None or given.node == position.node.node:
            return position
        return replace(position, given_in=state_of(given).visit.number)

    def head_of(self, pointer: Pointer) -> Position:
        """Read the head of the session that a pointer of any kind leads to."""
        self.given_at(pointer, self.load(pointer.handle))
        return self.at(Pointer("ses", pointer.handle))

    def given_at(self, pointer: Pointer, loaded: LoadedRows | None) -> NodeRow | None:
        """Return the node that a token was given at, or refuse a token of another time line (rule 4a)."""
        if loaded is None or not pointer.line or pointer.kind not in OF_NODES:
            return None
        node, session_id = loaded.node, loaded.session.session_id
        if node is None or node.node != pointer.node:
            with self.store.reading() as reader:
                node = reader.node(session_id, pointer.node)
        if node is not None and node.line == pointer.line:
            return node
        position = self.position(session_id)
        kind: Kind = "st" if pointer.kind in ("ack", "chk") else pointer.kind
        head = position.node
        token = self.mint(
            kind, pointer.handle, head.node, position.state.visit.answered * (kind == "ses"), head.line
        )
        raise other_time_line(token, _place(position))

    def after_end(self, position: Position) -> int | None:
        """Return the newest node after a run's end, where gaps were resolved since; None if there is none."""
        if (
            not position.loaded.branches
            or not position.state.finished
            or position.state.abandoned is not None
        ):
            return None
        with self.store.reading() as reader:
            children = reader.children(position.session_id, position.node.node)
        return max(child.node for child in children if child.kind == "step")

    def position(self, session_id: str, node: int | None = None) -> Position:
        """Read a run by the id of its session: at a node, or at the head."""
        return self._position(self.load(session_id, node=node), b"")

    def at_tip(self, session_id: str, run: int) -> Position:
        """Read a run at its preferred tip."""
        with self.store.reading() as reader:
            session, row = reader.session(session_id), reader.run(session_id, run)
        if session is None or row is None:
            raise unknown_session()
        return self.position(session_id, tip_of(session, row))

    def position_onward(self, session_id: str, node: int) -> Position:
        """Read a run at the node that kept variables, a child's return or the user have led to."""
        position = self.position(session_id, node)
        while position.loaded.carried_to is not None:
            position = self.position(session_id, position.loaded.carried_to)
        return position

    def onward(self, pointer: Pointer) -> Position:
        """Do as `position_onward` for the caller's own pointer."""
        position = self.at(pointer)
        while (node := self.led_on_to(position, pointer.kind)) is not None:
            position = self._position(self.load(pointer.handle, node=node), pointer.handle)
        return position

    def led_on_to(self, position: Position, kind: Kind) -> int | None:
        """Return the node that a token of this one leads on to, if no attempt made it (rule 8).

        A navigation state follows all of them, another token only those where the run is as it was: a child
        has begun or returned, or variables were kept.
        """
        onward = position.loaded.carried_to
        if onward is None or kind == "nav":
            return onward
        with self.store.reading() as reader:
            node = reader.node(position.session_id, onward)
        return onward if node is not None and waits_alike(position.state, state_of(node)) else None

    def _position(self, loaded: LoadedRows | None, handle: bytes) -> Position:
        """Check what was read before anything in it is used."""
        if loaded is None:
            raise unknown_session()
        session_id = loaded.session.session_id
        if (reason := damage(loaded)) is not None:
            raise not_healthy(session_id, reason)
        node, run = loaded.node, loaded.run
        if node is None or run is None:
            raise unknown_node()
        if not intact(node.state, node.state_digest):
            raise not_healthy(session_id, "a node's state does not match its digest")
        plan = self.pins.plan(self.content, run.workflow_hash)
        state, audit = audited_state_of(node, loaded.mode)
        state, audit = with_run_wide(state, audit, run)
        if run.status == "abandoned" and state.abandoned is None:
            # Abandoning ends every branch, but is recorded at the tip of one: the others learn it here.
            with self.store.reading() as reader:
                tip = reader.node(session_id, tip_of(loaded.session, run))
            how = state_of(tip).abandoned if tip is not None else None
            if how is None:
                raise not_healthy(session_id, "nothing says who abandoned its run")
            state, audit = abandoned(state, how), replace(audit, status="abandoned")
        stored = state
        if self.own_mode is not None:
            state = state.under(stricter(state.terms.preferences, self.own_mode))
        agreed = approved(plan, state)
        position = Position(
            loaded=loaded,
            node=node,
            run=run,
            plan=plan,
            state=state,
            stored=stored,
            audit=audit,
            kept=kept_at(loaded.blocked),
            decisions=agreed,
            handle=handle,
            terms=self.settings.terms.within(stored.terms),
        )
        # An answer stays at the node where its question was put. Of a node that no attempt made (a child has
        # begun or returned, variables were kept) that may be an earlier one, so the log has to be read.
        is_asked = state.visit.open is not None or bool(state.visit.asked)
        if not loaded.decisions and not (node.attempt is None and is_asked):
            return position
        with self.store.reading() as reader:
            decisions = recorded_decisions(plan, state, position.awaited, loaded, reader)
        return replace(position, decisions={**decisions, **agreed})

    def standing(self, position: Position) -> tuple[Notice, ...]:
        """Return what every read of a run says while it holds: answers, who is to decide, drift, the mode."""
        workflow = position.plan.workflow
        drift = self.drift.notices(position.run, workflow.version)
        mode = of_mode(position.state.terms.preferences, workflow.recommended)
        approvers = of_approvers(position.plan, position.state)
        return (*position.answers, *approvers, *drift, *mode)

    def write_traces(self) -> None:
        """Write the traces of reading calls that are not stored yet; a failed write keeps them."""
        with self._writing_traces:
            if rows := self.unwritten[:]:
                self.store.trace(rows)
                del self.unwritten[: len(rows)]

    def content(self, digest: str) -> bytes | None:
        """Return what is stored under a digest."""
        with self.store.reading() as reader:
            return reader.content(digest)

    def append(self, *changes: Changes) -> None:
        """Write what a command changed, or raise StoreConflict: then the call is run again from its read."""
        self.used = True
        self.store.append(*sorted(changes, key=lambda change: change.session.session_id))


def _place(position: Position) -> str:
    """Say where a run is, for an agent that believes it to be elsewhere."""
    state, pending = position.state, subject_of(position.pending)
    if state.finished:
        return "at its end" if state.abandoned is None else "abandoned"
    named = state.visit.activity is not None and position.run.surface != EXECUTION.name  # there steps are all
    within = f" in activity '{state.visit.activity}'" if named else ""
    return f"at '{pending}'{within}" if pending else within.strip() or "at its beginning"


def _pointer(keyring: Keyring, token: str, *kinds: Kind) -> Pointer:
    pointer = read(keyring, token, kinds)
    if isinstance(pointer, TokenError):
        raise LedgerError(pointer.code, pointer.message, pointer.next_action)
    return pointer
