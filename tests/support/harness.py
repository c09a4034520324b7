"""Surfaces without a process: a ledger on a temporary folder, a clock that tests move, and an agent."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from interlock.core.run.preferences import PRESETS, Mode
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.health import trusted
from interlock.ledger.log.judgement import violations
from interlock.ledger.log.repair import plans_of, session_batches
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keyring, Keys
from interlock.store.protocol import Store
from interlock.store.sqlite.store import open_store
from interlock.surfaces.call import Call, Client, Outcome, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import Surface, call_tool

FormAnswer = dict[str, Any]

STATEFUL: Mapping[str, Callable[[Ledger], Surface]] = {
    "execution": ExecutionSurface,
    "session": SessionSurface,
    "gated": GatedSurface,
    "navigation": NavigationSurface,
}


@cache
def compile_cache() -> Path:
    """One compile cache for all tests of a run: it is keyed by content, and compiling is slow."""
    folder = TemporaryDirectory(prefix="interlock-tests-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


class Clock:
    """Milliseconds that pass only when a test says so."""

    def __init__(self, now: int = 1_800_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


class Bench:
    """A data folder with workflows, and surfaces onto it."""

    def __init__(self, folder: Path, opens: Callable[[Path], Store] = open_store) -> None:
        self.folder = folder
        self.opens = opens
        self.workflows = folder / "workflows-under-test"
        self.workflows.mkdir(parents=True, exist_ok=True)
        self.clock = Clock()
        self.judges = True  # a test that damages its store, or writes what no engine would, says no
        self._ledgers: list[Ledger] = []

    def pause(self) -> None:
        """Close every ledger that was opened here."""
        for ledger in self._ledgers:
            ledger.store.close()

    def close(self) -> None:
        """Close every ledger; every log that a test ends with is judged again."""
        self.pause()
        broken = broken_promises(self.opens(self.folder)) if self._ledgers and self.judges else []
        assert not broken, "\n".join(broken)

    def write(self, workflow: Mapping[str, Any], name: str | None = None) -> Path:
        """Put a workflow file where the library finds it."""
        path = self.workflows / f"{name or workflow['id']}.json"
        path.write_bytes(msgspec.json.encode(workflow))
        return path

    def ledger(self, mode: Mode | None = None, terms: Terms | None = None, **more: Any) -> Ledger:
        """Open the store again, as another process would."""
        settings = Settings(
            preferences=PRESETS[mode or "guided"],
            preferences_fixed=mode is not None,
            terms=terms or Terms(),
            **more,
        )
        library = Library([BUNDLED, Source("configured", self.workflows)], compile_cache())
        ledger = Ledger(self.opens(self.folder), Keys(self.folder), library, settings, self.clock)
        self._ledgers.append(ledger)
        return ledger

    def call(self, surface: str, ledger: Ledger, tool: str, arguments: FormAnswer, call: Call) -> Outcome:
        """Call a tool of one surface."""
        return call_tool(STATEFUL[surface](ledger), tool, arguments, call)

    def agent(self, mode: Mode | None = None, terms: Terms | None = None, **more: Any) -> Agent:
        return Agent(ExecutionSurface(self.ledger(mode, terms, **more)))


def rotate(keys: Keys) -> Keyring:
    """Sign with a new key, and believe the one before it; older ones are retired."""
    if keys.keyring().previous is not None:
        keys.retire()
    keys.prepare()
    return keys.activate()


def broken_promises(store: Store) -> list[str]:
    """Name every command in a store that the guard would have refused; the store is closed."""
    pins, broken = Pins(), list[str]()
    for batch in session_batches(store, 500):
        for session_id in batch:
            with store.reading() as reader:
                session = reader.session(session_id)
                log = trusted(reader, session) if session is not None else None
                if log is not None and log.whole:
                    found = violations(log.commits, plans_of(reader, pins))
                    broken += (f"{session_id}: {judged.text}" for judged in found)
    store.close()
    return broken


class Agent:
    """Calls tools and remembers the last answer, as an agent's chat would."""

    def __init__(self, surface: Surface, client: Client | None = None) -> None:
        self.surface = surface
        self.client = client or Client("test-client")
        self.last: FormAnswer = {}
        self.text = ""

    @property
    def ledger(self) -> Ledger:
        assert isinstance(self.surface, ExecutionSurface)
        return self.surface.ledger

    def call(self, tool: str, **arguments: Any) -> FormAnswer:
        reply = call_tool(self.surface, tool, arguments, Call(self.client))
        assert isinstance(reply, Reply), reply
        self.text = reply.text
        raw = reply.structured
        body = msgspec.json.decode(bytes(raw)) if isinstance(raw, msgspec.Raw) else raw
        if body is None and reply.text.startswith("{"):  # navigation sends its JSON once, as text
            body = msgspec.json.decode(reply.text)
        self.last = {**(body or {}), "_meta": dict(reply.meta), "_error": reply.is_error}
        return self.last

    def start(self, workflow_id: str, **context: Any) -> FormAnswer:
        return self.call("start_workflow", workflowId=workflow_id, context=context)

    def ack(
        self,
        notes: str = "",
        *,
        at: FormAnswer | None = None,
        artifacts: Sequence[Mapping[str, Any]] = (),
        **context: Any,
    ) -> FormAnswer:
        """Advance from the last answer, or from an earlier one."""
        before = at or self.last
        arguments: dict[str, Any] = {"stateToken": before["stateToken"], "ackToken": before["ackToken"]}
        output: dict[str, Any] = {"notesMarkdown": notes} if notes else {}
        if artifacts:
            output["artifacts"] = list(artifacts)
        if output:
            arguments["output"] = output
        if context:
            arguments["context"] = context
        return self.call("continue_workflow", **arguments)

    def decide(self, option: str, *, at: FormAnswer | None = None, **context: Any) -> FormAnswer:
        """Report the user's choice at the pending gate."""
        gate = (at or self.last)["pending"]["stepId"]
        return self.ack(at=at, artifacts=[decision(gate, option)], **context)

    def look(self, at: FormAnswer | None = None) -> FormAnswer:
        return self.call("continue_workflow", stateToken=(at or self.last)["stateToken"])

    @property
    def pending(self) -> str | None:
        pending = self.last.get("pending")
        return pending["stepId"] if pending else None


def every_surface(bench: Bench) -> list[Surface]:
    """Return the five surfaces on one ledger."""
    ledger = bench.ledger()
    return [
        ExecutionSurface(ledger),
        SessionSurface(ledger),
        GatedSurface(ledger),
        NavigationSurface(ledger),
        LookupSurface(ledger.library),
    ]


def filled(example: Any, name: str = "") -> Any:
    """Replace the placeholders of an example by a choice that goes on, a number, or their own words."""
    if isinstance(example, dict):
        return {key.strip("<>"): filled(member, key) for key, member in example.items()}
    if isinstance(example, list):
        return [filled(member) for member in example]
    if example == "<true | false>":
        return True
    if isinstance(example, str) and example.startswith("<a number"):
        number = example.strip("<>").rpartition("such as ")[2]
        return msgspec.json.decode(number) if number.isdecimal() else 1
    choices = example.strip("<>").split(" | ") if isinstance(example, str) else [example]
    return choices[-1 if name in ("level", "decision") else 0]


def decision(gate: str, option: str) -> dict[str, Any]:
    """Return the artifact that reports the user's choice at a gate."""
    return {"kind": "wr.decision", "checkpointId": gate, "optionId": option}


def steps(*ids: str, **fields: Any) -> list[dict[str, Any]]:
    """Return plain steps that share some fields."""
    return [{"id": id, "title": id.title(), "prompt": f"Do {id}.", **fields} for id in ids]


def workflow(*items: Mapping[str, Any], id: str = "test.flow", **fields: Any) -> dict[str, Any]:
    """Return a step workflow file."""
    head = {"id": id, "name": "Flow", "description": "For a test.", "version": "1.0.0"}
    return {**head, **fields, "steps": list(items)}


def gate(id: str, *options: str | Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a gate of a step workflow file; an option may be given by its id alone."""
    listed = [
        {"id": option, "label": option.title()} if isinstance(option, str) else dict(option)
        for option in options
    ]
    return {"type": "gate", "id": id, "name": id.title(), "message": f"{id}?", "options": listed, **fields}
