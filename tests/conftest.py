"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.harness import Bench
from support.paths import CORPUS


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real workflow files is not beside this checkout")
    return CORPUS


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's own data or settings."""
    for name in ("INTERLOCK_DATA_DIR", "INTERLOCK_STORE", "INTERLOCK_KEYRING", "INTERLOCK_MODE"):
        monkeypatch.delenv(name, raising=False)
