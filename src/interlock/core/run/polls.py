"""The answers of several people to one question, as they come in (rule 27a)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from interlock.core.definition.workflow import Approvers
from interlock.core.run.channels import Channel


class Approver(Struct, frozen=True):
    """Who answers: a name, the groups that it belongs to, and those in whose place it may answer now."""

    name: str
    groups: tuple[str, ...] = ()
    stands_in_for: tuple[Approver, ...] = ()


class ApproverAnswer(Struct, frozen=True, omit_defaults=True):
    """One answer. `seat` is whose it is: the answerer's own, or of the person who delegated it.

    `entitled` is the name or group of the gate's list that it comes by.
    """

    by: str
    seat: str
    entitled: str
    option: str
    channel: Channel
    at: int
    note: str = ""


class Poll(Struct, frozen=True, omit_defaults=True):
    """The answers to one question as it was shown, and when; and the group that it was escalated to."""

    shown: str
    since: int
    approvals: tuple[ApproverAnswer, ...] = ()
    escalated_to: str = ""

    def with_approval(self, approval: ApproverAnswer) -> Poll:
        """Return the poll with an answer; a person and a seat have one, the newest."""
        others = (each for each in self.approvals if approval.seat != each.seat and approval.by != each.by)
        return Poll(self.shown, self.since, (*others, approval), self.escalated_to)


def entitled(rule: Approvers, poll: Poll) -> tuple[str, ...]:
    """Return the names and groups that may answer now."""
    return (*rule.by, *((poll.escalated_to,) if poll.escalated_to else ()))


def seats(rule: Approvers, poll: Poll, approver: Approver, starter: str) -> Iterator[tuple[str, str]]:
    """Yield the seats that a person may take, with the entry of the list behind each: the own one first."""
    return seats_among(entitled(rule, poll), approver, starter if rule.not_by_starter else "")


def seats_among(listed: Sequence[str], approver: Approver, excluded: str) -> Iterator[tuple[str, str]]:
    """Yield the seats of a list that a person may take, who is not the one that is excluded."""
    for holder in (approver, *approver.stands_in_for):
        if excluded and excluded in (approver.name, holder.name):
            continue
        yield from ((holder.name, name) for name in listed if name in (holder.name, *holder.groups))
