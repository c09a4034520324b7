"""The real command as a process, and a real server behind it, for tests of the command line."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from support import paths
from support.stdio_pipe import readable
from tools.console_seed import DECLARED

GOLDEN = paths.GOLDEN / "cli"
WRITE_GOLDEN = os.environ.get("INTERLOCK_GOLDEN") == "write"  # read now: no test sees INTERLOCK_ variables
PATIENCE = 180
REPORT = {
    "kind": "wr.verification_report",
    "verdict": "pass",
    "checks": [{"name": "the whole suite", "result": "pass"}],
    "summary": "Everything holds.",
}


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)


NO_CHECKOUT = gettempdir()  # a session records the git checkout that its client works in


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    return {**kept, "COLUMNS": "80", "TZ": "UTC", **more}


def interlock(data: Path, *arguments: str, given: str = "", **more: str) -> Ran:
    """Run `interlock …` on a data directory."""
    command = [sys.executable, "-m", "interlock", *arguments]
    env = environment(INTERLOCK_DATA_DIR=str(data), **more)
    return Ran(
        subprocess.run(
            command, input=given, capture_output=True, text=True, env=env, timeout=PATIENCE, check=False
        )
    )


class Agent:
    """An agent at the execution surface of the real stdio server."""

    def __init__(self, data: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "interlock", "mcp", "--data-dir", str(data), *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=NO_CHECKOUT,
            text=True,
        )
        self.said: dict[str, Any] = {}
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        self.ask("initialize", hello)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        result: dict[str, Any] = json.loads(self.process.stdout.readline())["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        body: dict[str, Any] = result["structuredContent"]
        self.said = body if "stateToken" in body else self.said
        return body

    def start(self, workflow: str, **context: Any) -> dict[str, Any]:
        return self.call("start_workflow", workflowId=workflow, context=context)

    def go_on(
        self, notes: str = "", *artifacts: dict[str, Any], at: Any = None, **context: Any
    ) -> dict[str, Any]:
        """Complete the pending step, with what those of the small task must set."""
        tokens = at or self.said
        output = {"notesMarkdown": notes, "artifacts": list(artifacts)}
        return self.call(
            "continue_workflow",
            stateToken=tokens["stateToken"],
            ackToken=tokens["ackToken"],
            context={**DECLARED.get(tokens["pending"]["stepId"], {}), **context},
            output=output,
        )

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self.process.wait(PATIENCE)


@contextmanager
def agent(data: Path, *arguments: str) -> Iterator[Agent]:
    opened = Agent(data, *arguments)
    try:
        yield opened
    finally:
        opened.close()


def decision(option: str, gate: str = "accept-result") -> dict[str, str]:
    return {"kind": "wr.decision", "checkpointId": gate, "optionId": option}


def to_the_gate(agent: Agent, goal: str = "Fix the flaky login test") -> str:
    """Drive the small task to its gate, with one blocked attempt; returns the session's id."""
    agent.start("wr.small_task", goal=goal)
    agent.go_on("One test is flaky; nothing else is touched.", acceptance=["The test passes 100 times"])
    agent.go_on("Waits for the form instead of sleeping.")
    agent.go_on("Ran it.")
    agent.go_on("The suite is green.", REPORT, checked="pass")
    session: str = agent.said["session"]["sessionId"]
    return session


def forked(agent: Agent, goal: str = "Fix the flaky login test") -> str:
    """A run with a checkpoint and a second branch, complete on the second."""
    session = to_the_gate(agent, goal)
    gate = agent.said
    agent.call(
        "checkpoint_workflow",
        stateToken=gate["stateToken"],
        checkpointToken=gate["checkpointToken"],
        output={"notesMarkdown": "Half way through the demo."},
    )
    agent.go_on("", decision("rework"), at=gate)
    agent.call("continue_workflow", stateToken=gate["stateToken"])
    agent.go_on("The demo convinced.", decision("accept"))
    agent.go_on("Handed over.")
    return session


def golden(name: str, text: str) -> None:
    """Compare with the kept screen; INTERLOCK_GOLDEN=write keeps the new one, to be looked at."""
    path = GOLDEN / f"{name}.txt"
    if WRITE_GOLDEN:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def settled(text: str, *sessions: str) -> str:
    """The text with everything replaced, at its width, that differs from run to run."""
    for session in sessions:
        text = text.replace(session.removeprefix("sess_")[:8], "x" * 8)
    text = re.sub(r"(sess|run)_[a-z2-7]{26}", lambda found: f"{found.group(1)}_{'x' * 26}", text)
    text = re.sub(r"\d{4}-\d\d-\d\d", "2026-01-02", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "03:04:05", text)
    return re.sub(r"(?<=[Pp]rocess )\d+", "4321", text)


def hear_interrupts() -> None:
    """Hear Ctrl-C in a child even where the test run itself was told to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _at_a_terminal() -> None:
    hear_interrupts()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """The command at a pseudo-terminal of 80 columns, as a person meets it."""

    def __init__(self, data: Path, *arguments: str, **more: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = environment(INTERLOCK_DATA_DIR=str(data), TERM="xterm", **more)
        env.pop("COLUMNS")
        command = [sys.executable, "-m", "interlock", *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            cwd=NO_CHECKOUT,
            start_new_session=True,
            preexec_fn=_at_a_terminal,  # noqa: PLW1509 (no threads here)
        )
        os.close(slave)
        self.seen = ""

    def until(self, words: str) -> str:
        """Read until the words appear; what was read before them is returned."""
        while words not in self.seen:
            chunk = self._chunk()
            assert chunk, f"ended without {words!r}: {self.seen}"
            self.seen += chunk
        before, _, self.seen = self.seen.partition(words)
        return before

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C, as often as it takes: a key pressed just before a prompt reads is lost."""
        for _ in range(PATIENCE // 20):
            if self.process.poll() is not None:
                return self.end()
            self.type("\x03")
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)  # long: a second Ctrl-C would end the command while it says goodbye
        self.process.kill()
        raise AssertionError(f"the command ignores Ctrl-C: {self.seen}")

    def end(self) -> tuple[int, str]:
        """Read to the end; the exit code and what was left to read."""
        while chunk := self._chunk():
            self.seen += chunk
        os.close(self.master)
        return self.process.wait(PATIENCE), self.seen

    def _chunk(self) -> str:
        ready = readable(self.master, PATIENCE)
        if not ready:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the command is silent: {self.seen}")
        try:
            return os.read(self.master, 65536).decode()
        except OSError:  # the other end of a pseudo-terminal that is gone reads as an error on Linux
            return ""
