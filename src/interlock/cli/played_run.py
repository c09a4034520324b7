"""A run that a person works through, on the same ledger and with the same recorded answers as an agent's."""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.library import Loaded
from interlock.core.run.commands import AcknowledgeStep, Decision
from interlock.core.run.due_checks import CheckResult, DueCheck
from interlock.core.run.outcomes import Ask, Refusal, RunChecks
from interlock.core.run.output import Output
from interlock.core.run.questions import Question
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json, Variables
from interlock.ledger.errors import LedgerError, response_lost
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import handle_of
from interlock.ledger.repeatable import Replayed
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.check_runs import check_result
from interlock.ledger.runs.position import Position, View
from interlock.ledger.tokens.tokens import Pointer
from interlock.store.protocol import SessionRow
from interlock.surfaces.execution.render import answer

CLIENT = "interlock play"
LOOK_SECONDS = 0.2


class Turn(Struct, frozen=True):
    """What a person sends for the pending item."""

    output: Output = Output()
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}


class PlayedRun:
    """A run, and the view of its current node."""

    def __init__(self, ledger: Ledger, view: View, handle: bytes) -> None:
        self.ledger = ledger
        self.view = view
        self.handle = handle

    @classmethod
    def started(cls, ledger: Ledger, loaded: Loaded, context: Variables) -> PlayedRun:
        """Start a run."""
        start = ledger.start(loaded, context)
        ledger.record_start(start)
        return cls(ledger, start.view, start.handle)

    @classmethod
    def resumed(cls, ledger: Ledger, session: SessionRow) -> PlayedRun:
        """Continue a session from its head."""
        if session.head_node is None:
            raise LedgerError(
                "CONFLICT", "This session has no run yet.", "Play a workflow by its id instead."
            )
        position = ledger.position(session.session_id)
        return cls(ledger, ledger.rehydrate(position), handle_of(ledger, session.session_id))

    @until_recorded
    def advance(self, turn: Turn) -> Refusal | None:
        """Send a turn for the pending item; the view shows the outcome."""
        view, pointer = self.view, Pointer("st", self.handle, self.view.node)
        request: dict[str, Json] = {"context": turn.variables, "output": {"notesMarkdown": turn.output.notes}}
        attempt = self.ledger.attempt(pointer, view.attempt, request)
        if isinstance(attempt, Replayed):
            raise response_lost()
        position = attempt.position
        command = AcknowledgeStep(
            policy=EXECUTION,
            now=attempt.now,
            terms=self.ledger.terms(position.state),
            output=turn.output,
            variables={**position.kept, **turn.variables},
            decisions=position.decisions,
            asks_by="cli",
            client=CLIENT,
        )
        decided = attempt.position.decide(command)
        while isinstance(decided, (Ask, RunChecks)):
            if isinstance(decided, RunChecks):
                results = [self._checked(position, due) for due in decided.checks]
                command = replace(command, checked=(*command.checked, *results))
            else:
                for question in decided.questions:
                    command = _told(command, question, turn)
            decided = attempt.position.decide(command)
        if isinstance(decided, Refusal):
            return decided
        after = attempt.view(decided, command.terms)
        attempt.record(
            decided,
            answer(after),
            surface="execution",
            notices=after.notices,
            output=turn.output,
            variables=command.variables,
        )
        self.view = after
        return None

    def _checked(self, position: Position, due: DueCheck) -> CheckResult:
        """Run a check and wait for it: a terminal has nothing else to do."""
        while (result := check_result(self.ledger, position, due, may_wait=True)) is None:
            time.sleep(LOOK_SECONDS)
        return result

    def step_back(self) -> bool:
        """Rewind to the node before; advancing from there makes a branch (rule 8)."""
        position = self.ledger.position(self.view.session.session_id, self.view.node)
        if position.node.parent is None:
            return False
        self.view = self.ledger.rehydrate(self.ledger.position(position.session_id, position.node.parent))
        return True


def _told(command: AcknowledgeStep, question: Question, turn: Turn) -> AcknowledgeStep:
    """Answer a question with what the user has said in this turn."""
    decision = turn.decisions.get(question.id)
    if decision is None:
        return replace(command, declined=(*command.declined, question.digest))
    return replace(command, decisions={**command.decisions, question.digest: decision})
