"""Databases of every schema version since the fifth, as SQL text: what an upgrade finds.

A new migration comes with the databases of its version: PYTHONPATH=tests python -m support.stored_databases
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import apsw
import psycopg

from interlock.store.postgres.database import open_store as open_postgres
from interlock.store.postgres.tables import MIGRATIONS as POSTGRES
from interlock.store.sqlite.schema import MIGRATIONS as SQLITE
from interlock.store.sqlite.schema import TABLES
from support import postgres_server
from support.harness import Bench, gate, steps, workflow
from support.navigation_client import opened
from support.paths import TESTS
from support.session_agents import session, write_flow

FOLDER = TESTS / "fixtures" / "databases"
SCHEMA = "stored"
FLOW = workflow(*steps("first"), gate("sure", "yes", "no"), *steps("last"))


def walk(bench: Bench) -> None:
    """Leave runs of three surfaces at work: one at a gate, one in an activity, one in a session."""
    bench.write(FLOW)
    agent = bench.agent()
    agent.start("test.flow", goal="Upgrade the store")
    agent.ack("The first step is done.")
    agent.ack("No answer yet.")
    client = opened(bench)
    client.start()
    client.done("analyze")
    write_flow(bench)
    lead = session(bench)
    lead.call("start_session", agent_id="lead", workflow_id="child")
    lead.go("only")
    bench.pause()


def sqlite_text(path: Path) -> str:
    """Return a file as statements. The words are indexed again from the log, as after a salvage."""
    connection = apsw.Connection(str(path))
    made = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'"
        " AND name NOT LIKE 'words_%' ORDER BY rowid"
    )
    lines = [f"{sql};" for (sql,) in made]
    for table in TABLES:
        names = [str(name) for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        quoted = " || ', ' || ".join(f"quote({name})" for name in names)
        rows = connection.execute(f"SELECT {quoted} FROM {table} ORDER BY rowid")
        lines += [f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values});" for (values,) in rows]
    for name in ("user_version", "application_id"):
        lines.append(f"PRAGMA {name} = {connection.pragma(name)};")
    connection.close()
    return "\n".join([*lines, "UPDATE sessions SET unindexed = 1;", ""])


def restored_sqlite(text: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "interlock.db"
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", 4096)
    connection.pragma("journal_mode", "wal")
    list(connection.execute(text))
    connection.close()
    path.chmod(0o600)


def postgres_text(url: str) -> str:
    """Return a schema as statements, without what a server sets for itself."""
    found = postgres_server.binaries()
    assert found is not None
    command = [str(found / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", "-n", SCHEMA, url]
    dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    left_out = ("--", "SET ", "\\", "SELECT pg_catalog.set_config")
    return "\n".join(line for line in dumped.splitlines() if line and not line.startswith(left_out)) + "\n"


def restored_postgres(text: str) -> str:
    """Make the schema in the server of this test process, and return the URL of it."""
    server = postgres_server.shared_server()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
        connection.execute(text.encode())
    return url_of(server)


def url_of(server: postgres_server.PostgresServer) -> str:
    return f"{server.url}?options={quote(f'-csearch_path={SCHEMA}')}"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "data")
        walk(bench)
        (FOLDER / f"sqlite-v{len(SQLITE)}.sql").write_text(sqlite_text(bench.folder / "interlock.db"))
    server = postgres_server.shared_server()
    url = server.in_schema(SCHEMA)
    with TemporaryDirectory() as folder:
        walk(Bench(Path(folder) / "data", lambda _: open_postgres(url)))
    (FOLDER / f"postgres-v{len(POSTGRES)}.sql").write_text(postgres_text(server.url))


if __name__ == "__main__":
    main()
