"""A day of somebody who runs a server for a team, with the commands of docs/operations.md."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.cli_process import Ran, environment
from support.harness import gate, steps, workflow
from support.http_server import META, MODERN, HttpServer, ModernCaller, UnexpectedStatus, bearer, inbox_answer
from support.installation import install
from support.postgres_server import require_postgres, shared_server

pytestmark = pytest.mark.slow

FLOW = workflow(*steps("one", "two"), gate("which", "left", "right"), *steps("three"))
STREAM_SECONDS = 20


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("installed"), "postgres")


class Team:
    """An installation with a HOME of its own, and the servers that run on it."""

    def __init__(self, programs: Path, folder: Path, database: dict[str, str]) -> None:
        self.programs, self.home, self.database = programs, folder / "home", database
        self.version: dict[str, str] = {}
        self.data = self.home / ".local" / "share" / "interlock"
        self.data.mkdir(parents=True, mode=0o700)
        (self.data / "workflows").mkdir()
        (self.data / "workflows" / "flow.json").write_text(json.dumps(FLOW))
        self.servers: list[HttpServer] = []

    def run(self, *arguments: str) -> Ran:
        """Run a command of the installation as the operator."""
        env = environment(HOME=str(self.home), **self.database, **self.version)
        env.pop("XDG_DATA_HOME", None)
        command = [str(self.programs / "interlock"), *arguments]
        ran = subprocess.run(command, env=env, cwd=self.home, capture_output=True, text=True, check=False)
        return Ran(ran)

    def well(self, *arguments: str) -> str:
        ran = self.run(*arguments)
        assert ran.code == 0, f"{arguments}: {ran.out}{ran.err}"
        return ran.out.strip()

    @property
    def replicas(self) -> int:
        return 2 if self.database else 1  # a file has one server, a database as many as are wanted

    def start(self) -> None:
        self.servers = [self.server() for _ in range(self.replicas)]

    def server(self) -> HttpServer:
        """Start a server of the installed version."""
        python, home = str(self.programs / "python"), {"HOME": str(self.home)}
        return HttpServer(
            self.data,
            "--decisions",
            "user",
            "--quiet",
            python=python,
            **home,
            **self.database,
            **self.version,
        )

    def stop(self) -> None:
        codes = [server.stop() for server in self.servers]
        self.servers = []
        assert set(codes) <= {0}

    def agent(self, token: str, replica: int = 0) -> ModernCaller:
        server = self.servers[replica % len(self.servers)]
        return ModernCaller(f"{server.host}:{server.port}", token)


@pytest.fixture(params=["sqlite", "postgres"])
def team(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Iterator[Team]:
    database = {}
    if request.param == "postgres":
        require_postgres()
        database = {"INTERLOCK_STORE": "postgresql://interlock@db.internal/interlock"}
        database |= shared_server().empty_database("interlock")
    team = Team(programs, tmp_path, database)
    yield team
    team.stop()


def advance(caller: ModernCaller, answer: Any) -> Any:
    """Complete the pending step."""
    tokens = {name: answer[name] for name in ("stateToken", "ackToken")}
    return caller.call("continue_workflow", **tokens, output={"notesMarkdown": "done"})


def back_up(team: Team, target: Path) -> None:
    """Copy the data while no server runs, as docs/operations.md says; PostgreSQL has means of its own."""
    shutil.copytree(team.data, target)
    if team.database:
        shared_server().dump("interlock", target / "interlock.sql")


def restore(team: Team, source: Path) -> None:
    shutil.rmtree(team.data)
    shutil.copytree(source, team.data)
    if team.database:
        shared_server().restore("interlock", source / "interlock.sql")


def listening(server: HttpServer, token: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """Open a stream of changes."""
    params = {"notifications": {"promptsListChanged": True}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen", **bearer(token)}
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    connection.request("POST", "/mcp", msgspec.json.encode(message), headers)
    return connection, connection.getresponse()


def test_an_operators_day(team: Team, tmp_path: Path) -> None:
    """Install, a first admin, a run, backup and restore, upgrade, rotation, somebody who leaves, an audit."""
    team.well("auth", "add", "root", "--role", "admin")
    team.start()

    # People and agents are let in while the servers run.
    ada, eve = team.well("auth", "add", "ada"), team.well("auth", "add", "eve", "--role", "approver")
    scraper = team.well("auth", "add", "prometheus", "--role", "metrics")
    for server in team.servers:
        assert server.request("GET", "/metrics", headers=bearer(scraper)).status == 200
        assert server.request("GET", "/metrics", headers=bearer(ada)).status == 403
        assert "secret=" not in server.entrance

    # An agent works, and the operator sees it.
    caller = team.agent(ada)
    begun = caller.call("start_workflow", workflowId="test.flow", context={"goal": "Ship it"})
    session = begun["session"]["sessionId"]
    second = advance(caller, begun)
    caller.close()
    assert team.run("sessions", "--json").json["sessions"] == []
    (line,) = team.run("sessions", "--owner", "all", "--json").json["sessions"]
    assert (line["sessionId"], line["owner"]) == (session, "ada")

    lose_an_hour(team, ada, second, tmp_path / "backup")
    third = pass_the_gate(team, ada, eve, second)
    upgrade(team, ada, third, tmp_path / "newer")
    replace_the_key(team, ada, session, third)
    leave_with_an_open_stream(team, "ada", ada)
    audit(team, session, tmp_path)
    team.well("gc", "--days", "0", "--owner", "all")
    assert team.run("sessions", "--owner", "all", "--json").json["sessions"] == []


def lose_an_hour(team: Team, ada: str, second: Any, backup: Path) -> None:
    """Back up, let the agent work on, and put the older copy back."""
    team.stop()
    back_up(team, backup)
    team.start()
    caller = team.agent(ada)
    lost = advance(caller, second)
    caller.close()
    team.stop()
    restore(team, backup)
    team.well("doctor")
    team.start()
    caller = team.agent(ada)
    for tokens in (
        {"stateToken": lost["stateToken"]},
        {name: lost[name] for name in ("stateToken", "ackToken")},
    ):
        refused = caller.call("continue_workflow", **tokens)
        assert refused["code"] == "TOKEN_OTHER_TIMELINE"
    caller.close()


def pass_the_gate(team: Team, ada: str, eve: str, second: Any) -> Any:
    """Go on from the restored copy; an approver decides, at whichever replica."""
    caller = team.agent(ada, replica=1)
    at_gate = advance(caller, second)
    assert at_gate["pending"]["stepId"] == "which"
    (asked,) = team.run("inbox", "--owner", "ada", "--json").json["questions"]
    body = msgspec.json.encode(inbox_answer(asked, "left"))
    assert team.servers[0].request("POST", "/inbox", body, bearer(eve)).status == 200
    third = advance(caller, at_gate)
    assert third["pending"]["stepId"] == "three"
    caller.close()
    return third


def upgrade(team: Team, ada: str, third: Any, folder: Path) -> None:
    """Migrate with the next version, and replace the servers one after the other under a live agent."""
    if not team.database:
        team.stop()
    team.version = next_version(team.programs, folder)
    if team.database:
        team.well("store", "migrate")
        caller = team.agent(ada)
        refused = advance(caller, third)
        assert refused["code"] == "STORE_UNAVAILABLE"
        assert "update Interlock" in refused["message"]
        caller.close()
    for _ in range(team.replicas):
        if team.database:
            assert team.servers.pop(0).stop() == 0
        team.servers.append(team.server())
        caller = team.agent(ada, replica=-1)
        assert (
            caller.call("continue_workflow", stateToken=third["stateToken"])["pending"]["stepId"] == "three"
        )
        caller.close()
    team.well("doctor")


def next_version(programs: Path, folder: Path) -> dict[str, str]:
    """Return the environment in which the programs are of a version with one more migration."""
    (installed,) = programs.parent.glob("lib/python3*/site-packages/interlock")
    shutil.copytree(installed, folder / "interlock")
    for file in ("sqlite/schema.py", "postgres/tables.py"):
        path = folder / "interlock" / "store" / file
        more = 'MIGRATIONS = (*MIGRATIONS, "CREATE TABLE next_version (name text);")'
        changed, count = re.subn(
            r"^MIGRATIONS: .*(?:\n .*|\n\))*$", rf"\g<0>\n{more}", path.read_text(), flags=re.M
        )
        assert count == 1
        path.write_text(changed)
    return {"PYTHONPATH": str(folder)}


def replace_the_key(team: Team, ada: str, session: str, third: Any) -> None:
    """Rotate in three steps: at every step every replica believes what every other has signed."""
    callers = [team.agent(ada, number) for number in range(team.replicas)]
    assert team.run("keys", "activate").code == 5
    fresh = third
    for step in ("prepare", "activate"):
        team.well("keys", step)
        for signing in callers:
            fresh = signing.call("continue_workflow", stateToken=third["stateToken"])
            for reading in callers:
                assert reading.call("continue_workflow", stateToken=fresh["stateToken"])["kind"] == "ok"
    team.well("keys", "retire")
    refused = callers[0].call("continue_workflow", stateToken=third["stateToken"])
    assert refused["code"] == "TOKEN_KEY_RETIRED"
    assert callers[0].call("resume_session", query=session)["candidates"]
    assert advance(callers[-1], fresh)["isComplete"]
    for caller in callers:
        caller.close()


def leave_with_an_open_stream(team: Team, name: str, token: str) -> None:
    """Revoke a token while it has a stream open and a connection in use."""
    caller = team.agent(token)
    assert caller.call("list_workflows")["workflows"]
    connection, stream = listening(team.servers[-1], token)
    assert stream.status == 200
    stream.readline()
    revoked_at = time.monotonic()
    team.well("auth", "revoke", name)
    stream.read()
    assert time.monotonic() - revoked_at < STREAM_SECONDS
    connection.close()
    with pytest.raises(UnexpectedStatus, match="401"):
        caller.call("list_workflows")
    caller.close()


def audit(team: Team, session: str, folder: Path) -> None:
    """Give the session to an auditor, who checks it elsewhere and notices a change."""
    file = folder / "session.json"
    team.well("export", session, "--owner", "ada", "--output", str(file))
    auditor = Team(team.programs, folder / "auditor", {})
    assert auditor.well("verify", str(file)).startswith("ok")
    transcript = team.well("export", session, "--owner", "ada", "--format", "markdown")
    assert "which: left (by eve, channel inbox (user)" in transcript
    file.write_text(file.read_text().replace("done", "gone", 1))
    assert auditor.run("verify", str(file)).code == 1
    team.well("verify", "--all")
