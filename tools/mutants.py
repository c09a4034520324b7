"""Break the store on purpose, one promise at a time, and show that the suite notices each.

    python -m tools.mutants

Each mutant is made in a copy of the sources, so that nothing here is changed. A mutant that survives is a
promise that no test holds: the exit code is then 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

ROOT = Path(__file__).parent.parent
IGNORED = shutil.ignore_patterns("__pycache__", "node_modules")
COPIED = ("src", "tests", "tools", "bench", "pyproject.toml")


class Mutant(Struct, frozen=True):
    """One broken promise: what is replaced, and the tests that must notice."""

    promise: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        "an answer is sent after its events are on disk: drop the fsync",
        "src/interlock/store/sqlite/store.py",
        'connection.pragma("synchronous", "full")\n    connection.pragma("wal_autocheckpoint", 0)',
        'connection.pragma("synchronous", "off")\n    connection.pragma("wal_autocheckpoint", 0)',
        ("tests/ledger/test_power_loss.py", "tests/store/test_store_sqlite.py"),
    ),
    Mutant(
        "the head that was read is still the head: skip the compare-and-set",
        "src/interlock/store/sqlite/statements.py",
        "if self._connection.changes() != 1:",
        "if False:",
        ("tests/store/test_store.py",),
    ),
    Mutant(
        "the same on PostgreSQL",
        "src/interlock/store/postgres/appending.py",
        "WHERE session_id = $1 AND head_digest = $2",
        "WHERE session_id = $1 AND $2::bytea IS NOT NULL",
        ("tests/store/test_store.py",),
    ),
    Mutant(
        "a command has one key in its session: forget the key",
        "src/interlock/ledger/log/commit.py",
        "self.principal, self._entries, self.now, key)",
        "self.principal, self._entries, self.now, None)",
        ("tests/ledger", "tests/surfaces/test_execution.py"),
    ),
    Mutant(
        "a start has one key: forget the request id",
        "src/interlock/ledger/repeatable.py",
        "    if known is None:\n        return start",
        "    if known is not None:\n        return start\n    if known is None:\n        return start",
        ("tests/surfaces/test_repeated_starts.py",),
    ),
    Mutant(
        "the answer of a start is checked whenever it is read: believe it",
        "src/interlock/ledger/repeatable.py",
        "    if known.digest != start_digest(known) or not known.response:",
        "    if not known.response:",
        ("tests/surfaces/test_repeated_starts.py",),
    ),
    Mutant(
        "a commit whose answer was lost is looked for: take it for stored",
        "src/interlock/store/postgres/database.py",
        "        if stored is None:",
        "        if False:",
        ("tests/store/test_store_postgres.py",),
    ),
    Mutant(
        "a session is advanced from its own last commit: accept a stale head",
        "src/interlock/ledger/log/health.py",
        "    if last.last != session.head_index or last.digest != session.head_digest:",
        "    if False:",
        ("tests/ledger/test_damage.py",),
    ),
    Mutant(
        "a lost log is missed: forget the witness",
        "src/interlock/store/sqlite/store.py",
        "                self.witness.note(self._writer.heads)\n",
        "",
        ("tests/store/test_witness.py",),
    ),
    Mutant(
        "a session is its owner's: load any",
        "src/interlock/ledger/runs/positions.py",
        "return loaded if loaded is not None and loaded.session.owner == self.owner else None",
        "return loaded",
        ("tests/ledger/test_owners.py",),
    ),
)


def main() -> None:
    alive = [mutant for mutant in MUTANTS if not killed(mutant)]
    print(f"{len(MUTANTS) - len(alive)} of {len(MUTANTS)} mutants were noticed")
    sys.exit(bool(alive))


def killed(mutant: Mutant) -> bool:
    """Make the mutant in a copy of the project, and run the tests that must notice it."""
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=IGNORED)
            else:
                shutil.copy(source, copy / name)
        file = copy / mutant.file
        text = file.read_text()
        if text.count(mutant.before) != 1:
            raise SystemExit(f"{mutant.file} has changed: '{mutant.before}' is not in it once")
        file.write_text(text.replace(mutant.before, mutant.after))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            *mutant.tests,
        ]
        environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy / 'tests'}"}
        ran = subprocess.run(
            command, cwd=copy, env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
    lines = ran.stdout.splitlines()
    failed = [line.split(maxsplit=1)[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    print(f"{'noticed ' if failed else 'SURVIVED'}  {mutant.promise}")
    for name in failed[:1]:
        print(f"          by {name.split(' - ')[0]}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    main()
