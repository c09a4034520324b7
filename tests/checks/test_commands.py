"""Commands of checks: what they are given, what is kept of them, and what ends with them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from interlock.checks.command import (
    NotStarted,
    environment,
    folder_within,
    run_command,
    unexpected,
)
from interlock.checks.words import arguments_of
from interlock.core.definition.checks import CommandCheck, Expectation

FOREVER = "import time; time.sleep(60)"


def python(code: str, **fields: object) -> CommandCheck:
    import shlex

    return CommandCheck("tests", shlex.join([sys.executable, "-c", code]), **fields)  # type: ignore[arg-type]


def never() -> bool:
    return False


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_command_ends_with_its_status_and_the_end_of_its_output(tmp_path: Path) -> None:
    ended = run_command(
        python("import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"), tmp_path, never
    )
    assert (ended.how, ended.exit, ended.output) == ("exited", 3, "one\ntwo") or ended.output == "two\none"
    assert ended.exit == 3
    assert unexpected(python(""), ended, tmp_path) == "expected exit 0"


def test_there_is_no_shell(tmp_path: Path) -> None:
    ended = run_command(CommandCheck("tests", "echo one && echo two > three $HOME"), tmp_path, never)
    assert ended.output == "one && echo two > three $HOME"
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_does_not_exist_is_not_started(tmp_path: Path) -> None:
    ended = run_command(CommandCheck("tests", "no-such-program"), tmp_path, never)
    assert (ended.how, ended.reason) == ("not_started", "No such file or directory")


@pytest.mark.parametrize("run", ["'", "", " ", "echo \0"])
def test_a_command_that_cannot_be_read_is_not_started(tmp_path: Path, run: str) -> None:
    with pytest.raises(NotStarted, match="cannot be read"):
        run_command(CommandCheck("tests", run), tmp_path, never)


def test_the_environment_is_a_named_list_and_stdin_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("PATH", f"bin:.:{os.environ['PATH']}")
    code = "import os, sys; print(sorted(os.environ)); print(repr(sys.stdin.read()))"
    ended = run_command(python(code), tmp_path, never)
    assert "SECRET_TOKEN" not in ended.output
    assert ended.output.endswith("''")
    assert all(map(os.path.isabs, environment()["PATH"].split(":")))


def test_output_is_bounded_and_cleaned_while_it_is_read(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(20_000): print('x' * 999)\nprint('\\x1b[31mred\\x1b[0m\\x07 end')"
    ended = run_command(python(code), tmp_path, never)
    assert ended.output.endswith("red� end")
    assert len(ended.output) <= 4_000


@pytest.mark.parametrize("unseen", ["\u202e", "\u200b", "\u061c", "\u00ad", "\u180e", "\U000e0041", "\x9b"])
def test_what_cannot_be_seen_in_an_output_is_marked(tmp_path: Path, unseen: str) -> None:
    assert run_command(CommandCheck("tests", f"echo a{unseen}b"), tmp_path, never).output == "a�b"


def test_what_is_expected_of_the_output_and_of_files(tmp_path: Path) -> None:
    wanted = Expectation(0, "12 passed", ("report.txt",))
    check = python("print('12 passed'); open('report.txt', 'w')", expected=wanted)
    assert unexpected(check, run_command(check, tmp_path, never), tmp_path) == ""
    (tmp_path / "report.txt").unlink()
    check = python("print('1' * 70000 + '2 passed')", expected=wanted)
    assert unexpected(check, run_command(check, tmp_path, never), tmp_path) == "there is no file report.txt"
    check = python("print('nothing')", expected=wanted)
    assert unexpected(check, run_command(check, tmp_path, never), tmp_path) == "its output has no '12 passed'"


def test_a_folder_outside_the_project_is_not_entered(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "inside").mkdir(parents=True)
    (project / "linked").symlink_to(project / "inside")
    (project / "out").symlink_to(tmp_path)
    assert folder_within(project, "linked") == (project / "inside").resolve()
    for folder in ("out", "..", "/", "out/project/../..", "missing"):
        with pytest.raises(NotStarted):
            run_command(CommandCheck("tests", "pwd", folder), project, never)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """A process in the same group, and one that has left group and session."""
    code = f"""
import os, subprocess, sys
same = subprocess.Popen([sys.executable, "-c", "{FOREVER}"])
other = subprocess.Popen([sys.executable, "-c", "{FOREVER}"], start_new_session=True)
print(same.pid, other.pid)
"""
    ended = run_command(python(code), tmp_path, never)
    assert ended.exit == 0
    assert [is_alive(int(pid)) for pid in ended.output.split()] == [False, False]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["timed_out", "cancelled"])
def test_a_command_is_ended_at_its_limit_or_with_its_client(tmp_path: Path, how: str) -> None:
    (tmp_path / "pid").write_text("")
    code = f"import os; open('pid', 'w').write(str(os.getpid())); {FOREVER}"
    began = time.monotonic()
    is_gone = (lambda: time.monotonic() > began + 1) if how == "cancelled" else never
    ended = run_command(python(code, timeout=1 if how == "timed_out" else 60), tmp_path, is_gone)
    assert (ended.how, ended.exit) == (how, None)
    assert time.monotonic() - began < 10
    assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
def test_a_command_that_kills_its_supervisor_has_not_passed(tmp_path: Path) -> None:
    ended = run_command(python("import os, signal; os.kill(os.getppid(), signal.SIGKILL)"), tmp_path, never)
    assert (ended.how, ended.exit) == ("cancelled", None)
    assert "ended from outside" in unexpected(python(""), ended, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.parametrize("stop", ["SIGSTOP", "SIGKILL"])
def test_a_command_that_stops_its_supervisor_is_ended_all_the_same(tmp_path: Path, stop: str) -> None:
    code = f"""
import os, signal, time
open("pid", "w").write(str(os.getpid()))
os.kill(os.getppid(), signal.{stop})
time.sleep(60)
"""
    began = time.monotonic()
    ended = run_command(python(code, timeout=1), tmp_path, never)
    assert ended.exit is None
    assert unexpected(python(""), ended, tmp_path)
    assert time.monotonic() - began < 8
    pid = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(pid)


@pytest.mark.slow
@pytest.mark.parametrize("then", ["sys.exit(1)", "os.kill(os.getppid(), signal.SIGKILL)"])
def test_a_command_that_reports_in_place_of_its_supervisor_has_not_passed(tmp_path: Path, then: str) -> None:
    code = f"""
import os, signal, sys, time
try:
    os.write(os.open(f"/proc/{{os.getppid()}}/fd/2", os.O_WRONLY), b'{{"exit": 0}}')
except OSError:
    print("kept apart")
time.sleep(0.2)
{then}
"""
    ended = run_command(python(code), tmp_path, never)
    assert unexpected(python(""), ended, tmp_path)


def test_words_are_split_as_a_shell_would() -> None:
    assert arguments_of("pytest -q 'a b' \"c\"") == ("pytest", "-q", "a b", "c")
