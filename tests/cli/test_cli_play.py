"""A person walks a workflow at a terminal: the same engine, a real run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_process import REPORT, Terminal, agent, decision, interlock

pytestmark = pytest.mark.slow


def typed(terminal: Terminal, *lines: str, prompt: str = "\nnotes: ") -> None:
    for line in lines:
        terminal.until(prompt)
        terminal.type(f"{line}\n")


def to_the_gate(data: Path) -> Terminal:
    terminal = Terminal(data, "play", "wr.small_task", "--goal", "Try it out")
    typed(terminal, "One task.", ':set acceptance=["It works"]', "")
    typed(terminal, "Changed it.", "")
    typed(terminal, "Checked it.", "")
    terminal.until("Blocked: ")
    typed(terminal, f":artifact {json.dumps(REPORT)}", ":set checked=pass", "")
    return terminal


def session_of(data: Path) -> str:
    return str(interlock(data, "sessions", "--json").json["sessions"][0]["sessionId"])


@pytest.mark.slow
def test_a_person_walks_to_the_end_and_leaves_a_branch_on_the_way(tmp_path: Path) -> None:
    terminal = to_the_gate(tmp_path)
    typed(terminal, "rework", prompt="Your choice: ")
    typed(terminal, ":back")
    typed(terminal, "1", prompt="Your choice: ")
    typed(terminal, "Handed over.", "")
    code, text = terminal.end()
    assert (code, "Complete" in text) == (0, True)
    session = session_of(tmp_path)
    run = interlock(tmp_path, "tree", session, "--json").json["runs"][0]
    assert (run["status"], run["forks"]) == ("complete", 1)
    resolved = interlock(tmp_path, "log", session, "--kind", "gate_resolved", "--json").json["events"]
    told = [(item["event"]["option"], item["event"]["channel"]) for item in resolved]
    assert told == [("rework", "cli"), ("accept", "cli")]
    assert "Changed it." in interlock(tmp_path, "notes", session).out


@pytest.mark.slow
def test_an_interrupted_walk_stays_and_both_person_and_agent_can_go_on(tmp_path: Path) -> None:
    terminal = to_the_gate(tmp_path)
    terminal.until("Your choice: ")
    code, text = terminal.interrupt()
    session = session_of(tmp_path)
    assert code == 1
    assert f"interlock play {session.removeprefix('sess_')[:8]}" in text
    again = Terminal(tmp_path, "play", session)
    typed(again, ":quit", prompt="Your choice: ")
    assert again.end()[0] == 0
    with agent(tmp_path) as one:
        found = one.call("resume_session", query="Try it out")["candidates"][0]
        one.call("continue_workflow", stateToken=found["stateToken"])
        assert one.go_on("", decision("accept"))["pending"]["stepId"] == "close-task"


def test_playing_needs_a_terminal_and_a_workflow_that_exists(tmp_path: Path) -> None:
    assert interlock(tmp_path, "play", "wr.small_task", given="\n").code == 2
    assert Terminal(tmp_path, "play", "wr.nothing").end()[0] == 3
