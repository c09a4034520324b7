"""The SQL that SQLite and PostgreSQL read alike, written once. What differs stays with each engine.

Columns carry the names of the row structs' fields, so a row is its struct in order and nothing is mapped.
Parameters are numbered as they first appear: `$2` is PostgreSQL's second parameter, and to SQLite a name,
which it binds second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from interlock.store.protocol import (
    NOT_ON_PATH,
    AskingMark,
    AskingRow,
    BlockedRow,
    CommitRow,
    HandleRow,
    Health,
    ModeRow,
    NodeRow,
    OutboxRow,
    RunRow,
    SearchRow,
    SessionFilter,
    SessionRow,
    SessionRows,
    SettingRow,
    StartRow,
    TombstoneRow,
    TraceRow,
)

T = TypeVar("T")
R = TypeVar("R", bound=Struct)

PROJECTIONS = ("nodes", "blocked", "modes", "runs", "observations", "sessions")
FOUND_BY = ("search", "indexed_outputs")  # derived from the log when the index catches up
OF_A_SESSION = ("commits", *PROJECTIONS, "handles", "starts", "traces", "outbox", *FOUND_BY)

LATEST = 2000  # outputs looked at, newest first: common words stay cheap (rule 47)
LAST_CHARACTER = chr(0x10FFFF)


TABLES: Mapping[type[Struct], str] = {
    SessionRow: "sessions",
    HandleRow: "handles",
    RunRow: "runs",
    NodeRow: "nodes",
    BlockedRow: "blocked",
    ModeRow: "modes",
    CommitRow: "commits",
    StartRow: "starts",
    TraceRow: "traces",
    SearchRow: "search",
    SettingRow: "settings",
    TombstoneRow: "tombstones",
    OutboxRow: "outbox",
}
MOVED = (  # with the head of a session
    *("title", "updated_at", "head_index", "head_digest", "next_node", "head_run", "head_node"),
    *("visit_index", "visit_node"),
)
OF_A_RUN = ("status", "tip", "updated_at", "awaiting", "late_notes", "declined", "polls")  # what changes
ON_PATH = [name for name in NodeRow.__struct_fields__ if name not in NOT_ON_PATH]


def columns_of(row: type[Struct], *, prefix: str = "", **written: str) -> str:
    """List the columns of a row; those that are named are written as given, and not read."""
    return ", ".join(
        f"{written[name]} AS {name}" if name in written else prefix + name for name in row.__struct_fields__
    )


def select(row: type[Struct], **written: str) -> str:
    """Write the beginning of a SELECT of whole rows."""
    return f"SELECT {columns_of(row, **written)} FROM {TABLES[row]}"


def insert(row: type[Struct]) -> str:
    """Write an INSERT of one row."""
    slots = ", ".join(f"${number}" for number, _ in enumerate(row.__struct_fields__, 1))
    return f"INSERT INTO {TABLES[row]} ({columns_of(row)}) VALUES ({slots})"


def or_set(key: str, *changed: str) -> str:
    """Write the end of an INSERT that changes these columns where a row with the key exists."""
    return f" ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in changed)}"


SELECT = {row: select(row) for row in TABLES}
INSERT = {row: insert(row) for row in TABLES}
ADD_MESSAGE = f"{INSERT[OutboxRow]} ON CONFLICT (session_id, message_id, channel) DO NOTHING"
CHANGE_MESSAGE = (
    "UPDATE outbox SET due_at = $1, attempts = $2, state = $3, error = $4 WHERE session_id = $5"
    " AND message_id = $6 AND channel = $7 AND due_at = $8 AND attempts = $9 RETURNING 1"
)
ADD_OBSERVATION = "INSERT INTO observations (session_id, key, value) VALUES ($1, $2, $3)"
SET_SETTING = INSERT[SettingRow] + or_set("owner, key", "value")
SET_TOMBSTONE = INSERT[TombstoneRow] + or_set(
    "session_id", "owner", "removed_at", "head_index", "head_digest"
)

NEWEST = (  # those not yet indexed, and the newest of the others
    "SELECT {columns} FROM (SELECT {columns} FROM sessions WHERE unindexed AND {where} UNION ALL"
    " SELECT * FROM (SELECT {columns} FROM sessions WHERE NOT unindexed AND {where}"
    " ORDER BY recent_at DESC LIMIT {most}) AS older) AS listed"
    " ORDER BY updated_at DESC, session_id LIMIT {limit}"
)
OF_ASKING = (
    " FROM sessions WHERE session_id IN"
    " (SELECT session_id FROM runs WHERE awaiting <> ''"
    " UNION SELECT session_id FROM runs WHERE status = 'blocked')"
    " AND owner = coalesce($1, owner)"
)
ASKING = f"SELECT {columns_of(AskingRow)}{OF_ASKING} ORDER BY updated_at, session_id"
ASKING_MARK = (  # a time is cut, so that many of them still make a number of 64 bits
    "SELECT count(*), CAST(coalesce(sum(head_index), 0) AS BIGINT),"
    f" CAST(coalesce(sum(updated_at % 1000000007), 0) AS BIGINT){OF_ASKING}"
)
OWNER_GIVEN = "coalesce($3, owner)"  # any owner where none is given
MATCHES = (
    "SELECT count(*) FROM (SELECT 1 FROM observations WHERE key = $1 AND value BETWEEN $2 AND $3"
    " LIMIT $4) AS matches"
)
BEHIND_SEARCH = (
    " FROM sessions AS s JOIN search AS w ON w.session_id = s.session_id{joined}"
    " WHERE s.unindexed AND s.owner = $1 AND s.updated_at >= $2"
)
OUTDATED = f"SELECT {columns_of(SearchRow, prefix='w.')}" + BEHIND_SEARCH.format(joined="")
UNINDEXED_COMMITS = (
    f"SELECT {columns_of(CommitRow, prefix='c.')}"
    + BEHIND_SEARCH.format(joined=" JOIN commits AS c ON c.session_id = s.session_id")
    + " AND c.last > w.indexed_to AND c.last > s.head_index - $3 ORDER BY c.session_id, c.last"
)
STALE = (
    "SELECT session_id FROM sessions AS s WHERE session_id > $1 AND updated_at < $2 AND NOT keep"
    " AND (CAST($3 AS BOOLEAN) OR NOT EXISTS"
    " (SELECT 1 FROM runs WHERE runs.session_id = s.session_id AND awaiting <> ''))"
    " AND owner = coalesce($4, owner){among} ORDER BY session_id LIMIT {limit}"
)
OBSERVED_VALUES = (  # steps from value to value: many sessions share one
    "WITH RECURSIVE listed (value) AS (SELECT {no_text} UNION ALL"
    " SELECT (SELECT o.value FROM observations AS o JOIN sessions AS s ON s.session_id = o.session_id"
    " WHERE o.key = $1 AND s.owner = $2 AND o.value > listed.value ORDER BY o.value LIMIT 1)"
    " FROM listed WHERE listed.value IS NOT NULL)"
    " SELECT value FROM listed WHERE value <> '' LIMIT $3"
)
COMMONLY_OBSERVED = NEWEST.format(
    columns="session_id, updated_at",
    where="(SELECT o.value FROM observations AS o WHERE o.session_id = sessions.session_id AND o.key = $1)"
    " BETWEEN $2 AND $3 AND owner = $4",
    most="$5",
    limit="$5",
)


class PortableReads(ABC):
    """The questions that one statement answers on either engine."""

    decoders: Mapping[object, Callable[..., Any]] = {}  # of the rows that an engine stores in another form
    locks = ""  # what a writer adds to keep others from rows that it will remove
    few: int  # rows that are looked up by a value; where it is common, they are met soon by going backwards
    rarely_observed: str  # how they are looked up
    table_of_runs = "runs"  # with the index by which one session's runs are tested
    no_text = "''"

    @abstractmethod
    def _rows(self, sql: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        """Run a statement and return its rows as the driver gives them."""

    @abstractmethod
    def _among(self, slot: str) -> str:
        """Return the test that a text is one of a list, which is bound to a slot."""

    @abstractmethod
    def _listed(self, texts: Sequence[str]) -> object:
        """Return a list of texts as the engine's driver binds it."""

    def _each(self, row: Callable[..., T], sql: str, *values: Any) -> Iterator[T]:
        decoded: Callable[..., T] = self.decoders.get(row, row)
        return (decoded(*columns) for columns in self._rows(sql, *values))

    def _all(self, row: Callable[..., T], sql: str, *values: Any) -> list[T]:
        return list(self._each(row, sql, *values))

    def _one(self, row: Callable[..., T], sql: str, *values: Any) -> T | None:
        for columns in self._rows(sql, *values):
            decoded: Callable[..., T] = self.decoders.get(row, row)
            return decoded(*columns)
        return None

    def _where(self, row: type[R], condition: str, *values: Any) -> list[R]:
        return self._all(row, f"{SELECT[row]} WHERE {condition}", *values)

    def _one_where(self, row: type[R], condition: str, *values: Any) -> R | None:
        return self._one(row, f"{SELECT[row]} WHERE {condition}", *values)

    def session(self, session_id: str) -> SessionRow | None:
        return self._one_where(SessionRow, "session_id = $1", session_id)

    def sessions(self, wanted: SessionFilter) -> list[SessionRow]:
        """Return an owner's sessions, newest first: those not yet indexed, and the newest of the others."""
        of_session, of_run, values = conditions(wanted)
        where = " AND ".join(self._narrowed(wanted, of_session, of_run)) or "true"
        most, limit, offset = (f"${len(values) + number}" for number in (1, 2, 3))
        page = f"{limit} OFFSET {offset}"
        sql = NEWEST.format(columns=columns_of(SessionRow), where=where, most=most, limit=page)
        return self._all(SessionRow, sql, *values, wanted.limit + wanted.offset, wanted.limit, wanted.offset)

    def head_digests(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        sql = f"SELECT session_id, head_digest FROM sessions WHERE session_id {self._among('$1')}"
        return dict(self._rows(sql, self._listed(session_ids)))

    def sessions_among(self, session_ids: Sequence[str]) -> list[SessionRow]:
        among = f"session_id {self._among('$1')}"
        return self._where(SessionRow, among, self._listed(session_ids))

    def stale_sessions(
        self,
        before: int,
        after: str,
        limit: int,
        *,
        waiting: bool = False,
        owner: str | None = None,
        among: Sequence[str] | None = None,
    ) -> list[str]:
        given = [] if among is None else [self._listed(among)]
        chosen = f" AND session_id {self._among('$5')}" if given else ""
        sql = STALE.format(among=chosen, limit=f"${5 + len(given)}") + self.locks
        return self._all(str, sql, after, before, waiting, owner, *given, limit)

    def asking_sessions(self, owner: str | None) -> list[AskingRow]:
        return self._all(AskingRow, ASKING, owner)

    def asking_mark(self, owner: str | None) -> AskingMark:
        return self._all(AskingMark, ASKING_MARK, owner)[0]

    def _narrowed(self, wanted: SessionFilter, of_session: list[str], of_run: list[str]) -> list[str]:
        """Return all conditions on a session; how those on its runs are written decides the engine's plan."""
        if not of_run:
            return of_session
        head = ["runs.run = sessions.head_run"] if wanted.of_head else []
        tests = " AND ".join(["runs.session_id = sessions.session_id", *head, *of_run])
        return [*of_session, f"EXISTS (SELECT 1 FROM {self.table_of_runs} WHERE {tests})"]

    def sessions_by_prefix(self, prefix: str, *, owner: str | None, limit: int) -> list[str]:
        sql = (
            f"SELECT session_id FROM sessions WHERE session_id BETWEEN $1 AND $2 AND owner = {OWNER_GIVEN}"
            " ORDER BY session_id LIMIT $4"
        )
        return self._all(str, sql, prefix, prefix + LAST_CHARACTER, owner, limit)

    def session_ids(self, after: str, limit: int) -> list[str]:
        """Return the next sessions in the order of their ids."""
        sql = "SELECT session_id FROM sessions WHERE session_id > $1 ORDER BY session_id LIMIT $2"
        return self._all(str, sql, after, limit)

    def stray_sessions(self) -> list[str]:
        """Return the ids that have commits but no session row: what a salvage may leave."""
        sql = "SELECT session_id FROM commits EXCEPT SELECT session_id FROM sessions ORDER BY session_id"
        return self._all(str, sql)

    def handles(self, session_id: str) -> list[HandleRow]:
        return self._where(HandleRow, "session_id = $1 ORDER BY agent", session_id)

    def tombstone(self, session_id: str) -> TombstoneRow | None:
        return self._one_where(TombstoneRow, "session_id = $1", session_id)

    def tombstones(self, after: str, limit: int) -> list[TombstoneRow]:
        return self._where(TombstoneRow, "session_id > $1 ORDER BY session_id LIMIT $2", after, limit)

    def start(self, owner: str, request_id: bytes) -> StartRow | None:
        return self._one_where(StartRow, "owner = $1 AND request_id = $2", owner, request_id)

    def starts(self, session_id: str) -> list[StartRow]:
        return self._where(StartRow, "session_id = $1 ORDER BY owner, request_id", session_id)

    def run(self, session_id: str, run: int) -> RunRow | None:
        return self._one_where(RunRow, "session_id = $1 AND run = $2", session_id, run)

    def runs(self, session_id: str) -> list[RunRow]:
        return self._where(RunRow, "session_id = $1 ORDER BY run", session_id)

    def runs_by_prefix(self, prefix: str, *, owner: str | None, limit: int) -> list[RunRow]:
        own = f"SELECT 1 FROM sessions WHERE session_id = runs.session_id AND owner = {OWNER_GIVEN}"
        condition = f"run_id BETWEEN $1 AND $2 AND EXISTS ({own}) ORDER BY run_id LIMIT $4"
        return self._where(RunRow, condition, prefix, prefix + LAST_CHARACTER, owner, limit)

    def node(self, session_id: str, node: int) -> NodeRow | None:
        return self._one_where(NodeRow, "session_id = $1 AND node = $2", session_id, node)

    def line(self, handle: bytes, node: int) -> bytes | None:
        sql = (
            "SELECT line FROM handles JOIN nodes ON nodes.session_id = handles.session_id"
            " WHERE handle = $1 AND node = $2"
        )
        return self._one(bytes, sql, handle, node)

    def keyed_commits(self, session_id: str, prefix: str, limit: int) -> list[CommitRow]:
        """Return the commits whose key begins so, in the order of their keys."""
        condition = "session_id = $1 AND key BETWEEN $2 AND $3 ORDER BY key LIMIT $4"
        return self._where(CommitRow, condition, session_id, prefix, prefix + LAST_CHARACTER, limit)

    def modes(self, session_id: str) -> list[ModeRow]:
        return self._where(ModeRow, "session_id = $1 ORDER BY event_index, node", session_id)

    def observations(self, session_id: str) -> Mapping[str, str]:
        sql = "SELECT key, value FROM observations WHERE session_id = $1 ORDER BY key"
        return dict(self._rows(sql, session_id))

    def traces(self, session_id: str, start: int, end: int, limit: int) -> list[TraceRow]:
        """Return the newest traces that were made while an event of the range was the head, oldest first."""
        newest = (
            "session_id = $1 AND after_index BETWEEN $2 AND $3 ORDER BY after_index DESC, at DESC LIMIT $4"
        )
        return self._where(TraceRow, newest, session_id, start, end, limit)[::-1]

    def unindexed(self, limit: int, *, after: str = "") -> list[str]:
        """Return the next sessions whose words are not indexed, in the order of their ids."""
        sql = (
            "SELECT session_id FROM sessions WHERE unindexed AND session_id > $1 ORDER BY session_id LIMIT $2"
        )
        return self._all(str, sql, after, limit)

    def unindexed_of(self, owner: str, limit: int) -> list[SessionRow]:
        """Return an owner's sessions whose words are not indexed, newest activity first."""
        newest = "unindexed AND owner = $1 ORDER BY updated_at DESC, session_id LIMIT $2"
        return self._where(SessionRow, newest, owner, limit)

    def outdated_rows(self, owner: str, since: int) -> list[SearchRow]:
        """Return the search rows of an owner's unindexed sessions that were active since then."""
        return self._all(SearchRow, OUTDATED, owner, since)

    def unindexed_commits(self, owner: str, since: int, newest: int) -> list[CommitRow]:
        """Return the commits behind those rows, in order; of each session those of its `newest` events."""
        return self._all(CommitRow, UNINDEXED_COMMITS, owner, since, newest)

    def search_row(self, session_id: str) -> SearchRow | None:
        return self._one_where(SearchRow, "session_id = $1", session_id)

    def observed(self, key: str, value: str, *, owner: str, prefix: bool, limit: int) -> list[str]:
        sought = key, value, value + LAST_CHARACTER if prefix else value
        is_rare = self._all(int, MATCHES, *sought, self.few)[0] < self.few
        rows = self._rows(self.rarely_observed if is_rare else COMMONLY_OBSERVED, *sought, owner, limit)
        return [session_id for session_id, *_ in rows]

    def observed_values(self, key: str, *, owner: str, limit: int) -> list[str]:
        return self._all(str, OBSERVED_VALUES.format(no_text=self.no_text), key, owner, limit)

    def content_digests(self, after: str, limit: int) -> list[str]:
        sql = "SELECT digest FROM contents WHERE digest > $1 ORDER BY digest LIMIT $2"
        return self._all(str, sql, after, limit)

    def setting(self, owner: str, key: str) -> str | None:
        return self._one(str, "SELECT value FROM settings WHERE owner = $1 AND key = $2", owner, key)

    def settings(self) -> list[SettingRow]:
        return self._all(SettingRow, f"{SELECT[SettingRow]} ORDER BY owner, key")

    def due_messages(self, now: int, limit: int) -> list[OutboxRow]:
        """Return the messages that are due, the longest overdue first."""
        due = "state = 'waiting' AND due_at <= $1 ORDER BY due_at, message_id, channel LIMIT $2"
        return self._where(OutboxRow, due, now, limit)

    def messages(self, limit: int) -> list[OutboxRow]:
        """Return the messages that are not sent, dead ones first, then by the time of their next try."""
        sql = f"{SELECT[OutboxRow]} ORDER BY state, due_at, message_id, channel LIMIT $1"
        return self._all(OutboxRow, sql, limit)

    def messages_of(self, session_id: str) -> list[OutboxRow]:
        return self._where(OutboxRow, "session_id = $1 ORDER BY message_id, channel", session_id)


class PortableWrites(PortableReads):
    """The writes that are the same statements on either engine."""

    locks_row = ""  # what is added to keep others from a row that is removed or replaced

    @abstractmethod
    def _run(self, sql: str, *values: Any) -> None:
        """Run a statement that returns nothing."""

    def _add(self, rows: Sequence[Struct]) -> None:
        """Insert rows of one table."""
        for row in rows:
            self._run(INSERT[type(row)], *astuple(row))

    def remove_session(self, session_id: str, removed_at: int) -> None:
        """Delete all of a session and leave a tombstone."""
        sql = f"SELECT owner, head_index, head_digest FROM sessions WHERE session_id = $1{self.locks_row}"
        for owner, index, digest in self._rows(sql, session_id):
            self.set_tombstone(TombstoneRow(session_id, owner, removed_at, index, digest))
        self._delete_rows(session_id, OF_A_SESSION)

    def replace_session(self, rows: SessionRows) -> None:
        """Write a session anew from its rows; its handles, starts and traces stay."""
        session_id = rows.session.session_id
        self._delete_rows(session_id, ("commits", *PROJECTIONS, *FOUND_BY))
        for kind in ([rows.session], rows.commits, rows.runs, rows.nodes, rows.blocked, rows.modes):
            self._add(kind)
        for key, value in rows.observations.items():
            self._run(ADD_OBSERVATION, session_id, key, value)

    def set_keep(self, session_id: str, keep: bool) -> None:
        self._run("UPDATE sessions SET keep = $1 WHERE session_id = $2", keep, session_id)

    def set_health(self, session_id: str, health: Health, reason: str) -> None:
        sql = "UPDATE sessions SET health = $1, health_reason = $2 WHERE session_id = $3"
        self._run(sql, health, reason, session_id)

    def set_tombstone(self, row: TombstoneRow) -> None:
        self._run(SET_TOMBSTONE, *astuple(row))

    def set_setting(self, row: SettingRow) -> None:
        self._run(SET_SETTING, *astuple(row))

    def add_handle(self, row: HandleRow) -> None:
        self._add([row])

    def add_start(self, row: StartRow) -> None:
        self._add([row])

    def drop_start(self, row: StartRow) -> None:
        where = " WHERE owner = $1 AND request_id = $2 AND started_at = $3"
        self._run(f"DELETE FROM starts{where}", row.owner, row.request_id, row.started_at)

    def add_message(self, row: OutboxRow) -> None:
        self._run(ADD_MESSAGE, *astuple(row))

    def change_message(self, before: OutboxRow, after: OutboxRow) -> bool:
        """Set when a message is tried next and what came of it; False if somebody else has meanwhile."""
        changed = (after.due_at, after.attempts, after.state, after.error)
        key = (before.session_id, before.message_id, before.channel, before.due_at, before.attempts)
        return bool(self._all(int, CHANGE_MESSAGE, *changed, *key))

    def drop_message(self, row: OutboxRow) -> None:
        where = " WHERE session_id = $1 AND message_id = $2 AND channel = $3"
        self._run(f"DELETE FROM outbox{where}", row.session_id, row.message_id, row.channel)

    def drop_content(self, digest: str) -> None:
        self._run("DELETE FROM contents WHERE digest = $1", digest)

    def _delete_rows(self, session_id: str, tables: Sequence[str]) -> None:
        for table in tables:
            self._run(f"DELETE FROM {table} WHERE session_id = $1", session_id)


def conditions(wanted: SessionFilter) -> tuple[list[str], list[str], list[Any]]:
    """Return what a session must pass, what one of its runs must pass, and the values for both."""
    observed = "SELECT 1 FROM observations AS o WHERE o.session_id = sessions.session_id AND"
    of_session: Mapping[str, object] = {
        "owner = {}": wanted.owner,
        "updated_at >= {}": wanted.active_since,
        "updated_at < {}": wanted.active_before,
        f"EXISTS ({observed} key = 'repo_root' AND value = {{}})": wanted.repo_root,
    }
    of_run: Mapping[str, object] = {"workflow_id = {}": wanted.workflow, "status = {}": wanted.status}
    values = [value for value in (*of_session.values(), *of_run.values()) if value is not None]
    slots = (f"${number}" for number in range(1, len(values) + 1))
    where, within = (
        [test.format(next(slots)) for test, value in tests.items() if value is not None]
        for tests in (of_session, of_run)
    )
    if wanted.awaiting is not None:
        within.append("awaiting <> ''" if wanted.awaiting else "awaiting = ''")
    return where, within, values
