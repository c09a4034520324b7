"""The inbox as a person triages it, in a real Chromium: only what was on the screen is ever answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import time_ns
from typing import TYPE_CHECKING, Any

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from support.browser_desk import BrowserDesk, desk
from support.chromium import PATIENCE_MS, browser
from support.cli_process import Terminal, interlock, to_the_gate
from support.http_server import serving
from support.many_sessions import WAITING, multiply_sessions
from support.node_clients import installed_from
from support.paths import ROOT
from tools.console_seed import SeededAgent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

__all__ = ["browser", "desk"]

pytestmark = pytest.mark.slow

WIDTHS = (390, 900, 1280)


@contextmanager
def agents(data: Path) -> Iterator[SeededAgent]:
    """Agents of this process, quicker than servers, on the same store."""
    store = open_store(data)
    times = [time_ns() // 1_000_000 - 10**7]
    ledger = Ledger(store, Keys(data), Library([BUNDLED]), Settings(), lambda: times[0])
    try:
        yield SeededAgent(ledger, times)
    finally:
        store.close()


def decided_in(data: Path, session: str) -> list[str]:
    ran = interlock(data, "log", session, "--kind", "decision_recorded", "--json")
    return [event["event"]["option"] for event in ran.json["events"]]


def all_decided(data: Path) -> dict[str, list[str]]:
    """Return the recorded answers of every session that has some, by its title."""
    store = open_store(data)
    with store.reading() as reader:
        titles = {name: row.title for name in reader.session_ids("", 1000) if (row := reader.session(name))}
        keyed = {name: reader.keyed_commits(name, "decision:", 10) for name in titles}
    store.close()
    return {titles[name]: decided_in(data, name) for name, commits in keyed.items() if commits}


def question(page: Page) -> Locator:
    return page.get_by_role("article")


def line(page: Page, goal: str) -> Locator:
    return page.locator(".lines a").filter(has_text=goal)


def send_now(page: Page) -> None:
    page.get_by_role("button", name="Send now").first.click()


def answer(page: Page, by: str, option: str, number: int) -> None:
    if by == "key":
        page.keyboard.press(str(number))
        page.get_by_text("press Enter to answer").wait_for()
        page.keyboard.press("Enter")
    else:
        page.get_by_role("button", name=option).click()


def test_the_oldest_is_open_first_and_an_answer_is_held_sent_and_followed_by_the_next(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    first = to_the_gate(desk.worker, "The first")
    to_the_gate(desk.worker, "The second")
    page = desk.open(browser, "inbox")
    expect(question(page)).to_contain_text("The first", timeout=PATIENCE_MS)
    expect(question(page)).to_contain_text("written by the agent")
    page.keyboard.press("n")
    page.keyboard.type("Only if it is fast.")
    page.keyboard.press("Escape")
    answer(page, "key", "Accept", 1)
    expect(question(page)).to_contain_text("The second")
    page.get_by_role("log").get_by_text("not sent yet").first.wait_for()
    assert decided_in(tmp_path, first) == []
    page.get_by_text("Recorded: accept").wait_for()
    assert decided_in(tmp_path, first) == ["accept"]
    expect(line(page, "The first")).to_have_count(0)
    ran = interlock(tmp_path, "log", first, "--kind", "decision_recorded", "--json")
    assert ran.json["events"][0]["event"]["note"] == "Only if it is fast."


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_an_answer_can_be_taken_back_for_a_few_seconds(
    desk: BrowserDesk, browser: Browser, tmp_path: Path, by: str
) -> None:
    from playwright.sync_api import expect

    first, second = (to_the_gate(desk.worker, goal) for goal in ("The first", "The second"))
    page = desk.open(browser, "inbox")
    expect(question(page)).to_contain_text("The first", timeout=PATIENCE_MS)
    answer(page, by, "Accept", 1)
    expect(question(page)).to_contain_text("The second")
    if by == "key":
        page.keyboard.press("u")
    else:
        page.get_by_role("button", name="Undo", exact=True).first.click()
    expect(question(page)).to_contain_text("The first")
    page.wait_for_timeout(6000)
    assert (decided_in(tmp_path, first), decided_in(tmp_path, second)) == ([], [])
    answer(page, by, "Rework", 2)
    send_now(page)
    page.get_by_text("Recorded: rework").wait_for()
    assert (decided_in(tmp_path, first), decided_in(tmp_path, second)) == (["rework"], [])


def test_leaving_the_page_sends_what_is_held(desk: BrowserDesk, browser: Browser, tmp_path: Path) -> None:
    first = to_the_gate(desk.worker, "The first")
    page = desk.open(browser, "inbox")
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("log").get_by_text("not sent yet").first.wait_for()
    page.goto("about:blank")
    while not (decided := decided_in(tmp_path, first)):
        page.wait_for_timeout(100)
    assert decided == ["accept"]


def test_120_questions_arrive_while_two_browsers_answer_and_no_other_is_ever_answered(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    with agents(tmp_path) as agent:
        for number in range(8):
            agent.to_gate(f"Before {number}")
        keyed, clicked = desk.open(browser, "inbox"), desk.open(browser, "inbox?order=newest")
        expect(question(keyed)).to_contain_text("Before 0", timeout=PATIENCE_MS)
        expect(question(clicked)).to_contain_text("Before 7", timeout=PATIENCE_MS)

        def arrive() -> None:
            for number in range(120):
                agent.to_gate(f"Arrived {number}")

        arriving = Thread(target=arrive)
        arriving.start()
        meant: dict[str, list[str]] = {}
        for number in range(3):
            expect(question(keyed)).to_contain_text(f"Before {number}")
            answer(keyed, "key", "Accept", 1)
            meant[f"Before {number}"] = ["accept"]
            expect(question(clicked)).to_contain_text(f"Before {7 - number}")
            rework = clicked.get_by_role("button", name="Rework")
            expect(rework).to_be_enabled()  # options that have just appeared take no click
            place = rework.bounding_box()
            assert place is not None
            clicked.mouse.dblclick(place["x"] + 20, place["y"] + 20)
            meant[f"Before {7 - number}"] = ["rework"]
        arriving.join()
        keyed.get_by_role("button", name="120 new questions").wait_for()
        expect(keyed.locator(".lines a")).not_to_have_count(0)
        assert line(keyed, "Arrived").count() == 0, "what arrives is announced, not inserted"
        expect(question(keyed)).to_contain_text("Before 3")
        for page in (keyed, clicked):
            page.wait_for_timeout(6000)
        expect(keyed.get_by_text("122 questions wait")).to_be_visible(timeout=PATIENCE_MS)
        assert all_decided(tmp_path) == meant
        keyed.get_by_role("button", name="120 new questions").click()
        expect(line(keyed, "Arrived 0")).to_have_count(1, timeout=PATIENCE_MS)
        expect(question(keyed)).to_contain_text("Before 3")


def test_two_browsers_with_the_same_question_record_one_answer(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    first = to_the_gate(desk.worker, "The first")
    one, other = desk.open(browser, "inbox"), desk.open(browser, "inbox")
    for page, option in ((one, "Accept"), (other, "Rework")):
        page.get_by_role("button", name=option).click()
    send_now(one)
    one.get_by_text("Recorded: accept").wait_for()
    other.get_by_text("Not recorded: ").wait_for()
    assert decided_in(tmp_path, first) == ["accept"]


def test_a_question_that_changed_says_so_and_an_answer_to_the_old_one_is_refused(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    session = to_the_gate(desk.worker)
    page = desk.open(browser)
    another = {"shown": "sha256:another", "message": "Checked: partial. Is the task done?"}

    def changed(route: Any) -> None:
        shown = route.fetch().json()
        shown["question"].update(another)
        shown["line"]["question"].update({"shown": shown["question"]["shown"]})
        route.fulfill(json=shown)

    page.route("**/console/inbox/*.json*", changed)
    page.goto(f"{desk.server.url}/console/inbox")
    page.get_by_text("Checked: partial.").wait_for()
    page.get_by_role("button", name="Accept").click()
    send_now(page)
    page.get_by_text("has changed since it was shown to you; nothing was recorded").wait_for()
    another.clear()
    page.get_by_role("button", name="Show the question").click()
    desk.worker.start("wr.small_task", goal="Something else moves")
    page.reload()
    page.get_by_text("Checked: «pass».").wait_for()
    assert decided_in(tmp_path, session) == []


def test_a_question_that_is_answered_elsewhere_leaves_nothing_to_answer_by_mistake(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    first, second = (to_the_gate(desk.worker, goal) for goal in ("The first", "The second"))
    page = desk.open(browser, "inbox")
    expect(question(page)).to_contain_text("The first", timeout=PATIENCE_MS)
    page.keyboard.press("1")
    terminal = Terminal(tmp_path, "decide", first, "rework")
    terminal.type("\n\n")
    assert terminal.end()[0] == 0
    page.get_by_text("This question no longer waits").wait_for()
    expect(question(page)).to_have_count(0)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.wait_for_timeout(6000)
    assert (decided_in(tmp_path, first), decided_in(tmp_path, second)) == (["rework"], [])
    page.keyboard.press("j")
    expect(question(page)).to_contain_text("The second")


def test_an_address_leads_to_its_question_and_to_no_other(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    first, second = (to_the_gate(desk.worker, goal) for goal in ("The first", "The second"))
    asked = interlock(tmp_path, "inbox", "--json").json["questions"]
    shown = {each["sessionId"]: each["shown"] for each in asked}[second]
    page = desk.open(browser, f"inbox?session={second}&shown={shown}")
    expect(question(page)).to_contain_text("The second", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Accept").click()
    send_now(page)
    page.get_by_text("Recorded: accept").wait_for()
    late = desk.open(browser, f"inbox?session={second}&shown={shown}")
    late.get_by_text("The question of this address no longer waits").wait_for()
    expect(line(late, "The first")).to_have_count(1)
    assert question(late).count() == 0
    assert decided_in(tmp_path, first) == []


def test_equal_questions_are_grouped_and_answered_together(
    desk: BrowserDesk, browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    with agents(tmp_path) as agent:
        for number in range(5):
            agent.to_gate(f"Equal {number}")
    other = to_the_gate(desk.worker, "Another report")
    page = desk.open(browser, "inbox")
    page.get_by_label("Group equal").check()
    expect(page.locator(".lines a")).to_have_count(2, timeout=PATIENCE_MS)
    page.get_by_role("link", name="Answer them together").click()
    expect(page.locator(".lines a")).to_have_count(5, timeout=PATIENCE_MS)
    page.get_by_label("Give the same answer to all equal questions").check()
    page.get_by_role("button", name="Accept · all 5").click()
    send_now(page)
    page.get_by_text("Recorded for 5 questions").wait_for()
    assert all_decided(tmp_path) == {f"Equal {number}": ["accept"] for number in range(5)}
    assert decided_in(tmp_path, other) == []


def test_10_000_questions_are_counted_and_all_can_be_reached(browser: Browser, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    with agents(tmp_path) as agent:
        for number in range(2):
            agent.to_gate(f"Task {number}")
        agent.rest()
    multiply_sessions(tmp_path, 4999, WAITING)
    with serving(tmp_path) as server:
        page = BrowserDesk(server, None).open(browser, "inbox")
        expect(page.get_by_text("10,000 questions wait", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        page.get_by_text("1 to 100 of 10,000").wait_for()
        page.goto(f"{server.url}/console/inbox?offset=9900")
        page.get_by_text("9,901 to 10,000 of 10,000").wait_for()
        page.get_by_role("button", name="Accept").click()
        send_now(page)
        expect(page.get_by_text("9,999 questions wait", exact=True)).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_inbox_fits_every_screen_and_axe_finds_nothing(
    desk: BrowserDesk, browser: Browser, theme: str
) -> None:
    axe = (installed_from(ROOT / "console") / "axe-core" / "axe.min.js").read_text()
    for goal in ("The first", "The second", "no_space_" * 25):
        to_the_gate(desk.worker, goal)
    for width in WIDTHS:
        page = desk.open(browser, "inbox", width=width, theme=theme)
        if width < 860:
            line(page, "The first").click()
        page.get_by_role("button", name="Accept").wait_for()
        page.wait_for_timeout(800)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        options = page.get_by_role("button", name="Accept").bounding_box()
        report = page.get_by_role("heading", name="The agent's report").bounding_box()
        assert options is not None
        assert report is not None
        assert options["y"] < report["y"], "the options come before the report"
        page.get_by_role("button", name="Accept").click()
        page.get_by_role("log").get_by_text("not sent yet").first.wait_for()
        page.evaluate(axe)
        found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
        assert found == [], width
        page.get_by_role("button", name="Undo", exact=True).first.click()
        page.context.close()
