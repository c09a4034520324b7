"""Replicas on one PostgreSQL: a run may change replica at every call, and nothing acknowledged is lost."""

from __future__ import annotations

import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.store.postgres.database import open_store
from interlock.store.protocol import SessionFilter
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, ModernCaller, UnexpectedStatus
from support.log import logged_events
from support.paths import ROOT
from support.postgres_server import PostgresServer, require_postgres

pytestmark = pytest.mark.slow

CLIENTS = 12
STEPS = [f"s{number}" for number in range(20)]
PATIENCE = 120
AGAIN = {"retry": {"kind": "retryable"}}
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


class Replicas:
    """Three replicas on one database and one keyring, with a token for an agent and one for an approver."""

    def __init__(self, folder: Path) -> None:
        require_postgres()
        self.bench = Bench(folder)
        self.bench.write(workflow(*steps(*STEPS[:10]), gate("which", "left", "right"), *steps(*STEPS[10:])))
        self.postgres = PostgresServer()
        self.postgres.start()
        access = AccessTokens(folder)
        self.agent, self.approver = access.add("ada", "user", 1), access.add("eve", "approver", 1)
        arguments = ("--store", self.postgres.url, "--workflows", str(self.bench.workflows), "--quiet")
        limits = ("--decisions", "user", "--rate-limit", "100000")
        self.servers = [HttpServer(folder, *arguments, *limits) for _ in range(3)]

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        self.postgres.remove()

    def any_address(self) -> str:
        alive = [server for server in self.servers if server.process.poll() is None]
        server = random.choice(alive)
        return f"{server.host}:{server.port}"

    def walk(self, address: Callable[[], str], request_id: str) -> None:
        """Walk a run, each call on a connection of its own; the approver decides at any replica."""
        answer = self.call(address, "start_workflow", workflowId="test.flow", requestId=request_id)
        while not answer["isComplete"]:
            step, session = answer["pending"]["stepId"], answer["session"]["sessionId"]
            if step == "which":
                self.decide(session)
            tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
            answer = self.call(address, "continue_workflow", **tokens, output={"notesMarkdown": step})
            assert answer["kind"] == "ok", answer

    def call(self, address: Callable[[], str], tool: str, **arguments: Any) -> Any:
        """Call a tool until it answers; only errors that can be repeated may come meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            caller = ModernCaller(address(), self.agent)
            try:
                answer = caller.call(tool, **arguments)
            except UnexpectedStatus as error:
                if error.args[0] not in (502, 503, 504):
                    raise
                answer = AGAIN
            except (OSError, http.client.HTTPException):
                answer = AGAIN
            finally:
                caller.close()
            if answer.get("retry", {}).get("kind", "not") in ("not", "not_retryable"):
                return answer
            time.sleep(0.1)
        raise TimeoutError(tool)

    def decide(self, session: str) -> None:
        headers = {"Authorization": f"Bearer {self.approver}"}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection(self.any_address(), timeout=60)
            try:
                connection.request("GET", "/inbox", headers=headers)
                listed = connection.getresponse()
                if listed.status == 200:
                    questions = msgspec.json.decode(listed.read())["questions"]
                    asked = [item["shown"] for item in questions if item["sessionId"] == session]
                    if not asked:  # decided already, its answer was lost
                        return
                    decision = {"session": session, "question": "which", "shown": asked[0], "option": "left"}
                    connection.request("POST", "/inbox", msgspec.json.encode(decision), headers)
                    if connection.getresponse().status in (200, 409):
                        return
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(0.1)
        raise TimeoutError("decide")

    def completed_steps(self) -> list[list[str]]:
        """Return the steps that each session has recorded, in order."""
        store = open_store(self.postgres.url)
        try:
            with store.reading() as reader:
                sessions = reader.sessions(SessionFilter("ada", limit=1000))
            return [
                [row.event.key for row in logged_events(store, session.session_id, "step_completed")]  # type: ignore[union-attr]
                for session in sessions
            ]
        finally:
            store.close()


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    started = Replicas(tmp_path)
    try:
        yield started
    finally:
        started.close()


def test_runs_survive_killed_replicas_and_a_stopped_database(replicas: Replicas) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        walks = [pool.submit(replicas.walk, replicas.any_address, f"walk-{n}") for n in range(CLIENTS)]
        _wait_until(lambda: sum(map(len, replicas.completed_steps())) > CLIENTS)
        replicas.servers[0].process.send_signal(signal.SIGKILL)
        _wait_until(lambda: sum(map(len, replicas.completed_steps())) > 4 * CLIENTS)
        replicas.postgres.stop("immediate")
        replicas.postgres.start()
        for walk in walks:
            walk.result()
    assert [sorted(done) for done in replicas.completed_steps()] == [sorted(STEPS)] * CLIENTS


def test_replicas_behind_nginx(replicas: Replicas, tmp_path: Path) -> None:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        reason = "nginx is not installed (Debian: apt-get install nginx-light)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = (ROOT / "deploy" / "nginx.conf").read_text().replace("listen 8080", f"listen 127.0.0.1:{port}")
    for number, server in enumerate(replicas.servers[:2], 1):
        text = text.replace(f"interlock-{number}:8750", f"{server.host}:{server.port}")
    folders = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in FOLDERS)
    text = text.replace("http {", f"http {{\n{folders}", 1)
    head = f"daemon off; pid {tmp_path}/nginx.pid; error_log stderr crit;"
    (tmp_path / "nginx.conf").write_text(f"{head}\n{text}")
    proxy = subprocess.Popen([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
    try:
        _wait_until(lambda: _answers(port))
        with ThreadPoolExecutor(CLIENTS) as pool:
            address = f"127.0.0.1:{port}"
            walks = [pool.submit(replicas.walk, lambda: address, f"proxied-{n}") for n in range(CLIENTS)]
            _wait_until(lambda: sum(map(len, replicas.completed_steps())) > 2 * CLIENTS)
            replicas.servers[0].process.send_signal(signal.SIGKILL)
            for walk in walks:
                walk.result()
    finally:
        proxy.terminate()
        proxy.wait()
    assert [sorted(done) for done in replicas.completed_steps()] == [sorted(STEPS)] * CLIENTS


def _answers(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)
