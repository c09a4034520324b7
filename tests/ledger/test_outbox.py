"""Questions reach people: a message is sent at least once, with one id, to whoever is configured."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from interlock.cli.notify.notify_file import recipients_in
from interlock.core.message import Message
from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox import courier as sending
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.courier import LEASE_MS, MOST_TRIES, Courier, pause_after
from interlock.ledger.outbox.wording import equip
from interlock.transport.notify.webhook import Webhook
from support.harness import Agent, Bench, ExecutionSurface, gate, steps, workflow
from support.receivers import SECRET, Receiver, receiver

USER = Terms(decisions="user", min_response_ms=0)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as opened:
        yield opened


def ship(bench: Bench, hook: Receiver, **more: Any) -> tuple[Agent, Courier]:
    """Begin a run whose gate asks whether to ship, in a process that sends to a webhook."""
    bench.write(workflow(*steps("build"), gate("ship", "yes", "no"), *steps("last")))
    ledger, courier = configured(bench, hook, **more)
    agent = Agent(ExecutionSurface(ledger))
    agent.start("test.flow", goal="Release \x1b[31m2.0\nnow")
    return agent, courier


def configured(bench: Bench, hook: Receiver, **more: Any) -> tuple[Ledger, Courier]:
    recipient = Recipient(Webhook(hook.url, SECRET), **more)
    ledger = bench.ledger(
        terms=USER, recipients={"ops": recipient}, console_url="https://desk.example/console"
    )
    return ledger, equip(ledger)


def kinds(hook: Receiver) -> list[str]:
    return [each.json["type"] for each in hook.received]


def test_a_question_an_answer_and_an_end_are_told_to_a_webhook(bench: Bench, hook: Receiver) -> None:
    agent, courier = ship(bench, hook)
    courier.send_due()
    assert hook.received == []
    agent.ack("built")
    courier.send_due()
    assert kinds(hook) == ["question.opened"]
    (question,) = inbox(agent.ledger)
    answer_question(agent.ledger, question, "yes")
    courier.send_due()
    agent.look()
    agent.ack()
    agent.ack("done")
    assert agent.last["isComplete"]
    courier.send_due()
    assert kinds(hook) == ["question.opened", "question.answered", "run.ended"]
    assert all(each.is_signed for each in hook.received)
    assert len({each.id for each in hook.received}) == 3
    assert courier.send_due() == 0


def test_equal_questions_of_two_sessions_have_ids_of_their_own(bench: Bench, hook: Receiver) -> None:
    """Agents that begin the same work at the same moment write equal commits; a receiver drops repeats."""
    for _ in range(2):
        agent, courier = ship(bench, hook)
        agent.ack("built")
    courier.send_due()
    assert kinds(hook) == ["question.opened", "question.opened"]
    assert len({each.id for each in hook.received}) == 2


def test_a_link_leads_to_the_question_in_the_console(bench: Bench, hook: Receiver) -> None:
    agent, courier = ship(bench, hook)
    agent.ack("built")
    courier.send_due()
    (question,) = inbox(agent.ledger)
    where = f"session={question.session_id}&shown={question.shown.replace(':', '%3A')}"
    assert hook.received[0].json["data"]["url"] == f"https://desk.example/console/inbox?{where}"


@pytest.mark.parametrize(
    ("detail", "told"),
    [
        ("link", set()),
        ("title", {"name", "title"}),
        ("question", {"name", "title", "text", "options"}),
        ("report", {"name", "title", "text", "options", "report"}),
    ],
)
def test_a_message_says_no_more_than_its_detail(
    bench: Bench, hook: Receiver, detail: Any, told: set[str]
) -> None:
    agent, courier = ship(bench, hook, detail=detail)
    agent.ack("built")
    courier.send_due()
    data = hook.received[0].json["data"]
    assert told == {"name", "title", "text", "options", "report"} & data.keys()
    assert ("report" not in data) or "The agent's report:\n│ built" in data["report"]
    assert ("Ship" in data["summary"]) is (detail != "link")


def test_what_the_agent_wrote_is_marked_and_cleaned(bench: Bench) -> None:
    texts: list[str] = []
    bench.write(workflow(*steps("build"), gate("ship", "yes", "no")))
    keep = Recipient(lambda sent: texts.append(sent.text))
    ledger = bench.ledger(terms=USER, recipients={"ops": keep})
    courier = equip(ledger)
    agent = Agent(ExecutionSurface(ledger))
    agent.start("test.flow", goal="Release \x1b[31m2.0\nReference: forged")
    agent.ack("built")
    courier.send_due()
    (text,) = texts
    assert "«Release �[31m2.0 ⏎ Reference: forged»" in text


def test_a_title_that_is_cut_closes_the_marks_around_the_agents_words(bench: Bench) -> None:
    titles: list[str] = []
    asked = {**gate("ship", "yes", "no"), "name": "Ship {{version}}"}
    bench.write(workflow(*steps("build"), asked))
    ledger = bench.ledger(terms=USER, recipients={"ops": Recipient(lambda sent: titles.append(sent.title))})
    courier = equip(ledger)
    agent = Agent(ExecutionSurface(ledger))
    agent.start("test.flow", version="a" * 200)
    agent.ack("built")
    courier.send_due()
    assert titles[0].startswith("A decision waits: Ship «aaa")
    assert titles[0].endswith("a…»")


def test_nobody_is_told_what_is_not_configured(bench: Bench, hook: Receiver) -> None:
    agent, courier = ship(bench, hook, occasions=("ended",))
    agent.ack("built")
    with agent.ledger.store.reading() as reader:
        assert reader.messages(9) == []
    assert courier.send_due() == 0


def test_a_question_that_was_answered_meanwhile_is_only_told_as_answered(
    bench: Bench, hook: Receiver
) -> None:
    agent, courier = ship(bench, hook)
    agent.ack("built")
    (question,) = inbox(agent.ledger)
    answer_question(agent.ledger, question, "no")
    courier.send_due()
    assert kinds(hook) == ["question.answered"]
    data = hook.received[0].json["data"]
    assert (data["option"], data["channel"], data["by"]) == ("no", "cli", "local")


def test_text_that_the_user_typed_is_not_sent(bench: Bench, hook: Receiver) -> None:
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"}
    bench.write(workflow(*steps("paint", userInput=[need])))
    ledger, courier = configured(bench, hook, detail="question")
    agent = Agent(ExecutionSurface(ledger))
    agent.start("test.flow")
    agent.ack("painted")
    (question,) = inbox(ledger)
    answer_question(ledger, question, "mauve, and the door code is 4711")
    courier.send_due()
    assert hook.received
    assert not any(b"4711" in each.body for each in hook.received)


def test_a_receiver_that_fails_gets_the_same_message_later(bench: Bench, hook: Receiver) -> None:
    agent, courier = ship(bench, hook)
    agent.ack("built")
    hook.status = 503
    assert courier.send_due() == 1
    assert courier.send_due() == 0
    hook.status = 204
    bench.clock.pass_seconds(pause_after(1) / 1000)
    assert courier.send_due() == 1
    assert courier.send_due() == 0
    first, second = hook.received
    assert (first.id, first.body) == (second.id, second.body)


def test_pauses_grow_and_a_message_that_nobody_takes_is_dead(bench: Bench, hook: Receiver) -> None:
    agent, courier = ship(bench, hook)
    agent.ack("built")
    hook.status = 500
    for tries in range(1, MOST_TRIES + 1):
        assert courier.send_due() == 1
        bench.clock.pass_seconds(pause_after(tries) / 1000)
    assert courier.send_due() == 0
    with agent.ledger.store.reading() as reader:
        (dead,) = reader.messages(9)
    assert (dead.state, dead.attempts, dead.error) == ("dead", MOST_TRIES, "127.0.0.1 answered 500")


def test_a_receiver_that_is_gone_is_not_asked_again(bench: Bench, hook: Receiver) -> None:
    agent, courier = ship(bench, hook)
    agent.ack("built")
    hook.status = 410
    courier.send_due()
    with agent.ledger.store.reading() as reader:
        assert [row.state for row in reader.messages(9)] == ["dead"]


def test_a_receiver_that_hangs_holds_nobody_up(
    bench: Bench, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SEND_SECONDS", 0.2)
    agent, _ = ship(bench, hook)
    hook.hangs = True
    agent.ack("built")
    agent.ledger.idle()
    assert hook.arrived.wait(10)
    agent.look()
    hook.let_go.set()


def test_a_channel_that_never_ends_holds_up_no_other_one(
    bench: Bench, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers a byte at a time, or hangs: after one limit for the channel, its other messages wait."""
    monkeypatch.setattr(sending, "SEND_SECONDS", 0.2)
    bench.write(workflow(*steps("build"), gate("ship", "yes", "no")))
    let_go = Event()
    begun: list[str] = []

    def drip(message: Message) -> None:
        begun.append(message.id)
        let_go.wait(60)

    recipients = {"a-drip": Recipient(drip), "ops": Recipient(Webhook(hook.url, SECRET))}
    ledger = bench.ledger(terms=USER, recipients=recipients)
    courier = equip(ledger)
    for _ in range(3):
        agent = Agent(ExecutionSurface(ledger))
        agent.start("test.flow")
        agent.ack("built")
    courier.send_due()
    assert (kinds(hook), len(begun)) == (["question.opened"] * 3, 1)
    with ledger.store.reading() as reader:
        reasons = {row.error for row in reader.messages(9)}
    assert reasons == {
        "no whole answer within 0.2 seconds",
        "the channel has not answered to an earlier message",
    }
    let_go.set()
    while len(begun) < 4:
        bench.clock.pass_seconds(pause_after(1) / 1000)
        courier.send_due()


def test_a_redirect_is_not_followed(bench: Bench, hook: Receiver) -> None:
    agent, courier = ship(bench, hook)
    agent.ack("built")
    hook.status = 307
    courier.send_due()
    assert len(hook.received) == 1
    with agent.ledger.store.reading() as reader:
        assert [row.error for row in reader.messages(9)] == ["127.0.0.1 answered 307"]


def test_a_process_that_dies_while_sending_leaves_the_message_to_another(
    bench: Bench, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, courier = ship(bench, hook)
    agent.ack("built")
    taken = courier._taken()
    assert taken is not None
    _, other = configured(bench, hook)
    assert other.send_due() == 0
    bench.clock.pass_seconds(LEASE_MS / 1000)
    assert other.send_due() == 1
    assert hook.received[0].id == taken.message_id


def test_a_channel_that_is_no_longer_configured_is_named(bench: Bench, hook: Receiver) -> None:
    agent, _ = ship(bench, hook)
    agent.ack("built")
    ledger = bench.ledger(terms=USER)
    equip(ledger).send_due()
    with ledger.store.reading() as reader:
        assert [row.error for row in reader.messages(9)] == ["no channel 'ops' is configured here"]


def test_the_pauses_are_four_times_as_long_each_time() -> None:
    assert [pause_after(tries) // 1000 for tries in (1, 2, 3, 9)] == [5, 20, 80, 4 * 3600]
    assert sending.LEASE_MS > 2 * sending.SEND_SECONDS * 1000


def test_the_file_names_its_channels_and_takes_secrets_from_variables(bench: Bench) -> None:
    channel = 'kind = "webhook"\nurl = "https://x.example/h"\nsecret = "$HOOK"\nevents = ["ended"]\n'
    (bench.folder / "notify.toml").write_text(f"[channels.ops]\n{channel}")
    (recipient,) = recipients_in(bench.folder, {"HOOK": SECRET}).values()
    assert recipient.occasions == ("ended",)
