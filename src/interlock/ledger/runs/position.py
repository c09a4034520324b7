"""Where a command stands: a place that a token leads to, a run at one node, an attempt, a recorded answer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from interlock.core.definition.program import Plan
from interlock.core.run.commands import Decision
from interlock.core.run.outcomes import Awaited, NeedAnswer, NeedInput, NeedStep
from interlock.core.run.output import Output
from interlock.core.run.state import RunState
from interlock.core.values import Json, Variables
from interlock.ledger.errors import LedgerError, not_healthy, unknown_session
from interlock.ledger.log.health import damage
from interlock.ledger.tokens.tokens import Kind
from interlock.store.protocol import NodeRow, Reader, RunRow, SessionRow


class Target(Struct, frozen=True):
    """Where a genuine token leads: a session by its secret handle, and a node or visit in it."""

    kind: Kind
    handle: bytes
    session_id: str
    node: int
    attempt: int
    agent: str = ""


class Position(Struct, frozen=True):
    """A run at one node, read and checked: what a command is decided on."""

    session: SessionRow
    run: RunRow
    node: NodeRow
    plan: Plan
    state: RunState
    awaited: Awaited
    kept: Variables = {}
    decisions: Mapping[str, Decision] = {}

    @property
    def step(self) -> str:
        """The name under which notes of the pending item are kept."""
        match self.awaited:
            case NeedStep(key=key):
                return key
            case NeedAnswer(gate=gate):
                return gate.id
            case NeedInput(subject=subject):
                return subject
            case _:
                return ""


class Attempted(Struct, frozen=True):
    """An attempt as it came in: its number, what was asked, what was handed in."""

    attempt: int
    request: bytes
    output: Output
    variables: Variables
    surface: str


class Answered(Struct, frozen=True):
    """A recorded response with live tokens. `differs` says that a replay was asked for something else."""

    body: bytes
    replayed: bool = False
    differs: bool = False


def head_node(reader: Reader, target: Target) -> int:
    """The node that a place means: its own, or the session's head for a token that names a visit."""
    if target.kind != "ses":
        return target.node
    session = reader.session(target.session_id)
    return session.head_node if session and session.head_node is not None else 0


def healthy(reader: Reader, session_id: str) -> SessionRow | LedgerError:
    """The session, if nothing keeps it from going on."""
    session = reader.session(session_id)
    if session is None:
        return unknown_session()
    found = damage(reader, session)
    return session if found is None else not_healthy(session_id, found)


def kept_before(reader: Reader, node: NodeRow, attempt: int) -> Variables:
    """What blocked attempts before this one have already told (rule 10)."""
    if attempt == 0:
        return {}
    before = reader.attempt_before(node.session_id, node.node, attempt)
    if before is None or not before.kept:
        return {}
    kept: Variables = msgspec.json.decode(before.kept)
    return kept


def remembered(at: Position, delta: Variables) -> dict[str, Json]:
    """This attempt's variables on top of what blocked attempts before it sent."""
    return {**at.kept, **delta}
