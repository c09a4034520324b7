"""The inbox, artifacts and simulation in a real Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interlock.ledger.decisions.user_pin import set_pin
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.store.sqlite.store import open_store
from support.browser_desk import BrowserDesk, desk
from support.chromium import PATIENCE_MS, browser
from support.cli_process import REPORT, to_the_gate
from support.harness import Agent, Bench, ExecutionSurface, gate, workflow
from support.http_server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow


NOTIFIED = """window.told = []; window.asked = 0;
window.Notification = class {
    constructor(title) { window.told.push(title); window.notification = this; }
    close() {}
    static permission = 'default';
    static async requestPermission() { window.asked += 1; this.permission = 'granted'; return 'granted'; }
};
Object.defineProperty(document, 'hidden', { get: () => true });"""


def test_title_icon_and_notification_tell_that_a_question_waits(desk: BrowserDesk, browser: Browser) -> None:
    from playwright.sync_api import expect

    page = desk.open(browser)
    page.add_init_script(NOTIFIED)
    page.goto(f"{desk.server.url}/console/inbox")
    page.get_by_role("heading", name="Nothing waits for you").wait_for()
    assert page.evaluate("window.asked") == 0  # only by the button
    page.get_by_role("button", name="Notify me when a question waits").click()
    page.get_by_role("button", name="Notify me no longer").wait_for()
    page.get_by_role("link", name="Runs").click()
    to_the_gate(desk.worker)
    expect(page).to_have_title("(1) Interlock", timeout=PATIENCE_MS)
    expect(page.locator("link[rel=icon]")).to_have_attribute(
        "href", "/console/icon-1.svg", timeout=PATIENCE_MS
    )
    assert page.evaluate("window.told") == ["Accept the result (round 1)"]
    assert b">1<" in desk.server.request("GET", "/console/icon-1.svg").body
    page.evaluate("window.notification.onclick()")
    page.get_by_role("article", name="Accept the result").wait_for()
    page.get_by_role("button", name="Notify me no longer").click()
    page.reload()
    page.get_by_role("button", name="Notify me when a question waits").wait_for()


def test_only_those_who_may_decide_are_notified_and_the_list_shows_who_is_missing(
    browser: Browser, tmp_path: Path
) -> None:
    bench, access = Bench(tmp_path), AccessTokens(tmp_path)
    tokens = {name: access.add(name, "approver", 1) for name in ("ada", "ben", "dan")}
    bench.write(workflow(gate("ship", "yes", "no", decide={"by": ["ada", "ben"], "atLeast": 2})))
    ledger = bench.ledger(owner="eve")
    with serving(tmp_path, "--workflows", str(bench.workflows)) as server:
        pages = {}
        for name in ("ada", "dan"):
            pages[name] = page = browser.new_context().new_page()
            page.add_init_script(NOTIFIED)
            page.goto(f"{server.url}/console/inbox")
            page.get_by_label("Token").fill(tokens[name])
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("button", name="Notify me when a question waits").click()
            page.get_by_role("heading", name="Nothing waits for you").wait_for()
        Agent(ExecutionSurface(ledger)).start("test.flow", goal="Release")
        for page in pages.values():
            page.locator(".lines").get_by_text("missing: ada, ben").wait_for()
        assert pages["ada"].evaluate("window.told") == ["Ship"]
        assert pages["dan"].evaluate("window.told") == []
        pages["dan"].get_by_text("you are not among them").wait_for()
        pages["ada"].get_by_label("Waits for").select_option("me (1)")
        pages["ada"].get_by_role("button", name="Yes").click()
        pages["ada"].get_by_role("button", name="Send now").click()
        pages["ada"].get_by_role("heading", name="No question like this").wait_for()
        pages["dan"].locator(".lines").get_by_text("1 of 2 answered").wait_for()
        pages["dan"].locator(".lines").get_by_text("missing: ben").wait_for()
    bench.close()


def test_deciding_asks_for_the_pin_where_one_is_set(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    store = open_store(tmp_path)
    set_pin(store, "local", "4711")
    store.close()
    to_the_gate(desk.worker)
    page = desk.open(browser, "inbox")
    page.get_by_role("button", name="Accept").click()
    page.get_by_text("Deciding needs your PIN.").wait_for()
    page.get_by_label("PIN", exact=True).fill("1")
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("button", name="Send now").click()
    page.get_by_text("Not recorded: That is not your PIN.").wait_for()
    page.get_by_role("button", name="Show the question").click()
    page.get_by_label("PIN", exact=True).fill("4711")
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("button", name="Send now").click()
    page.get_by_role("heading", name="Nothing waits for you").wait_for()


def test_a_workflow_is_simulated_by_clicking_and_by_keys(desk: BrowserDesk, browser: Browser) -> None:
    page = desk.open(browser, "workflows/wr.small_task")
    page.get_by_role("link", name="Simulate").click()
    for step in ("Agree on the task", "Make the change", "Check the result"):
        page.get_by_role("region", name="What is next").get_by_role("heading", name=step).wait_for()
        page.get_by_role("link", name="Done").click()
    page.get_by_role("link", name="Rework").click()
    page.get_by_role("region", name="What is next").get_by_role("heading", name="Make the change").wait_for()
    page.keyboard.press("Backspace")
    page.get_by_role("link", name="Call it off").wait_for()
    page.keyboard.press("3")
    page.get_by_role("heading", name="Undo the change").wait_for()
    page.get_by_role("link", name="Done").click()
    page.get_by_text("The run has ended").wait_for()


def test_artifacts_have_tables_with_revisions_and_copy_buttons(desk: BrowserDesk, browser: Browser) -> None:
    worker = desk.worker
    worker.start("wr.small_task", goal="Review it")
    comment = {
        "title": "Fix it",
        "body": "Please wait for the cookie.",
        "location": {"file": "a.py", "line": 7},
    }
    worker.go_on("Agreed.", {"kind": "mr_review.findings", "findings": [], "mrComments": [comment]})
    for summary in ("first try", "second try"):
        files = [{"path": "src/a.py", "summary": summary}]
        worker.go_on("Changed.", {"kind": "mr_review.changed_files", "changedFiles": files}, REPORT)
    page = desk.open(browser)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    session = worker.said["session"]["sessionId"]
    page.goto(f"{desk.server.url}/console/sessions/{session}?tab=artifacts")
    row = page.get_by_role("region", name="Changed files").get_by_role("row", name="src/a.py")
    row.get_by_text("second try").wait_for()
    assert "check-result" in row.inner_text()
    page.get_by_role("button", name="Copy comment").click()
    page.get_by_text("Copied", exact=True).wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "Please wait for the cookie."


def test_a_question_with_a_default_says_what_holds_without_an_answer_and_from_when(
    desk: BrowserDesk, browser: Browser
) -> None:
    to_the_gate(desk.worker)
    page = desk.open(browser)

    def with_default(route: Any) -> None:
        shown = route.fetch().json()
        shown["question"].update(default="accept", defaultAt=1_900_000_000_000)
        route.fulfill(json=shown)

    page.route("**/console/inbox/*.json*", with_default)
    page.goto(f"{desk.server.url}/console/inbox")
    page.get_by_text(re.compile(r"Without an answer: Accept, from .*2030.* on\.")).wait_for()


def test_a_title_without_a_space_stays_inside_the_page(desk: BrowserDesk, browser: Browser) -> None:
    to_the_gate(desk.worker, goal="no_space_" * 25)
    page = desk.open(browser, "inbox")
    for width in (1440, 320):
        page.set_viewport_size({"width": width, "height": 800})
        page.get_by_role("article", name="Accept the result").wait_for()
        root = page.locator("html")
        assert root.evaluate("html => html.scrollWidth <= html.clientWidth"), width


def test_a_keep_mark_of_one_tab_is_seen_in_another(desk: BrowserDesk, browser: Browser) -> None:
    desk.worker.start("wr.small_task", goal="Shown twice")
    page = desk.open(browser, "runs")
    other = page.context.new_page()
    other.goto(f"{desk.server.url}/console/runs")
    other.get_by_role("link", name="Shown twice").first.wait_for()
    page.get_by_label("Select Shown twice").check()
    page.get_by_role("button", name="Keep", exact=True).click()
    other.get_by_role("row", name="kept").wait_for()
