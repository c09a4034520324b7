"""A newcomer's first hour: the README's lines, a workflow from a skill, a client, an answer on a phone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.chromium import browser, opened
from support.documented import ROOT, blocks
from support.installation import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser"]

pytestmark = pytest.mark.slow

README = ROOT / "README.md"
PHONE = 390
SKILL = """\
---
name: release-notes
description: Writes release notes for a tag.
---
# Release notes

1. Collect the merged changes since the last tag.
2. Draft the notes. Show them to the user and wait for approval.
3. Publish the notes.
"""


class Newcomer:
    """A person with an empty HOME, a new virtual environment, and the README."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self._programs = folder / "venv" / "bin"
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self._programs}{os.pathsep}/usr/local/bin{os.pathsep}/usr/bin{os.pathsep}/bin"
        network = {
            name: value for name, value in os.environ.items() if name.lower().endswith(("_proxy", "_cert"))
        }
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        lock = {"PIP_CONSTRAINT": str(ROOT / "requirements-dev.lock"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return {**network, **pip, **lock, "HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8"}

    def does(self, line: str, folder: Path | None = None) -> str:
        """Type a line in a shell; it must succeed."""
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=folder or self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode != 0 and line.startswith("pip "):
            pytest.skip(f"pip cannot install here: {done.stderr[-1000:]}")
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def console(self, line: str) -> Iterator[str]:
        """Start the console; yields the address that it prints."""
        with subprocess.Popen(
            ["sh", "-c", f"exec {line}"],
            cwd=self.home,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stderr is not None
            try:
                addresses = (re.search(r"http://\S+/enter\S+", line) for line in server.stderr)
                yield next(found[0] for found in addresses if found)
            finally:
                server.terminate()


def printed(beginning: str) -> str:
    """Return the line of the README that begins so, without its comment."""
    lines = [line for block in blocks(README) if block.language == "sh" for line in block.body.splitlines()]
    (line,) = [line.partition("#")[0].strip() for line in lines if line.startswith(beginning)]
    return line


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path)


class ClaudeCode:
    """The official client, started as the entry in Claude Code's file says, and its agent."""

    def __init__(self, newcomer: Newcomer) -> None:
        self._newcomer = newcomer
        self._stack = ExitStack()
        self.said: dict[str, Any] = {}

    def __enter__(self) -> ClaudeCode:
        import mcp
        from anyio.from_thread import start_blocking_portal

        entry = json.loads((self._newcomer.home / ".claude.json").read_text())["mcpServers"]["interlock"]
        server = mcp.StdioServerParameters(
            command=entry["command"],
            args=entry["args"],
            env=self._newcomer.environment,
            cwd=self._newcomer.home,
        )
        self._portal = self._stack.enter_context(
            start_blocking_portal()
        )  # the browser has this thread's loop
        self._client = self._stack.enter_context(self._portal.wrap_async_context_manager(mcp.Client(server)))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def calls(self, tool: str, **arguments: Any) -> str:
        """Call a tool; returns the answer as text."""
        result = self._portal.call(self._client.call_tool, tool, arguments)
        body: dict[str, Any] = result.structured_content
        self.said = body if "stateToken" in body else self.said
        return json.dumps(body)

    def continues(self, notes: str = "") -> str:
        tokens = {name: self.said[name] for name in ("stateToken", "ackToken")}
        return self.calls(
            "continue_workflow", **tokens, **({"output": {"notesMarkdown": notes}} if notes else {})
        )


def test_the_first_hour(newcomer: Newcomer, browser: Browser) -> None:
    newcomer.does(printed("pip install"), ROOT)
    newcomer.does(printed("interlock install"))
    (newcomer.home / "SKILL.md").write_text(SKILL)
    newcomer.does("interlock convert SKILL.md --id team.notes --to flows")
    newcomer.does("interlock validate --strict flows && interlock simulate flows/notes.yaml")
    assert "changed" in newcomer.does(f"{printed('interlock install')} --workflows flows --decisions user")
    with ClaudeCode(newcomer) as agent:
        assert "team.notes" in agent.calls("list_workflows")
        assert "Collect the merged changes" in agent.calls("start_workflow", workflowId="team.notes")
        assert "Draft the notes" in agent.continues("Collected 12 changes.")
        assert "wait for approval" in agent.continues("Drafted the notes.")
        assert "USER_ONLY_DEPENDENCY" in agent.continues("The user would surely approve.")
        answer_on_a_phone(newcomer, browser)
        assert "Publish the notes" in agent.continues()
        agent.continues("Published.")
        assert agent.said["isComplete"]
    assert newcomer.does("interlock sessions").count("complete") == 1


def answer_on_a_phone(newcomer: Newcomer, browser: Browser) -> None:
    """Answer the only question in the console, on a screen as wide as a phone's."""
    with newcomer.console(printed("interlock console")) as address:
        page = opened(browser, address, PHONE)
        page.locator(".lines a").click()
        page.get_by_text("wait for approval").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE, "wider than the phone"
        page.get_by_role("button", name=re.compile("^Approve")).first.click()
        page.get_by_role("button", name="Ask for changes").wait_for(state="detached")
        page.get_by_role("button", name="Send now").click()
        page.get_by_text("Recorded: ").wait_for()
        page.context.close()
