"""What a stdio server may have loaded once `tools/list` is answered: start-up is paid in every chat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interlock.surfaces.registry import SURFACES

pytestmark = pytest.mark.slow  # each starts a server

SERVED = {
    "asyncio", "anyio", "mcp", "pydantic", "starlette", "uvicorn", "httptools", "uvloop", "jwt", "psycopg",
    "interlock.transport.http", "interlock.console", "interlock.store.postgres",
}  # fmt: skip
HEAVY = SERVED | {
    "click", "rich", "yaml", "toon_format", "jsonschema_rs", "rfc8785", "re2", "regex", "logging",
    "subprocess", "threading", "tempfile", "random", "socket", "importlib.metadata", "tomllib",
    "dataclasses", "difflib", "http", "email", "platformdirs", "apsw",
}  # fmt: skip

PROGRAM = """
import sys
from interlock.__main__ import main
sys.argv = ["interlock", "mcp", "--surface", {surface!r}, "--data-dir", {data!r}]
code = main()
print("\\n".join(sys.modules), file=sys.stderr)
sys.exit(code)
"""
VERSIONS = {"lookup": "2024-11-05"}


def loaded_after(data: Path, surface: str, request: str, answer: bytes) -> set[str]:
    """Return the modules that a server has loaded once it has answered a request."""
    version = VERSIONS.get(surface, "2025-11-25")
    lines = (
        f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}",'
        '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
        f'{{"jsonrpc":"2.0","id":2,{request}}}\n'
    )
    program = PROGRAM.format(surface=surface, data=str(data))
    done = subprocess.run(
        [sys.executable, "-c", program], input=lines.encode(), capture_output=True, check=True
    )
    assert answer in done.stdout
    return set(done.stderr.decode().split())


def test_a_call_over_stdio_loads_nothing_of_what_serves_http_or_postgresql(tmp_path: Path) -> None:
    call = (
        '"method":"tools/call","params":{"name":"start_workflow","arguments":{"workflowId":"wr.small_task"}}'
    )
    assert loaded_after(tmp_path, "execution", call, b"st.v1.") & SERVED == set()


@pytest.mark.parametrize("surface", SURFACES)
def test_nothing_heavy_is_loaded_for_tools_list(tmp_path: Path, surface: str) -> None:
    loaded = loaded_after(tmp_path, surface, '"method":"tools/list","params":{}', b'"tools":[')
    assert loaded & HEAVY == set()
    surfaces = {
        name.split(".")[2]
        for name in loaded
        if name.startswith("interlock.surfaces.") and name.count(".") > 2
    }
    assert surfaces <= {surface, "shared"}
