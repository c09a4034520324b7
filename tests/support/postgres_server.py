"""A real PostgreSQL of the tests' own: started on demand, in a temporary folder, stopped at exit.

The server refuses to run as root, so as root it is run as the user that its package made.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from interlock.store.portable_sql import OF_A_SESSION
from interlock.store.postgres.database import PostgresStore, open_store

TABLES = (*OF_A_SESSION, "tombstones", "contents", "settings")
URL = "TEST_POSTGRES_URL"
OWNER = "postgres"
MISSING = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "log_min_messages": "fatal",
}


def binaries() -> Path | None:
    """The folder of the newest server that is installed."""
    folders = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    if folders:
        return max(folders, key=lambda path: float(path.parent.name))
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def require_postgres() -> None:
    """Skip where no server is installed; in CI that is an error."""
    if binaries() is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)


class PostgresServer:
    """One server with durable commits. `stop` and `start` keep its data and its port."""

    def __init__(self, **options: str) -> None:
        found = binaries()
        assert found is not None, MISSING
        self._bin = found
        self._owner = OWNER if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="interlock-pg-"))
        if self._owner:
            shutil.chown(self.folder, OWNER, OWNER)
        self.port = _free_port()
        self.url = f"postgresql://{OWNER}@127.0.0.1:{self.port}/postgres"
        self._data, self._options = self.folder / "data", {**OPTIONS, **options}
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self._data), "-U", OWNER, "-A", "trust", "-E", "UTF8", "--no-locale")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, **more: str) -> None:
        """Start the server, this time with some options more."""
        options = {
            **self._options,
            **more,
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._bin / "postgres"), "-D", str(self._data), *arguments]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=self._owner)
        self._wait_until_ready()

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; in mode `immediate` it stops as in a crash."""
        if self._process is not None:
            self._run("pg_ctl", "stop", "-w", "-D", str(self._data), "-m", mode)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def in_schema(self, name: str) -> str:
        """The URL of a store of its own: tables are made in a schema with this name."""
        self.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"')
        return f"{self.url}?options=-csearch_path%3D{name}"

    def empty_database(self, name: str) -> dict[str, str]:
        """Make a database and a role of this name, and return what leads any host in a URL to this server."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.execute(f"DROP ROLE IF EXISTS {name}")
        self.execute(f"CREATE ROLE {name} LOGIN")
        self.execute(f"CREATE DATABASE {name} OWNER {name}")
        return {"PGHOSTADDR": "127.0.0.1", "PGPORT": str(self.port)}

    def dump(self, database: str, target: Path) -> None:
        """Back up a database with PostgreSQL's own means."""
        with target.open("wb") as file:
            dump = [str(self._bin / "pg_dump"), "-d", self._named(database)]
            subprocess.run(dump, stdout=file, check=True, cwd=self.folder, user=self._owner)

    def restore(self, database: str, source: Path) -> None:
        """Replace a database by what was backed up."""
        self.empty_database(database)
        with source.open("rb") as file:
            load = [str(self._bin / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", self._named(database)]
            subprocess.run(
                load, stdin=file, stdout=subprocess.DEVNULL, check=True, cwd=self.folder, user=self._owner
            )

    def _named(self, database: str) -> str:
        return self.url.replace("/postgres", f"/{database}").replace(f"{OWNER}@", f"{database}@")

    def execute(self, sql: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.encode())

    def _wait_until_ready(self) -> None:
        import psycopg

        for _ in range(600):
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise TimeoutError((self.folder / "log").read_text()[-2000:])

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._bin / program), *arguments],
            check=True,
            cwd=self.folder,
            user=self._owner,
            stdout=subprocess.DEVNULL,
        )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@cache
def shared_server() -> PostgresServer:
    """The server of this test process; it is quick, because no test stops it."""
    server = PostgresServer(fsync="off")
    atexit.register(server.remove)
    server.start()
    os.environ[URL] = server.in_schema("kit")
    return server


_emptied: set[Path] = set()


def open_in(folder: Path) -> PostgresStore:
    """Open the store that belongs to a test's folder, also in processes that the test starts.

    Making the tables takes half a second, so the tests of a process share them: a new folder empties them.
    """
    if URL not in os.environ:
        require_postgres()
        shared_server()
    store = open_store(os.environ[URL])
    if shared_server.cache_info().currsize and folder not in _emptied:
        _emptied.add(folder)
        shared_server().execute(
            "SET search_path = kit; " + "; ".join(f"DELETE FROM {table}" for table in TABLES)
        )
    return store
