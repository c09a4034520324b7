"""The console's page in a real Chromium, while an agent drives runs over MCP."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.browser_desk import BrowserDesk, desk
from support.chromium import PATIENCE_MS, browser, opened
from support.cli_process import forked, to_the_gate
from support.http_server import serving
from support.node_clients import installed_from
from support.paths import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow

REPORT = {
    "kind": "wr.verification_report",
    "verdict": "pass",
    "checks": [{"name": "suite", "result": "pass", "evidence": "green"}],
    "summary": "Everything holds.",
}
HOSTILE = """<script>window.hacked = 1</script> <img src=x onerror="window.hacked = 1">
[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>)
<svg onload="window.hacked=1"></svg> \u202eevil\u202c <iframe srcdoc="<script>parent.hacked=1</script>">
**bold** `code`
"""
HOSTILE_FINDING = dict.fromkeys(("severity", "title", "location", "rationale", HOSTILE), HOSTILE)


def test_a_gate_appears_without_reload_and_is_answered_by_keyboard(
    desk: BrowserDesk, browser: Browser
) -> None:
    from playwright.sync_api import expect

    page = desk.open(browser, "inbox")
    page.get_by_role("heading", name="Nothing waits for you").wait_for()
    to_the_gate(desk.worker)
    page.get_by_role("article", name="Accept the result").wait_for()
    expect(page).to_have_title("(1) Interlock", timeout=PATIENCE_MS)
    page.keyboard.press("1")
    page.get_by_text("press Enter to answer").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Nothing waits for you").wait_for()
    assert desk.worker.go_on()["pending"]["stepId"] == "close-task"
    expect(page).to_have_title("Interlock", timeout=PATIENCE_MS)


def test_a_cut_stream_is_shown_and_the_page_goes_on_by_looking_again(
    desk: BrowserDesk, browser: Browser
) -> None:
    page = desk.open(browser)
    page.route("**/console/live*", lambda route: route.abort())
    page.goto(f"{desk.server.url}/console/inbox")
    page.get_by_text("reconnecting", exact=True).wait_for()
    page.get_by_role("heading", name="Nothing waits for you").wait_for()
    to_the_gate(desk.worker)
    page.get_by_role("article", name="Accept the result").wait_for()
    page.unroute("**/console/live*")
    page.get_by_text("live", exact=True).wait_for()


def test_of_two_browsers_that_answer_at_once_one_wins(desk: BrowserDesk, browser: Browser) -> None:
    to_the_gate(desk.worker)
    pages = [desk.open(browser, "inbox") for _ in range(2)]
    for page in pages:
        page.get_by_role("article", name="Accept the result").wait_for()
    answer = """async (option) => {
        const csrf = (await (await fetch('/console/csrf.json')).json()).csrf;
        const { questions: [{ question, owner }] } = await (await fetch('/console/inbox.json')).json();
        const { sessionId, runId, node, id, key, shown } = question;
        window.answer = () => { window.answered = fetch('/console/do/decide', {
            method: 'POST', headers: { 'X-Interlock-Csrf': csrf },
            body: JSON.stringify({ sessionId, runId, node, id, key, shown, owner, option }),
        }).then((response) => response.status); };
    }"""
    for page, option in zip(pages, ("accept", "rework"), strict=True):
        page.evaluate(answer, option)
    for page in pages:
        page.evaluate("window.answer()")
    assert sorted(page.evaluate("window.answered") for page in pages) == [200, 409]
    for page in pages:
        page.get_by_role("heading", name="Nothing waits for you").wait_for()


def test_one_click_counts_once_and_the_note_reaches_the_agent(desk: BrowserDesk, browser: Browser) -> None:
    to_the_gate(desk.worker)
    page = desk.open(browser, "inbox")
    page.get_by_label("A note for the agent").fill("Also on a slow machine, please.")
    page.get_by_role("button", name="Rework").dblclick()
    page.get_by_role("heading", name="Nothing waits for you").wait_for()
    said = desk.worker.go_on()
    assert said["pending"]["stepId"] == "make-change"
    assert "Also on a slow machine" in str(said)


def test_hostile_notes_titles_and_artifacts_do_nothing(desk: BrowserDesk, browser: Browser) -> None:
    worker = desk.worker
    worker.start("wr.small_task", goal=f"<img src=x onerror='window.hacked=1'>{'long ' * 200}")
    worker.go_on(HOSTILE, {"kind": "<script>window.hacked=1</script>", "html": HOSTILE})
    worker.go_on(HOSTILE, {"kind": "mr_review.findings", "findings": [HOSTILE_FINDING]})
    worker.go_on(HOSTILE, REPORT, {"kind": "huge", "text": "<script>" + "x" * 200_000})
    dialogs: list[str] = []
    page = desk.open(browser)
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    ref = worker.said["session"]["sessionId"].removeprefix("sess_")[:8]
    for path in ("inbox", "runs", "search?q=bold", *(f"sessions/{ref}?tab={tab}" for tab in TABS)):
        page.goto(f"{desk.server.url}/console/{path}")
        page.get_by_role("heading", level=1).wait_for()
        page.get_by_role("status", name="Loading").wait_for(state="detached")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main iframe, main img, main [onerror], main [onload]").count() == 0
        assert page.locator("a[href^='javascript:'], a[href^='data:']").count() == 0
    assert dialogs == []


TABS = ("story", "artifacts", "timeline", "graph", "events", "raw")


def test_a_page_of_another_origin_reads_and_decides_nothing(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    to_the_gate(desk.worker)
    page = desk.open(browser)
    foreign = _foreign_site()
    try:
        other = page.context.new_page()
        other.goto(f"http://127.0.0.1:{foreign.server_port}/")
        outcome = other.evaluate(
            """async (url) => {
                const tried = [
                    fetch(url + '/console/inbox.json', { credentials: 'include' }).then((r) => r.text()),
                    fetch(url + '/console/do/decide', {
                        method: 'POST', credentials: 'include', body: '{}' }).then((r) => r.text()),
                ];
                return (await Promise.allSettled(tried)).map((each) => each.status);
            }""",
            desk.server.url,
        )
        assert outcome == ["rejected", "rejected"]
    finally:
        foreign.shutdown()
        foreign.server_close()
    page.goto(f"{desk.server.url}/console/inbox")
    page.get_by_role("article", name="Accept the result").wait_for()


def _foreign_site() -> Any:
    """Serve an empty page on another port: the same site for cookies, but another origin."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Blank(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Other</title>")

        def log_message(self, format: str, *args: Any) -> None: ...

    site = ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    return site


def test_a_rewound_chat_shows_a_branch_and_what_differs(desk: BrowserDesk, browser: Browser) -> None:
    session = forked(desk.worker)
    page = desk.open(browser, f"sessions/{session}")
    page.get_by_role("complementary", name="Runs and branches").get_by_text("fork", exact=True).wait_for()
    page.get_by_role("link", name="Compare the branches").click()
    page.get_by_role("heading", name="Compare", level=1).wait_for()
    page.get_by_text("notes differ").first.wait_for()


def test_everything_is_reached_by_keyboard(desk: BrowserDesk, browser: Browser) -> None:
    to_the_gate(desk.worker)
    page = desk.open(browser, "inbox")
    page.get_by_role("article", name="Accept the result").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    go_by_keys(page, "gw", "Workflows")
    page.keyboard.press("Control+k")
    page.get_by_label("Go to a page, workflow or session").fill("flaky login")
    page.get_by_role("option", name="Fix the flaky login test").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Fix the flaky login test", level=1).wait_for()
    assert "/console/sessions/" in page.url


def go_by_keys(page: Page, keys: str, heading: str) -> None:
    """Press keys until a page is shown: a key pressed while a dialog still gives the focus back is lost."""
    from playwright.sync_api import TimeoutError as NotShown  # late: a developer may not have it

    shown = page.get_by_role("heading", name=heading, level=1)
    for _ in range(9):
        for key in keys:
            page.keyboard.press(key)
        with suppress(NotShown):
            shown.wait_for(timeout=20_000)
            return
    raise AssertionError(f"{keys} does not lead to {heading}: {page.url}")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_view_fits_and_axe_finds_nothing_serious(
    desk: BrowserDesk, browser: Browser, width: int, theme: str
) -> None:
    session = forked(desk.worker)
    to_the_gate(desk.worker, "Another task")
    axe = (installed_from(ROOT / "console") / "axe-core" / "axe.min.js").read_text()
    page = desk.open(browser, width=width, theme=theme)
    tabs = [f"sessions/{session}?tab={tab}" for tab in TABS]
    tabs.append(f"sessions/{session}?at=1&all=1")
    views = [
        "inbox",
        "runs",
        "runs?q=nothing",
        "workflows",
        "workflows/wr.small_task",
        "workflows/wr.small_task/simulate?answers=1.1.1",
        "builtins",
        "search?q=login",
        "health",
        "settings",
    ]
    for path in (*views, "compare", f"compare?left={session}&right={session}", *tabs):
        page.goto(f"{desk.server.url}/console/{path}")
        page.get_by_role("heading", level=1).wait_for()
        page.get_by_role("status", name="Loading").wait_for(state="detached")
        page.get_by_text("live", exact=True).wait_for()
        across = page.evaluate("document.documentElement.scrollWidth")
        assert across <= width, f"{path} is {across} px wide"
        page.evaluate(axe)
        found = page.evaluate("axe.run().then((result) => result.violations)")
        serious = [
            f"{each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0]['failureSummary'][:300]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], path


def test_the_console_asks_again_after_a_restart(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path) as server:
        page = opened(browser, server.entrance)
        page.context.clear_cookies()
        page.goto(f"{server.url}/console/runs")
        page.get_by_role("heading", name="Open the console again").wait_for(timeout=PATIENCE_MS)
