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
from msgspec.structs import replace

from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.core.values import Json
from interlock.ledger.ids import new_id, run_id
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.indexing import catch_up
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.tokens import new_handle
from interlock.ledger.transfer.store_copy import copy_contents, everything
from interlock.store.protocol import HandleRow, SessionRows, Store
from interlock.store.sqlite.store import open_store
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


def seed(store: Store, count: int, *, indexed: bool = True) -> None:
    """Add this many sessions to a store; index their words, unless nobody will search for them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_bytes(msgspec.json.encode(TASK))
        library = Library([Source("configured", folder)])
        ledger = Ledger(open_store(folder / "data"), Keys(folder), library, Settings())
        models = list(_models(ledger, folder))
        copy_contents(ledger.store, store)
        for first in range(0, count, BATCH):
            with store.writing() as writer:
                for number in range(first, min(first + BATCH, count)):
                    rows = _renamed(models[number % len(models)], new_id("sess"))
                    writer.replace_session(rows)
                    writer.add_handle(HandleRow(new_handle(), rows.session.session_id))
        if indexed:
            catch_up(store, ledger.pins)
        ledger.close()


def _models(ledger: Ledger, folder: Path) -> Iterator[SessionRows]:
    """Yield the rows of real runs."""
    chance = random.Random(7)
    for number in range(MODELS):
        at = NOW - (number * 200 // MODELS) * DAY
        project = _checkout(folder / f"repo{number % 20}", f"topic/{number}", f"{number:07x}" + "0" * 33)
        ledger.settings, ledger.clock = Settings(project=project), lambda at=at: at
        session_id = _run(ExecutionSurface(ledger), chance, number)
        with ledger.store.reading() as reader:
            model = everything(reader, session_id)
        assert model is not None
        yield model.rows


def _renamed(rows: SessionRows, session_id: str) -> SessionRows:
    return SessionRows(
        session=replace(rows.session, session_id=session_id),
        commits=[replace(row, session_id=session_id) for row in rows.commits],
        runs=[replace(row, session_id=session_id, run_id=run_id(session_id, row.run)) for row in rows.runs],
        nodes=[replace(row, session_id=session_id) for row in rows.nodes],
        blocked=[replace(row, session_id=session_id) for row in rows.blocked],
        modes=[replace(row, session_id=session_id) for row in rows.modes],
        observations=rows.observations,
    )


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the data directory to fill")
    parser.add_argument("--sessions", type=int, default=2000)
    options = parser.parse_args()
    store = open_store(options.folder)
    seed(store, options.sessions)
    store.close()
    print(f"{options.sessions} sessions in {options.folder}")


if __name__ == "__main__":
    main()
