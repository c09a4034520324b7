"""What all tests share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from support.chromium import chromium as chromium  # noqa: PLC0414 (a fixture)
from support.corpus import ABSENT
from support.harness import Bench
from support.paths import CORPUS
from support.proof import FULL, line

# No law depends on how fast the machine is at the moment: neither a deadline nor slow data fails a test.
ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.register_profile("fixed", ANY_MACHINE, derandomize=True)
settings.register_profile("random", ANY_MACHINE, max_examples=1000)
settings.load_profile("random" if FULL else "fixed")
if not FULL:
    # A search by a fixed seed must not depend on which modules happen to be loaded: no constants of theirs.
    providers._get_local_constants = lambda: providers._local_constants

STARTING = {
    f"support.{name}"
    for name in (
        "cli_process",
        "http_server",
        "node_clients",
        "postgres_server",
        "replicas",
        "server",
        "stdio_pipe",
    )
}
LAWS = "hypothesis"  # the mark that Hypothesis gives to its tests
MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3  # bytes free in memory; a run of all tests uses a tenth of it at a time


def pytest_configure() -> None:
    """Keep the files of tests in memory where there is room: most of their time is waiting for the disk."""
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and _is_fit(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def _is_fit(folder: Path) -> bool:
    """Say whether a folder has room for the files of tests, and lets the scripts among them run."""
    return shutil.disk_usage(folder).free > ROOM and not os.statvfs(folder).f_flag & os.ST_NOEXEC


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture(scope="session")
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip(ABSENT)
    return CORPUS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow whatever starts real processes: PostgreSQL, and modules that use what starts servers."""
    for item in items:
        used = {getattr(value, "__module__", "") for value in vars(getattr(item, "module", None)).values()}
        if "postgres" in item.name or not used.isdisjoint(STARTING):
            item.add_marker("slow")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what `make proof` says about the laws."""
    if FULL and terminalreporter.config.option.markexpr == LAWS:
        print(line("laws", searched=len(terminalreporter.getreports("passed"))))


@pytest.fixture(scope="session", autouse=True)
def _own_environment() -> Iterator[None]:
    """No test sees the user's own settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("INTERLOCK_")]:
            patch.delenv(name)
        yield
