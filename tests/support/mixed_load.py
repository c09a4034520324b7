"""Clients that share runs on two replicas and one PostgreSQL while those are killed, stalled and restarted.

What they were told is recorded, and one sequential history per run must explain it (`tools/history`).
"""

from __future__ import annotations

import http.client
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from typing import Any

import msgspec
import psycopg

from interlock.ledger.log.records import OutputAppended
from interlock.store.postgres.database import open_store
from interlock.store.protocol import StoreAway, StoreBusy
from support.http_server import ModernCaller, UnexpectedStatus, bearer, inbox_answer
from support.log import logged_events
from support.postgres_server import PostgresServer
from support.replicas import AWAY, STEPS, Replicas, repeatable
from tools.history.check import unexplained
from tools.history.clients import DecidingClient, Lost, Refused, Result, RivalClient, SharedRun, WalkingClient
from tools.history.model import ModelRun

GATE = 10
ITEMS = [*STEPS[:GATE], "which", *STEPS[GATE:]]
TIMEOUT = 3.0  # seconds after which a client gives an answer up
CUT = 0.02  # calls whose connection the client cuts before the answer
PAUSE = 0.02
BROKEN = ("killed", "killed", "restarted", "stalled", "stalled", "database crashed")
SAMPLE_SECONDS = 1.0


class MixedLoad:
    """A load of so many groups of clients for some time, and what came of it."""

    def __init__(self, replicas: Replicas, postgres: PostgresServer, folder: Path, seed: int) -> None:
        self.replicas, self.postgres, self.folder = replicas, postgres, folder
        self.chance = Random(seed)
        self.taken: dict[str, list[float]] = {}
        self.counts: Counter[str] = Counter()
        self.unexplained: list[str] = []
        self.samples: list[Sample] = []
        self._turn = Lock()
        self._store = open_store(postgres.url)

    def run(self, groups: int, seconds: float) -> None:
        """Let all clients work for so long, then to the end of their runs."""
        over, failures = Event(), list[BaseException]()

        def guarded(act: Any, *arguments: Any) -> None:
            try:
                act(*arguments)
            except BaseException as error:
                failures.append(error)
                over.set()

        seeds = [self.chance.randrange(10**9) for _ in range(groups + 1)]
        acts: list[tuple[Any, ...]] = [(self._group, number, seeds[number], over) for number in range(groups)]
        acts += [(self._break_things, seeds[-1], over), (self._sample, over)]
        threads = [Thread(target=guarded, args=act) for act in acts]
        for thread in threads:
            thread.start()
        over.wait(seconds)
        over.set()
        for thread in threads:
            thread.join()
        self._store.close()
        if failures:
            raise failures[0]

    def _group(self, number: int, seed: int, over: Event) -> None:
        """Walk one run after the other, each shared with a rival and a person who decides."""
        chance, turn = Random(seed), 0
        while not over.is_set():
            run = SharedRun(f"load-{seed}-{number}-{turn}", ITEMS, GATE)
            caller = LoadCaller(self, chance)
            walker = WalkingClient("walker", run, caller.send, chance)
            beside = Thread(target=self._beside, args=(run, Random(chance.random())))
            beside.start()
            walker.walk()
            beside.join()
            caller.close()
            self._check(run)
            turn += 1

    def _beside(self, run: SharedRun, chance: Random) -> None:
        caller = LoadCaller(self, chance)
        rival = RivalClient("rival", run, caller.send, chance)
        inbox = LoadInbox(self)
        person = DecidingClient("person", run, inbox.shown, inbox.decide)
        while not run.is_over:
            rival.act()
            if run.newest[0] == run.gate:
                person.act()
            time.sleep(PAUSE)
        caller.close()

    def _check(self, run: SharedRun) -> None:
        """Compare what all clients of a run were told with one sequential history and with its log."""
        number = run.history.invoke("log", "log")
        run.history.answered(number, *self._notes(run.session))
        why = unexplained(run.history.calls, ModelRun(GATE))
        with self._turn:
            self.counts["runs"] += 1
            self.counts["calls"] += len(run.history.calls)
            self.counts["answers lost"] += sum(call.returned is None for call in run.history.calls)
            if why is not None:
                path = self.folder / f"{run.history.name}.json"
                run.history.write(path)
                self.unexplained.append(f"python -m tools.history --file {path}\n{why}")

    def _notes(self, session: str) -> tuple[str, ...]:
        while True:
            try:
                events = [row.event for row in logged_events(self._store, session, "node_output_appended")]
                return tuple(event.notes for event in events if isinstance(event, OutputAppended))
            except (StoreAway, StoreBusy):
                time.sleep(PAUSE)

    def _break_things(self, seed: int, over: Event) -> None:
        """Kill and restart the first replica, stall both, and crash the database, until it is over."""
        chance = Random(seed)
        left = list[str]()
        while not over.wait(chance.uniform(1, 4)):
            left = left or chance.sample(BROKEN, len(BROKEN))
            what = left.pop()
            self.counts[what] += 1
            if what in ("killed", "restarted"):
                self.replicas.kill(0) if what == "killed" else self.replicas.servers[0].stop()
                self.replicas.revive(0)
            elif what == "stalled":
                process = chance.choice(self.replicas.servers).process
                process.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0.5, 2 * TIMEOUT))
                process.send_signal(signal.SIGCONT)
            else:
                self.postgres.stop("immediate")
                self.postgres.start()

    def _sample(self, over: Event) -> None:
        """Look every second at what the replica that is never killed uses."""
        server = self.replicas.servers[1]
        while not over.wait(SAMPLE_SECONDS):
            try:
                with psycopg.connect(self.postgres.url, connect_timeout=2) as connection:
                    row = connection.execute("SELECT count(*) FROM pg_stat_activity").fetchone()
            except psycopg.OperationalError:
                continue
            assert row is not None
            descriptors = len(os.listdir(f"/proc/{server.process.pid}/fd"))
            self.samples.append(Sample(server.resident_megabytes(), descriptors, row[0]))

    def timed(self, tool: str, began: float) -> None:
        """Keep how long an answer took."""
        with self._turn:
            self.taken.setdefault(tool, []).append((time.perf_counter() - began) * 1000)


class Sample(msgspec.Struct, frozen=True):
    """What a server used at one moment, and how many connections the database had."""

    megabytes: float
    descriptors: int
    connections: int


class LoadCaller:
    """Sends each call to one of the replicas; sometimes it does not wait for the answer."""

    def __init__(self, load: MixedLoad, chance: Random) -> None:
        self._load, self._chance = load, chance
        self._caller = ModernCaller("")

    def send(self, tool: str, **arguments: Any) -> Result:
        """Call a tool, or raise Lost or Refused."""
        replicas = self._load.replicas
        if self._caller.address != (address := replicas.next_address()):
            self._caller.close()
            self._caller = ModernCaller(address, replicas.agent, TIMEOUT)
        began = time.perf_counter()
        try:
            if self._chance.random() < CUT:
                self._caller.send(tool, **arguments)
                raise ConnectionError
            result: Mapping[str, Any] = self._caller.result(tool, **arguments)
        except UnexpectedStatus as error:
            if error.args[0] in AWAY:
                time.sleep(PAUSE)
                raise Lost from error
            raise Refused(str(error.args)) from error
        except (OSError, http.client.HTTPException) as error:
            self._caller.close()
            time.sleep(PAUSE)
            raise Lost from error
        self._load.timed(tool, began)
        if not result.get("isError"):
            return result
        body = result["structuredContent"]
        if repeatable(body) is None:
            raise Refused(body["code"])
        time.sleep(PAUSE)
        raise Lost

    def close(self) -> None:
        self._caller.close()


class LoadInbox:
    """The inbox of an approver, at one replica after the other."""

    def __init__(self, load: MixedLoad) -> None:
        self._load = load

    def shown(self, session: str) -> Any:
        """Return the question of a session as the inbox lists it."""
        status, body = self._request("GET")
        asked = msgspec.json.decode(body)["questions"] if status == 200 else []
        return next((question for question in asked if question["sessionId"] == session), None)

    def decide(self, asked: Mapping[str, Any]) -> bool:
        """Answer a question as it was shown; say whether that was taken."""
        status, _ = self._request("POST", msgspec.json.encode(inbox_answer(asked, "left")))
        if status in AWAY:
            raise Lost
        return status == 200

    def _request(self, method: str, body: bytes | None = None) -> tuple[int, bytes]:
        replicas, began = self._load.replicas, time.perf_counter()
        connection = http.client.HTTPConnection(replicas.next_address(), timeout=TIMEOUT)
        try:
            connection.request(method, "/inbox", body, bearer(replicas.approver))
            response = connection.getresponse()
            answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Lost from error
        finally:
            connection.close()
        self._load.timed(f"{method} /inbox", began)
        return answer
