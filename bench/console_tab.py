"""Measure the console in a real Chromium: when its first page can be used, and what a long day costs its tab.

    python -m bench.console_tab [--sessions 10000] [--events 36000] [--rate 100]

A page can be used when its list is shown and the browser has nothing left to do. For the memory of the tab an
agent works beside the open page, at ten times ten events a second; the heap is measured after a collection.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.console import console, fill
from bench.seeded import NOW
from interlock.authoring.library import BUNDLED, Library
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import SessionFilter
from interlock.store.sqlite.store import open_store
from tools.console_seed import SeededAgent

TIMES = 5
PATIENCE_MS = 300_000
WARM_UP = 0.1
READY = """
window.usableAt = new Promise((tell) => {
    new MutationObserver((changes, observer) => {
        if (!document.querySelector(SHOWN)) return;
        observer.disconnect();
        requestIdleCallback(() => tell(performance.now()));
    }).observe(document, { childList: true, subtree: true });
});
"""
PAGES = {"runs": "table.runs tbody tr", "inbox": "article.question", "": "article.question"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=36_000)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.dir) as name, sync_playwright() as playwright:
        folder = Path(name)
        fill(folder, options.sessions)
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with console(folder) as entrance:
            for page, shown in PAGES.items():
                times = sorted(usable_after(browser, entrance, page, shown) for _ in range(TIMES))
                print(
                    f"/console/{page} with {options.sessions} sessions: usable after "
                    f"{median(times):.0f} ms (fastest {times[0]:.0f}, slowest {times[-1]:.0f})",
                    flush=True,
                )
            if options.events:
                measure_heap(browser, entrance, folder, options.events, options.rate)
        browser.close()


def usable_after(browser: Browser, entrance: str, path: str, shown: str) -> float:
    """Open a page in a new profile and return when it could be used, in ms after the navigation began."""
    page = entered(browser, entrance)
    page.add_init_script(READY.replace("SHOWN", repr(shown)))
    page.goto(f"{entrance.partition('/console')[0]}/console/{path}")
    usable_at: float = page.evaluate("window.usableAt")
    page.context.close()
    return usable_at


def entered(browser: Browser, entrance: str) -> Page:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(entrance)
    page.get_by_text("live", exact=True).wait_for()
    return page


def measure_heap(browser: Browser, entrance: str, folder: Path, events: int, rate: float) -> None:
    """Work at a rate while the list of runs is open; print the heap of its tab before and after."""
    page = entered(browser, entrance)
    page.goto(f"{entrance.partition('/console')[0]}/console/runs")
    page.locator("table.runs tbody tr").first.wait_for()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    store = open_store(folder)
    times = [NOW]  # after the sessions that are stored
    library = Library([BUNDLED], folder / "cache")
    agent = SeededAgent(Ledger(store, Keys(folder), library, Settings(), lambda: times[0]), times)
    made, first = 0, 0.0
    began = time.monotonic()
    while made < events:
        agent.start("Measure the tab")
        for _ in range(2):
            agent.ack("Done, and written down.")
        with store.reading() as reader:
            (newest,) = reader.sessions(SessionFilter("local", limit=1))
        made += newest.head_index + 1
        page.wait_for_timeout(max(0.0, made / rate - (time.monotonic() - began)) * 1000)
        if not first and made >= events * WARM_UP:
            first = heap_of(page, devtools)
    page.wait_for_timeout(2000)
    last = heap_of(page, devtools)
    store.close()
    spent = time.monotonic() - began
    print(
        f"heap of the tab: {first / 1e6:.1f} MB after {events * WARM_UP:.0f} events, {last / 1e6:.1f} MB "
        f"after {made} in {spent:.0f} s ({made / spent:.0f} a second): {(last / first - 1) * 100:+.1f} %",
        flush=True,
    )


def heap_of(page: Page, devtools: CDPSession) -> float:
    """Return the bytes that the page uses after everything that is not needed was collected."""
    for _ in range(3):
        devtools.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(300)
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize"))


if __name__ == "__main__":
    main()
