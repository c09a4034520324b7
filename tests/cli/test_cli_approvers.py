"""Groups and delegations at the command line: what they print, what they refuse, and what they change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock.core.run.polls import Approver
from interlock.ledger.tokens.access_tokens import AccessTokens
from support.cli_process import Terminal, interlock

HOSTILE = ["../../etc", "Ada", "a b", "a\x1b[2J", "x" * 65, "-a-", "ada\nben", "all", "", "ａda"]


def delegate(folder: Path, *arguments: str) -> tuple[int, str]:
    return Terminal(folder, "delegate", *arguments).end()


def test_a_group_is_made_listed_changed_and_removed(tmp_path: Path) -> None:
    made = interlock(tmp_path, "auth", "group", "leads", "ada", "ben", "ada")
    assert (made.code, made.out) == (0, "leads: ada, ben\n")
    assert AccessTokens(tmp_path).approver("ben") == Approver("ben", ("leads",))
    interlock(tmp_path, "auth", "group", "board", "dora")
    interlock(tmp_path, "auth", "group", "leads", "cleo")
    listed = interlock(tmp_path, "auth", "groups", "--json").json["groups"]
    assert listed == {"board": ["dora"], "leads": ["cleo"]}
    removed = interlock(tmp_path, "auth", "group", "leads")
    assert (removed.code, removed.out) == (0, "leads: removed\n")
    assert interlock(tmp_path, "auth", "groups").out == "board: dora\n"
    interlock(tmp_path, "auth", "group", "board")
    empty = interlock(tmp_path, "auth", "groups")
    assert (empty.out, "There are no groups" in empty.err) == ("", True)


def test_one_name_is_a_person_or_a_group(tmp_path: Path) -> None:
    interlock(tmp_path, "auth", "add", "ada", "--role", "approver")
    interlock(tmp_path, "auth", "group", "leads", "ada")
    group = interlock(tmp_path, "auth", "group", "ada", "ben")
    assert (group.code, "'ada' is a principal" in group.err) == (2, True)
    person = interlock(tmp_path, "auth", "add", "leads", "--role", "approver")
    assert (person.code, "'leads' is a group" in person.err) == (2, True)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_name_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    interlock(tmp_path, "auth", "group", "leads", "ada")
    before = AccessTokens(tmp_path).path.read_bytes()
    for arguments in (("group", "--", name, "ada"), ("group", "leads", "--", name)):
        refused = interlock(tmp_path, "auth", *arguments)
        assert (refused.code, "is not a name" in refused.err) == (2, True), refused.err
        assert "\x1b" not in refused.err
    for arguments in ((name, "ben"), ("ben", name)):
        code, said = delegate(tmp_path, "--", *arguments)
        assert (code, "is not a name" in said) == (2, True), said
        assert "\x1b[2J" not in said
    assert AccessTokens(tmp_path).path.read_bytes() == before


def test_somebody_stands_in_until_the_time_is_over(tmp_path: Path) -> None:
    interlock(tmp_path, "auth", "group", "leads", "ada")
    code, said = delegate(tmp_path, "ada", "ben", "--for", "2h")
    assert code == 0
    assert re.search(r"ben stands in for ada until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", said)
    assert AccessTokens(tmp_path).approver("ben").stands_in_for == (Approver("ada", ("leads",)),)
    assert "ben stands in for ada" in interlock(tmp_path, "auth", "groups").out
    delegate(tmp_path, "ada", "cleo")
    assert AccessTokens(tmp_path).approver("ben").stands_in_for == ()
    code, said = delegate(tmp_path, "ada", "cleo", "--end")
    assert (code, said.strip()) == (0, "ada: ended")
    assert AccessTokens(tmp_path).approver("cleo").stands_in_for == ()


@pytest.mark.parametrize("time", ["0d", "2", "d", "-1d", "1w", "1.5h", "999999d", "1d; rm", "٢d", ""])
def test_what_is_no_time_is_refused(tmp_path: Path, time: str) -> None:
    code, said = delegate(tmp_path, "ada", "ben", f"--for={time}")
    assert (code, "is not a time" in said) == (2, True)
    assert not AccessTokens(tmp_path).path.exists()


@pytest.mark.parametrize(
    ("names", "reason"),
    [(("ada", "ada"), "two different"), (("leads", "ben"), "is a group"), (("ben", "leads"), "is a group")],
)
def test_a_delegation_is_between_two_people(tmp_path: Path, names: tuple[str, str], reason: str) -> None:
    interlock(tmp_path, "auth", "group", "leads", "ada")
    code, said = delegate(tmp_path, *names)
    assert (code, reason in said) == (2, True)


def test_a_program_without_a_terminal_delegates_nothing(tmp_path: Path) -> None:
    refused = interlock(tmp_path, "delegate", "ada", "ben", given="y\n")
    assert (refused.code, "needs a terminal" in refused.err) == (2, True), refused.err
    assert AccessTokens(tmp_path).approver("ben").stands_in_for == ()
