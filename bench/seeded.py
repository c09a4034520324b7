"""Fill a store with many sessions, each with a whole log: real runs, copied under other ids by the database.

    python -m bench.seeded FOLDER [--sessions 2000]

Events name ordinals (rule 4), so a copy needs another session id in its rows and nothing else: its chain
verifies, its tokens work, and `interlock doctor` finds nothing wrong with it.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.core.values import Json
from interlock.ledger.ids import new_id, run_id
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.records import OutputAppended
from interlock.ledger.queries.indexing import catch_up
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.tokens import new_handle
from interlock.ledger.transfer.store_copy import copy_store
from interlock.store.protocol import Reader, Store
from interlock.store.sqlite.schema import TIPS
from interlock.store.sqlite.store import SqliteStore, open_store
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.tool import call_tool

MODELS = 200
BATCH = 20_000
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
COPIED = ("commits", "nodes", "runs", "observations", "sessions")  # tables that a model has rows in

Copy = tuple[str, str, str, bytes]


def seed(store: Store, count: int) -> None:
    """Add this many sessions to a store, with the words that they are found by."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_bytes(msgspec.json.encode(TASK))
        library = Library([Source("configured", folder)])
        ledger = Ledger(open_store(folder / "data"), Keys(folder), library, Settings())
        models = list(_models(ledger, folder, min(count, MODELS)))
        for copied in copy_store(ledger.store, store):
            assert copied.outcome == "copied", copied
        catch_up(store, ledger.pins)
        ledger.close()
    left = count - len(models)
    for first in range(0, left, BATCH):
        copies = [_copy(models[number % len(models)]) for number in range(first, min(first + BATCH, left))]
        copies.sort(key=lambda copy: copy[1])  # in the order of the keys, which is quicker by far
        if isinstance(store, SqliteStore):
            _copy_on_sqlite(store, copies)
        else:
            _copy_on_postgres(store, copies)


def _models(ledger: Ledger, folder: Path, count: int) -> Iterator[str]:
    """Run the models, real ones, and yield the ids of their sessions."""
    chance = random.Random(7)
    for number in range(count):
        at = NOW - (number * 200 // MODELS) * DAY
        project = _checkout(folder / f"repo{number % 20}", f"topic/{number}", f"{number:07x}" + "0" * 33)
        ledger.settings, ledger.clock = Settings(project=project), partial(int, at)
        yield _run(ExecutionSurface(ledger), chance, number)


def _copy(model: str) -> Copy:
    session_id = new_id("sess")
    return model, session_id, run_id(session_id, 0), new_handle()


def _copy_on_sqlite(store: SqliteStore, copies: list[Copy]) -> None:
    with store.writing() as writer:
        connection = writer._connection
        connection.execute("CREATE TEMP TABLE copies (model TEXT, session_id TEXT, run_id TEXT, handle BLOB)")
        connection.executemany("INSERT INTO copies VALUES (?, ?, ?, ?)", copies)
        for table in COPIED:
            names = [str(name) for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            connection.execute(_insertion(table, names))
        connection.execute("INSERT INTO handles SELECT handle, session_id, '' FROM copies")
        connection.execute(
            "INSERT INTO search (session_id, owner, title, notes, workflows, indexed_to)"
            " SELECT c.session_id, owner, title, notes, workflows, indexed_to"
            " FROM copies AS c JOIN search AS m ON m.session_id = c.model"
        )
        connection.execute(
            f"INSERT INTO words (rowid, title, notes, workflows) SELECT id + {TIPS}, title, notes, workflows"
            " FROM search JOIN copies USING (session_id)"
        )
        outputs = {model: _outputs(writer, model) for model in {copy[0] for copy in copies}}
        for model, session_id, *_ in copies:
            for text in outputs[model]:
                connection.execute(
                    "INSERT INTO indexed_outputs (session_id, owner) VALUES (?, 'local')", (session_id,)
                )
                added = connection.last_insert_rowid()
                connection.execute("INSERT INTO words (rowid, notes) VALUES (?, ?)", (added, text))
        connection.execute("DROP TABLE copies")


def _copy_on_postgres(store: Store, copies: list[Copy]) -> None:
    with store.writing() as writer:
        connection: Any = writer._connection  # type: ignore[attr-defined]
        connection.execute("SET LOCAL statement_timeout = 0", prepare=False)
        connection.execute(
            "CREATE TEMP TABLE copies"
            " (model text, session_id text, run_id text, handle bytea) ON COMMIT DROP",
            prepare=False,
        )
        with connection.cursor().copy("COPY copies FROM STDIN") as rows:
            for copy in copies:
                rows.write_row(copy)
        for table in (*COPIED, "search", "indexed_outputs"):
            listed = connection.execute(
                "SELECT column_name FROM information_schema.columns"
                f" WHERE table_name = '{table}' AND table_schema = current_schema()"
                " ORDER BY ordinal_position"
            )
            connection.execute(_insertion(table, [name for (name,) in listed.fetchall()]), prepare=False)
        connection.execute("INSERT INTO handles SELECT handle, session_id, '' FROM copies", prepare=False)


def _insertion(table: str, names: list[str]) -> str:
    """Write the statement that copies the models' rows of a table under other ids, made or indexed now."""
    names = [name for name in names if name not in ("indexed_at", "observed_at")]
    own = {"session_id": "c.session_id", "run_id": "c.run_id"}
    values = ", ".join(own.get(name, f"m.{name}") for name in names)
    source = f"copies AS c JOIN {table} AS m ON m.session_id = c.model"
    return f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {source}"


def _outputs(reader: Reader, session_id: str) -> list[str]:
    entries = [entry.event for row in reader.commits(session_id) for entry in entries_of(row)]
    return [event.notes for event in entries if isinstance(event, OutputAppended)]


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
