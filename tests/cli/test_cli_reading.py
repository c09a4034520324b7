"""The reading commands, as processes on a store that a real server has filled."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.cli.commands.sessions.tree_ import draw
from interlock.cli.screen import inform, say
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.projection import Rows
from interlock.ledger.log.records import SessionCreated
from interlock.ledger.queries.tree import Tree, TreeNode
from interlock.store.protocol import SessionRow
from interlock.store.sqlite.store import open_store
from support.cli_process import (
    PATIENCE,
    Terminal,
    agent,
    environment,
    forked,
    golden,
    hear_interrupts,
    interlock,
    settled,
    to_the_gate,
)
from support.harness import Bench, steps, workflow

pytestmark = pytest.mark.slow

COLUMNS = 80


class Work(NamedTuple):
    data: Path
    waiting: str
    done: str
    bare: str


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    data = tmp_path_factory.mktemp("data")
    with agent(data) as one:
        waiting = to_the_gate(one)
        done = forked(one, "Rename the flag of the exporter without breaking anybody's scripts")
        bare = one.call("start_session", title="Notes before any workflow")["session"]["sessionId"]
    return Work(data, waiting, done, bare)


SCREENS = {
    "sessions": (["sessions"], 0),
    "status": (["status", "DONE"], 0),
    "status-waiting": (["status", "WAITING"], 4),
    "tree": (["tree", "DONE"], 0),
    "log": (["log", "DONE"], 0),
    "notes": (["notes", "DONE"], 0),
    "inbox": (["inbox"], 4),
    "resume": (["resume", "exporter", "flag"], 0),
    "mode": (["mode"], 0),
    "show": (["show", "wr.small_task"], 0),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_it_was_looked_at(work: Work, name: str) -> None:
    arguments, code = SCREENS[name]
    named = {"DONE": work.done, "WAITING": work.waiting}
    ran = interlock(work.data, *(named.get(argument, argument) for argument in arguments))
    assert ran.code == code
    assert max(map(len, ran.out.splitlines())) <= COLUMNS
    assert "\x1b" not in ran.out
    golden(name, settled(ran.out, work.waiting, work.done, work.bare))


KEYS = {
    "sessions": (
        "sessions",
        "awaiting branch createdAt gaps keep owner project ref runs sessionId status steps title updatedAt "
        "workflowId",
    ),
    "tree DONE": ("runs", "forks nodes runId status tip workflowId"),
    "log DONE": ("events", "at event imported index kind node principal run"),
    "status DONE": (
        "runs",
        "abandoned autonomy branches decided gapList gaps mode pending riskPolicy runId startedAt status tip "
        "updatedAt workflowHash workflowId",
    ),
    "notes DONE": ("entries", "notes recordedAt step"),
    "inbox": (
        "questions",
        "decide default defaultAt id key message name node options owner ref"
        " runId sessionId shown since title",
    ),
    "resume exporter": (
        "candidates",
        "ref runId sessionId snippet status title updatedAt whyMatched workflowId",
    ),
    "mode": ("modes", "autonomy description label mode node riskPolicy runId"),
    "list": (
        "workflows",
        "category description form idStatus kind name source suggestedId tags version "
        "workflowHash workflowId",
    ),
}


@pytest.mark.parametrize("command", KEYS)
def test_json_has_stable_keys(work: Work, command: str) -> None:
    member, keys = KEYS[command]
    ran = interlock(work.data, *command.replace("DONE", work.done).split(), "--json")
    first: dict[str, Any] = ran.json[member][0]
    assert " ".join(sorted(first)) == keys


def test_the_newest_session_comes_first_and_limits_hold(work: Work) -> None:
    ran = interlock(work.data, "sessions", "--json", "--limit", "2").json
    assert [session["title"][:5] for session in ran["sessions"]] == ["Notes", "Renam"]
    assert ran["more"] is True


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--status", "complete"], ["done"]),
        (["--status", "waiting"], ["waiting"]),
        (["--status", "stale"], []),
        (["--awaiting"], ["waiting"]),
        (["--workflow", "wr.small_task"], ["done", "waiting"]),
        (["--workflow", "wr.release"], []),
    ],
)
def test_sessions_are_filtered(work: Work, filters: list[str], found: list[str]) -> None:
    ran = interlock(work.data, "sessions", "--json", *filters).json
    assert [session["sessionId"] for session in ran["sessions"]] == [getattr(work, item) for item in found]


def test_a_run_without_activity_for_long_is_stale(bench: Bench) -> None:
    bench.clock.now = 1_000_000_000_000
    bench.write(workflow(*steps("one")))
    bench.agent().start("test.flow")
    ran = interlock(bench.folder, "sessions", "--status", "stale")
    assert (ran.code, "stale  test.flow" in ran.out) == (0, True)
    assert interlock(bench.folder, "sessions", "--status", "in_progress", "--json").json["sessions"] == []
    both = interlock(bench.folder, "sessions", "--status", "stale", "--awaiting")
    assert (both.code, "give one of them" in both.err) == (2, True)


def test_a_session_is_found_by_a_short_id_by_its_run_and_in_full(work: Work) -> None:
    whole = interlock(work.data, "status", work.done, "--json").json
    for ref in (whole["ref"], work.done[:9], whole["runs"][0]["runId"]):
        assert interlock(work.data, "status", ref, "--json").json == whole


def test_an_unknown_session_is_not_found_in_one_line(work: Work) -> None:
    for command in ("status", "tree", "log", "notes"):
        ran = interlock(work.data, command, "zzzzzzzz")
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (3, "", 1)
        assert "interlock sessions" in ran.err


def test_nothing_found_exits_with_three(work: Work) -> None:
    assert interlock(work.data, "show", "wr.no_such_thing").code == 3
    assert interlock(work.data, "notes", work.done, "--node", "99").code == 3


def test_a_search_without_a_match_shows_the_newest_and_says_so(work: Work) -> None:
    ran = interlock(work.data, "resume", "zeppelin", "--json")
    assert (ran.code, [candidate["whyMatched"] for candidate in ran.json["candidates"]]) == (
        3,
        ["recency_fallback"] * 3,
    )
    assert interlock(work.data, "resume").code == 0


def test_the_tree_marks_one_preferred_tip_and_names_the_cause_of_a_fork(work: Work) -> None:
    run = interlock(work.data, "tree", work.done, "--json").json["runs"][0]
    nodes = run["nodes"]
    assert [node["node"] for node in nodes if node["preferred"]] == [run["tip"]]
    assert [node["parent"] for node in nodes if node["cause"] == "non_tip_advance"] == [3]
    assert [node["node"] for node in nodes if node["tip"]] == [5, 7]
    assert [node["kind"] for node in nodes].count("note") == 1


def test_the_notes_of_another_branch_can_be_read(work: Work) -> None:
    told = [
        entry["notes"]
        for entry in interlock(work.data, "notes", work.done, "--node", "5", "--json").json["entries"]
    ]
    assert "Handed over." not in told
    assert "The suite is green." in told


def test_the_log_is_filtered_by_kind(work: Work) -> None:
    ran = interlock(work.data, "log", work.done, "--json", "--kind", "gate_resolved").json
    assert [event["event"]["option"] for event in ran["events"]] == ["rework", "accept"]
    assert len(interlock(work.data, "log", work.done, "--limit", "3").out.splitlines()) == 3


def test_a_terminal_gets_colour_and_no_color_takes_it_away(work: Work) -> None:
    assert "\x1b[36m" in Terminal(work.data, "sessions").end()[1]
    assert "\x1b" not in Terminal(work.data, "sessions", NO_COLOR="1").end()[1]


def test_a_terminal_is_kept_to_its_width(work: Work) -> None:
    for command in (["sessions"], ["tree", work.done], ["log", work.done], ["list"]):
        code, text = Terminal(work.data, *command, NO_COLOR="1").end()
        assert code == 0
        assert max(map(len, text.splitlines())) <= COLUMNS


def test_a_pipe_gets_whole_titles(work: Work) -> None:
    ran = interlock(work.data, "sessions", COLUMNS="")
    assert "without breaking anybody's scripts" in ran.out


def test_what_agents_write_cannot_steer_a_terminal(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = one.start("wr.small_task", goal="\x1b]0;owned\x07\x1b[2Jred")["session"]["sessionId"]
        one.go_on("\x1b[31mred\u202e notes \x9b31m \U000e0041")
    for command in (
        ["sessions"],
        ["status", session],
        ["tree", session],
        ["log", session],
        ["notes", session],
        ["notes", session, "--json"],
        ["log", session, "--json"],
        ["resume", "red", "--json"],
    ):
        ran = interlock(tmp_path, *command)
        assert not set("\x1b\x07\u202e\x9b\U000e0041") & set(ran.out)
        assert "red" in ran.out or command[0] == "tree"


def test_a_line_that_is_printed_has_no_codes_but_our_colours(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x1b[2J\x1b]0;owned\x07red\u202e\r\x9b31m")
    inform("\x1b[8mhidden")
    assert capsys.readouterr() == ("[2J]0;ownedred31m\n", "[8mhidden\n")


def test_escapes_in_json_mean_what_was_written(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = one.start("wr.small_task", goal="g")["session"]["sessionId"]
        one.go_on("a\x9bb\u202ec\U000e0041d\x7fe é 漢")
    notes = interlock(tmp_path, "notes", session, "--json")
    assert notes.json["entries"][0]["notes"] == "a\x9bb\u202ec\U000e0041d\x7fe é 漢"
    assert "é 漢" in notes.out


def test_a_wide_terminal_is_used_for_lists(work: Work) -> None:
    rows = interlock(work.data, "list", COLUMNS="140").out.splitlines()
    assert 100 < max(map(len, rows)) <= 140


def test_a_title_that_matches_is_not_called_a_note(work: Work) -> None:
    assert ", matched title\n" in interlock(work.data, "resume", "login").out


def test_an_unknown_kind_of_event_is_an_error(work: Work) -> None:
    ran = interlock(work.data, "log", work.done, "--kind", "gate_resolvd")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'gate_resolved'?" in ran.err
    assert "session_created" in interlock(work.data, "log", work.done, "--kind", "nonsense").err


def test_a_blocked_attempt_is_shown_at_the_step_it_was_for(work: Work) -> None:
    lines = interlock(work.data, "tree", work.done).out.splitlines()
    (blocked,) = [line for line in lines if "blocked" in line]
    assert "check-result" in blocked
    assert "after 1 blocked" in blocked


def test_json_is_always_an_object(work: Work) -> None:
    for command in (["explain"], ["explain", "IL503"], ["notes", work.done], ["show", "wr.small_task"]):
        assert isinstance(interlock(work.data, *command, "--json").json, dict)


def test_a_damaged_log_shows_its_sound_part_and_fails(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
    store = apsw.Connection(str(next(tmp_path.glob("*.db"))))
    store.execute("DROP TRIGGER commits_stay")
    store.execute("UPDATE commits SET body = ? WHERE first <= 5 AND last >= 5", (b"[]",))
    store.close()
    ran = interlock(tmp_path, "log", session, "--json")
    assert ran.code == 1
    assert [event["index"] for event in ran.json["events"]] == [0, 1, 2, 3, 4]
    assert "doctor --repair" in ran.err
    for command in (["tree", session], ["notes", session], ["status", session]):
        seen = interlock(tmp_path, *command)
        assert "Traceback" not in seen.err
    drawn = interlock(tmp_path, "tree", session, "--json")
    assert (drawn.code, [node["node"] for node in drawn.json["runs"][0]["nodes"]]) == (1, [0])


def test_following_prints_what_is_recorded_later(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = one.start("wr.small_task", goal="Follow me")["session"]["sessionId"]
        command = [sys.executable, "-m", "interlock", "log", session, "--follow", "--json"]
        env = environment(INTERLOCK_DATA_DIR=str(tmp_path), PYTHONUNBUFFERED="1")
        heard = {"preexec_fn": hear_interrupts}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True, **heard) as follower:
            assert follower.stdout is not None
            assert json.loads(follower.stdout.readline())["kind"] == "session_created"
            one.go_on("Something new")
            kinds = iter(lambda: json.loads(follower.stdout.readline())["kind"], "step_completed")
            assert "node_output_appended" in list(kinds)
            follower.send_signal(signal.SIGINT)
            assert follower.wait(PATIENCE) == 0


def test_a_data_directory_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    ran = interlock(path, "sessions")
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert os.fspath(path) in ran.err


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    assert interlock(tmp_path, "sessions").out == "No sessions.\n"
    assert interlock(tmp_path, "inbox").out == "No decision is waiting for you.\n"
    assert interlock(tmp_path, "inbox").code == 0


@given(st.lists(st.integers(0, 30), max_size=25), st.integers(0, 25))
def test_a_drawing_has_every_node_once_and_marks_one_tip(parents: list[int], chosen: int) -> None:
    """Whatever was forked from whatever, the tree shows all of it."""
    above = [None, *(parent % (target + 1) for target, parent in enumerate(parents))]
    tips = [node for node in range(len(above)) if node not in above]
    tip = tips[chosen % len(tips)]
    nodes = tuple(
        TreeNode(node, parent, "step", "advanced", f"<{node}>", 0, node in tips, node == tip)
        for node, parent in enumerate(above)
    )
    screen = StringIO()
    with redirect_stdout(screen):
        draw(Tree("run", "wf", "in_progress", tip, 0, nodes))
    text = screen.getvalue()
    assert sorted(map(int, re.findall(r"<(\d+)>", text))) == list(range(len(above)))
    assert re.findall(r"◉ (\d+)", text) == [str(tip)]
    assert next(line for line in text.splitlines() if "◉" in line).startswith("◉")


def test_a_beginning_that_fits_two_sessions_is_ambiguous(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for name in ("sess_abcdefgh", "sess_abcdxxxx"):
        commit = Commit(Rows(SessionRow(name, "local", "", 0, 0, -1, bytes(32), 0)), "local", 0, new=True)
        commit.add(SessionCreated("local", "", 0, "execution"))
        store.append(commit.finish())
    store.close()
    ran = interlock(tmp_path, "status", "abcd")
    assert ran.code == 5
    assert "abcdefgh or abcdxxxx" in ran.err
    assert interlock(tmp_path, "log", "abcde").code == 0
