"""The SQL that is SQLite's own, on one open connection: what the embedded store asks and writes in its way.

A few rows that no index orders are sorted here: a sorter of SQLite's takes longer than the query itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

import apsw
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from interlock.store.portable_sql import (
    ADD_OBSERVATION,
    LATEST,
    MOVED,
    NEWEST,
    OF_A_RUN,
    ON_PATH,
    SELECT,
    PortableReads,
    PortableWrites,
    columns_of,
    select,
)
from interlock.store.protocol import (
    NOT_ON_PATH,
    BlockedRow,
    Changes,
    CommitRow,
    LoadedRows,
    NodeRow,
    Recorded,
    RunRow,
    SearchRow,
    SessionFilter,
    SessionRow,
    SessionRows,
    StoreConflict,
    TraceRow,
    with_attempts,
)
from interlock.store.sqlite.schema import TIPS
from interlock.store.sqlite.stored_form import (
    DECODERS,
    content_body,
    node_row,
    session_row,
    stored_content,
    stored_row,
    summed,
)
from interlock.store.sqlite.witness import Head

NOT_IN_STRINGS = {ord('"'): " ", 0: " "}
FEW = 1000

EMPTY = "x''"  # what is not read
LIGHT_NODE = select(NodeRow, response=EMPTY)
LIGHT_BLOCKED = select(BlockedRow, response=EMPTY)
MOVE_HEAD = f"UPDATE sessions SET {' = ?, '.join(MOVED)} = ? WHERE session_id = ? AND head_digest = ?"
# A statement of its own, because naming the column writes its indexes even where nothing changes.
MARK_UNINDEXED = "UPDATE sessions SET unindexed = 1 WHERE session_id = ? AND NOT unindexed"
SET_INDEXED = (
    "UPDATE sessions SET unindexed = 0, recent_at = updated_at WHERE session_id = ? AND head_index = ?"
)
SET_RUN = f"UPDATE runs SET {' = ?, '.join(OF_A_RUN)} = ? WHERE session_id = ? AND run = ?"
PATH = (
    f"WITH RECURSIVE path ({', '.join(ON_PATH)}) AS ("
    f" SELECT {', '.join(ON_PATH)} FROM nodes WHERE session_id = ?1 AND node = ?2"
    f" UNION ALL SELECT {', '.join(f'above.{name}' for name in ON_PATH)} FROM path"
    " JOIN nodes AS above ON above.session_id = ?1 AND above.node = path.parent LIMIT ?3)"
    f" SELECT {columns_of(NodeRow, **dict.fromkeys(NOT_ON_PATH, EMPTY))} FROM path"
)
LOAD = (  # all that a command needs of a node on which nothing hangs yet, in one statement
    f"SELECT {columns_of(SessionRow, prefix='s.')}, {{agent}}, {columns_of(CommitRow, prefix='c.')},"
    " (SELECT digest FROM commits WHERE session_id = s.session_id AND last < c.last"
    " ORDER BY last DESC LIMIT 1),"
    f" {columns_of(NodeRow, prefix='n.', response=EMPTY)}, {columns_of(RunRow, prefix='r.')},"
    " (SELECT preferences FROM modes WHERE session_id = s.session_id AND node = n.node"
    " ORDER BY event_index DESC LIMIT 1),"
    " EXISTS (SELECT 1 FROM nodes WHERE session_id = s.session_id AND parent = n.node),"
    " EXISTS (SELECT 1 FROM blocked WHERE session_id = s.session_id AND node = n.node),"
    " EXISTS (SELECT 1 FROM commits WHERE session_id = s.session_id"
    " AND key BETWEEN 'decision:' || n.node || ':' AND 'decision:' || n.node || ';')"
    " FROM {source}"
    " LEFT JOIN commits AS c ON c.session_id = s.session_id"
    " AND c.last = (SELECT max(last) FROM commits WHERE session_id = s.session_id AND last >= 0)"
    " LEFT JOIN nodes AS n ON n.session_id = s.session_id AND n.node = coalesce(?2, s.head_node)"
    " LEFT JOIN runs AS r ON r.session_id = s.session_id AND r.run = n.run{where}"
)
LOAD_BY_ID = LOAD.format(agent="''", source="sessions AS s", where=" WHERE s.session_id = ?1")
LOAD_BY_HANDLE = LOAD.format(
    agent="agent", source="handles JOIN sessions AS s USING (session_id)", where=" WHERE handle = ?1"
)
WINDOW = (
    select(NodeRow, **dict.fromkeys(NOT_ON_PATH, EMPTY)) + " WHERE session_id = ? AND node BETWEEN ? AND ?"
)
OBSERVED = (
    "SELECT session_id FROM observations CROSS JOIN sessions USING (session_id)"
    " WHERE key = ? AND value BETWEEN ? AND ? AND owner = ? ORDER BY updated_at DESC, session_id LIMIT ?"
)
GIVEN = (
    "SELECT {columns} FROM json_each(?) AS given"
    " CROSS JOIN sessions ON sessions.session_id = given.value WHERE owner = ?"
)
RANKED = (
    "SELECT s.session_id FROM ({sessions}) AS s"
    " LEFT JOIN observations AS seen ON seen.session_id = s.session_id AND seen.key = 'repo_root'"
    " ORDER BY seen.value IS NOT ?, head_run IS NOT NULL AND NOT EXISTS ("
    "SELECT 1 FROM runs WHERE runs.session_id = s.session_id AND status IN ({unfinished})),"
    " s.updated_at DESC, s.session_id LIMIT ?"
)


class SqliteReader(PortableReads):
    """Answers from one consistent view of the database."""

    decoders = DECODERS
    few = FEW
    rarely_observed = OBSERVED
    table_of_runs = "runs INDEXED BY runs_key"

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def _rows(self, sql: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        return self._connection.execute(sql, values)

    def _among(self, slot: str) -> str:
        return f"IN (SELECT value FROM json_each({slot}))"

    def _listed(self, texts: Sequence[str]) -> str:
        return encode(list(texts)).decode()

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs, by a secret handle or a session id; the head where no node is named."""
        sql = LOAD_BY_HANDLE if isinstance(handle, bytes) else LOAD_BY_ID
        for columns in self._rows(sql, handle, node):
            return self._loaded(iter(columns), attempt)
        return None

    def _loaded(self, columns: Iterator[Any], attempt: int | None) -> LoadedRows:
        """Put together what one statement has read, and read what hangs on the node, if anything does."""
        session = session_row(*_taken(SessionRow, columns))
        agent, last, previous = next(columns), _taken(CommitRow, columns), next(columns)
        node, run, mode, *hangs_on_it = _taken(NodeRow, columns), _taken(RunRow, columns), *columns
        loaded = LoadedRows(
            session=session,
            agent=agent,
            last=None if last[0] is None else CommitRow(*last),
            previous_digest=previous or bytes(32),
            node=None if node[0] is None else node_row(*node),
            run=None if run[0] is None else RunRow(*run),
            mode=mode,
        )
        if loaded.node is not None and session.head_run not in (None, loaded.node.run):
            loaded = replace(loaded, head_run=self.run(session.session_id, session.head_run))
        return self._with_attempts(loaded, attempt) if any(hangs_on_it) else loaded

    def _with_attempts(self, loaded: LoadedRows, attempt: int | None) -> LoadedRows:
        assert loaded.node is not None
        session_id, number = loaded.session.session_id, loaded.node.node
        children = self.children(session_id, number)
        blocked = list(self.blocked(session_id, (number,)))
        made: list[Recorded] = [*children, *blocked]
        if attempt is not None and any(row.attempt == attempt for row in made):
            return replace(loaded, recorded=self.recorded(session_id, number, attempt))
        keys = f"decision:{number}:", f"decision:{number};"
        decisions = self._where(CommitRow, "session_id = ? AND key BETWEEN ? AND ?", session_id, *keys)
        return with_attempts(loaded, children, blocked, sorted(decisions, key=attrgetter("last")))

    def _narrowed(self, wanted: SessionFilter, of_session: list[str], of_run: list[str]) -> list[str]:
        if not self._is_rare(wanted):
            return super()._narrowed(wanted, of_session, of_run)
        own = [test.replace("owner =", "+owner =") for test in of_session]  # not by the index of owners
        of_head = wanted.of_head
        key, columns = ("(session_id, head_run)", "session_id, run") if of_head else ("session_id",) * 2
        return [*own, f"{key} IN (SELECT {columns} FROM runs WHERE {' AND '.join(of_run)})"]

    def _is_rare(self, wanted: SessionFilter) -> bool:
        """Tell whether few runs can match: they are looked up, where many are met soon by going backwards."""
        if wanted.awaiting:
            return True
        sql = "SELECT count(*) FROM (SELECT 1 FROM runs WHERE status = ? LIMIT ?)"
        return wanted.status is not None and self._all(int, sql, wanted.status, FEW)[0] < FEW

    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]:
        """Order an owner's sessions: same repository, unfinished, newest activity, id."""
        return self._ranked(GIVEN, (self._listed(session_ids), owner), repo_root, unfinished, limit)

    def newest(
        self, *, owner: str, repo_root: str, unfinished: Sequence[str], among: int, limit: int
    ) -> list[str]:
        newest = NEWEST.format(columns="{columns}", where="owner = $1", most="$2", limit="$2")
        return self._ranked(newest, (owner, among), repo_root, unfinished, limit)

    def _ranked(
        self, sessions: str, bindings: Sequence[Any], repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]:
        sql = RANKED.format(
            sessions=sessions.format(columns="session_id, updated_at, head_run"),
            unfinished=", ".join("?" * len(unfinished)),
        )
        return self._all(str, sql, *bindings, repo_root, *unfinished, limit)

    def nodes(self, session_id: str, run: int | None = None) -> Iterator[NodeRow]:
        """Yield all nodes of a session with their responses; read them before the view is closed."""
        if run is None:
            return self._each(NodeRow, SELECT[NodeRow] + " WHERE session_id = ? ORDER BY node", session_id)
        return self._each(
            NodeRow, LIGHT_NODE + " WHERE session_id = ? AND run = ? ORDER BY node", session_id, run
        )

    def children(self, session_id: str, node: int) -> list[NodeRow]:
        rows = self._each(NodeRow, LIGHT_NODE + " WHERE session_id = ? AND parent = ?", session_id, node)
        return sorted(rows, key=attrgetter("node"))

    def path(self, session_id: str, node: int, limit: int) -> list[NodeRow]:
        # A run that did not fork has its path in the nodes just before; finding it by parents takes longer.
        before = self._each(NodeRow, WINDOW, session_id, node - limit + 1, node)
        rows = {row.node: row for row in before}
        path: list[NodeRow] = []
        number: int | None = node
        while number in rows:
            path.append(rows.pop(number))
            number = path[-1].parent
        if number is not None and len(path) < limit:
            path += self._all(NodeRow, PATH, session_id, number, limit - len(path))
        return path

    def recorded(self, session_id: str, node: int, attempt: int) -> Recorded | None:
        """Return what an attempt on a node led to: the node it made, or the record that it was blocked."""
        key = session_id, node, attempt
        made = self._one_where(NodeRow, "session_id = ? AND parent = ? AND attempt = ?", *key)
        return made or self._one_where(BlockedRow, "session_id = ? AND node = ? AND attempt = ?", *key)

    def blocked(self, session_id: str, nodes: Sequence[int] | None = None) -> Iterator[BlockedRow]:
        """Yield the blocked attempts of a session, or of some nodes without their responses."""
        if nodes is None:
            sql = SELECT[BlockedRow] + " WHERE session_id = ? ORDER BY event_index"
            return self._each(BlockedRow, sql, session_id)
        where = f" WHERE session_id = ? AND node IN ({', '.join('?' * len(nodes))})"
        rows = self._each(BlockedRow, LIGHT_BLOCKED + where, session_id, *nodes)
        return iter(sorted(rows, key=attrgetter("event_index")))

    def notes(self, session_id: str, nodes: Sequence[int]) -> list[NodeRow]:
        """Return the note nodes that hang on some nodes."""
        among = ", ".join("?" * len(nodes))
        where = f" WHERE session_id = ? AND parent IN ({among}) AND kind = 'note'"
        return sorted(self._each(NodeRow, LIGHT_NODE + where, session_id, *nodes), key=attrgetter("node"))

    def commits(
        self, session_id: str, *, start: int = 0, newest_first: bool = False, limit: int | None = None
    ) -> Iterator[CommitRow]:
        order = "DESC" if newest_first else "ASC"
        where = f" WHERE session_id = ? AND last >= ? ORDER BY last {order} LIMIT ?"
        most = -1 if limit is None else limit
        return self._each(CommitRow, SELECT[CommitRow] + where, session_id, start, most)

    def commit_by_key(self, session_id: str, key: str) -> CommitRow | None:
        return self._one_where(CommitRow, "session_id = ? AND key = ?", session_id, key)

    def content(self, digest: str) -> bytes | None:
        return self._one(content_body, "SELECT deflated, body FROM contents WHERE digest = ?", digest)

    def traces(self, session_id: str, start: int, end: int, limit: int) -> list[TraceRow]:
        rows = super().traces(session_id, start, end, limit)
        return [replace(row, body=row.body[4:]) for row in rows if summed(row.body[4:]) == row.body]

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


class SqliteWriter(SqliteReader, PortableWrites):
    """The writes of one transaction; what they wrote can be read at once. `heads` are those it moved."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.heads: list[Head] = []

    def append(self, changes: Changes) -> None:
        """Write what a command changed, if the session is still as it was when the command read it."""
        row = changes.session
        if changes.before is None:
            self._add([row])
        else:
            moved = (getattr(row, name) for name in MOVED)
            self._run(MOVE_HEAD, *moved, row.session_id, changes.before)
            if self._connection.changes() != 1:
                raise StoreConflict(f"session {row.session_id} has moved since it was read")
            self._run(MARK_UNINDEXED, row.session_id)
        self.heads.append(Head(row.session_id, row.head_index, row.head_digest))
        self._add([*changes.nodes, *changes.blocked, *changes.modes, changes.commit])
        for run in changes.runs:
            self._run(SET_RUN, *(getattr(run, name) for name in OF_A_RUN), run.session_id, run.run)
            if self._connection.changes() == 0:
                self._add([run])
        self._add([*changes.handles, *changes.starts])
        for message in changes.outbox:
            self.add_message(message)
        for key, value in changes.observations.items():
            self._run(ADD_OBSERVATION, row.session_id, key, value)
        for digest, body in changes.contents.items():
            self.add_content(digest, body)

    def trace(self, rows: Sequence[TraceRow]) -> None:
        self._add(rows)

    def add_content(self, digest: str, body: bytes) -> None:
        """Keep a body under its digest; the same digest again changes nothing."""
        self._run("INSERT OR IGNORE INTO contents VALUES (?, ?, ?)", digest, *stored_content(body))

    def index(self, row: SearchRow, outputs: Sequence[str]) -> None:
        """Replace what a session is found by, add the words of its new outputs, and clear its mark."""
        tip = f"SELECT id + {TIPS} FROM search WHERE session_id = ?"
        self._run(f"DELETE FROM words WHERE rowid IN ({tip})", row.session_id)
        self._run("DELETE FROM search WHERE session_id = ?", row.session_id)
        self._add([row])
        number = self._connection.last_insert_rowid() + TIPS
        add_tip = "INSERT INTO words (rowid, title, notes, workflows) VALUES (?, ?, ?, ?)"
        self._run(add_tip, number, row.title, row.notes, row.workflows)
        for text in outputs:
            add_output = "INSERT INTO indexed_outputs (session_id, owner) VALUES (?, ?)"
            self._run(add_output, row.session_id, row.owner)
            number = self._connection.last_insert_rowid()
            self._run("INSERT INTO words (rowid, notes) VALUES (?, ?)", number, text)
        self._run(SET_INDEXED, row.session_id, row.indexed_to)

    def replace_session(self, rows: SessionRows) -> None:
        """Write a session anew from its rows; its handles, starts and traces stay."""
        super().replace_session(rows)
        row = rows.session
        self.heads.append(Head(row.session_id, row.head_index, row.head_digest))

    def _add(self, rows: Sequence[Struct]) -> None:
        """Insert rows, of whichever tables."""
        super()._add([*map(stored_row, rows)])

    def _delete_rows(self, session_id: str, tables: Sequence[str]) -> None:
        """Delete a session's rows; first its words, which are found by two of them."""
        self._run(
            f"DELETE FROM words WHERE rowid IN (SELECT id + {TIPS} FROM search WHERE session_id = ?1"
            " UNION ALL SELECT id FROM indexed_outputs WHERE session_id = ?1)",
            session_id,
        )
        super()._delete_rows(session_id, tables)

    def _run(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql, values)


def _taken(row: type[Struct], columns: Iterator[Any]) -> list[Any]:
    """Take the columns of a row from those of a statement that reads several."""
    return [*islice(columns, len(row.__struct_fields__))]


def _query(words: Sequence[str], columns: Sequence[str]) -> str:
    """Write an FTS5 query in which every word is a quoted string and nothing is syntax."""
    cleaned = (word.translate(NOT_IN_STRINGS) for word in words)
    quoted = [f'"{word}"' for word in cleaned if any(map(str.isalnum, word))]
    return f"{{{' '.join(columns)}}} : ({' AND '.join(quoted)})" if quoted else ""
