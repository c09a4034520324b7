"""A store that is set back: the tables of either engine as they were when a copy was made."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from support import postgres_server
from support.harness import Bench

COPY = "copy_of_kit"


class SqliteCopies:
    """A data directory, copied and restored as a whole while nobody uses it."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder / "data")
        self._copy = folder / "copy"

    def copy(self) -> None:
        self.bench.pause()
        shutil.copytree(self.bench.folder, self._copy)

    def restore(self) -> None:
        self.bench.pause()
        shutil.rmtree(self.bench.folder)
        shutil.copytree(self._copy, self.bench.folder)

    def change(self, statement: str) -> None:
        """Change the tables as no part of Interlock would."""
        connection = apsw.Connection(str(self.bench.folder / "interlock.db"))
        connection.execute(f"DROP TRIGGER IF EXISTS commits_stay; {statement}")
        connection.close()


class PostgresCopies:
    """The tables of the shared server, copied and restored under a live store."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder / "data", postgres_server.open_in)

    def copy(self) -> None:
        tables = [f"CREATE TABLE {COPY}.{name} AS TABLE kit.{name}" for name in postgres_server.TABLES]
        self._run(f"DROP SCHEMA IF EXISTS {COPY} CASCADE", f"CREATE SCHEMA {COPY}", *tables)

    def restore(self) -> None:
        for name in postgres_server.TABLES:
            self._run(f"DELETE FROM kit.{name}", f"INSERT INTO kit.{name} SELECT * FROM {COPY}.{name}")

    def change(self, statement: str) -> None:
        """Change the tables as no part of Interlock would."""
        self._run("SET search_path = kit", statement)

    def _run(self, *statements: str) -> None:
        postgres_server.shared_server().execute("; ".join(statements))


Copies = SqliteCopies | PostgresCopies
COPIES = {"sqlite": SqliteCopies, "postgres": PostgresCopies}
