"""Health of a server in the console: what each role sees, clients as they were last heard, the doctor."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from interlock.console.console import Console
from interlock.console.pages.health import DoctorLine, DoctorReport, HealthFact, SettingLine
from interlock.core.principals import LOCAL, Principal
from interlock.core.run.commands import Terms
from interlock.ledger.heard_clients import MOST_CLIENTS, HeardClient, HeardClients, clients_of
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.wording import equip
from interlock.transport.notify.webhook import Webhook
from support.cli_process import agent, interlock
from support.console_client import ConsoleClient
from support.harness import Agent, Bench, ExecutionSurface, gate, steps, workflow
from support.http_server import serving
from support.receivers import SECRET, receiver

EVE = Principal("eve")


class Clinic:
    """An upkeep whose doctor waits until the test lets it go on."""

    def __init__(self) -> None:
        self.began, self.may_end = Event(), Event()

    def facts(self) -> tuple[HealthFact, ...]:
        return (HealthFact("store", "here"),)

    def doctor(self) -> DoctorReport:
        self.began.set()
        assert self.may_end.wait(60)
        return DoctorReport(True, (DoctorLine("file", True, "no errors"),), 1)


def shown(console: Console, path: str, principal: Principal = LOCAL) -> Any:
    return msgspec.json.decode(console.page(principal, path, {}).body)


def test_facts_settings_and_checks_are_for_the_role_admin(bench: Bench) -> None:
    lines = (SettingLine("mode", "guided", "user"),)
    console = Console(bench.ledger(), "1.0.0", lines, Clinic())
    mine, hers = shown(console, "health"), shown(console, "health", EVE)
    assert (mine["facts"], mine["canCheck"]) == ([{"name": "store", "value": "here"}], True)
    assert (hers["facts"], hers["canCheck"]) == ([], False)
    assert shown(console, "settings")["settings"] == [{"name": "mode", "value": "guided", "origin": "user"}]
    assert shown(console, "settings", EVE)["settings"] == []
    for principal in (EVE, Principal("ada", "approver")):
        assert console.act(principal, "doctor", b"{}").status == 403


def test_the_doctor_examines_once_at_a_time(bench: Bench) -> None:
    clinic = Clinic()
    console = Console(bench.ledger(), "1.0.0", (), clinic)
    answers: list[int] = []
    first = Thread(target=lambda: answers.append(console.act(LOCAL, "doctor", b"{}").status))
    first.start()
    assert clinic.began.wait(60)
    assert console.act(LOCAL, "doctor", b"{}").status == 409
    clinic.may_end.set()
    first.join()
    assert answers == [200]
    assert console.act(LOCAL, "doctor", b"{}").status == 200


def test_a_page_load_does_not_call_the_doctor(bench: Bench) -> None:
    clinic = Clinic()
    console = Console(bench.ledger(), "1.0.0", (), clinic)
    shown(console, "health")
    assert not clinic.began.is_set()


@pytest.fixture
def ledger(bench: Bench) -> Ledger:
    bench.write(workflow(*steps("first")))
    return bench.ledger()


def test_a_client_is_shown_with_the_time_that_it_was_last_heard(bench: Bench, ledger: Ledger) -> None:
    worker = bench.agent()
    worker.start("test.flow", goal="x")
    at = bench.clock.now
    worker.surface.idle()
    (client,) = shown(Console(ledger, "1.0.0"), "health")["clients"]
    assert (client["surface"], client["owner"], client["at"]) == ("execution", "local", at)
    bench.clock.pass_seconds(30)
    worker.ack("Done.")
    worker.surface.idle()
    assert shown(Console(ledger, "1.0.0"), "health")["clients"][0]["at"] == at  # right to a minute
    bench.clock.pass_seconds(31)
    worker.surface.idle()
    assert shown(Console(ledger, "1.0.0"), "health")["clients"][0]["at"] == bench.clock.now


def test_only_the_newest_clients_are_kept_however_they_name_themselves(ledger: Ledger) -> None:
    heard = HeardClients()
    for number in range(MOST_CLIENTS + 20):
        heard.calling.add(HeardClient("eve", f"{number} " + "x" * 500, "1", "session"))
        heard.write(ledger.store, 1000 + number)
    with ledger.store.reading() as reader:
        kept = clients_of(reader, "eve")
    assert [client.at for client in kept] == [1000 + number for number in range(MOST_CLIENTS + 19, 19, -1)]
    assert max(len(client.name) for client in kept) == 64
    assert not heard.calling


def test_each_principal_sees_its_own_clients_and_an_admin_all(ledger: Ledger) -> None:
    heard = HeardClients()
    heard.calling |= {HeardClient("eve", "a", "1", "session"), HeardClient("local", "b", "1", "session")}
    heard.write(ledger.store, 100_000)
    console = Console(ledger.of("local"), "1.0.0")
    assert [each["name"] for each in shown(console, "health", EVE)["clients"]] == ["a"]
    assert {each["name"] for each in shown(console, "health")["clients"]} == {"a", "b"}
    assert shown(console, "health", Principal("ada", "approver"))["clients"] == []


def test_a_real_server_examines_its_store_and_names_a_stdio_client(tmp_path: Path) -> None:
    with agent(tmp_path) as worker:
        worker.start("wr.small_task", goal="x")
    with serving(tmp_path) as server:
        client = ConsoleClient.entered(server)
        page = client.shows("health.json")
        assert [(each["name"], each["surface"]) for each in page["clients"]] == [("t", "execution")]
        assert any(fact["name"] == "store" for fact in page["facts"])
        report = client.act("doctor", {}).json
        assert report["ok"], report
        assert {"keyring", "file", "sessions"} <= {check["name"] for check in report["checks"]}
        names = {line["name"]: line for line in client.shows("settings.json")["settings"]}
        told = msgspec.json.decode(interlock(tmp_path, "config", "show", "--json").out)
        assert names["data-dir"]["value"] == told["data-dir"]["value"] == str(tmp_path)
        assert names["decisions"]["origin"] == "default"


def test_an_admin_sees_what_no_channel_has_taken(bench: Bench) -> None:
    with receiver() as hook:
        bench.write(workflow(gate("ship", "yes", "no"), *steps("last")))
        recipients = {
            "ops": Recipient(Webhook(hook.url, SECRET)),
            "team": Recipient(Webhook(hook.url, SECRET)),
        }
        ledger = bench.ledger(terms=Terms(decisions="user"), recipients=recipients)
        console = Console(ledger, "1.0.0")
        assert shown(console, "health")["notifications"] == {
            "channels": ["ops", "team"],
            "waiting": 0,
            "dead": 0,
            "messages": [],
        }
        hook.status = 410
        Agent(ExecutionSurface(ledger)).start("test.flow")
        equip(ledger).send_due()
        seen = shown(console, "health")["notifications"]
        assert (seen["waiting"], seen["dead"]) == (0, 2)
        assert {(each["state"], each["tries"]) for each in seen["messages"]} == {("dead", 1)}
        assert "answered 410" in seen["messages"][0]["error"]
        assert shown(console, "health", Principal("ada", "approver"))["notifications"] is None


def test_a_timer_that_waits_for_its_time_is_not_called_a_message(bench: Bench) -> None:
    decide = {"by": ["local"], "within": "4h", "then": {"option": "no"}}
    bench.write(workflow({**gate("ship", "yes", "no"), "decide": decide}, *steps("last")))
    ledger = bench.ledger()
    Agent(ExecutionSurface(ledger)).start("test.flow")
    with ledger.store.reading() as reader:
        assert [row.kind for row in reader.messages(9)] == ["due"]
    assert shown(Console(ledger, "1.0.0"), "health")["notifications"]["waiting"] == 0
