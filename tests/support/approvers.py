"""A run that waits for named people, those people, and what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlock.core.message import Message
from interlock.core.run.channels import Channel
from interlock.core.run.polls import Approver
from interlock.ledger.decisions.inbox import WaitingQuestion, answer_question, inbox
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.courier import Courier
from interlock.ledger.outbox.wording import equip
from support.attacker import AUTO, Attacker
from support.harness import Bench, gate, steps, workflow

RULE = {
    "by": ["ada", "ben", "leads"],
    "atLeast": 2,
    "notBy": "starter",
    "within": "60s",
    "remind": "20s",
    "then": {"escalate": "board"},
}
GROUPS = {"cleo": ("leads",), "dora": ("leads",), "eve": ("board",)}


class Desk:
    """A run that waits for approvers, the people who answer, and what they are told."""

    def __init__(self, bench: Bench, surface: str, rule: Mapping[str, Any] = RULE, approver: str = ""):
        bench.write(workflow(*steps("build"), gate("ship", "yes", "no", decide=rule), *steps("last")))
        self.told: list[Message] = []
        self.bench = bench
        self.agent = Attacker(bench, surface, AUTO)
        ledger = self.agent.ledger
        recipients = {"ops": Recipient(self.told.append, detail="question", approver=approver)}
        ledger.settings = replace(
            ledger.settings, recipients=recipients, console_url="https://desk.example/console"
        )
        ledger.may_decide = lambda name: name == approver
        self.agent.ledger.approvers = self.approver
        self.away: dict[str, str] = {}
        self.courier: Courier = equip(self.agent.ledger)
        self.agent.start("test.flow", "main")
        self.first = dict(self.agent.tokens)
        self.agent.do("build")
        self.agent.reach("ship", "main")

    def rewinds(self) -> None:
        """Let the agent go back, build something else, and come to the question in the same words."""
        self.agent.call("continue_workflow", stateToken=self.first["stateToken"])
        self.agent.do("build", {"notesMarkdown": "Something else."})
        self.agent.reach("ship", "main")

    def approver(self, name: str) -> Approver:
        stands_in = [of for of, to in self.away.items() if to == name]
        return Approver(
            name, GROUPS.get(name, ()), tuple(Approver(of, GROUPS.get(of, ())) for of in stands_in)
        )

    @property
    def question(self) -> WaitingQuestion:
        (question,) = inbox(self.agent.ledger)
        return question

    def answers(self, name: str, option: str = "yes", channel: Channel = "console", note: str = "") -> None:
        ledger = self.agent.ledger.of("local", name)
        answer_question(ledger, self.question, option, note, channel)

    def passes(self, seconds: float) -> list[str]:
        """Let time pass; return what was told meanwhile."""
        before = len(self.told)
        self.bench.clock.pass_seconds(seconds)
        while self.courier.send_due():
            pass
        return [message.occasion for message in self.told[before:]]

    @property
    def decided(self) -> list[tuple[str | None, str, str]]:
        return [(answer.option, answer.channel, answer.client) for answer in self.agent.decisions("ship")]
