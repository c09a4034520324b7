"""What every store must do: all of the protocol, on each store of conftest.STORES."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.store.protocol import (
    NOT_ON_PATH,
    AskingMark,
    Changes,
    HandleRow,
    ModeRow,
    OutboxRow,
    SearchRow,
    SessionFilter,
    SessionRows,
    SettingRow,
    StartRow,
    Store,
    StoreConflict,
    TombstoneRow,
    TraceRow,
    Writer,
)
from support.paths import FIXTURES
from support.store_rows import (
    GENESIS,
    blocked_row,
    commit_row,
    digest_of,
    handle_of,
    node_row,
    onto,
    run_row,
    session_of,
    start,
    step,
)

StoreFactory = Callable[[], Store]
laws = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def put(store: Store, *writes: Callable[[Writer], None]) -> None:
    with store.writing() as writer:
        for write in writes:
            write(writer)


def ids(store: Store, wanted: SessionFilter | None = None) -> list[str]:
    with store.reading() as reader:
        return [session.session_id for session in reader.sessions(wanted or SessionFilter())]


def bodies(store: Store, session_id: str = "sess_a") -> list[str]:
    with store.reading() as reader:
        return [row.body.decode() for row in reader.commits(session_id)]


# A command is appended once, and in order.


def test_what_a_command_writes_comes_back_as_it_was(store: Store) -> None:
    node = node_row(0, response=b"\xff" + b"response " * 200, outputs=b'["x"]', request_digest=b"q")
    blocked = blocked_row(0, 2**32 - 1, kept=b"{}", outputs=b'["y"]', response=b"blocked " * 200)
    mode = ModeRow("sess_a", 0, 0, b"{}")
    changes = start(
        nodes=[node],
        blocked=[blocked],
        modes=[mode],
        handles=[HandleRow(b"0123456789", "sess_a", "worker")],
        starts=[StartRow("me", b"\0id", b"q", "sess_a", b"handle", b"answer", 5)],
        observations={"git_branch": "main"},
        contents={"sha256:1": b"body"},
    )
    store.append(changes)
    with store.reading() as reader:
        assert reader.session("sess_a") == changes.session
        assert reader.handles("sess_a") == [HandleRow(b"0123456789", "sess_a", "worker")]
        assert reader.runs("sess_a") == [run_row()]
        own = reader.runs_by_prefix("run_sess_a", owner="me", limit=2)
        assert [reader.run("sess_a", 0)] == own == [run_row()]
        assert reader.node("sess_a", 0) == node
        assert list(reader.nodes("sess_a")) == [node]
        assert list(reader.blocked("sess_a")) == [blocked]
        assert reader.modes("sess_a") == [mode]
        assert list(reader.commits("sess_a")) == [changes.commit]
        assert reader.start("me", b"\0id") == changes.starts[0]
        assert dict(reader.observations("sess_a")) == {"git_branch": "main"}
        assert reader.content("sha256:1") == b"body"


def test_keep_comes_back_as_a_truth_value(store: Store) -> None:
    store.append(start())
    assert session_of(store).keep is False


def test_what_is_not_there_is_none(store: Store) -> None:
    with store.reading() as reader:
        assert reader.load(b"0123456789") is None
        assert reader.load("sess_a") is None
        assert reader.session("sess_a") is None
        assert reader.handles("sess_a") == []
        assert reader.start("me", b"x") is None
        assert reader.run("sess_a", 0) is None
        assert reader.runs_by_prefix("run_x", owner="me", limit=2) == []
        assert reader.node("sess_a", 0) is None
        assert reader.recorded("sess_a", 0, 0) is None
        assert reader.commit_by_key("sess_a", "k") is None
        assert reader.content("sha256:0") is None
        assert reader.setting("me", "mode") is None
        assert reader.tombstone("sess_a") is None
        assert reader.search_row("sess_a") is None
        assert reader.runs("sess_a") == reader.modes("sess_a") == reader.children("sess_a", 0) == []
        assert reader.path("sess_a", 0, 9) == reader.notes("sess_a", (0,)) == []
        assert list(reader.nodes("sess_a")) == list(reader.blocked("sess_a")) == []
        assert list(reader.commits("sess_a")) == []
        assert dict(reader.observations("sess_a")) == {}
        assert reader.unindexed(5) == reader.session_ids("", 5) == reader.stray_sessions() == []


def test_commits_come_in_order_and_in_part(store: Store) -> None:
    store.append(start())
    for number in range(1, 5):
        store.append(onto(session_of(store), f"event {number}"))
    rows = [commit_row("sess_a", 0), *(commit_row("sess_a", n, f"event {n}") for n in range(1, 5))]
    with store.reading() as reader:
        assert list(reader.commits("sess_a")) == rows
        assert list(reader.commits("sess_a", start=3)) == rows[3:]
        assert list(reader.commits("sess_a", newest_first=True, limit=2)) == [rows[4], rows[3]]
        assert list(reader.commits("sess_a", limit=2)) == rows[:2]
        assert list(reader.commits("sess_b")) == []


def test_a_commit_is_found_by_any_of_its_events(store: Store) -> None:
    store.append(start())
    session = session_of(store)
    wide = replace(commit_row("sess_a", 1), last=4)
    store.append(replace(onto(session), commit=wide))
    with store.reading() as reader:
        assert list(reader.commits("sess_a", start=3)) == [wide]


def test_updates_change_what_may_change(store: Store) -> None:
    store.append(start())
    before = session_of(store)
    changes = step(before, at=9)
    run = replace(run_row(), status="complete", tip=1, updated_at=9, awaiting="user", declined="{}")
    moved = replace(changes.session, visit_index=1, visit_node=1)
    store.append(replace(changes, session=moved, runs=[run, run_row(run=1)]))
    assert session_of(store) == moved
    with store.reading() as reader:
        assert reader.runs("sess_a") == [run, run_row(run=1)]


# The head is compared and set.


def test_a_stale_head_is_a_conflict_and_stores_nothing(store: Store) -> None:
    store.append(start())
    before = session_of(store)
    store.append(step(before, text="faster"))
    after = session_of(store)
    late = step(
        before,
        attempt=7,
        text="slower",
        runs=[run_row(run=5)],
        blocked=[blocked_row(0, 9)],
        handles=[HandleRow(b"late", "sess_a", "late")],
        starts=[StartRow("me", b"late", b"", "sess_a", b"handle", b"answer", 1)],
        observations={"git_branch": "late"},
        contents={"sha256:late": b"late"},
    )
    with pytest.raises(StoreConflict):
        store.append(late)
    assert session_of(store) == after
    with store.reading() as reader:
        assert [row.body for row in reader.commits("sess_a")] == [b"[]", b"faster"]
        assert [row.attempt for row in reader.nodes("sess_a")] == [None, 0]
        assert reader.run("sess_a", 5) is None
        assert list(reader.blocked("sess_a")) == []
        assert [row.agent for row in reader.handles("sess_a")] == [""]
        assert reader.start("me", b"late") is None
        assert dict(reader.observations("sess_a")) == {}
        assert reader.content("sha256:late") is None


def test_a_session_begins_once(store: Store) -> None:
    store.append(start())
    with pytest.raises(StoreConflict):
        store.append(replace(start(), handles=[]))


def test_a_session_that_is_gone_is_a_conflict(store: Store) -> None:
    store.append(start())
    before = session_of(store)
    put(store, lambda writer: writer.remove_session("sess_a", 5))
    with pytest.raises(StoreConflict):
        store.append(step(before))
    with store.reading() as reader:
        assert reader.stray_sessions() == []
        assert list(reader.nodes("sess_a")) == []


def test_a_stale_command_of_another_length_is_refused(store: Store) -> None:
    """Only the comparison of the head can tell: none of its keys is taken."""
    store.append(start())
    before = session_of(store)
    store.append(onto(before, "first"))
    longer = onto(before, "second")
    moved, commit = replace(longer.session, head_index=2), replace(longer.commit, last=2)
    with pytest.raises(StoreConflict):
        store.append(replace(longer, session=moved, commit=commit))
    assert bodies(store, "sess_a") == ["[]", "first"]


def test_changes_of_two_sessions_are_stored_together_or_not_at_all(store: Store) -> None:
    store.append(start("sess_a"), start("sess_b"))
    parent, child = session_of(store, "sess_a"), session_of(store, "sess_b")
    store.append(step(parent, text="both"), step(child, text="both"))
    with pytest.raises(StoreConflict):
        store.append(step(session_of(store, "sess_a"), attempt=1, text="half"), step(child, attempt=1))
    assert bodies(store, "sess_a") == bodies(store, "sess_b") == ["[]", "both"]


ONCE = StartRow("me", b"once", b"", "sess_a", b"handle", b"answer", 1)
TAKEN: dict[str, Callable[[Changes], Changes]] = {
    "attempt": lambda changes: replace(changes, nodes=[node_row(8, 0, attempt=0)]),
    "node": lambda changes: replace(changes, nodes=[node_row(1, 0, attempt=9)]),
    "blocked attempt": lambda changes: replace(changes, blocked=[blocked_row(0, 4)]),
    "key": lambda changes: replace(changes, commit=replace(changes.commit, key="k")),
    "events": lambda changes: replace(changes, commit=commit_row("sess_a", 1, "again")),
    "handle": lambda changes: replace(changes, handles=[HandleRow(handle_of("sess_a"), "sess_a", "new")]),
    "agent": lambda changes: replace(changes, handles=[HandleRow(b"new", "sess_a")]),
    "start": lambda changes: replace(
        changes, starts=[StartRow("me", b"once", b"", "sess_a", b"handle", b"answer", 1)]
    ),
    "mode": lambda changes: replace(changes, modes=[ModeRow("sess_a", 0, 1, b"{}")]),
}


@pytest.mark.parametrize("again", TAKEN.values(), ids=TAKEN)
def test_a_key_is_taken_once(store: Store, again: Callable[[Changes], Changes]) -> None:
    store.append(replace(start(), starts=[ONCE]))
    first = step(session_of(store), blocked=[blocked_row(0, 4)], modes=[ModeRow("sess_a", 0, 1, b"{}")])
    store.append(replace(first, commit=replace(first.commit, key="k")))
    before = session_of(store)
    with pytest.raises(StoreConflict):
        store.append(again(onto(before, "new")))
    assert session_of(store) == before
    store.append(onto(before, "new"))


def test_any_number_of_nodes_without_an_attempt_share_a_parent(store: Store) -> None:
    store.append(start())
    rows = [node_row(number, 0) for number in (1, 2, 3)]
    store.append(onto(session_of(store), nodes=rows))
    with store.reading() as reader:
        assert reader.children("sess_a", 0) == rows


def test_a_node_and_a_blocked_attempt_do_not_take_each_others_place(store: Store) -> None:
    store.append(start())
    store.append(step(session_of(store), attempt=0, blocked=[blocked_row(1, 0)]))
    with store.reading() as reader:
        made, blocked = reader.recorded("sess_a", 0, 0), reader.recorded("sess_a", 1, 0)
    assert made == node_row(1, 0, attempt=0, response=b"answer ")
    assert blocked == blocked_row(1, 0)


def test_a_recorded_attempt_comes_back_with_its_response(store: Store) -> None:
    store.append(start())
    store.append(onto(session_of(store), blocked=[blocked_row(0, 0, successor=900)]))
    store.append(step(session_of(store), attempt=900, text="x" * 2000))
    with store.reading() as reader:
        assert reader.recorded("sess_a", 0, 0) == blocked_row(0, 0, successor=900)
        made = reader.recorded("sess_a", 0, 900)
        assert made is not None
        assert made.response == b"answer " + b"x" * 2000
        assert reader.recorded("sess_a", 0, 1) is None
        assert reader.recorded("sess_b", 0, 0) is None


# A command is all or nothing.


def test_a_failure_in_the_middle_leaves_nothing(store: Store) -> None:
    def fail() -> None:
        with store.writing() as writer:
            writer.set_setting(SettingRow("me", "mode", "a"))
            writer.add_content("sha256:1", b"x")
            writer.index(SearchRow("sess_a", "me", "ghost", "", ""), ["ghost"])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with store.reading() as reader:
        assert reader.setting("me", "mode") is None
        assert reader.content("sha256:1") is None
        assert reader.search(["ghost"], owner="me", columns=["title"], limit=5) == []
        assert reader.search_outputs(["ghost"], owner="me", limit=5) == []


def test_an_exception_inside_append_leaves_nothing(store: Store) -> None:
    class Unstorable(Exception):
        pass

    class Exploding(dict[str, str]):
        def items(self):  # type: ignore[no-untyped-def]
            raise Unstorable

    with pytest.raises(Unstorable):
        store.append(start(observations=Exploding(x="y")))
    with store.reading() as reader:
        assert reader.session("sess_a") is None
        assert list(reader.commits("sess_a")) == list(reader.nodes("sess_a")) == []
    store.append(start())
    before = session_of(store)
    with pytest.raises(Unstorable):
        store.append(step(before, observations=Exploding(x="y")))
    assert session_of(store) == before
    store.append(step(before))


def test_a_transaction_sees_its_own_writes(store: Store) -> None:
    store.append(start())
    with store.writing() as writer:
        writer.set_keep("sess_a", True)
        writer.index(SearchRow("sess_a", "me", "Fix the login", "", "", 0), [])
        assert writer.search(["login"], owner="me", columns=["title"], limit=5) == ["sess_a"]
        with store.reading() as reader:
            session = reader.session("sess_a")
            assert session is not None
            assert session.keep is True


def test_transactions_do_not_nest(store: Store) -> None:
    with store.reading(), pytest.raises(RuntimeError), store.writing():
        pass
    with store.writing(), pytest.raises(RuntimeError), store.writing():
        pass
    with store.reading(), pytest.raises(RuntimeError):
        store.append(start())
    store.append(start())


def test_a_reading_is_one_view_whatever_others_write(store_factory: StoreFactory) -> None:
    ours, theirs = store_factory(), store_factory()
    with ours.reading() as reader:
        assert reader.session_ids("", 5) == []
        theirs.append(start())
        assert reader.session_ids("", 5) == []
    assert ids(ours) == ["sess_a"]


def test_threads_that_write_together_lose_nothing(store_factory: StoreFactory) -> None:
    stores = [store_factory(), store_factory()]
    stores[0].append(start())
    conflicts = list[str]()

    def work(name: str, store: Store) -> None:
        done = 0
        while done < 15:
            try:
                store.append(step(session_of(store), attempt=1, text=f"{name}-{done}"))
                done += 1
            except StoreConflict:
                conflicts.append(name)

    threads = [threading.Thread(target=work, args=(f"t{n}", stores[n % 2])) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = bodies(stores[0])[1:]
    assert sorted(written) == sorted(f"t{n}-{done}" for n in range(4) for done in range(15))
    for n in range(4):
        mine = [text for text in written if text.startswith(f"t{n}-")]
        assert mine == [f"t{n}-{done}" for done in range(15)]
    session = session_of(stores[1])
    assert (session.head_index, session.next_node) == (60, 61)


def test_rule_43_processes_that_write_together_lose_nothing(shared_store: str, tmp_path: Path) -> None:
    module, _, function = shared_store.rpartition(".")
    store: Store = getattr(import_module(module), function)(tmp_path)
    store.append(start())
    commands = [
        [sys.executable, str(FIXTURES / "appender.py"), shared_store, str(tmp_path), "40", name]
        for name in ("p0", "p1")
    ]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    printed = [int(line) for writer in writers for line in writer.communicate()[0].split()]
    assert sorted(printed) == list(range(1, 81))
    written = bodies(store)[1:]
    assert sorted(written) == sorted(f"{name}-{done}" for name in ("p0", "p1") for done in range(40))
    assert session_of(store).next_node == 81
    store.close()


# One load is everything that a command needs.


def test_a_load_is_complete(store: Store) -> None:
    store.append(start())
    store.append(onto(session_of(store), "one", blocked=[blocked_row(0, 0, kept=b'{"a":1}')]))
    store.append(onto(session_of(store), "two", key="decision:0:gate:0"))
    modes = [ModeRow("sess_a", 0, 3, b"old"), ModeRow("sess_a", 0, 4, b"new"), ModeRow("sess_a", 7, 5, b"x")]
    noted = node_row(5, 0, kind="note", attempt=-1, response=b"noted", outputs=b"[]")
    store.append(onto(session_of(store), "three", modes=modes, nodes=[noted]))
    carried = [node_row(6, 0), node_row(7, 0)]
    store.append(onto(session_of(store), "four", nodes=carried, runs=[run_row(run=1)]))
    store.append(replace(step(session_of(store)), nodes=[node_row(8, 0, attempt=3, response=b"r")]))
    head = replace(session_of(store), head_run=1, head_node=8)
    store.append(replace(onto(session_of(store), "five"), session=replace(onto(head, "five").session)))
    loaded = store.load(handle_of("sess_a"), node=0, attempt=4)
    assert loaded is not None
    assert loaded.session == session_of(store)
    assert loaded.agent == ""
    assert loaded.last == commit_row("sess_a", 6, "five")
    assert loaded.previous_digest == digest_of("sess_a", 5)
    assert loaded.node == node_row(0)
    assert loaded.run == run_row()
    assert loaded.head_run == run_row(run=1)
    assert loaded.recorded is None
    assert list(loaded.blocked) == [blocked_row(0, 0, kept=b'{"a":1}', response=b"")]
    assert list(loaded.notes) == [replace(noted, response=b"")]
    assert loaded.branches == 3
    assert loaded.carried_to == 7
    assert loaded.mode == b"new"
    assert [row.body for row in loaded.decisions] == [b"two"]


def test_a_load_finds_the_attempt_that_was_made_before(store: Store) -> None:
    store.append(start())
    store.append(replace(step(session_of(store)), nodes=[node_row(1, 0, attempt=3, response=b"r")]))
    store.append(onto(session_of(store), "blocked", blocked=[blocked_row(0, 7)]))
    advanced, held = store.load("sess_a", node=0, attempt=3), store.load("sess_a", node=0, attempt=7)
    assert advanced is not None
    assert held is not None
    assert advanced.session == held.session == session_of(store)
    assert advanced.recorded == node_row(1, 0, attempt=3, response=b"r")
    assert held.recorded == blocked_row(0, 7)


def test_a_load_of_a_bare_node_has_nothing_beside_it(store: Store) -> None:
    store.append(start())
    loaded = store.load("sess_a")
    assert loaded is not None
    assert loaded.last == commit_row("sess_a", 0)
    assert loaded.previous_digest == GENESIS
    assert loaded.head_run is None
    assert loaded.recorded is None
    assert loaded.carried_to is None
    assert loaded.mode is None
    assert (loaded.branches, len(loaded.blocked), len(loaded.notes), len(loaded.decisions)) == (0, 0, 0, 0)


def test_a_load_finds_the_head_a_node_or_only_the_session(store: Store) -> None:
    store.append(start(handles=[HandleRow(b"h", "sess_a"), HandleRow(b"w", "sess_a", "worker")]))
    store.append(step(session_of(store)))
    for wanted, node, found in ((b"h", None, 1), ("sess_a", 0, 0), (b"w", 1, 1)):
        loaded = store.load(wanted, node=node)
        assert loaded is not None
        assert loaded.node is not None
        assert loaded.node.node == found
        assert loaded.agent == ("worker" if wanted == b"w" else "")
    nowhere = store.load(b"h", node=99)
    assert nowhere is not None
    assert (nowhere.node, nowhere.run) == (None, None)
    assert store.load(b"sess_a") is None


def test_decisions_of_other_nodes_stay_out(store: Store) -> None:
    store.append(start())
    for node in (1, 10, 11, 2):
        store.append(onto(session_of(store), f"at {node}", key=f"decision:{node}:gate:0"))
    store.append(onto(session_of(store), "again", key="decision:1:gate:1", nodes=[node_row(1, 0)]))
    loaded = store.load("sess_a", node=1)
    assert loaded is not None
    assert [row.body for row in loaded.decisions] == [b"at 1", b"again"]


def test_a_session_without_a_run_is_loaded_without_a_node(store: Store) -> None:
    bare = start()
    session = replace(bare.session, head_run=None, head_node=None, next_node=0)
    store.append(replace(bare, session=session, runs=[], nodes=[]))
    loaded = store.load("sess_a")
    assert loaded is not None
    assert (loaded.session, loaded.node) == (session, None)


# Branches.


def test_nodes_know_their_children_their_run_and_their_path(store: Store) -> None:
    rows = [node_row(0), node_row(1, 0), node_row(2, 0), node_row(3, 1), node_row(4, run=1)]
    store.append(start(nodes=rows))
    with store.reading() as reader:
        assert reader.children("sess_a", 0) == rows[1:3]
        assert reader.children("sess_a", 3) == []
        assert list(reader.nodes("sess_a")) == rows
        assert list(reader.nodes("sess_a", 1)) == rows[4:]
        path = [replace(rows[number], **dict.fromkeys(NOT_ON_PATH, b"")) for number in (3, 1, 0)]
        assert reader.path("sess_a", 3, 9) == path
        assert reader.path("sess_a", 3, 2) == path[:2]


def test_a_fork_leaves_the_other_branch_alone(store: Store) -> None:
    store.append(start())
    store.append(step(session_of(store), attempt=0, text="first"))
    with store.reading() as reader:
        before = reader.node("sess_a", 1)
    back = replace(session_of(store), head_node=0)
    forked = step(back, attempt=77, text="second")
    store.append(forked)
    with store.reading() as reader:
        assert reader.node("sess_a", 1) == before
        assert [(row.node, row.attempt) for row in reader.children("sess_a", 0)] == [(1, 0), (2, 77)]
        assert reader.path("sess_a", 2, 9)[1].node == 0
    assert session_of(store).head_node == 2


def test_blocked_attempts_and_notes_are_read_by_node_in_their_order(store: Store) -> None:
    late, early, other = blocked_row(0, 5), blocked_row(0, 3), blocked_row(1, 4)
    notes = [node_row(3, 0, kind="note"), node_row(4, 1, kind="note")]
    store.append(start(nodes=[node_row(0), node_row(1, 0), *notes], blocked=[late, other, early]))
    with store.reading() as reader:
        assert list(reader.blocked("sess_a")) == [early, other, late]
        assert [row.attempt for row in reader.blocked("sess_a", (0,))] == [3, 5]
        assert {row.response for row in reader.blocked("sess_a", (0, 1))} == {b""}
        assert list(reader.blocked("sess_a", ())) == []
        assert reader.notes("sess_a", (1,)) == notes[1:]
        assert reader.notes("sess_a", (0, 1)) == notes


# Lists.


def test_sessions_are_listed_newest_activity_first_indexed_or_not(store: Store) -> None:
    for number, at in enumerate((5, 9, 7, 3, 11, 9)):
        store.append(start(f"sess_{number}", at))
        if number % 2:
            put(store, lambda writer, n=number: writer.index(SearchRow(f"sess_{n}", "me", "", "", "", 0), []))
    order = ["sess_4", "sess_1", "sess_5", "sess_2", "sess_0", "sess_3"]
    assert ids(store) == order
    for offset in range(6):
        assert ids(store, SessionFilter(limit=2, offset=offset)) == order[offset : offset + 2]
    store.append(step(session_of(store, "sess_3"), at=20))
    assert ids(store) == ["sess_3", *order[:-1]]
    put(store, lambda writer: writer.index(SearchRow("sess_3", "me", "", "", "", 1), []))
    assert ids(store) == ["sess_3", *order[:-1]]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (SessionFilter(owner="me"), ["sess_b", "sess_a"]),
        (SessionFilter(owner="nobody"), []),
        (SessionFilter(status="complete"), ["sess_b"]),
        (SessionFilter(workflow="wr.fix"), ["sess_c", "sess_b", "sess_a"]),
        (SessionFilter(workflow="wr.none"), []),
        (SessionFilter(awaiting=True), ["sess_a"]),
        (SessionFilter(awaiting=True, status="complete"), []),
        (SessionFilter(awaiting=True, workflow="wr.fix", status="running"), ["sess_a"]),
        (SessionFilter(owner="me", workflow="wr.fix", status="complete"), ["sess_b"]),
        (SessionFilter(owner="you", workflow="wr.fix", limit=1), ["sess_c"]),
        (SessionFilter(awaiting=False), ["sess_c", "sess_b", "sess_a"]),
        (SessionFilter(awaiting=False, of_head=True), ["sess_c", "sess_b"]),
        (SessionFilter(awaiting=True, of_head=True), ["sess_a"]),
        (SessionFilter(status="blocked"), ["sess_a"]),
        (SessionFilter(status="blocked", of_head=True), []),
        (SessionFilter(repo_root="/code"), ["sess_c", "sess_a"]),
        (SessionFilter(owner="me", repo_root="/code", awaiting=True, of_head=True), ["sess_a"]),
        (SessionFilter(repo_root="/cod"), []),
        (SessionFilter(active_since=2), ["sess_c", "sess_b"]),
        (SessionFilter(active_before=2), ["sess_a"]),
        (SessionFilter(active_since=2, active_before=3), ["sess_b"]),
    ],
)
def test_sessions_are_filtered(
    store: Store, wanted: SessionFilter, expected: list[str], indexed: bool
) -> None:
    runs = [run_row("sess_a", awaiting="gate"), run_row("sess_a", run=1, status="blocked")]
    store.append(start("sess_a", 1, runs=runs, observations={"repo_root": "/code"}))
    store.append(start("sess_b", 2, runs=[run_row("sess_b", status="complete")]))
    store.append(start("sess_c", 3, owner="you", observations={"repo_root": "/code"}))
    if indexed:
        for name in "abc":
            put(store, lambda writer, n=name: writer.index(SearchRow(f"sess_{n}", "me", "", "", "", 0), []))
    assert ids(store, wanted) == expected


def test_the_values_that_an_owner_has_observed_are_listed_once_and_in_order(store: Store) -> None:
    for name, owner, root in (("a", "me", "/b"), ("b", "me", "/a"), ("c", "me", "/b"), ("d", "you", "/0")):
        store.append(start(f"sess_{name}", owner=owner, observations={"repo_root": root, "branch": "x"}))
    with store.reading() as reader:
        assert reader.observed_values("repo_root", owner="me", limit=9) == ["/a", "/b"]
        assert reader.observed_values("repo_root", owner="me", limit=1) == ["/a"]
        assert reader.observed_values("nothing", owner="me", limit=9) == []


def test_sessions_are_found_by_the_beginning_of_their_id(store: Store) -> None:
    for name in ("sess_aa", "sess_ab", "sess_b%"):
        store.append(start(name))
    with store.reading() as reader:
        assert reader.sessions_by_prefix("sess_a", owner="me", limit=5) == ["sess_aa", "sess_ab"]
        assert reader.sessions_by_prefix("sess_a", owner="me", limit=1) == ["sess_aa"]
        assert reader.sessions_by_prefix("sess_aa", owner="me", limit=5) == ["sess_aa"]
        assert reader.sessions_by_prefix("sess_%", owner="me", limit=5) == []
        assert reader.session_ids("", 2) == ["sess_aa", "sess_ab"]
        assert reader.session_ids("sess_ab", 2) == ["sess_b%"]


def test_all_sessions_that_may_ask_their_user_are_listed_oldest_first(store: Store) -> None:
    waiting = [run_row("sess_b", awaiting="gate"), run_row("sess_b", run=1, status="blocked")]
    store.append(start("sess_b", runs=waiting))
    store.append(start("sess_a", runs=[run_row("sess_a", status="blocked")]))
    store.append(start("sess_c", runs=[run_row("sess_c")]))
    with store.reading() as reader:
        heads = [(row.session_id, row.owner, row.head_digest) for row in reader.asking_sessions(None)]
        of_rows = [reader.session(name) for name in ("sess_a", "sess_b")]
        assert sorted(heads) == [(row.session_id, row.owner, row.head_digest) for row in of_rows if row]
        times = [(row.updated_at, row.session_id) for row in reader.asking_sessions(None)]
        assert times == sorted(times)
        assert len(reader.asking_sessions("me")) == 2
        assert reader.asking_sessions("another") == []


def test_the_mark_of_what_is_asked_differs_with_every_arrival_answer_and_move(store: Store) -> None:
    def mark(owner: str | None = None) -> AskingMark:
        with store.reading() as reader:
            return reader.asking_mark(owner)

    assert mark() == AskingMark(0, 0, 0)
    store.append(start("sess_a", runs=[run_row("sess_a", awaiting="gate")]))
    arrived = mark()
    assert arrived.sessions == 1
    store.append(start("sess_b", runs=[run_row("sess_b")]))
    assert (mark(), mark("another")) == (arrived, AskingMark(0, 0, 0))
    store.append(onto(session_of(store)))
    moved = mark()
    assert moved != arrived
    store.append(onto(session_of(store), "answered", runs=[run_row("sess_a")]))
    assert mark() == AskingMark(0, 0, 0) != moved


def test_the_heads_of_many_sessions_are_read_at_once(store: Store) -> None:
    for name in ("sess_a", "sess_b"):
        store.append(start(name))
    with store.reading() as reader:
        heads = {name: reader.session(name).head_digest for name in ("sess_a", "sess_b")}  # type: ignore[union-attr]
        assert reader.head_digests(["sess_b", "sess_none", "sess_a"]) == heads
        assert reader.head_digests([]) == {}
        among = reader.sessions_among(["sess_b", "sess_none", "sess_a"])
        assert {row.session_id: row.head_digest for row in among} == heads
        assert reader.sessions_among([]) == []


def test_ranking_puts_the_same_repository_first_then_unfinished_then_newest(store: Store) -> None:
    here = {"repo_root": "/here"}
    store.append(start("sess_near", 1, observations=here))
    store.append(start("sess_done", 9, runs=[run_row("sess_done", status="complete")]))
    store.append(start("sess_old", 2), start("sess_new", 3, observations={"repo_root": "/there"}))
    store.append(start("sess_other", 9, owner="you", observations=here))
    names = ["sess_old", "sess_done", "sess_gone", "sess_new", "sess_near", "sess_other"]
    put(store, lambda writer: writer.index(SearchRow("sess_old", "me", "", "", "", 0), []))
    with store.reading() as reader:
        ranked = partial(reader.ranked, names, owner="me", repo_root="/here", unfinished=("running",))
        assert ranked(limit=9) == ["sess_near", "sess_new", "sess_old", "sess_done"]
        assert ranked(limit=1) == ["sess_near"]
        newest = partial(reader.newest, owner="me", repo_root="/here", unfinished=("running",))
        assert newest(among=9, limit=9) == ["sess_near", "sess_new", "sess_old", "sess_done"]
        assert newest(among=3, limit=9) == ["sess_new", "sess_old", "sess_done"]
        assert newest(among=9, limit=1) == ["sess_near"]


# Search.


def indexed(store: Store, session_id: str, title: str, notes: str = "", workflows: str = "") -> None:
    put(store, lambda writer: writer.index(SearchRow(session_id, "me", title, notes, workflows, 0), []))


def test_rule_47_search_wants_all_words_and_gives_the_newest_first(store: Store) -> None:
    store.append(start("sess_a"), start("sess_b"))
    indexed(store, "sess_a", "Fix the login", "token expired", "wr.bug")
    indexed(store, "sess_b", "Login page", "Expired again", "wr.task")
    with store.reading() as reader:
        assert reader.search(["login"], owner="me", columns=["title", "notes"], limit=5) == [
            "sess_b",
            "sess_a",
        ]
        assert reader.search(["login", "token"], owner="me", columns=["title", "notes"], limit=5) == [
            "sess_a"
        ]
        assert reader.search(["login", "token"], owner="me", columns=["title"], limit=5) == []
        assert reader.search(["EXPIRED"], owner="me", columns=["notes"], limit=1) == ["sess_b"]
        assert reader.search(["wr.bug"], owner="me", columns=["workflows"], limit=5) == ["sess_a"]
        assert reader.search([], owner="me", columns=["title"], limit=5) == []
        assert reader.search_row("sess_a") == SearchRow(
            "sess_a", "me", "Fix the login", "token expired", "wr.bug", 0
        )
    indexed(store, "sess_a", "Fix the login", "done", "wr.bug")
    with store.reading() as reader:
        assert reader.search(["login"], owner="me", columns=["title", "notes"], limit=5) == [
            "sess_a",
            "sess_b",
        ]
        assert reader.search(["token"], owner="me", columns=["title", "notes"], limit=5) == []


def test_the_deep_search_looks_into_every_output(store: Store) -> None:
    store.append(start("sess_a"), start("sess_b"), start("sess_c"), start("sess_z"))
    for name, outputs in {
        "sess_z": [],
        "sess_a": ["a needle in hay", "needle and thread"],
        "sess_b": ["needle again"],
        "sess_c": ["only hay"],
    }.items():
        title = "needle" if name == "sess_z" else ""
        put(store, lambda w, n=name, t=title, o=outputs: w.index(SearchRow(n, "me", t, t, t, 0), o))
    with store.reading() as reader:
        assert reader.search_outputs(["needle"], owner="me", limit=5) == ["sess_b", "sess_a"]
        assert reader.search_outputs(["needle"], owner="me", limit=1) == ["sess_b"]
        assert reader.search_outputs(["needle", "thread"], owner="me", limit=5) == ["sess_a"]
        assert reader.search_outputs(["again", "thread"], owner="me", limit=5) == []
        assert reader.search(["hay"], owner="me", columns=["title", "notes", "workflows"], limit=5) == []
        assert reader.search(["needle"], owner="me", columns=["notes"], limit=5) == ["sess_z"]


def test_a_session_is_unindexed_until_all_of_it_is_indexed(store: Store) -> None:
    store.append(start("sess_a"), start("sess_b"))
    with store.reading() as reader:
        assert sorted(reader.unindexed(5)) == ["sess_a", "sess_b"]
        assert len(reader.unindexed(1)) == 1
    indexed(store, "sess_a", "x")
    indexed(store, "sess_b", "x")
    with store.reading() as reader:
        assert reader.unindexed(5) == []
    store.append(step(session_of(store)))
    indexed(store, "sess_a", "x")  # up to event 0, and the session has come to event 1
    with store.reading() as reader:
        assert reader.unindexed(5) == ["sess_a"]
    put(store, lambda writer: writer.index(SearchRow("sess_a", "me", "x", "", "", 1), []))
    with store.reading() as reader:
        assert reader.unindexed(5) == []


def test_what_is_not_indexed_of_an_owner_is_read_at_once(store: Store) -> None:
    store.append(start("sess_a"), start("sess_b"))
    indexed(store, "sess_a", "x")
    since = session_of(store).updated_at
    store.append(step(session_of(store)))
    with store.reading() as reader:
        assert {row.session_id for row in reader.unindexed_of("me", 5)} == {"sess_a", "sess_b"}
        assert len(reader.unindexed_of("me", 1)) == 1
        assert reader.unindexed_of("nobody", 5) == reader.outdated_rows("nobody", 0) == []
        assert reader.unindexed(5, after="sess_a") == ["sess_b"]
        assert [row.session_id for row in reader.outdated_rows("me", since)] == ["sess_a"]
        assert reader.outdated_rows("me", 2**60) == reader.unindexed_commits("me", 2**60, 9) == []
        new = reader.unindexed_commits("me", since, 9)
        assert [(row.session_id, row.last) for row in new] == [("sess_a", 1)]
        assert reader.unindexed_commits("me", since, 0) == []


@laws
@given(st.lists(st.text(max_size=12), max_size=4))
def test_no_word_is_syntax(store: Store, words: list[str]) -> None:
    with suppress(StoreConflict):
        store.append(start())
    indexed(store, "sess_a", "plain", "plain", "plain")
    with store.reading() as reader:
        assert reader.search([*words, "absent"], owner="me", columns=["title", "notes"], limit=5) == []
        assert reader.search_outputs([*words, "absent"], owner="me", limit=5) == []


WORDS = ("alpha", "beta", "gamma")
reindexings = st.tuples(
    st.sampled_from(["sess_a", "sess_b", "sess_c"]), st.none() | st.sets(st.sampled_from(WORDS))
)


@laws
@given(st.lists(st.lists(reindexings, min_size=1, max_size=3), max_size=8))
def test_the_search_follows_every_change(
    store: Store, commands: Sequence[Sequence[tuple[str, set[str] | None]]]
) -> None:
    model: dict[str, set[str]] = {}
    with store.writing() as writer:
        for name in ("sess_a", "sess_b", "sess_c"):
            writer.remove_session(name, 1)
    for command in commands:
        with store.writing() as writer:
            for session_id, words in command:
                model.pop(session_id, None)
                if words is None:
                    writer.remove_session(session_id, 1)
                else:
                    model[session_id] = words
                    writer.index(SearchRow(session_id, "me", "title", " ".join(words), ""), [])
    with store.reading() as reader:
        for word in WORDS:
            expected = [name for name in reversed(model) if word in model[name]]
            assert reader.search([word], owner="me", columns=["notes"], limit=9) == expected


@pytest.mark.parametrize("few", [0, 1000])
def test_observations_find_sessions_by_value_or_its_beginning_however_many_match(
    store: Store, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, at, branch in (("sess_a", 1, "main"), ("sess_b", 2, "maintenance"), ("sess_c", 3, "other")):
        store.append(start(name, at, observations={"branch": branch}))
    store.append(start("sess_theirs", 9, owner="you", observations={"branch": "main"}))
    put(store, lambda writer: writer.index(SearchRow("sess_a", "me", "", "", "", 0), []))
    with store.reading() as reader:
        monkeypatch.setattr(import_module(type(reader).__module__), "FEW", few, raising=False)
        assert dict(reader.observations("sess_a")) == {"branch": "main"}
        assert reader.observed("branch", "main", owner="me", prefix=False, limit=5) == ["sess_a"]
        assert reader.observed("branch", "main", owner="me", prefix=True, limit=5) == ["sess_b", "sess_a"]
        assert reader.observed("branch", "main", owner="me", prefix=True, limit=1) == ["sess_b"]
        assert reader.observed("sha", "main", owner="me", prefix=True, limit=5) == []


def test_rule_46_every_question_that_finds_sessions_is_bound_to_their_owner(store: Store) -> None:
    seen = {"branch": "main"}
    store.append(start("sess_mine", 1, observations=seen))
    for number in range(3):  # theirs are newer: a limit must not let them crowd out mine
        theirs = f"sess_your{number}"
        store.append(start(theirs, 9 - number, owner="you", observations=seen))
        row = SearchRow(theirs, "you", "needle", "needle", "wfneedle", 0)
        put(store, lambda writer, row=row: writer.index(row, ["needle"]))
    put(store, lambda writer: writer.index(SearchRow("sess_mine", "me", "needle", "", "", 0), ["needle"]))
    put(store, lambda writer: writer.set_setting(SettingRow("you", "mode", "x")))
    with store.reading() as reader:
        for owner, found in (("me", ["sess_mine"]), ("you", ["sess_your2"]), ("nobody", [])):
            assert reader.search(["needle"], owner=owner, columns=["title"], limit=1) == found
            assert reader.search_outputs(["needle"], owner=owner, limit=1) == found
        for owner, found in (("me", ["sess_mine"]), ("you", ["sess_your0"]), ("nobody", [])):
            assert reader.sessions_by_prefix("sess_", owner=owner, limit=1) == found
            assert reader.observed("branch", "main", owner=owner, prefix=False, limit=1) == found
            assert [row.session_id for row in reader.sessions(SessionFilter(owner, limit=1))] == found
            runs = reader.runs_by_prefix("run_sess_mine", owner=owner, limit=1)
            assert bool(runs) == (owner == "me")
            assert reader.setting(owner, "mode") == ("x" if owner == "you" else None)
        everybodys = reader.sessions_by_prefix("sess_", owner=None, limit=9)
        assert everybodys == ["sess_mine", "sess_your0", "sess_your1", "sess_your2"]
        assert len(reader.runs_by_prefix("run_sess_", owner=None, limit=9)) == 4


def test_a_session_that_waits_for_the_user_is_stale_only_when_asked_for(store: Store) -> None:
    store.append(start("sess_a", runs=[run_row("sess_a", awaiting="which")]), start("sess_b"))
    with store.reading() as reader:
        assert reader.stale_sessions(9, "", 9) == ["sess_b"]
        assert reader.stale_sessions(9, "", 9, waiting=True) == ["sess_a", "sess_b"]
    with store.writing() as writer:
        assert writer.stale_sessions(9, "", 9) == ["sess_b"]


# What is not a command.


def test_rule_13a_a_start_is_dropped_only_if_it_is_still_the_one_that_was_read(store: Store) -> None:
    store.append(start(starts=[ONCE]))
    put(store, lambda writer: writer.drop_start(replace(ONCE, started_at=9)))
    with store.reading() as reader:
        assert reader.start("me", b"once") == ONCE
    put(store, lambda writer: writer.drop_start(ONCE))
    with store.reading() as reader:
        assert reader.start("me", b"once") is None


@pytest.mark.parametrize("body", [b"", b"short", b"long " * 1000, bytes(range(256)) * 8])
def test_content_comes_back_whatever_its_size_and_is_kept_once(store: Store, body: bytes) -> None:
    put(store, lambda writer: writer.add_content("sha256:1", body))
    put(store, lambda writer: writer.add_content("sha256:1", b"something else"))
    with store.reading() as reader:
        assert reader.content("sha256:1") == body
    put(store, lambda writer: writer.drop_content("sha256:1"))
    with store.reading() as reader:
        assert reader.content("sha256:1") is None


@pytest.mark.parametrize(
    "response", [b"", b"{}", b"x" * 511, b"x" * 5000, b"\x78\x01 no zlib", b"\x78" * 900]
)
def test_a_response_comes_back_byte_for_byte(store: Store, response: bytes) -> None:
    store.append(
        start(nodes=[node_row(0, response=response)], blocked=[blocked_row(0, 0, response=response)])
    )
    with store.reading() as reader:
        node, blocked = reader.node("sess_a", 0), reader.recorded("sess_a", 0, 0)
    assert node is not None
    assert blocked is not None
    assert node.response == blocked.response == response


# Messages wait in the outbox with the command that they come from.


def message(name: str, due_at: int = 10, session_id: str = "sess_a") -> OutboxRow:
    return OutboxRow(session_id, name, "ops", "opened", b"{}", due_at, 5)


def test_a_message_is_stored_with_its_command_or_not_at_all(store: Store) -> None:
    store.append(start(outbox=[message("msg_1")]))
    with suppress(StoreConflict):
        store.append(start(outbox=[message("msg_2")]))
    with store.reading() as reader:
        assert reader.messages(9) == [message("msg_1")]


def test_due_messages_come_in_the_order_of_their_times(store: Store) -> None:
    late, early, dead = message("msg_1", 20), message("msg_2", 10), message("msg_3", 5)
    store.append(start(outbox=[late, early, dead]))
    gone = replace(dead, state="dead", error="410")
    put(store, lambda writer: assert_changed(writer, dead, gone))
    with store.reading() as reader:
        assert reader.due_messages(19, 9) == [early]
        assert reader.due_messages(20, 9) == [early, late]
        assert reader.messages(9) == [gone, early, late]


def assert_changed(writer: Writer, before: OutboxRow, after: OutboxRow) -> None:
    assert writer.change_message(before, after)


def test_only_one_of_two_takes_a_message(store_factory: StoreFactory) -> None:
    ours, theirs = store_factory(), store_factory()
    waiting = message("msg_1")
    ours.append(start(outbox=[waiting]))
    taken = replace(waiting, due_at=99, attempts=1)
    with ours.writing() as writer:
        assert writer.change_message(waiting, taken)
    with theirs.writing() as writer:
        assert not writer.change_message(waiting, replace(waiting, due_at=98, attempts=1))
        writer.drop_message(taken)
    with ours.reading() as reader:
        assert reader.messages(9) == []


def test_settings_hold_their_last_value(store: Store) -> None:
    put(
        store,
        lambda writer: writer.set_setting(SettingRow("me", "mode", "a")),
        lambda writer: writer.set_setting(SettingRow("me", "mode", "b")),
    )
    with store.reading() as reader:
        assert reader.setting("me", "mode") == "b"


def test_a_setting_that_two_change_at_once_keeps_both_changes(store_factory: StoreFactory) -> None:
    ours, theirs = store_factory(), store_factory()

    def add(writer: Writer, text: str) -> None:
        writer.set_setting(SettingRow("me", "views", (writer.setting("me", "views") or "") + text))

    other = threading.Thread(target=lambda: put(theirs, lambda writer: add(writer, "b")))
    with ours.writing() as writer:
        before = writer.setting("me", "views") or ""
        other.start()
        other.join(timeout=0.2)  # it waits for its turn; one that did not would be done by then
        writer.set_setting(SettingRow("me", "views", before + "a"))
    other.join()
    with ours.reading() as reader:
        assert reader.setting("me", "views") == "ab"


def test_traces_are_kept_beside_the_log(store: Store) -> None:
    store.append(start())
    before = session_of(store)
    rows = [TraceRow("sess_a", index, at, f"{index}-{at}".encode()) for index, at in ((0, 1), (0, 2), (2, 3))]
    store.trace([rows[0], rows[2], TraceRow("sess_b", 0, 1, b"other")])
    store.trace([rows[1]])
    store.trace([])
    assert session_of(store) == before
    store.append(step(before))
    with store.reading() as reader:
        assert reader.traces("sess_a", 0, 9, 9) == rows
        assert reader.traces("sess_a", 1, 9, 9) == rows[2:]
        assert reader.traces("sess_a", 0, 0, 9) == rows[:2]
        assert reader.traces("sess_a", 0, 9, 2) == rows[1:]


def test_a_keep_mark_survives_a_command_that_was_read_before_it(store_factory: StoreFactory) -> None:
    ours, theirs = store_factory(), store_factory()
    ours.append(start())
    before = session_of(ours)
    put(theirs, lambda writer: writer.set_keep("sess_a", True))
    ours.append(step(before))
    assert session_of(theirs).keep is True
    put(theirs, lambda writer: writer.set_keep("sess_a", False))
    assert session_of(ours).keep is False


def test_a_verdict_on_health_survives_a_command_that_was_read_before_it(store_factory: StoreFactory) -> None:
    ours, theirs = store_factory(), store_factory()
    ours.append(start())
    before = session_of(ours)
    put(theirs, lambda writer: writer.set_health("sess_a", "corrupt_tail", "digest_mismatch at event 3"))
    ours.append(step(before))
    session = session_of(theirs)
    assert (session.health, session.health_reason) == ("corrupt_tail", "digest_mismatch at event 3")


def test_stale_sessions_are_those_without_activity_and_without_a_mark(store: Store) -> None:
    for name, at in (("sess_a", 1), ("sess_b", 2), ("sess_c", 3), ("sess_d", 9)):
        store.append(start(name, at))
    put(store, lambda writer: writer.set_keep("sess_b", True))
    store.append(step(session_of(store, "sess_a"), at=9))
    with store.reading() as reader:
        assert reader.stale_sessions(9, "", 5) == ["sess_c"]
        assert reader.stale_sessions(10, "", 5) == ["sess_a", "sess_c", "sess_d"]
        assert reader.stale_sessions(10, "sess_a", 1) == ["sess_c"]
        assert reader.stale_sessions(10, "", 5, among=["sess_d", "sess_b", "sess_x"]) == ["sess_d"]
        assert reader.stale_sessions(10, "", 5, among=[]) == []


def test_stale_sessions_are_those_of_an_owner_or_of_all(store: Store) -> None:
    store.append(start("sess_a", owner="me"))
    store.append(start("sess_b", owner="you"))
    with store.writing() as writer:
        assert writer.stale_sessions(9, "", 5, owner="me") == ["sess_a"]
        assert writer.stale_sessions(9, "", 5, owner="you", among=["sess_a", "sess_b"]) == ["sess_b"]
        assert writer.stale_sessions(9, "", 5) == ["sess_a", "sess_b"]


def filled(name: str) -> Changes:
    return start(
        name,
        nodes=[node_row(0, session_id=name)],
        blocked=[blocked_row(0, 0, session_id=name)],
        modes=[ModeRow(name, 0, 0, b"{}")],
        starts=[StartRow("me", name.encode(), b"", name, b"handle", b"answer", 1)],
        observations={"branch": "main"},
    )


def test_a_removed_session_leaves_a_tombstone_and_nothing_else(store: Store) -> None:
    for name in ("sess_a", "sess_b"):
        store.append(filled(name))
        put(store, lambda w, n=name: w.index(SearchRow(n, "me", "needle", "", "", 0), ["needle"]))
        store.trace([TraceRow(name, 0, 1, b"t")])
        put(store, lambda w, n=name: w.add_message(message("msg_1", session_id=n)))
    put(store, lambda writer: writer.remove_session("sess_a", 77))
    with store.reading() as reader:
        assert reader.tombstone("sess_a") == TombstoneRow("sess_a", "me", 77, 0, digest_of("sess_a", 0))
        assert reader.tombstone("sess_b") is None
        assert reader.load(handle_of("sess_a")) is None
        assert reader.runs("sess_a") == reader.modes("sess_a") == reader.handles("sess_a") == []
        assert list(reader.nodes("sess_a")) == list(reader.blocked("sess_a")) == []
        assert list(reader.commits("sess_a")) == reader.traces("sess_a", 0, 9, 9) == []
        assert reader.start("me", b"sess_a") is None
        assert [row.session_id for row in reader.messages(9)] == ["sess_b"]
        assert dict(reader.observations("sess_a")) == {}
        assert reader.search_row("sess_a") is None
        assert reader.search(["needle"], owner="me", columns=["title"], limit=5) == ["sess_b"]
        assert reader.search_outputs(["needle"], owner="me", limit=5) == ["sess_b"]
        assert reader.traces("sess_b", 0, 9, 9) == [TraceRow("sess_b", 0, 1, b"t")]
    assert ids(store) == ["sess_b"]
    store.append(filled("sess_a"))


def test_a_tombstone_names_the_last_owner(store: Store) -> None:
    for removed_at, owner in enumerate(("me", "you")):
        first = start("sess_a")
        store.append(replace(first, session=replace(first.session, owner=owner)))
        put(store, lambda writer, at=removed_at: writer.remove_session("sess_a", at))
    with store.reading() as reader:
        assert reader.tombstone("sess_a") == TombstoneRow("sess_a", "you", 1, 0, digest_of("sess_a", 0))


def test_a_replaced_session_has_the_new_rows_and_its_old_handles(store: Store) -> None:
    store.append(filled("sess_a"))
    store.append(step(session_of(store)))
    put(store, lambda writer: writer.index(SearchRow("sess_a", "me", "stale", "", "", 1), ["stale"]))
    store.trace([TraceRow("sess_a", 0, 1, b"t")])
    again = start("sess_a", at=50)
    node = node_row(0, response=b"response " * 200)
    rows = SessionRows(
        session=replace(again.session, keep=True, health="healthy"),
        commits=[commit_row("sess_a", 0, "new", key="k")],
        runs=[run_row(status="complete")],
        nodes=[node],
        blocked=[blocked_row(0, 8)],
        modes=[ModeRow("sess_a", 0, 3, b"m")],
        observations={"branch": "other"},
    )
    put(store, lambda writer: writer.replace_session(rows))
    with store.reading() as reader:
        assert reader.session("sess_a") == rows.session
        assert list(reader.commits("sess_a")) == rows.commits
        assert reader.runs("sess_a") == rows.runs
        assert list(reader.nodes("sess_a")) == [node]
        assert list(reader.blocked("sess_a")) == rows.blocked
        assert reader.modes("sess_a") == rows.modes
        assert dict(reader.observations("sess_a")) == {"branch": "other"}
        assert [row.handle for row in reader.handles("sess_a")] == [handle_of("sess_a")]
        assert reader.start("me", b"sess_a") is not None
        assert reader.traces("sess_a", 0, 9, 9) == [TraceRow("sess_a", 0, 1, b"t")]
        assert reader.search_row("sess_a") is None
        assert reader.search_outputs(["stale"], owner="me", limit=5) == []
        assert reader.unindexed(5) == ["sess_a"]


def test_a_session_can_be_written_where_there_was_none(store: Store) -> None:
    made = start("sess_new")
    rows = SessionRows(
        session=made.session,
        commits=[made.commit],
        runs=made.runs,
        nodes=made.nodes,
        blocked=[],
        modes=[],
        observations={},
    )
    put(
        store,
        lambda writer: writer.replace_session(rows),
        lambda writer: writer.add_handle(HandleRow(b"h", "sess_new")),
    )
    store.append(step(session_of(store, "sess_new")))
    loaded = store.load(b"h")
    assert loaded is not None
    assert loaded.session.head_index == 1
