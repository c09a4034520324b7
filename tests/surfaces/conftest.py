"""Fixtures that several tests of a surface share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.lookup_client import Ask, document, lookup_client, save


@pytest.fixture
def ask_about(tmp_path: Path) -> Callable[..., Ask]:
    """Write one workflow of some steps, and return a client of the lookup surface that knows it."""
    return lambda *steps, **fields: lookup_client(save(tmp_path, document(*steps, **fields)))
