"""A store in memory: the smallest thing that fulfils the protocol, to check that the protocol says it all.

Stores that are opened on the same folder share their rows. A transaction works on a copy.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from msgspec.structs import replace

from interlock.store.protocol import (
    NOT_ON_PATH,
    AskingMark,
    AskingRow,
    BlockedRow,
    Changes,
    CommitRow,
    HandleRow,
    Health,
    LoadedRows,
    ModeRow,
    NodeRow,
    OutboxRow,
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

K = TypeVar("K")
R = TypeVar("R")

RUN_CHANGES = ("status", "tip", "updated_at", "awaiting", "late_notes", "declined", "polls")


class Tables:
    """All rows. Keys begin with the session id; dictionaries keep the order of insertion."""

    def __init__(self) -> None:
        self.sessions: dict[str, SessionRow] = {}
        self.unindexed: dict[str, bool] = {}
        self.tombstones: dict[str, TombstoneRow] = {}
        self.handles: dict[tuple[str, str], HandleRow] = {}
        self.starts: dict[tuple[str, bytes], StartRow] = {}
        self.runs: dict[tuple[str, int], RunRow] = {}
        self.nodes: dict[tuple[str, int], NodeRow] = {}
        self.blocked: dict[tuple[str, int, int], BlockedRow] = {}
        self.modes: dict[tuple[str, int, int], ModeRow] = {}
        self.commits: dict[tuple[str, int], CommitRow] = {}
        self.contents: dict[str, bytes] = {}
        self.observations: dict[tuple[str, str], str] = {}
        self.settings: dict[tuple[str, str], str] = {}
        self.traces: dict[int, TraceRow] = {}
        self.search: dict[str, SearchRow] = {}
        self.outputs: dict[int, tuple[str, str]] = {}
        self.outbox: dict[tuple[str, str, str], OutboxRow] = {}

    def copy(self) -> Tables:
        copied = Tables()
        for name, table in vars(self).items():
            setattr(copied, name, dict(table))
        return copied


class MemoryReader:
    """Answers from one state of the tables."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        session_id, agent = handle, ""
        if isinstance(handle, bytes):
            known = next((row for row in self.tables.handles.values() if row.handle == handle), None)
            if known is None:
                return None
            session_id, agent = known.session_id, known.agent
        session = self.session(str(session_id))
        if session is None:
            return None
        newest = list(self.commits(session.session_id, newest_first=True, limit=2))
        loaded = LoadedRows(
            session=session,
            agent=agent,
            last=newest[0] if newest else None,
            previous_digest=newest[1].digest if len(newest) > 1 else bytes(32),
        )
        number = session.head_node if node is None else node
        row = self.node(session.session_id, number) if number is not None else None
        return loaded if row is None else self._with_node(loaded, row, attempt)

    def _with_node(self, loaded: LoadedRows, node: NodeRow, attempt: int | None) -> LoadedRows:
        session_id, head = loaded.session.session_id, loaded.session.head_run
        children = self.children(session_id, node.node)
        steps = [child for child in children if child.kind == "step"]
        beside = [child.node for child in steps if child.attempt is None]
        modes = [mode.preferences for mode in self.modes(session_id) if mode.node == node.node]
        key = f"decision:{node.node}:"
        return replace(
            loaded,
            head_run=self.run(session_id, head) if head is not None and head != node.run else None,
            node=replace(node, response=b""),
            run=self.run(session_id, node.run),
            recorded=None if attempt is None else self.recorded(session_id, node.node, attempt),
            blocked=list(self.blocked(session_id, (node.node,))),
            notes=[child for child in children if child.kind == "note"],
            branches=len(steps),
            carried_to=beside[-1] if beside else None,
            mode=modes[-1] if modes else None,
            decisions=[row for row in self.commits(session_id) if (row.key or "").startswith(key)],
        )

    def handles(self, session_id: str) -> list[HandleRow]:
        rows = [row for row in self.tables.handles.values() if row.session_id == session_id]
        return sorted(rows, key=lambda row: row.agent)

    def session(self, session_id: str) -> SessionRow | None:
        return self.tables.sessions.get(session_id)

    def sessions_among(self, session_ids: Sequence[str]) -> list[SessionRow]:
        return [row for name in session_ids if (row := self.session(name)) is not None]

    def head_digests(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        known = self.tables.sessions
        return {name: known[name].head_digest for name in session_ids if name in known}

    def sessions(self, wanted: SessionFilter) -> list[SessionRow]:
        rows = [row for row in self.tables.sessions.values() if self._fits(row, wanted)]
        rows.sort(key=lambda row: (-row.updated_at, row.session_id))
        return rows[wanted.offset : wanted.offset + wanted.limit]

    def asking_sessions(self, owner: str | None) -> list[AskingRow]:
        asking = {
            run.session_id for run in self.tables.runs.values() if run.awaiting or run.status == "blocked"
        }
        rows = [
            AskingRow(row.session_id, row.owner, row.head_digest, row.updated_at)
            for row in self.tables.sessions.values()
            if row.session_id in asking and owner in (None, row.owner)
        ]
        return sorted(rows, key=lambda row: (row.updated_at, row.session_id))

    def asking_mark(self, owner: str | None) -> AskingMark:
        rows = [self.tables.sessions[row.session_id] for row in self.asking_sessions(owner)]
        times = sum(row.updated_at % 1000000007 for row in rows)
        return AskingMark(len(rows), sum(row.head_index for row in rows), times)

    def _fits(self, row: SessionRow, wanted: SessionFilter) -> bool:
        observed = self.tables.observations.get((row.session_id, "repo_root"))
        if (
            wanted.owner not in (None, row.owner)
            or wanted.repo_root not in (None, observed)
            or (wanted.active_since is not None and row.updated_at < wanted.active_since)
            or (wanted.active_before is not None and row.updated_at >= wanted.active_before)
        ):
            return False
        if wanted.status is None and wanted.workflow is None and wanted.awaiting is None:
            return True
        return any(
            wanted.status in (None, run.status)
            and wanted.workflow in (None, run.workflow_id)
            and wanted.awaiting in (None, bool(run.awaiting))
            and (run.run == row.head_run or not wanted.of_head)
            for run in self.runs(row.session_id)
        )

    def sessions_by_prefix(self, prefix: str, *, owner: str | None, limit: int) -> list[str]:
        own = [name for name, row in self.tables.sessions.items() if owner in (None, row.owner)]
        return sorted(name for name in own if name.startswith(prefix))[:limit]

    def session_ids(self, after: str, limit: int) -> list[str]:
        return sorted(name for name in self.tables.sessions if name > after)[:limit]

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
        rows = [row for row in self.tables.sessions.values() if among is None or row.session_id in among]
        rows = [row for row in rows if owner in (None, row.owner)]
        held = {row.session_id for row in self.tables.runs.values() if row.awaiting and not waiting}
        stale = [row.session_id for row in rows if row.updated_at < before and not row.keep]
        stale = [session_id for session_id in stale if session_id not in held]
        return sorted(name for name in stale if name > after)[:limit]

    def stray_sessions(self) -> list[str]:
        return sorted({name for name, _ in self.tables.commits} - set(self.tables.sessions))

    def ranked(
        self, session_ids: Sequence[str], *, owner: str, repo_root: str, unfinished: Sequence[str], limit: int
    ) -> list[str]:
        rows = [self.tables.sessions[name] for name in session_ids if name in self.tables.sessions]
        ranks = []
        for row in rows:
            statuses = [run.status for run in self.runs(row.session_id)]
            if row.owner == owner:
                elsewhere = self.tables.observations.get((row.session_id, "repo_root")) != repo_root
                done = bool(statuses) and not any(status in unfinished for status in statuses)
                ranks.append((elsewhere, done, -row.updated_at, row.session_id))
        return [rank[-1] for rank in sorted(ranks)][:limit]

    def newest(
        self, *, owner: str, repo_root: str, unfinished: Sequence[str], among: int, limit: int
    ) -> list[str]:
        newest = [row.session_id for row in self.sessions(SessionFilter(owner=owner, limit=among))]
        return self.ranked(newest, owner=owner, repo_root=repo_root, unfinished=unfinished, limit=limit)

    def tombstone(self, session_id: str) -> TombstoneRow | None:
        return self.tables.tombstones.get(session_id)

    def start(self, owner: str, request_id: bytes) -> StartRow | None:
        return self.tables.starts.get((owner, request_id))

    def runs(self, session_id: str) -> list[RunRow]:
        return sorted(_of(self.tables.runs, session_id), key=lambda row: row.run)

    def run(self, session_id: str, run: int) -> RunRow | None:
        return self.tables.runs.get((session_id, run))

    def runs_by_prefix(self, prefix: str, *, owner: str | None, limit: int) -> list[RunRow]:
        rows = [row for row in self.tables.runs.values() if self._is_own(row.session_id, owner)]
        begun = [row for row in rows if row.run_id.startswith(prefix)]
        return sorted(begun, key=lambda row: row.run_id)[:limit]

    def _is_own(self, session_id: str, owner: str | None) -> bool:
        session = self.tables.sessions.get(session_id)
        return session is not None and owner in (None, session.owner)

    def node(self, session_id: str, node: int) -> NodeRow | None:
        return self.tables.nodes.get((session_id, node))

    def line(self, handle: bytes, node: int) -> bytes | None:
        known = next((row for row in self.tables.handles.values() if row.handle == handle), None)
        row = self.node(known.session_id, node) if known is not None else None
        return None if row is None else row.line

    def nodes(self, session_id: str, run: int | None = None) -> Iterator[NodeRow]:
        rows = sorted(_of(self.tables.nodes, session_id), key=lambda row: row.node)
        if run is None:
            return iter(rows)
        return (replace(row, response=b"") for row in rows if row.run == run)

    def children(self, session_id: str, node: int) -> list[NodeRow]:
        return [replace(row, response=b"") for row in self.nodes(session_id) if row.parent == node]

    def path(self, session_id: str, node: int, limit: int) -> list[NodeRow]:
        rows: list[NodeRow] = []
        number: int | None = node
        while number is not None and len(rows) < limit and (row := self.node(session_id, number)):
            rows.append(replace(row, **dict.fromkeys(NOT_ON_PATH, b"")))
            number = row.parent
        return rows

    def recorded(self, session_id: str, node: int, attempt: int) -> Recorded | None:
        rows = self.nodes(session_id)
        made = next((row for row in rows if (row.parent, row.attempt) == (node, attempt)), None)
        return made or self.tables.blocked.get((session_id, node, attempt))

    def blocked(self, session_id: str, nodes: Sequence[int] | None = None) -> Iterator[BlockedRow]:
        rows = sorted(_of(self.tables.blocked, session_id), key=lambda row: row.event_index)
        if nodes is None:
            return iter(rows)
        return (replace(row, response=b"") for row in rows if row.node in nodes)

    def notes(self, session_id: str, nodes: Sequence[int]) -> list[NodeRow]:
        rows = [row for row in self.nodes(session_id) if row.parent in nodes and row.kind == "note"]
        return [replace(row, response=b"") for row in rows]

    def modes(self, session_id: str) -> list[ModeRow]:
        return sorted(_of(self.tables.modes, session_id), key=lambda row: (row.event_index, row.node))

    def commits(
        self, session_id: str, *, start: int = 0, newest_first: bool = False, limit: int | None = None
    ) -> Iterator[CommitRow]:
        rows = [row for row in _of(self.tables.commits, session_id) if row.last >= start]
        rows.sort(key=lambda row: row.last, reverse=newest_first)
        return iter(rows[:limit])

    def commit_by_key(self, session_id: str, key: str) -> CommitRow | None:
        return next((row for row in self.commits(session_id) if row.key == key), None)

    def keyed_commits(self, session_id: str, prefix: str, limit: int) -> list[CommitRow]:
        keyed = [
            row for row in self.commits(session_id) if row.key is not None and row.key.startswith(prefix)
        ]
        return sorted(keyed, key=lambda row: row.key or "")[:limit]

    def content(self, digest: str) -> bytes | None:
        return self.tables.contents.get(digest)

    def observations(self, session_id: str) -> Mapping[str, str]:
        return {key: value for (name, key), value in self.tables.observations.items() if name == session_id}

    def traces(self, session_id: str, start: int, end: int, limit: int) -> list[TraceRow]:
        rows = [row for row in self.tables.traces.values() if row.session_id == session_id]
        rows = sorted(rows, key=lambda row: (row.after_index, row.at))
        return [row for row in rows if start <= row.after_index <= end][-limit:]

    def unindexed(self, limit: int, *, after: str = "") -> list[str]:
        return sorted(name for name in self.tables.unindexed if name > after)[:limit]

    def unindexed_of(self, owner: str, limit: int) -> list[SessionRow]:
        rows = [self.tables.sessions[name] for name in self.tables.unindexed if self._is_own(name, owner)]
        return sorted(rows, key=lambda row: (-row.updated_at, row.session_id))[:limit]

    def outdated_rows(self, owner: str, since: int) -> list[SearchRow]:
        active = [row.session_id for row in self.unindexed_of(owner, 999) if row.updated_at >= since]
        return [row for name in active if (row := self.search_row(name)) is not None]

    def unindexed_commits(self, owner: str, since: int, newest: int) -> list[CommitRow]:
        return [
            commit
            for row in sorted(self.outdated_rows(owner, since), key=lambda row: row.session_id)
            for commit in self.commits(row.session_id, start=row.indexed_to + 1)
            if commit.last > self.tables.sessions[row.session_id].head_index - newest
        ]

    def search_row(self, session_id: str) -> SearchRow | None:
        return self.tables.search.get(session_id)

    def search(self, words: Sequence[str], *, owner: str, columns: Sequence[str], limit: int) -> list[str]:
        rows = [row for row in reversed(self.tables.search.values()) if row.owner == owner]
        found = [row for row in rows if _matches(words, [getattr(row, column) for column in columns])]
        return [row.session_id for row in found][:limit]

    def search_outputs(self, words: Sequence[str], *, owner: str, limit: int) -> list[str]:
        texts = reversed(self.tables.outputs.values())
        matched = dict.fromkeys(name for name, text in texts if _matches(words, [text]))
        found = [name for name in matched if self._is_own(name, owner)]
        return list(found)[:limit]

    def observed(self, key: str, value: str, *, owner: str, prefix: bool, limit: int) -> list[str]:
        found = [
            self.tables.sessions[name]
            for (name, known), seen in self.tables.observations.items()
            if self._is_own(name, owner)
            and known == key
            and (seen.startswith(value) if prefix else seen == value)
        ]
        found.sort(key=lambda row: (-row.updated_at, row.session_id))
        return [row.session_id for row in found][:limit]

    def observed_values(self, key: str, *, owner: str, limit: int) -> list[str]:
        observed = self.tables.observations.items()
        values = {value for (name, known), value in observed if known == key and self._is_own(name, owner)}
        return sorted(values)[:limit]

    def setting(self, owner: str, key: str) -> str | None:
        return self.tables.settings.get((owner, key))

    def due_messages(self, now: int, limit: int) -> list[OutboxRow]:
        waiting = (row for row in self.tables.outbox.values() if row.state == "waiting" and row.due_at <= now)
        return sorted(waiting, key=lambda row: (row.due_at, row.message_id, row.channel))[:limit]

    def messages_of(self, session_id: str) -> list[OutboxRow]:
        rows = [row for row in self.tables.outbox.values() if row.session_id == session_id]
        return sorted(rows, key=lambda row: (row.message_id, row.channel))

    def messages(self, limit: int) -> list[OutboxRow]:
        rows = self.tables.outbox.values()
        return sorted(rows, key=lambda row: (row.state, row.due_at, row.message_id, row.channel))[:limit]


def _of(table: Mapping[Any, R], session_id: str) -> list[R]:
    return [row for key, row in table.items() if key[0] == session_id]


def _tokens(text: str) -> str:
    """The words of a text without case and accents, each between two spaces."""
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
    letters = "".join(char if char.isalnum() else " " for char in plain.lower())
    return f" {' '.join(letters.split())} "


def _matches(words: Sequence[str], texts: Sequence[str]) -> bool:
    phrases = [_tokens(word) for word in words if any(map(str.isalnum, word))]
    return bool(phrases) and all(any(phrase in _tokens(text) for text in texts) for phrase in phrases)


class MemoryWriter(MemoryReader):
    """The writes of one transaction, on a copy of the tables."""

    def append(self, changes: Changes) -> None:
        row, session_id = changes.session, changes.session.session_id
        if changes.before is None:
            _add(self.tables.sessions, session_id, row)
        else:
            known = self.tables.sessions.get(session_id)
            if known is None or known.head_digest != changes.before:
                raise StoreConflict(f"session {session_id} has moved since it was read")
            self.tables.sessions[session_id] = replace(
                known,
                title=row.title,
                updated_at=row.updated_at,
                head_index=row.head_index,
                head_digest=row.head_digest,
                next_node=row.next_node,
                head_run=row.head_run,
                head_node=row.head_node,
                visit_index=row.visit_index,
                visit_node=row.visit_node,
            )
        self.tables.unindexed[session_id] = True
        self._add_rows(changes.nodes, changes.blocked, changes.modes, (changes.commit,))
        for run in changes.runs:
            before = self.tables.runs.get((session_id, run.run), run)
            changed = {name: getattr(run, name) for name in RUN_CHANGES}
            self.tables.runs[session_id, run.run] = replace(before, **changed)
        for handle in changes.handles:
            self.add_handle(handle)
        for start in changes.starts:
            _add(self.tables.starts, (start.owner, start.request_id), start)
        for message in changes.outbox:
            self.add_message(message)
        for key, value in changes.observations.items():
            _add(self.tables.observations, (session_id, key), value)
        for digest, body in changes.contents.items():
            self.add_content(digest, body)

    def _add_rows(
        self,
        nodes: Sequence[NodeRow],
        blocked: Sequence[BlockedRow],
        modes: Sequence[ModeRow],
        commits: Sequence[CommitRow],
    ) -> None:
        for node in nodes:
            if node.parent is not None and node.attempt is not None:
                made = self.recorded(node.session_id, node.parent, node.attempt)
                _refuse_if(isinstance(made, NodeRow), f"attempt {node.attempt} on node {node.parent}")
            _add(self.tables.nodes, (node.session_id, node.node), node)
        for row in blocked:
            _add(self.tables.blocked, (row.session_id, row.node, row.attempt), row)
        for mode in modes:
            _add(self.tables.modes, (mode.session_id, mode.node, mode.event_index), mode)
        for commit in commits:
            taken = commit.key is not None and self.commit_by_key(commit.session_id, commit.key) is not None
            _refuse_if(taken, f"key {commit.key}")
            _add(self.tables.commits, (commit.session_id, commit.last), commit)

    def trace(self, rows: Sequence[TraceRow]) -> None:
        for row in rows:
            self.tables.traces[max(self.tables.traces, default=-1) + 1] = row

    def remove_session(self, session_id: str, removed_at: int) -> None:
        if (session := self.session(session_id)) is not None:
            head = session.head_index, session.head_digest
            self.tables.tombstones[session_id] = TombstoneRow(session_id, session.owner, removed_at, *head)
        self._forget(session_id)
        for rows in (self.tables.handles, self.tables.starts, self.tables.traces, self.tables.outbox):
            table: dict[Any, Any] = rows
            for key in [key for key, row in table.items() if row.session_id == session_id]:
                del table[key]

    def _forget(self, session_id: str) -> None:
        """Delete everything that a rebuild writes anew."""
        for name in ("runs", "nodes", "blocked", "modes", "commits", "observations"):
            table = getattr(self.tables, name)
            for key in [key for key in table if key[0] == session_id]:
                del table[key]
        for number in [number for number, (name, _) in self.tables.outputs.items() if name == session_id]:
            self.tables.outputs[number] = ("", "")
        for name in ("sessions", "unindexed", "search"):
            getattr(self.tables, name).pop(session_id, None)

    def set_keep(self, session_id: str, keep: bool) -> None:
        self._change(session_id, keep=keep)

    def set_health(self, session_id: str, health: Health, reason: str) -> None:
        self._change(session_id, health=health, health_reason=reason)

    def _change(self, session_id: str, **fields: Any) -> None:
        if (row := self.tables.sessions.get(session_id)) is not None:
            self.tables.sessions[session_id] = replace(row, **fields)

    def add_handle(self, row: HandleRow) -> None:
        _refuse_if(any(row.handle == known.handle for known in self.tables.handles.values()), "handle")
        _add(self.tables.handles, (row.session_id, row.agent), row)

    def drop_start(self, row: StartRow) -> None:
        if self.tables.starts.get((row.owner, row.request_id)) == row:
            del self.tables.starts[row.owner, row.request_id]

    def add_content(self, digest: str, body: bytes) -> None:
        self.tables.contents.setdefault(digest, body)

    def drop_content(self, digest: str) -> None:
        self.tables.contents.pop(digest, None)

    def set_setting(self, row: SettingRow) -> None:
        self.tables.settings[row.owner, row.key] = row.value

    def add_message(self, row: OutboxRow) -> None:
        self.tables.outbox.setdefault((row.session_id, row.message_id, row.channel), row)

    def change_message(self, before: OutboxRow, after: OutboxRow) -> bool:
        key = (before.session_id, before.message_id, before.channel)
        known = self.tables.outbox.get(key)
        if known is None or (known.due_at, known.attempts) != (before.due_at, before.attempts):
            return False
        self.tables.outbox[key] = after
        return True

    def drop_message(self, row: OutboxRow) -> None:
        self.tables.outbox.pop((row.session_id, row.message_id, row.channel), None)

    def index(self, row: SearchRow, outputs: Sequence[str]) -> None:
        self.tables.search.pop(row.session_id, None)
        self.tables.search[row.session_id] = row
        for text in outputs:
            self.tables.outputs[len(self.tables.outputs)] = (row.session_id, text)
        session = self.session(row.session_id)
        if session is not None and session.head_index == row.indexed_to:
            self.tables.unindexed.pop(row.session_id, None)

    def replace_session(self, rows: SessionRows) -> None:
        session_id = rows.session.session_id
        self._forget(session_id)
        self.tables.sessions[session_id], self.tables.unindexed[session_id] = rows.session, True
        self.tables.runs.update({(session_id, run.run): run for run in rows.runs})
        self._add_rows(rows.nodes, rows.blocked, rows.modes, rows.commits)
        for key, value in rows.observations.items():
            self.tables.observations[session_id, key] = value


def _add(table: dict[K, R], key: K, row: R) -> None:
    _refuse_if(key in table, f"{key}")
    table[key] = row


def _refuse_if(taken: bool, name: str) -> None:
    if taken:
        raise StoreConflict(f"{name} is taken")


class _Database:
    def __init__(self) -> None:
        self.tables = Tables()
        self.writer_lock = RLock()


DATABASES: dict[Path, _Database] = {}


class MemoryStore:
    """A store on the tables of one folder; threads take turns on it."""

    def __init__(self, folder: Path) -> None:
        self._database = DATABASES.setdefault(folder, _Database())
        self._turn = RLock()
        self._open: MemoryReader | None = None

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        with self.reading() as reader:
            return reader.load(handle, node=node, attempt=attempt)

    def append(self, *changes: Changes) -> None:
        with self.writing() as writer:
            for change in changes:
                writer.append(change)

    def trace(self, rows: Sequence[TraceRow]) -> None:
        with self.writing() as writer:
            writer.trace(rows)

    @contextmanager
    def reading(self) -> Iterator[MemoryReader]:
        with self._turn:
            if self._open is not None:
                yield self._open
                return
            self._open = MemoryReader(self._database.tables)
            try:
                yield self._open
            finally:
                self._open = None

    @contextmanager
    def writing(self) -> Iterator[MemoryWriter]:
        with self._turn:
            if self._open is not None:
                raise RuntimeError("a transaction does not nest in another, nor in a reading")
            with self._database.writer_lock:
                self._open = writer = MemoryWriter(self._database.tables.copy())
                try:
                    yield writer
                    self._database.tables = writer.tables
                finally:
                    self._open = None

    def probe(self) -> None:
        """Memory can always be read."""

    def make_room(self) -> None:
        """Nothing is held back."""

    def give_back(self) -> None:
        """Nothing is on a disk."""

    def close(self) -> None:
        """Nothing is held open."""
