"""What a client is told when the server has a bug or its store cannot be used."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from interlock.store.sqlite.store import open_store
from support.paths import FIXTURES
from support.stdio_pipe import Pipe, call, request

STORING = ["execution", "session", "gated", "navigation"]
WITHOUT_STORE = ("list_workflows", "inspect_workflow", "discover", "health_check")
VERSIONS = {"lookup": "2024-11-05"}


def initialized(pipe: Pipe, surface: str) -> Pipe:
    assert "result" in pipe.initialize(protocolVersion=VERSIONS.get(surface, "2025-11-25"))
    return pipe


def calls(pipe: Pipe) -> list[bytes]:
    """A call of every tool, with arguments that fit its schema."""
    tools = pipe.ask(request("list", "tools/list"))["result"]["tools"]
    return [
        request(
            tool["name"], "tools/call", {"name": tool["name"], "arguments": arguments(tool["inputSchema"])}
        )
        for tool in tools
    ]


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value(schema["properties"][name]) for name in schema.get("required", [])}


def value(schema: Mapping[str, Any]) -> Any:
    if "anyOf" in schema:
        return value(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "abc", "array": [], "object": {}, "integer": 1}[schema["type"]]


@pytest.mark.parametrize("surface", [*STORING, "lookup"])
def test_a_bug_is_reported_on_stderr_under_the_reference_in_the_answer(tmp_path: Path, surface: str) -> None:
    command = ("--surface", surface, "--data-dir", str(tmp_path))
    references = []
    with Pipe(*command, script=FIXTURES / "failing_server.py") as pipe:
        lines = calls(initialized(pipe, surface))
        for line in lines:
            answer = pipe.ask(line)
            text = answer["result"]["content"][0]["text"] if "result" in answer else str(answer["error"])
            assert "INTERNAL_ERROR" in str(answer) or answer["error"]["code"] == -32603
            assert "the injected bug" not in str(answer)
            named = re.search("LookupError.*Reference ([0-9a-f]{8}) on the server's stderr", text)
            assert named
            references.append(named[1])
        assert pipe.end() == 0
        assert pipe.rest() == b""
        printed = pipe.stderr.read().decode()
    assert len(set(references)) == len(lines)
    assert re.findall("Reference ([0-9a-f]{8})\nTraceback", printed) == references
    assert printed.count("LookupError: the injected bug") == len(lines)


def damaged(folder: Path) -> Path:
    (folder / "interlock.db").write_bytes(b"This is not a database. " * 500)
    return folder


def a_folder_in_its_place(folder: Path) -> Path:
    (folder / "interlock.db").mkdir()
    return folder


def a_file_above_it(folder: Path) -> Path:
    (folder / "file").write_text("not a folder")
    return folder / "file" / "data"


def too_new(folder: Path) -> Path:
    open_store(folder).close()
    apsw.Connection(str(folder / "interlock.db")).pragma("user_version", 999)
    return folder


STORES: dict[Callable[[Path], Path], tuple[str, str]] = {
    damaged: ("STORE_CORRUPT", "`interlock doctor --repair`"),
    a_folder_in_its_place: ("STORE_UNAVAILABLE", "`interlock doctor`"),
    a_file_above_it: ("STORE_UNAVAILABLE", "`interlock doctor`"),
    too_new: ("STORE_UNAVAILABLE", "`pip install --upgrade interlock`"),
}


def code(answer: Mapping[str, Any]) -> str:
    result = answer["result"]
    fields = result.get("structuredContent") or msgspec.json.decode(result["content"][0]["text"])
    return str(fields.get("code") or fields["error"]["code"])


def uses_store(surface: str, tool: str) -> bool:
    return tool.startswith("nav_") if surface == "navigation" else tool not in WITHOUT_STORE


@pytest.mark.parametrize("surface", STORING)
@pytest.mark.parametrize("broken", STORES, ids=lambda broken: broken.__name__)
def test_a_store_that_cannot_be_opened_is_the_answer_to_every_call_that_uses_it(
    tmp_path: Path, surface: str, broken: Callable[[Path], Path]
) -> None:
    expected, command = STORES[broken]
    with Pipe("mcp", "--surface", surface, "--data-dir", str(broken(tmp_path)), module="interlock") as pipe:
        for line in calls(initialized(pipe, surface)):
            answer = pipe.ask(line)
            if not uses_store(surface, answer["id"]):
                assert "STORE_" not in answer["result"]["content"][0]["text"]
                continue
            assert (answer["id"], code(answer)) == (answer["id"], expected)
            assert answer["result"]["isError"]
            assert command in answer["result"]["content"][0]["text"]
        assert pipe.end() == 0
        assert pipe.stderr.read() == b""


def test_a_store_that_was_put_right_is_used_by_the_next_call(tmp_path: Path) -> None:
    with Pipe("mcp", "--data-dir", str(damaged(tmp_path)), module="interlock") as pipe:
        pipe.initialize()
        assert code(pipe.ask(call(1, "start_session"))) == "STORE_CORRUPT"
        (tmp_path / "interlock.db").unlink()
        assert pipe.ask(call(2, "start_session"))["result"]["structuredContent"]["kind"] == "ok"


def test_lookup_needs_no_store(tmp_path: Path) -> None:
    command = ("mcp", "--surface", "lookup", "--data-dir", str(damaged(tmp_path)))
    with Pipe(*command, module="interlock") as pipe:
        answer = initialized(pipe, "lookup").ask(request(1, "workflow_list"))
        assert answer["result"]["workflows"]
