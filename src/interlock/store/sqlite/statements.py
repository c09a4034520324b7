"""The SQL of the embedded store: every question and every write, on one open connection.

Columns carry the names of the row structs' fields, so a row is its struct in order and nothing is mapped.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import apsw
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import astuple

from interlock.store.protocol import (
    AttemptRow,
    EventRow,
    HandleRow,
    NodeRow,
    OutputRow,
    PathRow,
    RunRow,
    SearchRow,
    SessionFilter,
    SessionRow,
)
from interlock.store.sqlite.schema import OF_A_SESSION, PROJECTIONS, TIPS

T = TypeVar("T")

COMPRESS_OVER = 1024
LATEST = 2000  # matches looked at, newest first: common words and values stay cheap (rule 47)
NOT_IN_STRINGS = {ord('"'): " ", 0: " "}
LAST_CHARACTER = chr(0x10FFFF)


def _columns(row: type[Struct]) -> str:
    return ", ".join(f'"{name}"' for name in row.__struct_fields__)


def _select(row: type[Struct], table: str) -> str:
    return f"SELECT {_columns(row)} FROM {table} "


def _insert(row: type[Struct], table: str) -> str:
    slots = ", ".join("?" * len(row.__struct_fields__))
    return f"INSERT INTO {table} ({_columns(row)}) VALUES ({slots})"


SESSION = _select(SessionRow, "sessions")
HANDLE = _select(HandleRow, "handles")
RUN = _select(RunRow, "runs")
NODE = _select(NodeRow, "nodes")
ATTEMPT = _select(AttemptRow, "attempts")
OUTPUT = _select(OutputRow, "outputs")
EVENT = _select(EventRow, "events")
SEARCH = _select(SearchRow, "search")

ADD_SESSION = _insert(SessionRow, "sessions")
ADD_HANDLE = _insert(HandleRow, "handles")
ADD_RUN = _insert(RunRow, "runs")
ADD_NODE = _insert(NodeRow, "nodes")
ADD_ATTEMPT = _insert(AttemptRow, "attempts")
ADD_OUTPUT = _insert(OutputRow, "outputs")
ADD_EVENT = _insert(EventRow, "events")
ADD_SEARCH = _insert(SearchRow, "search")

SET_SESSION = (
    "UPDATE sessions SET title = ?, updated_at = ?, head_index = ?, head_digest = ?, next_node = ?,"
    " head_run = ?, head_node = ?, health = ?, health_reason = ?, keep = ? WHERE session_id = ?"
)
SET_RUN = "UPDATE runs SET status = ?, tip = ?, updated_at = ?, awaiting = ? WHERE session_id = ? AND run = ?"
EQUALS, BEGINS = "value = ?", "value BETWEEN ? AND ?"
OBSERVED = (
    "SELECT session_id FROM observations JOIN sessions USING (session_id) WHERE observations.rowid IN"
    f" (SELECT rowid FROM observations WHERE key = ? AND {{where}} ORDER BY rowid DESC LIMIT {LATEST})"
    " ORDER BY updated_at DESC, session_id LIMIT ?"
)

PATH = (
    "WITH RECURSIVE path (node, parent, entries, towards, far) AS ("
    " SELECT node, parent, entries, ?, 0 FROM nodes WHERE session_id = ? AND node = ?"
    " UNION ALL SELECT n.node, n.parent, n.entries, path.node, far + 1 FROM path"
    " JOIN nodes AS n ON n.session_id = ? AND n.node = path.parent LIMIT ?)"
    " SELECT path.node, path.parent, path.entries, path.towards, o.attempt, o.child, o.step, o.body,"
    " o.recorded_at FROM path LEFT JOIN outputs AS o"
    " ON o.session_id = ? AND o.node = path.node AND o.kind = 'notes' ORDER BY far, o.rowid DESC"
)
RANKED = (
    "SELECT sessions.session_id FROM json_each(?) AS given"
    " CROSS JOIN sessions ON sessions.session_id = given.value"
    " CROSS JOIN runs ON runs.session_id = sessions.session_id AND runs.run = sessions.head_run"
    " LEFT JOIN observations AS seen ON seen.session_id = sessions.session_id AND seen.key = 'repo_root'"
    " WHERE owner = ? ORDER BY seen.value IS NOT ?, status IN ({finished}), sessions.updated_at DESC,"
    " sessions.session_id LIMIT ?"
)
SET_NODE = "UPDATE nodes SET state = ?, state_digest = ? WHERE session_id = ? AND node = ?"


class SqliteReader:
    """Answers from one consistent view of the database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def handle(self, handle: bytes) -> HandleRow | None:
        return self._one(HandleRow, HANDLE + "WHERE handle = ?", handle)

    def agent_handle(self, session_id: str, agent: str) -> HandleRow | None:
        return self._one(HandleRow, HANDLE + "WHERE session_id = ? AND agent = ?", session_id, agent)

    def handles(self, session_id: str) -> list[HandleRow]:
        return self._all(HandleRow, HANDLE + "WHERE session_id = ? ORDER BY rowid", session_id)

    def session(self, session_id: str) -> SessionRow | None:
        return self._one(_session, SESSION + "WHERE session_id = ?", session_id)

    def sessions(self, wanted: SessionFilter) -> list[SessionRow]:
        where, bindings = _conditions(wanted)
        newest = f"WHERE {where} ORDER BY updated_at DESC, session_id LIMIT ? OFFSET ?"
        return self._all(_session, SESSION + newest, *bindings, wanted.limit, wanted.offset)

    def sessions_by_prefix(self, prefix: str, limit: int) -> list[str]:
        sql = "SELECT session_id FROM sessions WHERE session_id BETWEEN ? AND ? ORDER BY session_id LIMIT ?"
        return self._all(str, sql, prefix, prefix + LAST_CHARACTER, limit)

    def session_ids(self, after: str, limit: int) -> list[str]:
        """Return the next sessions in the order of their ids."""
        sql = "SELECT session_id FROM sessions WHERE session_id > ? ORDER BY session_id LIMIT ?"
        return self._all(str, sql, after, limit)

    def stale_sessions(self, before: int, after: str, limit: int) -> list[str]:
        """Return the next sessions without a keep mark whose last activity lies before a time."""
        sql = (
            "SELECT session_id FROM sessions WHERE session_id > ? AND updated_at < ? AND NOT keep"
            " ORDER BY session_id LIMIT ?"
        )
        return self._all(str, sql, after, before, limit)

    def stray_sessions(self) -> list[str]:
        """Return the ids that have events but no session row: what a salvage may leave."""
        sql = "SELECT DISTINCT session_id FROM events EXCEPT SELECT session_id FROM sessions"
        return self._all(str, sql)

    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, finished: Sequence[str], limit: int
    ) -> list[str]:
        """Order an owner's sessions: same repository, unfinished, newest activity, id."""
        sql = RANKED.format(finished=", ".join("?" * len(finished)))
        given = encode(list(session_ids)).decode()
        return self._all(str, sql, given, owner, repo_root, *finished, limit)

    def count_sessions(self) -> int:
        return self._one(int, "SELECT count(*) FROM sessions") or 0

    def removed_at(self, session_id: str) -> int | None:
        return self._one(int, "SELECT removed_at FROM tombstones WHERE session_id = ?", session_id)

    def runs(self, session_id: str) -> list[RunRow]:
        return self._all(RunRow, RUN + "WHERE session_id = ? ORDER BY run", session_id)

    def run(self, session_id: str, run: int) -> RunRow | None:
        return self._one(RunRow, RUN + "WHERE session_id = ? AND run = ?", session_id, run)

    def run_by_id(self, run_id: str) -> RunRow | None:
        return self._one(RunRow, RUN + "WHERE run_id = ?", run_id)

    def node(self, session_id: str, node: int) -> NodeRow | None:
        return self._one(NodeRow, NODE + "WHERE session_id = ? AND node = ?", session_id, node)

    def nodes(self, session_id: str, run: int | None = None) -> list[NodeRow]:
        if run is None:
            return self._all(NodeRow, NODE + "WHERE session_id = ? ORDER BY node", session_id)
        return self._all(NodeRow, NODE + "WHERE session_id = ? AND run = ? ORDER BY node", session_id, run)

    def children(self, session_id: str, node: int) -> list[NodeRow]:
        return self._all(
            NodeRow, NODE + "WHERE session_id = ? AND parent = ? ORDER BY node", session_id, node
        )

    def attempt(self, session_id: str, node: int, attempt: int) -> AttemptRow | None:
        where = "WHERE session_id = ? AND node = ? AND attempt = ?"
        return self._one(AttemptRow, ATTEMPT + where, session_id, node, attempt)

    def attempts(self, session_id: str, node: int) -> list[AttemptRow]:
        """Return the attempts on a node in the order in which they were made."""
        where = "WHERE session_id = ? AND node = ? ORDER BY rowid"
        return self._all(AttemptRow, ATTEMPT + where, session_id, node)

    def each_attempt(self, session_id: str) -> Iterator[AttemptRow]:
        """Yield all attempts of a session; read them before the view they come from is closed."""
        return self._each(AttemptRow, ATTEMPT + "WHERE session_id = ?", session_id)

    def each_output(self, session_id: str) -> Iterator[OutputRow]:
        """Yield all outputs of a session; read them before the view they come from is closed."""
        return self._each(OutputRow, OUTPUT + "WHERE session_id = ?", session_id)

    def attempt_before(self, session_id: str, node: int, successor: int) -> AttemptRow | None:
        where = "WHERE session_id = ? AND node = ? AND successor = ?"
        return self._one(AttemptRow, ATTEMPT + where, session_id, node, successor)

    def outputs(self, session_id: str, node: int) -> list[OutputRow]:
        """Return the outputs on a node in the order in which they were recorded."""
        return self._all(
            OutputRow, OUTPUT + "WHERE session_id = ? AND node = ? ORDER BY id", session_id, node
        )

    def path(self, session_id: str, node: int, towards: int | None, limit: int) -> list[PathRow]:
        """Walk from a node towards the root, at most `limit` nodes, with the notes made on the way."""
        return self._all(PathRow, PATH, towards, session_id, node, session_id, limit, session_id)

    def last_event(self, session_id: str) -> EventRow | None:
        return self._one(EventRow, EVENT + 'WHERE session_id = ? ORDER BY "index" DESC LIMIT 1', session_id)

    def events(
        self,
        session_id: str,
        *,
        start: int = 0,
        kinds: Sequence[str] = (),
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[EventRow]:
        """Yield events one by one; read them before the view they come from is closed."""
        among = f"AND kind IN ({', '.join('?' * len(kinds))}) " if kinds else ""
        order = "DESC" if newest_first else "ASC"
        where = f'WHERE session_id = ? AND "index" >= ? {among}ORDER BY "index" {order} LIMIT ?'
        return self._each(EventRow, EVENT + where, session_id, start, *kinds, -1 if limit is None else limit)

    def event_by_key(self, session_id: str, dedupe_key: str) -> EventRow | None:
        return self._one(EventRow, EVENT + "WHERE session_id = ? AND dedupe_key = ?", session_id, dedupe_key)

    def content(self, digest: str) -> bytes | None:
        return self._one(_inflated, "SELECT deflated, body FROM contents WHERE digest = ?", digest)

    def observations(self, session_id: str) -> Mapping[str, str]:
        sql = "SELECT key, value FROM observations WHERE session_id = ? ORDER BY key"
        return dict(self._all(_pair, sql, session_id))

    def search_row(self, session_id: str) -> SearchRow | None:
        return self._one(SearchRow, SEARCH + "WHERE session_id = ?", session_id)

    def search(self, words: Sequence[str], *, columns: Sequence[str], limit: int) -> list[str]:
        """Return sessions whose search row has all words, the latest set first."""
        query = _query(words, columns)
        sql = (
            f"SELECT session_id FROM words JOIN search ON search.id = words.rowid - {TIPS}"
            f" WHERE words MATCH ? AND words.rowid > {TIPS} ORDER BY words.rowid DESC LIMIT ?"
        )
        return self._all(str, sql, query, limit) if query else []

    def search_outputs(self, words: Sequence[str], *, limit: int) -> list[str]:
        """Return sessions that have all words in one output, among the newest outputs that match."""
        query = _query(words, ("notes",))
        sql = (
            "SELECT session_id FROM words JOIN outputs ON outputs.id = words.rowid"
            f" WHERE words MATCH ? AND words.rowid < {TIPS} ORDER BY words.rowid DESC LIMIT {LATEST}"
        )
        found = dict.fromkeys(self._all(str, sql, query)) if query else {}
        return list(found)[:limit]

    def observed(self, key: str, value: str, *, prefix: bool, limit: int) -> list[str]:
        """Return sessions by an observed value, newest activity first among the latest observed."""
        where, bounds = (BEGINS, (value, value + LAST_CHARACTER)) if prefix else (EQUALS, (value,))
        return self._all(str, OBSERVED.format(where=where), key, *bounds, limit)

    def setting(self, key: str) -> str | None:
        return self._one(str, "SELECT value FROM settings WHERE key = ?", key)

    def _each(self, row: Callable[..., T], sql: str, *bindings: Any) -> Iterator[T]:
        return (row(*values) for values in self._connection.execute(sql, bindings))

    def _all(self, row: Callable[..., T], sql: str, *bindings: Any) -> list[T]:
        return list(self._each(row, sql, *bindings))

    def _one(self, row: Callable[..., T], sql: str, *bindings: Any) -> T | None:
        return next(self._each(row, sql, *bindings), None)


class SqliteWriter(SqliteReader):
    """The writes of one transaction; what they wrote can be read at once."""

    def add_session(self, row: SessionRow) -> None:
        self._connection.execute(ADD_SESSION, astuple(row))

    def set_session(self, row: SessionRow) -> None:
        """Store what changes in a session; owner, origin and time of creation never do."""
        head = (row.head_index, row.head_digest, row.next_node, row.head_run, row.head_node)
        rest = (row.health, row.health_reason, row.keep, row.session_id)
        self._update(SET_SESSION, (row.title, row.updated_at, *head, *rest))

    def remove_session(self, session_id: str, removed_at: int) -> None:
        """Delete all of a session and leave a tombstone."""
        for table in OF_A_SESSION:
            self._connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
        self._connection.execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?)", (session_id, removed_at))

    def add_handle(self, row: HandleRow) -> None:
        self._connection.execute(ADD_HANDLE, astuple(row))

    def add_run(self, row: RunRow) -> None:
        self._connection.execute(ADD_RUN, astuple(row))

    def set_run(self, row: RunRow) -> None:
        """Store what changes in a run; the workflow that it is pinned to never does."""
        changed = (row.status, row.tip, row.updated_at, row.awaiting)
        self._update(SET_RUN, (*changed, row.session_id, row.run))

    def add_node(self, row: NodeRow) -> None:
        self._connection.execute(ADD_NODE, astuple(row))

    def set_node(self, row: NodeRow) -> None:
        """Store a node's new state; where it hangs never changes."""
        self._update(SET_NODE, (row.state, row.state_digest, row.session_id, row.node))

    def add_attempt(self, row: AttemptRow) -> None:
        self._connection.execute(ADD_ATTEMPT, astuple(row))

    def add_outputs(self, rows: Sequence[OutputRow]) -> None:
        self._insert_all(ADD_OUTPUT, rows)

    def add_events(self, rows: Sequence[EventRow]) -> None:
        self._insert_all(ADD_EVENT, rows)

    def cut_events(self, session_id: str, from_index: int) -> None:
        """Remove a damaged tail; whoever cuts keeps what is cut."""
        sql = 'DELETE FROM events WHERE session_id = ? AND "index" >= ?'
        self._connection.execute(sql, (session_id, from_index))

    def clear_projections(self, session_id: str) -> None:
        """Remove every row of a session that can be rebuilt from its events; handles stay."""
        for table in PROJECTIONS:
            self._connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))

    def drop_content(self, digest: str) -> None:
        """Remove a damaged body, so that the right one can be kept under its digest."""
        self._connection.execute("DELETE FROM contents WHERE digest = ?", (digest,))

    def add_content(self, digest: str, body: bytes) -> None:
        """Keep a body under its digest; the same digest again changes nothing."""
        small = zlib.compress(body) if len(body) > COMPRESS_OVER else body
        deflated = len(small) < len(body)
        sql = "INSERT OR IGNORE INTO contents VALUES (?, ?, ?)"
        self._connection.execute(sql, (digest, deflated, small if deflated else body))

    def set_observation(self, session_id: str, key: str, value: str) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO observations VALUES (?, ?, ?)", (session_id, key, value)
        )

    def set_search(self, row: SearchRow) -> None:
        """Replace a session's search row, which makes it the newest."""
        self._connection.execute("DELETE FROM search WHERE session_id = ?", (row.session_id,))
        self._connection.execute(ADD_SEARCH, astuple(row))

    def set_setting(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))

    def _insert_all(self, sql: str, rows: Iterable[Struct]) -> None:
        self._connection.executemany(sql, map(astuple, rows))

    def _update(self, sql: str, bindings: tuple[Any, ...]) -> None:
        self._connection.execute(sql, bindings)
        if self._connection.changes() != 1:
            raise LookupError("the row to update does not exist")


def _session(*values: Any) -> SessionRow:
    return SessionRow(*(*values[:-1], bool(values[-1])))


def _inflated(deflated: int, body: bytes) -> bytes:
    return zlib.decompress(body) if deflated else body


def _pair(key: str, value: str) -> tuple[str, str]:
    return key, value


def _conditions(wanted: SessionFilter) -> tuple[str, list[Any]]:
    tests: list[tuple[str, Any]] = [
        ("+owner = ?", wanted.owner),  # the plus keeps the planner on the index of recent sessions
        ("updated_at < ?", wanted.updated_before),
    ]
    of_run: list[tuple[str, Any]] = [("workflow_id = ?", wanted.workflow), ("status = ?", wanted.status)]
    within = [test for test, value in of_run if value is not None]
    where = [test for test, value in tests if value is not None]
    if wanted.awaiting:
        few = " AND ".join(["awaiting <> ''", *within])
        where.append(f"session_id IN (SELECT session_id FROM runs WHERE {few})")
    elif within:
        many = " AND ".join(["runs.session_id = sessions.session_id", *within])
        where.append(f"EXISTS (SELECT 1 FROM runs INDEXED BY runs_key WHERE {many})")
    bindings = [value for _, value in tests + of_run if value is not None]
    return " AND ".join(where) or "true", bindings


def _query(words: Sequence[str], columns: Sequence[str]) -> str:
    """Write an FTS5 query in which every word is a quoted string and nothing is syntax."""
    cleaned = (word.translate(NOT_IN_STRINGS) for word in words)
    quoted = [f'"{word}"' for word in cleaned if any(map(str.isalnum, word))]
    return f"{{{' '.join(columns)}}} : ({' AND '.join(quoted)})" if quoted else ""
