"""`interlock mcp` as its settings say: the surface, its tools, and the database it uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from interlock.cli.compose import surface_of
from interlock.cli.config import BadConfig, Config
from interlock.core.run.surface_policy import SurfaceName
from interlock.surfaces.registry import SURFACES
from interlock.surfaces.tool import Call, call_tool
from support.cli_process import PATIENCE, Ran, Terminal, agent, environment, interlock


def served(*arguments: str) -> Ran:
    command = [sys.executable, "-m", "interlock", "mcp", *arguments]
    return Ran(
        subprocess.run(
            command,
            input="",
            capture_output=True,
            text=True,
            env=environment(),
            timeout=PATIENCE,
            check=False,
        )
    )


def test_every_surface_name_has_a_surface_of_that_name(tmp_path: Path) -> None:
    assert tuple(SURFACES) == get_args(SurfaceName)
    for name in SURFACES:
        assert surface_of(Config(surface=name, data_dir=str(tmp_path))).name == name


@pytest.mark.parametrize("name", SURFACES)
def test_a_disabled_tool_is_neither_listed_nor_called(name: SurfaceName, tmp_path: Path) -> None:
    whole = surface_of(Config(surface=name, data_dir=str(tmp_path)))
    first, *rest, last = whole.tools
    surface = surface_of(Config(surface=name, data_dir=str(tmp_path), disable_tools=(first, last)))
    assert list(surface.tools) == rest
    assert call_tool(surface, first, {}, Call()) == surface.unknown(first)


@pytest.mark.parametrize("name", SURFACES)
def test_an_unknown_tool_to_disable_is_refused_with_the_tools_there_are(
    name: SurfaceName, tmp_path: Path
) -> None:
    config = Config(surface=name, data_dir=str(tmp_path), disable_tools=("no_such_tool",))
    with pytest.raises(BadConfig) as refused:
        surface_of(config)
    message = f"disable-tools: 'no_such_tool' is not a tool of the {name} surface. Tools: "
    assert str(refused.value).startswith(message)
    tools = surface_of(Config(surface=name, data_dir=str(tmp_path))).tools.values()
    assert str(refused.value).removeprefix(message).split(", ") == [
        tool.name for tool in tools if tool.listed
    ]


def test_usage_errors_are_one_line_and_name_the_choices(tmp_path: Path) -> None:
    for arguments, text in (
        (["--surface", "foo"], "use one of execution, session, gated, navigation, lookup"),
        (["--disable-tools", "foo"], "Tools: list_workflows, "),
        (["--store", "mysql://host/x"], "use sqlite:///PATH/TO/FILE.db or postgresql://"),
        (["--colour", "red"], "See interlock mcp --help"),
    ):
        ran = served("--data-dir", str(tmp_path), *arguments)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
        assert text in ran.err


@pytest.mark.slow
def test_a_database_file_of_its_own_beside_the_data_directory(tmp_path: Path) -> None:
    data, store = tmp_path / "data", tmp_path / "elsewhere" / "work.db"
    with agent(data, "--store", f"sqlite://{store}") as one:
        session = one.start("wr.small_task", goal="Keep it elsewhere")["session"]["sessionId"]
    assert store.is_file()
    assert (data / "keys" / "keyring.json").is_file()
    assert not (data / "interlock.db").exists()
    url = {"INTERLOCK_STORE": f"sqlite://{store}"}
    assert interlock(data, "sessions", "--json", **url).json["sessions"][0]["sessionId"] == session
    assert interlock(data, "sessions", "--json").json["sessions"] == []
    checks = interlock(data, "doctor", "--json", **url)
    assert (checks.code, checks.json["checks"][-1]["detail"]) == (0, "1 checked, 0 damaged")


@pytest.mark.slow
def test_at_a_terminal_the_server_says_what_it_is_and_what_to_do(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "mcp")
    shown = terminal.until("Press Ctrl-C to stop.")
    for command in ("interlock install CLIENT", "interlock demo", "interlock inbox", "interlock console"):
        assert command in shown
    _, rest = terminal.interrupt()
    assert "Traceback" not in rest


def test_a_client_on_a_pipe_reads_nothing_of_that(tmp_path: Path) -> None:
    ran = served("--data-dir", str(tmp_path))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
