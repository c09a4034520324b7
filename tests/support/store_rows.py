"""Commands on a store without a ledger: the fewest rows that a session and its steps need."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from interlock.store.protocol import (
    BlockedRow,
    Changes,
    CommitRow,
    HandleRow,
    NodeRow,
    RunRow,
    SessionRow,
    Store,
)

GENESIS = bytes(32)


def digest_of(session_id: str, index: int, text: str = "") -> bytes:
    return sha256(f"{session_id}:{index}:{text}".encode()).digest()


def commit_row(session_id: str, index: int, text: str = "", key: str | None = None) -> CommitRow:
    """A commit with one event."""
    digest = digest_of(session_id, index, text)
    return CommitRow(session_id, index, index, index, digest, text.encode() or b"[]", key)


def run_row(session_id: str = "sess_a", run: int = 0, **fields: Any) -> RunRow:
    run_id = f"run_{session_id}{run}"
    row = RunRow(session_id, run, run_id, "wr.fix", "sha256:1", "execution", "running", 0, 1, 1)
    return replace(row, **fields)


def node_row(node: int, parent: int | None = None, *, session_id: str = "sess_a", **fields: Any) -> NodeRow:
    row = NodeRow(session_id, node, 0, parent, "step", node, 0, b"\0state", b"d" * 32, node, 8)
    return replace(row, **fields)


def blocked_row(node: int, attempt: int, *, session_id: str = "sess_a", **fields: Any) -> BlockedRow:
    row = BlockedRow(session_id, node, attempt, attempt + 1, attempt, 9, b"q", b"d", b"\xffblocked")
    return replace(row, **fields)


def handle_of(session_id: str) -> bytes:
    return session_id.encode().ljust(10, b".")


def start(session_id: str = "sess_a", at: int = 1, owner: str = "me", **more: Any) -> Changes:
    """Begin a session with a run at its root."""
    session = SessionRow(
        session_id, owner, "Fix the login", at, at, 0, digest_of(session_id, 0), 1, head_run=0, head_node=0
    )
    changes = Changes(
        session=session,
        before=None,
        commit=commit_row(session_id, 0),
        runs=[run_row(session_id)],
        nodes=[node_row(0, session_id=session_id)],
        handles=[HandleRow(handle_of(session_id), session_id)],
    )
    return replace(changes, **more)


def session_of(store: Store, session_id: str = "sess_a") -> SessionRow:
    with store.reading() as reader:
        session = reader.session(session_id)
    assert session is not None
    return session


def onto(session: SessionRow, text: str = "", key: str | None = None, **more: Any) -> Changes:
    """A command of one event on a session as it was read; `more` are the rows that it writes."""
    index = session.head_index + 1
    commit = commit_row(session.session_id, index, text, key)
    moved = replace(session, head_index=index, head_digest=commit.digest)
    return replace(Changes(session=moved, before=session.head_digest, commit=commit), **more)


def step(
    session: SessionRow, attempt: int = 0, text: str = "", at: int | None = None, **more: Any
) -> Changes:
    """Advance from the head by one attempt."""
    node = node_row(
        session.next_node,
        session.head_node,
        session_id=session.session_id,
        attempt=attempt,
        response=f"answer {text}".encode(),
    )
    changes = onto(session, text, nodes=[node], **more)
    moved = replace(
        changes.session,
        updated_at=session.updated_at if at is None else at,
        next_node=node.node + 1,
        head_node=node.node,
    )
    return replace(changes, session=moved)
