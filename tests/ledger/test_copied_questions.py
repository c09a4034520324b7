"""A store is copied while people are asked: nothing that waits is lost, and nothing is sent twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlock.core.message import Message
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.courier import Courier
from interlock.ledger.outbox.wording import equip
from interlock.ledger.tokens.answer_links import AnswerLink, opened, sealed
from interlock.ledger.transfer.store_copy import copy_store
from interlock.store.protocol import OutboxRow, SettingRow, Store, TombstoneRow
from interlock.store.sqlite.store import open_store
from support import postgres_server
from support.approvers import Desk
from support.attacker import AUTO
from support.harness import Bench

Opens = Callable[[Path], Store]
STORES: dict[str, Opens] = {"sqlite": open_store, "postgres": postgres_server.open_in}


class Move:
    """A desk on one store, and the other store that it moves to."""

    def __init__(self, folder: Path, source: str, target: str) -> None:
        self.bench = Bench(folder, STORES[source])
        self.desk = Desk(self.bench, "execution")
        self.source, self.target = self.bench.opens(folder), STORES[target](folder)
        self._opens_target = STORES[target]
        self.told: list[Message] = []

    def copy(self) -> list[str]:
        return [session.outcome for session in copy_store(self.source, self.target)]

    def served(self) -> tuple[Ledger, Courier]:
        """Open the target as a server would that goes on with it."""
        self.bench.opens = self._opens_target
        ledger = self.bench.ledger(terms=AUTO)
        recipients = {"ops": Recipient(self.told.append, detail="question")}
        ledger.settings = replace(ledger.settings, recipients=recipients)
        ledger.approvers = self.desk.approver
        return ledger, equip(ledger)

    def sent(self, courier: Courier) -> list[str]:
        before = len(self.told)
        while courier.send_due():
            pass
        return sorted(message.occasion for message in self.told[before:])


@pytest.fixture(params=[("sqlite", "postgres"), ("postgres", "sqlite")], ids="-to-".join)
def move(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Move]:
    moving = Move(tmp_path, *request.param)
    yield moving
    moving.source.close()
    moving.target.close()
    moving.bench.close()


def test_approvals_timers_and_messages_move_and_the_run_is_decided_there(move: Move) -> None:
    move.desk.answers("ada")
    assert move.copy() == ["copied"]
    ledger, courier = move.served()
    assert move.sent(courier) == ["opened"]
    (question,) = inbox(ledger)
    assert question.decide is not None
    assert [each.by for each in question.decide.answered] == ["ada"]
    move.bench.clock.pass_seconds(60)
    assert move.sent(courier) == ["escalated", "reminded"]
    (question,) = inbox(ledger)
    answer_question(ledger.of("local", "eve"), question, "yes", channel="link")
    move.desk.agent.ledger = ledger
    move.desk.agent.use_decision("ship", "yes")
    assert move.desk.decided == [("yes", "approvers", "ada, eve")]


def test_what_the_target_has_sent_it_does_not_send_again_after_another_copy(move: Move) -> None:
    move.copy()
    _, courier = move.served()
    assert move.sent(courier) == ["opened"]
    assert move.copy() == ["present"]
    assert move.sent(courier) == []


def test_what_the_source_has_sent_meanwhile_the_target_does_not_send(move: Move) -> None:
    move.copy()
    assert move.desk.passes(0) == ["opened"]
    assert move.copy() == ["present"]
    _, courier = move.served()
    assert move.sent(courier) == []


def test_what_came_meanwhile_is_sent_once(move: Move) -> None:
    move.copy()
    assert move.desk.passes(0) == ["opened"]
    for name in ("ada", "ben"):
        move.desk.answers(name)
    assert move.copy() == ["copied"]
    _, courier = move.served()
    assert move.sent(courier) == ["answered"]


def test_everything_else_that_the_database_has_moves_too(move: Move) -> None:
    (question,) = inbox(move.desk.agent.ledger)
    dead = OutboxRow(question.session_id, "msg_1", "gone", "opened", b"{}", 5, 5, 10, "dead", "refused")
    with move.source.writing() as writer:
        writer.set_setting(SettingRow("local", "trust:x", "sha256:1"))
        writer.set_tombstone(TombstoneRow("sess_gone", "local", 5, 7, b"d" * 32))
        writer.add_message(dead)
    move.copy()
    with move.source.reading() as ours, move.target.reading() as theirs:
        assert theirs.messages(99) == ours.messages(99)
        assert dead in theirs.messages(99)
        assert theirs.settings() == ours.settings()
        assert theirs.tombstones("", 9) == ours.tombstones("", 9) != []
        assert theirs.runs(question.session_id) == ours.runs(question.session_id)


def test_a_link_that_was_sent_before_answers_there(move: Move) -> None:
    source = move.desk.agent.ledger
    (question,) = inbox(source)
    until = source.clock() + 60_000
    asked = (question.session_id, question.run_id, question.key, question.id, question.shown)
    text = sealed(source.keys.keyring(), AnswerLink(*asked, "yes", "ada", until, question.since))
    move.copy()
    ledger, _ = move.served()
    link = opened(ledger.keys.keyring(), text)
    assert link is not None
    (there,) = inbox(ledger)
    assert (there.key, there.shown) == (link.key, link.shown)
