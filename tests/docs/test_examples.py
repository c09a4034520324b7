"""The examples run as they are: each starts a server, walks a workflow and answers its gate."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.http_server import require_serve
from support.node_clients import NodeClients, node
from support.paths import ROOT

__all__ = ["node"]

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples"
PRINTED = ["- write", "- approve", "? Is the greeting good to send? → yes", "- send", "complete"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
def test_the_python_client(mode: str) -> None:
    require_serve()
    command = [sys.executable, str(EXAMPLES / "python_client.py"), mode]
    done = subprocess.run(command, capture_output=True, check=True, timeout=180)
    assert done.stdout.decode().splitlines() == PRINTED


def test_the_node_client(node: NodeClients) -> None:
    require_serve()
    shutil.copy(EXAMPLES / "node_client.mjs", node.folder)
    script = Path(sys.executable).with_name("interlock")
    printed = node.run("node_client.mjs", str(script), str(EXAMPLES / "workflows"))
    assert printed.decode().splitlines() == PRINTED
