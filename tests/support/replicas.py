"""Replicas of the real server on one store, behind the nginx of `deploy/`, and agents that walk runs there.

An agent repeats what may be repeated and nothing else, so whatever goes wrong on the way must be one of that.
"""

from __future__ import annotations

import http.client
import itertools
import os
import re
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.store.postgres.database import open_store
from interlock.store.protocol import SessionFilter
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, ModernCaller, UnexpectedStatus, bearer, inbox_answer
from support.log import logged_events
from support.paths import ROOT

STEPS = [f"s{number}" for number in range(20)]
PATIENCE = 240
PAUSE = 0.05
AWAY = (502, 503, 504)
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

Address = Callable[[], str]


class Replicas:
    """Servers on one store and one keyring, with a token for an agent and one for an approver."""

    def __init__(self, folder: Path, store: str, count: int) -> None:
        self.bench = Bench(folder)
        self.bench.write(workflow(*steps(*STEPS[:10]), gate("which", "left", "right"), *steps(*STEPS[10:])))
        self._store = store
        access = AccessTokens(folder)
        self.agent, self.approver = access.add("ada", "user", 1), access.add("eve", "approver", 1)
        self._turns = itertools.count()
        self.servers: list[HttpServer] = []
        try:
            for _ in range(count):
                self.servers.append(self._started())
        except BaseException:
            self.close()
            raise

    def _started(self, *more: str) -> HttpServer:
        arguments = ("--store", self._store, "--workflows", str(self.bench.workflows), "--quiet")
        limits = ("--decisions", "user", "--rate-limit", "1000000", "--concurrency-limit", "100000")
        return HttpServer(self.bench.folder, *arguments, *limits, *more)

    def kill(self, number: int) -> None:
        """Kill a replica with no chance to finish anything."""
        self.servers[number].process.kill()
        self.servers[number].stop()

    def revive(self, number: int) -> None:
        """Start a killed replica again at its address."""
        self.servers[number] = self._started("--port", str(self.servers[number].port))

    def next_address(self) -> str:
        """Return the replicas in turn, those that live."""
        alive = [server for server in self.servers if server.process.poll() is None]
        server = alive[next(self._turns) % len(alive)]
        return f"{server.host}:{server.port}"

    def completed_steps(self) -> dict[str, list[str]]:
        """Return the steps that each session has recorded, in order."""
        store = (
            open_store(self._store) if self._store.startswith("postgresql:") else self.bench.ledger().store
        )
        try:
            with store.reading() as reader:
                sessions = reader.sessions(SessionFilter("ada", limit=1000))
            return {
                session.session_id: [
                    row.event.key  # type: ignore[union-attr]
                    for row in logged_events(store, session.session_id, "step_completed")
                ]
                for session in sessions
            }
        finally:
            store.close()

    def close(self) -> None:
        for server in self.servers:
            server.stop()


class Walker:
    """An agent that walks one run. `taken` has the milliseconds of every advance."""

    def __init__(self, address: Address, token: str, request_id: str) -> None:
        self._address = address
        self._token = token
        self._request_id = request_id
        self._caller = ModernCaller("")
        self.session = ""
        self.done: list[str] = []
        self.taken: list[float] = []
        self.repeated: Counter[str] = Counter()

    def walk(self) -> None:
        """Walk to the end, each call wherever `address` says; wait at the gate until it is decided."""
        answer = self.call("start_workflow", workflowId="test.flow", requestId=self._request_id)
        self.session = answer["session"]["sessionId"]
        while not answer["isComplete"]:
            step = answer["pending"]["stepId"]
            tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
            if step == "which":
                answer = self.call("continue_workflow", **tokens, waitSeconds=20)
                if answer["kind"] == "blocked":
                    continue
            else:
                began = time.perf_counter()
                answer = self.call("continue_workflow", **tokens, output={"notesMarkdown": step})
                self.taken.append((time.perf_counter() - began) * 1000)
            assert answer["kind"] == "ok", answer
            self.done.append(step)
        self._caller.close()

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool until it answers; only errors that can be repeated may come meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._caller.address != (address := self._address()):
                self._caller.close()
                self._caller = ModernCaller(address, self._token)
            try:
                answer = self._caller.call(tool, **arguments)
                reason = repeatable(answer)
                if reason is None:
                    return answer
            except UnexpectedStatus as error:
                if error.args[0] not in AWAY:
                    raise
                reason = str(error.args[0])
            except (OSError, http.client.HTTPException):
                self._caller.close()
                reason = "connection lost"
            self.repeated[reason] += 1
            time.sleep(PAUSE)
        raise TimeoutError(tool)


def repeatable(answer: Any) -> str | None:
    """Return the code of an error that says that the same call may be sent again."""
    kind = answer.get("retry", {}).get("kind", "not_retryable")
    return answer["code"] if kind != "not_retryable" else None


def keep_deciding(address: Address, token: str, over: Event) -> None:
    """Decide everything that waits, as an approver with a script would, until it is over."""
    while not over.wait(PAUSE):
        connection = http.client.HTTPConnection(address(), timeout=60)
        with suppress(OSError, http.client.HTTPException, msgspec.DecodeError):
            connection.request("GET", "/inbox", headers=bearer(token))
            listed = connection.getresponse()
            questions = msgspec.json.decode(listed.read())["questions"] if listed.status == 200 else []
            for asked in questions:
                body = msgspec.json.encode(inbox_answer(asked, "left"))
                connection.request("POST", "/inbox", body, bearer(token))
                connection.getresponse().read()
        connection.close()


@contextmanager
def behind_nginx(folder: Path, servers: list[HttpServer]) -> Iterator[str]:
    """Run nginx with the configuration of `deploy/` in front of these servers, and yield its address."""
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    replicas = re.compile(r"server interlock-1:8750(.*;)\n\s*server interlock-2:8750.*;")
    listed = "\n".join(rf"server {server.host}:{server.port}\1" for server in servers)
    text, upstreams = replicas.subn(listed, text)
    assert upstreams == 2
    with nginx(folder, text, {}, ["listen 8080"]) as (port,):
        wait_until(lambda: is_answering(port))
        yield f"127.0.0.1:{port}"


@contextmanager
def nginx(
    folder: Path, text: str, replaced: Mapping[str, str], listens: Sequence[str]
) -> Iterator[list[int]]:
    """Run nginx with a configuration of `deploy/`, but for what names another machine in it.

    Every `listen` gets a free port of loopback; these are yielded.
    """
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        reason = "nginx is not installed (Debian: apt-get install nginx-light)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    ports = free_ports(len(listens))
    here = {
        listen: re.sub(r"\d+", f"127.0.0.1:{port}", listen)
        for listen, port in zip(listens, ports, strict=True)
    }
    for printed, local in {**replaced, **here}.items():
        assert printed in text, printed
        text = text.replace(printed, local)
    folders = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in FOLDERS)
    text = text.replace("http {", f"http {{\n{folders}", 1)
    head = f"daemon off; pid {folder}/nginx.pid; error_log stderr emerg;"
    (folder / "nginx.conf").write_text(f"{head}\n{text}")
    proxy = subprocess.Popen([program, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        wait_until(lambda: all(map(is_listening, ports)))
        yield ports
    finally:
        proxy.terminate()
        proxy.wait()


def free_ports(count: int) -> list[int]:
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_answering(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def wait_until(holds: Callable[[], bool]) -> None:
    """Look again and again until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(PAUSE)
