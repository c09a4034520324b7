"""The page while its connection is cut: it says so, goes on afterwards, and misses nothing."""

from __future__ import annotations

from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import AskedQuestion, answer_question
from support.browser_desk import BrowserDesk, desk
from support.chromium import PATIENCE_MS, browser, opened
from support.cli_process import to_the_gate
from support.fault_proxy import fault_proxy
from support.harness import Bench, gate, steps, workflow
from support.http_server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow


def test_a_gate_that_opened_while_the_connection_was_cut_is_answered_after_it(
    desk: BrowserDesk, browser: Browser
) -> None:
    server, worker = desk.server, desk.worker
    with fault_proxy(server.host, server.port) as connection:
        entrance = server.entrance.replace(f":{server.port}/", f":{connection.port}/")
        page = opened(browser, entrance)
        page.goto(f"http://127.0.0.1:{connection.port}/console/inbox")
        page.get_by_role("heading", name="Nothing waits for you").wait_for()
        page.get_by_text("live", exact=True).wait_for()
        connection.cut()
        page.get_by_text("offline", exact=True).wait_for()
        to_the_gate(worker)
        connection.mend()
        page.get_by_text("live", exact=True).wait_for()
        page.get_by_role("article", name="Accept the result").wait_for()
        page.keyboard.press("1")
        page.get_by_text("press Enter to answer").wait_for()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Send now").click()
        page.get_by_role("heading", name="Nothing waits for you").wait_for()
        assert worker.go_on()["pending"]["stepId"] == "close-task"


def test_after_another_launch_of_the_server_the_page_asks_to_be_opened_again(
    browser: Browser, tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        page = opened(browser, server.entrance)
        page.goto(f"{server.url}/console/inbox")
        page.get_by_role("heading", name="Nothing waits for you").wait_for()
    page.get_by_text("offline", exact=True).wait_for()
    with serving(tmp_path, "--port", str(server.port)) as again:
        page.get_by_role("heading", name="Open the console again").wait_for()
        page.goto(again.entrance)
        page.get_by_text("live", exact=True).wait_for()


def test_a_question_arrives_and_goes_by_itself_behind_many_sessions_of_a_clock_that_is_ahead(
    browser: Browser, tmp_path: Path
) -> None:
    """Nothing but the stream tells of it: the page does not look again while the stream is open."""
    from playwright.sync_api import expect

    bench = Bench(tmp_path)
    bench.write(workflow(gate("ship", "yes", "no"), *steps("last")))
    ahead, agent = bench.agent(), bench.agent(terms=Terms(decisions="user"))
    present = bench.clock.now = time_ns() // 1_000_000
    bench.clock.now += 24 * 3_600_000
    for _ in range(60):
        ahead.start("wr.small_task", goal="Ahead of its time")
    bench.clock.now = present
    with serving(tmp_path, "--workflows", str(bench.workflows)) as server:
        page = opened(browser, server.entrance)
        page.goto(f"{server.url}/console/inbox")
        page.get_by_role("heading", name="Nothing waits for you").wait_for()
        page.get_by_text("live", exact=True).wait_for()
        started = agent.start("test.flow")
        expect(page).to_have_title("(1) Interlock", timeout=PATIENCE_MS)
        page.get_by_role("article", name="Ship").wait_for()
        asked = page.request.get(f"{server.url}/console/inbox.json").json()["questions"][0]["question"]
        session = started["session"]["sessionId"]
        assert asked["sessionId"] == session
        question = AskedQuestion(session, asked["node"], asked["id"], asked["shown"])
        answer_question(agent.ledger, question, "yes")
        page.get_by_role("heading", name="Nothing waits for you").wait_for()
        expect(page).to_have_title("Interlock", timeout=PATIENCE_MS)
    bench.close()
