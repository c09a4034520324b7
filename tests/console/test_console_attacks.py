"""Attacks on the console over HTTP: what a hostile page, program or principal may try, on every route."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.routing import Route

from interlock.transport.http.console.routes import ConsoleRoutes
from support.cli_process import agent, interlock, to_the_gate
from support.console_client import ConsoleClient, answer_to
from support.http_server import HttpServer, serving

ROUTES = [
    (
        method,
        route.path.replace("{path:path}", "inbox").replace("{name}", "decide").replace("{count:int}", "1"),
    )
    for route in ConsoleRoutes(cast(Any, None), cast(Any, None)).routes()
    if isinstance(route, Route)
    for method in sorted((route.methods or set()) - {"HEAD"})
]
DATA = ["/console/inbox.json", "/console/csrf.json", "/console/live", "/console/settings.json"]
ACTIONS = ["decide", "note", "mode", "keep", "import", "doctor", "anything"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder = tmp_path_factory.mktemp("attacked")
    with serving(folder) as server, agent(folder) as worker:
        to_the_gate(worker)
        yield server


@pytest.fixture(scope="module")
def client(served: HttpServer) -> ConsoleClient:
    return ConsoleClient.entered(served)


def test_the_console_listens_on_loopback(served: HttpServer) -> None:
    assert served.entrance.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example", 421),
        ("Host", "127.0.0.1.evil.example:80", 421),
        ("Origin", "https://evil.example", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Origin", "null", 403),
    ],
)
def test_every_route_refuses_a_foreign_host_and_origin(
    served: HttpServer, client: ConsoleClient, method: str, path: str, header: str, value: str, status: int
) -> None:
    body = b"{}" if method == "POST" else None
    answer = served.request(method, path, body, {**client.headers, header: value})
    assert answer.status == status


@pytest.mark.parametrize("path", DATA)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_origin_reads_no_data_even_with_the_cookie(
    served: HttpServer, client: ConsoleClient, path: str, site: str
) -> None:
    answer = served.request("GET", path, headers={**client.headers, "Sec-Fetch-Site": site})
    assert (answer.status, answer.json["error"]["code"]) == (403, "ORIGIN_NOT_ALLOWED")


@pytest.mark.parametrize("name", ACTIONS)
def test_no_action_is_carried_out_without_the_token_of_its_own_cookie(
    served: HttpServer, client: ConsoleClient, name: str
) -> None:
    for token in ("", "0" * 64, "\u00e9"):
        headers = {**client.headers, "X-Interlock-Csrf": token}
        answer = served.request("POST", f"/console/do/{name}", b"{}", headers)
        assert (answer.status, answer.json["error"]["code"]) == (403, "CSRF")


def test_a_token_that_belongs_to_another_cookie_is_refused(tmp_path: Path) -> None:
    tokens = [
        interlock(tmp_path, "auth", "add", name, "--role", "admin").out.strip() for name in ("eve", "ada")
    ]
    with serving(tmp_path) as server:
        eve, ada = (ConsoleClient.signed_in(server, token) for token in tokens)
        theirs = ada.page("csrf.json").json["csrf"]
        answer = server.request(
            "POST", "/console/do/doctor", b"{}", {**eve.headers, "X-Interlock-Csrf": theirs}
        )
        assert answer.json["error"]["code"] == "CSRF"


def test_what_an_earlier_launch_gave_out_opens_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        before = ConsoleClient.entered(server)
        secret = server.entrance.partition("secret=")[2]
    with serving(tmp_path) as server:
        value = before.headers["Cookie"].partition("=")[2]
        stale = {"Cookie": f"interlock-console-{server.port}={value}"}
        assert server.request("GET", "/console/inbox.json", headers=stale).status == 401
        assert server.request("GET", f"/console/enter?secret={secret}").status == 403


@pytest.mark.parametrize(
    "path", ["", "enter", "inbox.json", "live", "assets/console.js", "icon-3.svg", "csrf.json"]
)
def test_every_answer_forbids_inline_script_and_frames(
    served: HttpServer, client: ConsoleClient, path: str
) -> None:
    path = served.entrance.removeprefix(f"{served.url}/console/") if path == "enter" else path
    wanted = served.request("GET", f"/console/{path}") if path == "live" else client.page(path)
    policy = wanted.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy
    assert wanted.headers["x-content-type-options"] == "nosniff"
    assert path.endswith(".js") or b"<script>" not in wanted.body


def test_a_token_of_an_agent_signs_in_and_decides_nothing(tmp_path: Path) -> None:
    def token(name: str, role: str) -> str:
        return interlock(tmp_path, "auth", "add", name, "--role", role).out.split()[-1]

    tokens = {name: token(name, role) for name, role in (("bot", "user"), ("ada", "approver"))}
    with serving(tmp_path) as server, agent(tmp_path) as worker:
        to_the_gate(worker)
        bot, ada = (ConsoleClient.signed_in(server, tokens[name]) for name in ("bot", "ada"))
        asked = ada.shows("inbox.json")["questions"][0]
        for forged in (answer_to(asked, "accept"), {**answer_to(asked, "accept"), "owner": "bot"}):
            assert bot.act("decide", forged).status == 403
        session = asked["question"]["sessionId"]
        for path in (f"sessions/{session}.json", f"sessions/{session}/events.json"):
            assert bot.page(path).status == 404
            assert ada.page(path).status == 404  # to decide for others is not to read their sessions
        assert bot.shows("settings.json")["settings"] == []
        assert bot.act("doctor", {}).status == 403
        assert bot.act("import", {}).status == 403
        assert bot.act("remove", {"sessionIds": [], "at": 0}).status == 403
        assert len(ada.shows("inbox.json")["questions"]) == 1
