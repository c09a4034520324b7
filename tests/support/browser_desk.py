"""A real server, an agent on the same store, and a real browser for its user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.chromium import opened
from support.cli_process import Agent, agent
from support.http_server import HttpServer, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class BrowserDesk:
    """A server, an agent on the same store, and the address that its user opens."""

    def __init__(self, server: HttpServer, worker: Agent) -> None:
        self.server = server
        self.worker = worker

    def open(self, browser: Browser, path: str = "", **look: Any) -> Page:
        page = opened(browser, self.server.entrance, **look)
        if path:
            page.goto(f"{self.server.url}/console/{path}")
        return page


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[BrowserDesk]:
    with serving(tmp_path) as server, agent(tmp_path) as worker:
        yield BrowserDesk(server, worker)
