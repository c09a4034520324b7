"""Real servers that notify: two on one store, and one that is killed between a commit and its delivery."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.courier import LEASE_MS
from interlock.ledger.outbox.wording import equip
from interlock.store.sqlite.store import open_store
from interlock.transport.notify.webhook import Webhook
from support import postgres_server
from support.harness import Agent, Bench, ExecutionSurface, gate, steps, workflow
from support.http_server import HttpServer
from support.receivers import SECRET, Receiver, receiver

RUNS = 12
PATIENCE = 30


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Bench, tuple[str, ...]]]:
    """A bench on a store, and the arguments that lead a server to it."""
    opens = postgres_server.open_in if request.param == "postgres" else open_store
    bench = Bench(tmp_path, opens)
    bench.clock.now = time.time_ns() // 1_000_000
    bench.write(workflow(gate("ship", "yes", "no"), *steps("last")))
    more: tuple[str, ...] = ()
    if request.param == "postgres":
        bench.opens(tmp_path).close()
        more = ("--store", os.environ[postgres_server.URL])
    yield bench, ("--workflows", str(bench.workflows), "--quiet", *more)
    bench.close()


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as opened:
        yield opened


def ask(bench: Bench, hook: Receiver, runs: int) -> None:
    """Commit questions in a process that sends nothing itself; the settings name the webhook."""
    channel = f'[channels.ops]\nkind = "webhook"\nurl = "{hook.url}"\nsecret = "{SECRET}"\n'
    (bench.folder / "notify.toml").write_text(channel)
    recipients = {"ops": Recipient(Webhook(hook.url, SECRET))}
    ledger = bench.ledger(terms=Terms(decisions="user"), recipients=recipients)
    for number in range(runs):
        Agent(ExecutionSurface(ledger)).start("test.flow", goal=f"Release {number}")


def wait_for(holds: Callable[[], bool]) -> None:
    patient_until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < patient_until
        time.sleep(0.02)


def test_two_servers_send_every_message_and_agree_on_its_id(
    desk: tuple[Bench, tuple[str, ...]], hook: Receiver
) -> None:
    bench, arguments = desk
    ask(bench, hook, RUNS)
    servers = [HttpServer(bench.folder, *arguments) for _ in range(2)]
    try:
        wait_for(lambda: len({each.id for each in hook.received}) == RUNS)
        wait_for(lambda: not left(bench))
    finally:
        for server in servers:
            server.stop()
    assert all(each.is_signed for each in hook.received)
    assert len(hook.received) == RUNS


def left(bench: Bench) -> int:
    with bench.ledger().store.reading() as reader:
        return len(reader.messages(99))


def test_a_server_killed_between_commit_and_delivery_loses_no_message(
    desk: tuple[Bench, tuple[str, ...]], hook: Receiver
) -> None:
    bench, arguments = desk
    hook.hangs = True
    ask(bench, hook, 1)
    server = HttpServer(bench.folder, *arguments)
    assert hook.arrived.wait(PATIENCE)
    server.process.kill()
    server.stop()
    hook.hangs = False
    recipients = {"ops": Recipient(Webhook(hook.url, SECRET))}
    courier = equip(bench.ledger(recipients=recipients))
    assert courier.send_due() == 0
    bench.clock.pass_seconds(LEASE_MS / 1000 + PATIENCE)
    assert courier.send_due() == 1
    first, second = hook.received
    assert (first.id, first.body) == (second.id, second.body)
    assert left(bench) == 0
