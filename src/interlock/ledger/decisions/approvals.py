"""Gates that named people decide, seen from outside: who has answered, who answers now, what time brings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Gate
from interlock.core.engine.decisions import quorum
from interlock.core.engine.evolve import evolved
from interlock.core.engine.gates import find_gate
from interlock.core.run.notices import APPROVERS_DECIDE, Notice
from interlock.core.run.outcomes import Decided, Refusal
from interlock.core.run.polls import Approver, entitled, seats_among
from interlock.core.run.state import OpenGate, RunState

AnyOutcome = TypeVar("AnyOutcome", bound=Decided | Refusal)


class GivenApproval(Struct, frozen=True, rename="camel"):
    """One person's answer; `seat` is the one who delegated it, if somebody did."""

    by: str
    option: str
    at: int
    channel: str
    seat: str = ""


class Approving(Struct, frozen=True, rename="camel"):
    """Who decides a question, who has answered, who has not, and until when."""

    by: tuple[str, ...]
    at_least: int
    answered: tuple[GivenApproval, ...]
    missing: tuple[str, ...]
    not_by: str = ""
    until: int = 0
    then: str = ""
    escalated_to: str = ""

    def admits(self, approver: Approver) -> bool:
        """Say whether this person may answer now."""
        return any(seats_among(self.by, approver, self.not_by))

    @property
    def text(self) -> str:
        """Say it in one line; the time is for the reader's own clock."""
        many = f"{self.at_least} of " if self.at_least > 1 else ""
        excluded = f", not {self.not_by}" if self.not_by else ""
        given = ", ".join(f"{each.by}: {each.option}" for each in self.answered) or "nobody yet"
        missing = f"; missing: {', '.join(self.missing)}" if self.missing else ""
        return f"Decided by {many}{', '.join(self.by)}{excluded}. Answered: {given}{missing}."


def approving(gate: Gate, state: RunState, opened: OpenGate) -> Approving | None:
    """Return how far the approvers of an open gate are; None if it names none."""
    rule = gate.decide
    if rule is None:
        return None
    poll = state.poll(opened)
    answered = tuple(
        GivenApproval(each.by, each.option, each.at, each.channel, each.seat if each.seat != each.by else "")
        for each in poll.approvals
    )
    counted = {each.entitled for each in poll.approvals}
    listed = entitled(rule, poll)
    excluded = (state.started_by or "the starter") if rule.not_by_starter else ""
    default = f"'{gate.default_option}' is taken" if gate.default_option is not None else ""
    then = f"escalated to {rule.escalate_to}" if rule.escalate_to else default
    return Approving(
        by=listed,
        at_least=rule.at_least,
        answered=answered,
        missing=tuple(name for name in listed if name not in counted and name != excluded),
        not_by=excluded,
        until=opened.opened_at + rule.within_ms if rule.within_ms is not None else 0,
        then=then if rule.within_ms is not None and not poll.escalated_to else "",
        escalated_to=poll.escalated_to,
    )


def of_approvers(plan: Plan, state: RunState) -> Iterator[Notice]:
    """Say who has answered the open question, who has not, and until when, while their answers do not do."""
    opened = state.visit.open
    found = find_gate(plan, state, opened.gate) if opened is not None and not state.finished else None
    if opened is None or found is None or found.gate.decide is None or state.terms.preferences.never_stops:
        return
    if quorum(found.gate.decide, state.poll(opened)) is not None:
        return
    people = approving(found.gate, state, opened)
    assert people is not None, "the gate names them"
    text = f"Checkpoint '{opened.gate}' is for named people. {people.text}"
    if people.until:
        then = f", then {people.then}" if people.then else ""
        text += f" Until {datetime.fromtimestamp(people.until / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC{then}."
    yield Notice(APPROVERS_DECIDE, f"{text} Your answer does not count: tell the user, and end your turn.")


def disclosing_approvers(plan: Plan, state: RunState, outcome: AnyOutcome) -> AnyOutcome:
    """Return an outcome with how far the approvers of the question are that the run waits at then."""
    after = outcome.state if isinstance(outcome, Decided) else evolved(state, outcome.kept)
    progress = tuple(of_approvers(plan, after))
    return replace(outcome, notices=outcome.notices.plus(progress)) if progress else outcome
