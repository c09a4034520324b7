"""The same scripted runs through stdio and HTTP, in both eras: the same results, refusals and notices."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from support.harness import Bench, decision, gate, steps, workflow
from support.http_server import HttpServer, serving

MODES = ["legacy", "2026-07-28"]
VOLATILE = [
    (re.compile(r"\b(st|ack|chk|ses|sst|trc)\.v1\.[A-Za-z0-9_-]+"), r"\1.v1.TOKEN"),
    (re.compile(r"v1\.gzB64\.[A-Za-z0-9+/=_-]+"), "v1.gzB64.TOKEN"),
    (re.compile(r"\bsess_[a-z0-9]+"), "sess_ID"),
    (re.compile(r"\brun_[a-z0-9_]+"), "run_ID"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[0-9:.]+(Z|\+00:00)"), "TIME"),
    (re.compile(r"\b1[78]\d{11}\b"), "MILLISECONDS"),
    (re.compile(r'"(uptime|uptime_seconds|duration_ms|ms|dur|ts)": ?[0-9.]+'), r'"\1":NUMBER'),
]

CallTool = Callable[..., Awaitable[Any]]
Script = Callable[[CallTool], Awaitable[None]]


async def execution(call: CallTool) -> None:
    await call("list_workflows")
    await call("inspect_workflow", workflowId="test.flow")
    started = await call("start_workflow", workflowId="test.flow", context={"goal": "the same"})
    tokens = {"stateToken": started["stateToken"], "ackToken": started["ackToken"]}
    await call(
        "checkpoint_workflow",
        stateToken=tokens["stateToken"],
        checkpointToken=started["checkpointToken"],
        output={"notesMarkdown": "half way"},
    )
    at_gate = await call("continue_workflow", **tokens, output={"notesMarkdown": "done"})
    await call("continue_workflow", **tokens, output={"notesMarkdown": "something else"})
    await call("continue_workflow", stateToken=tokens["stateToken"])
    tokens = {"stateToken": at_gate["stateToken"], "ackToken": at_gate["ackToken"]}
    blocked = await call("continue_workflow", **tokens)
    tokens["ackToken"] = blocked["ackToken"] if "ackToken" in blocked else blocked["retryAckToken"]
    last = await call("continue_workflow", **tokens, output={"artifacts": [decision("which", "left")]})
    await call("continue_workflow", stateToken=last["stateToken"], ackToken=last["ackToken"])
    await call("start_workflow", workflowId="nothing.here")
    await call("start_workflow", workflowId=7)
    await call("continue_workflow", stateToken=last["stateToken"][:-1] + "x", ackToken=last["ackToken"])
    await call("start_session", title="nul \0 inside")


async def session(call: CallTool) -> None:
    await call("discover")
    await call("list_workflows")
    started = await call("start_session", workflow_id="test.flow", agent_id="worker-1")
    token = {"session_token": _token(started)}
    await call("get_workflow", **token)
    entered = await call("next_activity", **token, activity_id="main")
    token = {"session_token": _token(entered) or token["session_token"]}
    await call("get_activity", **token)
    await call("next_activity", **token, activity_id="__terminal__")
    await call("yield_checkpoint", **token, checkpoint_id="which")
    await call("get_skill", **token)
    await call("get_workflow_status", **token)
    await call("next_activity", session_token="nonsense", activity_id="main")


async def gated(call: CallTool) -> None:
    await call("discover")
    started = await call("start_session", workflow_id="test.flow")
    token = {"session_token": _token(started)}
    await call("get_workflow", **token)
    entered = await call("next_activity", **token, activity_id="main")
    token = {"session_token": _token(entered) or token["session_token"]}
    await call("next_activity", **token, activity_id="__terminal__")
    await call("respond_checkpoint", **token, checkpoint_id="which", option_id="left")
    await call("respond_checkpoint", **token, checkpoint_id="which", option_id="up")


async def navigation(call: CallTool) -> None:
    await call("get_activities")
    started = await call("nav_start", workflow_id="test.flow", initial_variables={"goal": "x"})
    state = started["state"]
    await call("nav_situation", state=state)
    done = await call("nav_action", state=state, action="complete_step", step_id="first")
    await call("nav_action", state=done.get("state", state), action="complete_step", step_id="nothing")
    await call("nav_checkpoint", state=done.get("state", state))
    await call("nav_situation", state="v1.gzB64.nonsense")


LOOKUPS: list[tuple[str, dict[str, Any]]] = [
    ("workflow_list", {}),
    ("workflow_get", {"id": "test-flow"}),
    ("workflow_next", {"workflowId": "test-flow", "completedSteps": []}),
    ("workflow_next", {"workflowId": "test-flow", "completedSteps": ["first", "which"]}),
    ("workflow_next", {"workflowId": "nothing-here", "completedSteps": []}),
    ("workflow_get", {"id": 7}),
]


SCRIPTS: dict[str, Script] = {
    "execution": execution,
    "session": session,
    "gated": gated,
    "navigation": navigation,
}


def _token(answer: Any) -> str:
    found = re.search(r"ses\.v1\.[A-Za-z0-9_-]+", answer.get("_text", ""))
    return found.group() if found else ""


@pytest.fixture(scope="module")
def workflows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bench = Bench(tmp_path_factory.mktemp("workflows"))
    bench.write(workflow(*steps("first"), gate("which", "left", "right"), *steps("last")))
    return bench.workflows


@pytest.fixture(scope="module")
def server(workflows: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("served"), "--workflows", str(workflows)) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("surface", list(SCRIPTS))
def test_both_transports_answer_alike(
    server: HttpServer, workflows: Path, tmp_path: Path, surface: str, mode: str
) -> None:
    from mcp import StdioServerParameters

    arguments = ["-m", "interlock", "mcp", "--surface", surface, "--data-dir", str(tmp_path)]
    stdio = StdioServerParameters(command=sys.executable, args=[*arguments, "--workflows", str(workflows)])
    targets = (stdio, f"{server.url}/mcp/{surface}")
    heard = [anyio.run(_heard, target, mode, SCRIPTS[surface]) for target in targets]
    assert heard[0]
    assert heard[1] == heard[0]


@pytest.mark.parametrize("mode", MODES)
def test_lookup_answers_over_http_as_its_strict_profile_does_over_stdio(
    server: HttpServer, workflows: Path, tmp_path: Path, mode: str
) -> None:
    async def script(call: CallTool) -> None:
        for tool, arguments in LOOKUPS:
            await call(tool, **arguments)

    version = {"protocolVersion": "2024-11-05", "capabilities": {}}
    calls = [("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in LOOKUPS]
    requests = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate([("initialize", version), *calls])
    ]
    command = [sys.executable, "-m", "interlock", "mcp", "--surface", "lookup", "--data-dir", str(tmp_path)]
    done = subprocess.run(
        [*command, "--workflows", str(workflows)],
        input=b"".join(msgspec.json.encode(request) + b"\n" for request in requests),
        capture_output=True,
        check=True,
    )
    answers = [msgspec.json.decode(line) for line in done.stdout.splitlines()][1:]
    expected = [_settled(answer.get("result") or answer["error"]) for answer in answers]
    heard = anyio.run(_heard, f"{server.url}/mcp/lookup", mode, script)[1:]
    assert [_without_era(shown) for _, shown in heard] == expected


def _without_era(shown: dict[str, Any]) -> dict[str, Any]:
    """Drop what only newer versions of the protocol have."""
    dropped = ("resultType", "_meta", *(["isError"] if shown.get("isError") is False else []))
    return {key: value for key, value in shown.items() if key not in dropped}


async def _heard(target: Any, mode: str, script: Script) -> list[Any]:
    """Run a script through a client and return what it heard, without what differs from run to run."""
    import mcp

    heard: list[Any] = []
    async with mcp.Client(target, mode=mode) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            try:
                result = await client.call_tool(tool, arguments)
            except mcp.MCPError as error:
                heard.append((tool, _settled(error.error.model_dump(mode="json"))))
                return {}
            shown = result.model_dump(mode="json", exclude_none=True, by_alias=True)
            shown.get("_meta", {}).pop("io.modelcontextprotocol/serverInfo", None)
            heard.append((tool, _settled(shown)))
            texts = [part["text"] for part in shown["content"]]
            return {
                **(result.structured_content or {}),
                "_text": "\n".join([*texts, str(shown.get("_meta"))]),
            }

        tools = await client.list_tools()
        heard.append(_settled([tool.model_dump(mode="json", exclude_none=True) for tool in tools.tools]))
        await script(call)
    return heard


def _settled(value: Any) -> Any:
    text = msgspec.json.encode(value).decode()
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return msgspec.json.decode(text)
