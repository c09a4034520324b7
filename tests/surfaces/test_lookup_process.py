"""Every example of the lookup document, and every kind of bad line, over a pipe to the real process."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import msgspec
import pytest

from support.paths import FIXTURES
from support.stdio_pipe import PATIENCE, Pipe, encoded, notification, request

SERVER = FIXTURES / "lookup_server.py"

INITIALIZE = {
    "protocolVersion": "2024-11-05",
    "capabilities": {"tools": {}},
    "clientInfo": {"name": "claude-desktop", "version": "1.0.0"},
}
WELCOME = {
    "protocolVersion": "2024-11-05",
    "capabilities": {
        "tools": {"listChanged": False, "notifyProgress": False},
        "resources": {"listChanged": False},
    },
    "serverInfo": {
        "name": "workflowlookup",
        "version": "1.0.0",
        "description": "Workflow Orchestration System MCP Server",
    },
}
ABOUT = "Guides through task understanding → planning → implementation → verification"
UNDERSTAND = {
    "id": "understand",
    "title": "Deep understanding of task and codebase",
    "prompt": "Analyze the task description...",
    "requireConfirmation": True,
}
TASK = {
    "id": "ai-task-implementation",
    "name": "AI Task Prompt Workflow",
    "description": ABOUT,
    "version": "1.0.0",
    "category": "development",
    "preconditions": ["Task description is clear and complete"],
    "steps": [UNDERSTAND],
}
ID = {"type": "string", "pattern": "^[a-z0-9-]+$", "minLength": 3, "maxLength": 64}
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
PSELECT = {"x86_64": "270", "aarch64": "72"}.get(platform.machine())  # the number of the system call


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workflows")
    (folder / "task.json").write_bytes(msgspec.json.encode(TASK))
    (folder / "broken-task.json").write_text('{"id": "broken-task", "steps": 1}')
    return folder


@pytest.fixture
def pipe(folder: Path) -> Iterator[Pipe]:
    with Pipe(str(folder), script=SERVER) as pipe:
        yield pipe


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Pipe]:
    """One process for everything that must leave it as it was."""
    with Pipe(str(folder), script=SERVER) as pipe:
        pipe.ask(request(1, "initialize", INITIALIZE))
        yield pipe
        assert pipe.ask(request("end", "ping")) == {"jsonrpc": "2.0", "id": "end", "result": {}}


def call(id: int, tool: str, arguments: dict[str, Any]) -> bytes:
    return request(id, "tools/call", {"name": tool, "arguments": arguments})


def error(code: int, message: str, **data: Any) -> dict[str, Any]:
    return {"code": code, "message": message, "data": data}


def test_the_complete_handshake_of_the_document(pipe: Pipe) -> None:
    assert pipe.ask(request(1, "initialize", INITIALIZE)) == {"jsonrpc": "2.0", "id": 1, "result": WELCOME}
    listed = pipe.ask(request(2, "tools/list"))
    assert [tool["name"] for tool in listed["result"]["tools"]] == [
        "workflow_list",
        "workflow_get",
        "workflow_next",
        "workflow_validate",
    ]
    answer = pipe.ask(request(3, "workflow_list"))
    assert answer.keys() == {"jsonrpc", "id", "result"}
    entry = {"id": TASK["id"], "name": TASK["name"], "description": ABOUT}
    assert entry | {"category": "development", "version": "1.0.0"} in answer["result"]["workflows"]


def test_initialize_refuses_what_the_document_refuses(pipe: Pipe) -> None:
    other = {**INITIALIZE, "protocolVersion": "2024-10-01"}
    assert pipe.ask(request(1, "initialize", other))["error"] == error(
        -32000,
        "Unsupported protocol version",
        supportedVersions=["2024-11-05"],
        requestedVersion="2024-10-01",
    )
    assert pipe.ask(request(1, "initialize", {"capabilities": {}}))["error"] == error(
        -32602, "Invalid params", details="protocolVersion is required"
    )
    assert pipe.ask(request(2, "workflow_list"))["error"]["code"] == -32000
    assert pipe.ask(request(3, "initialize", INITIALIZE))["result"] == WELCOME


def listed(pipe: Pipe) -> dict[str, Any]:
    return {tool["name"]: tool for tool in pipe.ask(request(2, "tools/list"))["result"]["tools"]}


def test_the_tools_are_listed_as_documented(shared: Pipe) -> None:
    tools = listed(shared)
    assert {name: tool["description"] for name, tool in tools.items()} == {
        "workflow_list": "Lists all available workflows",
        "workflow_get": "Retrieves a specific workflow by ID",
        "workflow_next": "Gets the next step guidance based on workflow state",
        "workflow_validate": "Validates step output against workflow requirements",
    }
    for name, tool in tools.items():
        assert tool.keys() == {"name", "description", "inputSchema", "outputSchema", "examples"}
        assert tool["examples"]["request"]["method"] == name


def test_the_input_schemas_are_the_documented_ones(shared: Pipe) -> None:
    assert {name: tool["inputSchema"] for name, tool in listed(shared).items()} == {
        "workflow_list": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        "workflow_get": {
            "type": "object",
            "properties": {"id": {**ID, "description": "The workflow ID to retrieve"}},
            "required": ["id"],
            "additionalProperties": False,
        },
        "workflow_next": {
            "type": "object",
            "properties": {
                "workflowId": {**ID, "description": "The workflow ID"},
                "currentStep": {**ID, "description": "Current step ID (optional)"},
                "completedSteps": {
                    "type": "array",
                    "description": "Array of completed step IDs",
                    "items": {"type": "string", "pattern": "^[a-z0-9-]+$"},
                    "uniqueItems": True,
                },
                "context": {
                    "type": "object",
                    "description": "Optional execution context for evaluating step conditions. Can contain "
                    "variables like taskScope, userExpertise, complexity, etc.",
                    "additionalProperties": True,
                },
            },
            "required": ["workflowId", "completedSteps"],
            "additionalProperties": False,
        },
        "workflow_validate": {
            "type": "object",
            "properties": {
                "workflowId": {**ID, "description": "The workflow ID"},
                "stepId": {**ID, "description": "The step ID to validate"},
                "output": {**TEXT, "description": "The step output to validate", "minLength": 1},
            },
            "required": ["workflowId", "stepId", "output"],
            "additionalProperties": False,
        },
    }


def test_the_output_schemas_are_the_documented_ones(shared: Pipe) -> None:
    schemas = {name: tool["outputSchema"] for name, tool in listed(shared).items()}
    names = ["id", "name", "description", "category", "version"]
    entry = {"type": "object", "properties": dict.fromkeys(names, TEXT), "required": names}
    assert schemas["workflow_list"] == {
        "type": "object",
        "properties": {"workflows": {"type": "array", "items": entry}},
        "required": ["workflows"],
    }
    assert schemas["workflow_next"] == {
        "type": "object",
        "properties": {
            "step": {"type": "object"},
            "guidance": {"type": "object"},
            "isComplete": {"type": "boolean"},
        },
        "required": ["step", "guidance", "isComplete"],
    }
    assert schemas["workflow_validate"] == {
        "type": "object",
        "properties": {"valid": {"type": "boolean"}, "issues": TEXTS, "suggestions": TEXTS},
        "required": ["valid"],
    }
    assert schemas["workflow_get"]["$ref"] == "workflow.schema.json"


def test_the_examples_are_the_documented_ones(shared: Pipe) -> None:
    entry = {"id": TASK["id"], "name": TASK["name"], "description": ABOUT}
    understand = {
        "id": "understand",
        "title": "Understand the task",
        "prompt": "Analyze the requirements...",
    }
    of_task = {"workflowId": TASK["id"]}
    documented = {
        "workflow_list": (
            {},
            {"workflows": [entry | {"category": "development", "version": "1.0.0"}]},
        ),
        "workflow_get": (
            {"id": TASK["id"]},
            {
                "id": TASK["id"],
                "name": TASK["name"],
                "description": "Complete task implementation with verification",
                "preconditions": TASK["preconditions"],
                "steps": [UNDERSTAND],
            },
        ),
        "workflow_next": (
            {**of_task, "completedSteps": [], "context": {"taskId": "TASK-123"}},
            {
                "step": understand,
                "guidance": {"prompt": "PREP: ... IMPLEMENT: ... VERIFY: ..."},
                "isComplete": False,
            },
        ),
        "workflow_validate": (
            {**of_task, "stepId": "understand", "output": "I have analyzed the requirements."},
            {"valid": True, "issues": [], "suggestions": []},
        ),
    }
    assert {name: tool["examples"] for name, tool in listed(shared).items()} == {
        name: {"request": {"method": name, "params": params}, "response": response}
        for name, (params, response) in documented.items()
    }


def test_the_listed_requests_are_answered(shared: Pipe) -> None:
    """Each example's request, as a method and as a tool call, gets an answer that fits the schema."""
    for name, tool in listed(shared).items():
        asked = tool["examples"]["request"]
        plain = shared.ask(request(3, asked["method"], asked["params"]))["result"]
        jsonschema_rs.validate(tool["outputSchema"], plain)
        through = shared.ask(call(4, name, asked["params"]))["result"]
        assert msgspec.json.decode(through["content"][0]["text"]) == plain
        assert through["structuredContent"] == plain
        assert "isError" not in through


def test_what_the_example_requests_get(shared: Pipe) -> None:
    got = shared.ask(request(1, "workflow_get", {"id": TASK["id"]}))["result"]
    assert {key: got[key] for key in TASK} == TASK
    asked = {"workflowId": TASK["id"], "completedSteps": [], "context": {"taskId": "TASK-123"}}
    offered = shared.ask(request(2, "workflow_next", asked))["result"]
    assert offered["step"] == UNDERSTAND
    assert offered["guidance"] == {
        "prompt": UNDERSTAND["prompt"],
        "requiresConfirmation": True,
        "validationCriteria": [],
    }
    assert offered["isComplete"] is False
    done = shared.ask(request(3, "workflow_next", {**asked, "completedSteps": ["understand"]}))["result"]
    assert (done["step"], done["isComplete"]) == ({}, True)
    output = {"workflowId": TASK["id"], "stepId": "understand", "output": "I have analyzed the requirements."}
    assert shared.ask(request(4, "workflow_validate", output))["result"] == {
        "valid": True,
        "issues": [],
        "suggestions": [],
    }


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("non_existent_tool", {}, error(-32601, "Method not found", method="non_existent_tool")),
        ("workflow_next", {"completedSteps": []},
         error(-32602, "Invalid params", details="workflowId is required")),
        ("workflow_get", {"id": "nonexistent-workflow"},
         error(-32001, "Workflow not found", workflowId="nonexistent-workflow")),
        ("workflow_validate", {"workflowId": TASK["id"], "stepId": "nonexistent-step", "output": "x"},
         error(-32003, "Step not found", stepId="nonexistent-step")),
    ],
)  # fmt: skip
def test_the_errors_of_the_document(
    shared: Pipe, method: str, params: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert shared.ask(request(6, method, params)) == {"jsonrpc": "2.0", "id": 6, "error": expected}
    assert shared.ask(call(7, method, params)) == {"jsonrpc": "2.0", "id": 7, "error": expected}


def test_a_broken_workflow_is_named_with_its_place(shared: Pipe) -> None:
    refused = shared.ask(request(1, "workflow_get", {"id": "broken-task"}))["error"]
    assert (refused["code"], refused["message"]) == (-32002, "Invalid workflow")
    assert refused["data"]["workflowId"] == "broken-task"
    assert refused["data"]["details"].startswith("broken-task.json:1:")


@pytest.mark.parametrize("params", [None, {}])
def test_the_list_takes_no_parameters_or_null(shared: Pipe, params: Any) -> None:
    line = encoded({"jsonrpc": "2.0", "id": 1, "method": "workflow_list", "params": params})
    assert shared.ask(line)["result"]["workflows"]


def test_a_workflow_is_checked_by_a_method_that_is_not_listed(shared: Pipe) -> None:
    bad = {"workflowJson": '{\n  "id": }'}
    plain = shared.ask(request(1, "workflow_validate_json", bad))["result"]
    assert plain["valid"] is False
    assert plain["issues"][0].startswith("line 2, column ")
    assert shared.ask(call(2, "workflow_validate_json", bad))["result"]["structuredContent"] == plain
    assert shared.ask(request(3, "workflow_validate_json", {}))["error"]["code"] == -32602


DEEP = (
    b'{"jsonrpc":"2.0","id":1,"method":"workflow_list","params":' + b'{"a":' * 200_000 + b"1" + b"}" * 200_001
)
NESTED = {"workflowId": TASK["id"], "completedSteps": [], "context": {"a": [[[[{"b": [None]}]]]]}}


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        (b"garbage\n", None, -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "workf\n', None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff\xfe"}}\n', 1, -32700),
        (b'{"a":"' + b"x" * (8 * 1024 * 1024 + 1) + b'"}\n', None, -32700),
        (request(7, "workflow_get", {"id": "x" * (8 * 1024 * 1024)}), 7, -32700),
        (DEEP + b"\n", None, -32700),
        (b"[]\n", None, -32600),
        (b"5\n", None, -32600),
        (b"null\n", None, -32600),
        (b'"text"\n', None, -32600),
        (b"{}\n", None, -32600),
        (encoded({"jsonrpc": "1.0", "id": 7, "method": "workflow_list"}), 7, -32600),
        (encoded({"id": 7, "method": "workflow_list"}), 7, -32600),
        (encoded({"jsonrpc": "2.0", "id": 7}), 7, -32600),
        (encoded({"jsonrpc": "2.0", "id": 7, "method": 5}), 7, -32600),
        (encoded({"jsonrpc": "2.0", "id": 7, "method": None}), 7, -32600),
        (encoded({"jsonrpc": "2.0", "id": [7], "method": "workflow_list"}), None, -32600),
        (encoded({"jsonrpc": "2.0", "id": True, "method": "workflow_list"}), None, -32600),
        (encoded({"jsonrpc": "2.0", "id": 7, "method": "workflow_list", "params": [1]}), 7, -32600),
        (encoded({"jsonrpc": "2.0", "id": 7, "method": "workflow_get", "params": None}), 7, -32602),
        (encoded({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}}), 7, -32602),
        (request(7, "tools/call", {"name": "workflow_get", "arguments": []}), 7, -32602),
        (request(7, "tools/call", {"name": None}), 7, -32602),
        (request(7, "workflow_next", {**NESTED, "context": {"a": "\0"}}), 7, -32602),
    ],
    ids=range(24),
)
def test_a_bad_line_gets_its_error_and_the_server_goes_on(
    shared: Pipe, line: bytes, id: Any, code: int
) -> None:
    answer = shared.ask(line)
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", id, code)
    assert shared.ask(request("next", "workflow_next", NESTED))["result"]["step"]["id"] == "understand"


@pytest.mark.parametrize("id", [0, -1, 2**53, 1.5, "one", "", None])
def test_any_id_comes_back_as_it_was(shared: Pipe, id: Any) -> None:
    assert shared.ask(encoded({"jsonrpc": "2.0", "id": id, "method": "ping"}))["id"] == id


def test_a_call_without_an_id_gets_no_answer(shared: Pipe) -> None:
    shared.send(notification("workflow_list"), notification("notifications/initialized"))
    assert shared.ask(request("only", "ping"))["id"] == "only"


def test_a_line_may_come_in_pieces(shared: Pipe) -> None:
    line = request(5, "workflow_get", {"id": TASK["id"]})
    shared.send(line[:10], line[10:40])
    assert shared.ask(line[40:])["id"] == 5


def test_it_answers_in_order_and_leaves_after_shutdown(pipe: Pipe) -> None:
    pipe.send(request(0, "initialize", INITIALIZE))
    pipe.send(*(request(number, "workflow_get", {"id": TASK["id"]}) for number in range(1, 20)))
    pipe.send(encoded({"jsonrpc": "2.0", "id": 99, "method": "shutdown", "params": {}}))
    assert [pipe.read()["id"] for _ in range(20)] == list(range(20))
    assert pipe.read() == {"jsonrpc": "2.0", "id": 99, "result": None}
    assert pipe.process.wait(PATIENCE) == 0


def test_it_writes_nothing_but_its_cache(folder: Path, tmp_path: Path) -> None:
    """Rule 34, of the command that people install."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    command = ("mcp", "--surface", "lookup", "--workflows", str(folder), "--data-dir", str(tmp_path))
    with Pipe(*command, module="interlock") as pipe:
        pipe.ask(request(1, "initialize", INITIALIZE))
        assert pipe.ask(request(2, "workflow_next", NESTED))["result"]["step"] == UNDERSTAND
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def converse(folder: Path, story: Any) -> None:
    """Tell a story to the official client, over its own pipe."""
    import mcp
    from mcp.client.stdio import stdio_client

    async def run() -> None:
        server = mcp.StdioServerParameters(command=sys.executable, args=[str(SERVER), str(folder)])
        async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await story(session)

    anyio.run(run)


@pytest.mark.slow
def test_the_official_client_is_told_which_version_is_spoken(folder: Path) -> None:
    """It offers a newer version than the document's one, and the document says to refuse that."""
    import mcp

    async def story(session: mcp.ClientSession) -> None:
        with pytest.raises(mcp.MCPError) as refused:
            await session.initialize()
        assert refused.value.error.code == -32000
        assert refused.value.error.data["supportedVersions"] == ["2024-11-05"]

    converse(folder, story)


@pytest.mark.slow
def test_the_official_client_is_at_home_in_the_documented_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It validates every answer against the listed schemas, references included."""
    import mcp

    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", "2024-11-05")

    async def story(session: mcp.ClientSession) -> None:
        welcome = await session.initialize()
        assert welcome.server_info.name == "workflowlookup"
        assert len((await session.list_tools()).tools) == 4
        for name, arguments in (
            ("workflow_list", {}),
            ("workflow_get", {"id": "wr-feature"}),
            ("workflow_get", {"id": "work-package"}),
            ("workflow_next", {"workflowId": "wr-feature", "completedSteps": []}),
        ):
            assert (await session.call_tool(name, arguments)).structured_content
        with pytest.raises(mcp.MCPError) as refused:
            await session.call_tool("workflow_get", {"id": "none-such"})
        assert refused.value.error.code == -32001

    converse(folder, story)


def timed_waits(pid: int) -> list[str]:
    """Return what the threads of a process do, other than to wait for input without a time limit."""
    calls = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/syscall")]
    return [call for call in calls if call.split()[0] != PSELECT or call.split()[5] != "0x0"]


@pytest.mark.skipif(
    PSELECT is None or not Path("/proc/self/syscall").exists(),
    reason="needs a system that shows which call a process waits in",
)
def test_an_idle_server_waits_for_input_without_a_time_limit(shared: Pipe) -> None:
    """No timer runs, so what happens after a second of silence also happens after a week."""
    shared.ask(request(1, "workflow_list"))
    deadline = time.monotonic() + PATIENCE
    while timed_waits(shared.process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert timed_waits(shared.process.pid) == []
    assert shared.ask(request(2, "workflow_next", NESTED))["result"]["step"]["id"] == "understand"
