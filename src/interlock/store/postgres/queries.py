"""The SQL that is PostgreSQL's own, in one transaction: what the shared store asks and writes in its way.

Orders are those of the index that a question needs, so that plans cached on empty tables choose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import psycopg
from msgspec import Struct
from msgspec.structs import astuple

from interlock.store.portable_sql import (
    INSERT,
    LATEST,
    NEWEST,
    ON_PATH,
    SELECT,
    PortableReads,
    PortableWrites,
    columns_of,
    or_set,
    select,
)
from interlock.store.postgres.connections import PostgresConnection
from interlock.store.postgres.loading import LOAD_BY_HANDLE, LOAD_BY_ID, loaded_rows
from interlock.store.postgres.words import query, vector
from interlock.store.protocol import (
    NOT_ON_PATH,
    BlockedRow,
    CommitRow,
    LoadedRows,
    NodeRow,
    Recorded,
    SearchRow,
    SessionFilter,
    SessionRow,
    SessionRows,
    StoreConflict,
)

R = TypeVar("R", bound=Struct)

FEW = 5000
PROCESSES = 4  # that index at the same time find work for each
PAGE = 500  # rows of a long list that are fetched at once

EMPTY = "''::bytea"  # what is not read
LIGHT_NODE = select(NodeRow, response=EMPTY)
LIGHT_BLOCKED = select(BlockedRow, response=EMPTY)
PATH = (
    f"WITH RECURSIVE path (far, {', '.join(ON_PATH)}) AS ("
    f" SELECT 1, {', '.join(ON_PATH)} FROM nodes WHERE session_id = $1 AND node = $2::int8"
    f" UNION ALL SELECT far + 1, {', '.join(f'above.{name}' for name in ON_PATH)} FROM path"
    " JOIN nodes AS above ON above.session_id = $1 AND above.node = path.parent WHERE far < $3::int8)"
    f" SELECT {columns_of(NodeRow, **dict.fromkeys(NOT_ON_PATH, EMPTY))} FROM path ORDER BY far"
)
NOTES = (
    f"SELECT {columns_of(NodeRow, prefix='n.', response=EMPTY)} FROM unnest($2::int8[]) AS wanted (parent)"
    " CROSS JOIN LATERAL (SELECT * FROM nodes WHERE session_id = $1 AND parent = wanted.parent"
    " ORDER BY attempt) AS n WHERE n.kind = 'note'"
)
OBSERVED = (
    "SELECT session_id FROM observations JOIN sessions USING (session_id)"
    " WHERE key = $1 AND value BETWEEN $2 AND $3 AND owner = $4"
    " ORDER BY updated_at DESC, session_id LIMIT $5::int8"
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
MATCHED = (  # planned for FEW: for less, PostgreSQL would go backwards through all for a word that is nowhere
    "SELECT session_id FROM (SELECT session_id, {keys} FROM {table} WHERE words @@ {query}::tsquery"
    " AND owner = {owner} ORDER BY {order} LIMIT {few}) AS latest ORDER BY {order} LIMIT {limit}"
)
SET_SEARCH = (
    "INSERT INTO search (session_id, owner, title, notes, workflows, indexed_to, words)"
    f" VALUES ($1, $2, $3, $4, $5, $6, $7)"
    f"{or_set('session_id', 'title', 'notes', 'workflows', 'indexed_to', 'words')}"
    ", indexed_at = clock_timestamp()"
)
ADD_OUTPUT = "INSERT INTO indexed_outputs (session_id, owner, number, words) VALUES ($1, $2, $3, $4)"
CLAIM_UNINDEXED = (  # the inner limit bounds what is locked, whatever the plan
    "SELECT session_id FROM (SELECT session_id FROM sessions WHERE unindexed AND session_id > $1"
    " ORDER BY session_id LIMIT $2::int8) AS waiting"
    " WHERE pg_try_advisory_xact_lock(hashtextextended(session_id, 7)) LIMIT $3::int8"
)
SET_INDEXED = (  # never waits for a command: a session that is being written stays marked
    "WITH free AS (SELECT session_id FROM sessions"
    " WHERE session_id = $1 AND head_index = $2::int8 AND unindexed FOR UPDATE SKIP LOCKED)"
    " UPDATE sessions AS s SET unindexed = false, recent_at = s.updated_at FROM free"
    " WHERE s.session_id = free.session_id"
)


class PostgresReader(PortableReads):
    """Answers from one consistent view of the database."""

    few = FEW
    rarely_observed = OBSERVED
    no_text = "'' COLLATE \"C\""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values, binary=True).fetchall()

    def _among(self, slot: str) -> str:
        return f"= ANY ({slot}::text[])"

    def _listed(self, texts: Sequence[str]) -> list[str]:
        return list(texts)

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs, by a secret handle or a session id; the head where no node is named."""
        sql = LOAD_BY_HANDLE if isinstance(handle, bytes) else LOAD_BY_ID
        return loaded_rows(self._rows(sql, handle, node, attempt), attempt)

    def _narrowed(self, wanted: SessionFilter, of_session: list[str], of_run: list[str]) -> list[str]:
        if wanted.status == "blocked":
            of_run = [*of_run, "status = 'blocked'"]  # in these words, for the index of the few
        return super()._narrowed(wanted, of_session, of_run)

    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]:
        """Order an owner's sessions: same repository, unfinished, newest activity, id."""
        return self._all(str, RANKED_GIVEN, list(session_ids), owner, repo_root, list(unfinished), limit)

    def newest(
        self, *, owner: str, repo_root: str, unfinished: Sequence[str], among: int, limit: int
    ) -> list[str]:
        return self._all(str, RANKED_NEWEST, among, owner, repo_root, list(unfinished), limit)

    def nodes(self, session_id: str, run: int | None = None) -> Iterator[NodeRow]:
        """Yield all nodes of a session with their responses; read them before the view is closed."""
        where = " WHERE session_id = $1 AND node > $2::int8"
        if run is None:
            whole = SELECT[NodeRow] + where + " ORDER BY node LIMIT $3::int8"
            return self._paged(NodeRow, whole, "node", session_id)
        light = LIGHT_NODE + where + " AND run = $4::int8 ORDER BY node LIMIT $3::int8"
        return self._paged(NodeRow, light, "node", session_id, run)

    def children(self, session_id: str, node: int) -> list[NodeRow]:
        where = " WHERE session_id = $1 AND parent = $2::int8 ORDER BY attempt"
        return sorted(self._all(NodeRow, LIGHT_NODE + where, session_id, node), key=_number)

    def path(self, session_id: str, node: int, limit: int) -> list[NodeRow]:
        return self._all(NodeRow, PATH, session_id, node, limit)

    def recorded(self, session_id: str, node: int, attempt: int) -> Recorded | None:
        """Return what an attempt on a node led to: the node it made, or the record that it was blocked."""
        from_it = "session_id = $1 AND parent = $2::int8 AND attempt >= $3::int8 ORDER BY attempt LIMIT 1"
        made = self._one_where(NodeRow, from_it, session_id, node, attempt)
        if made is not None and made.attempt == attempt:
            return made
        at_it = "session_id = $1 AND node = $2::int8 AND attempt = $3::int8"
        return self._one_where(BlockedRow, at_it, session_id, node, attempt)

    def blocked(self, session_id: str, nodes: Sequence[int] | None = None) -> Iterator[BlockedRow]:
        """Yield the blocked attempts of a session, or of some nodes without their responses."""
        if nodes is None:
            of_session = "session_id = $1 ORDER BY event_index, node, attempt"
            return iter(self._where(BlockedRow, of_session, session_id))
        where = " WHERE session_id = $1 AND node = ANY ($2::int8[]) ORDER BY event_index, node, attempt"
        return iter(self._all(BlockedRow, LIGHT_BLOCKED + where, session_id, _array(nodes)))

    def notes(self, session_id: str, nodes: Sequence[int]) -> list[NodeRow]:
        """Return the note nodes that hang on some nodes."""
        return sorted(self._all(NodeRow, NOTES, session_id, _array(nodes)), key=_number)

    def commits(
        self, session_id: str, *, start: int = 0, newest_first: bool = False, limit: int | None = None
    ) -> Iterator[CommitRow]:
        """Yield the commits whose events reach `start` or beyond; read them before the view is closed."""
        if newest_first:
            where = " WHERE session_id = $1 AND last < $2::int8 AND last >= $4::int8"
            sql = SELECT[CommitRow] + where + " ORDER BY last DESC LIMIT $3::int8"
            return self._paged(CommitRow, sql, "last", session_id, start, after=2**62, most=limit)
        where = " WHERE session_id = $1 AND last > $2::int8 ORDER BY last LIMIT $3::int8"
        sql = SELECT[CommitRow] + where
        return self._paged(CommitRow, sql, "last", session_id, after=start - 1, most=limit)

    def commit_by_key(self, session_id: str, key: str) -> CommitRow | None:
        found = self._one_where(
            CommitRow, "session_id = $1 AND key >= $2 ORDER BY key LIMIT 1", session_id, key
        )
        return found if found is not None and found.key == key else None

    def content(self, digest: str) -> bytes | None:
        return self._one(bytes, "SELECT body FROM contents WHERE digest = $1", digest)

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
            query=literal,
            owner=own,
            order=", ".join(f"{key} DESC" for key in keys),
            few=FEW,
            limit=int(limit),
        )
        return [session_id for (session_id,) in self._connection.execute(sql, prepare=False)]

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


class PostgresWriter(PostgresReader, PortableWrites):
    """The writes of one transaction; what they wrote can be read at once.

    What is read here to be changed is locked, because other processes write at the same time.
    """

    locks = " FOR UPDATE SKIP LOCKED"  # no session becomes active before it is removed
    locks_row = " FOR UPDATE"

    def __init__(self, connection: PostgresConnection) -> None:
        super().__init__(connection)
        self._heads: dict[str, bytes | None] = {}
        self._indexed: dict[str, int] = {}

    def session(self, session_id: str) -> SessionRow | None:
        """Read a session; replacing it later in this transaction compares the head that was read here."""
        row = super().session(session_id)
        self._heads[session_id] = row.head_digest if row is not None else None
        return row

    def setting(self, owner: str, key: str) -> str | None:
        """Read a setting; processes take turns, so that none undoes what another has changed."""
        self._run(
            "SELECT pg_advisory_xact_lock(hashtextextended($1::text || ':' || $2::text, 8))", owner, key
        )
        return super().setting(owner, key)

    def unindexed(self, limit: int, *, after: str = "") -> list[str]:
        """Return the next sessions whose words are not indexed, and keep others from indexing them.

        Commands on them do not wait: what is locked is their id, and not their row.
        """
        return self._all(str, CLAIM_UNINDEXED, after, limit * PROCESSES, limit)

    def add_content(self, digest: str, body: bytes) -> None:
        """Keep a body under its digest; the same digest again changes nothing."""
        self._run("INSERT INTO contents VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING", digest, body)

    def index(self, row: SearchRow, outputs: Sequence[str]) -> None:
        """Replace what a session is found by, and add the words of its new outputs.

        Its mark is cleared at the end of the transaction, so that no command waits for it meanwhile.
        """
        words = vector({"title": row.title, "notes": row.notes, "workflows": row.workflows})
        stored = (row.title, row.notes, row.workflows)
        texts = (text.replace("\0", "\N{SYMBOL FOR NULL}") for text in stored)  # its text holds no NUL
        self._run(SET_SEARCH, row.session_id, row.owner, *texts, row.indexed_to, words)
        for number, text in enumerate(outputs):
            self._run(ADD_OUTPUT, row.session_id, row.owner, number, vector({"notes": text}))
        self._indexed[row.session_id] = row.indexed_to

    def clear_unindexed(self) -> None:
        """Clear the mark of each session that was indexed, unless it has moved since."""
        for session_id, indexed_to in sorted(self._indexed.items()):
            self._run(SET_INDEXED, session_id, indexed_to)
        self._indexed.clear()

    def replace_session(self, rows: SessionRows) -> None:
        """Write a session anew from its rows, unless it has moved since it was read here."""
        session_id = rows.session.session_id
        locked = self._rows("SELECT head_digest FROM sessions WHERE session_id = $1 FOR UPDATE", session_id)
        head = locked[0][0] if locked else None
        if self._heads.get(session_id, head) != head:
            raise StoreConflict(f"session {session_id} has moved since it was read")
        self._indexed.pop(session_id, None)
        super().replace_session(rows)

    def _add(self, rows: Sequence[Struct]) -> None:
        """Insert rows of one kind in one round trip."""
        if rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(INSERT[type(rows[0])], map(astuple, rows))

    def _run(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql, values)


def _number(node: NodeRow) -> int:
    return node.node


def _array(numbers: Sequence[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"
