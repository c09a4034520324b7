"""Where a command starts from: a run at one node, read at once and checked (rule 44)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.decide import decide
from interlock.core.engine.requirements import questions_at, user_values
from interlock.core.engine.settle import awaited
from interlock.core.guard.audit import Audit
from interlock.core.run.commands import Command, Decision, Terms
from interlock.core.run.notices import NO_NOTICES, Notice, Notices, of_answers
from interlock.core.run.outcomes import (
    Ask,
    Awaited,
    Code,
    Decided,
    NeedAnswer,
    NeedInput,
    NeedLoop,
    NeedStep,
    Refusal,
    RunChecks,
)
from interlock.core.run.reasons import Blocker
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, POLICIES, SurfacePolicy
from interlock.core.values import Variables
from interlock.ledger.decisions.approvals import disclosing_approvers
from interlock.ledger.decisions.recorded import as_attempted
from interlock.ledger.log.projection import Rows
from interlock.ledger.runs.brief import Brief
from interlock.ledger.runs.guarding import log_refused, surely_decided
from interlock.ledger.runs.recap import Branches
from interlock.store.protocol import LoadedRows, NodeRow, RunRow, SessionRow


class Position(Struct, frozen=True, dict=True):
    """A run at one node. `handle` and `agent` are the caller's; without a caller they are empty.

    `stored` is the state with the node's own mode; that of `state` may be tighter in this process, and
    `terms` are those that hold for its calls (rule 29). `audit` is what the guard has learned, `kept` the
    context that blocked attempts at this node have sent (rule 10). `given_in` is the visit in which the
    caller's token was given, if it is not the current one.
    """

    loaded: LoadedRows
    node: NodeRow
    run: RunRow
    plan: Plan
    state: RunState
    stored: RunState
    audit: Audit
    terms: Terms
    kept: Variables = {}
    decisions: Mapping[str, Decision] = {}
    handle: bytes = b""
    given_in: int | None = None

    @property
    def session(self) -> SessionRow:
        return self.loaded.session

    @property
    def session_id(self) -> str:
        return self.loaded.session.session_id

    @property
    def agent(self) -> str:
        return self.loaded.agent

    @property
    def answered(self) -> Variables:
        """What the user's answers set that the next call uses: no text shows another value (rule 26)."""
        if not self.decisions:
            return {}
        return user_values(self.plan, as_attempted(self.state, self.loaded), self.awaited, self.decisions)

    def told(self, state: RunState) -> RunState:
        """Return the state that texts about this position are rendered with."""
        if not self.decisions:
            return state
        return replace(state, variables={**state.variables, **self.answered})

    @property
    def answers(self) -> tuple[Notice, ...]:
        """What the user has answered, for whoever reads the run."""
        asked_in = as_attempted(self.state, self.loaded)
        asked = questions_at(self.plan, asked_in, self.awaited) if self.decisions else ()
        return tuple(of_answers(self.state, asked, self.decisions))

    @cached_property
    def awaited(self) -> Awaited:
        """What the run waits for on the execution surface."""
        return awaited(self.plan, self.state, EXECUTION)

    @cached_property
    def pending(self) -> Awaited:
        """What the run waits for on its own surface, which people are shown."""
        return awaited(self.plan, self.state, POLICIES[self.run.surface])

    @property
    def asking(self) -> SurfacePolicy:
        """The surface whose agents use the answer to the open question.

        It is the one that the question was put on, which need not be the one that the run was started on
        (rule 34); but an agent that was held up there with tokens of its own comes back with them.
        """
        if self.loaded.blocked:
            return EXECUTION
        opened = self.state.visit.open
        return POLICIES[opened.surface if opened is not None and opened.surface else self.run.surface]

    @property
    def lines(self) -> Mapping[int, bytes]:
        """The time line of the node."""
        return {self.node.node: self.node.line}

    @property
    def is_tip(self) -> bool:
        return tip_of(self.session, self.run) == self.node.node

    def decide(self, command: Command) -> Decided | Refusal | Ask | RunChecks:
        """Decide a command here; what the guard refuses is logged."""
        outcome = decide(self.plan, self.state, command, self.audit)
        if isinstance(outcome, (Ask, RunChecks)):
            return outcome
        if isinstance(outcome, Refusal) and outcome.code is Code.GUARD_REFUSED:
            log_refused(outcome, command, self.where)
        return disclosing_approvers(self.plan, self.state, outcome)

    def decide_unasked(self, command: Command) -> Decided | Refusal:
        """Decide a command here for which nobody is asked."""
        outcome = self.decide(command)
        assert not isinstance(outcome, (Ask, RunChecks)), "a command that needs nobody"
        return outcome

    def surely_decide(self, command: Command) -> Decided:
        """Decide a command here that only the guard refuses, as an error."""
        return surely_decided(self.plan, self.state, self.audit, command, self.where)

    @property
    def where(self) -> str:
        """The session and the node, for the log of the server."""
        return f"{self.session_id}, node {self.node.node}"

    def view(self, terms: Terms) -> View:
        """Return what a surface renders while the run stays here."""
        return View(
            session=self.session,
            run=self.run,
            plan=self.plan,
            state=self.state,
            told=self.state,
            awaited=self.awaited,
            node=self.node.node,
            terms=terms,
        )

    def rows(self) -> Rows:
        """Return the rows that a command on this position may change."""
        rows = Rows(self.session)
        rows.runs[self.run.run] = self.run
        rows.nodes[self.node.node] = self.node
        # As it is stored: a tighter mode of this process holds for its calls and is not recorded.
        rows.states[self.node.node] = self.stored
        rows.audits[self.node.node] = self.audit
        rows.blocked[self.node.node] = list(self.loaded.blocked)
        rows.notes[self.node.node] = [note.node for note in self.loaded.notes]
        if self.loaded.branches:
            rows.left.add(self.node.node)
        rows.nodes.update({note.node: note for note in self.loaded.notes})
        # Another run may be the session's head; it keeps its tip in its own row once the head leaves it.
        if (head := self.loaded.head_run) is not None:
            rows.runs.setdefault(head.run, head)
        return rows


class View(Struct, frozen=True, kw_only=True):
    """What a surface renders: a run at one node.

    `told` is the state that texts are rendered with. `attempt` is the one to offer for the next advance,
    `note_attempt` the one for notes. `decided` are the digests of pending questions that the user has
    answered.
    """

    session: SessionRow
    run: RunRow
    plan: Plan
    state: RunState
    told: RunState
    awaited: Awaited
    node: int
    attempt: int = 0
    note_attempt: int = 0
    blockers: tuple[Blocker, ...] = ()
    notices: Notices = NO_NOTICES
    brief: Brief | None = None
    branches: Branches | None = None
    started: bool = False
    terms: Terms = Terms()
    decided: Collection[str] = ()


def tip_of(session: SessionRow, run: RunRow) -> int:
    """Return the preferred tip of a run: the session's head while the run is the one advanced last."""
    return session.head_node if session.head_run == run.run and session.head_node is not None else run.tip


def subject_of(need: Awaited) -> str:
    """Return the name under which notes of the pending item are kept."""
    match need:
        case NeedStep(key=key):
            return key
        case NeedAnswer(gate=gate):
            return gate.id
        case NeedInput(subject=subject):
            return subject
        case NeedLoop(loop=loop):
            return loop.id
        case _:
            return ""
