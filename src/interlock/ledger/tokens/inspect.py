"""What a token leads to, for people: the fields that the documents list, without the secret (rule 5)."""

from __future__ import annotations

from typing import get_args

from msgspec import Struct

from interlock.core.engine.gates import pending_gates
from interlock.core.run.events import ActivityLeft, GateResolved, QuestionShown
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger, note_attempt
from interlock.ledger.log.chain import logged
from interlock.ledger.log.records import CallTraced
from interlock.ledger.queries.traces import whole_trace
from interlock.ledger.runs.children import ancestors
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import showing_mark
from interlock.ledger.tokens.tokens import VERSION, Kind, Pointer
from interlock.store.protocol import Reader


class Disclosed(Struct, frozen=True, omit_defaults=True):
    """A token's fields. Short names are those of the documents, and lead to recorded state.

    `checkpoint` is the question that a checkpoint handle was given for, `answer` what was answered to it.
    """

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
    pcp: tuple[str, ...] = ()
    pcpt: int = 0
    skill: str = ""
    cond: str = ""
    psid: str = ""
    pwf: str = ""
    pact: str = ""
    pv: str = ""
    run: str = ""
    status: str = ""
    checkpoint: str = ""
    answer: str = ""


def disclose(ledger: Ledger, token: str) -> Disclosed:
    """Open a token of any kind and say where it leads. Nothing is written."""
    pointer = ledger.read_token(token, *get_args(Kind))
    kind, node, attempt = pointer.kind, pointer.node, pointer.attempt
    try:
        position = ledger.at(Pointer("ses", pointer.handle) if kind == "trc" else pointer)
    except LedgerError:
        loaded = ledger.load(pointer.handle)
        if loaded is None or kind not in ("sst", "trc"):
            raise
        # A session that has no run yet.
        session = loaded.session
        return Disclosed(kind, VERSION, session.session_id, node, attempt, used=False, ts=session.created_at)
    workflow, state = position.plan.workflow, position.state
    made = {"chk": note_attempt(attempt), "ses": None, "sst": None, "trc": None}.get(kind, attempt)
    with ledger.store.reading() as reader:
        used = made is not None and reader.recorded(position.session_id, node, made) is not None
        asked = _asked(reader, position.session_id, attempt) if pointer.is_checkpoint_handle else {}
    gates = pending_gates(position.plan, state) if position.run.surface == "gated" else ()
    pending = tuple(gate.id for gate in gates)
    opened = (
        state.active if position.run.surface == "session" else state.visit.open
    )  # there a yield makes it active
    return Disclosed(
        kind=kind,
        version=VERSION,
        sid=position.session_id,
        node=node,
        attempt=attempt,
        used=used,
        wf=workflow.id,
        v=workflow.version,
        act=state.visit.activity or "",
        seq=node,
        ts=position.session.created_at,
        aid=position.agent,
        bcp=opened.gate if opened else "",
        pcp=pending,
        pcpt=state.visit.entered_at if pending else 0,
        skill=_last_skill(ledger, position),
        cond=_last_condition(ledger, position),
        run=position.run.run_id,
        status=position.run.status,
        **_parent(ledger, position),
        **asked,
    )


def _asked(reader: Reader, session_id: str, opening: int) -> dict[str, str]:
    """Return the question that a checkpoint handle was given for, and the answer to it."""
    answers: dict[str, GateResolved] = {}
    for row in logged(reader.commits(session_id, newest_first=True), newest_first=True):
        event = row.event
        if isinstance(event, GateResolved):
            answers[event.key] = event
        elif isinstance(event, QuestionShown):
            answer = answers.pop(event.key, None)
            if showing_mark(event.key, event.at) == opening:
                return {"checkpoint": event.key, "answer": (answer.option or answer.how) if answer else ""}
    return {"checkpoint": "unknown"}  # it was asked on a part of the log that is gone


def _parent(ledger: Ledger, position: Position) -> dict[str, str]:
    """Return the session that this one was begun in, and the activity that it was in then."""
    for above in ancestors(ledger, position):
        activity = above.activity or ""
        return {"psid": above.session_id, "pwf": above.workflow_id, "pact": activity, "pv": above.version}
    return {"psid": position.session.parent_session or ""}


def _last_skill(ledger: Ledger, position: Position) -> str:
    for traced in reversed(whole_trace(ledger, position.session).events):
        event = traced.event
        if isinstance(event, CallTraced) and event.tool == "get_skill" and event.ok:
            skill = event.about.get("skill") or event.about.get("step")
            return skill if isinstance(skill, str) else ""
    return ""


def _last_condition(ledger: Ledger, position: Position) -> str:
    """Return the condition that the agent named for its last transition, else the one that decided it."""
    with ledger.store.reading() as reader:
        for row in logged(reader.commits(position.session_id, newest_first=True), newest_first=True):
            match row.event:
                case CallTraced(ok=True, about={"condition": str(condition)}):
                    return condition
                case ActivityLeft(condition=condition):
                    return condition
    return ""
