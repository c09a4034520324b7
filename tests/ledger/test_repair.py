"""Rule 44 on a real file: damage is found when read, the valid prefix stays, a repair makes it whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from interlock.core.run.commands import EXECUTION
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import Finding, Repaired, inspect, mark, repair, repin
from interlock.ledger.transfer.bundle import Bundle, read_bundle
from interlock.ledger.transfer.export_import import export_session, import_bundle
from interlock.store.protocol import EventRow
from interlock.store.sqlite.salvage import replace_damaged
from interlock.surfaces.execution.render import answer
from support.harness import Agent, Bench, gate, steps, workflow

FLOW = workflow(*steps("one", "two"), gate("fork", "left", "right"), *steps("three"))
RENDERS = {EXECUTION.name: answer}


class Place:
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
        connection.execute("DROP TRIGGER IF EXISTS events_stay")
        connection.execute(statement, bindings)
        connection.close()

    def found(self) -> Finding | None:
        with self.ledger.store.reading() as reader:
            return inspect(reader, self.session, self.ledger.pins)

    def repaired(self, renders: Mapping[str, Any] = RENDERS) -> Repaired:
        with self.ledger.store.writing() as tx:
            done = repair(tx, self.session, self.ledger.pins, renders, owner="local", now=self.ledger.clock())
        assert isinstance(done, Repaired), done
        assert self.found() is None
        return done

    def exported(self) -> Bundle:
        with self.ledger.store.reading() as reader:
            session = reader.session(self.session)
            assert session is not None
            bundle = export_session(reader, session, self.ledger.pins, 1)
        checked = read_bundle(msgspec.json.encode(bundle))
        assert isinstance(checked, Bundle), checked
        return checked

    def resumed(self) -> Agent:
        """Find the run again and go on, as an agent in a new chat would."""
        found = self.agent.call("resume_session", query="survive damage")["candidates"][0]
        self.agent.look(found)
        self.agent.ack("going on")
        return self.agent


@pytest.fixture
def place(bench: Bench) -> Place:
    return Place(bench)


def event_at(place: Place, kind: str, *, last: bool = False) -> EventRow:
    with place.ledger.store.reading() as reader:
        found = list(reader.events(place.session, kinds=[kind]))
    return found[-1 if last else 0]


def change_event(place: Place, row: EventRow) -> None:
    payload = row.payload[:-2] + b"?" + row.payload[-1:]
    sql = 'UPDATE events SET payload = ? WHERE session_id = ? AND "index" = ?'
    place.sql(sql, payload, place.session, row.index)


def test_a_whole_session_has_nothing_to_repair(place: Place) -> None:
    assert place.found() is None
    before = place.exported()
    assert place.repaired() == Repaired(place.session)
    assert place.exported().session == before.session


def test_a_changed_event_is_found_and_its_prefix_stays_readable(place: Place) -> None:
    change_event(place, event_at(place, "step_completed", last=True))
    found = place.found()
    assert found is not None
    assert found.health == "corrupt_tail"
    assert "digest_mismatch" in found.reason
    bundle = place.exported().session
    assert bundle.meta.health == "corrupt_tail"
    assert bundle.meta.lost_events > 0
    assert [one.body for one in bundle.graph.outputs if one.kind == "notes"] == ["first notes"]


def test_the_valid_prefix_goes_on_in_another_store(place: Place, tmp_path: Path) -> None:
    change_event(place, event_at(place, "step_completed", last=True))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    other = Bench(folder).agent()
    with other.ledger.store.writing() as tx:
        import_bundle(tx, place.exported(), "local")
    found = other.call("resume_session", query="survive damage")["candidates"][0]
    other.look(found)
    assert other.pending == "two"
    other.ack("again")
    assert other.pending == "fork"


def test_progress_is_refused_with_the_way_to_repair(place: Place) -> None:
    change_event(place, event_at(place, "step_completed"))
    found = place.found()
    assert found is not None
    mark(place.ledger.store, found)
    refused = place.agent.decide("left", at=place.blocked)
    assert refused["code"] == "SESSION_NOT_HEALTHY"
    assert "interlock doctor --repair" in refused["details"]["suggestion"]


def test_a_changed_last_event_is_noticed_without_anybody_looking(place: Place) -> None:
    with place.ledger.store.reading() as reader:
        last = reader.last_event(place.session)
    assert last is not None
    change_event(place, last)
    assert place.agent.decide("left", at=place.blocked)["code"] == "SESSION_NOT_HEALTHY"


def test_a_repair_cuts_a_damaged_tail_and_keeps_it(place: Place) -> None:
    damaged = event_at(place, "step_completed", last=True)
    change_event(place, damaged)
    done = place.repaired()
    with place.ledger.store.reading() as reader:
        kept = reader.content(done.kept_as)
        events = list(reader.events(place.session))
    assert kept is not None
    cut = msgspec.json.decode(kept, type=list[EventRow])
    assert damaged.index in [one.index for one in cut]
    assert done.cut_events == len(cut)
    assert [one.kind for one in events][-1] == "repair_recorded"
    assert place.resumed().pending == "fork"


def test_half_a_command_is_cut_with_the_rest(place: Place) -> None:
    row = event_at(place, "advance_recorded", last=True)
    change_event(place, row)
    place.repaired()
    with place.ledger.store.reading() as reader:
        kinds = [one.kind for one in reader.events(place.session)]
    assert kinds[-2:] == ["advance_recorded", "repair_recorded"]
    assert place.resumed().pending == "fork"


def test_a_truncated_log_goes_on_from_what_is_left(place: Place) -> None:
    row = event_at(place, "node_created", last=True)
    place.sql('DELETE FROM events WHERE session_id = ? AND "index" >= ?', place.session, row.index)
    refused = place.agent.decide("left", at=place.blocked)
    assert refused["code"] == "SESSION_NOT_HEALTHY"
    place.repaired()
    assert place.resumed().pending == "fork"


def test_a_damaged_first_event_leaves_an_empty_session_and_all_that_was_cut(place: Place) -> None:
    change_event(place, event_at(place, "session_created"))
    found = place.found()
    assert found is not None
    assert found.health == "corrupt_head"
    done = place.repaired()
    with place.ledger.store.reading() as reader:
        session = reader.session(place.session)
        kept = reader.content(done.kept_as)
    assert session is not None
    assert session.title == "survive damage"
    assert kept is not None
    assert len(msgspec.json.decode(kept, type=list[EventRow])) == done.cut_events


def test_events_of_a_newer_version_are_left_alone(place: Place) -> None:
    from interlock.ledger.log.chain import link

    row = event_at(place, "step_completed", last=True)
    with place.ledger.store.reading() as reader:
        before = next(iter(reader.events(place.session, start=row.index - 1)))
    payload = b'{"kind":"step_dreamt"}'
    digest = link(before.digest, row.index, "step_dreamt", payload, row.run, row.node)
    sql = 'UPDATE events SET kind = ?, payload = ?, digest = ? WHERE session_id = ? AND "index" = ?'
    place.sql(sql, "step_dreamt", payload, digest, place.session, row.index)
    with place.ledger.store.writing() as tx:
        done = repair(tx, place.session, place.ledger.pins, RENDERS, owner="local", now=1)
        assert isinstance(done, Finding)
        assert done.health == "unknown_version"


def test_a_damaged_node_state_is_refused_then_rebuilt(place: Place) -> None:
    sql = "UPDATE nodes SET state = ? WHERE session_id = ? AND node = 2"
    place.sql(sql, b'{"at":"elsewhere"}', place.session)
    assert place.agent.decide("left", at=place.blocked)["code"] == "SESSION_NOT_HEALTHY"
    found = place.found()
    assert found is not None
    assert found.rows == ("nodes",)
    assert place.repaired().rebuilt == ("nodes",)
    assert place.agent.decide("left", at=place.blocked)["pending"]["stepId"] == "three"


@pytest.mark.parametrize("which", ["second", "blocked"])
def test_a_damaged_response_is_rendered_again_byte_for_byte(place: Place, which: str) -> None:
    given, at, notes = {
        "second": (place.second, place.first, "first notes"),
        "blocked": (place.blocked, place.third, "no decision"),
    }[which]
    place.sql("UPDATE attempts SET response = ? WHERE session_id = ?", b"{}", place.session)
    assert place.agent.ack(notes, at=at)["code"] == "SESSION_NOT_HEALTHY"
    done = place.repaired()
    assert done.lost_responses == 0
    replayed = place.agent.ack(notes, at=at)
    assert {**replayed, "_meta": {}} == {**given, "_meta": {}}
    with place.ledger.store.reading() as reader:
        assert not list(reader.events(place.session, kinds=["response_restored"]))


def test_a_response_that_nobody_can_render_stays_lost_and_says_so(place: Place) -> None:
    place.sql("UPDATE attempts SET response = ? WHERE session_id = ?", b"{}", place.session)
    assert place.repaired(renders={}).lost_responses == 3
    lost = place.agent.ack("first notes", at=place.first)
    assert lost["_error"]
    assert "resume_session" in lost["details"]["suggestion"]
    assert place.resumed().pending == "fork"


@pytest.mark.parametrize("table", ["nodes", "runs", "attempts", "outputs", "search", "observations"])
def test_lost_rows_come_back_from_the_events(place: Place, table: str) -> None:
    before = place.exported().session.graph
    place.sql(f"DELETE FROM {table} WHERE session_id = ?", place.session)
    assert (place.found() is None) == (table == "observations")
    place.repaired()
    assert place.exported().session.graph == before
    assert place.resumed().pending == "fork"


def test_a_lost_session_row_and_its_handles_come_back(place: Place) -> None:
    for table in ("sessions", "handles"):
        place.sql(f"DELETE FROM {table} WHERE session_id = ?", place.session)
    with place.ledger.store.reading() as reader:
        assert reader.stray_sessions() == [place.session]
    place.repaired()
    assert place.resumed().pending == "fork"


def test_a_damaged_pinned_workflow_is_found_and_taken_from_the_library_again(place: Place) -> None:
    pinned = place.first["workflow"]["hash"]
    place.sql("UPDATE contents SET deflated = 0, body = ? WHERE digest = ?", b"gone", pinned)
    ledger = place.bench.ledger()
    with ledger.store.reading() as reader:
        found = inspect(reader, place.session, ledger.pins)
    assert found is not None
    assert "pinned workflow test.flow" in found.rows
    with ledger.store.writing() as tx:
        repin(tx, place.session, ledger.pins, ledger.library)
    place.agent = place.bench.agent()
    assert place.found() is None
    assert place.resumed().pending == "fork"


def test_a_pinned_workflow_is_not_replaced_by_a_changed_one(place: Place) -> None:
    pinned = place.first["workflow"]["hash"]
    place.sql("DELETE FROM contents WHERE digest = ?", pinned)
    place.bench.write(workflow(*steps("one", "two", "another")))
    ledger = place.bench.ledger()
    with ledger.store.writing() as tx:
        repin(tx, place.session, ledger.pins, ledger.library)
        assert tx.content(pinned) is None


def spoil(path: Path, table: str) -> None:
    """Overwrite the page that holds the beginning of a table."""
    connection = apsw.Connection(str(path))
    found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    connection.close()
    with path.open("r+b") as file:
        file.seek((int(str(found)) - 1) * 4096)
        file.write(b"\xaa" * 4096)


@pytest.mark.parametrize("table", ["nodes", "attempts", "runs", "sessions"])
def test_a_damaged_page_is_recovered_into_a_new_file(place: Place, table: str) -> None:
    before = place.exported().session.graph
    place.ledger.store.close()
    spoil(place.file, table)
    spoiled = place.file.read_bytes()
    opened = place.bench.agent()
    refused = opened.decide("left", at=place.blocked)
    assert refused["code"] == "STORE_CORRUPT"
    opened.ledger.store.close()
    _, kept = replace_damaged(place.bench.folder)
    assert kept.read_bytes() == spoiled
    place.agent = place.bench.agent()
    place.repaired()
    assert place.exported().session.graph == before
    assert place.resumed().pending == "fork"
