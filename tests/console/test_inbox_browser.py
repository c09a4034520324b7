"""The inbox, artifacts and simulation in a real Chromium."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interlock.ledger.decisions.user_pin import set_pin
from interlock.store.sqlite.store import open_store
from support.browser_desk import BrowserDesk, desk
from support.chromium import PATIENCE_MS, browser
from support.cli_process import REPORT, Terminal, interlock, to_the_gate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow


def test_a_question_that_changed_says_so_keeps_the_note_and_is_asked_again(
    desk: BrowserDesk, browser: Browser
) -> None:
    from playwright.sync_api import Error

    to_the_gate(desk.worker)
    page = desk.open(browser, "inbox")
    page.get_by_role("article", name="Accept the result").wait_for()
    page.get_by_label("A note for the agent").fill("Only if it is fast.")

    another = {"shown": "sha256:another", "message": "Checked: partial. Is the task done?"}

    def changed(route: Any) -> None:
        with suppress(Error):  # the page has given up this request for a newer one
            shown = route.fetch().json()
            for asked in shown["questions"]:
                asked["question"].update(another)
            route.fulfill(json=shown)

    page.route("**/console/inbox.json", changed)
    desk.worker.start("wr.small_task", goal="Something else moves")
    page.get_by_text("This question has changed since you first saw it").wait_for()
    page.get_by_role("button", name="Accept").click()
    page.get_by_text("has changed since it was shown to you; nothing was recorded").first.wait_for()
    another.clear()
    desk.worker.start("wr.small_task", goal="It moves again")
    page.get_by_text(
        "Checked: «pass». Tests: not run by the server, only claimed by the agent. Is the task done?"
    ).wait_for()
    assert page.get_by_label("A note for the agent").input_value() == "Only if it is fast."
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("heading", name="Nothing waits for you").wait_for()


def asked_about(page: Page, goal: str) -> Locator:
    return page.get_by_role("article").filter(has_text=goal)


def decided_in(data: Path, session: str) -> list[str]:
    ran = interlock(data, "log", session, "--kind", "decision_recorded", "--json")
    return [event["event"]["option"] for event in ran.json["events"]]


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_questions_that_arrive_move_neither_the_selection_nor_what_is_decided(
    desk: BrowserDesk, browser: Browser, tmp_path: Path, by: str
) -> None:
    from playwright.sync_api import expect

    sessions = {goal: to_the_gate(desk.worker, goal) for goal in ("The first", "The second")}
    page = desk.open(browser, "inbox")
    current = page.locator("article.current")
    expect(current).to_contain_text("The second", timeout=PATIENCE_MS)
    place = asked_about(page, "The second").get_by_role("button", name="Accept").bounding_box()
    assert place is not None
    if by == "key":
        page.keyboard.press("1")
        page.get_by_text("press Enter to decide").wait_for()
    for goal in ("The third", "The fourth"):
        sessions[goal] = to_the_gate(desk.worker, goal)
    asked_about(page, "The fourth").wait_for()
    expect(current).to_contain_text("The second")
    if by == "key":
        page.keyboard.press("Enter")
    else:
        page.mouse.dblclick(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    asked_about(page, "The second").wait_for(state="detached")
    expect(current).to_contain_text("The first", timeout=PATIENCE_MS)
    page.wait_for_timeout(1000)
    assert {goal: decided_in(tmp_path, session) for goal, session in sessions.items()} == {
        "The first": [],
        "The second": ["accept"],
        "The third": [],
        "The fourth": [],
    }


def test_an_address_leads_to_its_question_and_to_no_other(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    first, second = (to_the_gate(desk.worker, goal) for goal in ("The first", "The second"))
    waiting = {
        asked["sessionId"]: asked for asked in interlock(tmp_path, "inbox", "--json").json["questions"]
    }
    shown = waiting[first]["shown"]
    page = desk.open(browser, f"inbox?session={first}&shown={shown}")
    expect(page.locator("article.current")).to_contain_text("The first", timeout=PATIENCE_MS)
    assert decide_at_terminal(tmp_path, first) == 0
    late = desk.open(browser, f"inbox?session={first}&shown={shown}")
    late.get_by_text("The question of this address no longer waits").wait_for()
    asked_about(late, "The second").wait_for()
    assert late.locator("article.current").count() == 0
    assert decided_in(tmp_path, second) == []


def decide_at_terminal(data: Path, session: str) -> int:
    terminal = Terminal(data, "decide", session, "accept")
    terminal.until("[Y/n]")
    terminal.type("\n")
    return terminal.end()[0]


def test_a_question_that_is_answered_elsewhere_leaves_nothing_selected(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    first, second = (to_the_gate(desk.worker, goal) for goal in ("The first", "The second"))
    page = desk.open(browser, "inbox")
    expect(page.locator("article.current")).to_contain_text("The second", timeout=PATIENCE_MS)
    page.keyboard.press("1")
    terminal = Terminal(tmp_path, "decide", second, "rework")
    terminal.type("\n")
    assert terminal.end()[0] == 0
    page.get_by_text("no longer waits: it was answered elsewhere").wait_for()
    expect(page.locator("article.current")).to_have_count(0)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.wait_for_timeout(1000)
    assert (decided_in(tmp_path, first), decided_in(tmp_path, second)) == ([], ["rework"])
    page.keyboard.press("j")
    expect(page.locator("article.current")).to_contain_text("The first")


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
    page.get_by_role("article", name="Accept the result").wait_for()
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
    page.get_by_text("That is not your PIN.").wait_for()
    page.get_by_label("PIN", exact=True).fill("4711")
    page.get_by_role("button", name="Accept").click()
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
        for asked in shown["questions"]:
            asked["question"].update(default="accept", defaultAt=1_900_000_000_000)
        route.fulfill(json=shown)

    page.route("**/console/inbox.json", with_default)
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
