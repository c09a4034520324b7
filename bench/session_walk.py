"""What a walk through the session surface costs: its bytes beside the size of the source, and its time.

Drives the real server over stdio. Prints the bytes of one whole walk, every skill loaded once, and the p50
of the calls that a session makes most often.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.sources.sources import Source
from interlock.core.definition.workflow import Activity, Workflow

CORPUS = Path(__file__).resolve().parents[1].parent / "shared" / "corpus" / "activities"


class Server:
    """One server process, and a count of what goes through its pipes."""

    def __init__(self, folder: Path, given: Path | None) -> None:
        command = [
            sys.executable,
            "-m",
            "interlock",
            "mcp",
            "--surface",
            "session",
            "--data-dir",
            str(folder),
        ]
        command += ["--min-response-seconds", "0", *(["--workflows", str(given)] if given else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.sent = self.received = self.calls = 0
        self.token = ""
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.calls += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        self.sent, self.received = self.sent + len(line), self.received + len(answer)
        found: dict[str, Any] = json.loads(answer)
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        if self.token and "checkpoint_handle" not in arguments:
            arguments = {"session_token": self.token, **arguments}
        result: dict[str, Any] = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        self.token = result.get("_meta", {}).get("session_token", self.token)
        return result

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--workflow", help="default: work-packages of the corpus, else the bundled work-package"
    )
    parser.add_argument("--workflows", type=Path, default=CORPUS if CORPUS.is_dir() else None)
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    name = given.workflow or ("work-packages" if given.workflows else "work-package")
    workflow, source = loaded(name, given.workflows)
    with TemporaryDirectory() as folder:
        server = Server(Path(folder), given.workflows)
        walk(server, workflow)
        show_bytes(server, name, source)
        for tool, times in timed(server, workflow, given.count).items():
            print(f"{tool:14} p50 {sorted(times)[len(times) // 2] * 1000:6.2f} ms")
        server.close()


def loaded(name: str, folder: Path | None) -> tuple[Workflow, int]:
    """The workflow and the size of its folder."""
    sources = [BUNDLED, *([Source("configured", folder)] if folder else [])]
    found = Library(sources).load(name)
    assert isinstance(found, Loaded), found
    files = [path for path in (found.source.root / name).rglob("*") if path.is_file()]
    return found.workflow, sum(path.stat().st_size for path in files)


def walk(server: Server, workflow: Workflow) -> None:
    """Walk from the first activity to the end; what the agent holds already is not sent again."""
    server.call("discover")
    server.call("start_session", agent_id="agent", workflow_id=workflow.id)
    server.call("get_workflow")
    target: str = workflow.initial or workflow.activities[0].id
    visits: Counter[str] = Counter()
    held: dict[str, str] = {}
    while True:
        entered = json.loads(enter(server, target, workflow, visits))
        if entered.get("status") == "completed":
            return
        target = visit(server, workflow, entered["activity_id"], visits, held)


def visit(
    server: Server, workflow: Workflow, activity_id: str, visits: Counter[str], held: dict[str, str]
) -> str:
    """Read the activity and the skills not held yet; return the way out."""
    known = {"known": held[activity_id]} if activity_id in held else {}
    text = server.call("get_activity", **known)["content"][0]["text"]
    held[activity_id] = text.partition("digest: ")[2].partition("\n")[0]
    activity = workflow.activity(activity_id)
    assert activity is not None
    visits[activity_id] += 1
    for step in activity.steps():
        if step.skill and step.skill not in held:
            held[step.skill] = ""
            server.call("get_skill", step_id=step.id)
    exits = text.partition("ways: ")[2].partition("\n")[0].split("; ")
    return exits[(visits[activity_id] - 1) % len(exits)].split(" ")[0]


def enter(server: Server, target: str, workflow: Workflow, visits: Counter[str]) -> str:
    manifest: list[dict[str, Any]] = []
    variables: dict[str, Any] = {}
    while True:
        result = server.call("next_activity", activity_id=target, step_manifest=manifest, variables=variables)
        if not result.get("isError"):
            text: str = result["content"][0]["text"]
            return text
        target = put_right(server, result["structuredContent"], variables, workflow, visits) or target


def put_right(
    server: Server,
    refusal: dict[str, Any],
    variables: dict[str, Any],
    workflow: Workflow,
    visits: Counter[str],
) -> str | None:
    """Supply what the refusal names; an answer may lead elsewhere."""
    if refusal["code"] == "INPUT_REQUIRED":
        variables.update({name: ["one"] for name in refusal["variables"]})
        return None
    gate = refusal["checkpoint"]
    visits[gate] += 1
    server.call("yield_checkpoint", checkpoint_id=gate)
    options = options_of(workflow.activities, gate)
    result = server.call("respond_checkpoint", option_id=options[(visits[gate] - 1) % len(options)])
    server.call("resume_checkpoint")
    target = json.loads(result["content"][0]["text"]).get("effect", {}).get("transitionTo")
    return target if isinstance(target, str) else None


def options_of(activities: Sequence[Activity], gate: str) -> list[str]:
    found = next((one.gate(gate) for one in activities if one.gate(gate) is not None), None)
    return [option.id for option in found.options] if found else ["proceed"]


def show_bytes(server: Server, name: str, source: int) -> None:
    print(f"walk of {name}: {server.calls} calls, {server.sent:,} bytes sent, {server.received:,} received")
    print(f"source folder: {source:,} bytes; received / source {server.received / source:.2f}")


def timed(server: Server, workflow: Workflow, count: int) -> dict[str, list[float]]:
    """Time the calls that every session makes, each durable trace row included."""
    times: dict[str, list[float]] = {"get_activity": [], "get_workflow": [], "next_activity": []}
    first = workflow.initial or workflow.activities[0].id
    for _ in range(count):
        server.token = ""
        server.call("start_session", agent_id="agent", workflow_id=workflow.id)
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("next_activity", {"activity_id": first}),
            ("get_activity", {}),
            ("get_workflow", {}),
        )
        for tool, arguments in calls:
            start = perf_counter()
            server.call(tool, **arguments)
            times[tool].append(perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
