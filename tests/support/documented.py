"""Documentation as a script: the fenced blocks of a page, run in order in an empty folder with an empty HOME.

Three notations are shared by all pages: `…` stands for what differs from run to run, `hmc3gzdk` for the id
of the session that the page is about, and `# exits with N` for an exit code other than 0. A block `sh serves`
starts a server, and in a block `sh postgres` every host is a PostgreSQL with an empty database `interlock`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.request import urlopen

from support.paths import ROOT
from support.postgres_server import require_postgres, shared_server
from support.server import Server
from support.stdio_pipe import readable

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SESSION = "hmc3gzdk"
NOT_RUN = "not-run"
PATIENCE = 180

_BLOCK = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (?P<line>.*?)(?:\s+# exits with (?P<code>\d+))?$")
_TYPED = re.compile(r"\[Y/n\]: (\S+)")


class Block(NamedTuple):
    language: str
    name: str
    body: str


class Said(NamedTuple):
    """A command of a console block with what the page says it prints."""

    line: str
    code: int
    shown: str


def blocks(page: Path) -> Iterator[Block]:
    for block in _BLOCK.finditer(page.read_text("utf-8")):
        language, _, name = block["info"].partition(" ")
        yield Block(language, name, block["body"])


def sayings(body: str) -> Iterator[Said]:
    """Split a console block at its prompts."""
    parts = re.split(r"^(?=\$ )", body, flags=re.MULTILINE)
    for part in filter(str.strip, parts):
        first, _, shown = part.partition("\n")
        command = _COMMAND.match(first)
        assert command, f"a console block begins with a command: {first}"
        yield Said(command["line"], int(command["code"] or 0), shown.strip("\n"))


class World:
    """A folder to work in, a HOME of its own, and the session that the page is about."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder / "work", folder / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.session = SESSION

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("INTERLOCK_", "XDG_", "COLUMNS"))
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "HOME": str(self.home), "NO_COLOR": "1", "TERM": "xterm", "TZ": "UTC"}

    @property
    def data(self) -> Path:
        """Where the plain command keeps its data."""
        code = "from interlock.cli.config import Config; print(Config().folder)"
        done = subprocess.run(
            [sys.executable, "-c", code], env=self.environment, capture_output=True, text=True, check=True
        )
        return Path(done.stdout.strip())

    def perform(self, block: Block) -> None:
        """Do what a block says."""
        match block:
            case Block(name=name) if name == NOT_RUN:
                return
            case Block("sh", "serves", body):
                self._serve(body)
            case Block("sh", "postgres", body):
                require_postgres()
                self._script(body, shared_server().empty_database("interlock"))
            case Block("sh", _, body):
                self._script(body)
            case Block("console", _, body):
                for command in sayings(body):
                    self._check(command)
            case Block(_, name, body) if "." in name:
                target = self.folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(body, "utf-8")

    def _serve(self, body: str) -> None:
        """Start the server of a block, on a port that the page leaves open, and stop it once it is ready."""
        environment = {**self.environment, "INTERLOCK_PORT": "0"}
        server = subprocess.Popen(
            ["bash", "-euc", f"exec {body}"],
            cwd=self.folder,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.stderr is not None
        told = server.stderr.readline()
        port = re.search(r":(\d+)/mcp$", told.strip())
        assert port, told + server.stderr.read()
        with urlopen(f"http://127.0.0.1:{port[1]}/readyz", timeout=PATIENCE) as answer:
            assert answer.status == 200
        server.terminate()
        server.stderr.close()
        assert server.wait(PATIENCE) == 0

    def _script(self, body: str, more: Mapping[str, str] = MappingProxyType({})) -> None:
        done = subprocess.run(
            ["bash", "-euc", body.replace(SESSION, self.session)],
            cwd=self.folder,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{body}\n{done.stdout}\n{done.stderr}"

    def _check(self, command: Said) -> None:
        line = command.line.replace(SESSION, self.session)
        code, printed = at_a_terminal(line, _TYPED.findall(command.shown), self.folder, self.environment)
        assert code == command.code, f"{line} exited with {code}:\n{printed}"
        if command.shown:
            self.session = fits(command.shown, printed, self.session)


def fits(shown: str, printed: str, session: str = SESSION) -> str:
    """Check an output against what a page shows of it; returns the session's id, learnt if it was new."""
    actual = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    learnt = "(?P<session>[a-z2-7]{8})" if session == SESSION else re.escape(session)
    pattern = _pattern(shown)
    once, again = learnt, "(?P=session)" if session == SESSION else learnt
    pattern = pattern.replace(SESSION, once, 1).replace(SESSION, again)
    matched = re.fullmatch(pattern, actual)
    assert matched, f"the page shows\n{shown}\nbut this was printed\n{actual}"
    return matched.groupdict().get("session") or session


def _pattern(shown: str) -> str:
    lines = (_line(line.rstrip()) for line in shown.splitlines())
    return "\n".join(lines).replace("\n(?s:.*?)", "(?s:.*?)")


def _line(line: str) -> str:
    return "(?s:.*?)" if line == "…" else ".*?".join(map(re.escape, line.split("…")))


def at_a_terminal(line: str, typed: list[str], folder: Path, env: dict[str, str]) -> tuple[int, str]:
    """Run a command at a terminal of 80 columns and type an answer at each question."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", line],
        cwd=folder,
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    printed, waiting = "", list(typed)
    while chunk := _chunk(master, process):
        printed += chunk
        if waiting and printed.endswith("]: "):
            os.write(master, f"{waiting.pop(0)}\n".encode())
    os.close(master)
    return process.wait(PATIENCE), printed.replace("\r\n", "\n")


def _chunk(master: int, process: subprocess.Popen[bytes]) -> str:
    ready = readable(master, PATIENCE)
    if not ready:
        process.kill()
        raise AssertionError("the command is silent")
    try:
        return os.read(master, 65536).decode()
    except OSError:  # the other end of a pseudo-terminal that is gone reads as an error on Linux
        return ""


_TOKEN = re.compile(r"(?P<kind>st|ack|chk|sst|ses|trc|v1\.gzB64)\.(?:v1\.)?[A-Za-z0-9_+/=-]{20,}")


class Exchange:
    """A talk with the real server as a page shows it: `→ tool {arguments}`, then the text of its answer.

    A token is shown as its kind and `…`; in a call that stands for the newest of its kind, and for the newest
    handle where a `checkpoint_handle` belongs.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tokens: dict[str, str] = {}

    def check(self, body: str) -> int:
        turns = list(filter(str.strip, re.split(r"^→ ", body, flags=re.MULTILINE)))
        for turn in turns:
            call, _, shown = turn.partition("\n")
            tool, _, arguments = call.partition(" ")
            fits(_flat(shown), _flat(self._call(tool, json.loads(arguments or "{}"))))
        return len(turns)

    def result(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool, `…` tokens filled in, and remember the tokens of its answer."""
        filled = {name: self._fill(name, value) for name, value in arguments.items()}
        answer = self.server.request("tools/call", {"name": tool, "arguments": filled})
        told = json.dumps(answer)
        for token in _TOKEN.finditer(told):
            is_handle = "checkpoint_handle" in told[: token.start()][-26:]
            self.tokens["checkpoint_handle" if is_handle else token["kind"]] = token[0]
        result: dict[str, Any] = answer.get("result", answer)
        return result

    def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        result = self.result(tool, arguments)
        if "error" in result:
            return json.dumps(result["error"])
        text: str = result["content"][0]["text"]
        return text

    def _fill(self, name: str, value: Any) -> Any:
        if not isinstance(value, str) or not value.endswith(".…"):
            return value
        if name == "checkpoint_handle":
            return self.tokens[name]
        return self.tokens[value.removesuffix("…").removesuffix(".").removesuffix(".v1")]


def _flat(text: str) -> str:
    """One line, and JSON spaced as people write it."""
    with contextlib.suppress(ValueError):
        text = json.dumps(json.loads(text), ensure_ascii=False)
    return re.sub(r"\s+", " ", text).strip()
