"""One command of a check: without a shell, bounded in time and output, ended with all it has started."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Literal
from unicodedata import category

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.checks import supervisor
from interlock.checks.words import arguments_of
from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.quoting import UNSEEN

PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV",
    "JAVA_HOME", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOCACHE", "NVM_DIR",
)  # fmt: skip
OUTPUT_END = 4_000  # characters that are kept
LOOK_SECONDS = 0.1
ENDED_OUTSIDE = "it was ended from outside, and how is not known"
GRACE_SECONDS = 8.0  # for the supervisor to end what the command has started

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


class NotStarted(Exception):
    """Why a command was not started."""


class Ended(Struct, frozen=True):
    """How a command ended. `has_text` says whether its output had the text that is expected."""

    how: Literal["exited", "timed_out", "cancelled", "not_started"]
    exit: int | None
    duration_ms: int
    output: str
    output_digest: str
    has_text: bool
    reason: str = ""


class SupervisorReport(Struct, frozen=True):
    """What the supervisor says of a command."""

    exit: int | None = None
    error: str = ""


def folder_within(project: Path, folder: str) -> Path:
    """Return the folder of a check, with all links resolved; it is in the project, or nothing is started."""
    root = Path(os.path.realpath(project))
    resolved = Path(os.path.realpath(root / folder))
    if resolved != root and root not in resolved.parents:
        raise NotStarted(f"its folder '{folder}' is not in the project folder")
    if not resolved.is_dir():
        raise NotStarted(f"its folder '{folder}' does not exist")
    return resolved


def environment() -> dict[str, str]:
    """Return what a command may know of the server's environment, with absolute paths only."""
    known = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    paths = [path for path in known.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(path)]
    return {**known, "PATH": os.pathsep.join(paths)}


def run_command(check: CommandCheck, project: Path, is_cancelled: Callable[[], bool]) -> Ended:
    """Run the command of a check and wait for its end, its time limit or its cancellation."""
    if sys.platform == "win32":
        raise NotStarted("this server runs no checks on Windows")
    resolved = folder_within(project, check.folder)
    opened = os.open(resolved, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        # A link that was put there meanwhile leads elsewhere; the command is started in what was opened.
        if not os.path.samestat(os.fstat(opened), os.stat(folder_within(project, check.folder))):
            raise NotStarted(f"its folder '{check.folder}' was replaced")
        if not (argv := arguments_of(check.run)) or "\0" in check.run:
            raise NotStarted("its command cannot be read")
        return _supervised(check, argv, opened, is_cancelled)
    finally:
        os.close(opened)


def _supervised(
    check: CommandCheck, argv: tuple[str, ...], folder: int, is_cancelled: Callable[[], bool]
) -> Ended:
    began, output = time.monotonic(), CommandOutput(check.expected.stdout)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[folder],
        env=environment(),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    how: Literal["exited", "timed_out", "cancelled"] = "exited"
    said = b""
    try:
        process.stdin.write(json.dumps({"argv": argv, "folder": folder}).encode() + b"\n")
        process.stdin.flush()
        ends, pipes = began + check.timeout, [process.stdout, process.stderr]
        while process.stderr in pipes:
            for pipe in select.select(pipes, [], [], LOOK_SECONDS)[0]:
                chunk = os.read(pipe.fileno(), 65536)
                if not chunk:
                    pipes.remove(pipe)
                elif pipe is process.stdout:
                    output.take(chunk)
                else:
                    said += chunk[:4096]
            is_over = time.monotonic() >= ends
            if how == "exited" and not said and (is_over or is_cancelled()):
                how = "timed_out" if is_over else "cancelled"
                process.stdin.close()  # tells the supervisor to end it
                ends = time.monotonic() + GRACE_SECONDS
            elif how != "exited":
                process.send_signal(signal.SIGCONT)  # a command can stop its supervisor to keep running
                if is_over:
                    break
        output.drain(process.stdout.fileno())
    except BrokenPipeError:
        pass  # the supervisor was killed: it has not said how the command ended
    finally:
        _end(process)
    duration = round((time.monotonic() - began) * 1000)
    # One that was killed has not said it: whatever stands in its place was written by somebody else.
    return _ended(how, said if process.returncode == 0 else b"", duration, output)


def _ended(
    how: Literal["exited", "timed_out", "cancelled"], said: bytes, duration: int, output: CommandOutput
) -> Ended:
    try:
        report = msgspec.json.decode(said, type=SupervisorReport)
    except msgspec.DecodeError:
        report = SupervisorReport()
    if how == "exited" and report.exit is None:
        lost = Ended("cancelled", None, duration, output.end, output.digest, False, ENDED_OUTSIDE)
        return replace(lost, how="not_started", reason=report.error) if report.error else lost
    exit_ = report.exit if how == "exited" else None
    return Ended(how, exit_, duration, output.end, output.digest, output.has_text)


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class CommandOutput:
    """What a command prints: its end, a digest of it all, whether it had a text. Nothing else is kept."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted.encode()
        self._tail = b""
        self._digest = sha256()
        self.has_text = not wanted

    def take(self, chunk: bytes) -> None:
        """Take what was read."""
        self._digest.update(chunk)
        if not self.has_text:
            self.has_text = self._wanted in self._tail[-len(self._wanted) :] + chunk
        self._tail = (self._tail + chunk)[-4 * OUTPUT_END - len(self._wanted) :]

    def drain(self, pipe: int) -> None:
        """Take what is left in a pipe, without waiting for whoever may still hold it."""
        for _ in range(64):
            if not select.select([pipe], [], [], 0)[0] or not (chunk := os.read(pipe, 65536)):
                return
            self.take(chunk)

    @property
    def digest(self) -> str:
        return f"sha256:{self._digest.hexdigest()}"

    @property
    def end(self) -> str:
        """The end as text, without what steers a screen or cannot be seen."""
        text = _ESCAPE.sub("", self._tail.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n"))
        seen = (char if char in "\n\t" or category(char) not in UNSEEN else "�" for char in text)
        return "".join(seen).strip()[-OUTPUT_END:]


def unexpected(check: CommandCheck, ended: Ended, folder: Path) -> str:
    """Say what is not as the check expects; nothing if all is."""
    wanted = check.expected
    if ended.how == "not_started":
        return ended.reason
    if ended.how == "timed_out":
        return f"it was ended after its time limit of {check.timeout} s"
    if ended.how == "cancelled":
        return ended.reason or "its client no longer waited for it"
    if ended.exit != wanted.exit:
        return f"expected {wanted.text}"
    if not ended.has_text:
        return f"its output has no '{wanted.stdout}'"
    missing = [name for name in wanted.files if not _is_file(folder, name)]
    return f"there is no file {missing[0]}" if missing else ""


def _is_file(folder: Path, name: str) -> bool:
    resolved = Path(os.path.realpath(folder / name))
    return folder in resolved.parents and resolved.is_file()
