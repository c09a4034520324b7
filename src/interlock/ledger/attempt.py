"""One call on a run: everything is read first, decided and rendered outside any transaction, then written.

The write compares the head that was read. A call that lost a race raises StoreConflict and is run again
from its read, at the edge where calls come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.requirements import REJECTIONS, asked_inputs
from interlock.core.engine.settle import awaited
from interlock.core.run.commands import Claim, Terms
from interlock.core.run.events import Event, GateResolved, QuestionDeclined, StepCompleted, StepReported
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
            told=decided.state,
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
        return replace(
            position.view(terms),
            attempt=self.successor if used else 0,
            note_attempt=self.successor,
            notices=Notices((*of_output(output), *standing)),
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

        `output` belongs to what the call closes, `claims` to steps of their own.
        """
        commit, run, node = self._commit(), self.position.run.run, self.position.node.node
        closed = [Claim(self._subject(decided), output)] if output is not None else []
        commit.add_outputs(run, node, self.number, [*closed, *claims])
        child = None if decided.blockers else self._add_node(commit, decided, surface)
        if child is None:
            self._add_blocked(commit, decided)
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
            awaited=decided.awaited if child is not None else _blocked_need(self.plan, decided),
        )
        key = self._rejection(decided.events) if child is None else None
        self.positions.append(self._finished(commit, key), *self._changes_elsewhere(decided))

    def _commit(self) -> Commit:
        return Commit(self.position.rows(), self.positions.principal, self.now)

    def _subject(self, decided: Decided) -> str:
        """Return what notes are kept under: what the call has closed, what was waiting, or the activity.

        Navigation passes over optional steps on its way, so that may be another step than the one it closed.
        """
        if decided.blockers:
            return subject_of(decided.awaited)
        steps = [event.key for event in decided.events if isinstance(event, StepCompleted)]
        answers = (event for event in decided.events if isinstance(event, GateResolved))
        closed = [*steps, *(answer.gate for answer in answers if answer.how in ("chosen", "dismissed"))]
        return closed[0] if closed else subject_of(self.position.pending) or self.state.visit.activity or ""

    def _add_node(self, commit: Commit, decided: Decided, surface: SurfaceName) -> int:
        """Record the events of an attempt that has passed, and the node that they lead to."""
        position = self.position
        cause: Cause = "non_tip_advance" if position.loaded.branches else "advanced"
        held = POLICIES[surface].exits == "claimed" and decided.state.visit.open is not None
        child = commit.add_node(position.run.run, position.node.node, decided, cause, held=held)
        self._give_title(commit, decided.state)
        return child

    def _add_blocked(self, commit: Commit, decided: Decided) -> None:
        """Record the events of an attempt that is blocked.

        A decline holds at the node: whoever comes back to it is not asked again by the agent (rule 27).
        """
        run, node = self.position.run.run, self.position.node.node
        for event in decided.events:
            commit.add(event, run=run, node=node if isinstance(event, QuestionDeclined) else None)

    def _rejection(self, events: Sequence[Event]) -> str | None:
        """Return what the rejection of a step is kept under: it is used, and the next call asks again."""
        rejects = any(isinstance(event, GateResolved) and event.option in REJECTIONS for event in events)
        return rejected_key(self.position.node.node, self.successor) if rejects else None

    def _changes_elsewhere(self, decided: Decided) -> list[Changes]:
        """Return what the attempt changes in the sessions of the run's children and of its parent."""
        position, state = self.position, decided.state
        changes = abandoned_below(self.positions, position, decided, self.now)
        if isinstance(decided.awaited, Done):
            values = state.variables if state.abandoned is None else None
            workflow = position.run.workflow_id
            changes += return_to_parent(self.positions, position.session, workflow, values, self.now)
        return changes

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
        position, run, commit = self.position, self.position.run.run, self._commit()
        done = {
            (event.step, event.output) for event in events if isinstance(event, (StepCompleted, StepReported))
        }
        kept = [claim for claim in claims if (claim.step, claim.output.digest) in done]
        commit.add_outputs(run, position.node.node, self.number, kept)
        if trace is not None:
            commit.add(trace, run=run)
        if changed:
            need = awaited(self.plan, state, POLICIES[position.run.surface])
            held = POLICIES[position.run.surface].exits == "claimed" and state.visit.open is not None
            passed = Decided(tuple(events), state, need)
            self.node = commit.add_node(run, position.node.node, passed, leads=position.is_tip, held=held)
            self._give_title(commit, state)
        self.positions.append(self._finished(commit, self._rejection(events)))

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
        commit, run, node = self._commit(), self.position.run.run, self.position.node.node
        commit.add_outputs(run, node, self.number, [Claim(subject_of(self.position.awaited), output)])
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
