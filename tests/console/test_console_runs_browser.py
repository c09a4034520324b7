"""The list of runs in a real Chromium: filters in the address, saved views, deleting with a preview."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from support.browser_desk import BrowserDesk, desk
from support.chromium import browser, opened
from support.cli_process import to_the_gate
from support.http_server import serving
from support.many_sessions import multiply_sessions
from tools.console_seed import seed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def row(page: Page, title: str) -> None:
    """Wait for a session in the list."""
    page.get_by_role("rowheader", name=title).first.wait_for()


def gone(page: Page, title: str) -> None:
    page.get_by_role("rowheader", name=title).wait_for(state="detached")


def test_filters_are_in_the_address_and_can_be_kept_as_a_view(desk: BrowserDesk, browser: Browser) -> None:
    to_the_gate(desk.worker, "Waits for an answer")
    desk.worker.start("wr.small_task", goal="Only begun")
    page = desk.open(browser, "runs")
    row(page, "Only begun")
    page.get_by_role("navigation", name="Status").get_by_role("link", name="Waiting for you").click()
    gone(page, "Only begun")
    page.get_by_label("Filter by text").fill("answer")
    page.wait_for_url("**q=answer**")
    page.get_by_label("Time").select_option("Active in the last 7 days")
    page.wait_for_url("**active=7d**")
    assert query_of(page) == {"status": ["waiting"], "q": ["answer"], "active": ["7d"]}
    row(page, "Waits for an answer")
    page.get_by_role("button", name="Save this view").click()
    page.get_by_label("Name of the view").fill("To answer")
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Saved views").get_by_role("link", name="To answer").wait_for()

    other = desk.open(browser, "runs")  # another profile: views belong to the person, not to the browser
    row(other, "Only begun")
    other.get_by_role("link", name="To answer").click()
    gone(other, "Only begun")
    assert query_of(other) == query_of(page)
    other.go_back()
    row(other, "Only begun")
    other.get_by_role("button", name="Remove view To answer").click()
    other.get_by_role("link", name="To answer").wait_for(state="detached")


def test_deleting_shows_what_stays_before_anything_goes(desk: BrowserDesk, browser: Browser) -> None:
    to_the_gate(desk.worker, "Waits for an answer")
    desk.worker.start("wr.small_task", goal="Kept for good")
    desk.worker.start("wr.small_task", goal="Not needed")
    page = desk.open(browser, "runs")
    page.get_by_label("Select Kept for good").check()
    toolbar = page.get_by_role("toolbar", name="Selected sessions")
    toolbar.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("status").get_by_text("1 session kept whatever the age.").wait_for()
    page.get_by_label("Select all on this page").check()
    toolbar.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete sessions")
    stays = dialog.get_by_role("listitem")
    stays.filter(has_text="Kept for good").get_by_text("marked to be kept").wait_for()
    stays.filter(has_text="Waits for an answer").get_by_text("waits for you at a gate").wait_for()
    dialog.get_by_role("button", name="Cancel").click()
    row(page, "Not needed")
    toolbar.get_by_role("button", name="Delete…").click()
    dialog.get_by_role("button", name="Delete 1 session").click()
    gone(page, "Not needed")
    row(page, "Kept for good")
    row(page, "Waits for an answer")


def test_two_selected_sessions_are_compared_by_keyboard_alone(desk: BrowserDesk, browser: Browser) -> None:
    desk.worker.start("wr.small_task", goal="One way")
    desk.worker.go_on("Went left.")
    desk.worker.start("wr.small_task", goal="Another way")
    desk.worker.go_on("Went right.")
    page = desk.open(browser, "runs")
    row(page, "Another way")
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("x")
    page.get_by_role("toolbar", name="Selected sessions").get_by_text("2 selected").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_label("Go to a page, workflow or session").fill("compare the two")
    page.get_by_role("option", name="Compare the two").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Compare", level=1).wait_for()
    page.get_by_text("notes differ").first.wait_for()


def test_ten_thousand_sessions_scroll_and_filter(tmp_path: Path, browser: Browser) -> None:
    seed(tmp_path, time.time_ns() // 1_000_000)
    multiply_sessions(tmp_path, 1500)
    with serving(tmp_path) as server:
        page = opened(browser, server.entrance)
        page.goto(f"{server.url}/console/runs")
        row(page, "Make the login test reliable")
        assert page.get_by_role("rowheader").count() == 50
        for first in (51, 101):
            page.get_by_role("link", name="Older").click()
            page.get_by_text(f"{first} to {first + 49}").wait_for()
        page.goto(f"{server.url}/console/runs?offset=9950")
        page.get_by_text("9951 to 10000").wait_for()
        page.get_by_role("navigation", name="Status").get_by_role("link", name="Complete with gaps").click()
        page.get_by_text("1 to 50").wait_for()
        statuses = page.locator("tbody td[data-label=Status]").all_inner_texts()
        assert set(statuses) == {"Complete with gaps"}
        page.get_by_label("Filter by text").fill("nightly export")
        page.wait_for_url("**q=nightly**")
        page.get_by_role("link", name="Older").wait_for(state="detached")
        row(page, "Speed up the nightly export")
        assert page.get_by_role("rowheader").count() == 1
