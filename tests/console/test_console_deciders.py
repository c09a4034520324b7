"""Who is to answer, in the inbox: those whom gates name, by name and group, and who has answered already."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlock.console.console import Console
from interlock.core.principals import Principal
from interlock.ledger.tokens.access_tokens import AccessTokens
from support.console_client import answer_to
from support.harness import Agent, Bench, ExecutionSurface, gate, steps, workflow

RULE = {"by": ["eve", "ada", "leads"], "atLeast": 2, "notBy": "starter"}
EVE, ADA, CLEO, DAN = (Principal(name, "approver") for name in ("eve", "ada", "cleo", "dan"))


class Office:
    """Eve has started two runs: a gate of one names who decides it; cleo is one of the leads."""

    def __init__(self, bench: Bench) -> None:
        access = AccessTokens(bench.folder)
        access.set_group("leads", ["cleo"])
        bench.write(workflow(gate("ship", "yes", "no", decide=RULE), *steps("last"), id="test.named"))
        bench.write(workflow(gate("style", "plain", "fancy"), *steps("last"), id="test.open"))
        self.ledger = bench.ledger(owner="eve")
        self.ledger.approvers = access.approver
        for name in ("test.named", "test.open"):
            Agent(ExecutionSurface(self.ledger)).start(name)
        self.console = Console(self.ledger, "1.0.0")

    def inbox(self, principal: Principal, **query: str) -> Any:
        return msgspec.json.decode(self.console.page(principal, "inbox", query).body)

    def asked(self, principal: Principal, **query: str) -> list[str]:
        return sorted(line["question"]["id"] for line in self.inbox(principal, **query)["questions"])

    def line(self, principal: Principal, gate_id: str) -> Any:
        lines = self.inbox(principal)["questions"]
        return next(line for line in lines if line["question"]["id"] == gate_id)


@pytest.fixture
def office(bench: Bench) -> Office:
    return Office(bench)


def test_the_list_is_narrowed_to_what_a_person_or_a_group_is_to_answer(office: Office) -> None:
    choices = {each["value"]: each["count"] for each in office.inbox(CLEO)["deciders"]}
    assert choices == {"ada": 1, "leads": 1, "*": 1, "*me": 2}
    assert office.asked(CLEO, decider="leads") == ["ship"]
    assert office.asked(CLEO, decider="*") == ["style"]
    assert office.asked(CLEO, decider="*me") == ["ship", "style"]
    for stranger in (DAN, EVE):  # not named; named, but the one who started it
        assert office.asked(stranger, decider="*me") == ["style"]
        assert not office.line(stranger, "ship")["mayDecide"]


def test_the_list_says_who_has_answered_and_who_is_missing(office: Office) -> None:
    ship = office.line(ADA, "ship")
    assert (ship["decide"]["answered"], ship["decide"]["missing"]) == ([], ["ada", "leads"])
    answer = office.console.act(ADA, "decide", msgspec.json.encode(answer_to(ship, "yes")))
    assert answer.status == 200, answer.body
    ship = office.line(ADA, "ship")
    assert [(each["by"], each["option"]) for each in ship["decide"]["answered"]] == [("ada", "yes")]
    assert (ship["decide"]["missing"], ship["decide"]["atLeast"]) == (["leads"], 2)
    assert office.asked(ADA, decider="*me") == ["style"]
    assert office.asked(CLEO, decider="*me") == ["ship", "style"]


def test_a_token_of_the_role_user_is_to_answer_nothing(office: Office) -> None:
    page = office.inbox(Principal("eve"))
    assert {line["mayDecide"] for line in page["questions"]} == {False}
    assert "*me" not in {each["value"] for each in page["deciders"]}
