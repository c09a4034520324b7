"""What every store must do. A new store joins by adding itself to STORES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.store.protocol import (
    AttemptRow,
    EventRow,
    HandleRow,
    NodeRow,
    OutputRow,
    RunRow,
    SearchRow,
    SessionFilter,
    SessionRow,
    Store,
    StoreConflict,
    Writer,
)
from interlock.store.sqlite.store import open_store

STORES: dict[str, Callable[[Path], Store]] = {"sqlite": open_store}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()


def a_session(session_id: str = "sess_a", updated_at: int = 1, owner: str = "me") -> SessionRow:
    return SessionRow(session_id, owner, "Fix the login", 1, updated_at, -1, b"\0" * 32, 0)


def a_run(session_id: str = "sess_a", run: int = 0, status: str = "running", awaiting: str = "") -> RunRow:
    return RunRow(session_id, run, f"run_{session_id}{run}", "wr.fix", "sha256:1", status, 0, 1, 1, awaiting)


def a_node(node: int, parent: int | None = None, run: int = 0) -> NodeRow:
    return NodeRow("sess_a", node, run, parent, "step", 1, 2, b"\0state", b"d" * 32, 7, 8)


def an_attempt(attempt: int, successor: int | None = None) -> AttemptRow:
    return AttemptRow("sess_a", 3, attempt, "blocked", b"q", b"\xffr", b"d", None, successor, b"{}")


def an_event(index: int, kind: str = "noted", key: str | None = None) -> EventRow:
    return EventRow("sess_a", index, kind, b'{"a":1}', b"d" * 32, 5, 0, index, key)


def an_output(ordinal: int, body: str, session_id: str = "sess_a", node: int = 3) -> OutputRow:
    return OutputRow(session_id, node, 0, ordinal, "notes", "step-one", body, node + 1, 9)


def put(store: Store, *writes: Callable[[Writer], None]) -> None:
    with store.writing() as writer:
        for write in writes:
            write(writer)


def test_rows_come_back_as_they_were_stored(store: Store) -> None:
    session = msgspec.structs.replace(a_session(), head_run=0, parent_session="sess_p", keep=True)
    with store.writing() as writer:
        writer.add_session(session)
        writer.add_handle(HandleRow(b"0123456789", "sess_a", "worker"))
        writer.add_run(a_run())
        writer.add_node(a_node(3))
        writer.add_attempt(an_attempt(0, successor=2**32 - 1))
        writer.add_outputs([an_output(0, "one"), an_output(1, "zwei\n✓")])
        writer.add_events([an_event(0, key="k"), an_event(1)])
    with store.reading() as reader:
        assert reader.session("sess_a") == session
        assert reader.handle(b"0123456789") == reader.agent_handle("sess_a", "worker")
        assert reader.handle(b"0123456789") == HandleRow(b"0123456789", "sess_a", "worker")
        assert reader.run("sess_a", 0) == reader.run_by_id("run_sess_a0") == a_run()
        assert reader.node("sess_a", 3) == a_node(3)
        assert reader.attempt("sess_a", 3, 0) == an_attempt(0, successor=2**32 - 1)
        assert reader.outputs("sess_a", 3) == [an_output(0, "one"), an_output(1, "zwei\n✓")]
        assert list(reader.events("sess_a")) == [an_event(0, key="k"), an_event(1)]


def test_keep_comes_back_as_a_truth_value(store: Store) -> None:
    put(store, lambda writer: writer.add_session(a_session()))
    with store.reading() as reader:
        found = reader.session("sess_a")
    assert found is not None
    assert found.keep is False


def test_what_is_not_there_is_none(store: Store) -> None:
    with store.reading() as reader:
        assert reader.session("sess_a") is None
        assert reader.handle(b"0123456789") is None
        assert reader.agent_handle("sess_a", "") is None
        assert reader.run("sess_a", 0) is None
        assert reader.run_by_id("run_x") is None
        assert reader.node("sess_a", 0) is None
        assert reader.attempt("sess_a", 0, 0) is None
        assert reader.attempt_before("sess_a", 0, 0) is None
        assert reader.last_event("sess_a") is None
        assert reader.event_by_key("sess_a", "k") is None
        assert reader.content("sha256:0") is None
        assert reader.setting("mode") is None
        assert reader.removed_at("sess_a") is None
        assert reader.runs("sess_a") == reader.nodes("sess_a") == reader.outputs("sess_a", 0) == []
        assert dict(reader.observations("sess_a")) == {}
        assert reader.count_sessions() == 0


def test_a_command_is_all_or_nothing(store: Store) -> None:
    def fail() -> None:
        with store.writing() as writer:
            writer.add_session(a_session())
            writer.add_events([an_event(0)])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with store.reading() as reader:
        assert reader.session("sess_a") is None
        assert reader.last_event("sess_a") is None
    put(store, lambda writer: writer.add_session(a_session()))


def test_a_transaction_sees_its_own_writes(store: Store) -> None:
    with store.writing() as writer:
        writer.add_session(a_session())
        writer.set_search(SearchRow("sess_a", "Fix the login", "", ""))
        assert writer.session("sess_a") == a_session()
        assert writer.search(["login"], columns=["title"], limit=5) == ["sess_a"]
        with store.reading() as reader:
            assert reader.session("sess_a") == a_session()


def test_transactions_do_not_nest(store: Store) -> None:
    with store.reading(), pytest.raises(RuntimeError), store.writing():
        pass
    with store.writing(), pytest.raises(RuntimeError), store.writing():
        pass


def test_a_reading_is_one_view_whatever_others_write(tmp_path: Path) -> None:
    ours, theirs = open_store(tmp_path), open_store(tmp_path)
    with ours.reading() as reader:
        assert reader.count_sessions() == 0
        put(theirs, lambda writer: writer.add_session(a_session()))
        assert reader.count_sessions() == 0
    with ours.reading() as reader:
        assert reader.count_sessions() == 1
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    "again",
    [
        lambda writer: writer.add_session(a_session()),
        lambda writer: writer.add_handle(HandleRow(b"0123456789", "sess_b")),
        lambda writer: writer.add_run(a_run()),
        lambda writer: writer.add_node(a_node(3)),
        lambda writer: writer.add_attempt(an_attempt(0)),
        lambda writer: writer.add_outputs([an_output(0, "one")]),
        lambda writer: writer.add_events([an_event(0)]),
        lambda writer: writer.add_events([an_event(1, key="k")]),
    ],
)
def test_a_key_is_taken_once(store: Store, again: Callable[[Writer], None]) -> None:
    with store.writing() as writer:
        writer.add_session(a_session())
        writer.add_handle(HandleRow(b"0123456789", "sess_a"))
        writer.add_run(a_run())
        writer.add_node(a_node(3))
        writer.add_attempt(an_attempt(0))
        writer.add_outputs([an_output(0, "one")])
        writer.add_events([an_event(0, key="k")])
    with pytest.raises(StoreConflict):
        put(store, again)


def test_updates_change_what_may_change(store: Store) -> None:
    put(store, lambda writer: writer.add_session(a_session()), lambda writer: writer.add_run(a_run()))
    session = SessionRow(
        "sess_a", "me", "New", 1, 9, 4, b"x" * 32, 5, 0, 4, None, "corrupt_tail", "event 3", keep=True
    )
    run = msgspec.structs.replace(a_run(), status="completed", tip=4, updated_at=9, awaiting="user")
    put(store, lambda writer: writer.set_session(session), lambda writer: writer.set_run(run))
    with store.reading() as reader:
        assert reader.session("sess_a") == session
        assert reader.run("sess_a", 0) == run


def test_updating_what_is_not_there_is_a_fault(store: Store) -> None:
    with pytest.raises(LookupError):
        put(store, lambda writer: writer.set_session(a_session()))
    with pytest.raises(LookupError):
        put(store, lambda writer: writer.set_run(a_run()))


def test_sessions_are_listed_newest_activity_first(store: Store) -> None:
    with store.writing() as writer:
        for name, time in (("sess_a", 5), ("sess_b", 9), ("sess_c", 7)):
            writer.add_session(a_session(name, time))
    with store.reading() as reader:
        assert [row.session_id for row in reader.sessions(SessionFilter())] == ["sess_b", "sess_c", "sess_a"]
        assert [row.session_id for row in reader.sessions(SessionFilter(limit=1, offset=1))] == ["sess_c"]
        assert reader.count_sessions() == 3


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (SessionFilter(owner="me"), {"sess_a", "sess_b"}),
        (SessionFilter(updated_before=2), {"sess_a"}),
        (SessionFilter(status="completed"), {"sess_b"}),
        (SessionFilter(workflow="wr.fix"), {"sess_a", "sess_b"}),
        (SessionFilter(workflow="wr.none"), set()),
        (SessionFilter(awaiting=True), {"sess_a"}),
        (SessionFilter(awaiting=True, status="completed"), set()),
        (SessionFilter(owner="me", updated_before=3, workflow="wr.fix", status="completed"), {"sess_b"}),
    ],
)
def test_sessions_are_filtered(store: Store, wanted: SessionFilter, expected: set[str]) -> None:
    with store.writing() as writer:
        writer.add_session(a_session("sess_a", 1))
        writer.add_session(a_session("sess_b", 2))
        writer.add_session(a_session("sess_c", 3, owner="you"))
        writer.add_run(a_run("sess_a", awaiting="checkpoint"))
        writer.add_run(a_run("sess_b", status="completed"))
    with store.reading() as reader:
        assert {row.session_id for row in reader.sessions(wanted)} == expected


def test_a_short_id_finds_the_sessions_that_begin_with_it(store: Store) -> None:
    with store.writing() as writer:
        for name in ("sess_aa", "sess_ab", "sess_b%"):
            writer.add_session(a_session(name))
    with store.reading() as reader:
        assert reader.sessions_by_prefix("sess_a", 5) == ["sess_aa", "sess_ab"]
        assert reader.sessions_by_prefix("sess_a", 1) == ["sess_aa"]
        assert reader.sessions_by_prefix("sess_aa", 5) == ["sess_aa"]
        assert reader.sessions_by_prefix("sess_%", 5) == []


def test_nodes_know_their_children_and_their_run(store: Store) -> None:
    rows = [a_node(0), a_node(1, 0), a_node(2, 0), a_node(3, 1), a_node(4, None, run=1)]
    with store.writing() as writer:
        for row in rows:
            writer.add_node(row)
    with store.reading() as reader:
        assert reader.children("sess_a", 0) == rows[1:3]
        assert reader.children("sess_a", 3) == []
        assert reader.nodes("sess_a") == rows
        assert reader.nodes("sess_a", 1) == rows[4:]


def test_attempts_keep_their_order_and_name_their_predecessor(store: Store) -> None:
    rows = [an_attempt(0, successor=900), an_attempt(900, successor=4), an_attempt(4)]
    with store.writing() as writer:
        for row in rows:
            writer.add_attempt(row)
    with store.reading() as reader:
        assert reader.attempts("sess_a", 3) == rows
        assert reader.attempt_before("sess_a", 3, 4) == rows[1]
        assert reader.attempt_before("sess_a", 3, 0) is None


def test_events_can_be_read_in_part(store: Store) -> None:
    rows = [an_event(index, "even" if index % 2 == 0 else "odd") for index in range(6)]
    put(store, lambda writer: writer.add_events(rows))
    with store.reading() as reader:
        assert list(reader.events("sess_a", start=4)) == rows[4:]
        assert list(reader.events("sess_a", kinds=["odd"])) == rows[1::2]
        assert list(reader.events("sess_a", kinds=["odd", "even"], limit=2)) == rows[:2]
        assert list(reader.events("sess_a", newest_first=True, limit=2)) == [rows[5], rows[4]]
        assert list(reader.events("sess_b")) == []
        assert reader.last_event("sess_a") == rows[5]


@pytest.mark.parametrize("body", [b"", b"short", b"long " * 1000, bytes(range(256)) * 8])
def test_content_comes_back_whatever_its_size_and_is_kept_once(store: Store, body: bytes) -> None:
    put(store, lambda writer: writer.add_content("sha256:1", body))
    put(store, lambda writer: writer.add_content("sha256:1", b"something else"))
    with store.reading() as reader:
        assert reader.content("sha256:1") == body


def test_observations_find_sessions_by_value_or_its_beginning(store: Store) -> None:
    with store.writing() as writer:
        for name, time, branch in (
            ("sess_a", 1, "main"),
            ("sess_b", 2, "maintenance"),
            ("sess_c", 3, "other"),
        ):
            writer.add_session(a_session(name, time))
            writer.set_observation(name, "branch", "first")
            writer.set_observation(name, "branch", branch)
    with store.reading() as reader:
        assert dict(reader.observations("sess_a")) == {"branch": "main"}
        assert reader.observed("branch", "main", prefix=False, limit=5) == ["sess_a"]
        assert reader.observed("branch", "main", prefix=True, limit=5) == ["sess_b", "sess_a"]
        assert reader.observed("branch", "first", prefix=True, limit=5) == []
        assert reader.observed("sha", "main", prefix=True, limit=5) == []


def test_settings_hold_their_last_value(store: Store) -> None:
    put(store, lambda writer: writer.set_setting("mode", "a"), lambda writer: writer.set_setting("mode", "b"))
    with store.reading() as reader:
        assert reader.setting("mode") == "b"


def test_rule_47_search_wants_all_words_and_gives_the_newest_first(store: Store) -> None:
    put(
        store,
        lambda writer: writer.set_search(SearchRow("sess_a", "Fix the login", "token expired", "wr.bug")),
    )
    put(
        store, lambda writer: writer.set_search(SearchRow("sess_b", "Login page", "Expired again", "wr.task"))
    )
    with store.reading() as reader:
        assert reader.search(["login"], columns=["title", "notes"], limit=5) == ["sess_b", "sess_a"]
        assert reader.search(["login", "token"], columns=["title", "notes"], limit=5) == ["sess_a"]
        assert reader.search(["login", "token"], columns=["title"], limit=5) == []
        assert reader.search(["EXPIRED"], columns=["notes"], limit=1) == ["sess_b"]
        assert reader.search(["wr.bug"], columns=["workflows"], limit=5) == ["sess_a"]
        assert reader.search([], columns=["title"], limit=5) == []
    put(store, lambda writer: writer.set_search(SearchRow("sess_a", "Fix the login", "done", "wr.bug")))
    with store.reading() as reader:
        assert reader.search(["login"], columns=["title", "notes"], limit=5) == ["sess_a", "sess_b"]
        assert reader.search(["token"], columns=["title", "notes"], limit=5) == []


def test_the_deep_search_looks_into_every_output(store: Store) -> None:
    with store.writing() as writer:
        writer.set_search(SearchRow("sess_z", "needle", "needle", "needle"))
        writer.add_outputs([an_output(0, "a needle in hay"), an_output(1, "needle and thread")])
        writer.add_outputs([an_output(0, "needle again", "sess_b"), an_output(1, "only hay", "sess_c")])
    with store.reading() as reader:
        assert reader.search_outputs(["needle"], limit=5) == ["sess_b", "sess_a"]
        assert reader.search_outputs(["needle"], limit=1) == ["sess_b"]
        assert reader.search_outputs(["needle", "thread"], limit=5) == ["sess_a"]
        assert reader.search(["hay"], columns=["title", "notes", "workflows"], limit=5) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=4))
def test_no_word_is_syntax(words: list[str]) -> None:
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        put(store, lambda writer: writer.set_search(SearchRow("sess_a", "plain", "plain", "plain")))
        with store.reading() as reader:
            assert reader.search([*words, "absent"], columns=["title", "notes"], limit=5) == []
            assert reader.search_outputs(words, limit=5) == []
        store.close()


WORDS = ("alpha", "beta", "gamma")
changes = st.tuples(
    st.sampled_from(["sess_a", "sess_b", "sess_c"]), st.none() | st.sets(st.sampled_from(WORDS))
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(changes, min_size=1, max_size=3), max_size=8))
def test_the_search_follows_every_change(commands: list[list[tuple[str, set[str] | None]]]) -> None:
    model: dict[str, set[str]] = {}
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        for command in commands:
            with store.writing() as writer:
                for session, words in command:
                    model.pop(session, None)
                    if words is None:
                        writer.remove_session(session, 1)
                    else:
                        model[session] = words
                        writer.set_search(SearchRow(session, "title", " ".join(words), ""))
        with store.reading() as reader:
            for word in WORDS:
                expected = [session for session in reversed(model) if word in model[session]]
                assert reader.search([word], columns=["notes"], limit=9) == expected
        store.close()


def test_a_removed_session_leaves_a_tombstone_and_nothing_else(store: Store) -> None:
    def fill(writer: Writer, session_id: str) -> None:
        put_in = msgspec.structs.replace
        writer.add_session(a_session(session_id))
        writer.add_handle(HandleRow(session_id.encode(), session_id))
        writer.add_run(a_run(session_id))
        writer.add_node(put_in(a_node(3), session_id=session_id))
        writer.add_attempt(put_in(an_attempt(0), session_id=session_id))
        writer.add_outputs([an_output(0, "needle", session_id)])
        writer.add_events([put_in(an_event(0, key="k"), session_id=session_id)])
        writer.set_observation(session_id, "branch", "main")
        writer.set_search(SearchRow(session_id, "needle", "", ""))

    put(store, lambda writer: fill(writer, "sess_a"), lambda writer: fill(writer, "sess_b"))
    put(store, lambda writer: writer.remove_session("sess_a", 77))
    with store.reading() as reader:
        assert reader.removed_at("sess_a") == 77
        assert reader.removed_at("sess_b") is None
        assert [row.session_id for row in reader.sessions(SessionFilter())] == ["sess_b"]
        assert reader.handle(b"sess_a") is None
        assert reader.runs("sess_a") == reader.nodes("sess_a") == reader.outputs("sess_a", 3) == []
        assert reader.attempts("sess_a", 3) == []
        assert reader.last_event("sess_a") is None
        assert dict(reader.observations("sess_a")) == {}
        assert reader.search(["needle"], columns=["title"], limit=5) == ["sess_b"]
        assert reader.search_outputs(["needle"], limit=5) == ["sess_b"]
        assert reader.last_event("sess_b") is not None
    put(store, lambda writer: fill(writer, "sess_a"))


def test_a_failed_search_row_does_not_survive_its_transaction(store: Store) -> None:
    with suppress(KeyError), store.writing() as writer:
        writer.set_search(SearchRow("sess_a", "ghost", "", ""))
        raise KeyError
    with store.reading() as reader:
        assert reader.search(["ghost"], columns=["title"], limit=5) == []
