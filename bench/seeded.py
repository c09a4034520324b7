"""Fill a store with many sessions, each with a whole log: real runs, copied under other ids in batches.

    python -m bench.seeded FOLDER [--sessions 2000]

Events name ordinals (rule 4), so a copy needs another session id in its rows and nothing else.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.core.values import Json
from interlock.ledger.ids import new_id, run_id
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.rebuild import Rebuilt
from interlock.ledger.runs.pinned_workflows import seal
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.tokens import new_handle
from interlock.ledger.transfer.bundle import Session, event_rows, rebuilt_as
from interlock.ledger.transfer.export_import import export_session
from interlock.store.protocol import EventRow, HandleRow, Writer
from interlock.store.sqlite.store import SqliteStore, open_store
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.tool import call_tool

MODELS = 200
BATCH = 500
DAY = 86_400_000
NOW = 1_800_000_000_000
TASK = {
    "id": "bench.task",
    "name": "Task",
    "description": "For a measurement.",
    "version": "1.0.0",
    "steps": [{"id": f"s{number}", "title": "Step", "prompt": "Do it."} for number in range(4)],
}
WORDS = [f"word{number}" for number in range(3000)]


class Model(Struct, frozen=True):
    """A run to copy."""

    body: Session
    rows: Rebuilt
    events: list[EventRow]
    responses: dict[tuple[int, int], bytes]


def seed(folder: Path, count: int) -> SqliteStore:
    """Fill a store with this many sessions."""
    store, models = open_store(folder), list(_models())
    for first in range(0, count, BATCH):
        with store.writing() as tx:
            for number in range(first, min(first + BATCH, count)):
                _copy(tx, models[number % len(models)], new_id("sess"))
    return store


def _models() -> Iterator[Model]:
    chance = random.Random(7)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_bytes(msgspec.json.encode(TASK))
        library = Library([Source("configured", folder)])
        ledger = Ledger(open_store(folder / "data"), Keys(folder), library, Settings())
        for number in range(MODELS):
            yield _model(ledger, folder, chance, number)
        ledger.store.close()


def _model(ledger: Ledger, folder: Path, chance: random.Random, number: int) -> Model:
    at = NOW - (number * 200 // MODELS) * DAY
    project = _checkout(folder / f"repo{number % 20}", f"topic/{number}", f"{number:07x}" + "0" * 33)
    ledger.settings, ledger.clock = Settings(project=project), lambda: at
    session_id = _run(ExecutionSurface(ledger), chance, number)
    with ledger.store.reading() as reader:
        session = reader.session(session_id)
        assert session is not None
        body = export_session(reader, session, ledger.pins, at).session
    responses = {(response.node, response.attempt): response.body.encode() for response in body.responses}
    return Model(body, rebuilt_as(body, session_id), event_rows(body, session_id), responses)


def _run(surface: ExecutionSurface, chance: random.Random, number: int) -> str:
    goal = " ".join([f"needle{number}", "common", *chance.choices(WORDS, k=6)])
    fields = _call(surface, "start_workflow", {"workflowId": "bench.task", "context": {"goal": goal}})
    early = [f"deep{number} early"] if number % 10 == 7 else []
    for notes in (*early, " ".join(["newest", "notes", *chance.choices(WORDS, k=20)])):
        tokens: dict[str, Json] = {name: fields[name] for name in ("stateToken", "ackToken")}
        fields = _call(surface, "continue_workflow", {**tokens, "output": {"notesMarkdown": notes}})
    session: Any = fields["session"]
    return str(session["sessionId"])


def _call(surface: ExecutionSurface, tool: str, arguments: dict[str, Json]) -> dict[str, Json]:
    reply = call_tool(surface, tool, arguments, Call(Client("bench")))
    assert isinstance(reply, Reply)
    fields: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(reply.structured))
    return fields


def _checkout(folder: Path, branch: str, sha: str) -> Path:
    head = folder / ".git" / "refs" / "heads" / branch
    head.parent.mkdir(parents=True, exist_ok=True)
    head.write_text(sha)
    (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    return folder


def _copy(tx: Writer, model: Model, session_id: str) -> None:
    rows = model.rows
    for key, text in model.body.pinned_workflows.items():
        tx.add_content(key, seal(text.encode()))
    tx.add_session(replace(rows.session, session_id=session_id))
    tx.add_handle(HandleRow(new_handle(), session_id))
    tx.add_events([replace(event, session_id=session_id) for event in model.events])
    for run in rows.runs:
        tx.add_run(replace(run, session_id=session_id, run_id=run_id(session_id, run.run)))
    for node in rows.nodes:
        tx.add_node(replace(node, session_id=session_id))
    for attempt in rows.attempts:
        response = model.responses[attempt.node, attempt.attempt]
        tx.add_attempt(replace(attempt, session_id=session_id, response=response))
    tx.add_outputs([replace(output, session_id=session_id) for output in rows.outputs])
    for key, value in rows.observations.items():
        tx.set_observation(session_id, key, value)
    if rows.search is not None:
        tx.set_search(replace(rows.search, session_id=session_id))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the data directory to fill")
    parser.add_argument("--sessions", type=int, default=2000)
    options = parser.parse_args()
    seed(options.folder, options.sessions).close()
    print(f"{options.sessions} sessions in {options.folder}")


if __name__ == "__main__":
    main()
