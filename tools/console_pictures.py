"""Take pictures of every view of the console from a seeded store, in both themes, some at two widths."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright

from tools.console_seed import seed

DOCS = Path(__file__).resolve().parents[1] / "docs" / "images" / "console"
WIDTHS = {"wide": (1280, 800), "narrow": (390, 844)}
NARROW = ("inbox", "question", "checks", "runs", "story", "artifacts", "simulation")
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def views(page: Page, address: str) -> dict[str, str]:
    """Return the address of each view."""
    runs = page.request.get(f"{address}/console/runs.json").json()["lines"]
    ref = {line["title"]: line["ref"] for line in runs}
    forked, blocked = ref["Shorten the cold start"], ref["Show the branch in the status line"]
    checked = next(line["ref"] for line in runs if line["workflowId"] == "team.release")
    page.goto(f"{address}/console/sessions/{forked}")
    compare = page.get_by_role("link", name="Compare the branches").get_attribute("href") or ""
    return {
        "inbox": "inbox",
        "question": "inbox?order=newest",
        "checks": "workflows/team.release/checks",
        "checked": f"sessions/{checked}",
        "runs": "runs",
        "story": f"sessions/{forked}",
        "blocked": f"sessions/{blocked}",
        "artifacts": f"sessions/{forked}?tab=artifacts",
        "timeline": f"sessions/{forked}?tab=timeline",
        "graph": f"sessions/{forked}?tab=graph",
        "events": f"sessions/{forked}?tab=events",
        "compare": compare.removeprefix("/console/"),
        "workflows": "workflows",
        "workflow": "workflows/wr.small_task",
        "simulation": "workflows/wr.small_task/simulate?answers=1.1.1",
        "builtins": "builtins",
        "search": "search?q=login",
        "health": "health",
        "settings": "settings",
        "empty": "runs?q=nothingmatchesthis",
    }


def take(target: Path, only: str) -> None:
    """Start a server on a seeded store and photograph it."""
    with tempfile.TemporaryDirectory(prefix="interlock-pictures-") as folder:
        data = Path(folder)
        seed(data, time.time_ns() // 1_000_000)
        command = [sys.executable, "-m", "interlock", "console", "--no-open", "--data-dir", str(data)]
        command += ["--project", str(data / "shop")]
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": folder}
        ) as server:
            try:
                photograph(entrance_of(server), target, only)
            finally:
                server.terminate()
                server.wait(20)


def entrance_of(server: subprocess.Popen[str]) -> str:
    """Read the address with the secret from what the server prints."""
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://\S+/console/enter\S+", line):
            return found[0]
    raise SystemExit("the server did not start")


def photograph(entrance: str, target: Path, only: str) -> None:
    """Take every picture that is wanted."""
    address = entrance.partition("/console")[0]
    target.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for theme in THEMES:
            for width, (across, down) in WIDTHS.items():
                context = browser.new_context(
                    viewport={"width": across, "height": down}, color_scheme=theme, reduced_motion="reduce"
                )
                page = context.new_page()
                page.goto(entrance)
                page.get_by_role("heading", level=1).wait_for()
                for name, path in views(page, address).items():
                    if (only and only != name) or (width == "narrow" and name not in NARROW):
                        continue
                    page.goto(f"{address}/console/{path}")
                    page.get_by_role("heading", level=1).or_(page.get_by_role("alert")).first.wait_for()
                    page.get_by_role("status", name="Loading").wait_for(state="detached")
                    page.get_by_text("live", exact=True).wait_for()
                    page.locator("fieldset:disabled").wait_for(state="detached")  # a question settles first
                    page.screenshot(path=target / f"{name}-{width}-{theme}.png")
                context.close()
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=DOCS)
    parser.add_argument("--only", default="", help="one view")
    arguments = parser.parse_args()
    take(arguments.target, arguments.only)
