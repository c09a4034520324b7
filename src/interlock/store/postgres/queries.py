"""The SQL of the shared store: every question and every write that is not a command, in one transaction.

Orders are those of the index that a question needs, so that plans cached on empty tables choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from msgspec import Struct
from msgspec.structs import astuple

from interlock.store.postgres.columns import (
    BLOCKED,
    COMMIT,
    HANDLE,
    LIGHT_BLOCKED,
    LIGHT_NODE,
    MODE,
    NODE,
    RUN,
    SEARCH,
    SESSION,
    SETTING,
    START,
    TOMBSTONE,
    TRACE,
    columns_of,
    insert,
)
from interlock.store.postgres.connections import Connection
from interlock.store.postgres.loading import LOAD_BY_HANDLE, LOAD_BY_ID, loaded_rows
from interlock.store.postgres.tables import FOUND_BY, OF_A_SESSION, PROJECTIONS
from interlock.store.postgres.words import query, vector
from interlock.store.protocol import (
    NOT_ON_PATH,
    BlockedRow,
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

T = TypeVar("T")
R = TypeVar("R", bound=Struct)

LATEST = 2000  # outputs looked at, newest first: common words stay cheap (rule 47)
FEW = 5000  # rows that are looked up by a value; where it is common, they are met soon by going backwards
PAGE = 500  # rows of a long list that are fetched at once
LAST_CHARACTER = chr(0x10FFFF)

ON_PATH = [name for name in NodeRow.__struct_fields__ if name not in NOT_ON_PATH]
PATH = (
    f"WITH RECURSIVE path (far, {', '.join(ON_PATH)}) AS ("
    f" SELECT 1, {', '.join(ON_PATH)} FROM nodes WHERE session_id = $1 AND node = $2::int8"
    f" UNION ALL SELECT far + 1, {', '.join(f'above.{name}' for name in ON_PATH)} FROM path"
    " JOIN nodes AS above ON above.session_id = $1 AND above.node = path.parent WHERE far < $3::int8)"
    f" SELECT {columns_of(NodeRow, *NOT_ON_PATH)} FROM path ORDER BY far"
)
NOTES = (
    f"SELECT {columns_of(NodeRow, 'response', prefix='n.')} FROM unnest($2::int8[]) AS wanted (parent)"
    " CROSS JOIN LATERAL (SELECT * FROM nodes WHERE session_id = $1 AND parent = wanted.parent"
    " ORDER BY attempt) AS n WHERE n.kind = 'note'"
)
MATCHES = (
    "SELECT count(*) FROM (SELECT 1 FROM observations WHERE key = $1 AND value BETWEEN $2 AND $3"
    " LIMIT $4::int8) AS matches"
)
OBSERVED = (
    "SELECT session_id FROM observations JOIN sessions USING (session_id)"
    " WHERE key = $1 AND value BETWEEN $2 AND $3 AND owner = $4"
    " ORDER BY updated_at DESC, session_id LIMIT $5::int8"
)
OBSERVES = (
    "(SELECT o.value FROM observations AS o WHERE o.session_id = sessions.session_id AND o.key = $1)"
    " BETWEEN $2 AND $3 AND owner = $4"
)
OBSERVED_VALUES = (  # steps from value to value: many sessions share one
    "WITH RECURSIVE listed (value) AS (SELECT '' COLLATE \"C\" UNION ALL"
    " SELECT (SELECT o.value FROM observations AS o JOIN sessions AS s ON s.session_id = o.session_id"
    " WHERE o.key = $1 AND s.owner = $2 AND o.value > listed.value ORDER BY o.value LIMIT 1)"
    " FROM listed WHERE listed.value IS NOT NULL)"
    " SELECT value FROM listed WHERE value <> '' LIMIT $3::int8"
)
NEWEST = (  # those not yet indexed, and the newest of the others
    "SELECT {columns} FROM ((SELECT {columns} FROM sessions WHERE unindexed AND {where})"
    " UNION ALL (SELECT {columns} FROM sessions WHERE NOT unindexed AND {where}"
    " ORDER BY recent_at DESC LIMIT {most})) AS listed ORDER BY updated_at DESC, session_id LIMIT {limit}"
)
COMMONLY_OBSERVED = NEWEST.format(
    columns="session_id, updated_at", where=OBSERVES, most="$5::int8", limit="$5::int8"
)
RANKED = (
    "SELECT s.session_id FROM ({sessions}) AS s"
    " LEFT JOIN observations AS seen ON seen.session_id = s.session_id AND seen.key = 'repo_root'"
    " ORDER BY seen.value IS DISTINCT FROM $3::text, s.head_run IS NOT NULL AND NOT EXISTS ("
    "SELECT 1 FROM runs AS r WHERE r.session_id = s.session_id AND r.status = ANY ($4::text[])),"
    " s.updated_at DESC, s.session_id LIMIT $5::int8"
)
RANKED_GIVEN = RANKED.format(
    sessions="SELECT s.session_id, s.updated_at, s.head_run FROM unnest($1::text[]) AS wanted (session_id)"
    " JOIN sessions AS s ON s.session_id = wanted.session_id WHERE s.owner = $2"
)
RANKED_NEWEST = RANKED.format(
    sessions=NEWEST.format(
        columns="session_id, updated_at, head_run", where="owner = $2", most="$1::int8", limit="$1::int8"
    )
)
STRAY = (
    "SELECT DISTINCT session_id FROM commits AS c"
    " WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_id = c.session_id) ORDER BY session_id"
)
MATCHED = (  # without the bound PostgreSQL goes backwards through the whole table for a word that is nowhere
    "WITH few AS MATERIALIZED (SELECT session_id, {keys} FROM {table} WHERE {matches} LIMIT {few})"
    " SELECT session_id FROM (SELECT * FROM few WHERE (SELECT count(*) FROM few) < {few} UNION ALL"
    " (SELECT session_id, {keys} FROM {table} WHERE {matches} AND (SELECT count(*) FROM few) = {few}"
    " ORDER BY {order} LIMIT {limit})) AS matched ORDER BY {order} LIMIT {limit}"
)
SET_SEARCH = (
    insert("search")
    + " ON CONFLICT (session_id) DO UPDATE SET title = excluded.title, notes = excluded.notes,"
    " workflows = excluded.workflows, indexed_to = excluded.indexed_to, words = excluded.words,"
    " indexed_at = clock_timestamp()"
)
SET_INDEXED = (  # never waits for a command: a session that is being written stays marked
    "WITH free AS (SELECT session_id FROM sessions"
    " WHERE session_id = $1 AND head_index = $2::int8 AND unindexed FOR UPDATE SKIP LOCKED)"
    " UPDATE sessions AS s SET unindexed = false, recent_at = s.updated_at FROM free"
    " WHERE s.session_id = free.session_id"
)


class PostgresReader:
    """Answers from one consistent view of the database."""

    locks = ""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs, by a secret handle or a session id; the head where no node is named."""
        sql = LOAD_BY_HANDLE if isinstance(handle, bytes) else LOAD_BY_ID
        return loaded_rows(self._rows(sql, handle, node, attempt), attempt)

    def handles(self, session_id: str) -> list[HandleRow]:
        return self._all(HandleRow, HANDLE + "WHERE session_id = $1 ORDER BY agent", session_id)

    def session(self, session_id: str) -> SessionRow | None:
        return self._one(SessionRow, SESSION + "WHERE session_id = $1", session_id)

    def head_digests(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        sql = "SELECT session_id, head_digest FROM sessions WHERE session_id = ANY ($1::text[])"
        return dict(self._rows(sql, list(session_ids)))

    def sessions(self, wanted: SessionFilter) -> list[SessionRow]:
        """Return an owner's sessions, newest first: those not yet indexed, and the newest of the others."""
        where, values = _conditions(wanted)
        most = wanted.limit + wanted.offset
        first, second, third = (f"${len(values) + offset}::int8" for offset in (1, 2, 3))
        limit = f"{second} OFFSET {third}"
        sql = NEWEST.format(columns=columns_of(SessionRow), where=where, most=first, limit=limit)
        return self._all(SessionRow, sql, *values, most, wanted.limit, wanted.offset)

    def sessions_by_prefix(self, prefix: str, *, owner: str, limit: int) -> list[str]:
        sql = (
            "SELECT session_id FROM sessions WHERE session_id BETWEEN $1 AND $2 AND owner = $3"
            " ORDER BY session_id LIMIT $4::int8"
        )
        return self._all(str, sql, prefix, prefix + LAST_CHARACTER, owner, limit)

    def session_ids(self, after: str, limit: int) -> list[str]:
        """Return the next sessions in the order of their ids."""
        sql = "SELECT session_id FROM sessions WHERE session_id > $1 ORDER BY session_id LIMIT $2::int8"
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
        given = None if among is None else list(among)
        return self._all(str, STALE + self.locks, after, before, limit, waiting, given)

    def stray_sessions(self) -> list[str]:
        """Return the ids that have commits but no session row."""
        return self._all(str, STRAY)

    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]:
        """Order an owner's sessions: same repository, unfinished, newest activity, id."""
        return self._all(str, RANKED_GIVEN, list(session_ids), owner, repo_root, list(unfinished), limit)

    def newest(
        self, *, owner: str, repo_root: str, unfinished: Sequence[str], among: int, limit: int
    ) -> list[str]:
        return self._all(str, RANKED_NEWEST, among, owner, repo_root, list(unfinished), limit)

    def tombstone(self, session_id: str) -> TombstoneRow | None:
        return self._one(TombstoneRow, TOMBSTONE + "WHERE session_id = $1", session_id)

    def start(self, owner: str, request_id: bytes) -> StartRow | None:
        return self._one(StartRow, START + "WHERE owner = $1 AND request_id = $2", owner, request_id)

    def runs(self, session_id: str) -> list[RunRow]:
        return self._all(RunRow, RUN + "WHERE session_id = $1 ORDER BY run", session_id)

    def run(self, session_id: str, run: int) -> RunRow | None:
        return self._one(RunRow, RUN + "WHERE session_id = $1 AND run = $2::int8", session_id, run)

    def runs_by_prefix(self, prefix: str, *, owner: str, limit: int) -> list[RunRow]:
        own = "EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_id = runs.session_id AND s.owner = $3)"
        where = f"WHERE run_id BETWEEN $1 AND $2 AND {own} ORDER BY run_id LIMIT $4::int8"
        return self._all(RunRow, RUN + where, prefix, prefix + LAST_CHARACTER, owner, limit)

    def node(self, session_id: str, node: int) -> NodeRow | None:
        return self._one(NodeRow, NODE + "WHERE session_id = $1 AND node = $2::int8", session_id, node)

    def nodes(self, session_id: str, run: int | None = None) -> Iterator[NodeRow]:
        """Yield all nodes of a session with their responses; read them before the view is closed."""
        where = "WHERE session_id = $1 AND node > $2::int8"
        if run is None:
            return self._paged(NodeRow, NODE + where + " ORDER BY node LIMIT $3::int8", "node", session_id)
        light = LIGHT_NODE + where + " AND run = $4::int8 ORDER BY node LIMIT $3::int8"
        return self._paged(NodeRow, light, "node", session_id, run)

    def children(self, session_id: str, node: int) -> list[NodeRow]:
        where = "WHERE session_id = $1 AND parent = $2::int8 ORDER BY attempt"
        return sorted(self._all(NodeRow, LIGHT_NODE + where, session_id, node), key=_number)

    def path(self, session_id: str, node: int, limit: int) -> list[NodeRow]:
        return self._all(NodeRow, PATH, session_id, node, limit)

    def recorded(self, session_id: str, node: int, attempt: int) -> Recorded | None:
        """Return what an attempt on a node led to: the node it made, or the record that it was blocked."""
        made = self._one(
            NodeRow,
            NODE + "WHERE session_id = $1 AND parent = $2::int8 AND attempt >= $3::int8"
            " ORDER BY attempt LIMIT 1",
            session_id,
            node,
            attempt,
        )
        if made is not None and made.attempt == attempt:
            return made
        where = "WHERE session_id = $1 AND node = $2::int8 AND attempt = $3::int8"
        return self._one(BlockedRow, BLOCKED + where, session_id, node, attempt)

    def blocked(self, session_id: str, nodes: Sequence[int] | None = None) -> Iterator[BlockedRow]:
        """Yield the blocked attempts of a session, or of some nodes without their responses."""
        if nodes is None:
            sql = BLOCKED + "WHERE session_id = $1 ORDER BY event_index, node, attempt"
            return iter(self._all(BlockedRow, sql, session_id))
        where = "WHERE session_id = $1 AND node = ANY ($2::int8[]) ORDER BY event_index, node, attempt"
        return iter(self._all(BlockedRow, LIGHT_BLOCKED + where, session_id, _array(nodes)))

    def notes(self, session_id: str, nodes: Sequence[int]) -> list[NodeRow]:
        """Return the note nodes that hang on some nodes."""
        return sorted(self._all(NodeRow, NOTES, session_id, _array(nodes)), key=_number)

    def modes(self, session_id: str) -> list[ModeRow]:
        return self._all(ModeRow, MODE + "WHERE session_id = $1 ORDER BY event_index, node", session_id)

    def commits(
        self, session_id: str, *, start: int = 0, newest_first: bool = False, limit: int | None = None
    ) -> Iterator[CommitRow]:
        """Yield the commits whose events reach `start` or beyond; read them before the view is closed."""
        if newest_first:
            where = "WHERE session_id = $1 AND last < $2::int8 AND last >= $4::int8"
            sql = COMMIT + where + " ORDER BY last DESC LIMIT $3::int8"
            return self._paged(CommitRow, sql, "last", session_id, start, after=2**62, most=limit)
        where = "WHERE session_id = $1 AND last > $2::int8 ORDER BY last LIMIT $3::int8"
        return self._paged(CommitRow, COMMIT + where, "last", session_id, after=start - 1, most=limit)

    def commit_by_key(self, session_id: str, key: str) -> CommitRow | None:
        where = "WHERE session_id = $1 AND key >= $2 ORDER BY key LIMIT 1"
        found = self._one(CommitRow, COMMIT + where, session_id, key)
        return found if found is not None and found.key == key else None

    def content(self, digest: str) -> bytes | None:
        return self._one(bytes, "SELECT body FROM contents WHERE digest = $1", digest)

    def observations(self, session_id: str) -> Mapping[str, str]:
        sql = "SELECT key, value FROM observations WHERE session_id = $1 ORDER BY key"
        return dict(self._rows(sql, session_id))

    def traces(self, session_id: str, start: int, end: int, limit: int) -> list[TraceRow]:
        """Return the newest traces that were made while an event of the range was the head, oldest first."""
        where = (
            "WHERE session_id = $1 AND after_index BETWEEN $2::int8 AND $3::int8"
            " ORDER BY after_index DESC, at DESC LIMIT $4::int8"
        )
        return self._all(TraceRow, TRACE + where, session_id, start, end, limit)[::-1]

    def unindexed(self, limit: int) -> list[str]:
        sql = "SELECT session_id FROM sessions WHERE unindexed ORDER BY session_id LIMIT $1::int8"
        return self._all(str, sql, limit)

    def search_row(self, session_id: str) -> SearchRow | None:
        return self._one(SearchRow, SEARCH + "WHERE session_id = $1", session_id)

    def search(self, words: Sequence[str], *, owner: str, columns: Sequence[str], limit: int) -> list[str]:
        """Return sessions whose search row has all words, the latest set first."""
        return self._matched("search", ("indexed_at",), query(words, columns), owner, limit)

    def search_outputs(self, words: Sequence[str], *, owner: str, limit: int) -> list[str]:
        """Return sessions that have all words in one output, among the newest outputs that match."""
        keys = ("indexed_at", "number")
        matched = self._matched("indexed_outputs", keys, query(words, ("notes",)), owner, LATEST)
        return list(dict.fromkeys(matched))[:limit]

    def _matched(self, table: str, keys: Sequence[str], words: str, owner: str, limit: int) -> list[str]:
        """Search with the words in the text of the statement: rare and common words need different plans."""
        if not words:
            return []
        literal, own = (psycopg.sql.Literal(text).as_string(self._connection) for text in (words, owner))
        sql = MATCHED.format(
            table=table,
            keys=", ".join(keys),
            matches=f"words @@ {literal}::tsquery AND owner = {own}",
            few=FEW,
            order=", ".join(f"{key} DESC" for key in keys),
            limit=int(limit),
        )
        return [session_id for (session_id,) in self._connection.execute(sql, prepare=False)]

    def observed(self, key: str, value: str, *, owner: str, prefix: bool, limit: int) -> list[str]:
        """Return sessions by an observed value, newest activity first."""
        sought = key, value, value + LAST_CHARACTER if prefix else value
        is_rare = self._one(int, MATCHES, *sought, FEW) != FEW
        rows = self._rows(OBSERVED if is_rare else COMMONLY_OBSERVED, *sought, owner, limit)
        return [session_id for session_id, *_ in rows]

    def observed_values(self, key: str, *, owner: str, limit: int) -> list[str]:
        """Return the different values that were observed in an owner's sessions, in order."""
        return self._all(str, OBSERVED_VALUES, key, owner, limit)

    def setting(self, owner: str, key: str) -> str | None:
        return self._one(str, "SELECT value FROM settings WHERE owner = $1 AND key = $2", owner, key)

    def settings(self) -> list[SettingRow]:
        return self._all(SettingRow, SETTING + "ORDER BY owner, key")

    def starts(self, session_id: str) -> list[StartRow]:
        where = "WHERE session_id = $1 ORDER BY owner, request_id"
        return self._all(StartRow, START + where, session_id)

    def content_digests(self, after: str, limit: int) -> list[str]:
        sql = "SELECT digest FROM contents WHERE digest > $1 ORDER BY digest LIMIT $2::int8"
        return self._all(str, sql, after, limit)

    def tombstones(self, after: str, limit: int) -> list[TombstoneRow]:
        where = "WHERE session_id > $1 ORDER BY session_id LIMIT $2::int8"
        return self._all(TombstoneRow, TOMBSTONE + where, after, limit)

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values, binary=True).fetchall()

    def _all(self, row: Callable[..., T], sql: str, *values: Any) -> list[T]:
        return [row(*columns) for columns in self._rows(sql, *values)]

    def _one(self, row: Callable[..., T], sql: str, *values: Any) -> T | None:
        rows = self._rows(sql, *values)
        return row(*rows[0]) if rows else None

    def _paged(
        self,
        row: type[R],
        sql: str,
        key: str,
        session_id: str,
        *more: int,
        after: int = -1,
        most: int | None = None,
    ) -> Iterator[R]:
        """Fetch a long list page by page: $2 is the key to go on from, $3 the size of the page."""
        left = most
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = self._all(row, sql, session_id, after, size, *more)
            yield from page
            if len(page) < size:
                return
            after = getattr(page[-1], key)
            left = None if left is None else left - len(page)


class PostgresWriter(PostgresReader):
    """The writes of one transaction; what they wrote can be read at once.

    What is read here to be changed is locked, because other processes write at the same time.
    """

    locks = " FOR UPDATE SKIP LOCKED"  # no session becomes active before it is removed

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._heads: dict[str, bytes] = {}
        self._indexed: dict[str, int] = {}

    def session(self, session_id: str) -> SessionRow | None:
        """Read a session; replacing it later in this transaction compares the head that was read here."""
        row = super().session(session_id)
        if row is not None:
            self._heads[session_id] = row.head_digest
        return row

    def search_row(self, session_id: str) -> SearchRow | None:
        """Read what a session is found by; processes take turns, so that no output is indexed twice."""
        self._run("SELECT pg_advisory_xact_lock(hashtextextended($1, 7))", session_id)
        return super().search_row(session_id)

    def remove_session(self, session_id: str, removed_at: int) -> None:
        """Delete all of a session and leave a tombstone."""
        for (owner,) in self._rows("SELECT owner FROM sessions WHERE session_id = $1 FOR UPDATE", session_id):
            self.set_tombstone(TombstoneRow(session_id, owner, removed_at))
        for table in OF_A_SESSION:
            self._run(f"DELETE FROM {table} WHERE session_id = $1", session_id)

    def set_tombstone(self, row: TombstoneRow) -> None:
        again = " ON CONFLICT (session_id) DO UPDATE SET removed_at = excluded.removed_at"
        self._run(insert("tombstones") + again, *astuple(row))

    def set_keep(self, session_id: str, keep: bool) -> None:
        self._run("UPDATE sessions SET keep = $2 WHERE session_id = $1", session_id, keep)

    def set_health(self, session_id: str, health: Health, reason: str) -> None:
        sql = "UPDATE sessions SET health = $2, health_reason = $3 WHERE session_id = $1"
        self._run(sql, session_id, health, reason)

    def add_handle(self, row: HandleRow) -> None:
        self._run(insert("handles"), *astuple(row))

    def add_start(self, row: StartRow) -> None:
        self._run(insert("starts"), *astuple(row))

    def drop_start(self, row: StartRow) -> None:
        where = "WHERE owner = $1 AND request_id = $2 AND started_at = $3::int8"
        self._run(f"DELETE FROM starts {where}", row.owner, row.request_id, row.started_at)

    def add_content(self, digest: str, body: bytes) -> None:
        """Keep a body under its digest; the same digest again changes nothing."""
        self._run("INSERT INTO contents VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING", digest, body)

    def drop_content(self, digest: str) -> None:
        self._run("DELETE FROM contents WHERE digest = $1", digest)

    def set_setting(self, row: SettingRow) -> None:
        again = " ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value"
        self._run(insert("settings") + again, *astuple(row))

    def index(self, row: SearchRow, outputs: Sequence[str]) -> None:
        """Replace what a session is found by, and add the words of its new outputs.

        Its mark is taken off at the end of the transaction, so that no command waits for it meanwhile.
        """
        words = vector({"title": row.title, "notes": row.notes, "workflows": row.workflows})
        stored = (row.title, row.notes, row.workflows)
        texts = (text.replace("\0", "\N{SYMBOL FOR NULL}") for text in stored)  # its text holds no NUL
        self._run(SET_SEARCH, row.session_id, row.owner, *texts, row.indexed_to, words)
        for number, text in enumerate(outputs):
            self._run(ADD_OUTPUT, row.session_id, row.owner, number, vector({"notes": text}))
        self._indexed[row.session_id] = row.indexed_to

    def take_marks_off(self) -> None:
        """Let go the marks of the sessions that were indexed, unless they have moved since."""
        for session_id, indexed_to in sorted(self._indexed.items()):
            self._run(SET_INDEXED, session_id, indexed_to)
        self._indexed.clear()

    def replace_session(self, rows: SessionRows) -> None:
        """Write a session anew from its rows; its handles, starts and traces stay."""
        session_id = rows.session.session_id
        locked = self._rows("SELECT head_digest FROM sessions WHERE session_id = $1 FOR UPDATE", session_id)
        if locked and self._heads.get(session_id, locked[0][0]) != locked[0][0]:
            raise StoreConflict(f"session {session_id} has moved since it was read")
        for table in ("commits", *PROJECTIONS, *FOUND_BY):
            self._run(f"DELETE FROM {table} WHERE session_id = $1", session_id)
        self._indexed.pop(session_id, None)
        self._run(insert("sessions"), *astuple(rows.session))
        observations = [(session_id, key, value) for key, value in rows.observations.items()]
        with self._connection.cursor() as cursor:
            for table, values in (
                ("commits", rows.commits),
                ("runs", rows.runs),
                ("nodes", rows.nodes),
                ("blocked", rows.blocked),
                ("modes", rows.modes),
            ):
                if values:
                    cursor.executemany(insert(table), [astuple(value) for value in values])
            if observations:
                cursor.executemany(insert("observations"), observations)

    def _run(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql, values)


STALE = (
    "SELECT session_id FROM sessions AS s WHERE session_id > $1 AND updated_at < $2::int8 AND NOT keep"
    " AND ($4::bool OR NOT EXISTS"
    " (SELECT 1 FROM runs WHERE runs.session_id = s.session_id AND awaiting <> ''))"
    " AND ($5::text[] IS NULL OR session_id = ANY ($5::text[])) ORDER BY session_id LIMIT $3::int8"
)
ADD_OUTPUT = insert("indexed_outputs")


def _number(node: NodeRow) -> int:
    return node.node


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def _conditions(wanted: SessionFilter) -> tuple[str, list[Any]]:
    observed = "SELECT 1 FROM observations AS o WHERE o.session_id = sessions.session_id AND"
    of_session: list[tuple[str, Any]] = [
        ("owner = {}", wanted.owner),
        ("updated_at >= {}::int8", wanted.active_since),
        ("updated_at < {}::int8", wanted.active_before),
        (f"EXISTS ({observed} key = 'repo_root' AND value = {{}})", wanted.repo_root),
    ]
    of_run: list[tuple[str, Any]] = [("workflow_id = {}", wanted.workflow), ("status = {}", wanted.status)]
    where, within, values = list[str](), list[str](), list[Any]()
    for tests, conditions in ((of_session, where), (of_run, within)):
        for test, value in tests:
            if value is not None:
                values.append(value)
                conditions.append(test.format(f"${len(values)}"))
    if wanted.awaiting is not None:
        within.append("awaiting <> ''" if wanted.awaiting else "awaiting = ''")
    if wanted.status == "blocked":
        within.append("status = 'blocked'")  # in these words, for the index of the few
    if within:
        head = ["runs.run = sessions.head_run"] if wanted.of_head else []
        of_it = " AND ".join(["runs.session_id = sessions.session_id", *head, *within])
        where.append(f"EXISTS (SELECT 1 FROM runs WHERE {of_it})")
    return " AND ".join(where) or "true", values
