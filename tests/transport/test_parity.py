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
    (re.compile(r'"(uptime|uptime_seconds|duration_ms|timestamp|ms|dur|ts)(\\?"): ?[0-9.]+'), r'"\1\2:0'),
]

AT_ONCE = ("--min-response-seconds", "0")
URIS = [
    "interlock://workflows",
    "interlock://workflows/test.flow",
    "interlock://workflows/test.flow/graph",
    "interlock://schemas/step-workflow",
    "interlock://contracts/wr.contracts.decision",
    "interlock://runs/nothing/brief",
    "interlock://nothing",
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
    opened = await call("start_session", title="of its own")
    await call("start_workflow", workflowId="test.flow", sessionToken=opened["sessionToken"])
    await call("resume_session", resumeRef=started["session"]["sessionId"])
    await call("resume_session", resumeRef="nothing")


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
    yielded = await call("yield_checkpoint", **token, checkpoint_id="which")
    handle = {"checkpoint_handle": yielded.get("checkpoint_handle") or _token(yielded)}
    await call("get_skill", **token)
    await call("present_checkpoint", **handle)
    await call("respond_checkpoint", **handle, option_id="up")
    await call("respond_checkpoint", **handle, option_id="left", note="as said")
    await call("resume_checkpoint", **handle)
    await call("get_workflow_status", **token)
    await call("get_skills", **token)
    await call("get_skill", **token, step_id="nothing")
    await call("get_resource", **token, resource_id="01")
    await call("next_activity", **token, activity_id="nowhere", variables={"goal": "changed"})
    await call("next_activity", **token, activity_id="__terminal__")
    await call("get_trace", **token)
    await call("health_check")
    await call("next_activity", session_token="nonsense", activity_id="main")


async def gated(call: CallTool) -> None:
    await call("discover")
    started = await call("start_session", workflow_id="test.flow")
    token = {"session_token": _token(started)}
    await call("get_workflow", **token)
    entered = await call("next_activity", **token, activity_id="main")
    token = {"session_token": _token(entered) or token["session_token"]}
    await call("next_activity", **token, activity_id="__terminal__")
    await call("get_checkpoint", **token, activity_id="main", checkpoint_id="which")
    await call("respond_checkpoint", **token, checkpoint_id="which", option_id="left")
    await call("respond_checkpoint", **token, checkpoint_id="which", option_id="up")
    await call("list_workflows")
    await call("get_skills", **token)
    await call("get_skill", **token, step_id="first")
    await call("get_resource", **token, resource_index="01")
    await call("next_activity", **token, activity_id="__terminal__")
    await call("get_trace", **token)
    await call("health_check")


async def navigation(call: CallTool) -> None:
    await call("get_activities")
    started = await call("nav_start", workflow_id="test.flow", initial_variables={"goal": "x"})
    state = _token(started)
    await call("nav_situation", state=state)
    done = await call("nav_action", state=state, action="complete_step", step_id="first")
    state = _token(done) or state
    await call("nav_action", state=state, action="complete_step", step_id="nothing")
    await call("nav_checkpoint", state=state)
    await call(
        "nav_action", state=state, action="respond_to_checkpoint", checkpoint_id="which", option_id="left"
    )
    await call("nav_situation", state="v1.gzB64.nonsense")
    of_workflow = {"workflow_id": "test.flow"}
    await call("list_workflows")
    await call("get_workflow", **of_workflow)
    await call("get_workflow_activity", **of_workflow, activity_id="main")
    await call("get_checkpoint", **of_workflow, activity_id="main", checkpoint_id="which")
    await call("validate_transition", **of_workflow, from_activity="main", to_activity="nowhere")
    await call("get_activity", activity_id="nothing")
    await call("get_skills")
    await call("list_skills")
    await call("get_skill", skill_id="nothing")
    await call("list_workflow_resources", **of_workflow)
    await call("get_resource", **of_workflow, index="01")
    await call("list_templates", **of_workflow)
    await call("get_template", **of_workflow, index="01")
    await call("discover_resources")
    await call("health_check")


LOOKUPS: list[tuple[str, dict[str, Any]]] = [
    ("workflow_list", {}),
    ("workflow_get", {"id": "test-flow"}),
    ("workflow_next", {"workflowId": "test-flow", "completedSteps": []}),
    ("workflow_next", {"workflowId": "test-flow", "completedSteps": ["first", "which"]}),
    ("workflow_next", {"workflowId": "nothing-here", "completedSteps": []}),
    ("workflow_get", {"id": 7}),
    ("workflow_validate", {"workflowId": "test-flow", "stepId": "first", "output": "done"}),
    ("workflow_validate", {"workflowId": "test-flow", "stepId": "nothing", "output": ""}),
    ("nothing", {}),
]


SCRIPTS: dict[str, Script] = {
    "execution": execution,
    "session": session,
    "gated": gated,
    "navigation": navigation,
}


def _token(answer: Any) -> str:
    """Return the token of a run, which a model reads in the text."""
    found = re.search(r"ses\.v1\.[A-Za-z0-9_-]+|v1\.gzB64\.[A-Za-z0-9+/=_-]+", answer.get("_text", ""))
    return found.group() if found else ""


@pytest.fixture(scope="module")
def workflows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bench = Bench(tmp_path_factory.mktemp("workflows"))
    bench.write(workflow(*steps("first"), gate("which", "left", "right"), *steps("last")))
    return bench.workflows


@pytest.fixture(scope="module")
def server(workflows: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("served"), "--workflows", str(workflows), *AT_ONCE) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("surface", list(SCRIPTS))
def test_both_transports_answer_alike(
    server: HttpServer, workflows: Path, tmp_path: Path, surface: str, mode: str
) -> None:
    targets = _targets(surface, server, workflows, tmp_path)
    over_stdio, over_http = (anyio.run(_heard, target, mode, SCRIPTS[surface]) for target in targets)
    called = {tool for tool, _ in over_stdio[1:]}
    assert {tool["name"] for tool in over_stdio[0]} <= called
    assert over_http == over_stdio


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_both_transports_ask_alike(
    server: HttpServer, workflows: Path, tmp_path: Path, mode: str, action: Any
) -> None:
    from mcp.types import ElicitResult

    async def script(call: CallTool) -> None:
        at_gate = await call("start_workflow", workflowId="test.flow")
        for _ in range(2):
            tokens = {"stateToken": at_gate["stateToken"], "ackToken": at_gate["ackToken"]}
            at_gate = await call("continue_workflow", **tokens)

    def told(target: Any) -> tuple[list[Any], list[Any]]:
        questions: list[Any] = []

        async def answer(_context: Any, params: Any) -> Any:
            questions.append(params.model_dump(mode="json", exclude={"meta"}, exclude_none=True))
            return ElicitResult(action=action, content={"choice": "left"} if action == "accept" else None)

        return anyio.run(_heard, target, mode, script, answer), questions

    over_stdio, over_http = map(told, _targets("execution", server, workflows, tmp_path))
    assert len(over_stdio[1]) == 1
    assert over_http == over_stdio


async def documents(client: Any, hear: Callable[[str, Any], None]) -> None:
    """Ask for every kind of prompt, resource and completion; `hear` gets the answers and refusals."""
    import mcp
    from mcp.types import PromptReference, ResourceTemplateReference

    graph = ResourceTemplateReference(type="ref/resource", uri="interlock://workflows/{id}/graph")
    prompt = PromptReference(type="ref/prompt", name="test.flow")
    asked: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
        ("prompts", client.list_prompts),
        ("templates", client.list_resource_templates),
        ("resources", client.list_resources),
        ("graph completions", lambda: client.complete(graph, {"name": "id", "value": "test."})),
        ("prompt completions", lambda: client.complete(prompt, {"name": "goal", "value": ""})),
        ("prompt", lambda: client.get_prompt("test.flow", {"goal": "the same"})),
        ("no prompt", lambda: client.get_prompt("nothing.here")),
        ("bad prompt", lambda: client.get_prompt("test.flow", {"goal": "nul \0 inside"})),
    ]
    for uri in URIS:
        asked.append((uri, lambda uri=uri: client.read_resource(uri)))  # type: ignore[misc]
    for name, ask in asked:
        try:
            answer = await ask()
        except mcp.MCPError as error:
            hear(name, error.error.model_dump(mode="json"))
        else:
            hear(name, answer.model_dump(mode="json", exclude={"meta"}, exclude_none=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("surface", list(SCRIPTS))
def test_both_transports_have_the_same_prompts_and_resources(
    server: HttpServer, workflows: Path, tmp_path: Path, surface: str, mode: str
) -> None:
    import mcp

    async def told(target: Any) -> dict[str, Any]:
        heard: dict[str, Any] = {}
        async with mcp.Client(target, mode=mode) as client:
            await documents(client, lambda name, answer: heard.update({name: _settled(answer)}))
        return heard

    over_stdio, over_http = (
        anyio.run(told, target) for target in _targets(surface, server, workflows, tmp_path)
    )
    assert over_http == over_stdio
    assert {"code", "message"} <= set(over_stdio["no prompt"])


def _targets(surface: str, server: HttpServer, workflows: Path, folder: Path) -> tuple[Any, str]:
    """Return what the client connects to: a stdio server of its own, and the HTTP server."""
    from mcp import StdioServerParameters

    arguments = ["-m", "interlock", "mcp", "--surface", surface, "--data-dir", str(folder), *AT_ONCE]
    arguments += ["--workflows", str(workflows)]
    # Only a server of one client records the checkout that it works in, so it works in none.
    stdio = StdioServerParameters(command=sys.executable, args=arguments, cwd=folder)
    return stdio, f"{server.url}/mcp/{surface}"


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


async def _heard(target: Any, mode: str, script: Script, answer: Any = None) -> list[Any]:
    """Run a script through a client and return what it heard, without what differs from run to run."""
    import mcp

    heard: list[Any] = []
    async with mcp.Client(target, mode=mode, elicitation_callback=answer) as client:

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
                **(result.structured_content or _decoded(texts[0])),
                "_text": "\n".join([*texts, str(shown.get("_meta"))]),
            }

        tools = await client.list_tools()
        heard.append(_settled([tool.model_dump(mode="json", exclude_none=True) for tool in tools.tools]))
        await script(call)
    return heard


def _decoded(text: str) -> dict[str, Any]:
    """Return the fields of an answer that is JSON and is sent once, as text."""
    return msgspec.json.decode(text) if text.startswith("{") else {}


def _settled(value: Any) -> Any:
    text = msgspec.json.encode(value).decode()
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return msgspec.json.decode(text)
