"""What a token leads to, for people: the fields that the documents list, without the secret (rule 5)."""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import read_event
from interlock.ledger.log.records import CallTraced
from interlock.ledger.runs.position import Position, Target, head_node
from interlock.ledger.tokens.tokens import VERSION, Kind
from interlock.store.protocol import Reader


class Disclosed(Struct, frozen=True, omit_defaults=True):
    """A token's fields. Short names are those of the documents, and lead to recorded state."""

    kind: str
    version: str
    sid: str
    node: int
    attempt: int
    used: bool
    wf: str = ""
    v: str = ""
    act: str = ""
    seq: int = 0
    ts: int = 0
    aid: str = ""
    bcp: str = ""
    skill: str = ""
    cond: str = ""
    psid: str = ""
    pwf: str = ""
    pact: str = ""
    pv: str = ""
    run: str = ""
    status: str = ""


def disclose(ledger: Ledger, token: str) -> Disclosed | LedgerError:
    """Open a token of any kind and say where it leads. Nothing is written."""
    target = ledger.open(token, *get_args(Kind))
    if isinstance(target, LedgerError):
        return target
    with ledger.store.reading() as reader:
        node = head_node(reader, target)
        at = ledger.position(reader, target.session_id, node)
        if isinstance(at, LedgerError):
            return at if target.kind not in ("sst", "trc") else _bare(reader, target)
        return _full(ledger, reader, target, at)


def _bare(reader: Reader, target: Target) -> Disclosed:
    """A session that has no run yet."""
    session = reader.session(target.session_id)
    created = session.created_at if session else 0
    return Disclosed(target.kind, VERSION, target.session_id, target.node, target.attempt, False, ts=created)


def _full(ledger: Ledger, reader: Reader, target: Target, at: Position) -> Disclosed:
    workflow, state = at.plan.workflow, at.state
    return Disclosed(
        kind=target.kind,
        version=VERSION,
        sid=target.session_id,
        node=target.node,
        attempt=target.attempt,
        used=reader.attempt(target.session_id, target.node, target.attempt) is not None,
        wf=workflow.id,
        v=workflow.version,
        act=state.activity or "",
        seq=state.visit,
        ts=at.session.created_at,
        aid=target.agent,
        bcp=state.open.gate if state.open else "",
        skill=_last_skill(reader, target),
        cond=_last_condition(reader, target),
        run=at.run.run_id,
        status=at.run.status,
        **_parent(ledger, reader, at.session.parent_session),
    )


def _parent(ledger: Ledger, reader: Reader, parent: str | None) -> dict[str, str]:
    session = reader.session(parent) if parent else None
    if session is None or session.head_node is None:
        return {"psid": parent or ""}
    at = ledger.position(reader, session.session_id, session.head_node)
    if isinstance(at, LedgerError):
        return {"psid": session.session_id}
    workflow = at.plan.workflow
    return {
        "psid": session.session_id,
        "pwf": workflow.id,
        "pact": at.state.activity or "",
        "pv": workflow.version,
    }


def _last_skill(reader: Reader, target: Target) -> str:
    for row in reader.events(target.session_id, kinds=["call_traced"], newest_first=True):
        event = read_event(row)
        if isinstance(event, CallTraced) and event.tool == "get_skill" and event.ok:
            return _text(event.about.get("skill") or event.about.get("step_id"))
    return ""


def _last_condition(reader: Reader, target: Target) -> str:
    for row in reader.events(target.session_id, kinds=["activity_left"], newest_first=True, limit=1):
        return _text(getattr(read_event(row), "condition", ""))
    return ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
