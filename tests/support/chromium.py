"""A real Chromium for the console: the one that is installed, without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from support.node_clients import absent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 180_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one module."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        absent("no Chromium is installed, so the console's page cannot be looked at")
    if find_spec("playwright") is None:
        absent("playwright is not installed; run make")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)  # five seconds are not enough on a busy machine

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser of the module; the pages of a test end with it, or they ask its dead server."""
    yield chromium
    for context in chromium.contexts:
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")
        context.close()


def opened(browser: Browser, entrance: str, width: int = 1280, theme: str = "light") -> Page:
    """Open the console as its user does, in a profile of its own."""
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=theme, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(entrance)
    page.get_by_text("live", exact=True).wait_for()
    return page
