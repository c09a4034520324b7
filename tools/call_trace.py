"""Count the functions, modules and rooms that one call passes through, from request to answer.

Counted are calls of named functions, resumed generators included, but not imports, class bodies, lambdas,
comprehensions and the modules that read and write the pipe. A room is a folder of the package, and it changes
whenever two consecutive calls are in different rooms: an entry and the next call after the return both count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple

CO_OPTIMIZED = 1  # set for functions, not for modules and class bodies
TRANSACTIONS = ("none", "read", "write")  # in the order of SQLite's own codes
PATIENCE = 60
QUIET = 0.2

CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "call-trace", "version": "1"},
}
REPORT = {
    "kind": "wr.verification_report",
    "verdict": "pass",
    "checks": [{"name": "the whole suite", "result": "pass"}],
    "summary": "Everything holds.",
}
FLOW = {
    "flow/workflow.yaml": """\
id: flow
version: 1.0.0
title: Flow
description: Two activities.
initialActivity: prepare
""",
    "flow/activities/01-prepare.yaml": """\
id: prepare
version: 1.0.0
name: Prepare
steps:
  - { id: read, name: Read, description: Read it. }
  - { id: plan, name: Plan, description: Plan it. }
transitions:
  - { to: work, isDefault: true }
""",
    "flow/activities/02-work.yaml": """\
id: work
version: 1.0.0
name: Work
steps:
  - { id: change, name: Change, description: Change it. }
""",
}

Transaction = Literal["none", "read", "write"]


class Event(NamedTuple):
    """One line of a recording: a function was called, or a module read or wrote bytes."""

    kind: Literal["call", "read", "write"]
    module: str
    function: str
    caller: str
    transaction: Transaction

    @property
    def room(self) -> str:
        return self.module.partition("/")[0]

    @property
    def location(self) -> str:
        return f"{self.module}:{self.function}"


class RoomChange(NamedTuple):
    """Two consecutive calls in different rooms."""

    before: Event
    after: Event

    @property
    def is_return(self) -> bool:
        """Tell whether control had returned to the room before this call was made from inside it."""
        return self.after.caller.partition("/")[0] == self.after.room


class Trace(NamedTuple):
    """What one call passed through."""

    title: str
    calls: Sequence[Event]

    @property
    def functions(self) -> int:
        return len({call.location for call in self.calls})

    @property
    def modules(self) -> int:
        return len({call.module for call in self.calls})

    @property
    def room_changes(self) -> list[RoomChange]:
        pairs = pairwise(self.calls)
        return [RoomChange(before, after) for before, after in pairs if before.room != after.room]

    def surfaces_in(self, transaction: Transaction) -> list[str]:
        """Return the functions of `surfaces/` that ran while such a transaction was open."""
        calls = (call for call in self.calls if call.room == "surfaces" and call.transaction == transaction)
        return sorted({call.location for call in calls})


def record(path: Path, arguments: Sequence[str]) -> int:
    """Run the `interlock` command in this process and append an event for each of its calls to a file."""
    import interlock
    from interlock.__main__ import main

    sink = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sys.argv = ["interlock", *arguments]
    sys.setprofile(_recorder(Path(interlock.__file__).parent, sink))
    return main()


def _recorder(package: Path, sink: int) -> Callable[[FrameType, str, Any], None]:
    root = f"{package}{os.sep}"

    def observe(frame: FrameType, what: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(root) or not _is_named_function(code):
            return
        if what == "call":
            kind = "call"
        elif what == "c_call" and argument.__name__ in ("read", "write"):
            kind = argument.__name__
        else:
            return
        callers = [one.f_code for one in _callers(frame) if one.f_code.co_filename.startswith(root)]
        if any(one.co_name == "<module>" for one in callers):
            return
        caller = next((_location(root, one) for one in callers if _is_named_function(one)), "")
        fields = [kind, *_location(root, code).split(":"), caller, _open_transaction()]
        os.write(sink, "\t".join(fields).encode() + b"\n")

    return observe


def _is_named_function(code: CodeType) -> bool:
    return bool(code.co_flags & CO_OPTIMIZED) and not code.co_name.startswith("<")


def _callers(frame: FrameType) -> Iterator[FrameType]:
    caller = frame.f_back
    while caller is not None:
        yield caller
        caller = caller.f_back


def _location(root: str, code: CodeType) -> str:
    module = Path(code.co_filename.removeprefix(root)).with_suffix("").as_posix()
    return f"{module}:{code.co_qualname}"


def _open_transaction() -> str:
    apsw = sys.modules.get("apsw")
    if apsw is None:
        return "none"
    states = (max(one.txn_state("main"), one.in_transaction) for one in apsw.connections())
    return TRANSACTIONS[max(states, default=0)]


class Recording:
    """The file that a measured process appends to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    def end(self) -> int:
        """Return the file's size once it no longer grows."""
        size = -1
        while size != (size := self.path.stat().st_size):
            sleep(QUIET)
        return size

    def since(self, start: int) -> list[Event]:
        """Return the events after a position, those outside of all rooms excepted."""
        text = self.path.read_bytes()[start : self.end()].decode()
        events = (Event(*line.split("\t")) for line in text.splitlines())  # type: ignore[arg-type]
        return [event for event in events if "/" in event.module]


class Server:
    """A recorded `interlock mcp`, and its client."""

    def __init__(self, python: str, folder: Path, surface: str) -> None:
        self.recording = Recording(folder / f"{surface}.events")
        options = ["--surface", surface, "--data-dir", str(folder / "data"), "--min-response-seconds", "0"]
        command = recorded(python, self.recording, "mcp", *options, "--workflows", str(folder / "workflows"))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(folder)
        )
        self._request("initialize", CLIENT)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result; stop the measurement if the call did not succeed."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        body = result.get("structuredContent") or {}
        if result.get("isError") or body.get("success") is False or body.get("kind") == "blocked":
            sys.exit(f"{tool} failed: {result}")
        return result

    def trace(self, tool: str, **arguments: Any) -> tuple[Trace, dict[str, Any]]:
        """Call a tool and return what the call passed through, and its result."""
        start = self.recording.end()
        result = self.call(tool, **arguments)
        return Trace(tool, request_calls(self.recording.since(start))), result

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        result: dict[str, Any] = json.loads(self._process.stdout.readline())["result"]
        return result


def request_calls(events: Sequence[Event]) -> list[Event]:
    """Return the calls before the answer is written, without the modules that read and write the pipe."""
    pipe = [event for event in events if event.kind != "call" and event.room == "transport"]
    loop = {event.module for event in pipe}
    answered = next((event for event in pipe if event.kind == "write"), None)
    before = events if answered is None else events[: events.index(answered)]
    return [event for event in before if event.kind == "call" and event.module not in loop]


def recorded(python: str, recording: Recording, *arguments: str) -> list[str]:
    """Return the command that runs and records `interlock` with another interpreter."""
    return [python, "-P", str(Path(__file__).resolve()), "--record", str(recording.path), "--", *arguments]


def environment(folder: Path) -> dict[str, str]:
    """Return our variables without Interlock's own, and the data directory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    return {**kept, "INTERLOCK_DATA_DIR": str(folder / "data")}


@contextmanager
def served(python: str, folder: Path, surface: str) -> Iterator[Server]:
    """Serve one surface, and stop the server at the end."""
    server = Server(python, folder, surface)
    try:
        yield server
    finally:
        server.close()


def measured(python: str) -> list[Trace]:
    """Trace the four calls on a fresh data directory."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in FLOW.items():
            path = folder / "workflows" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        continued, session = trace_continue_workflow(python, folder)
        return [
            continued,
            trace_next_activity(python, folder),
            trace_nav_action(python, folder),
            trace_decide(python, folder, session),
        ]


def trace_continue_workflow(python: str, folder: Path) -> tuple[Trace, str]:
    """Acknowledge the first step of the small task; then go on to its gate and return the session's id."""
    with served(python, folder, "execution") as server:
        started = server.call("start_workflow", workflowId="wr.small_task", context={"goal": "Fix the test"})
        trace, result = server.trace(
            "continue_workflow",
            **_tokens(started),
            context={"acceptance": ["The test passes"]},
            output={"notesMarkdown": "One test is flaky; nothing else is touched."},
        )
        result = server.call(
            "continue_workflow", **_tokens(result), output={"notesMarkdown": "Waits for the form."}
        )
        output = {"notesMarkdown": "The suite is green.", "artifacts": [REPORT]}
        checked = {"checked": "pass: the whole suite"}
        server.call("continue_workflow", **_tokens(result), context=checked, output=output)
    session = re.search(r"sess_[a-z2-7]+", json.dumps(started["structuredContent"]))
    assert session is not None
    return trace, session.group()


def _tokens(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result["structuredContent"][name] for name in ("stateToken", "ackToken")}


def trace_next_activity(python: str, folder: Path) -> Trace:
    """Leave an activity with a manifest of its two steps and enter the next one."""
    with served(python, folder, "session") as server:
        started = server.call("start_session", agent_id="agent", workflow_id="flow")
        entered = server.call(
            "next_activity", session_token=started["_meta"]["session_token"], activity_id="prepare"
        )
        manifest = [{"step_id": step, "output": "Done."} for step in ("read", "plan")]
        token = entered["_meta"]["session_token"]
        trace, _ = server.trace(
            "next_activity", session_token=token, activity_id="work", step_manifest=manifest
        )
    return trace


def trace_nav_action(python: str, folder: Path) -> Trace:
    """Complete the first step of an activity."""
    with served(python, folder, "navigation") as server:
        started = server.call("nav_start", workflow_id="flow")
        state = json.loads(started["content"][0]["text"])["state"]
        trace, _ = server.trace("nav_action", state=state, action="complete_step", step_id="read")
    return trace


def trace_decide(python: str, folder: Path, session: str) -> Trace:
    """Accept at the gate of a session, with a terminal as the command's input."""
    import pty  # not on Windows

    recording = Recording(folder / "decide.events")
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"y\n")
    done = subprocess.run(
        recorded(python, recording, "decide", session, "accept"),
        stdin=terminal,
        capture_output=True,
        text=True,
        env=environment(folder),
        timeout=PATIENCE,
        check=False,
    )
    os.close(terminal)
    os.close(keyboard)
    if done.returncode != 0:
        sys.exit(f"interlock decide failed: {done.stderr}")
    return Trace("interlock decide", [event for event in recording.since(0) if event.kind == "call"])


def table(traces: Sequence[Trace]) -> str:
    """Return the figures as a Markdown table."""
    titles = [
        "call",
        "functions",
        "modules",
        "room changes",
        "functions of surfaces/ in a write transaction",
        "in a read transaction",
    ]
    rows = [
        [
            f"`{trace.title}`",
            str(trace.functions),
            str(trace.modules),
            str(len(trace.room_changes)),
            str(len(trace.surfaces_in("write"))),
            str(len(trace.surfaces_in("read"))),
        ]
        for trace in traces
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [titles, ["---"] * len(titles), *rows])


def listing(trace: Trace) -> str:
    """Return the sequence of room changes, and the functions of `surfaces/` that ran in a transaction."""
    lines = [f"## {trace.title}", ""]
    for number, change in enumerate(trace.room_changes, 1):
        rooms = f"{change.before.room} → {change.after.room}"
        how = "back in" if change.is_return else "calls"
        lines.append(f"{number:3}. {rooms:22} {change.after.caller} {how} {change.after.location}")
    for transaction in ("write", "read"):
        names = trace.surfaces_in(transaction)
        lines += ["", f"surfaces/ in a {transaction} transaction: {', '.join(names) or 'none'}"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Count what one call passes through.")
    parser.add_argument(
        "--python", default=sys.executable, help="the interpreter whose interlock is measured"
    )
    parser.add_argument("--list", action="store_true", help="print every room change")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.record is not None:
        return record(given.record, given.arguments)
    traces = measured(given.python)
    print("\n\n".join([table(traces), *(listing(trace) for trace in traces if given.list)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
