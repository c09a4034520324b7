"""The SQL of the embedded store: every question and every write, on one open connection.

Columns carry the names of the row structs' fields, so a row is its struct in order and nothing is mapped.
A few rows that no index orders are sorted here: a sorter of SQLite's takes longer than the query itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import apsw
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import astuple, replace

from interlock.store.protocol import (
    NOT_ON_PATH,
    BlockedRow,
    Changes,
    CommitRow,
    HandleRow,
    Health,
    LoadedRows,
    ModeRow,
    NodeRow,
    Recorded,
    RunRow,
    SearchRow,
    SessionFilter,
    SessionRow,
    SessionRows,
    SettingRow,
    StartRow,
    StoreConflict,
    TombstoneRow,
    TraceRow,
)
from interlock.store.sqlite.schema import FOUND_BY, OF_A_SESSION, PROJECTIONS, TIPS
from interlock.store.sqlite.witness import Head

T = TypeVar("T")

COMPRESS_OVER = 256
WINDOW_BITS = 13  # small, so that little memory is set up for a response of a few kilobytes
LATEST = 2000  # outputs looked at, newest first: common words stay cheap (rule 47)
NOT_IN_STRINGS = {ord('"'): " ", 0: " "}
FEW = 1000  # rows that are looked up by a value; where it is common, they are met soon by going backwards
LAST_CHARACTER = chr(0x10FFFF)


def _columns(row: type[Struct], *without: str) -> str:
    return ", ".join(f"x'' AS {name}" if name in without else name for name in row.__struct_fields__)


def _select(row: type[Struct], table: str, *without: str) -> str:
    return f"SELECT {_columns(row, *without)} FROM {table} "


def _insert(row: type[Struct], table: str) -> str:
    slots = ", ".join("?" * len(row.__struct_fields__))
    return f"INSERT INTO {table} ({_columns(row)}) VALUES ({slots})"


SESSION = _select(SessionRow, "sessions")
HANDLE = _select(HandleRow, "handles")
RUN = _select(RunRow, "runs")
NODE = _select(NodeRow, "nodes")
LIGHT_NODE = _select(NodeRow, "nodes", "response")
BLOCKED = _select(BlockedRow, "blocked")
LIGHT_BLOCKED = _select(BlockedRow, "blocked", "response")
MODE = _select(ModeRow, "modes")
COMMIT = _select(CommitRow, "commits")
START = _select(StartRow, "starts")
TRACE = _select(TraceRow, "traces")
SEARCH = _select(SearchRow, "search")
SETTING = _select(SettingRow, "settings")
TOMBSTONE = _select(TombstoneRow, "tombstones")

ADD_SESSION = _insert(SessionRow, "sessions")
ADD_HANDLE = _insert(HandleRow, "handles")
ADD_RUN = _insert(RunRow, "runs")
ADD_NODE = _insert(NodeRow, "nodes")
ADD_BLOCKED = _insert(BlockedRow, "blocked")
ADD_MODE = _insert(ModeRow, "modes")
ADD_COMMIT = _insert(CommitRow, "commits")
ADD_START = _insert(StartRow, "starts")
ADD_TRACE = _insert(TraceRow, "traces")

MOVE_HEAD = (
    "UPDATE sessions SET updated_at = ?, head_index = ?, head_digest = ?, next_node = ?, head_run = ?,"
    " head_node = ?, visit_index = ?, visit_node = ? WHERE session_id = ? AND head_digest = ?"
)
# A statement of its own, because naming the column writes its indexes even where nothing changes.
MARK_UNINDEXED = "UPDATE sessions SET unindexed = 1 WHERE session_id = ? AND NOT unindexed"
SET_RUN = "UPDATE runs SET status = ?, tip = ?, updated_at = ?, awaiting = ? WHERE session_id = ? AND run = ?"
ON_PATH = [name for name in NodeRow.__struct_fields__ if name not in NOT_ON_PATH]
PATH = (
    f"WITH RECURSIVE path ({', '.join(ON_PATH)}) AS ("
    f" SELECT {', '.join(ON_PATH)} FROM nodes WHERE session_id = ?1 AND node = ?2"
    f" UNION ALL SELECT {', '.join(f'above.{name}' for name in ON_PATH)} FROM path"
    " JOIN nodes AS above ON above.session_id = ?1 AND above.node = path.parent LIMIT ?3)"
    f" SELECT {_columns(NodeRow, *NOT_ON_PATH)} FROM path"
)
WAITING = "SELECT 1 FROM runs WHERE runs.session_id = s.session_id AND awaiting <> ''"
WINDOW = _select(NodeRow, "nodes", *NOT_ON_PATH) + "WHERE session_id = ? AND node BETWEEN ? AND ?"
MATCHES = "SELECT count(*) FROM (SELECT 1 FROM observations WHERE key = ? AND value BETWEEN ? AND ? LIMIT ?)"
OBSERVED = (
    "SELECT session_id FROM observations CROSS JOIN sessions USING (session_id)"
    " WHERE key = ? AND value BETWEEN ? AND ? AND owner = ? ORDER BY updated_at DESC, session_id LIMIT ?"
)
OBSERVES = (
    "(SELECT value FROM observations AS o WHERE o.session_id = sessions.session_id AND key = ?)"
    " BETWEEN ? AND ? AND owner = ?"
)
HEAD_DIGESTS = (
    "SELECT sessions.session_id, head_digest FROM json_each(?) AS given"
    " CROSS JOIN sessions ON sessions.session_id = given.value"
)
OBSERVED_VALUES = (  # steps from value to value: many sessions share one
    "WITH RECURSIVE listed (value) AS (SELECT '' UNION ALL"
    " SELECT (SELECT o.value FROM observations AS o JOIN sessions AS s ON s.session_id = o.session_id"
    " WHERE o.key = ?1 AND s.owner = ?2 AND o.value > listed.value ORDER BY o.value LIMIT 1)"
    " FROM listed WHERE listed.value IS NOT NULL)"
    " SELECT value FROM listed WHERE value <> '' LIMIT ?3"
)
GIVEN = (
    "SELECT {columns} FROM json_each(?) AS given"
    " CROSS JOIN sessions ON sessions.session_id = given.value WHERE owner = ?"
)
NEWEST = (  # those not yet indexed, and the newest of the others
    "SELECT * FROM (SELECT {columns} FROM sessions WHERE unindexed AND {where} UNION ALL SELECT * FROM"
    " (SELECT {columns} FROM sessions WHERE NOT unindexed AND {where} ORDER BY recent_at DESC LIMIT ?))"
    " ORDER BY updated_at DESC, session_id LIMIT ? OFFSET ?"
)
RANKED = (
    "SELECT s.session_id FROM ({sessions}) AS s"
    " LEFT JOIN observations AS seen ON seen.session_id = s.session_id AND seen.key = 'repo_root'"
    " ORDER BY seen.value IS NOT ?, head_run IS NOT NULL AND NOT EXISTS ("
    "SELECT 1 FROM runs WHERE runs.session_id = s.session_id AND status IN ({unfinished})),"
    " s.updated_at DESC, s.session_id LIMIT ?"
)


class SqliteReader:
    """Answers from one consistent view of the database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs, by a secret handle or a session id; the head where no node is named."""
        session_id, agent = handle, ""
        if isinstance(handle, bytes):
            known = self._one(HandleRow, HANDLE + "WHERE handle = ?", handle)
            if known is None:
                return None
            session_id, agent = known.session_id, known.agent
        session = self.session(str(session_id))
        if session is None:
            return None
        if node is not None and attempt is not None:
            recorded = self.recorded(session.session_id, node, attempt)
            if recorded is not None:
                return LoadedRows(session=session, agent=agent, recorded=recorded)
        last, previous = self._head(session.session_id)
        loaded = LoadedRows(session=session, agent=agent, last=last, previous_digest=previous)
        number = session.head_node if node is None else node
        return loaded if number is None else self._with_node(loaded, number)

    def _head(self, session_id: str) -> tuple[CommitRow | None, bytes]:
        """Return the last commit, and the digest that it must follow."""
        newest = list(self.commits(session_id, newest_first=True, limit=2))
        return (newest[0] if newest else None), (newest[1].digest if len(newest) > 1 else bytes(32))

    def _with_node(self, loaded: LoadedRows, number: int) -> LoadedRows:
        session_id = loaded.session.session_id
        node = self._one(_node, LIGHT_NODE + "WHERE session_id = ? AND node = ?", session_id, number)
        if node is None:
            return loaded
        children = self.children(session_id, number)
        steps = [child for child in children if child.kind == "step"]
        beside = [child.node for child in steps if child.attempt is None]
        return replace(
            loaded,
            head_run=self._head_run(loaded.session, node.run),
            node=node,
            run=self.run(session_id, node.run),
            blocked=list(self.blocked(session_id, (number,))),
            notes=[child for child in children if child.kind == "note"],
            branches=len(steps),
            carried_to=beside[-1] if beside else None,
            mode=self._one(
                bytes,
                "SELECT preferences FROM modes WHERE session_id = ? AND node = ?"
                " ORDER BY event_index DESC LIMIT 1",
                session_id,
                number,
            ),
            decisions=sorted(
                self._each(
                    CommitRow,
                    COMMIT + "WHERE session_id = ? AND key BETWEEN ? AND ?",
                    session_id,
                    f"decision:{number}:",
                    f"decision:{number};",
                ),
                key=attrgetter("last"),
            ),
        )

    def _head_run(self, session: SessionRow, wanted: int) -> RunRow | None:
        """Return the run at the head if it is not the one that is asked for."""
        if session.head_run is None or session.head_run == wanted:
            return None
        return self.run(session.session_id, session.head_run)

    def handles(self, session_id: str) -> list[HandleRow]:
        return self._all(HandleRow, HANDLE + "WHERE session_id = ? ORDER BY agent", session_id)

    def session(self, session_id: str) -> SessionRow | None:
        return self._one(_session, SESSION + "WHERE session_id = ?", session_id)

    def head_digests(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        return dict(self._connection.execute(HEAD_DIGESTS, (encode(list(session_ids)).decode(),)))

    def sessions(self, wanted: SessionFilter) -> list[SessionRow]:
        """Return an owner's sessions, newest first: those not yet indexed, and the newest of the others."""
        where, bindings = _conditions(wanted, self._is_rare(wanted))
        most = wanted.limit + wanted.offset
        sql = NEWEST.format(columns=_columns(SessionRow), where=where)
        return self._all(_session, sql, *bindings, *bindings, most, wanted.limit, wanted.offset)

    def _is_rare(self, wanted: SessionFilter) -> bool:
        """Tell whether few runs can match: they are looked up, where many are met soon by going backwards."""
        if wanted.awaiting:
            return True
        sql = "SELECT count(*) FROM (SELECT 1 FROM runs WHERE status = ? LIMIT ?)"
        return wanted.status is not None and self._all(int, sql, wanted.status, FEW)[0] < FEW

    def sessions_by_prefix(self, prefix: str, *, owner: str, limit: int) -> list[str]:
        sql = (
            "SELECT session_id FROM sessions WHERE session_id BETWEEN ? AND ? AND +owner = ?"
            " ORDER BY session_id LIMIT ?"
        )
        return self._all(str, sql, prefix, prefix + LAST_CHARACTER, owner, limit)

    def session_ids(self, after: str, limit: int) -> list[str]:
        """Return the next sessions in the order of their ids."""
        sql = "SELECT session_id FROM sessions WHERE session_id > ? ORDER BY session_id LIMIT ?"
        return self._all(str, sql, after, limit)

    def stale_sessions(
        self,
        before: int,
        after: str,
        limit: int,
        *,
        waiting: bool = False,
        among: Sequence[str] | None = None,
    ) -> list[str]:
        """Return the next sessions, of all or `among` some, without a keep mark and without activity since.

        Those that wait for the user are left out, unless they are asked for.
        """
        given = [] if among is None else [encode(list(among)).decode()]
        chosen = " AND session_id IN (SELECT value FROM json_each(?))" if given else ""
        sql = (
            "SELECT session_id FROM sessions AS s WHERE session_id > ? AND updated_at < ? AND NOT keep"
            f" AND (? OR NOT EXISTS ({WAITING})){chosen} ORDER BY session_id LIMIT ?"
        )
        return self._all(str, sql, after, before, waiting, *given, limit)

    def stray_sessions(self) -> list[str]:
        """Return the ids that have commits but no session row: what a salvage may leave."""
        sql = "SELECT DISTINCT session_id FROM commits EXCEPT SELECT session_id FROM sessions"
        return self._all(str, sql)

    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]:
        """Order an owner's sessions: same repository, unfinished, newest activity, id."""
        given = encode(list(session_ids)).decode(), owner
        return self._ranked(GIVEN, given, repo_root, unfinished, limit)

    def newest(
        self, *, owner: str, repo_root: str, unfinished: Sequence[str], among: int, limit: int
    ) -> list[str]:
        newest = NEWEST.replace("{where}", "owner = ?")
        return self._ranked(newest, (owner, owner, among, among, 0), repo_root, unfinished, limit)

    def _ranked(
        self, sessions: str, bindings: Sequence[Any], repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]:
        sql = RANKED.format(
            sessions=sessions.format(columns="session_id, updated_at, head_run"),
            unfinished=", ".join("?" * len(unfinished)),
        )
        return self._all(str, sql, *bindings, repo_root, *unfinished, limit)

    def tombstone(self, session_id: str) -> TombstoneRow | None:
        return self._one(TombstoneRow, TOMBSTONE + "WHERE session_id = ?", session_id)

    def start(self, owner: str, request_id: bytes) -> StartRow | None:
        return self._one(StartRow, START + "WHERE owner = ? AND request_id = ?", owner, request_id)

    def runs(self, session_id: str) -> list[RunRow]:
        return self._all(RunRow, RUN + "WHERE session_id = ? ORDER BY run", session_id)

    def run(self, session_id: str, run: int) -> RunRow | None:
        return self._one(RunRow, RUN + "WHERE session_id = ? AND run = ?", session_id, run)

    def runs_by_prefix(self, prefix: str, *, owner: str, limit: int) -> list[RunRow]:
        own = "EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_id = runs.session_id AND s.owner = ?)"
        where = f"WHERE run_id BETWEEN ? AND ? AND {own} ORDER BY run_id LIMIT ?"
        return self._all(RunRow, RUN + where, prefix, prefix + LAST_CHARACTER, owner, limit)

    def node(self, session_id: str, node: int) -> NodeRow | None:
        return self._one(_node, NODE + "WHERE session_id = ? AND node = ?", session_id, node)

    def nodes(self, session_id: str, run: int | None = None) -> Iterator[NodeRow]:
        """Yield all nodes of a session with their responses; read them before the view is closed."""
        if run is None:
            return self._each(_node, NODE + "WHERE session_id = ? ORDER BY node", session_id)
        return self._each(
            _node, LIGHT_NODE + "WHERE session_id = ? AND run = ? ORDER BY node", session_id, run
        )

    def children(self, session_id: str, node: int) -> list[NodeRow]:
        rows = self._each(_node, LIGHT_NODE + "WHERE session_id = ? AND parent = ?", session_id, node)
        return sorted(rows, key=attrgetter("node"))

    def path(self, session_id: str, node: int, limit: int) -> list[NodeRow]:
        # A run that did not fork has its path in the nodes just before; finding it by parents takes longer.
        before = self._each(_node, WINDOW, session_id, node - limit + 1, node)
        rows = {row.node: row for row in before}
        path: list[NodeRow] = []
        number: int | None = node
        while number in rows:
            path.append(rows.pop(number))
            number = path[-1].parent
        if number is not None and len(path) < limit:
            path += self._all(_node, PATH, session_id, number, limit - len(path))
        return path

    def recorded(self, session_id: str, node: int, attempt: int) -> Recorded | None:
        """Return what an attempt on a node led to: the node it made, or the record that it was blocked."""
        made = self._one(
            _node, NODE + "WHERE session_id = ? AND parent = ? AND attempt = ?", session_id, node, attempt
        )
        where = "WHERE session_id = ? AND node = ? AND attempt = ?"
        return made or self._one(_blocked, BLOCKED + where, session_id, node, attempt)

    def blocked(self, session_id: str, nodes: Sequence[int] | None = None) -> Iterator[BlockedRow]:
        """Yield the blocked attempts of a session, or of some nodes without their responses."""
        if nodes is None:
            return self._each(_blocked, BLOCKED + "WHERE session_id = ? ORDER BY event_index", session_id)
        where = f"WHERE session_id = ? AND node IN ({', '.join('?' * len(nodes))})"
        rows = self._each(_blocked, LIGHT_BLOCKED + where, session_id, *nodes)
        return iter(sorted(rows, key=attrgetter("event_index")))

    def notes(self, session_id: str, nodes: Sequence[int]) -> list[NodeRow]:
        """Return the note nodes that hang on some nodes."""
        among = ", ".join("?" * len(nodes))
        where = f"WHERE session_id = ? AND parent IN ({among}) AND kind = 'note'"
        return sorted(self._each(_node, LIGHT_NODE + where, session_id, *nodes), key=attrgetter("node"))

    def modes(self, session_id: str) -> list[ModeRow]:
        return self._all(ModeRow, MODE + "WHERE session_id = ? ORDER BY event_index, node", session_id)

    def commits(
        self, session_id: str, *, start: int = 0, newest_first: bool = False, limit: int | None = None
    ) -> Iterator[CommitRow]:
        order = "DESC" if newest_first else "ASC"
        where = f"WHERE session_id = ? AND last >= ? ORDER BY last {order} LIMIT ?"
        return self._each(CommitRow, COMMIT + where, session_id, start, -1 if limit is None else limit)

    def commit_by_key(self, session_id: str, key: str) -> CommitRow | None:
        return self._one(CommitRow, COMMIT + "WHERE session_id = ? AND key = ?", session_id, key)

    def content(self, digest: str) -> bytes | None:
        return self._one(_content, "SELECT deflated, body FROM contents WHERE digest = ?", digest)

    def observations(self, session_id: str) -> Mapping[str, str]:
        sql = "SELECT key, value FROM observations WHERE session_id = ? ORDER BY key"
        return dict(self._connection.execute(sql, (session_id,)))

    def traces(self, session_id: str, start: int, end: int, limit: int) -> list[TraceRow]:
        """Return the newest traces that were made while an event of the range was the head, oldest first."""
        where = (
            "WHERE session_id = ? AND after_index BETWEEN ? AND ? ORDER BY after_index DESC, at DESC LIMIT ?"
        )
        rows = self._all(TraceRow, TRACE + where, session_id, start, end, limit)[::-1]
        return [replace(row, body=row.body[4:]) for row in rows if _summed(row.body[4:]) == row.body]

    def unindexed(self, limit: int) -> list[str]:
        return self._all(str, "SELECT session_id FROM sessions WHERE unindexed LIMIT ?", limit)

    def search_row(self, session_id: str) -> SearchRow | None:
        return self._one(SearchRow, SEARCH + "WHERE session_id = ?", session_id)

    def search(self, words: Sequence[str], *, owner: str, columns: Sequence[str], limit: int) -> list[str]:
        """Return sessions whose search row has all words, the latest set first."""
        query = _query(words, columns)
        sql = (
            f"SELECT session_id FROM words JOIN search ON search.id = words.rowid - {TIPS}"
            f" WHERE words MATCH ? AND words.rowid > {TIPS} AND owner = ? ORDER BY words.rowid DESC LIMIT ?"
        )
        return self._all(str, sql, query, owner, limit) if query else []

    def search_outputs(self, words: Sequence[str], *, owner: str, limit: int) -> list[str]:
        """Return sessions that have all words in one output, among the newest outputs that match."""
        query = _query(words, ("notes",))
        sql = (
            "SELECT session_id FROM words JOIN indexed_outputs ON indexed_outputs.id = words.rowid"
            f" WHERE words MATCH ? AND words.rowid < {TIPS} AND owner = ?"
            f" ORDER BY words.rowid DESC LIMIT {LATEST}"
        )
        matched = dict.fromkeys(self._all(str, sql, query, owner)) if query else {}
        return list(matched)[:limit]

    def observed(self, key: str, value: str, *, owner: str, prefix: bool, limit: int) -> list[str]:
        """Return sessions by an observed value, newest activity first."""
        sought = key, value, value + LAST_CHARACTER if prefix else value
        if self._all(int, MATCHES, *sought, FEW)[0] < FEW:
            return self._all(str, OBSERVED, *sought, owner, limit)
        newest = NEWEST.format(columns="session_id, updated_at", where=OBSERVES)
        bindings = (*sought, owner) * 2
        return self._all(str, f"SELECT session_id FROM ({newest})", *bindings, limit, limit, 0)

    def observed_values(self, key: str, *, owner: str, limit: int) -> list[str]:
        """Return the different values that were observed in an owner's sessions, in order."""
        return self._all(str, OBSERVED_VALUES, key, owner, limit)

    def setting(self, owner: str, key: str) -> str | None:
        return self._one(str, "SELECT value FROM settings WHERE owner = ? AND key = ?", owner, key)

    def settings(self) -> list[SettingRow]:
        return self._all(SettingRow, SETTING + "ORDER BY owner, key")

    def starts(self, session_id: str) -> list[StartRow]:
        where = "WHERE session_id = ? ORDER BY owner, request_id"
        return self._all(StartRow, START + where, session_id)

    def content_digests(self, after: str, limit: int) -> list[str]:
        sql = "SELECT digest FROM contents WHERE digest > ? ORDER BY digest LIMIT ?"
        return self._all(str, sql, after, limit)

    def tombstones(self, after: str, limit: int) -> list[TombstoneRow]:
        where = "WHERE session_id > ? ORDER BY session_id LIMIT ?"
        return self._all(TombstoneRow, TOMBSTONE + where, after, limit)

    def _each(self, row: Callable[..., T], sql: str, *bindings: Any) -> Iterator[T]:
        return (row(*values) for values in self._connection.execute(sql, bindings))

    def _all(self, row: Callable[..., T], sql: str, *bindings: Any) -> list[T]:
        return list(self._each(row, sql, *bindings))

    def _one(self, row: Callable[..., T], sql: str, *bindings: Any) -> T | None:
        return next(self._each(row, sql, *bindings), None)


class SqliteWriter(SqliteReader):
    """The writes of one transaction; what they wrote can be read at once. `heads` are those it moved."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.heads: list[Head] = []

    def append(self, changes: Changes) -> None:
        """Write what a command changed, if the session is still as it was when the command read it."""
        row = changes.session
        if changes.before is None:
            self._run(ADD_SESSION, astuple(row))
        else:
            head = (row.head_index, row.head_digest, row.next_node, row.head_run, row.head_node)
            visit = (row.visit_index, row.visit_node, row.session_id, changes.before)
            self._run(MOVE_HEAD, (row.updated_at, *head, *visit))
            if self._connection.changes() != 1:
                raise StoreConflict(f"session {row.session_id} has moved since it was read")
            self._run(MARK_UNINDEXED, (row.session_id,))
        self.heads.append(Head(row.session_id, row.head_index, row.head_digest))
        self._add_rows(changes.nodes, changes.blocked, changes.modes)
        self._run(ADD_COMMIT, astuple(changes.commit))
        for run in changes.runs:
            self._set_run(run)
        for handle in changes.handles:
            self.add_handle(handle)
        for start in changes.starts:
            self._run(ADD_START, astuple(start))
        for key, value in changes.observations.items():
            self._run("INSERT INTO observations VALUES (?, ?, ?)", (row.session_id, key, value))
        for digest, body in changes.contents.items():
            self.add_content(digest, body)

    def _add_rows(
        self, nodes: Sequence[NodeRow], blocked: Sequence[BlockedRow], modes: Sequence[ModeRow]
    ) -> None:
        for node in nodes:
            small = replace(node, state=_deflated(node.state), response=_deflated(node.response))
            self._run(ADD_NODE, astuple(small))
        for row in blocked:
            self._run(ADD_BLOCKED, astuple(replace(row, response=_deflated(row.response))))
        for mode in modes:
            self._run(ADD_MODE, astuple(mode))

    def _set_run(self, row: RunRow) -> None:
        changed = (row.status, row.tip, row.updated_at, row.awaiting, row.session_id, row.run)
        self._run(SET_RUN, changed)
        if self._connection.changes() == 0:
            self._run(ADD_RUN, astuple(row))

    def trace(self, rows: Sequence[TraceRow]) -> None:
        self._connection.executemany(
            ADD_TRACE, [astuple(replace(row, body=_summed(row.body))) for row in rows]
        )

    def remove_session(self, session_id: str, removed_at: int) -> None:
        """Delete all of a session and leave a tombstone."""
        if (session := self.session(session_id)) is not None:
            self.set_tombstone(TombstoneRow(session_id, session.owner, removed_at))
        self._forget_words(session_id)
        for table in OF_A_SESSION:
            self._run(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))

    def set_tombstone(self, row: TombstoneRow) -> None:
        self._run("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", astuple(row))

    def set_keep(self, session_id: str, keep: bool) -> None:
        self._run("UPDATE sessions SET keep = ? WHERE session_id = ?", (keep, session_id))

    def set_health(self, session_id: str, health: Health, reason: str) -> None:
        sql = "UPDATE sessions SET health = ?, health_reason = ? WHERE session_id = ?"
        self._run(sql, (health, reason, session_id))

    def add_handle(self, row: HandleRow) -> None:
        self._run(ADD_HANDLE, astuple(row))

    def add_start(self, row: StartRow) -> None:
        self._run(ADD_START, astuple(row))

    def drop_start(self, row: StartRow) -> None:
        where = "WHERE owner = ? AND request_id = ? AND started_at = ?"
        self._run(f"DELETE FROM starts {where}", (row.owner, row.request_id, row.started_at))

    def add_content(self, digest: str, body: bytes) -> None:
        """Keep a body under its digest; the same digest again changes nothing."""
        small = zlib.compress(body) if len(body) > COMPRESS_OVER else body
        deflated = len(small) < len(body)
        self._run(
            "INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", (digest, deflated, small if deflated else body)
        )

    def drop_content(self, digest: str) -> None:
        self._run("DELETE FROM contents WHERE digest = ?", (digest,))

    def set_setting(self, row: SettingRow) -> None:
        self._run("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", astuple(row))

    def index(self, row: SearchRow, outputs: Sequence[str]) -> None:
        """Replace what a session is found by, add the words of its new outputs, and take off its mark."""
        self._run(
            f"DELETE FROM words WHERE rowid IN (SELECT id + {TIPS} FROM search WHERE session_id = ?)",
            (row.session_id,),
        )
        self._run("DELETE FROM search WHERE session_id = ?", (row.session_id,))
        self._run(_insert(SearchRow, "search"), astuple(row))
        number = self._connection.last_insert_rowid()
        self._run(
            "INSERT INTO words (rowid, title, notes, workflows) VALUES (?, ?, ?, ?)",
            (number + TIPS, row.title, row.notes, row.workflows),
        )
        for text in outputs:
            ids = (row.session_id, row.owner)
            self._run("INSERT INTO indexed_outputs (session_id, owner) VALUES (?, ?)", ids)
            self._run(
                "INSERT INTO words (rowid, notes) VALUES (?, ?)",
                (self._connection.last_insert_rowid(), text),
            )
        self._run(
            "UPDATE sessions SET unindexed = 0, recent_at = updated_at"
            " WHERE session_id = ? AND head_index = ?",
            (row.session_id, row.indexed_to),
        )

    def replace_session(self, rows: SessionRows) -> None:
        """Write a session anew from its rows; its handles, starts and traces stay."""
        session_id = rows.session.session_id
        self._forget_words(session_id)
        for table in ("commits", *PROJECTIONS, *FOUND_BY):
            self._run(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
        self._run(ADD_SESSION, astuple(rows.session))
        self.heads.append(Head(session_id, rows.session.head_index, rows.session.head_digest))
        for commit in rows.commits:
            self._run(ADD_COMMIT, astuple(commit))
        for run in rows.runs:
            self._run(ADD_RUN, astuple(run))
        self._add_rows(rows.nodes, rows.blocked, rows.modes)
        for key, value in rows.observations.items():
            self._run("INSERT INTO observations VALUES (?, ?, ?)", (session_id, key, value))

    def _forget_words(self, session_id: str) -> None:
        self._run(
            f"DELETE FROM words WHERE rowid IN (SELECT id + {TIPS} FROM search WHERE session_id = ?1"
            " UNION ALL SELECT id FROM indexed_outputs WHERE session_id = ?1)",
            (session_id,),
        )

    def _run(self, sql: str, bindings: Sequence[Any]) -> None:
        self._connection.execute(sql, bindings)


def _session(*values: Any) -> SessionRow:
    return SessionRow(*(*values[:-1], bool(values[-1])))


def _node(*values: Any) -> NodeRow:
    node = NodeRow(*values)
    return replace(node, state=_inflated(node.state), response=_inflated(node.response))


def _blocked(*values: Any) -> BlockedRow:
    row = BlockedRow(*values)
    return replace(row, response=_inflated(row.response)) if row.response else row


def _content(deflated: int, body: bytes) -> bytes:
    return _inflated(body) if deflated else body


def _summed(body: bytes) -> bytes:
    """Prefix a trace, which no digest covers, with its checksum; a damaged one is left out."""
    return zlib.crc32(body).to_bytes(4, "big") + body


def _deflated(body: bytes) -> bytes:
    """Compress JSON that is long; what is compressed begins with neither bracket nor brace."""
    if len(body) <= COMPRESS_OVER:
        return body
    deflating = zlib.compressobj(1, wbits=WINDOW_BITS, memLevel=WINDOW_BITS - 7)
    return deflating.compress(body) + deflating.flush()


def _inflated(body: bytes) -> bytes:
    """Undo the compression; damaged bytes come back as they are, and fail their digest."""
    if not isinstance(body, bytes) or body[:1] in (b"", b"{", b"["):  # it was short
        return body
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body


def _conditions(wanted: SessionFilter, is_rare: bool) -> tuple[str, list[Any]]:
    observed = "SELECT 1 FROM observations AS o WHERE o.session_id = sessions.session_id AND"
    of_session: list[tuple[str, Any]] = [
        ("owner = ?", wanted.owner),
        ("updated_at >= ?", wanted.active_since),
        ("updated_at < ?", wanted.active_before),
        (f"EXISTS ({observed} key = 'repo_root' AND value = ?)", wanted.repo_root),
    ]
    of_run: list[tuple[str, Any]] = [("workflow_id = ?", wanted.workflow), ("status = ?", wanted.status)]
    where = [test for test, value in of_session if value is not None]
    within = [test for test, value in of_run if value is not None]
    if wanted.awaiting is not None:
        within.insert(0, "awaiting <> ''" if wanted.awaiting else "awaiting = ''")
    if is_rare:
        key, columns = (
            ("(session_id, head_run)", "session_id, run") if wanted.of_head else ("session_id",) * 2
        )
        few = " AND ".join(within)
        where = [test.replace("owner = ?", "+owner = ?") for test in where]  # not by the index of owners
        where.append(f"{key} IN (SELECT {columns} FROM runs WHERE {few})")
    elif within:
        head = ["runs.run = sessions.head_run"] if wanted.of_head else []
        many = " AND ".join(["runs.session_id = sessions.session_id", *head, *within])
        where.append(f"EXISTS (SELECT 1 FROM runs INDEXED BY runs_key WHERE {many})")
    bindings = [value for _, value in (*of_session, *of_run) if value is not None]
    return " AND ".join(where) or "true", bindings


def _query(words: Sequence[str], columns: Sequence[str]) -> str:
    """Write an FTS5 query in which every word is a quoted string and nothing is syntax."""
    cleaned = (word.translate(NOT_IN_STRINGS) for word in words)
    quoted = [f'"{word}"' for word in cleaned if any(map(str.isalnum, word))]
    return f"{{{' '.join(columns)}}} : ({' AND '.join(quoted)})" if quoted else ""
