"""Trust in checks: given by a person who has seen them in full, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_process import Terminal, interlock
from support.console_client import ConsoleClient
from support.http_server import HttpServer, ModernCaller
from support.server import Server

FLOW = """
id: team.work
name: Work
version: 1.0.0
steps:
  - id: build
    title: Build
    prompt: Build it.
    checks: [{id: tests, run: "RUN", in: app, timeout: 9, expect: {stdout: fine}}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".interlock" / "workflows").mkdir(parents=True)
    (tmp_path / "project" / "app").mkdir()
    (tmp_path / "data").mkdir()
    write(tmp_path / "project", "echo fine")
    return tmp_path / "project"


def write(project: Path, run: str) -> None:
    (project / ".interlock" / "workflows" / "work.yaml").write_text(FLOW.replace("RUN", run))


def trusting(project: Path, *arguments: str, answer: str = "y\n") -> tuple[int, str]:
    terminal = Terminal(project.parent / "data", "trust", "team.work", "--project", str(project), *arguments)
    before = terminal.until("[y/N]")
    terminal.type(answer)
    code, after = terminal.end()
    return code, before + after


def test_a_person_sees_in_full_what_will_run_and_then_trusts_it(project: Path) -> None:
    code, screen = trusting(project)
    assert code == 0
    for words in (
        "team.work tests: not trusted",
        "echo fine",
        "app, for at most 9 s",
        "'fine' in its output",
    ):
        assert words in screen
    with Server(project.parent / "data", "--project", str(project)) as server:
        at = server.call("start_workflow", workflowId="team.work")
        assert "complete" in server.ack(at, "Built.")["_text"]
    listed = interlock(project.parent / "data", "trust", "team.work", "--project", str(project), "--list")
    assert "team.work tests: trusted" in listed.out
    assert (
        interlock(project.parent / "data", "log", at["session"]["sessionId"]).out.count("run by the server")
        == 1
    )


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        (r"echo\u200b fine", r"'echo\u200b' fine"),
        (r"\u0435cho fine", r"'\u0435cho' fine"),
        (r"echo fine \u202ehtap-ot-terces", r"echo fine '\u202ehtap-ot-terces'"),
        (r"sh -c 'echo fine\nrm -r x'", r"sh -c 'echo fine\nrm -r x'"),
        ("sh -c 'echo  fine'", "sh -c 'echo  fine'"),
        (r"echo fine\e[2K\e[1A", r"\x1b[2K\x1b[1A"),
        (r"echo fine\r", r"  runs     echo fine"),
    ],
)
def test_nothing_of_a_command_is_hidden_from_the_person_who_trusts_it(
    project: Path, run: str, shown: str
) -> None:
    write(project, run)
    screen = interlock(project.parent / "data", "trust", "team.work", "--project", str(project), "--list").out
    assert shown in screen, screen
    assert screen.isascii()


def test_what_has_changed_is_untrusted_and_said_to_have_changed(project: Path) -> None:
    trusting(project)
    write(project, "echo fine fine")
    listed = interlock(project.parent / "data", "trust", "--project", str(project), "--list")
    assert "team.work tests: CHANGED since it was trusted" in listed.out
    assert "trusted  echo fine\n" in listed.out
    assert trusting(project)[0] == 0
    assert trusting(project, "--revoke")[0] == 0
    listed = interlock(project.parent / "data", "trust", "--project", str(project), "--list", "--json")
    assert [check["trusted"] for check in listed.json["checks"] if check["workflow"] == "team.work"] == [
        False
    ]


def test_a_person_may_say_no_and_nobody_else_may_say_yes(project: Path) -> None:
    assert "Nothing was changed" in trusting(project, answer="n\n")[1]
    refused = interlock(project.parent / "data", "trust", "team.work", "--project", str(project), given="y\n")
    assert refused.code != 0
    assert "needs a terminal" in refused.err


def test_a_folder_is_trusted_by_itself(project: Path, tmp_path: Path) -> None:
    trusting(project)
    other = tmp_path / "other"
    project.rename(other)
    with Server(tmp_path / "data", "--project", str(other)) as server:
        blocked = server.ack(server.call("start_workflow", workflowId="team.work"), "Built.")
    assert "the user has not trusted it" in blocked["_text"]


def test_a_server_over_http_runs_no_checks_unless_it_has_a_folder_for_them(project: Path) -> None:
    data = project.parent / "data"
    trusting(project)
    server = HttpServer(data, "--project", str(project))
    try:
        caller = ModernCaller(f"{server.host}:{server.port}")
        at = caller.call("start_workflow", workflowId="team.work")
        blocked = caller.call("continue_workflow", stateToken=at["stateToken"], ackToken=at["ackToken"])
        assert "this server runs no checks" in str(blocked)
    finally:
        caller.close()
        server.stop()
    server = HttpServer(data, "--project", str(project), "--check-folders", f"local={project}")
    try:
        caller = ModernCaller(f"{server.host}:{server.port}")
        at = caller.call("start_workflow", workflowId="team.work")
        done = caller.call("continue_workflow", stateToken=at["stateToken"], ackToken=at["ackToken"])
        assert done["isComplete"] is True
    finally:
        caller.close()
        server.stop()


def test_the_console_shows_checks_in_full_and_trusts_what_was_shown(project: Path) -> None:
    data = project.parent / "data"
    server = HttpServer(data, "--project", str(project))
    try:
        console = ConsoleClient.entered(server)
        page = console.shows("workflows/team.work/checks.json")
        (shown,) = page["checks"]
        assert (shown["run"], shown["folder"], shown["seconds"]) == ("echo fine", "app", 9)
        assert (shown["expects"], shown["state"]) == ("exit 0, 'fine' in its output", "untrusted")
        request = {"workflow": "team.work", "check": "tests", "folder": page["folder"]}
        stale = console.act("trust", {**request, "definition": "sha256:other"})
        assert (stale.status, stale.json["error"]["code"]) == (409, "CHECK_CHANGED")
        assert console.act("trust", {**request, "definition": shown["definition"]}).status == 200
        (shown,) = console.shows("workflows/team.work/checks.json")["checks"]
        assert shown["trusted"]["channel"] == "console"
    finally:
        server.stop()
