"""Portability and upkeep on the command line, as real processes on a real data directory."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from html.parser import HTMLParser
from pathlib import Path

import apsw
import pytest

from interlock.store.sqlite.store import PAGE_SIZE
from support.cli_process import Ran, agent, interlock, to_the_gate
from support.harness import Bench
from support.session_agents import join_session, start_flow

pytestmark = pytest.mark.slow

ATTACK = "<script>alert(1)</script> ![x](javascript:alert(1)) ``` # heading \x1b[31m & <b>bold</b>"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, str]]:
    """A data directory with one session at its gate, made once."""
    folder = tmp_path_factory.mktemp("template") / "data"
    with agent(folder) as one:
        session = to_the_gate(one)
        tokens = {name: value for name, value in one.said.items() if name.endswith("Token")}
    return folder, session, tokens


@pytest.fixture
def data(template: tuple[Path, str, dict[str, str]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(template[0], tmp_path / "data"))


@pytest.fixture
def session(template: tuple[Path, str, dict[str, str]]) -> str:
    return template[1]


@pytest.fixture
def tokens(template: tuple[Path, str, dict[str, str]]) -> dict[str, str]:
    return template[2]


def sql(data: Path, statement: str, *bindings: object) -> None:
    connection = apsw.Connection(str(data / "interlock.db"))
    connection.execute("DROP TRIGGER IF EXISTS commits_stay")
    connection.execute(statement, bindings)  # type: ignore[arg-type]
    connection.close()


def damage(data: Path, session: str, index: int = 20) -> None:
    changed = "CAST(replace(body, 'e', 'f') AS BLOB)"
    where = "session_id = ?1 AND first <= ?2 AND last >= ?2"
    sql(data, f"UPDATE commits SET body = {changed} WHERE {where}", session, index)


def gone(code: int, ran: Ran) -> Ran:
    assert ran.code == code, ran.err + ran.out
    return ran


def checks(ran: Ran) -> dict[str, bool]:
    return {check["name"]: check["ok"] for check in ran.json["checks"]}


def test_a_session_goes_on_in_another_store_after_export_and_import(
    data: Path, session: str, tmp_path: Path
) -> None:
    file, other = tmp_path / "session.json", tmp_path / "other"
    gone(0, interlock(data, "export", session, "--output", str(file)))
    ran = gone(0, interlock(other, "import", str(file), "--json"))
    assert ran.json["sessionId"] == session
    with agent(other) as one:
        found = one.call("resume_session", query="flaky login")["candidates"][0]
        one.call("continue_workflow", stateToken=found["stateToken"])
        assert one.said["pending"]["stepId"] == "accept-result"
        one.go_on("", {"kind": "wr.decision", "checkpointId": "accept-result", "optionId": "accept"})
        assert one.said["pending"]["stepId"] != "accept-result"


def test_a_bundle_comes_through_a_pipe_and_a_taken_id_becomes_a_new_one(data: Path, session: str) -> None:
    raw = gone(0, interlock(data, "export", session)).out
    ran = gone(0, interlock(data, "import", "-", "--json", given=raw))
    assert ran.json["importedFrom"] == session
    assert ran.json["sessionId"] != session
    listed = gone(0, interlock(data, "sessions", "--json")).json
    assert len(json.dumps(listed).split("sess_")) > 2


def test_a_changed_bundle_is_refused_and_nothing_is_stored(data: Path, session: str, tmp_path: Path) -> None:
    raw = gone(0, interlock(data, "export", session)).out.replace("flaky", "happy")
    ran = gone(1, interlock(tmp_path / "other", "import", "-", given=raw))
    assert "BUNDLE_INTEGRITY_FAILED" in ran.err
    assert "sess_" not in gone(0, interlock(tmp_path / "other", "sessions", "--json")).out


class Tags(HTMLParser):
    """Collects what a browser would take for elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_pages_take_nothing_in_notes_for_markup(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with agent(data) as one:
        one.start("wr.small_task", goal=ATTACK)
        one.go_on(ATTACK, acceptance=["x"])
        session = one.said["session"]["sessionId"]
    page = gone(0, interlock(data, "export", session, "--format", "html")).out
    tags = Tags()
    tags.feed(page)
    assert tags.seen <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "p",
        "pre",
        "strong",
    }
    assert tags.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert "alert(1)" in page
    text = gone(0, interlock(data, "export", session, "--format", "markdown")).out
    outside = re.sub(r"^(`{3,})\w+\n.*?^\1$", "", text, flags=re.S | re.M)
    assert "alert" in outside
    assert "<" not in outside
    assert "](" not in outside
    assert "\x1b" not in text + page


def test_doctor_finds_nothing_wrong_with_a_whole_store(data: Path) -> None:
    ran = gone(0, interlock(data, "doctor", "--json"))
    assert ran.json["ok"]
    assert {"keyring", "permissions", "version", "file", "lock", "disk", "cache", "sessions"} <= checks(
        ran
    ).keys()
    assert "1 checked, 0 damaged" in gone(0, interlock(data, "doctor")).out


def test_doctor_on_an_empty_folder_makes_nothing(tmp_path: Path) -> None:
    gone(0, interlock(tmp_path, "doctor"))
    assert not (tmp_path / "interlock.db").exists()


def test_doctor_names_a_data_directory_that_is_not_there(tmp_path: Path) -> None:
    ran = gone(1, interlock(tmp_path, "doctor", "--data-dir", str(tmp_path / "typo")))
    assert "there is no folder" in ran.out
    assert not (tmp_path / "typo").exists()


def test_a_bundle_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    ran = gone(3, interlock(tmp_path, "import", str(tmp_path / "typo.json")))
    assert "There is no file" in ran.err


def test_a_damaged_session_is_named_exported_with_a_banner_and_repaired(
    data: Path, session: str, tokens: dict[str, str]
) -> None:
    damage(data, session)
    found = gone(1, interlock(data, "doctor"))
    assert session in found.out
    assert "interlock doctor --repair" in found.out
    with agent(data) as one:
        refused = one.call(
            "continue_workflow", stateToken=tokens["stateToken"], ackToken=tokens["ackToken"], output={}
        )
        assert refused["code"] == "SESSION_NOT_HEALTHY"
    shown = gone(1, interlock(data, "export", session, "--format", "markdown"))
    assert "This session is damaged" in shown.out
    assert "One test is flaky" in shown.out
    assert "kept as sha256:" in gone(0, interlock(data, "doctor", "--repair")).out
    gone(0, interlock(data, "doctor"))
    with agent(data) as one:
        candidate = one.call("resume_session", query="flaky login")["candidates"][0]
        one.call("continue_workflow", stateToken=candidate["stateToken"])
        assert one.go_on("going on")["pending"]


def test_export_alone_stops_a_damaged_session_from_going_on(
    data: Path, session: str, tokens: dict[str, str]
) -> None:
    damage(data, session)
    gone(1, interlock(data, "export", session))
    with agent(data) as one:
        assert one.call("continue_workflow", stateToken=tokens["stateToken"])["code"] == "SESSION_NOT_HEALTHY"


def test_doctor_rebuilds_rows_that_are_not_what_the_events_make(data: Path, session: str) -> None:
    sql(data, "UPDATE runs SET started_at = 0 WHERE session_id = ?", session)
    assert "runs" in gone(1, interlock(data, "doctor")).out
    gone(0, interlock(data, "doctor", "--repair"))
    gone(0, interlock(data, "doctor"))


def test_a_damaged_page_is_recovered_and_the_damaged_file_kept(data: Path, session: str) -> None:
    path = data / "interlock.db"
    connection = apsw.Connection(str(path))
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'nodes'").get
    connection.close()
    with path.open("r+b") as file:
        file.seek((int(str(page)) - 1) * PAGE_SIZE)
        file.write(b"\xaa" * PAGE_SIZE)
    assert not checks(gone(1, interlock(data, "doctor", "--json")))["file"]
    gone(0, interlock(data, "doctor", "--repair"))
    assert (data / "interlock.db.damaged-1").exists()
    gone(0, interlock(data, "doctor"))
    assert session in gone(0, interlock(data, "sessions", "--json")).out


@pytest.mark.skipif(os.name != "posix", reason="checks POSIX file permissions")
def test_doctor_sees_what_others_can_read(data: Path) -> None:
    data.chmod(0o755)
    ran = gone(1, interlock(data, "doctor", "--json"))
    assert not checks(ran)["permissions"]


def test_a_damaged_keyring_is_named(data: Path) -> None:
    (data / "keys" / "keyring.json").write_text("{")
    ran = gone(1, interlock(data, "doctor", "--json"))
    assert not checks(ran)["keyring"]


def test_a_newer_store_is_refused_with_what_to_do(data: Path) -> None:
    sql(data, "PRAGMA user_version = 99")
    for command in (("sessions",), ("doctor",), ("gc", "--dry-run")):
        ran = gone(1, interlock(data, *command))
        assert "update Interlock" in ran.out + ran.err
        assert "Traceback" not in ran.err


def test_gc_removes_what_is_old_unless_it_is_kept(data: Path, session: str) -> None:
    old = int(time.time() * 1000) - 91 * 86_400_000
    sql(data, "UPDATE sessions SET updated_at = ? WHERE session_id = ?", old, session)
    gone(0, interlock(data, "gc", "--keep", session))
    assert gone(0, interlock(data, "gc", "--waiting", "--json")).json["removed"] == 0
    gone(0, interlock(data, "gc", "--unkeep", session))
    dry = gone(0, interlock(data, "gc", "--waiting", "--dry-run", "--json")).json
    assert (dry["sessions"], dry["days"]) == ([session], 90)
    assert gone(0, interlock(data, "gc", "--waiting", "--json")).json["removed"] == 1
    gone(3, interlock(data, "status", session))


def test_how_long_sessions_are_kept_is_a_setting(data: Path, session: str) -> None:
    old = int(time.time() * 1000) - 91 * 86_400_000
    sql(data, "UPDATE sessions SET updated_at = ? WHERE session_id = ?", old, session)
    (data / "config.toml").write_text("retention-days = 365\n")
    assert gone(0, interlock(data, "gc", "--waiting", "--json")).json["days"] == 365
    assert (
        gone(0, interlock(data, "gc", "--waiting", "--json", INTERLOCK_RETENTION_DAYS="30")).json["removed"]
        == 1
    )
    gone(2, interlock(data, "gc", INTERLOCK_RETENTION_DAYS="-1"))


def test_a_retention_profile_is_a_number_of_days_and_leaves_the_head_of_the_log(
    data: Path, session: str
) -> None:
    head = gone(0, interlock(data, "log", session, "--json")).json["events"][-1]["index"]
    for days, profile, removed in ((31, "quarter", 0), (91, "half-year", 0), (91, "quarter", 1)):
        old = int(time.time() * 1000) - days * 86_400_000
        sql(data, "UPDATE sessions SET updated_at = ? WHERE session_id = ?", old, session)
        ran = gone(0, interlock(data, "gc", "--waiting", "--profile", profile, "--json"))
        assert ran.json["removed"] == removed
    ran = gone(3, interlock(data, "status", session))
    assert f"was removed, with event {head} (sha256:" in ran.err
    gone(2, interlock(data, "gc", "--profile", "month", "--days", "5"))


def test_gc_leaves_what_waits_for_the_user_unless_it_is_told_otherwise(data: Path, session: str) -> None:
    ran = gone(0, interlock(data, "gc", "--days", "0"))
    assert "1 session waiting for you at a gate stayed; --waiting removes them too." in ran.out
    gone(4, interlock(data, "status", session, "--json"))
    assert gone(0, interlock(data, "gc", "--days", "0", "--waiting", "--json")).json["removed"] == 1
    gone(3, interlock(data, "status", session))


def test_gc_leaves_what_is_young(data: Path, session: str) -> None:
    assert gone(0, interlock(data, "gc", "--json")).json["removed"] == 0
    assert (
        gone(0, interlock(data, "gc", "--days", "0", "--waiting", "--dry-run", "--json")).json["wouldRemove"]
        == 1
    )


def test_a_token_is_valid_until_its_key_is_retired(data: Path, tokens: dict[str, str]) -> None:
    first = gone(0, interlock(data, "keys", "show", "--json")).json
    ran = gone(5, interlock(data, "keys", "retire"))
    assert "Run `interlock keys prepare` first." in ran.err
    prepared = gone(0, interlock(data, "keys", "prepare", "--json")).json
    assert prepared["current"] == first["current"]
    activated = gone(0, interlock(data, "keys", "activate", "--json")).json
    assert (activated["current"], activated["previous"]) == (prepared["prepared"], first["current"])
    gone(0, interlock(data, "token", "inspect", tokens["stateToken"]))
    gone(0, interlock(data, "keys", "retire"))
    ran = gone(1, interlock(data, "token", "inspect", tokens["stateToken"]))
    assert "retired" in ran.err


def test_a_checkpoint_handle_says_that_it_is_one_and_which_question_it_answers(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    ran = gone(0, interlock(bench.folder, "token", "inspect", handle))
    assert ran.out.startswith("a checkpoint handle (ses.v1.…), which answers one question")
    assert "checkpoint         scope\n" in ran.out
    assert "answer " not in ran.out
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    later = gone(0, interlock(bench.folder, "token", "inspect", handle, "--json")).json
    assert (later["kind"], later["checkpoint"], later["answer"]) == ("ses", "scope", "yes")
    token = gone(0, interlock(bench.folder, "token", "inspect", lead.token))
    assert token.out.startswith("a session token (ses.v1.…), version v1\n")
    assert "checkpoint  " not in token.out


def test_a_token_shows_where_it_leads_and_not_its_secret(
    data: Path, session: str, tokens: dict[str, str]
) -> None:
    ran = gone(0, interlock(data, "token", "inspect", tokens["ackToken"], "--json"))
    assert ran.json["kind"] == "ack"
    assert ran.json["sid"] == session
    assert ran.json["wf"] == "wr.small_task"
    assert ran.json["bcp"] == "accept-result"
    assert not ran.json["used"]
    connection = apsw.Connection(str(data / "interlock.db"))
    handle = connection.execute("SELECT handle FROM handles").get
    connection.close()
    assert isinstance(handle, bytes)
    assert handle.hex() not in ran.out
    miscopied = tokens["ackToken"].swapcase().replace("ACK.V1.", "ack.v1.")
    gone(1, interlock(data, "token", "inspect", miscopied))
