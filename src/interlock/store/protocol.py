"""What the ledger needs of a store: one `load` before a command, one `append` after it, and queries.

Nothing here knows what a workflow is, and nothing is SQLite's: every key begins with the session id, rows
are ordered by declared columns, and no sequence or lock is shared by sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

Health = Literal["healthy", "corrupt_tail", "corrupt_head", "unknown_version"]
NodeKind = Literal["step", "note"]


class StoreBusy(Exception):
    """Another process held the store for longer than a writer waits."""


class StoreConflict(Exception):
    """The session has moved since it was read, or a key is taken: read again and decide again."""


class StoreCorrupt(Exception):
    """The database itself is damaged (a page, not a row)."""


class StoreTooNew(Exception):
    """The store was written by a newer version of Interlock."""


class StoreUnavailable(Exception):
    """The store cannot be used where it is: no room, no permission, a network file system."""


class StoreFull(StoreUnavailable):
    """There is no room to write; reading goes on, and the same call succeeds once there is."""


class StoreAway(StoreUnavailable):
    """The database server cannot be reached now; the same call may succeed later."""


def other_schema(name: str, version: int, known: int) -> StoreTooNew | StoreUnavailable:
    """Return the refusal of a database whose tables are those of another version of Interlock."""
    differs = f"{name} has schema {version}, and this Interlock knows {known}"
    if version > known:
        return StoreTooNew(f"{differs}: update Interlock")
    return StoreUnavailable(f"{differs}: restart this server, which upgrades the database")


class SessionRow(Struct, frozen=True):
    """A session and its head.

    `head_run` and `head_node` are where work continues by default: the tip of the run that was advanced
    last. `visit_index` and `visit_node` name the event and the node with which the current visit began.
    """

    session_id: str
    owner: str
    title: str
    created_at: int
    updated_at: int
    head_index: int
    head_digest: bytes
    next_node: int
    head_run: int | None = None
    head_node: int | None = None
    visit_index: int = 0
    visit_node: int | None = None
    parent_session: str | None = None
    health: Health = "healthy"
    health_reason: str = ""
    keep: bool = False


class HandleRow(Struct, frozen=True):
    """A secret handle and what it leads to: a session, or one agent's position in it."""

    handle: bytes
    session_id: str
    agent: str = ""


class RunRow(Struct, frozen=True):
    """One execution of one workflow; written when it starts, changes its status or stops being the head.

    While the run is the session's head, its tip is `head_node` and `tip` may lag behind. `late_notes` counts
    the note nodes that were saved after a step had left their node. `declined` are the questions of all its
    branches that the user declined (rule 27), `polls` what approvers have answered so far, as JSON; empty if
    there are none.
    """

    session_id: str
    run: int
    run_id: str
    workflow_id: str
    workflow_hash: str
    surface: str
    status: str
    tip: int
    started_at: int
    updated_at: int
    awaiting: str = ""
    late_notes: int = 0
    declined: str = ""
    polls: str = ""


class NodeRow(Struct, frozen=True):
    """A durable snapshot, with the attempt on its parent that made it, its outputs and its response.

    `entries` counts the recap entries on the path from the root, as it was when the node was made. A node
    without an `attempt` was made by the server: a root, kept variables, a child's news, the user's decision.
    `line` begins the digest of the commit that made it.
    """

    session_id: str
    node: int
    run: int
    parent: int | None
    kind: NodeKind
    depth: int
    entries: int
    state: bytes
    state_digest: bytes
    event_index: int
    created_at: int
    attempt: int | None = None
    request_digest: bytes = b""
    response_digest: bytes = b""
    response: bytes = b""
    outputs: bytes = b""
    line: bytes = b""


# Nobody who walks along a path reads these; the state alone may be 256 kB.
NOT_ON_PATH = ("state", "state_digest", "request_digest", "response_digest", "response")


class BlockedRow(Struct, frozen=True):
    """An attempt that made no node. `kept` holds all context that was kept at the node so far (rule 10)."""

    session_id: str
    node: int
    attempt: int
    successor: int
    event_index: int
    recorded_at: int
    request_digest: bytes
    response_digest: bytes
    response: bytes = b""
    kept: bytes = b""
    outputs: bytes = b""


WHOLE_SESSION = -1


class ModeRow(Struct, frozen=True):
    """A mode that the user attached to a node; the newest one holds from there on (rule 29).

    One at WHOLE_SESSION holds for the runs that the session begins later.
    """

    session_id: str
    node: int
    event_index: int
    preferences: bytes


class CommitRow(Struct, frozen=True):
    """The events of one command, `first` to `last`. The digest covers the commit before it and its bytes."""

    session_id: str
    first: int
    last: int
    recorded_at: int
    digest: bytes
    body: bytes
    key: str | None = None


class StartRow(Struct, frozen=True):
    """A start that can be repeated: who asked with which request id, and the answer (rule 13a).

    The digest covers everything else in the row.
    """

    owner: str
    request_id: bytes
    request_digest: bytes
    session_id: str
    handle: bytes
    response: bytes
    started_at: int
    digest: bytes = b""


class TraceRow(Struct, frozen=True):
    """A reading call: outside the chain, placed after the event that was the head when it was made."""

    session_id: str
    after_index: int
    at: int
    body: bytes


class TombstoneRow(Struct, frozen=True):
    """What is left of a session that was removed: with the head of its log, a kept copy can be checked.

    Without `head_digest` it was removed by a version that did not keep the head.
    """

    session_id: str
    owner: str
    removed_at: int
    head_index: int = -1
    head_digest: bytes = b""


class SettingRow(Struct, frozen=True):
    """What one owner has chosen."""

    owner: str
    key: str
    value: str


class OutboxRow(Struct, frozen=True):
    """A message to one channel that is yet to be sent.

    `due_at` is when it is tried next. Who tries it moves that time on before, so that nobody else does
    meanwhile, and somebody does if the process dies. A dead message is tried no more.
    """

    session_id: str
    message_id: str
    channel: str
    kind: str
    body: bytes
    due_at: int
    created_at: int
    attempts: int = 0
    state: Literal["waiting", "dead"] = "waiting"
    error: str = ""


class SearchRow(Struct, frozen=True):
    """What a session is found by, and the event up to which its words are indexed."""

    session_id: str
    owner: str
    title: str
    notes: str
    workflows: str
    indexed_to: int = -1


class Changes(Struct, frozen=True, kw_only=True):
    """Everything that one command writes to one session: all of it is stored, or nothing.

    `before` is the head digest that the command was decided on; None begins a session.
    """

    session: SessionRow
    before: bytes | None
    commit: CommitRow
    runs: Sequence[RunRow] = ()
    nodes: Sequence[NodeRow] = ()
    blocked: Sequence[BlockedRow] = ()
    modes: Sequence[ModeRow] = ()
    handles: Sequence[HandleRow] = ()
    starts: Sequence[StartRow] = ()
    observations: Mapping[str, str] = {}
    contents: Mapping[str, bytes] = {}
    outbox: Sequence[OutboxRow] = ()


class LoadedRows(Struct, frozen=True, kw_only=True):
    """Everything that a command on one node needs, read at once.

    `recorded` is the attempt that was asked for, if it was made before; then a store need not read more than
    the session and the node. `blocked` and `notes` come without their responses. `branches` counts the steps
    that already leave from the node; `carried_to` is the newest of them that no attempt made. `decisions` are
    the commits of the user's decisions at this node.
    """

    session: SessionRow
    agent: str
    last: CommitRow | None = None
    previous_digest: bytes = b""
    head_run: RunRow | None = None
    node: NodeRow | None = None
    run: RunRow | None = None
    recorded: NodeRow | BlockedRow | None = None
    blocked: Sequence[BlockedRow] = ()
    notes: Sequence[NodeRow] = ()
    branches: int = 0
    carried_to: int | None = None
    mode: bytes | None = None
    decisions: Sequence[CommitRow] = ()


def with_attempts(
    loaded: LoadedRows,
    children: Sequence[NodeRow],
    blocked: Sequence[BlockedRow],
    decisions: Sequence[CommitRow],
) -> LoadedRows:
    """Add what was done at a node: the nodes that hang on it, blocked attempts, and the user's decisions."""
    steps = [child for child in children if child.kind == "step"]
    beside = [child.node for child in steps if child.attempt is None]
    return replace(
        loaded,
        blocked=blocked,
        notes=[child for child in children if child.kind == "note"],
        branches=len(steps),
        carried_to=beside[-1] if beside else None,
        decisions=decisions,
    )


class SessionFilter(Struct, frozen=True):
    """Which sessions to list, newest activity first.

    `status`, `workflow` and `awaiting` must hold for one and the same run: any of the session, or with
    `of_head` the one that work continues with. `active_since` and `active_before` bound the last activity.
    """

    owner: str | None = None
    status: str | None = None
    workflow: str | None = None
    awaiting: bool | None = None
    limit: int = 50
    offset: int = 0
    of_head: bool = False
    repo_root: str | None = None
    active_since: int | None = None
    active_before: int | None = None


class AskingRow(Struct, frozen=True):
    """A session with a run that may ask its user something, as it is now."""

    session_id: str
    owner: str
    head_digest: bytes
    updated_at: int


class AskingMark(Struct, frozen=True):
    """What differs as soon as a session begins or ceases to ask, or moves while it asks.

    It counts the sessions and their events, and adds up the times of their last ones.
    """

    sessions: int
    events: int
    times: int


Recorded: TypeAlias = NodeRow | BlockedRow


class Reader(Protocol):
    """Everything that can be asked. Rows come back as stored; checking digests is the ledger's work.

    A question that finds sessions names their owner, or None for all owners where an operator asks. One that
    names a session does not: the ledger gets ids from the former only, and refuses a handle that leads to
    another owner's session.
    """

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs, by a secret handle or a session id; the head where no node is named."""

    def handles(self, session_id: str) -> list[HandleRow]: ...
    def session(self, session_id: str) -> SessionRow | None: ...
    def sessions(self, wanted: SessionFilter) -> list[SessionRow]: ...
    def asking_sessions(self, owner: str | None) -> list[AskingRow]:
        """Return all sessions with a run that waits for the user or is blocked, oldest activity first."""

    def asking_mark(self, owner: str | None) -> AskingMark:
        """Return a mark of the sessions that `asking_sessions` lists, without reading each of them."""

    def head_digests(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the head digests of those of the sessions that exist, in one read."""

    def sessions_among(self, session_ids: Sequence[str]) -> list[SessionRow]:
        """Return those of the sessions that exist, in one read."""

    def sessions_by_prefix(self, prefix: str, *, owner: str | None, limit: int) -> list[str]: ...
    def session_ids(self, after: str, limit: int) -> list[str]: ...
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
        """Return the next sessions, of all or `among` some, without a keep mark and without activity since.

        Those that wait for the user are left out, unless they are asked for.
        """

    def stray_sessions(self) -> list[str]: ...
    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]: ...
    def newest(
        self, *, owner: str, repo_root: str, unfinished: Sequence[str], among: int, limit: int
    ) -> list[str]:
        """Rank an owner's sessions as `ranked` does, `among` those with the newest activity."""

    def tombstone(self, session_id: str) -> TombstoneRow | None: ...
    def start(self, owner: str, request_id: bytes) -> StartRow | None: ...
    def runs(self, session_id: str) -> list[RunRow]: ...
    def run(self, session_id: str, run: int) -> RunRow | None: ...
    def runs_by_prefix(self, prefix: str, *, owner: str | None, limit: int) -> list[RunRow]: ...
    def node(self, session_id: str, node: int) -> NodeRow | None: ...
    def line(self, handle: bytes, node: int) -> bytes | None:
        """Return the time line of a node of the session that a handle leads to."""

    def nodes(self, session_id: str, run: int | None = None) -> Iterator[NodeRow]: ...
    def children(self, session_id: str, node: int) -> list[NodeRow]: ...
    def path(self, session_id: str, node: int, limit: int) -> list[NodeRow]:
        """Walk from a node towards the root, at most `limit` nodes; what is NOT_ON_PATH stays empty."""

    def recorded(self, session_id: str, node: int, attempt: int) -> Recorded | None: ...
    def blocked(self, session_id: str, nodes: Sequence[int] | None = None) -> Iterator[BlockedRow]: ...
    def notes(self, session_id: str, nodes: Sequence[int]) -> list[NodeRow]: ...
    def modes(self, session_id: str) -> list[ModeRow]: ...
    def commits(
        self, session_id: str, *, start: int = 0, newest_first: bool = False, limit: int | None = None
    ) -> Iterator[CommitRow]:
        """Yield the commits whose events reach `start` or beyond; read them before the view is closed."""

    def commit_by_key(self, session_id: str, key: str) -> CommitRow | None: ...
    def keyed_commits(self, session_id: str, prefix: str, limit: int) -> list[CommitRow]: ...
    def content(self, digest: str) -> bytes | None: ...
    def observations(self, session_id: str) -> Mapping[str, str]: ...
    def traces(self, session_id: str, start: int, end: int, limit: int) -> list[TraceRow]: ...
    def unindexed(self, limit: int, *, after: str = "") -> list[str]:
        """Return the next sessions whose words are not indexed; a writer leaves out what others index."""

    def unindexed_of(self, owner: str, limit: int) -> list[SessionRow]: ...
    def outdated_rows(self, owner: str, since: int) -> list[SearchRow]:
        """Return the search rows of an owner's unindexed sessions that were active since then."""

    def unindexed_commits(self, owner: str, since: int, newest: int) -> list[CommitRow]:
        """Return the commits behind those rows, in order; of each session those of its `newest` events."""

    def search_row(self, session_id: str) -> SearchRow | None: ...
    def search(
        self, words: Sequence[str], *, owner: str, columns: Sequence[str], limit: int
    ) -> list[str]: ...
    def search_outputs(self, words: Sequence[str], *, owner: str, limit: int) -> list[str]: ...
    def observed(self, key: str, value: str, *, owner: str, prefix: bool, limit: int) -> list[str]: ...
    def observed_values(self, key: str, *, owner: str, limit: int) -> list[str]: ...
    def setting(self, owner: str, key: str) -> str | None: ...
    def due_messages(self, now: int, limit: int) -> list[OutboxRow]:
        """Return the messages that are due, the longest overdue first."""

    def messages(self, limit: int) -> list[OutboxRow]:
        """Return the messages that are not sent, dead ones first, then by the time of their next try."""

    # What a copy of the whole store needs besides.
    def settings(self) -> list[SettingRow]: ...
    def starts(self, session_id: str) -> list[StartRow]: ...
    def messages_of(self, session_id: str) -> list[OutboxRow]: ...
    def content_digests(self, after: str, limit: int) -> list[str]: ...
    def tombstones(self, after: str, limit: int) -> list[TombstoneRow]: ...


class Writer(Reader, Protocol):
    """Writes that are not a command: settings, upkeep, repair, import."""

    def remove_session(self, session_id: str, removed_at: int) -> None: ...
    def set_keep(self, session_id: str, keep: bool) -> None: ...
    def set_health(self, session_id: str, health: Health, reason: str) -> None: ...
    def add_handle(self, row: HandleRow) -> None: ...
    def add_content(self, digest: str, body: bytes) -> None: ...
    def drop_content(self, digest: str) -> None: ...
    def set_setting(self, row: SettingRow) -> None: ...
    def index(self, row: SearchRow, outputs: Sequence[str]) -> None: ...
    def replace_session(self, rows: SessionRows) -> None: ...
    def add_start(self, row: StartRow) -> None: ...
    def drop_start(self, row: StartRow) -> None: ...
    def set_tombstone(self, row: TombstoneRow) -> None: ...
    def add_message(self, row: OutboxRow) -> None: ...
    def change_message(self, before: OutboxRow, after: OutboxRow) -> bool:
        """Set when a message is tried next and what came of it; False if somebody else has meanwhile."""

    def drop_message(self, row: OutboxRow) -> None: ...


class SessionRows(Struct, frozen=True, kw_only=True):
    """All rows of one session, as a repair or an import writes them. Handles are kept beside."""

    session: SessionRow
    commits: Sequence[CommitRow]
    runs: Sequence[RunRow]
    nodes: Sequence[NodeRow]
    blocked: Sequence[BlockedRow]
    modes: Sequence[ModeRow]
    observations: Mapping[str, str]


class Store(Protocol):
    """Where sessions are kept. A writer waits a bounded time for its turn, then raises StoreBusy."""

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs."""

    def append(self, *changes: Changes) -> None:
        """Store what a command changed, durably, or raise StoreConflict and store nothing."""

    def trace(self, rows: Sequence[TraceRow]) -> None:
        """Keep traces of reading calls; a crash may lose the newest."""

    def reading(self) -> AbstractContextManager[Reader]: ...
    def writing(self) -> AbstractContextManager[Writer]: ...
    def probe(self) -> None:
        """Make sure that the store can be read and written now, or raise what keeps it from it."""

    def make_room(self) -> None:
        """Free the space that is held for removals on a full disk."""

    def give_back(self) -> None:
        """Return the space of what was removed to the system, as far as the store can."""

    def close(self) -> None: ...
