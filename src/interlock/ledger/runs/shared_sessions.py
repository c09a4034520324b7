"""Sessions that several agents share (rules 6, 13 to 18): one head, a token each, every call traced.

A token names the node that it was given at, and is good for the visit of that node: reading never makes it
stale, and only progress moves on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct, field
from msgspec.structs import replace

from interlock.core.engine.claims import claimed_outputs
from interlock.core.engine.evolve import evolved
from interlock.core.run.commands import Claim
from interlock.core.run.events import ActivityEntered, Event, GateResolved, QuestionShown
from interlock.core.run.notices import NO_NOTICES, Notice, Notices, of_abandonment
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.state import OpenGate, RunState
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json
from interlock.ledger.attempt import Attempt
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import logged
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.records import CallTraced
from interlock.ledger.queries.traces import keep_trace
from interlock.ledger.repeatable import Repeatable, Replayed, digest_of_request
from interlock.ledger.runs.deliveries import Deliveries
from interlock.ledger.runs.position import Position, tip_of
from interlock.ledger.tokens.slots import slot
from interlock.ledger.tokens.tokens import HANDLE_MARK, Pointer, TokenError, new_handle, peek, read
from interlock.store.protocol import HandleRow, NodeRow, Reader

OWN_ATTEMPT = 2**40  # above every attempt that a token can name: session calls are replayed by their visit

ADOPTED = Notice(
    "ADOPTED",
    "The session token's signature did not match; the session it names was found and the token signed again. "
    "Its state comes from the log.",
)


class Calling(Struct, frozen=True):
    """One call of a tool, as it is traced. Nothing here may hold a token."""

    tool: str
    about: Mapping[str, Json] = {}
    began: float = field(default_factory=time.perf_counter)

    def traced(
        self, agent: str, state: RunState, now: int, error: str = "", notices: Notices = NO_NOTICES
    ) -> CallTraced:
        """Return the call as the trace holds it."""
        return CallTraced(
            tool=self.tool,
            agent=agent,
            at=now,
            ms=round((time.perf_counter() - self.began) * 1000, 3),
            ok=not error,
            activity=state.visit.activity,
            visit=state.visit.number,
            error=error,
            warnings=notices.messages if notices.listed else (),
            about=self.about,
        )


class Joined(Struct, frozen=True):
    """An agent's position in a session that was there before it."""

    handle: bytes
    position: Position
    agent: str
    notices: Notices
    adopted: bool = False


class SessionCall:
    """A progress call on the head of a session: decided by the surface, recorded here, once."""

    def __init__(
        self, ledger: Ledger, pointer: Pointer, position: Position, calling: Calling, policy: SurfacePolicy
    ) -> None:
        self._attempt = Attempt(ledger, position, OWN_ATTEMPT, b"")
        self._ledger = ledger
        self._policy = policy
        self.pointer = pointer
        self.position = position
        self.state = position.state
        self.calling = calling
        self.request: Mapping[str, Json] = {}  # what a repeated call is known by, beside its tool
        self.beside: Json = None  # what else the call has sent, which a repeat does not read again
        self.exact = False  # whether a call that sends something else beside is another call
        self.unread: tuple[str, ...] = ()  # members of its manifests that are not known
        self.agent = position.agent
        self.now = self._attempt.now
        self.lines = self._attempt.lines  # of the nodes that the call has read and recorded
        visit = position.state.visit.number
        self.given_in = visit if position.given_in is None else position.given_in
        self.is_stale = self.given_in != visit  # the token is of another visit than the current one (rule 13)
        self._kept = position.state

    @property
    def token(self) -> str:
        """The caller's token for the visit that the call found, after what a refusal has kept."""
        attempt = self._attempt
        line = attempt.lines[attempt.node]
        return self._ledger.mint("ses", self.pointer.handle, attempt.node, self._kept.visit.answered, line)

    def token_slot(self, decided: Decided) -> str:
        """Return what stands for the caller's token in the response that is recorded."""
        return self.slot_at_end(decided.state.visit.answered)

    def slot_at_end(self, attempt: int) -> str:
        """Return what stands for a token or a handle of the node that the call leads to."""
        return slot("ses", self.position.session.next_node, attempt)

    @property
    def trace_range(self) -> tuple[int, int]:
        """The events that tell of the current visit, up to this call."""
        return self.position.session.visit_index, self.position.session.head_index + 1

    def repeated(self) -> Replayed | None:
        """Return the recorded response if the same call was made in the current visit, or made it (rule 13).

        The repeat is traced; nothing else of it is recorded.
        """
        session, call = self.position.session, self._repeatable()
        number: int | None = self.position.node.node
        made: NodeRow | None = None
        with self._ledger.store.reading() as reader:
            # Back to the node that the visit began with, which the call may have made. In another visit the
            # same call is another one: an activity can be entered twice.
            while number is not None and (node := reader.node(session.session_id, number)) is not None:
                if node.request_digest == call.request:
                    made = node
                    break
                if made is None and not self.exact and call.is_known_as(node.request_digest):
                    made = node
                number = None if number == session.visit_node else node.parent
        if made is None or not made.response:
            return None
        replayed = call.replayed(made, self.pointer.handle, {made.node: made.line})
        self.trace_repeat()
        return replayed

    def notices(self, decided: Decided) -> Notices:
        """Return what the answer to the call should disclose."""
        notices = self._attempt.notices(decided)
        if not self.unread:
            return notices
        unread = ", ".join(f"'{name}'" for name in self.unread)
        return notices.plus([Notice("ARGUMENTS_IGNORED", f"Not read, because it is not known: {unread}.")])

    def trace_repeat(self) -> None:
        """Trace a call that returned what an earlier one has recorded."""
        self.calling = replace(self.calling, about={**self.calling.about, "repeated": True})
        keep_trace(self._ledger, self.position.session, self._traced("", NO_NOTICES))

    def _repeatable(self) -> Repeatable:
        """Return what the call is known by, and what else it has sent."""
        known_by = digest_of_request({"tool": self.calling.tool, **self.request})
        return Repeatable(digest_of_request({"beside": self.beside}), known_by)

    def record(
        self,
        decided: Decided,
        response: bytes,
        *,
        notices: Notices,
        claims: tuple[Claim, ...] = (),
    ) -> None:
        """Write what came of the call, with the new outputs of steps that exist and its trace."""
        activity = self.position.plan.workflow.activity(self.state.visit.activity)
        steps = {step.id for step in activity.steps()} if activity is not None else set()
        # Agents send the whole manifest with every call: what is recorded already is not recorded again.
        known = [
            Claim(step, output)
            for step, outputs in claimed_outputs(self.position.plan, self.state, claims).items()
            for output in outputs.new
            if step in steps
        ]
        self._attempt.request = self._repeatable().request
        self._attempt.record(
            decided,
            response,
            surface=self._policy.name,
            claims=known,
            notices=notices,
            trace=self._traced("", notices),
        )
        self.lines = self._attempt.lines

    def refuse(self, error: str, kept: tuple[Event, ...] = (), claims: tuple[Claim, ...] = ()) -> None:
        """Trace a refusal; what the call has passed before it is kept, with its outputs (rule 14)."""
        state, traced = evolved(self.state, kept), self._traced(error, NO_NOTICES)
        self._attempt.keep(kept, state, traced, claims)
        self._kept = state

    def _traced(self, error: str, notices: Notices) -> CallTraced:
        return self.calling.traced(self.agent, self.state, self.now, error, notices)


class Sessions:
    """What the session and gated surfaces ask of the ledger."""

    def __init__(self, ledger: Ledger, policy: SurfacePolicy, joining: str) -> None:
        self.ledger = ledger
        self.policy = policy
        self.deliveries = Deliveries(ledger, joining)

    def call(self, pointer: Pointer, calling: Calling) -> SessionCall:
        """Read the head of a session for a progress call."""
        return SessionCall(self.ledger, pointer, self.ledger.at(pointer), calling, self.policy)

    def trace(self, position: Position, calling: Calling, error: str, notices: Notices) -> None:
        """Trace a reading call; the head stays where it is."""
        traced = calling.traced(position.agent, position.state, self.ledger.clock(), error, notices)
        keep_trace(self.ledger, position.session, traced)

    def join(self, token: str, agent: str | None, calling: Calling) -> Joined | None:
        """Join a session by any surface's token of it; None if the token leads nowhere (rules 6, 34)."""
        keyring = self.ledger.keys.keyring()
        pointer = read(keyring, token, ("ses", "st", "nav"))
        if isinstance(pointer, TokenError) and pointer.code == "TOKEN_KEY_RETIRED":
            raise LedgerError(pointer.code, pointer.message, pointer.next_action)
        adopted = isinstance(pointer, TokenError)
        known = adoptable(self.ledger, token) if isinstance(pointer, TokenError) else pointer
        if known is None:
            return None
        loaded = self.ledger.load(known.handle)
        if loaded is None:
            return None
        self.ledger.given_at(known, loaded)
        position = self._head_of_run(known)
        session_id, joining = position.session_id, agent or loaded.agent
        with self.ledger.store.reading() as reader:
            handles = {row.agent: row for row in reader.handles(session_id)}
        new = () if joining in handles else (HandleRow(new_handle(), session_id, joining),)
        handle = new[0].handle if new else handles[joining].handle
        commit = Commit(position.rows(), self.ledger.principal, self.ledger.clock())
        notices = Notices(self.ledger.standing(position))
        notices = notices.plus([*of_abandonment(position.state), *([ADOPTED] if adopted else [])])
        traced = calling.traced(joining, position.state, commit.now, notices=notices)
        commit.add(traced, run=position.run.run)
        # A token of another run brings the session's one head to that run: all its agents go on there.
        commit.make_head(position.run.run, position.node.node)
        self.ledger.append(commit.finish(handles=new))
        return Joined(handle, position, joining, notices, adopted)

    def _head_of_run(self, pointer: Pointer) -> Position:
        """Return the head of the session, or the tip of another run that the token belongs to."""
        head = self.ledger.at(Pointer("ses", pointer.handle))
        if pointer.kind == "ses":
            return head
        try:
            named_run = self.ledger.at(pointer).run
        except LedgerError:  # its node is gone; the session is not
            return head
        if named_run.run == head.run.run:
            return head
        return self.ledger.position(head.session_id, tip_of(head.session, named_run))


def adoptable(ledger: Ledger, token: str) -> Pointer | None:
    """Return where a token leads whose key is lost; None if this keyring has signed the session (rule 6)."""
    keyring = ledger.keys.keyring()
    pointer = peek(keyring, token)
    loaded = ledger.load(pointer.handle) if pointer is not None else None
    # What was written since this keyring exists has its tokens from it, so no other is believed.
    if pointer is None or loaded is None or loaded.session.updated_at >= keyring.made_at:
        return None
    return replace(pointer, line=b"")  # nothing but its handle is believed


def session_token(ledger: Ledger, handle: bytes, position: Position) -> str:
    """Return an agent's token: the node, and how many of its visit's answers the agent has seen (rule 13)."""
    node = position.node
    return ledger.mint("ses", handle, node.node, position.state.visit.answered, node.line)


def mark(opened: OpenGate) -> int:
    """Return what a checkpoint handle carries beside the visit: which showing of which gate it is for."""
    return showing_mark(opened.key, opened.opened_at)


def showing_mark(key: str, shown_at: int) -> int:
    """Return the mark of a gate's question that was first shown in these words at this time."""
    opening = f"{key}:{shown_at}".encode()
    return int.from_bytes(sha256(opening).digest()[:4], "big") | HANDLE_MARK


def answer_of(ledger: Ledger, position: Position, opening: int) -> GateResolved | None:
    """Return the recorded answer to the question that a handle was given for; without one the newest."""
    answers: dict[str, GateResolved] = {}
    with ledger.store.reading() as reader:
        for event in _of_this_visit(reader, position):
            if isinstance(event, GateResolved):
                if not opening:
                    return event
                answers[event.key] = event
            elif isinstance(event, QuestionShown):
                if showing_mark(event.key, event.at) == opening:
                    return answers.get(event.key)
                answers.pop(event.key, None)
    return None


def answer_to(ledger: Ledger, position: Position, key: str) -> GateResolved | None:
    """Return the recorded answer to one instance of a gate in the current visit."""
    answers = numbered_answers(ledger, position)
    return next((answer for _, answer in reversed(answers) if answer.key == key), None)


def numbered_answers(ledger: Ledger, position: Position) -> list[tuple[int, GateResolved]]:
    """Return the answers of the current visit in order, each with how many were given before it."""
    with ledger.store.reading() as reader:
        newest_first = [
            event for event in _of_this_visit(reader, position) if isinstance(event, GateResolved)
        ]
    given = position.state.visit.answered
    return [(given - back, answer) for back, answer in enumerate(newest_first, 1)][::-1]


def _of_this_visit(reader: Reader, position: Position) -> Iterator[object]:
    """Yield what was asked and answered since the current activity was entered, newest first."""
    start = position.session.visit_index
    commits = reader.commits(position.session_id, start=start, newest_first=True)
    for row in logged(commits, newest_first=True):
        if isinstance(row.event, ActivityEntered):
            return
        yield row.event


def answered_already(refusal: Refusal) -> str | None:
    """Return the instance that a refusal names as answered, or as passed."""
    key, codes = refusal.about.get("instance"), (Code.CHECKPOINT_ALREADY_ANSWERED, Code.CHECKPOINT_NOT_ACTIVE)
    return key if refusal.code in codes and isinstance(key, str) else None
