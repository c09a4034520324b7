"""Checks in a real Chromium: a person reads what the server would run, lets it, and sees what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.cli.compose import ledger_of
from interlock.cli.config import resolve
from interlock.console.pages.trust_pages import workflow_to_trust
from interlock.ledger.decisions.trust import give_trust, trustable
from interlock.ledger.decisions.user_pin import set_pin
from interlock.store.sqlite.store import open_store
from support.browser_desk import BrowserDesk
from support.chromium import browser
from support.cli_process import agent, interlock
from support.http_server import serving
from support.node_clients import installed_from
from support.paths import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]

pytestmark = pytest.mark.slow

FLOW = """
id: team.work
name: Work
version: 1.0.0
steps:
  - {id: build, title: Build, prompt: Build it., checks: [{id: tests, run: cat result.txt}, lint]}
  - {id: review, type: gate, message: "Tests: {{checks.tests}}", options: [{id: ok, label: Accept}, {id: no}]}
  - {id: close, title: Close, prompt: Close it.}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[BrowserDesk]:
    """A console and an agent in a project whose workflow has a check that fails until a file is there."""
    project, data = tmp_path / "project", tmp_path / "data"
    (project / ".interlock" / "workflows").mkdir(parents=True)
    (project / ".interlock" / "workflows" / "work.yaml").write_text(FLOW)
    data.mkdir()
    where = ("--project", str(project))
    with serving(data, *where) as server, agent(data, *where) as worker:
        yield BrowserDesk(server, worker)


def look_at(page: Page) -> None:
    """Let axe look, at three widths."""
    for width in (390, 900, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        across = page.evaluate("document.documentElement.scrollWidth")
        assert across <= width, f"{page.url} is {across} px wide"
    page.evaluate((installed_from(ROOT / "console") / "axe-core" / "axe.min.js").read_text())
    found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
    assert found == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_from_a_blocked_session_a_person_reads_what_would_run_and_trusts_it(
    desk: BrowserDesk, browser: Browser, tmp_path: Path, theme: str
) -> None:
    store = open_store(tmp_path / "data")
    set_pin(store, "local", "4711")
    store.close()
    (tmp_path / "project" / "result.txt").write_text("3 passed\n")
    desk.worker.start("team.work")
    desk.worker.go_on("Built.")
    page = desk.open(browser, f"sessions/{desk.worker.said['session']['sessionId']}", theme=theme)
    page.get_by_role("link", name="See what would run").click()
    card = page.get_by_role("article", name="Check tests")
    card.get_by_text("Not trusted").wait_for()
    card.get_by_text("cat result.txt").wait_for()
    card.get_by_text("600 s").wait_for()
    page.get_by_text(str(tmp_path / "project")).wait_for()
    page.get_by_text("only claimed by the agent: lint").wait_for()
    look_at(page)
    card.get_by_role("button", name="Let the server run tests").click()
    page.get_by_text("Deciding needs your PIN.").wait_for()
    page.get_by_label("PIN").fill("4711")
    card.get_by_role("button", name="Let the server run tests").click()
    card.get_by_text("Trusted", exact=True).wait_for()
    assert desk.worker.go_on("Built.")["pending"]["stepId"] == "review"
    page.go_back()
    page.get_by_role("heading", level=1, name="Work").wait_for()
    page.get_by_role("link", name="See what would run").wait_for(state="detached")


def test_trust_is_taken_back_from_the_page_of_the_workflow(desk: BrowserDesk, browser: Browser) -> None:
    page = desk.open(browser, "workflows/team.work")
    page.get_by_role("link", name="Checks that the server runs").click()
    page.get_by_role("button", name="Let the server run tests").click()
    page.get_by_role("status").get_by_text("tests is trusted.").wait_for()
    page.get_by_role("button", name="Take trust in tests back").click()
    page.get_by_role("status").get_by_text("tests is no longer trusted.").wait_for()
    desk.worker.start("team.work")
    assert "the user has not trusted it" in str(desk.worker.go_on("Built."))


def trust_all(folder: Path) -> None:
    project = folder / "project"
    ledger = ledger_of(resolve({"data-dir": str(folder / "data"), "project": str(project)}))
    for check in trustable(ledger, workflow_to_trust(ledger, "team.work", ""), project):
        give_trust(ledger, check, project, "cli")
    ledger.store.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_question_and_its_session_show_what_ran_and_what_is_only_claimed(
    desk: BrowserDesk, browser: Browser, tmp_path: Path, theme: str
) -> None:
    trust_all(tmp_path)
    desk.worker.start("team.work")
    assert "INVALID_REQUIRED_OUTPUT" in str(desk.worker.go_on("Built; all tests pass."))
    (tmp_path / "project" / "result.txt").write_text("3 passed, \x1b[31mnone failed\x1b[0m\n")
    desk.worker.go_on("Built again.")
    terminal = interlock(tmp_path / "data", "inbox").out
    assert "check tests, run by the server: passed (cat result.txt, exit 0)" in terminal
    assert "check lint: claimed by the agent, not run by the server" in terminal
    page = desk.open(browser, "inbox", theme=theme)
    checks = page.get_by_role("region", name="Checks before this question")
    checks.get_by_text("run by the server: cat result.txt, exit 0 in").wait_for()
    checks.get_by_text("claimed by the agent: the server did not run it").wait_for()
    checks.get_by_text("on files").wait_for()
    checks.get_by_text("End of its output").click()
    checks.get_by_text("3 passed, none failed").wait_for()
    look_at(page)
    page.goto(f"{desk.server.url}/console/sessions/{desk.worker.said['session']['sessionId']}")
    blocked = page.locator(".blocked-attempt")
    blocked.get_by_text("run by the server: cat result.txt, exit 1 in").wait_for()
    blocked.get_by_text("No such file or directory").wait_for()  # and told once
    page.get_by_text("run by the server: cat result.txt, exit 0 in").wait_for()
    look_at(page)
    page.get_by_role("link", name="Timeline").click()
    page.get_by_role("link", name="tests: not passed, exit 1").wait_for()
    page.get_by_role("link", name="tests: passed, exit 0").wait_for()
    look_at(page)
