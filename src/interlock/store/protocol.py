"""What the ledger needs of a store: rows in, rows out, one transaction per command.

Nothing here knows what a workflow is. Every key begins with the session id, nothing depends on a global
sequence, and all that is not an event can be rebuilt from events, so that any SQL database can serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from msgspec import Struct

Health = Literal["healthy", "corrupt_tail", "corrupt_head", "unknown_version"]
NodeKind = Literal["step", "checkpoint"]
OutputKind = Literal["notes", "artifact"]


class StoreBusy(Exception):
    """Another process held the store for longer than a writer waits."""


class StoreConflict(Exception):
    """A key is already taken, or an event was to be changed: the backstop behind the ledger's own checks."""


class StoreCorrupt(Exception):
    """The database itself is damaged (a page, not a row)."""


class StoreTooNew(Exception):
    """The store was written by a newer version of Interlock."""


class StoreUnavailable(Exception):
    """The store cannot be used where it lies: no room, no permission, a network file system."""


class SessionRow(Struct, frozen=True):
    """A session and its head. `head_run` and `head_node` are where work goes on by default."""

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
    parent_session: str | None = None
    health: Health = "healthy"
    health_reason: str = ""
    keep: bool = False


class HandleRow(Struct, frozen=True):
    """A secret handle and what it leads to: a session, or one agent's place in it."""

    handle: bytes
    session_id: str
    agent: str = ""


class RunRow(Struct, frozen=True):
    """One execution of one workflow. `status`, `tip`, `awaiting` follow the preferred tip."""

    session_id: str
    run: int
    run_id: str
    workflow_id: str
    workflow_hash: str
    status: str
    tip: int
    started_at: int
    updated_at: int
    awaiting: str = ""


class NodeRow(Struct, frozen=True):
    """A durable snapshot. `entries` counts the recap entries on the path from the root."""

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


class AttemptRow(Struct, frozen=True):
    """The recorded event behind a replay. A blocked attempt has a `successor` and keeps its variables."""

    session_id: str
    node: int
    attempt: int
    outcome: str
    request_digest: bytes
    response: bytes
    response_digest: bytes
    child: int | None = None
    successor: int | None = None
    kept: bytes = b""


class OutputRow(Struct, frozen=True):
    """Notes or an artifact, kept with the node that the attempt was made on.

    `child` is the node that the attempt led to, or None for a blocked attempt or a checkpoint.
    """

    session_id: str
    node: int
    attempt: int
    ordinal: int
    kind: OutputKind
    step: str
    body: str
    child: int | None = None
    recorded_at: int = 0


class PathRow(Struct, frozen=True):
    """A node on the way up to the root, with one of the notes made there, if any.

    `towards` is the node below it on that way; `child` is where the note's own attempt led.
    """

    node: int
    parent: int | None
    entries: int
    towards: int | None
    attempt: int | None
    child: int | None
    step: str | None
    body: str | None
    recorded_at: int | None


class EventRow(Struct, frozen=True):
    """One event. `digest` is SHA-256 over the previous digest and the stored bytes of this row's fields."""

    session_id: str
    index: int
    kind: str
    payload: bytes
    digest: bytes
    recorded_at: int
    run: int | None = None
    node: int | None = None
    dedupe_key: str | None = None


class SearchRow(Struct, frozen=True):
    """What a session is found by: its title and goal, the notes of its tips, its workflows and tags."""

    session_id: str
    title: str
    notes: str
    workflows: str


class SessionFilter(Struct, frozen=True):
    """Which sessions to list, newest activity first."""

    owner: str | None = None
    status: str | None = None
    workflow: str | None = None
    awaiting: bool = False
    updated_before: int | None = None
    limit: int = 50
    offset: int = 0


class Reader(Protocol):
    """Everything that can be asked. Rows come back as stored; checking digests is the ledger's work."""

    def handle(self, handle: bytes) -> HandleRow | None: ...
    def agent_handle(self, session_id: str, agent: str) -> HandleRow | None: ...
    def handles(self, session_id: str) -> list[HandleRow]: ...
    def session(self, session_id: str) -> SessionRow | None: ...
    def sessions(self, wanted: SessionFilter) -> list[SessionRow]: ...
    def sessions_by_prefix(self, prefix: str, limit: int) -> list[str]: ...
    def session_ids(self, after: str, limit: int) -> list[str]: ...
    def stale_sessions(self, before: int, after: str, limit: int) -> list[str]: ...
    def stray_sessions(self) -> list[str]: ...
    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, finished: Sequence[str], limit: int
    ) -> list[str]: ...
    def count_sessions(self) -> int: ...
    def removed_at(self, session_id: str) -> int | None: ...
    def runs(self, session_id: str) -> list[RunRow]: ...
    def run(self, session_id: str, run: int) -> RunRow | None: ...
    def run_by_id(self, run_id: str) -> RunRow | None: ...
    def node(self, session_id: str, node: int) -> NodeRow | None: ...
    def nodes(self, session_id: str, run: int | None = None) -> list[NodeRow]: ...
    def children(self, session_id: str, node: int) -> list[NodeRow]: ...
    def attempt(self, session_id: str, node: int, attempt: int) -> AttemptRow | None: ...
    def attempts(self, session_id: str, node: int) -> list[AttemptRow]: ...
    def each_attempt(self, session_id: str) -> Iterator[AttemptRow]: ...
    def each_output(self, session_id: str) -> Iterator[OutputRow]: ...
    def attempt_before(self, session_id: str, node: int, successor: int) -> AttemptRow | None: ...
    def outputs(self, session_id: str, node: int) -> list[OutputRow]: ...
    def path(self, session_id: str, node: int, towards: int | None, limit: int) -> list[PathRow]: ...
    def last_event(self, session_id: str) -> EventRow | None: ...
    def events(
        self,
        session_id: str,
        *,
        start: int = 0,
        kinds: Sequence[str] = (),
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[EventRow]: ...
    def event_by_key(self, session_id: str, dedupe_key: str) -> EventRow | None: ...
    def content(self, digest: str) -> bytes | None: ...
    def observations(self, session_id: str) -> Mapping[str, str]: ...
    def search_row(self, session_id: str) -> SearchRow | None: ...
    def search(self, words: Sequence[str], *, columns: Sequence[str], limit: int) -> list[str]: ...
    def search_outputs(self, words: Sequence[str], *, limit: int) -> list[str]: ...
    def observed(self, key: str, value: str, *, prefix: bool, limit: int) -> list[str]: ...
    def setting(self, key: str) -> str | None: ...


class Writer(Reader, Protocol):
    """The one transaction of a command: all of it, or nothing."""

    def add_session(self, row: SessionRow) -> None: ...
    def set_session(self, row: SessionRow) -> None: ...
    def remove_session(self, session_id: str, removed_at: int) -> None: ...
    def add_handle(self, row: HandleRow) -> None: ...
    def add_run(self, row: RunRow) -> None: ...
    def set_run(self, row: RunRow) -> None: ...
    def add_node(self, row: NodeRow) -> None: ...
    def set_node(self, row: NodeRow) -> None: ...
    def add_attempt(self, row: AttemptRow) -> None: ...
    def add_outputs(self, rows: Sequence[OutputRow]) -> None: ...
    def add_events(self, rows: Sequence[EventRow]) -> None: ...
    def cut_events(self, session_id: str, from_index: int) -> None: ...
    def clear_projections(self, session_id: str) -> None: ...
    def drop_content(self, digest: str) -> None: ...
    def add_content(self, digest: str, body: bytes) -> None: ...
    def set_observation(self, session_id: str, key: str, value: str) -> None: ...
    def set_search(self, row: SearchRow) -> None: ...
    def set_setting(self, key: str, value: str) -> None: ...


class Store(Protocol):
    """A place to keep events. `writing` waits a bounded time for its turn, then raises StoreBusy."""

    def reading(self) -> AbstractContextManager[Reader]: ...
    def writing(self) -> AbstractContextManager[Writer]: ...
    def close(self) -> None: ...
