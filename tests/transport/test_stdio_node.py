"""The official Node clients as oracles: the one that most agents use, and its successor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.node_clients import BUILD, TOOLS, node
from support.stdio_pipe import ECHO

__all__ = ["node"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("node")]  # one install of the clients


def told(node: str, flavour: str, mode: str, action: str) -> Any:
    command = [node, str(BUILD / "story.mjs"), flavour, mode, action, sys.executable, str(ECHO)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return msgspec.json.decode(done.stdout)


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
@pytest.mark.parametrize(
    ("flavour", "mode", "era"),
    [
        ("sdk", "default", "handshake"),
        ("client", "default", "handshake"),
        ("client", "auto", "modern"),
    ],
)
def test_the_client_lists_calls_and_asks(node: str, flavour: str, mode: str, era: str, action: str) -> None:
    heard = told(node, flavour, mode, action)
    answer = {"action": action, "content": {"choice": "yes"} if action == "accept" else {}}
    assert heard["server"] == {"name": "echo", "version": "9.9"}
    assert heard["tools"][:3] == ["echo", "whoami", "recorded"]
    assert heard["echo"] == [[{"type": "text", "text": "grüße"}], {"text": "grüße", "extra": None}]
    assert heard["who"] == {"name": "story", "version": "1", "era": era, "can_elicit": True}
    assert heard["refused"] is True
    assert heard["confirm"] == {"asked": "opaque-state", "answers": {"first": answer, "second": answer}}


def test_the_inspector_calls(node: str) -> None:
    inspector = [str(TOOLS / "mcp-inspector"), "--cli", sys.executable, str(ECHO)]
    asked = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]
    path = f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*inspector, *asked], capture_output=True, timeout=60, check=True, env={**os.environ, "PATH": path}
    )
    assert msgspec.json.decode(done.stdout)["content"] == [{"type": "text", "text": "hello"}]
