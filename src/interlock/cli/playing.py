"""A person's way through a run, over the same ledger and the same recorded answers as an agent's."""

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
    """What a person hands in for the pending item."""

    output: Output = Output()
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}


class PlayedRun:
    """A run and where the person stands in it."""

    def __init__(self, ledger: Ledger, view: View) -> None:
        self.ledger = ledger
        self.view = view

    @classmethod
    def started(cls, ledger: Ledger, loaded: Loaded, context: Variables) -> PlayedRun | LedgerError:
        """Begin a real run."""
        seen: list[View] = []
        begun = ledger.start_run(loaded, context, lambda view: _kept(seen, view))
        return begun if isinstance(begun, LedgerError) else cls(ledger, seen[-1])

    @classmethod
    def taken_up(cls, ledger: Ledger, session: SessionRow) -> PlayedRun | LedgerError:
        """Go on with a session where it stands."""
        if session.head_node is None:
            return LedgerError(
                "CONFLICT", "This session has no run yet.", "Play a workflow by its id instead."
            )
        view = ledger.rehydrate(_place(ledger, session.session_id, session.head_node))
        return view if isinstance(view, LedgerError) else cls(ledger, view)

    def hand_in(self, turn: Turn) -> Refusal | LedgerError | None:
        """Close the pending item; the view shows what came of it."""
        seen: list[View] = []
        view = self.view
        request: dict[str, Json] = {"context": turn.variables, "output": {"notesMarkdown": turn.output.notes}}
        outcome = self.ledger.advance(
            _place(self.ledger, view.session.session_id, view.node),
            view.attempt,
            request,
            lambda at: self._acknowledging(at, turn),
            lambda view: _kept(seen, view),
            turn.output,
        )
        if isinstance(outcome, (Refusal, LedgerError)):
            return outcome
        self.view = seen[-1]
        return None

    def _acknowledging(self, at: Position, turn: Turn) -> AcknowledgeStep:
        return AcknowledgeStep(
            policy=EXECUTION,
            now=self.ledger.clock(),
            terms=self.ledger.settings.terms,
            output=turn.output,
            variables=remembered(at, turn.variables),
            decisions={**at.decisions, **turn.decisions},
            client=CLIENT,
        )

    def step_back(self) -> bool:
        """Rewind to the node before; going on from there makes a branch (rule 8)."""
        session_id = self.view.session.session_id
        with self.ledger.store.reading() as reader:
            node = reader.node(session_id, self.view.node)
        if node is None or node.parent is None:
            return False
        view = self.ledger.rehydrate(_place(self.ledger, session_id, node.parent))
        if isinstance(view, LedgerError):
            return False
        self.view = view
        return True


def _kept(seen: list[View], view: View) -> bytes:
    seen.append(view)
    return answer(view)


def _place(ledger: Ledger, session_id: str, node: int) -> Target:
    with ledger.store.reading() as reader:
        handle = reader.handles(session_id)[0].handle
    return Target("st", handle, session_id, node, 0)
