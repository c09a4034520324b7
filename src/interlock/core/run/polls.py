"""The answers of several people to one question, as they come in (rule 27a)."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.run.channels import Channel


class Approver(Struct, frozen=True):
    """Who answers: a name, the groups that it belongs to, and those in whose place it may answer now."""

    name: str
    groups: tuple[str, ...] = ()
    stands_in_for: tuple[Approver, ...] = ()


class Approval(Struct, frozen=True, omit_defaults=True):
    """One answer. `seat` is whose it is: the answerer's own, or of the person who delegated it.

    `entitled` is the name or group of the gate's list that it comes by.
    """

    by: str
    seat: str
    entitled: str
    option: str
    channel: Channel
    at: int


class Poll(Struct, frozen=True, omit_defaults=True):
    """The answers to one question as it was shown, and when; and the group that it was escalated to."""

    shown: str
    since: int
    approvals: tuple[Approval, ...] = ()
    escalated_to: str = ""

    def with_approval(self, approval: Approval) -> Poll:
        """Return the poll with an answer; a person and a seat have one, the newest."""
        others = (each for each in self.approvals if approval.seat != each.seat and approval.by != each.by)
        return Poll(self.shown, self.since, (*others, approval), self.escalated_to)
