"""One session in a real Chromium: the tree, the inspector and the actions, by mouse and by palette."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.browser_desk import BrowserDesk, desk
from support.chromium import browser
from support.cli_process import forked, to_the_gate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow


def run_command(page: Page, name: str) -> None:
    """Choose an action from the command palette."""
    page.keyboard.press("Control+k")
    page.get_by_label("Go to a page, workflow or session").fill(name)
    page.get_by_role("option", name=name).first.wait_for()
    page.keyboard.press("Enter")


def test_the_text_of_a_fork_makes_a_branch_and_the_tree_shows_both(
    desk: BrowserDesk, browser: Browser
) -> None:
    session = forked(desk.worker)
    page = desk.open(browser, f"sessions/{session}")
    tree = page.get_by_role("list", name="Nodes of this run")
    tree.get_by_text("fork", exact=True).wait_for()
    page.get_by_text("The first branch went on from here with").wait_for()
    page.get_by_role("button", name="Fork from node 0").click()
    text = page.get_by_role("textbox", name="Text for the chat").input_value()
    found = re.search(r"stateToken (st\.v1\.\S+)", text)
    assert found is not None
    page.keyboard.press("Escape")
    desk.worker.call("continue_workflow", stateToken=found[1])
    desk.worker.go_on("Another beginning.")
    page.get_by_text("2 forks").wait_for()
    tree.get_by_role("link", name="agree").last.click()
    page.get_by_role("region", name="Node").get_by_text("Waits for").wait_for()
    assert "at=" in page.url


def test_notes_modes_and_giving_up_are_reached_by_the_palette(desk: BrowserDesk, browser: Browser) -> None:
    session = to_the_gate(desk.worker)
    page = desk.open(browser, f"sessions/{session}")
    page.get_by_role("heading", name="Fix the flaky login test", level=1).wait_for()
    run_command(page, "Add a session note")
    page.get_by_role("textbox", name="Session note").fill("Ask **Bob** first.")
    page.get_by_role("button", name="Save note").click()
    page.get_by_role("region", name="Session notes").get_by_text("Bob").wait_for()
    page.get_by_label("Mode of unfinished branches").select_option("stop")
    page.get_by_role("button", name="Set mode").click()
    page.get_by_text("mode stop, set by console (user)").wait_for()
    run_command(page, "Tab: timeline")
    page.get_by_role("figure", name="Timeline of the run").get_by_text("waiting for a person").wait_for()
    run_command(page, "Abandon this run")
    dialog = page.get_by_role("dialog", name="Abandon this run")
    dialog.get_by_label("Why").fill("The ticket was withdrawn")
    dialog.get_by_role("button", name="Abandon the run").click()
    page.get_by_role("complementary", name="Runs and branches").get_by_text(
        "Abandoned", exact=True
    ).wait_for()
    run_command(page, "Inbox")
    page.get_by_role("heading", name="Nothing waits for you").wait_for()


def test_events_are_filtered_by_the_address(desk: BrowserDesk, browser: Browser) -> None:
    session = to_the_gate(desk.worker)
    page = desk.open(browser, f"sessions/{session}?tab=events")
    events = page.get_by_role("list", name="Events, newest first")
    events.get_by_text("session_created", exact=True).wait_for()
    page.get_by_label("Kind of event").select_option("step_completed")
    events.get_by_text("session_created", exact=True).wait_for(state="detached")
    assert "kind=step_completed" in page.url
    page.get_by_label("Text of the event").fill("make-change")
    page.wait_for_url("**q=make-change**")
    page.get_by_text("1 shown of").wait_for()
    assert events.get_by_role("listitem").count() == 1


def test_a_comparison_marks_what_only_one_side_has(desk: BrowserDesk, browser: Browser) -> None:
    session = forked(desk.worker)
    page = desk.open(browser, f"sessions/{session}")
    page.get_by_role("link", name="Compare the branches").click()
    page.get_by_role("region", name="left side").get_by_text("Waiting").wait_for()
    page.get_by_text("decisions differ").wait_for()
    left = page.get_by_label("Left branch").input_value()
    page.get_by_role("link", name="Swap the sides").click()
    page.wait_for_url(f"**rightNode={left}**")
    assert page.get_by_label("Right branch").input_value() == left


def test_a_session_that_was_exported_is_imported_from_its_file(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    session = to_the_gate(desk.worker)
    page = desk.open(browser, f"sessions/{session}")
    with page.expect_download() as bundle:
        page.get_by_role("link", name="Export bundle").click()
    file = tmp_path / "bundle.json"
    bundle.value.save_as(file)
    page.goto(f"{desk.server.url}/console/runs")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import").click()
    chooser.value.set_files(file)
    page.get_by_role("heading", name="Fix the flaky login test", level=1).wait_for()
    assert session not in page.url
    page.goto(f"{desk.server.url}/console/runs")
    page.get_by_role("rowheader", name="Fix the flaky login test").nth(1).wait_for()
