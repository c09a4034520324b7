"""The official Node clients as oracles: the one that most agents use, and its successor."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from support.node_clients import NodeClients, node
from support.stdio_pipe import ECHO

__all__ = ["node"]

pytestmark = pytest.mark.slow


def told(node: NodeClients, flavour: str, mode: str, action: str) -> Any:
    return msgspec.json.decode(node.run("story.mjs", flavour, mode, action, sys.executable, str(ECHO)))


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
@pytest.mark.parametrize(
    ("flavour", "mode", "era"),
    [
        ("sdk", "default", "handshake"),
        ("client", "default", "handshake"),
        ("client", "auto", "modern"),
    ],
)
def test_the_client_lists_calls_and_asks(
    node: NodeClients, flavour: str, mode: str, era: str, action: str
) -> None:
    heard = told(node, flavour, mode, action)
    answer = {"action": action, "content": {"choice": "yes"} if action == "accept" else {}}
    assert heard["server"] == {"name": "echo", "version": "9.9"}
    assert heard["tools"][:3] == ["echo", "whoami", "recorded"]
    assert heard["echo"] == [[{"type": "text", "text": "grüße"}], {"text": "grüße", "extra": None}]
    who = heard["who"]
    assert (who["name"], who["version"], who["era"], who["can_elicit"]) == ("story", "1", era, True)
    assert heard["refused"] is True
    assert heard["confirm"] == {"asked": "opaque-state", "answers": {"first": answer, "second": answer}}


def test_the_inspector_calls(node: NodeClients) -> None:
    call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]
    printed = node.inspector(sys.executable, str(ECHO), *call)
    assert msgspec.json.decode(printed)["content"] == [{"type": "text", "text": "hello"}]
