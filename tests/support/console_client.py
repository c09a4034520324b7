"""A browser without a window or a page: a cookie, a CSRF token, and the console's addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from support.http_server import Answer, HttpServer


class ConsoleClient:
    """Asks the console as its page would."""

    def __init__(self, server: HttpServer, cookie: str = "") -> None:
        self._server = server
        self.headers = {"Sec-Fetch-Site": "same-origin", **({"Cookie": cookie} if cookie else {})}

    @classmethod
    def entered(cls, server: HttpServer) -> ConsoleClient:
        """Exchange the secret that the server printed for a cookie."""
        path = server.entrance.removeprefix(server.url)
        return cls(server, cookie_of(server.request("GET", path)))

    @classmethod
    def signed_in(cls, server: HttpServer, token: str) -> ConsoleClient:
        """Exchange a principal's token for a cookie."""
        headers = {"Content-Type": "application/json"}
        body = msgspec.json.encode({"token": token})
        return cls(server, cookie_of(server.request("POST", "/console/login", body, headers)))

    def page(self, path: str, **headers: str) -> Answer:
        return self._server.request("GET", f"/console/{path}", headers={**self.headers, **headers})

    def shows(self, path: str) -> Any:
        """Return what a page shows."""
        answer = self.page(path)
        assert answer.status == 200, answer.body
        return answer.json

    def act(self, name: str, body: Mapping[str, Any], **headers: str) -> Answer:
        csrf = self.page("csrf.json")
        token = csrf.json["csrf"] if csrf.status == 200 else ""
        sent = {**self.headers, "X-Interlock-Csrf": token, **headers}
        return self._server.request("POST", f"/console/do/{name}", msgspec.json.encode(body), sent)

    def decide(self, option: str, **more: Any) -> Answer:
        """Answer the first question of the inbox."""
        asked = self.shows("inbox.json")["questions"][0]
        return self.act("decide", {**answer_to(asked, option), **more})


def answer_to(asked: Mapping[str, Any], option: str) -> dict[str, Any]:
    """Return the request that answers a question of the inbox."""
    fields = ("sessionId", "runId", "node", "id", "key", "shown")
    question = {name: asked["question"][name] for name in fields}
    return {**question, "owner": asked["owner"], "option": option}


def cookie_of(answer: Answer) -> str:
    assert answer.status == 200, answer.body
    return answer.headers["set-cookie"].partition(";")[0]
