"""A run that a person works through, on the same ledger and with the same recorded answers as an agent's."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from interlock.authoring.library import Loaded
from interlock.core.run.commands import AcknowledgeStep, Decision
from interlock.core.run.outcomes import Refusal
from interlock.core.run.output import Output
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json, Variables
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Position, Target, remembered
from interlock.ledger.runs.view import View
from interlock.store.protocol import SessionRow
from interlock.surfaces.execution.render import answer

CLIENT = "interlock play"


class Turn(Struct, frozen=True):
    """What a person sends for the pending item."""

    output: Output = Output()
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}


class PlayedRun:
    """A run, and the view of its current node."""

    def __init__(self, ledger: Ledger, view: View) -> None:
        self.ledger = ledger
        self.view = view

    @classmethod
    def started(cls, ledger: Ledger, loaded: Loaded, context: Variables) -> PlayedRun | LedgerError:
        """Start a run."""
        views: list[View] = []
        outcome = ledger.start_run(loaded, context, lambda view: _rendered(views, view))
        return outcome if isinstance(outcome, LedgerError) else cls(ledger, views[-1])

    @classmethod
    def resumed(cls, ledger: Ledger, session: SessionRow) -> PlayedRun | LedgerError:
        """Continue a session from its head."""
        if session.head_node is None:
            return LedgerError(
                "CONFLICT", "This session has no run yet.", "Play a workflow by its id instead."
            )
        view = ledger.rehydrate(_target(ledger, session.session_id, session.head_node))
        return view if isinstance(view, LedgerError) else cls(ledger, view)

    def advance(self, turn: Turn) -> Refusal | LedgerError | None:
        """Send a turn for the pending item; the view shows the outcome."""
        views: list[View] = []
        request: dict[str, Json] = {"context": turn.variables, "output": {"notesMarkdown": turn.output.notes}}

        def acknowledgement(position: Position) -> AcknowledgeStep:
            return AcknowledgeStep(
                policy=EXECUTION,
                now=self.ledger.clock(),
                terms=self.ledger.settings.terms,
                output=turn.output,
                variables=remembered(position, turn.variables),
                decisions={**position.decisions, **turn.decisions},
                client=CLIENT,
            )

        outcome = self.ledger.advance(
            _target(self.ledger, self.view.session.session_id, self.view.node),
            self.view.attempt,
            request,
            acknowledgement,
            lambda view: _rendered(views, view),
            turn.output,
        )
        if isinstance(outcome, (Refusal, LedgerError)):
            return outcome
        self.view = views[-1]
        return None

    def step_back(self) -> bool:
        """Rewind to the node before; advancing from there makes a branch (rule 8)."""
        session_id = self.view.session.session_id
        with self.ledger.store.reading() as reader:
            node = reader.node(session_id, self.view.node)
        if node is None or node.parent is None:
            return False
        view = self.ledger.rehydrate(_target(self.ledger, session_id, node.parent))
        if isinstance(view, LedgerError):
            return False
        self.view = view
        return True


def _rendered(views: list[View], view: View) -> bytes:
    """Keep the view, and return the answer to record."""
    views.append(view)
    return answer(view)


def _target(ledger: Ledger, session_id: str, node: int) -> Target:
    with ledger.store.reading() as reader:
        handle = reader.handles(session_id)[0].handle
    return Target("st", handle, session_id, node, 0)
