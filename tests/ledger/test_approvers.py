"""Who decides, by when: two of three named people, not the starter, within a minute, then somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.core.guard.inspection import inspect
from interlock.core.message import Message
from interlock.core.run import events as e
from interlock.core.run.polls import Approver, ApproverAnswer
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.decisions.linked import answer_by_link
from interlock.ledger.decisions.substance import substance_of
from interlock.ledger.errors import LedgerError
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.wording import equip
from interlock.store.sqlite.store import open_store
from interlock.transport.notify.posting import SECONDS
from support import postgres_server
from support.approvers import RULE, Desk
from support.attacker import AUTO, EVERY, Attacker, accepts, on
from support.harness import Bench, gate, steps, workflow


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, postgres_server.open_in if request.param == "postgres" else open_store)
    yield bench
    bench.close()


@on(*EVERY)
def test_two_of_three_decide_and_the_run_goes_on(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    desk.answers("ada")
    assert desk.agent.decisions("ship") == []
    assert desk.question.decide is not None
    assert [each.by for each in desk.question.decide.answered] == ["ada"]
    assert desk.question.decide.missing == ("ben", "leads")
    desk.answers("cleo", channel="inbox")
    desk.agent.use_decision("ship", "yes")
    assert desk.decided == [("yes", "approvers", "ada, cleo")]
    assert inbox(desk.agent.ledger) == ()
    desk.agent.do("last")


@on(*EVERY)
def test_the_agent_reads_what_those_who_agree_have_remarked(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    desk.answers("ben", "no", note="Not before Monday.")
    desk.answers("ada", note="Behind the flag only.")
    desk.answers("cleo", note="Seen on staging.")
    desk.agent.use_decision("ship", "yes")
    (answer,) = desk.agent.decisions("ship")
    assert answer.note == "ada: Behind the flag only.\ncleo: Seen on staging."
    if surface != "gated":  # where no call uses the answer
        assert "Behind the flag only." in desk.agent.text


@on(*EVERY)
def test_nobody_is_told_of_a_decision_before_there_is_one(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface, {"by": ["ada", "ben"], "atLeast": 2})
    desk.passes(0)
    desk.answers("ada")
    assert desk.passes(0) == []
    desk.answers("ben")
    assert desk.passes(0) == ["answered"]
    data = desk.told[-1].data
    assert (data["option"], data["channel"], data["by"]) == ("yes", "approvers", "ada, ben")


@on(*EVERY)
def test_each_option_says_what_it_leads_to(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    follows = substance_of(desk.agent.ledger, desk.agent.position, desk.question).follows
    assert [each.pending.title for each in follows if each.pending is not None] == ["Last", "Last"]


@on(*EVERY)
def test_nobody_else_decides_it(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    assert desk.agent.respond("ship", "yes")["_refused"]
    assert desk.agent.respond_with_forms("ship", "yes", accepts("yes")) == []
    for name in ("local", "fay"):
        with pytest.raises(LedgerError, match="does not decide"):
            desk.answers(name)
    desk.answers("ada")
    assert desk.agent.respond("ship", "yes")["_refused"]
    assert desk.agent.decisions("ship") == []


@on(*EVERY)
def test_whoever_started_the_run_does_not_count(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface, {**RULE, "by": ["local", "ada", "ben"]})
    with pytest.raises(LedgerError, match="does not decide"):
        desk.answers("local")
    desk.away["local"] = "fay"
    with pytest.raises(LedgerError, match="does not decide"):
        desk.answers("fay")


@on(*EVERY)
def test_a_person_counts_once_and_may_think_again(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    desk.answers("ada")
    desk.answers("ada")
    desk.answers("ada", "no")
    assert desk.question.decide is not None
    assert [(each.by, each.option) for each in desk.question.decide.answered] == [("ada", "no")]
    desk.answers("ben", "yes")
    assert desk.agent.decisions("ship") == []
    assert desk.question.decide is not None
    assert "Answered: ada: no, ben: yes; missing: leads." in desk.question.decide.text
    desk.answers("dora", "no")
    desk.agent.use_decision("ship", "no")
    assert desk.decided == [("no", "approvers", "ada, dora")]


@on(*EVERY)
def test_who_stands_in_for_somebody_has_that_seat_and_no_second_one(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    desk.away |= {"ada": "fay", "ben": "fay"}
    desk.answers("fay")
    desk.answers("fay")
    assert desk.agent.decisions("ship") == []
    desk.answers("ada")
    assert desk.question.decide is not None
    assert [(each.by, each.seat) for each in desk.question.decide.answered] == [("ada", "")]
    desk.answers("cleo")
    desk.agent.use_decision("ship", "yes")
    assert desk.decided == [("yes", "approvers", "ada, cleo")]


@on(*EVERY)
def test_they_are_reminded_then_it_is_escalated(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface)
    assert desk.passes(0) == ["opened"]
    desk.answers("ada")
    assert desk.passes(20) == ["reminded"]
    with pytest.raises(LedgerError, match="does not decide"):
        desk.answers("eve")
    assert desk.passes(19) == []
    assert desk.passes(1) == ["reminded"]
    assert sorted(desk.passes(20)) == ["escalated", "reminded"]
    assert desk.question.decide is not None
    assert desk.question.decide.escalated_to == "board"
    desk.answers("eve")
    desk.agent.use_decision("ship", "yes")
    assert desk.decided == [("yes", "approvers", "ada, eve")]
    assert desk.passes(600).count("reminded") == 0
    (escalated,) = desk.agent.events("question_escalated")
    assert (escalated.gate, escalated.to) == ("ship", "board")


def test_a_link_is_for_one_asking_of_a_question(bench: Bench) -> None:
    """After a rewind the same words come with another report: only the new links answer them."""
    desk = Desk(bench, "execution", {"by": ["ada", "ben"], "atLeast": 2}, approver="ada")
    desk.passes(1)
    desk.rewinds()
    desk.passes(1)
    first, second = (message.links[1].url.rpartition("/")[2] for message in desk.told)
    with pytest.raises(LedgerError, match="was asked again"):
        answer_by_link(desk.agent.ledger, first)
    answer_by_link(desk.agent.ledger, second)
    desk.passes(1)
    desk.rewinds()
    desk.passes(1)
    third = desk.told[-1].links[1].url.rpartition("/")[2]
    with pytest.raises(LedgerError, match="has been used"):
        answer_by_link(desk.agent.ledger, second)
    answer_by_link(desk.agent.ledger, third)
    assert desk.question.decide is not None
    assert [each.by for each in desk.question.decide.answered] == ["ada"]


def test_a_rewind_gives_the_approvers_their_whole_time_again(bench: Bench) -> None:
    desk = Desk(bench, "execution")
    assert desk.passes(50) == ["opened", "reminded"]
    desk.rewinds()
    assert desk.passes(15) == ["opened"]
    assert desk.question.decide is not None
    assert desk.question.decide.escalated_to == ""
    assert sorted(desk.passes(45)) == ["escalated", "reminded"]


def test_a_rewind_takes_no_option_before_its_time(bench: Bench) -> None:
    desk = Desk(bench, "execution", {"by": ["ada"], "within": "60s", "then": {"option": "yes"}})
    desk.passes(59)
    desk.rewinds()
    desk.passes(1)
    assert desk.question.decide is not None
    desk.passes(59)
    desk.agent.use_decision("ship", "yes")
    assert [(option, channel) for option, channel, _ in desk.decided] == [("yes", "time")]


def test_a_reminder_says_when_it_was_sent_and_has_links_for_who_has_not_answered(bench: Bench) -> None:
    desk = Desk(bench, "execution", approver="ada")
    desk.passes(20)
    desk.answers("ada")
    desk.passes(20)
    reminders = [message for message in desk.told if message.occasion == "reminded"]
    assert [len(message.links) for message in reminders] == [3, 1]
    assert reminders[1].at - reminders[0].at == 20_000


@on(*EVERY)
def test_the_option_for_the_end_of_the_time_is_taken_by_time(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface, {"by": ["ada"], "within": "60s", "then": {"option": "no"}})
    assert desk.passes(59) == ["opened"]
    assert desk.passes(1) == ["answered"]
    assert inbox(desk.agent.ledger) == ()
    if surface == "execution":
        desk.agent.call("continue_workflow", stateToken=desk.agent.tokens["stateToken"])
        assert "Nobody has decided 'ship' in time, so it is: no" in desk.agent.text
    desk.agent.use_decision("ship", "no")
    assert [(option, channel) for option, channel, _ in desk.decided] == [("no", "time")]


@on(*EVERY)
def test_without_a_timer_the_next_call_takes_that_option(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface, {"by": ["ada"], "within": "60s", "then": {"option": "no"}})
    bench.clock.pass_seconds(60)
    desk.agent.use_decision("ship", "no")
    desk.agent.do("last")
    if desk.agent.surface in ("session", "gated"):
        desk.agent.go("__terminal__")
    assert [(option, channel) for option, channel, _ in desk.decided] == [("no", "time")]


@on(*EVERY)
def test_an_answer_in_time_outranks_the_option_for_later(bench: Bench, surface: str) -> None:
    desk = Desk(bench, surface, {"by": ["ada"], "within": "60s", "then": {"option": "no"}})
    desk.answers("ada", "yes")
    desk.passes(600)
    desk.agent.use_decision("ship", "yes")
    assert desk.decided == [("yes", "approvers", "ada")]


def test_on_both_stores_over_a_killed_process(desk: Bench) -> None:
    """The process that began it is gone: another one on the same store reminds, escalates and decides."""
    first = Desk(desk, "session")
    first.answers("ben")
    ledger = desk.ledger(terms=AUTO)
    told: list[Message] = []
    ledger.settings = replace(
        ledger.settings, recipients={"ops": Recipient(told.append, ("reminded", "escalated"))}
    )
    ledger.approvers = first.approver
    courier = equip(ledger)
    desk.clock.pass_seconds(60 + SECONDS)
    while courier.send_due():
        pass
    assert sorted(message.occasion for message in told) == ["escalated", "opened", "reminded"]
    (question,) = inbox(ledger)
    assert question.decide is not None
    assert [each.by for each in question.decide.answered] == ["ben"]
    answer_question(ledger.of("local", "eve"), question, "yes", channel="link")
    assert first.decided == [("yes", "approvers", "ben, eve")]


@on(*EVERY)
def test_a_question_in_other_words_is_answered_anew(bench: Bench, surface: str) -> None:
    item = gate("ship", "yes", "no", decide={"by": ["ada", "ben"], "atLeast": 2})
    bench.write(workflow(*steps("build"), {**item, "message": "Ship {{version}}?"}, *steps("last")))
    agent = Attacker(bench, surface, AUTO)
    agent.ledger.approvers = Approver
    agent.start("test.flow", "main", version="1.0")
    agent.do("build")
    agent.reach("ship", "main")
    (question,) = inbox(agent.ledger)
    answer_question(agent.ledger.of("local", "ada"), question, "yes")
    shown = {"execution": "continue_workflow", "navigation": "nav_action"}
    if surface in shown:
        tool, arguments = agent.responding("ship", "yes")
        agent.call(tool, **{**arguments, "reask": {"version": "2.0"}})
    else:
        named = {"activity_id": "main"} if surface == "gated" else {}
        tool = "get_checkpoint" if surface == "gated" else "yield_checkpoint"
        agent.tell(tool, checkpoint_id="ship", reask={"version": "2.0"}, **named)
    (asked,) = inbox(agent.ledger)
    assert asked.shown != question.shown
    assert asked.decide is not None
    assert asked.decide.answered == ()
    answer_question(agent.ledger.of("local", "ben"), asked, "yes")
    assert agent.decisions("ship") == []


def test_every_answer_is_an_event_with_its_channel(bench: Bench) -> None:
    desk = Desk(bench, "navigation")
    desk.answers("ada", channel="cli")
    desk.answers("ben", "no", channel="link")
    given = [event for event in desk.agent.events("approval_given") if isinstance(event, e.ApprovalGiven)]
    assert [(each.approval.by, each.approval.option, each.approval.channel) for each in given] == [
        ("ada", "yes", "cli"),
        ("ben", "no", "link"),
    ]


LATER = 1_800_000_100_000


def an_approval(key: str, shown: str, name: str = "ada", **changed: Any) -> e.ApprovalGiven:
    given = ApproverAnswer(name, name, name, "yes", "console", LATER)
    return e.ApprovalGiven(key, "ship", shown, replace(given, **changed))


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, None),
        ({"entitled": "fay"}, "I3"),
        ({"entitled": "board"}, "I3"),
        ({"channel": "agent"}, "I3"),
        ({"channel": "elicitation"}, "I3"),
        ({"by": "local"}, "I3"),
        ({"seat": "local"}, "I3"),
    ],
)
def test_the_guard_judges_every_answer(bench: Bench, changed: Any, broken: str | None) -> None:
    position = Desk(bench, "execution").agent.position
    assert position.state.visit.open is not None
    event = an_approval("ship", position.state.visit.open.shown, **changed)
    violation = inspect(position.plan, position.audit, [event])
    assert (violation.invariant if violation is not None else None) == broken


def test_the_guard_counts_people_and_seats(bench: Bench) -> None:
    position = Desk(bench, "execution").agent.position
    opened = position.state.visit.open
    assert opened is not None
    one, again = an_approval("ship", opened.shown), an_approval("ship", opened.shown, seat="ben")
    two = an_approval("ship", opened.shown, "ben")
    answer = e.GateResolved(
        "ship",
        "ship",
        "chosen",
        LATER,
        "approvers",
        opened.shown,
        opened.text,
        ("yes", "no"),
        "yes",
        roots=(),
        binds=True,
    )

    def broken(*events: e.Event) -> str:
        violation = inspect(position.plan, position.audit, [*events, answer])
        return violation.text if violation is not None else ""

    assert broken(one, two) == ""
    assert broken(one, again) == "I3: 'ship' is decided by 1 of 2 approvers"
    assert broken() == "I3: 'ship' is decided by 0 of 2 approvers"
    assert broken(one, replace(two, approval=replace(two.approval, option="no"))).startswith("I3")
    for channel in ("console", "cli", "agent", "elicitation"):
        by_one = replace(answer, channel=channel)
        violation = inspect(position.plan, position.audit, [one, two, by_one])
        assert violation is not None
        assert violation.invariant == "I3"


def test_the_guard_holds_a_question_until_its_time(bench: Bench) -> None:
    position = Desk(bench, "execution").agent.position
    opened = position.state.visit.open
    assert opened is not None
    event = e.QuestionEscalated("ship", "ship", opened.shown, "board", opened.opened_at + 60_000)
    assert inspect(position.plan, position.audit, [event]) is None
    for wrong in (replace(event, at=event.at - 1), replace(event, to="leads"), replace(event, shown="x")):
        assert inspect(position.plan, position.audit, [wrong]) is not None
