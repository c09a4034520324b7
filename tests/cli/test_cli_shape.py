"""The command line as a whole: help, completion, settings, errors, the demonstration."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli import commands
from interlock.cli.main import COMMANDS
from support.cli_process import PATIENCE, agent, golden, interlock, settled

BIN = Path(sys.executable).parent
NAMES = [name for names in COMMANDS.values() for name in names]
BUILT = sorted(
    path.stem.removesuffix("_")
    for path in Path(commands.__path__[0]).glob("*/*_.py")
    if path.stem != "__init__"
)


def test_every_command_that_is_built_is_listed(tmp_path: Path) -> None:
    assert set(BUILT) <= set(NAMES)
    ran = interlock(tmp_path, "--help")
    assert ran.code == 0
    for name in BUILT:
        assert re.search(rf"^  {name} ", ran.out, re.MULTILINE)


def test_the_overview_cuts_no_sentence_at_80_columns(tmp_path: Path) -> None:
    ran = interlock(tmp_path, "--help", COLUMNS="80")
    assert "..." not in ran.out.removeprefix("Usage: interlock [OPTIONS] COMMAND [ARGS]...")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_mistyped_command_is_answered_with_the_nearest(tmp_path: Path) -> None:
    ran = interlock(tmp_path, "session")
    assert (ran.code, "Did you mean 'sessions'?" in ran.err) == (2, True)
    assert "There is no command 'xyzzy'.\n" in interlock(tmp_path, "xyzzy").err


@pytest.mark.parametrize("name", BUILT)
def test_every_command_explains_itself_with_an_example(tmp_path: Path, name: str) -> None:
    from click.testing import CliRunner

    from interlock.cli.main import cli

    told = CliRunner().invoke(cli, [name, "--help"]).output
    parts = re.findall(r"^  (\w+)  ", told.partition("Commands:")[2], re.MULTILINE)
    pages = [CliRunner().invoke(cli, [name, part, "--help"]).output for part in parts] or [told]
    assert all("Example" in page for page in pages)


def test_completion_offers_sessions_and_workflows(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = one.start("wr.small_task", goal="Complete me")["session"]["sessionId"]
    for words, expected in (("status ", session[5:13]), ("show wr.sm", "wr.small_task"), ("stat", "status")):
        ran = interlock(
            tmp_path,
            _INTERLOCK_COMPLETE="bash_complete",
            COMP_WORDS=f"interlock {words}",
            COMP_CWORD=str(len(words.split(" "))),
        )
        assert expected in ran.out


def test_settings_say_where_they_come_from(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".interlock").mkdir(parents=True)
    (project / ".interlock" / "config.toml").write_text('decisions = "user"\nmode = "never-stop"\n')
    (tmp_path / "config.toml").write_text('mode = "stop"\n')
    ran = interlock(
        tmp_path, "config", "show", "--json", "--project", str(project), INTERLOCK_ENFORCEMENT="advisory"
    )
    told = {name: (one["value"], one["from"]) for name, one in ran.json.items()}
    assert told["mode"] == ("stop", "user")
    assert told["decisions"] == ("user", "project")
    assert told["enforcement"] == ("advisory", "variable")
    assert told["project"] == (str(project), "flag")
    assert told["surface"] == ("execution", "default")
    assert told["retention-days"] == (90, "default")
    assert ran.json["mode"]["label"] == "Automatic, stops for you"
    assert "as chosen with interlock mode" in interlock(tmp_path / "fresh", "config", "show").out


def test_a_bad_setting_is_one_line_and_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('mode = "reckless"\n')
    ran = interlock(tmp_path, "sessions")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert interlock(tmp_path, "no-such-command").code == 2


def test_the_demonstration_is_as_it_was_looked_at(tmp_path: Path) -> None:
    ran = interlock(tmp_path, "demo", PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    golden("demo", settled(ran.out))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_demonstration_ends_with_commands_that_work_where_the_path_does_not_lead_to_them(
    tmp_path: Path,
) -> None:
    elsewhere = os.pathsep.join(word for word in os.environ["PATH"].split(os.pathsep) if Path(word) != BIN)
    ran = interlock(tmp_path, "demo", PATH=elsewhere)
    ending = ran.out.partition("Connect your own client:\n")[2]
    commands = [line for line in ending.splitlines() if line.startswith("  ")]
    assert len(commands) == 3
    for line in commands:
        subprocess.run(["sh", "-c", f"{line} --help"], check=True, capture_output=True, timeout=PATIENCE)
