"""The inbox over HTTP, page by page: every question once, whatever comes or is answered meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.store.sqlite.store import open_store
from support import postgres_server
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, bearer, inbox_answer, serving

WAITING = 25


class Served:
    """A server with questions of ada and of bob, and their tokens."""

    def __init__(self, bench: Bench, server: HttpServer, tokens: dict[str, str]) -> None:
        self.bench, self.server, self.tokens = bench, server, tokens

    def ask(self, number: int, owner: str = "ada") -> None:
        agent = self.bench.agent(terms=Terms(decisions="user"), owner=owner)
        agent.start("test.flow", goal=f"Goal {number}")
        self.bench.clock.pass_seconds(1)

    def get(self, address: str = "/inbox", name: str = "eve") -> Any:
        answer = self.server.request("GET", address, headers=bearer(self.tokens[name]))
        assert answer.status == 200, answer.body
        return answer.json

    def answer(self, question: Any) -> None:
        body = msgspec.json.encode(inbox_answer(question, "left"))
        assert self.server.request("POST", "/inbox", body, bearer(self.tokens["eve"])).status == 200


@pytest.fixture(params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    bench = Bench(tmp_path, postgres_server.open_in if request.param == "postgres" else open_store)
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    access = AccessTokens(tmp_path)
    roles = {"ada": "user", "bob": "user", "eve": "approver"}
    tokens = {name: access.add(name, role, 1) for name, role in roles.items()}  # type: ignore[arg-type]
    bench.ledger()
    store = ("--store", os.environ[postgres_server.URL]) if request.param == "postgres" else ()
    with serving(tmp_path, "--workflows", str(bench.workflows), "--quiet", *store) as running:
        made = Served(bench, running, tokens)
        for number in range(WAITING):
            made.ask(number)
        yield made
    bench.close()


def titles(page: Any) -> list[str]:
    return [question["title"] for question in page["questions"]]


def test_every_question_is_on_one_page_oldest_first(served: Served) -> None:
    page = served.get("/inbox?limit=10")
    assert (len(page["questions"]), page["total"]) == (10, WAITING)
    listed = titles(page)
    while page["next"]:
        page = served.get(page["next"])
        assert page["total"] == WAITING
        listed += titles(page)
    assert listed == [f"Goal {number}" for number in range(WAITING)]


def test_a_caller_that_knows_no_pages_gets_the_first_with_the_address_of_the_next(served: Served) -> None:
    whole = served.get()
    assert (len(whole["questions"]), whole["total"], whole["next"]) == (WAITING, WAITING, None)
    assert "counting" not in whole
    assert whole["questions"][0]["owner"] == "ada"


def test_what_comes_and_goes_between_two_pages_moves_no_other(served: Served) -> None:
    first = served.get("/inbox?limit=10")
    served.answer(first["questions"][3])
    served.ask(99)
    second = served.get(first["next"])
    assert titles(second) == [f"Goal {number}" for number in range(10, 20)]
    assert second["total"] == WAITING
    served.answer(first["questions"][9])  # the one that the address of the second page was made from
    assert titles(served.get(first["next"])) == titles(second)
    last = served.get(second["next"])
    assert titles(last) == [*(f"Goal {number}" for number in range(20, WAITING)), "Goal 99"]
    assert last["next"] is None


def test_a_user_pages_through_the_own_questions_only(served: Served) -> None:
    served.ask(50, "bob")
    page = served.get("/inbox?limit=1", "bob")
    assert (titles(page), page["total"], page["next"]) == (["Goal 50"], 1, None)
    theirs = served.get("/inbox?limit=1", "ada")
    assert (theirs["total"], titles(served.get(theirs["next"], "bob"))) == (WAITING, ["Goal 50"])


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=-1", "limit=501", "limit=x", "limit=1e2", "limit=%D9%A1", "limit=", "cursor=x",
     "cursor=../..", "cursor=1.2", "cursor=%00", "cursor=" + "9" * 5000],
)  # fmt: skip
def test_what_is_no_page_is_refused_with_what_to_send(served: Served, query: str) -> None:
    answer = served.server.request("GET", f"/inbox?{query}", headers=bearer(served.tokens["eve"]))
    assert (answer.status, answer.json["error"]["code"]) == (400, "BAD_QUERY")
