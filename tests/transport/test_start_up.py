"""What a stdio server may have loaded once `tools/list` is answered: start-up is paid in every chat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interlock.surfaces.registry import SURFACES

HEAVY = {
    "asyncio", "click", "rich", "yaml", "toon_format", "jsonschema_rs", "rfc8785", "re2", "regex", "mcp",
    "pydantic", "logging", "subprocess", "threading", "tempfile", "random", "socket", "importlib.metadata",
    "tomllib", "dataclasses", "difflib", "http", "email", "platformdirs", "apsw", "anyio", "starlette",
    "uvicorn", "interlock.transport.http",
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


@pytest.mark.parametrize("surface", SURFACES)
def test_nothing_heavy_is_loaded_for_tools_list(tmp_path: Path, surface: str) -> None:
    version = VERSIONS.get(surface, "2025-11-25")
    lines = (
        f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}",'
        '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
        '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}\n'
    )
    program = PROGRAM.format(surface=surface, data=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", program], input=lines.encode(), capture_output=True, check=True
    )
    assert b'"tools":[' in done.stdout
    loaded = set(done.stderr.decode().split())
    assert loaded & HEAVY == set()
    surfaces = {
        name.split(".")[2]
        for name in loaded
        if name.startswith("interlock.surfaces.") and name.count(".") > 2
    }
    assert surfaces <= {surface, "shared"}
