"""Prompts and resources: the same on both transports and in both eras, through the official client."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, serving

MODES = ["legacy", "2026-07-28"]
VARIABLES = [
    {"name": "ticket", "type": "string", "description": "The ticket.", "required": True},
    {"name": "urgent", "type": "boolean"},
    {"name": "size", "type": "string", "defaultValue": "small"},
    {"name": "channel", "values": ["stable", "preview"]},
    {"name": "items", "type": "array"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("documents")
    bench = Bench(folder)
    bench.write(
        workflow(*steps("first"), gate("which", "left", "right"), *steps("last"), variables=VARIABLES)
    )
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[HttpServer]:
    with serving(folder, "--workflows", str(folder / "workflows-under-test")) as running:
        yield running


@pytest.fixture(params=["http", "stdio"])
def target(request: pytest.FixtureRequest, folder: Path) -> Any:
    """What the official client connects to."""
    if request.param == "http":
        return f"{request.getfixturevalue('server').url}/mcp"
    from mcp import StdioServerParameters

    workflows = str(folder / "workflows-under-test")
    arguments = ["-m", "interlock", "mcp", "--data-dir", str(folder), "--workflows", workflows]
    return StdioServerParameters(command=sys.executable, args=arguments)


@pytest.mark.parametrize("mode", MODES)
def test_a_workflow_is_a_prompt_with_its_inputs_as_arguments(target: Any, mode: str) -> None:
    import mcp

    async def story() -> None:
        async with mcp.Client(target, mode=mode) as client:
            prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
            assert {"test.flow", "wr.feature", "resume", "inbox"} <= set(prompts)
            arguments = prompts["test.flow"].arguments or []
            assert [(argument.name, argument.required) for argument in arguments] == [
                ("goal", False), ("ticket", True), ("urgent", False), ("channel", False),
            ]  # fmt: skip
            got = await client.get_prompt("test.flow", {"ticket": "T-1", "urgent": "true", "goal": " "})
            text = got.messages[0].content.text
            assert (
                'start_workflow with workflowId "test.flow" and context {"ticket":"T-1","urgent":true}'
                in text
            )
            inbox = await client.get_prompt("inbox")
            assert inbox.messages[0].content.text == "Nothing waits for a decision. Tell the user so."
            with pytest.raises(mcp.MCPError) as refused:
                await client.get_prompt("nothing.here")
            assert refused.value.error.code == -32602

    anyio.run(story)


@pytest.mark.parametrize("mode", MODES)
def test_resume_leads_back_to_a_run_and_its_resources(target: Any, mode: str) -> None:
    import mcp

    async def story() -> None:
        async with mcp.Client(target, mode=mode) as client:
            started = await client.call_tool(
                "start_workflow", {"workflowId": "test.flow", "context": {"goal": "Find the pelican"}}
            )
            session = started.structured_content["session"]["sessionId"]
            resumed = (await client.get_prompt("resume", {"query": "pelican"})).messages[0].content.text
            assert "Continue 'Find the pelican' (test.flow)" in resumed
            token = resumed.split('stateToken "')[1].split('"')[0]
            shown = await client.call_tool("continue_workflow", {"stateToken": token})
            assert shown.structured_content["pending"]["stepId"] == "first"
            brief = await client.read_resource(f"interlock://runs/{session}/brief")
            assert '"Find the pelican"' in brief.contents[0].text
            transcript = await client.read_resource(f"interlock://runs/{session}/transcript")
            assert transcript.contents[0].text.startswith("# Find the pelican")

    anyio.run(story)


@pytest.mark.parametrize("mode", MODES)
def test_every_listed_resource_can_be_read(target: Any, mode: str) -> None:
    import mcp

    async def story() -> None:
        async with mcp.Client(target, mode=mode) as client:
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            families = {uri.split("/")[2] for uri in uris}
            assert families == {"workflows", "schemas", "contracts"}
            for uri in [uri for uri in uris if "/wr." not in uri]:
                assert (await client.read_resource(uri)).contents[0].text
            chart = await client.read_resource("interlock://workflows/test.flow/graph")
            assert chart.contents[0].text.startswith("flowchart")
            templates = (await client.list_resource_templates()).resource_templates
            assert {template.name for template in templates} >= {"workflow", "brief", "transcript"}

    anyio.run(story)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "uri",
    [
        "interlock://workflows/nothing.here",
        "interlock://runs/sess_aaaaaaaaaaaaaaaaaaaaaaaaaa/brief",
        "interlock://runs/../workflows/brief",
        "interlock://schemas/..%2f..%2fetc",
        "file:///etc/passwd",
        "interlock://",
    ],
)
def test_a_resource_that_does_not_exist_is_not_found(target: Any, mode: str, uri: str) -> None:
    import mcp

    async def story() -> int:
        async with mcp.Client(target, mode=mode) as client:
            with pytest.raises(mcp.MCPError) as refused:
                await client.read_resource(uri)
            return int(refused.value.error.code)

    assert anyio.run(story) == (-32002 if mode == "legacy" else -32602)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_and_templates_are_completed(target: Any, mode: str) -> None:
    import mcp
    from mcp.types import PromptReference, ResourceTemplateReference

    async def story() -> list[list[str]]:
        async with mcp.Client(target, mode=mode) as client:
            graph = ResourceTemplateReference(type="ref/resource", uri="interlock://workflows/{id}/graph")
            flow = PromptReference(type="ref/prompt", name="test.flow")
            asked = [
                (graph, {"name": "id", "value": "test."}),
                (flow, {"name": "urgent", "value": "t"}),
                (flow, {"name": "ticket", "value": ""}),
                (flow, {"name": "channel", "value": "s"}),
            ]
            return [(await client.complete(ref, argument)).completion.values for ref, argument in asked]

    assert anyio.run(story) == [["test.flow"], ["true"], [], ["stable"]]
