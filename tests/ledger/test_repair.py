"""Rule 44 on a real file: damage is found when read, the valid prefix stays, a repair makes it whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from interlock.core.run.preferences import PRESETS
from interlock.core.run.surface_policy import EXECUTION
from interlock.ledger.decisions.modes import set_session_mode
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import entries_of, kind_of, link
from interlock.ledger.log.health import examine
from interlock.ledger.log.repair import Finding, Repaired, inspect, mark, repair
from interlock.ledger.queries.indexing import catch_up
from interlock.ledger.queries.log_lines import event_lines
from interlock.ledger.queries.tree import trees_of
from interlock.ledger.runs.whole_session import WholeSession
from interlock.ledger.transfer.bundle import Bundle, read_bundle
from interlock.ledger.transfer.export_import import export_session, import_bundle
from interlock.store.protocol import CommitRow
from interlock.store.sqlite.salvage import replace_damaged
from interlock.store.sqlite.store import PAGE_SIZE
from interlock.surfaces.execution.render import answer
from support.harness import Agent, Bench, gate, steps, workflow
from support.log import event_kinds, logged_events

FLOW = workflow(*steps("one", "two"), gate("fork", "left", "right"), *steps("three"))
RENDERS = {EXECUTION.name: answer}


class Target:
    """A session on disk that a test may damage behind the server's back."""

    def __init__(self, bench: Bench) -> None:
        bench.write(FLOW)
        self.bench = bench
        self.agent = bench.agent()
        self.first = self.agent.start("test.flow", goal="survive damage")
        self.second = self.agent.ack("first notes", artifacts=[{"kind": "x", "n": 1}])
        self.third = self.agent.ack("second notes", at=self.second)
        self.blocked = self.agent.ack("no decision", at=self.third)
        self.session: str = self.first["session"]["sessionId"]

    @property
    def ledger(self) -> Ledger:
        return self.agent.ledger

    @property
    def file(self) -> Path:
        return self.bench.folder / "interlock.db"

    def sql(self, statement: str, *bindings: Any) -> None:
        """Change the file as no part of Interlock would."""
        connection = apsw.Connection(str(self.file))
        connection.execute("DROP TRIGGER IF EXISTS commits_stay")
        connection.execute(statement, bindings)
        connection.close()

    def found(self) -> Finding | None:
        return inspect(self.ledger.store, self.session, self.ledger.pins)

    def repaired(self, renders: Mapping[str, Any] = RENDERS) -> Repaired:
        done = repaired(self.ledger, self.session, renders)
        assert isinstance(done, Repaired), done
        assert self.found() is None
        return done

    def exported(self) -> Bundle:
        with self.ledger.store.reading() as reader:
            session = reader.session(self.session)
        assert session is not None
        bundle = export_session(self.ledger.store, session, self.ledger.pins, 1)
        checked = read_bundle(msgspec.json.encode(bundle))
        assert isinstance(checked, Bundle), checked
        return checked

    def resumed(self) -> Agent:
        """Find the run again and go on, as an agent in a new chat would."""
        found = self.agent.call("resume_session", query="survive damage")["candidates"][0]
        self.agent.look(found)
        self.agent.ack("going on")
        return self.agent


def repaired(ledger: Ledger, session_id: str, renders: Mapping[str, Any] = RENDERS) -> Repaired | Finding:
    store, pins, library = ledger.store, ledger.pins, ledger.library
    return repair(store, session_id, pins, library, renders, owner="local", now=ledger.clock())


@pytest.fixture
def target(bench: Bench) -> Target:
    return Target(bench)


def commit_with(target: Target, kind: str, *, last: bool = False) -> CommitRow:
    """The first or last command with an event of this kind."""
    with target.ledger.store.reading() as reader:
        rows = list(reader.commits(target.session))
    found = [row for row in rows if kind in [kind_of(entry.event) for entry in entries_of(row)]]
    return found[-1 if last else 0]


def change_commit(target: Target, row: CommitRow) -> None:
    body = row.body[:-2] + b"?" + row.body[-1:]
    target.sql(
        "UPDATE commits SET body = ? WHERE session_id = ? AND last = ?", body, target.session, row.last
    )


def test_a_whole_session_has_nothing_to_repair(target: Target) -> None:
    assert target.found() is None
    before = target.exported()
    assert target.repaired() == Repaired(target.session)
    assert target.exported().session == before.session


def test_a_changed_event_is_found_and_its_prefix_stays_readable(target: Target) -> None:
    change_commit(target, commit_with(target, "step_completed", last=True))
    found = target.found()
    assert found is not None
    assert found.health == "corrupt_tail"
    assert "digest_mismatch" in found.reason
    bundle = target.exported().session
    assert bundle.meta.health == "corrupt_tail"
    assert bundle.meta.lost_events > 0
    assert [output.body for output in bundle.graph.outputs if output.kind == "notes"] == ["first notes"]


def test_the_sound_events_before_the_damage_are_listed_and_drawn(target: Target) -> None:
    damaged = commit_with(target, "step_completed", last=True)
    change_commit(target, damaged)
    with target.ledger.store.reading() as reader:
        session = reader.session(target.session)
    assert session is not None
    sound = examine(target.ledger.store, session).events
    assert sound == damaged.first
    lines = event_lines(target.ledger, target.session, end=sound)
    assert [line.index for line in lines] == list(range(sound))
    (tree,) = trees_of(WholeSession(target.ledger, session, sound))
    assert [node.node for node in tree.nodes] == [0, 1]


def test_the_valid_prefix_goes_on_in_another_store(target: Target, tmp_path: Path) -> None:
    change_commit(target, commit_with(target, "step_completed", last=True))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    other = Bench(folder).agent()
    import_bundle(other.ledger, target.exported())
    found = other.call("resume_session", query="survive damage")["candidates"][0]
    other.look(found)
    assert other.pending == "two"
    other.ack("again")
    assert other.pending == "fork"


def test_progress_is_refused_with_the_way_to_repair(target: Target) -> None:
    change_commit(target, commit_with(target, "step_completed"))
    found = target.found()
    assert found is not None
    mark(target.ledger.store, found)
    refused = target.agent.decide("left", at=target.blocked)
    assert refused["code"] == "SESSION_NOT_HEALTHY"
    assert "interlock doctor --repair" in refused["details"]["suggestion"]


def test_a_changed_last_event_is_noticed_without_anybody_looking(target: Target) -> None:
    change_commit(target, commit_with(target, "advance_recorded", last=True))
    assert target.agent.decide("left", at=target.blocked)["code"] == "SESSION_NOT_HEALTHY"


def test_a_repair_cuts_a_damaged_tail_and_keeps_it(target: Target) -> None:
    damaged = commit_with(target, "step_completed", last=True)
    total = len(logged_events(target.ledger.store, target.session))
    change_commit(target, damaged)
    done = target.repaired()
    with target.ledger.store.reading() as reader:
        kept = reader.content(done.kept_as)
    assert kept is not None
    cut = msgspec.json.decode(kept, type=list[CommitRow])
    assert cut[0].first == damaged.first
    assert len(done.removed) == total - damaged.first
    assert event_kinds(target.ledger.store, target.session)[-1] == "repair_recorded"
    assert target.resumed().pending == "fork"


def test_a_damaged_command_is_cut_as_a_whole(target: Target) -> None:
    damaged = commit_with(target, "advance_recorded", last=True)
    change_commit(target, damaged)
    assert len(target.repaired().removed) == damaged.last - damaged.first + 1
    kinds = event_kinds(target.ledger.store, target.session)
    assert kinds[-2:] == ["advance_recorded", "repair_recorded"]
    assert len(kinds) == damaged.first + 1
    assert target.resumed().pending == "fork"


def test_a_changed_time_is_found_and_its_command_is_cut(target: Target) -> None:
    damaged = commit_with(target, "advance_recorded", last=True)
    sql = "UPDATE commits SET recorded_at = recorded_at - 1 WHERE session_id = ? AND last = ?"
    target.sql(sql, target.session, damaged.last)
    found = target.found()
    assert found is not None
    assert found.health == "corrupt_tail"
    assert found.reason == f"digest_mismatch at event {damaged.first}"
    assert len(target.repaired().removed) == damaged.last - damaged.first + 1


def test_a_truncated_log_goes_on_from_what_is_left(target: Target) -> None:
    row = commit_with(target, "node_created", last=True)
    target.sql("DELETE FROM commits WHERE session_id = ? AND last >= ?", target.session, row.last)
    refused = target.agent.decide("left", at=target.blocked)
    assert refused["code"] == "SESSION_NOT_HEALTHY"
    target.repaired()
    assert target.resumed().pending == "fork"


def test_a_damaged_first_event_leaves_an_empty_session_and_all_that_was_cut(target: Target) -> None:
    change_commit(target, commit_with(target, "session_created"))
    found = target.found()
    assert found is not None
    assert found.health == "corrupt_head"
    done = target.repaired()
    with target.ledger.store.reading() as reader:
        session = reader.session(target.session)
        kept = reader.content(done.kept_as)
    assert session is not None
    assert session.title == "survive damage"
    assert kept is not None
    cut = msgspec.json.decode(kept, type=list[CommitRow])
    assert cut[0].first == 0
    assert cut[-1].last + 1 == len(done.removed)


def test_events_of_a_newer_version_are_left_alone(target: Target) -> None:
    row = commit_with(target, "step_completed", last=True)
    with target.ledger.store.reading() as reader:
        before = next(iter(reader.commits(target.session, start=row.first - 1)))
        rows = list(reader.commits(target.session))
    body = row.body.replace(b"step_completed", b"step_dreamt")
    digest = link(before.digest, row.first, row.recorded_at, row.key, body)
    sql = "UPDATE commits SET body = ?, digest = ? WHERE session_id = ? AND last = ?"
    target.sql(sql, body, digest, target.session, row.last)
    done = repaired(target.ledger, target.session)
    assert isinstance(done, Finding)
    assert done.health == "unknown_version"
    with target.ledger.store.reading() as reader:
        assert len(list(reader.commits(target.session))) == len(rows)


def test_a_damaged_node_state_is_refused_then_rebuilt(target: Target) -> None:
    sql = "UPDATE nodes SET state = ? WHERE session_id = ? AND node = 2"
    target.sql(sql, b'{"at":"elsewhere"}', target.session)
    assert target.agent.decide("left", at=target.blocked)["code"] == "SESSION_NOT_HEALTHY"
    found = target.found()
    assert found is not None
    assert found.rows == ("node 2",)
    assert target.repaired().rebuilt == ("node 2",)
    assert target.agent.decide("left", at=target.blocked)["pending"]["stepId"] == "three"


def lose_responses(target: Target) -> None:
    for table in ("nodes", "blocked"):
        target.sql(f"UPDATE {table} SET response = ? WHERE session_id = ?", b"{}", target.session)


@pytest.mark.parametrize("which", ["second", "blocked"])
def test_a_damaged_response_is_rendered_again_byte_for_byte(target: Target, which: str) -> None:
    given, at, notes = {
        "second": (target.second, target.first, "first notes"),
        "blocked": (target.blocked, target.third, "no decision"),
    }[which]
    lose_responses(target)
    assert target.agent.ack(notes, at=at)["code"] == "SESSION_NOT_HEALTHY"
    done = target.repaired()
    assert done.lost_responses == 0
    replayed = target.agent.ack(notes, at=at)
    assert {**replayed, "_meta": {}} == {**given, "_meta": {}}
    assert not logged_events(target.ledger.store, target.session, "response_restored")


def test_a_response_that_nobody_can_render_stays_lost_and_says_so(target: Target) -> None:
    lose_responses(target)
    assert target.repaired(renders={}).lost_responses == 3
    lost = target.agent.ack("first notes", at=target.first)
    assert lost["_error"]
    assert "resume_session" in lost["details"]["suggestion"]
    assert target.resumed().pending == "fork"


@pytest.mark.parametrize("table", ["nodes", "runs", "blocked", "modes", "search", "observations"])
def test_lost_rows_come_back_from_the_events(target: Target, table: str) -> None:
    set_session_mode(target.ledger, target.session, PRESETS["guided"], "cli")
    set_session_mode(target.ledger, target.session, PRESETS["stop"], "cli")
    catch_up(target.ledger.store, target.ledger.pins)
    before = target.exported().session.graph
    target.sql(f"DELETE FROM {table} WHERE session_id = ?", target.session)
    assert (target.found() is None) == (table in ("observations", "search"))
    target.repaired()
    assert target.exported().session.graph == before
    assert target.resumed().pending == "fork"


def test_a_lost_session_row_and_its_handles_come_back(target: Target) -> None:
    for table in ("sessions", "handles"):
        target.sql(f"DELETE FROM {table} WHERE session_id = ?", target.session)
    with target.ledger.store.reading() as reader:
        assert reader.stray_sessions() == [target.session]
    target.repaired()
    assert target.resumed().pending == "fork"


def test_a_damaged_pinned_workflow_is_found_and_taken_from_the_library_again(target: Target) -> None:
    pinned = target.first["workflow"]["hash"]
    target.sql("UPDATE contents SET deflated = 0, body = ? WHERE digest = ?", b"gone", pinned)
    ledger = target.bench.ledger()
    found = inspect(ledger.store, target.session, ledger.pins)
    assert found is not None
    assert "pinned workflow test.flow" in found.rows
    assert isinstance(repaired(ledger, target.session), Repaired)
    target.agent = target.bench.agent()
    assert target.found() is None
    assert target.resumed().pending == "fork"


def test_a_pinned_workflow_is_not_replaced_by_a_changed_one(target: Target) -> None:
    pinned = target.first["workflow"]["hash"]
    target.sql("DELETE FROM contents WHERE digest = ?", pinned)
    target.bench.write(workflow(*steps("one", "two", "another")))
    ledger = target.bench.ledger()
    assert isinstance(repaired(ledger, target.session), Repaired)
    with ledger.store.reading() as reader:
        assert reader.content(pinned) is None


def test_words_that_the_log_does_not_make_are_found_and_indexed_again(target: Target) -> None:
    catch_up(target.ledger.store, target.ledger.pins)
    for damage in ("title = 'nothing'", "notes = 'nothing'", "indexed_to = indexed_to + 1000"):
        target.sql(f"UPDATE search SET {damage}")
        finding = target.found()
        assert finding is not None
        assert finding.rows == ("words that it is found by",)
        target.repaired()
        catch_up(target.ledger.store, target.ledger.pins)
        assert target.found() is None


def spoil(path: Path, table: str) -> None:
    """Overwrite the page that holds the beginning of a table."""
    connection = apsw.Connection(str(path))
    found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    connection.close()
    with path.open("r+b") as file:
        file.seek((int(str(found)) - 1) * PAGE_SIZE)
        file.write(b"\xaa" * PAGE_SIZE)


@pytest.mark.parametrize("table", ["nodes", "blocked", "runs", "sessions"])
def test_a_damaged_page_is_recovered_into_a_new_file(target: Target, table: str) -> None:
    before = target.exported().session.graph
    target.ledger.store.close()
    spoil(target.file, table)
    spoiled = target.file.read_bytes()
    opened = target.bench.agent()
    refused = opened.decide("left", at=target.blocked)
    assert refused["code"] == "STORE_CORRUPT"
    opened.ledger.store.close()
    _, kept = replace_damaged(target.bench.folder)
    assert kept.read_bytes() == spoiled
    target.agent = target.bench.agent()
    target.ledger.store.repairing = True  # type: ignore[attr-defined]
    target.repaired()
    assert target.exported().session.graph == before
    assert target.resumed().pending == "fork"
