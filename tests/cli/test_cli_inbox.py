"""The inbox at a terminal: bounded, with the substance of each question, within 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from support.cli_process import Terminal, interlock
from tools.console_seed import SeededAgent

pytestmark = pytest.mark.slow


def ask_many(data: Path, count: int) -> None:
    store, times = open_store(data), [1_700_000_000_000]
    ledger = Ledger(store, Keys(data), Library([BUNDLED]), Settings(), lambda: times[0])
    for number in range(count):
        SeededAgent(ledger, times).to_gate(f"Task {number}")
    store.close()


def test_a_long_inbox_is_shown_in_parts_oldest_or_newest_first(tmp_path: Path) -> None:
    ask_many(tmp_path, 25)
    newest = interlock(tmp_path, "inbox")
    assert newest.code == 4
    assert newest.out.count("accept-result,") == 20
    assert "  Task 24\n" in newest.out
    assert "Shown: 1 to 20 of 25 questions." in newest.err
    assert "More: interlock inbox --offset 20" in newest.err
    oldest = interlock(tmp_path, "inbox", "--oldest", "--limit", "2", "--offset", "20")
    assert [line[10:] for line in oldest.out.splitlines() if "  Task " in line] == ["Task 20", "Task 21"]
    asked = interlock(tmp_path, "inbox", "--json").json
    assert (len(asked["questions"]), asked["total"]) == (25, 25)
    assert len(interlock(tmp_path, "inbox", "--json", "--limit", "3").json["questions"]) == 3


def test_a_question_is_shown_with_what_the_agent_reported_within_80_columns(tmp_path: Path) -> None:
    ask_many(tmp_path, 1)
    shown = interlock(tmp_path, "inbox").out
    assert "then: Close the task" in " ".join(shown.split())
    assert "          │ wr.verification_report: pass\n" in shown
    assert "          │ - login test, 100 runs: pass (100 passed in 4 min 12 s)\n" in shown
    assert "          │ Checked on a slow machine too.\n" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_choice_at_the_terminal_can_come_with_a_remark(tmp_path: Path) -> None:
    ask_many(tmp_path, 1)
    (asked,) = interlock(tmp_path, "inbox", "--json").json["questions"]
    terminal = Terminal(tmp_path, "decide", asked["ref"])
    terminal.until("Your choice")
    terminal.type("2\n")
    terminal.until("A remark for the agent")
    terminal.type("measure it first\n")
    assert terminal.end()[0] == 0
    (recorded,) = interlock(tmp_path, "log", asked["ref"], "--kind", "decision_recorded", "--json").json[
        "events"
    ]
    assert (recorded["event"]["option"], recorded["event"]["note"]) == ("rework", "measure it first")


def test_a_remark_that_holds_a_secret_is_refused(tmp_path: Path) -> None:
    ask_many(tmp_path, 1)
    (asked,) = interlock(tmp_path, "inbox", "--json").json["questions"]
    terminal = Terminal(tmp_path, "decide", asked["ref"], "accept", "--note", "password: hunter2")
    terminal.until("[Y/n]")
    terminal.type("\n")
    code, shown = terminal.end()
    assert code != 0
    assert "looks like a password" in " ".join(shown.split())
    assert interlock(tmp_path, "inbox", "--json").json["total"] == 1
