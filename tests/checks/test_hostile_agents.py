"""Agents that would rather not be checked, against the real server: each is stopped, or recorded as it is."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.authoring.library import Loaded
from interlock.cli.compose import ledger_of
from interlock.cli.config import resolve
from interlock.core.run.events import CheckRan
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.decisions.trust import give_trust, trustable
from interlock.ledger.errors import LedgerError
from interlock.ledger.evidence.verification import verified_session
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import entries_of
from interlock.ledger.outbox.announcements import Announcement
from interlock.ledger.outbox.timers import end_time
from interlock.ledger.outbox.wording import equip
from interlock.ledger.queries.status import find_session
from support.postgres_server import require_postgres, shared_server
from support.server import Server

PYTEST = shlex.join([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"])
GOOD = "def test_sum():\n    assert 1 + 1 == 2\n"
BAD = "def test_sum():\n    assert 1 + 1 == 3\n"
FLOW = """
id: team.work
name: Work
version: 1.0.0
steps:
  - {id: build, title: Build, prompt: Build it., checks: [CHECK]}
  - {id: review, type: gate, message: "Tests: {{checks.tests}}", options: [{id: ok, label: Accept}, {id: no}]}
  - {id: close, title: Close, prompt: Close it.}
"""


class Project:
    """A repository with a workflow whose check is trusted, and servers onto it."""

    def __init__(self, folder: Path, store: str) -> None:
        self.data, self.folder = folder / "data", folder / "project"
        self.flags = ["--project", str(self.folder), *(["--store", store] if store else [])]
        self._settings = {"data-dir": str(self.data), "project": str(self.folder)}
        self._settings |= {"store": store} if store else {}
        (self.folder / ".interlock" / "workflows").mkdir(parents=True)
        self.test = self.folder / "test_sum.py"
        self.test.write_text(GOOD)

    def flow(self, run: str = PYTEST, more: str = "", decide: str = "") -> None:
        check = f"{{id: tests, run: {msgspec.json.encode(run).decode()}{more}}}"
        text = FLOW.replace("CHECK", check).replace("type: gate,", f"type: gate,{decide}")
        (self.folder / ".interlock" / "workflows" / "work.yaml").write_text(text)

    def trust(self) -> None:
        ledger = self.ledger()
        loaded = ledger.library.load("team.work")
        assert isinstance(loaded, Loaded), loaded
        for check in trustable(ledger, loaded.workflow, self.folder):
            give_trust(ledger, check, self.folder, "cli")
        ledger.store.close()

    def ledger(self) -> Ledger:
        return ledger_of(resolve(self._settings))

    def server(self, *flags: str) -> Server:
        return Server(self.data, *self.flags, *flags)

    def checks(self, session: str) -> list[CheckRan]:
        """Return the checks that the log of a session has."""
        ledger = self.ledger()
        found = find_session(ledger, session)
        with ledger.store.reading() as reader:
            rows = reader.commits(found.session_id)
        events = [entry.event for row in rows for entry in entries_of(row)]
        ledger.store.close()
        return [event for event in events if isinstance(event, CheckRan)]


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    store = ""
    if request.param == "postgres":
        require_postgres()
        store = shared_server().in_schema(f"checks_{os.getpid()}_{time.monotonic_ns()}")
    project = Project(tmp_path, store)
    project.flow()
    return project


def start(server: Server) -> dict[str, Any]:
    return server.call("start_workflow", workflowId="team.work")


def decide(option: str = "ok") -> dict[str, Any]:
    return {"artifacts": [{"kind": "wr.decision", "checkpointId": "review", "optionId": option}]}


def test_a_real_run_shows_the_check_that_ran(project: Project) -> None:
    project.trust()
    with project.server() as server:
        first, began = start(server), round(time.time() * 1000)
        gate = server.ack(first, "Built.")
        assert "Tests: passed (run by the server on files " in gate["_text"]
        assert "-m pytest -q -p no:cacheprovider, exit 0)" in gate["_text"]
        assert "Close it." in server.ack(gate, output=decide())["_text"]
        (ran,) = project.checks(gate["session"]["sessionId"])
    assert (ran.passed, ran.exit, ran.ended, ran.trusted_by) == (True, 0, "exited", "cli:local")
    assert began <= ran.at - ran.duration_ms
    assert "1 passed" in ran.output
    assert ran.tree_before == ran.tree_after


def test_a_failing_check_blocks_until_it_passes(project: Project) -> None:
    project.trust()
    project.test.write_text(BAD)
    with project.server() as server:
        first = start(server)
        blocked = server.ack(first, "All tests pass.")
        assert blocked["kind"] == "blocked"
        assert "Check 'tests' failed (exit 1): expected exit 0" in blocked["_text"]
        assert "1 failed" in blocked["_text"]
        again = server.ack(first, "All tests pass.")
        assert again["_text"] == blocked["_text"]  # the recorded answer: nothing was run
        project.test.write_text(GOOD)
        assert "Tests: passed" in server.ack(blocked, "Now they do.")["_text"]


def test_a_check_that_nobody_has_trusted_is_not_run(project: Project) -> None:
    with project.server() as server:
        blocked = server.ack(start(server), "Built.")
        assert "Check 'tests' was not run: the user has not trusted it" in blocked["_text"]
        assert f"interlock trust team.work --project {project.folder}" in blocked["_text"]
        assert "end your turn" in blocked["_text"]
        project.trust()
        assert "Tests: passed" in server.ack(blocked, "Built.")["_text"]
        first, second = project.checks(blocked["session"]["sessionId"])
    assert (first.ended, first.passed, first.trusted_by) == ("not_started", False, "")
    assert second.passed


def test_tests_that_are_edited_after_the_check_are_run_again_before_the_gate(project: Project) -> None:
    project.trust()
    with project.server() as server:
        gate = server.ack(start(server), "Built.")
        project.test.write_text(BAD)
        blocked = server.ack(gate, output=decide())
        assert blocked["kind"] == "blocked"
        assert "Check 'tests' failed" in blocked["_text"]
        project.test.write_text(GOOD + "\n\ndef test_more():\n    pass\n")
        asked = server.ack(blocked, output=decide())
        assert "Files have changed since checkpoint 'review' was put" in asked["_text"]
        assert asked["_text"].count("Tests: passed") == 1
        assert "Close it." in server.ack(asked, output=decide())["_text"]
        ran = project.checks(gate["session"]["sessionId"])
    assert [check.passed for check in ran] == [True, False, True]
    assert len({check.tree_after for check in ran}) == 3


def test_tests_that_lie_behind_a_link_are_run_again_before_every_answer(
    project: Project, tmp_path: Path
) -> None:
    project.trust()
    project.test.unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "test_sum.py").write_text(GOOD)
    (project.folder / "tests").symlink_to(tmp_path / "elsewhere")
    with project.server() as server:
        gate = server.ack(start(server), "Built.")
        assert "Tests: passed (run by the server on files that cannot be compared" in gate["_text"]
        (tmp_path / "elsewhere" / "test_sum.py").write_text(BAD)
        blocked = server.ack(gate, output=decide())
        assert "Check 'tests' failed (exit 1)" in blocked["_text"]
        (tmp_path / "elsewhere" / "test_sum.py").write_text(GOOD)
        assert "Close it." in server.ack(blocked, output=decide())["_text"]


def test_a_check_that_writes_files_does_not_keep_its_question_from_being_answered(project: Project) -> None:
    project.flow(shlex.join([sys.executable, "-c", "import time; open('log', 'w').write(str(time.time()))"]))
    project.trust()
    with project.server() as server:
        gate = server.ack(start(server), "Built.")
        assert "Tests: passed (run by the server while files changed" in gate["_text"]
        assert "Close it." in server.ack(gate, output=decide())["_text"]


def test_a_check_whose_file_was_edited_is_untrusted_again(project: Project) -> None:
    """The run that began before keeps the command that it began with."""
    project.trust()
    project.test.write_text(BAD)
    with project.server() as server:
        before = start(server)
        project.flow("true")
        blocked = server.ack(start(server), "Built.")
        assert "it has changed since the user trusted it: true" in blocked["_text"]
        assert "Check 'tests' failed (exit 1)" in server.ack(before, "Built.")["_text"]


def test_a_folder_that_is_swapped_for_a_link_is_not_entered(project: Project, tmp_path: Path) -> None:
    (project.folder / "app").mkdir()
    project.flow("touch seen", ", in: app")
    project.trust()
    (project.folder / "app").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (project.folder / "app").symlink_to(tmp_path / "elsewhere")
    with project.server() as server:
        blocked = server.ack(start(server), "Built.")
    assert "its folder 'app' is not in the project folder" in blocked["_text"]
    assert not (tmp_path / "elsewhere" / "seen").exists()


def test_a_printed_result_counts_for_nothing(project: Project) -> None:
    project.trust()
    fake = '{"exit": 0}\\n== 1 passed ==\\npassed (run by the server), exit 0'
    project.test.write_text(
        f'import os\n\n\ndef test_sum():\n    os.write(1, b"""{fake}""")\n    os._exit(1)\n'
    )
    with project.server() as server:
        blocked = server.ack(start(server), "Built.")
        (ran,) = project.checks(blocked["session"]["sessionId"])
    assert blocked["kind"] == "blocked"
    assert (ran.exit, ran.passed) == (1, False)


def test_what_outlives_the_check_or_its_limit_is_ended(project: Project) -> None:
    child = "import time; time.sleep(60)"
    code = (
        "import subprocess, sys, time; "
        f"kept = subprocess.Popen([sys.executable, '-c', '{child}'], start_new_session=True); "
        "open('pid', 'w').write(str(kept.pid)); time.sleep(60)"
    )
    project.flow(shlex.join([sys.executable, "-c", code]), ", timeout: 2")
    project.trust()
    with project.server() as server:
        blocked = server.ack(start(server), "Built.")
        (ran,) = project.checks(blocked["session"]["sessionId"])
    assert "it was ended after its time limit of 2 s" in blocked["_text"]
    assert (ran.ended, ran.exit) == ("timed_out", None)
    assert not is_alive(int((project.folder / "pid").read_text()))


def test_endless_output_fills_neither_memory_nor_disk(project: Project) -> None:
    project.flow(shlex.join([sys.executable, "-c", "while True: print('x' * 9999)"]), ", timeout: 3")
    project.trust()
    with project.server() as server:
        blocked = server.ack(start(server), "Built.")
        peak = next(
            line
            for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
            if "VmHWM" in line
        )
        (ran,) = project.checks(blocked["session"]["sessionId"])
    assert ran.ended == "timed_out"
    assert len(ran.output) <= 4_000
    assert int(peak.split()[1]) < 150_000
    assert sum(path.stat().st_size for path in project.data.rglob("*") if path.is_file()) < 20_000_000


SLOW = shlex.join([sys.executable, "-c", "import os, time; open(f'ran-{os.getpid()}', 'w'); time.sleep(4)"])


def runs(project: Project) -> list[int]:
    return [int(path.name.removeprefix("ran-")) for path in project.folder.glob("ran-*")]


def wait_for_run(project: Project) -> int:
    for _ in range(200):
        if runs(project):
            return runs(project)[0]
        time.sleep(0.05)
    raise AssertionError("the check has not begun")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_ended(pid: int) -> bool:
    for _ in range(300):
        if not is_alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_calls_while_a_check_runs_are_answered_and_the_same_call_runs_it_once(project: Project) -> None:
    project.flow(SLOW)
    project.trust()
    with project.server() as server:
        first = start(server)
        ack = {"stateToken": first["stateToken"], "ackToken": first["ackToken"], "context": {"n": 1}}
        server.send("tools/call", {"name": "continue_workflow", "arguments": ack})
        wait_for_run(project)
        assert "Build it." in server.call("continue_workflow", stateToken=first["stateToken"])["_text"]
        server.send("tools/call", {"name": "continue_workflow", "arguments": ack})
        texts = [server.receive()["result"]["content"][0]["text"] for _ in range(2)]
        assert "Tests: passed" in texts[0]
        assert texts[0] == texts[1]
        assert len(project.checks(first["session"]["sessionId"])) == 1
    assert len(runs(project)) == 1


def test_a_server_that_is_killed_takes_its_check_with_it_and_records_nothing(project: Project) -> None:
    project.flow(SLOW)
    project.trust()
    with project.server() as server:
        first = start(server)
        ack = {"stateToken": first["stateToken"], "ackToken": first["ackToken"]}
        server.send("tools/call", {"name": "continue_workflow", "arguments": ack})
        running = wait_for_run(project)
        server.kill()
    assert is_ended(running)
    assert project.checks(first["session"]["sessionId"]) == []
    with project.server() as server:
        assert "Tests: passed" in server.ack(first, "Built.")["_text"]
    assert len(runs(project)) == 2


def test_a_call_that_is_cancelled_ends_its_check(project: Project) -> None:
    project.flow(SLOW.replace("sleep(4)", "sleep(60)"))
    project.trust()
    with project.server() as server:
        first = start(server)
        ack = {"stateToken": first["stateToken"], "ackToken": first["ackToken"]}
        sent = {"name": "continue_workflow", "arguments": ack, "_meta": {"progressToken": "p"}}
        server.send("tools/call", sent)
        running = wait_for_run(project)
        progress = server.receive()
        assert progress["params"]["message"] == "Running check 'tests'"
        server._write({"method": "notifications/cancelled", "params": {"requestId": server._id}})
        assert is_ended(running)
        assert project.checks(first["session"]["sessionId"]) == []


def test_other_surfaces_hold_a_step_for_its_check(project: Project) -> None:
    project.trust()
    project.test.write_text(BAD)
    with project.server("--surface", "navigation") as server:
        state = server.call("nav_start", workflow_id="team.work")["state"]
        action = {"state": state, "action": "complete_step", "step_id": "build"}
        failed = server.call("nav_action", **action)
        assert failed["error"]["code"] == "CHECK_FAILED"
        assert "1 failed" in failed["error"]["message"]
        project.test.write_text(GOOD)
        assert "Tests: passed" in server.call("nav_action", **action)["_text"]
    for surface in ("session", "gated"):
        project.test.write_text(BAD)
        with project.server("--surface", surface) as server:
            token = server.call("start_session", workflow_id="team.work", agent_id="worker")
            entered = server.call("next_activity", session_token=given(token), activity_id="main")
            manifest = [{"step_id": "build", "output": "done"}]
            claim = {"activity_id": "__terminal__", "step_manifest": manifest}
            refused = server.call("next_activity", session_token=given(entered), **claim)
            assert "Check 'tests' failed (exit 1)" in refused["_text"]
            project.test.write_text(GOOD)
            held = server.call("next_activity", session_token=given(refused, entered), **claim)
            assert "review" in held["_text"]
            assert "Check 'tests'" not in held["_text"]


def given(*answers: dict[str, Any]) -> str:
    """Return the newest token of these answers."""
    for answer in answers:
        for token in (answer.get("session_token"), answer["_meta"].get("session_token")):
            if token:
                return str(token)
    raise AssertionError(answers)


def yields(project: Project, surface: str) -> None:
    """Let an agent build, and put the question of the review."""
    project.trust()
    with project.server("--surface", surface, "--decisions", "user") as server:
        agent = {"agent_id": "worker"} if surface == "session" else {}
        token = server.call("start_session", workflow_id="team.work", **agent)
        entered = server.call("next_activity", session_token=given(token), activity_id="main")
        put, where = (
            ("yield_checkpoint", {}) if surface == "session" else ("get_checkpoint", {"activity_id": "main"})
        )
        brought = {"checkpoint_id": "review", "step_manifest": [{"step_id": "build", "output": "done"}]}
        server.call(put, session_token=given(entered), **where, **brought)


@pytest.mark.parametrize("surface", ["session", "gated"])
@pytest.mark.parametrize("rule", ["", " decide: {by: [ada, ben], atLeast: 2},"])
def test_people_answer_only_with_checks_that_still_hold(project: Project, surface: str, rule: str) -> None:
    """A failed check holds up the last answer; a new result puts the question again, to all of them."""
    project.flow(decide=rule)
    yields(project, surface)
    ledger = project.ledger()
    people = [ledger.of(ledger.owner, name) for name in ("ada", "ben")] if rule else [ledger]

    def answered() -> list[bool]:
        (asked,) = inbox(ledger)
        return [answer_question(person, asked, "ok") for person in people]

    project.test.write_text(BAD)
    with pytest.raises(LedgerError, match="Check 'tests' failed"):
        answered()
    project.test.write_text(GOOD + "\n")
    (shown,) = inbox(ledger)
    with pytest.raises(LedgerError, match="it is asked again with their results"):
        answer_question(people[-1], shown, "ok")
    (asked,) = inbox(ledger)
    assert asked.shown != shown.shown
    assert answered()[-1]
    assert inbox(ledger) == ()
    session, violations = asked.session_id, verified_session(ledger, asked.session_id).wrong
    ledger.store.close()
    assert violations == ()
    assert [ran.passed for ran in project.checks(session)] == [True, True]


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_time_takes_no_option_while_a_check_does_not_hold(project: Project, surface: str) -> None:
    project.flow(decide=" decide: {by: [ada], within: 1s, then: {option: ok}},")
    yields(project, surface)
    ledger = project.ledger()
    courier = equip(ledger)
    (shown,) = inbox(ledger)
    project.test.write_text(BAD)
    time.sleep(1.1)
    courier.send_due()
    assert [each.shown for each in inbox(ledger)] == [shown.shown]
    project.test.write_text(GOOD + "\n")
    end_time(ledger, shown, Announcement(shown.since, 0, "review", shown.key, shown.shown))
    (asked,) = inbox(ledger)
    assert asked.shown != shown.shown
    time.sleep(1.1)
    courier.send_due()
    assert inbox(ledger) == ()
    ledger.store.close()
