"""Gates that named people decide, seen from outside: who has answered, who answers now, what time brings."""

from __future__ import annotations

from interlock.core.definition.workflow import Gate
from interlock.core.run.polls import entitled
from interlock.core.run.state import OpenGate, RunState
from interlock.ledger.queries.status import Shown


class GivenApproval(Shown, frozen=True):
    """One person's answer; `seat` is the one who delegated it, if somebody did."""

    by: str
    option: str
    at: int
    channel: str
    seat: str = ""


class Approving(Shown, frozen=True):
    """Who decides a question, who has answered, who has not, and until when."""

    by: tuple[str, ...]
    at_least: int
    answered: tuple[GivenApproval, ...]
    missing: tuple[str, ...]
    not_by: str = ""
    until: int = 0
    then: str = ""
    escalated_to: str = ""

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
    then = f"escalated to {rule.escalate_to}" if rule.escalate_to else gate.default_option or ""
    return Approving(
        by=listed,
        at_least=rule.at_least,
        answered=answered,
        missing=tuple(name for name in listed if name not in counted),
        not_by=(state.started_by or "the starter") if rule.not_by_starter else "",
        until=opened.opened_at + rule.within_ms if rule.within_ms is not None else 0,
        then=then if rule.within_ms is not None and not poll.escalated_to else "",
        escalated_to=poll.escalated_to,
    )
