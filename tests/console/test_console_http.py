"""The console over HTTP: nobody without its cookie reads or decides anything, and a cut stream resumes."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from interlock.transport.http.console.live import removed
from support.cli_process import Agent, agent, interlock, to_the_gate
from support.console_client import ConsoleClient, answer_to
from support.http_server import HttpServer, serving

PAGES = ["inbox.json", "runs.json", "health.json", "csrf.json", "live", "sessions/x.json", "workflows.json"]


class Served:
    """A server, and an agent that has brought a run to its gate over MCP."""

    def __init__(self, server: HttpServer, worker: Agent, session: str) -> None:
        self.server = server
        self.worker = worker
        self.session = session
        self.client = ConsoleClient.entered(server)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("console")
    with serving(folder) as server, agent(folder) as worker:
        yield Served(server, worker, to_the_gate(worker))


@pytest.mark.parametrize("path", PAGES)
def test_without_its_cookie_nothing_is_shown(served: Served, path: str) -> None:
    for headers in ({}, {"Cookie": f"interlock-console-{served.server.port}=guessed"}):
        answer = served.server.request("GET", f"/console/{path}", headers=headers)
        assert (answer.status, answer.json["error"]["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("path", ["inbox.json", "live", "runs.json"])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_reads_nothing_even_with_the_cookie(
    served: Served, path: str, site: str
) -> None:
    answer = served.client.page(path, **{"Sec-Fetch-Site": site})
    assert (answer.status, answer.json["error"]["code"]) == (403, "ORIGIN_NOT_ALLOWED")


def test_a_foreign_origin_or_host_is_refused_even_with_the_cookie(served: Served) -> None:
    assert served.client.page("inbox.json", Origin="https://evil.example").status == 403
    assert served.client.page("inbox.json", Host="evil.example").status == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Interlock-Csrf": ""}, 403),
        ({"X-Interlock-Csrf": "0" * 64}, 403),
        ({"Cookie": ""}, 401),
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_a_forged_decision_is_refused(served: Served, headers: dict[str, str], status: int) -> None:
    asked = served.client.shows("inbox.json")["questions"][0]
    assert served.client.act("decide", answer_to(asked, "accept"), **headers).status == status
    assert served.client.shows("inbox.json")["questions"][0] == asked


def test_a_wrong_secret_opens_nothing(served: Served) -> None:
    answer = served.server.request("GET", "/console/enter?secret=guessed")
    assert answer.status == 403
    assert "set-cookie" not in answer.headers


def test_the_cookie_is_for_this_console_alone(served: Served) -> None:
    answer = served.server.request("GET", served.server.entrance.removeprefix(served.server.url))
    given = answer.headers["set-cookie"]
    assert given.startswith(f"interlock-console-{served.server.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/console"} <= set(given.split("; "))
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["", "inbox", "runs?status=waiting", "sessions/anything", "assets/console.js"]
)
def test_the_page_itself_holds_no_data_and_allows_no_foreign_script(served: Served, path: str) -> None:
    answer = served.server.request("GET", f"/console/{path}")
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert served.session.encode() not in answer.body


@pytest.mark.parametrize("path", ["../pyproject.toml", "assets/../../console.py", "%2e%2e/console.py"])
def test_only_built_files_are_served(served: Served, path: str) -> None:
    answer = served.server.request("GET", f"/console/{path}")
    assert answer.status in (200, 404)
    assert answer.status == 404 or answer.body.startswith(b"<!doctype html>")


def test_the_secret_of_the_launch_is_not_logged(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ConsoleClient.entered(server).shows("inbox.json")
    secret = server.entrance.partition("secret=")[2].encode()
    assert secret not in server.log


def moves(server: HttpServer, client: ConsoleClient, after: str = "") -> Iterator[dict[str, str]]:
    """Yield the events of the stream, each with its fields."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    resume = {"Last-Event-ID": after} if after else {}
    connection.request("GET", "/console/live", headers={**client.headers, **resume})
    response = connection.getresponse()
    try:
        fields: dict[str, str] = {}
        while line := response.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif fields:
                yield fields
                fields = {}
    finally:
        connection.close()


def test_a_stream_tells_what_moves_and_resumes_after_a_cut(tmp_path: Path) -> None:
    with serving(tmp_path) as server, agent(tmp_path) as worker:
        client = ConsoleClient.entered(server)
        stream = moves(server, client)
        assert next(stream)["event"] == "began"
        worker.start("wr.small_task", goal="Move")
        session = worker.said["session"]["sessionId"]
        moved = next(event for event in stream if event.get("event") == "moved")
        assert msgspec.json.decode(moved["data"]) == {"sessions": [session]}
        stream.close()
        worker.go_on("While nobody listened.")
        resumed = moves(server, client, after=moved["id"])
        missed = next(event for event in resumed if event.get("event") == "moved")
        assert msgspec.json.decode(missed["data"]) == {"sessions": [session]}
        resumed.close()


def test_a_stream_tells_of_a_keep_mark_and_of_a_deleted_session(tmp_path: Path) -> None:
    with serving(tmp_path) as server, agent(tmp_path) as worker:
        client = ConsoleClient.entered(server)
        worker.start("wr.small_task", goal="Keep me, then delete me")
        session = worker.said["session"]["sessionId"]
        stream = moves(server, client)
        assert next(stream)["event"] == "began"
        for keep in (True, False):
            assert client.act("keep", {"sessionIds": [session], "keep": keep}).status == 200
            marked = next(event for event in stream if event.get("event") == "moved")
            assert msgspec.json.decode(marked["data"]) == {"sessions": [session]}
        at = client.shows(f"runs/removal.json?ids={session}")["at"]
        assert client.act("remove", {"sessionIds": [session], "at": at, "waiting": False}).status == 200
        gone = next(event for event in stream if event.get("event") == "moved")
        assert msgspec.json.decode(gone["data"]) == {"sessions": [session]}
        stream.close()


class Head(Struct, frozen=True):
    updated_at: int


@pytest.mark.parametrize(
    ("known", "heads", "gone"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, []),
        ({"a": 1, "b": 2}, {"b": 2}, ["a"]),
        ({"a": 1}, {}, ["a"]),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, []),  # pushed out of the look by a newer one
        ({"b": 2, "c": 3}, {"a": 1, "b": 2}, ["c"]),  # an older one takes its place in the look
    ],
)
def test_a_session_that_newer_ones_push_out_of_the_look_is_not_deleted(
    known: dict[str, int], heads: dict[str, int], gone: list[str]
) -> None:
    before, after = ({name: Head(at) for name, at in look.items()} for look in (known, heads))
    assert removed(before, after) == gone


def test_who_uses_a_workflow_is_told_to_those_who_decide_for_others(tmp_path: Path) -> None:
    def token(name: str, role: str) -> str:
        return interlock(tmp_path, "auth", "add", name, "--role", role).out.split()[-1]

    tokens = {name: token(name, role) for name, role in (("eve", "user"), ("ada", "approver"))}
    with serving(tmp_path) as server, agent(tmp_path) as worker:
        worker.start("wr.small_task", goal="Mine")
        eve, ada = (ConsoleClient.signed_in(server, tokens[name]) for name in ("eve", "ada"))
        users = ada.shows("workflows/wr.small_task.json")["users"]
        assert [(user["name"], user["sessions"]) for user in users] == [("local", 1)]
        assert eve.shows("workflows/wr.small_task.json")["users"] == []


def test_principals_sign_in_and_see_only_their_own(tmp_path: Path) -> None:
    def token(name: str, role: str) -> str:
        return interlock(tmp_path, "auth", "add", name, "--role", role).out.split()[-1]

    tokens = {name: token(name, role) for name, role in (("eve", "user"), ("ada", "approver"))}
    with serving(tmp_path) as server, agent(tmp_path) as worker:
        to_the_gate(worker)
        eve, ada = (ConsoleClient.signed_in(server, tokens[name]) for name in ("eve", "ada"))
        assert eve.shows("inbox.json")["questions"] == []
        assert eve.shows("runs.json")["lines"] == []
        asked: Any = ada.shows("inbox.json")["questions"][0]
        assert eve.act("decide", answer_to(asked, "accept")).status == 403
        assert ada.act("decide", answer_to(asked, "accept")).status == 200
        assert interlock(tmp_path, "auth", "revoke", "ada").code == 0
        assert ada.page("inbox.json").status == 401
        wrong = server.request(
            "POST", "/console/login", b'{"token": "guessed"}', {"Content-Type": "application/json"}
        )
        assert wrong.status == 401
        assert server.request("POST", "/console/login", b"x=1").status == 403
