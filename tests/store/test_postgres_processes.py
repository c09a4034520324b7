"""Real `interlock mcp` processes and commands on one PostgreSQL, killed and stopped while agents work."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from interlock.ledger.log.health import examine
from interlock.ledger.log.records import OutputAppended
from interlock.store.postgres.database import PostgresStore, open_store
from support.cli_process import REPORT, Terminal, agent, decision, interlock, to_the_gate
from support.harness import Bench, steps, workflow
from support.log import logged_events
from support.postgres_server import PostgresServer, require_postgres, shared_server
from support.proof import SEED, line, times
from support.server import Server, ServerGone

pytestmark = pytest.mark.slow


def repeated(id_: str, body: list[dict[str, Any]]) -> dict[str, Any]:
    counted = {"type": "for", "count": 1000, "maxIterations": 1000}
    return {"id": id_, "type": "loop", "title": id_, "loop": counted, "body": body}


LONG = workflow(repeated("again", [repeated("and-again", steps("once"))]), id="test.long")
SECONDS = times(600)
CRASHES = times(200)
AGENTS = 8
LAST_TRIES = 600


@pytest.fixture
def url() -> Iterator[str]:
    require_postgres()
    schema = f"processes_{uuid4().hex[:8]}"
    yield shared_server().in_schema(schema)
    shared_server().execute(f"DROP SCHEMA {schema} CASCADE")


def serve(data: Path, url: str) -> Server:
    workflows = str(data / "workflows-under-test")
    return Server(data, "--workflows", workflows, "--store", url)


def noted(store: PostgresStore, session_id: str) -> list[str]:
    events = [row.event for row in logged_events(store, session_id, "node_output_appended")]
    return [event.notes for event in events if isinstance(event, OutputAppended)]


def test_a_run_can_change_its_process_at_every_call(tmp_path: Path, url: str) -> None:
    Bench(tmp_path).write(LONG)
    with serve(tmp_path, url) as server:
        at = server.call("start_workflow", workflowId="test.long")
    for number in range(5):
        with serve(tmp_path, url) as server:
            at = server.ack(at, f"step {number}")
    store = open_store(url)
    assert noted(store, at["session"]["sessionId"]) == [f"step {number}" for number in range(5)]
    store.close()


def test_a_decision_given_in_one_process_opens_the_gate_in_another(tmp_path: Path, url: str) -> None:
    store = ("--store", url)
    with agent(tmp_path, *store, "--decisions", "user") as one:
        session = to_the_gate(one)
        assert one.go_on("", decision("accept"))["kind"] == "blocked"
        gate = one.said
        with agent(tmp_path, *store, "--decisions", "user") as other:
            assert len(interlock(tmp_path, "inbox", "--json", INTERLOCK_STORE=url).json["questions"]) == 1
            terminal = Terminal(tmp_path, "decide", session, "accept", INTERLOCK_STORE=url)
            terminal.until("[Y/n]")
            terminal.type("\n")
            assert terminal.end()[0] == 0
            assert other.go_on(at=gate)["pending"]["stepId"] == "close-task"
            assert one.go_on("Handed over.", REPORT, at=other.said)["isComplete"] is True


def test_every_command_works_on_postgresql(tmp_path: Path, url: str) -> None:
    with agent(tmp_path, "--store", url) as one:
        session = to_the_gate(one)
        found = one.call("resume_session", query="flaky login")
        assert [candidate["sessionId"] for candidate in found["candidates"]] == [session]
    shown = {"INTERLOCK_STORE": url}
    for command in (
        ("sessions",),
        ("status", session),
        ("log", session),
        ("tree", session),
        ("notes", session),
        ("resume", "flaky"),
        ("inbox",),
        ("gc", "--dry-run"),
        ("store", "status"),
        ("store", "migrate"),
        ("config", "show"),
    ):
        ran = interlock(tmp_path, *command, **shown)
        assert ran.code in (0, 4), (command, ran.err)  # 4: it waits for the user
        assert "Traceback" not in ran.err
    assert session[5:13] in interlock(tmp_path, "sessions", "--store", url).out
    checks = interlock(tmp_path, "doctor", "--json", **shown).json
    assert checks["ok"]
    assert [check["detail"] for check in checks["checks"] if check["name"] in ("file", "sessions")] == [
        "does not apply: PostgreSQL checks its own files",
        "1 checked, 0 damaged",
    ]
    status = interlock(tmp_path, "store", "status", "--json", **shown).json
    assert (status["sessions"], status["unhealthy"], status["ok"]) == (1, 0, True)
    assert not (tmp_path / "interlock.db").exists()
    bundle = tmp_path / "bundle.json"
    assert interlock(tmp_path, "export", session, "--output", str(bundle), **shown).code == 0
    assert interlock(tmp_path, "import", str(bundle), **shown).code == 0
    assert interlock(tmp_path, "store", "status", "--json", **shown).json["sessions"] == 2
    file = f"sqlite://{tmp_path}/copy/work.db"
    copied = interlock(tmp_path, "store", "copy", url, file, "--json").json
    assert copied == {"copied": 2, "present": 0, "refused": {}}
    again = interlock(tmp_path, "store", "copy", file, url)
    assert (again.code, again.out) == (0, "Copied 0 sessions; 2 were there already; 0 refused.\n")
    with agent(tmp_path, "--store", file) as other:
        assert other.call("continue_workflow", stateToken=one.said["stateToken"])["kind"] == "ok"
    removed = interlock(tmp_path, "gc", "--days", "0", "--waiting", "--json", **shown).json
    assert removed["removed"] == 2


def test_a_server_that_is_away_is_told_and_the_call_can_be_repeated(tmp_path: Path) -> None:
    require_postgres()
    Bench(tmp_path).write(LONG)
    database = PostgresServer()
    try:
        database.start()
        with serve(tmp_path, database.url) as server:
            at = server.call("start_workflow", workflowId="test.long")
            database.stop("immediate")
            refused = server.ack(at, "once")
            assert refused["code"] == "STORE_UNAVAILABLE"
            assert refused["retry"]["kind"] == "retryable_after_ms"
            database.start()
            while (again := server.ack(at, "once")).get("code") == "STORE_UNAVAILABLE":
                time.sleep(refused["retry"]["afterMs"] / 1000)
            assert again["pending"]["stepId"] == "once"
        ran = interlock(tmp_path, "sessions", "--store", database.url.replace(str(database.port), "1"))
        assert ran.code != 0
        assert "cannot be reached" in ran.err
        assert "Traceback" not in ran.err
    finally:
        database.remove()


class Walker(threading.Thread):
    """An agent that takes steps and repeats a call, with the same tokens, until it is answered."""

    def __init__(
        self, name: str, data: Path, url: str, ended: threading.Event, at: dict[str, Any] | None
    ) -> None:
        super().__init__(name=name)
        self.data, self.url, self.ended = data, url, ended
        self.at = at
        self.acknowledged: list[str] = []
        self.counts: Counter[str] = Counter()
        self.server = serve(data, url)

    def run(self) -> None:
        while self.at is None:
            self.at = self.answered(lambda: self.server.call("start_workflow", workflowId="test.long"))
        if self.name.startswith("shared"):  # a branch of its own in the session that all of them write to
            root = self.at
            self.at = self.answered(
                lambda: self.server.call("continue_workflow", stateToken=root["stateToken"])
            )
        while not self.ended.is_set() and self.at is not None:
            text, here = f"{self.name}-{len(self.acknowledged)}", self.at
            answer = self.answered(lambda text=text, here=here: self.server.ack(here, text))
            if answer is None:
                return
            self.acknowledged.append(text)
            self.at = answer

    def answered(self, call: Any) -> dict[str, Any] | None:
        tries_left = LAST_TRIES
        while tries_left:
            tries_left -= self.ended.is_set()
            try:
                answer: dict[str, Any] = call()
            except ServerGone:
                self.counts["process gone"] += 1
                self.server.kill()
                self.server = serve(self.data, self.url)
                continue
            if "stateToken" in answer:
                return answer
            self.counts[answer.get("code", answer["_text"][:200])] += 1
            time.sleep(0.05)
        return None


@pytest.mark.proof
def test_kills_and_crashes_lose_nothing_and_double_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_postgres()
    Bench(tmp_path).write(LONG)
    database = PostgresServer()
    chance = random.Random(SEED)
    crashes: Counter[str] = Counter()
    try:
        database.start()
        with serve(tmp_path, database.url) as first:
            shared = first.call("start_workflow", workflowId="test.long")
            first.ack(shared, "shared")
        ended, began = threading.Event(), time.monotonic()
        names = [f"{'shared' if number % 2 else 'own'}{number}" for number in range(AGENTS)]
        walkers = [
            Walker(name, tmp_path, database.url, ended, shared if name.startswith("shared") else None)
            for name in names
        ]
        for walker in walkers:
            walker.start()
        for number in range(CRASHES):
            due = began + SECONDS * (number + chance.random()) / CRASHES
            is_due = False
            while not is_due:
                time.sleep(chance.uniform(0.3, 1.2))
                chance.choice(walkers).server.process.kill()
                crashes["process killed"] += 1
                is_due = time.monotonic() >= due
            database.stop("immediate")
            time.sleep(chance.uniform(0, 0.5))
            database.start()
            crashes["database stopped"] += 1
        ended.set()
        for walker in walkers:
            walker.join()
            walker.server.kill()
        check(database.url, walkers, shared["session"]["sessionId"], crashes, capsys)
        assert interlock(tmp_path, "doctor", "--json", INTERLOCK_STORE=database.url).json["ok"]
    finally:
        database.remove()


def check(
    url: str,
    walkers: list[Walker],
    shared: str,
    crashes: Counter[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = open_store(url)
    acknowledged = Counter(text for walker in walkers for text in walker.acknowledged)
    stored: Counter[str] = Counter()
    with store.reading() as reader:
        session_ids = reader.session_ids("", 1000)
    for session_id in session_ids:
        with store.reading() as reader:
            session = reader.session(session_id)
        assert session is not None
        assert examine(store, session).health == "healthy"
        stored.update(noted(store, session_id))
    stored.pop("shared")
    retried = sum((walker.counts for walker in walkers), Counter[str]())
    lost = [text for text in acknowledged if text not in stored]
    doubled = [text for text, count in stored.items() if count > 1]
    with capsys.disabled():
        figures = {**crashes, "acknowledged": len(acknowledged), "retried": sum(retried.values())}
        print(line("PostgreSQL", **figures, lost=len(lost), doubled=len(doubled)))
    assert not lost
    assert not doubled
    assert len(acknowledged) > 100
    assert set(stored) - set(acknowledged) <= {f"{w.name}-{len(w.acknowledged)}" for w in walkers}
    assert shared in session_ids
    store.close()
