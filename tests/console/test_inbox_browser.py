"""The inbox, artifacts and simulation in a real Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interlock.ledger.decisions.user_pin import set_pin
from interlock.store.sqlite.store import open_store
from support.browser_desk import BrowserDesk, desk
from support.chromium import PATIENCE_MS, browser
from support.cli_process import REPORT, to_the_gate

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow


def test_title_icon_and_notification_tell_that_a_question_waits(desk: BrowserDesk, browser: Browser) -> None:
    from playwright.sync_api import expect

    page = desk.open(browser)
    page.add_init_script(
        """window.told = [];
        window.Notification = class { constructor(title) { window.told.push(title); }
            static permission = 'default';
            static requestPermission() { this.permission = 'granted'; return Promise.resolve('granted'); } };
        Object.defineProperty(document, 'hidden', { get: () => true });"""
    )
    page.goto(f"{desk.server.url}/console/inbox")
    page.get_by_role("button", name="Notify me when a question waits").click()
    page.get_by_role("button", name="Notify me when a question waits").wait_for(state="detached")
    page.get_by_role("heading", name="Nothing waits for you").wait_for()
    to_the_gate(desk.worker)
    page.get_by_role("link", name="Accept the result").wait_for()
    expect(page).to_have_title("(1) Interlock", timeout=PATIENCE_MS)
    expect(page.locator("link[rel=icon]")).to_have_attribute(
        "href", "/console/icon-1.svg", timeout=PATIENCE_MS
    )
    assert page.evaluate("window.told") == ["Accept the result (round 1)"]
    assert b">1<" in desk.server.request("GET", "/console/icon-1.svg").body


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
    page.get_by_role("link", name="checked = ").click()  # what the question shows comes first
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
