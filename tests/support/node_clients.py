"""A Node that is new enough, with the official clients beside it, installed by package name."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import NoReturn

import pytest

from support.paths import TESTS

HERE = TESTS
BUILD = TESTS.parent / "build" / "node"
PACKAGES = {
    "node": "22",
    "@modelcontextprotocol/sdk": "1.32",
    "@modelcontextprotocol/client": "2.4",
    "@modelcontextprotocol/inspector": "2.12",
}
PATIENCE = 300
TOOLS = BUILD / "node_modules" / ".bin"


@pytest.fixture(scope="session")
def node() -> str:
    """A Node that is new enough, with the clients beside it."""
    npm = shutil.which("npm") or _absent("npm is not installed")
    if not all((BUILD / "node_modules" / name).exists() for name in PACKAGES):
        BUILD.mkdir(parents=True, exist_ok=True)
        wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
        command = [npm, "install", "--prefix", str(BUILD), "--no-audit", "--no-fund", *wanted]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            _absent("npm did not answer in time")
        if done.returncode != 0:
            _absent(f"npm could not install the clients: {done.stderr[-300:]}")
    for script in (HERE / "node").glob("*.mjs"):
        shutil.copy(script, BUILD)
    return str(TOOLS / "node")


def _absent(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
