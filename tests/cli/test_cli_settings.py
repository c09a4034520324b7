"""Changing settings by command: checked first, written beside what is there, loosened only by a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_process import Terminal, interlock

pytestmark = pytest.mark.slow


def test_a_setting_is_written_where_the_command_says_and_is_in_force(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("# mine\nretention-days = 365  # a year\n")
    ran = interlock(tmp_path, "config", "set", "decisions", "user")
    assert (ran.code, ran.out) == (0, f"decisions: written to {tmp_path / 'config.toml'}\n")
    assert (tmp_path / "config.toml").read_text() == (
        '# mine\nretention-days = 365  # a year\ndecisions = "user"\n'
    )
    shown = interlock(tmp_path, "config", "show", "--json").json
    assert shown["decisions"] == {"value": "user", "from": "user"}


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    """The file may be kept among others that a person carries from machine to machine."""
    kept = tmp_path / "dotfiles.toml"
    kept.write_text('mode = "stop"\n')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.toml").symlink_to(kept)
    assert interlock(tmp_path / "data", "config", "set", "mode", "guided").code == 0
    assert (tmp_path / "data" / "config.toml").is_symlink()
    assert kept.read_text() == 'mode = "guided"\n'


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("decisions", "me"), 2, "use one of agent, auto, client, user"),
        (("port", "80000"), 2, "port (config set): '80000' is not valid"),
        (("port", "many"), 2, "a whole number"),
        (("desicions", "user"), 3, "Did you mean 'decisions'?"),
        (("colour", "red"), 3, "Settings: surface, workflows, "),
        (("data-dir", "/elsewhere"), 2, "INTERLOCK_DATA_DIR"),
        (("decisions", "user", "client"), 2, "takes one value"),
    ],
)
def test_what_a_setting_cannot_be_is_refused_and_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ran = interlock(tmp_path, "config", "set", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert not (tmp_path / "config.toml").exists()


def test_numbers_and_lists_are_written_as_such(tmp_path: Path) -> None:
    assert interlock(tmp_path, "config", "set", "port", "9000").code == 0
    assert interlock(tmp_path, "config", "set", "allowed-hosts", "a.example", "b.example").code == 0
    assert (tmp_path / "config.toml").read_text() == (
        'port = 9000\nallowed-hosts = ["a.example", "b.example"]\n'
    )


def test_what_outranks_the_file_is_named(tmp_path: Path) -> None:
    ran = interlock(tmp_path, "config", "set", "decisions", "user", INTERLOCK_DECISIONS="agent")
    assert "INTERLOCK_DECISIONS outranks it here: decisions is agent" in ran.err


def test_a_setting_that_is_not_valid_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('mode = "reckless"\n')
    assert interlock(tmp_path, "config", "set", "mode", "guided").code == 0
    assert interlock(tmp_path, "config", "show").code == 0


def test_a_setting_is_removed_and_the_default_named(tmp_path: Path) -> None:
    assert interlock(tmp_path, "config", "set", "retention-days", "365").code == 0
    ran = interlock(tmp_path, "config", "unset", "retention-days")
    assert (ran.code, "In force now: 90." in ran.err) == (0, True)
    assert interlock(tmp_path, "config", "unset", "retention-days").code == 3


@pytest.mark.parametrize("arguments", [("set", "decisions", "auto"), ("unset", "decisions")])
def test_only_a_person_loosens_who_may_answer(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert interlock(tmp_path, "config", "set", "decisions", "user").code == 0
    ran = interlock(tmp_path, "config", *arguments)
    assert (ran.code, "only a person may do it" in ran.err) == (2, True)
    assert 'decisions = "user"' in (tmp_path / "config.toml").read_text()
    terminal = Terminal(tmp_path, "config", *arguments)
    code, text = terminal.end()
    assert (code, "config.toml" in text) == (0, True)
    assert interlock(tmp_path, "config", "show", "--json").json["decisions"]["value"] == "auto"


def test_the_pin_is_asked_for_before_anything_is_loosened(tmp_path: Path) -> None:
    assert interlock(tmp_path, "config", "set", "decisions", "user").code == 0
    terminal = Terminal(tmp_path, "config", "pin")
    for prompt in ("New PIN", "Repeat"):
        terminal.until(prompt)
        terminal.until(": ")
        terminal.type("4711\n")
    assert terminal.end()[0] == 0
    terminal = Terminal(tmp_path, "config", "set", "decisions", "agent")
    terminal.until("PIN: ")
    terminal.type("1234\n")
    assert terminal.end()[0] == 1
    assert 'decisions = "user"' in (tmp_path / "config.toml").read_text()
