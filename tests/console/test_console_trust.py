"""The page on which a person lets the server run checks: what it shows, and who may do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.console.console import Console
from interlock.core.principals import LOCAL, Principal
from interlock.ledger.decisions.user_pin import set_pin
from support.harness import Bench

EVE, ADA = Principal("eve"), Principal("ada", "approver")
PATH = "workflows/team.work/checks"


def flow(run: str) -> dict[str, Any]:
    checks = [{"id": "tests", "run": run, "when": {"var": "depth", "equals": "deep"}}, "lint"]
    build = {"id": "build", "title": "Build", "prompt": "Build it.", "checks": checks}
    return {
        "id": "team.work",
        "name": "Work",
        "version": "1.0.0",
        "variables": [{"name": "depth", "type": "string", "description": "How deep", "defaultValue": "deep"}],
        "steps": [build],
    }


class TrustDesk:
    """A server with a folder for the checks of eve, whose agent works on a workflow with a check."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        bench.write(flow("pytest -q"))
        self.ledger = bench.ledger(check_folders={"eve": folder})
        self.console = Console(self.ledger, "1.0.0")

    def shows(self, principal: Principal, **query: str) -> Any:
        page = msgspec.json.decode(self.console.page(principal, PATH, query).body)
        assert "error" not in page, page
        return page

    def trust(self, principal: Principal, page: Any, **more: Any) -> tuple[int, Any]:
        line = page["checks"][0]
        request = {"workflow": page["workflow"], "folder": page["folder"], "owner": page["owner"]}
        request |= {"check": line["check"], "definition": line["definition"], **more}
        answer = self.console.act(principal, "trust", msgspec.json.encode(request))
        return answer.status, msgspec.json.decode(answer.body)


@pytest.fixture
def desk(bench: Bench, tmp_path: Path) -> TrustDesk:
    return TrustDesk(bench, tmp_path)


def test_an_approver_reads_and_trusts_what_the_server_would_run_for_somebody_else(desk: TrustDesk) -> None:
    page = desk.shows(ADA)
    assert (page["owner"], page["owners"], page["canDecide"]) == ("eve", ["eve"], True)
    (line,) = page["checks"]
    assert (line["run"], line["seconds"], line["state"]) == ("pytest -q", 600, "untrusted")
    assert line["condition"] == 'depth == "deep"'
    assert page["claimed"] == ["lint"]
    assert desk.trust(ADA, page) == (200, {"message": "tests is trusted.", "sessionId": ""})
    (line,) = desk.shows(EVE)["checks"]
    assert (line["state"], line["trusted"]["by"], line["trusted"]["channel"]) == ("trusted", "ada", "console")


def test_what_has_changed_is_shown_beside_what_was_trusted_and_taken_back(desk: TrustDesk) -> None:
    before = desk.shows(ADA)
    desk.trust(ADA, before)
    desk.bench.write(flow("pytest -q -x"))
    changed = desk.shows(ADA)
    (line,) = changed["checks"]
    assert (line["state"], line["run"], line["trusted"]["run"]) == ("changed", "pytest -q -x", "pytest -q")
    assert desk.trust(ADA, before)[1]["error"]["code"] == "CHECK_CHANGED"
    assert desk.trust(ADA, changed, revoke=True)[1]["message"] == "tests is no longer trusted."
    assert desk.shows(ADA)["checks"][0]["trusted"] is None


def test_a_token_that_an_agent_may_hold_trusts_nothing(desk: TrustDesk) -> None:
    page = desk.shows(EVE, owner="ada")
    assert (page["owner"], page["owners"], page["canDecide"]) == ("eve", [], False)
    status, refused = desk.trust(EVE, page)
    assert (status, refused["error"]["code"]) == (403, "FORBIDDEN")
    assert desk.shows(EVE)["checks"][0]["state"] == "untrusted"


def test_trust_asks_for_the_pin_of_whoever_gives_it(desk: TrustDesk) -> None:
    set_pin(desk.ledger.store, "ada", "4711")
    page = desk.shows(ADA)
    assert page["needsPin"]
    assert desk.trust(ADA, page)[1]["error"]["code"] == "PIN_REQUIRED"
    assert desk.trust(ADA, page, pin="1")[1]["error"]["code"] == "PIN_WRONG"
    assert desk.trust(ADA, page, pin="4711")[0] == 200


def test_a_session_shows_which_of_its_checks_are_not_run(desk: TrustDesk) -> None:
    session = desk.bench.agent(owner="eve").start("team.work")["session"]["sessionId"]
    desk.bench.write(flow("make test"))

    def untrusted() -> Any:
        shown = msgspec.json.decode(desk.console.page(EVE, f"sessions/{session}", {}).body)
        return shown["untrusted"]

    assert untrusted() == ["tests"]
    page = desk.shows(ADA, session=session)
    assert page["checks"][0]["run"] == "pytest -q"  # what the session is pinned to
    assert desk.trust(ADA, page, sessionId=session)[0] == 200
    assert untrusted() == []


def test_without_a_folder_the_page_says_how_to_give_one(bench: Bench) -> None:
    bench.write(flow("pytest -q"))
    answer = Console(bench.ledger(), "1.0.0").page(LOCAL, PATH, {})
    refused = msgspec.json.decode(answer.body)["error"]
    assert (answer.status, refused["message"]) == (404, "There is no folder to run checks in.")
    assert "--check-folders" in refused["nextAction"]
