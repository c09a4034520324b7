"""One call on a run: everything is read first, decided and rendered outside any transaction, then written.

The write compares the head that was read. A call that lost a race raises StoreConflict and is run again
from its read, at the edge where calls come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.requirements import asked_inputs
from interlock.core.engine.settle import awaited
from interlock.core.run.commands import Claim, Terms
from interlock.core.run.events import Event, GateResolved, QuestionDeclined, StepCompleted
from interlock.core.run.notices import Notices, of_output
from interlock.core.run.outcomes import Awaited, Decided, Done, NeedStep
from interlock.core.run.output import Output
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import POLICIES, SurfaceName
from interlock.core.values import Variables
from interlock.ledger.decisions.recorded import rejected_key
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.records import CallTraced, Cause, SessionTitled
from interlock.ledger.queries.run_words import named
from interlock.ledger.runs.children import abandoned_below, return_to_parent
from interlock.ledger.runs.position import Position, View, subject_of
from interlock.ledger.runs.positions import Positions
from interlock.ledger.tokens.tokens import new_attempt
from interlock.store.protocol import Changes


class Attempt:
    """An attempt on a run at one position. The clock is read once."""

    def __init__(self, positions: Positions, position: Position, number: int, request: bytes) -> None:
        self.positions = positions
        self.position = position
        self.number = number
        self.request = request
        self.now = positions.clock()
        self.plan: Plan = position.plan
        self.state: RunState = position.state
        self.lines = position.lines  # and those of what it has recorded
        self.node = position.node.node  # where it has led

    @cached_property
    def successor(self) -> int:
        """The attempt that the answer offers instead of this one, if the run stays where it is (rule 3)."""
        return new_attempt()

    def notices(self, decided: Decided) -> Notices:
        """Return what the answer discloses: what the outcome does, and drift."""
        drift = self.positions.drift.notices(self.position.run, self.plan.workflow.version)
        return decided.notices.plus(drift) if drift else decided.notices

    def view(self, decided: Decided, terms: Terms) -> View:
        """Return what the answer shows: the node that the attempt leads to, or its own if it is blocked."""
        blocked = bool(decided.blockers)
        position = self.position
        return View(
            session=position.session,
            run=position.run,
            plan=position.plan,
            state=decided.state,
            awaited=decided.awaited,
            node=position.node.node if blocked else position.session.next_node,
            attempt=self.successor if blocked else 0,
            note_attempt=self.successor if blocked else 0,
            blockers=decided.blockers,
            notices=self.notices(decided),
            terms=terms,
        )

    def unmoved(self, output: Output, terms: Terms) -> View:
        """Return what the answer shows when the run stays where it is."""
        position, loaded = self.position, self.position.loaded
        used = loaded.branches > 0 or any(row.attempt == 0 for row in loaded.blocked)
        standing = self.positions.standing(position)
        return View(
            session=position.session,
            run=position.run,
            plan=position.plan,
            state=position.state,
            awaited=position.awaited,
            node=position.node.node,
            attempt=self.successor if used else 0,
            note_attempt=self.successor,
            notices=Notices((*of_output(output), *standing)),
            terms=terms,
        )

    def record(
        self,
        decided: Decided,
        response: bytes,
        *,
        surface: SurfaceName,
        notices: Notices,
        output: Output | None = None,
        claims: Sequence[Claim] = (),
        variables: Variables | None = None,
        trace: CallTraced | None = None,
    ) -> None:
        """Write what came of the attempt, with its response, exactly once.

        `output` belongs to the pending item, `claims` to steps of their own.
        """
        position, run, node = self.position, self.position.run.run, self.position.node.node
        commit = Commit(position.rows(), self.positions.principal, self.now)
        if output is not None:
            commit.add_outputs(run, node, self.number, subject_of(position.awaited), output)
        for claim in claims:
            commit.add_outputs(run, node, self.number, claim.step, claim.output)
        child = None
        key = None
        need = decided.awaited
        if decided.blockers:
            need = _blocked_need(self.plan, decided)
            for event in decided.events:
                if isinstance(event, GateResolved):
                    key = rejected_key(node, self.number)
                commit.add(event, run=run, node=node if isinstance(event, QuestionDeclined) else None)
        else:
            cause: Cause = "non_tip_advance" if position.loaded.branches else "advanced"
            held = POLICIES[surface].exits == "claimed" and decided.state.open is not None
            child = commit.add_node(run, node, decided, cause, held=held)
            self._give_title(commit, decided.state)
        if trace is not None:
            commit.add(trace, run=run)
        commit.add_attempt(
            run,
            node,
            self.number,
            "blocked" if child is None else "advanced",
            self.request,
            response,
            child=child,
            successor=self.successor if child is None else None,
            blockers=decided.blockers,
            kept=variables if child is None else None,
            notices=notices.listed,
            surface=surface,
            awaited=need,
        )
        changes = [self._finished(commit, key)]
        changes += abandoned_below(self.positions, position, decided, self.now)
        if isinstance(decided.awaited, Done):
            changes += return_to_parent(
                self.positions,
                position.session,
                position.run.workflow_id,
                decided.state.variables if decided.state.abandoned is None else None,
                self.now,
            )
        self.positions.append(*changes)

    def keep(
        self,
        events: Sequence[Event],
        state: RunState,
        trace: CallTraced | None = None,
        claims: Sequence[Claim] = (),
    ) -> None:
        """Keep what a refused call has passed, with its variables and outputs (rules 14 and 19).

        Its token leads there from now on.
        """
        changed = bool(events) and not self.state.finished and state != self.state
        if not changed and trace is None:
            return
        position, run = self.position, self.position.run.run
        commit = Commit(position.rows(), self.positions.principal, self.now)
        done = {(event.step, event.output) for event in events if isinstance(event, StepCompleted)}
        for claim in claims:
            if (claim.step, claim.output.digest) in done:
                commit.add_outputs(run, position.node.node, self.number, claim.step, claim.output)
        if trace is not None:
            commit.add(trace, run=run)
        if changed:
            need = awaited(self.plan, state, POLICIES[position.run.surface])
            held = POLICIES[position.run.surface].exits == "claimed" and state.open is not None
            passed = Decided(tuple(events), state, need)
            self.node = commit.add_node(run, position.node.node, passed, leads=position.is_tip, held=held)
            self._give_title(commit, state)
        self.positions.append(self._finished(commit))

    def _finished(self, commit: Commit, key: str | None = None) -> Changes:
        """Return what the commit changes, and keep the time lines of its nodes for the answer's tokens."""
        changes = commit.finish(key)
        self.lines = commit.rows.lines
        return changes

    def _give_title(self, commit: Commit, state: RunState) -> None:
        """Name a session after its work as soon as its context does, if it has only its workflow's name."""
        if self.position.session.title == self.plan.workflow.name and (names := named(state.variables)):
            commit.add(SessionTitled(names[0]))

    def save_notes(self, response: bytes, output: Output) -> None:
        """Keep notes at the node without advancing (rule 8)."""
        position, run, node = self.position, self.position.run.run, self.position.node.node
        commit = Commit(position.rows(), self.positions.principal, self.now)
        commit.add_outputs(run, node, self.number, subject_of(position.awaited), output)
        child = commit.add_note_node(run, node)
        commit.add_attempt(
            run,
            node,
            self.number,
            "noted",
            self.request,
            response,
            child=child,
            successor=self.successor,
        )
        self.positions.append(self._finished(commit))


def _blocked_need(plan: Plan, decided: Decided) -> Awaited:
    """Return what a blocked attempt leaves awaited, with what its step asks the user."""
    need = decided.awaited
    if not isinstance(need, NeedStep):
        return need
    asks = tuple(asked.question.id for asked in decided.unanswered)
    return replace(need, asks=asks or asked_inputs(plan, decided.state, need.step))
