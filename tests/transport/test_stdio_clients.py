"""The official Python client as an oracle: it must be at home in both eras."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from support.stdio_pipe import ECHO

pytestmark = pytest.mark.slow

MODES = ["legacy", "auto", "2026-07-28"]


def talk(mode: str, story: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    """Tell a story to the server with a client of this mode."""
    import mcp

    async def run() -> None:
        server = mcp.StdioServerParameters(command=sys.executable, args=[str(ECHO)])
        async with mcp.Client(server, mode=mode, **options) as client:
            await story(client)

    anyio.run(run)


def answering(action: str, **content: str) -> Callable[..., Awaitable[Any]]:
    async def answer(_context: Any, _params: Any) -> Any:
        from mcp.types import ElicitResult

        return ElicitResult(action=action, content=content or None)

    return answer


@pytest.mark.parametrize("mode", MODES)
def test_the_client_lists_and_calls(mode: str) -> None:
    async def story(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools][:3] == ["echo", "whoami", "recorded"]
        assert tools[0].annotations.read_only_hint is True
        result = await client.call_tool("echo", {"text": "grüße"})
        assert result.content[0].text == "grüße"
        assert result.structured_content == {"text": "grüße", "extra": None}
        assert (await client.call_tool("echo", {})).is_error
        who = await client.call_tool("whoami", {})
        assert who.structured_content["era"] == ("handshake" if mode == "legacy" else "modern")

    talk(mode, story)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("action", "content"), [("accept", {"choice": "yes"}), ("decline", {}), ("cancel", {})]
)
def test_the_user_is_asked_and_the_answer_arrives(mode: str, action: str, content: dict[str, str]) -> None:
    async def story(client: Any) -> None:
        result = await client.call_tool("confirm", {})
        answer = {"action": action, "content": content}
        assert result.structured_content == {
            "asked": "opaque-state",
            "answers": {"first": answer, "second": answer},
        }

    talk(mode, story, elicitation_callback=answering(action, **content))


@pytest.mark.parametrize("mode", MODES)
def test_a_client_without_forms_is_not_asked(mode: str) -> None:
    async def story(client: Any) -> None:
        assert (await client.call_tool("confirm", {})).content[0].text == "nobody to ask"

    talk(mode, story)


def test_a_listener_is_let_in_and_told_that_the_tools_never_change() -> None:
    async def story(client: Any) -> None:
        async with client.listen(tools_list_changed=True) as subscription:
            assert not subscription.honored.tools_list_changed
            assert (await client.call_tool("echo", {"text": "a"})).content[0].text == "a"

    talk("2026-07-28", story)
