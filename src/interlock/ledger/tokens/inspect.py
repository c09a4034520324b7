"""What a token leads to, for people: the fields that the documents list, without the secret (rule 5)."""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from interlock.core.values import Json
from interlock.ledger.errors import Trouble
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import read_fact
from interlock.ledger.log.records import CallTraced
from interlock.ledger.runs.position import Place, Standing, head_node
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


def disclose(ledger: Ledger, token: str) -> Disclosed | Trouble:
    """Open a token of any kind and say where it leads. Nothing is written."""
    place = ledger.open(token, *get_args(Kind))
    if isinstance(place, Trouble):
        return place
    with ledger.store.reading() as reader:
        node = head_node(reader, place)
        at = ledger.standing(reader, place.session_id, node)
        if isinstance(at, Trouble):
            return at if place.kind not in ("sst", "trc") else _bare(reader, place)
        return _full(ledger, reader, place, at)


def _bare(reader: Reader, place: Place) -> Disclosed:
    """A session that has no run yet."""
    session = reader.session(place.session_id)
    created = session.created_at if session else 0
    return Disclosed(place.kind, VERSION, place.session_id, place.node, place.attempt, False, ts=created)


def _full(ledger: Ledger, reader: Reader, place: Place, at: Standing) -> Disclosed:
    workflow, state = at.plan.workflow, at.state
    return Disclosed(
        kind=place.kind,
        version=VERSION,
        sid=place.session_id,
        node=place.node,
        attempt=place.attempt,
        used=reader.attempt(place.session_id, place.node, place.attempt) is not None,
        wf=workflow.id,
        v=workflow.version,
        act=state.activity or "",
        seq=state.visit,
        ts=at.session.created_at,
        aid=place.agent,
        bcp=state.open.gate if state.open else "",
        skill=_last_skill(reader, place),
        cond=_last_condition(reader, place),
        run=at.run.run_id,
        status=at.run.status,
        **_parent(ledger, reader, at.session.parent_session),
    )


def _parent(ledger: Ledger, reader: Reader, parent: str | None) -> dict[str, str]:
    session = reader.session(parent) if parent else None
    if session is None or session.head_node is None:
        return {"psid": parent or ""}
    at = ledger.standing(reader, session.session_id, session.head_node)
    if isinstance(at, Trouble):
        return {"psid": session.session_id}
    workflow = at.plan.workflow
    return {
        "psid": session.session_id,
        "pwf": workflow.id,
        "pact": at.state.activity or "",
        "pv": workflow.version,
    }


def _last_skill(reader: Reader, place: Place) -> str:
    for row in reader.events(place.session_id, kinds=["call_traced"], newest_first=True):
        fact = read_fact(row)
        if isinstance(fact, CallTraced) and fact.tool == "get_skill" and fact.ok:
            return _text(fact.about.get("skill") or fact.about.get("step_id"))
    return ""


def _last_condition(reader: Reader, place: Place) -> str:
    for row in reader.events(place.session_id, kinds=["activity_left"], newest_first=True, limit=1):
        return _text(getattr(read_fact(row), "condition", ""))
    return ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
