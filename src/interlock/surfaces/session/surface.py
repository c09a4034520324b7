"""The session door: sixteen tools over one head per session. A handler parses, calls, renders."""

from __future__ import annotations

from collections.abc import Mapping

from interlock import __version__
from interlock.core.commands import SESSION
from interlock.core.events import GateResolved
from interlock.core.outcomes import Code
from interlock.core.values import Json
from interlock.ledger import family
from interlock.ledger.chain import read_fact
from interlock.ledger.ledger import Ledger, Standing
from interlock.ledger.sessions import Calling, Moved, Refused
from interlock.ledger.slots import slot
from interlock.ledger.trouble import Trouble
from interlock.store.protocol import Reader
from interlock.surfaces.activities import params as shared
from interlock.surfaces.activities.documents import META
from interlock.surfaces.activities.door import SERVER, status_of
from interlock.surfaces.activities.replies import failure, of_trouble, recorded, told_json
from interlock.surfaces.activities.shapes import as_toon
from interlock.surfaces.session import params as p
from interlock.surfaces.session.checkpoints import Checkpoints
from interlock.surfaces.session.tools import INSTRUCTIONS, tools
from interlock.surfaces.surface import Call, Outcome, Reply, Tool

DEEPEST = 16
RECOVERED = (
    "The session token was not recognised. This is a fresh session; the earlier state was NOT inherited."
)


class SessionSurface(Checkpoints):
    """The door."""

    name = "session"
    instructions = INSTRUCTIONS
    door = SESSION

    def __init__(self, ledger: Ledger, without: frozenset[str] = frozenset()) -> None:
        super().__init__(ledger)
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools(self) if tool.name not in without}

    def discover(self, params: shared.Nothing, call: Call) -> Outcome:
        return Reply(f"server: {SERVER}\nversion: {__version__}\n\n{self._bootstrap()}")

    def list_workflows(self, params: shared.Nothing, call: Call) -> Outcome:
        listed: list[Json] = [
            {"id": one.id, "title": one.name, "version": one.version, "tags": list(one.tags)}
            for one in self._listed()
        ]
        return Reply(as_toon({"workflows": listed}))

    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        about: dict[str, Json] = {"workflow": params.workflow_id[:128]} if params.workflow_id else {}
        calling = Calling("start_session", about)
        if params.session_token is not None:
            joined = self._inherit(calling, params.session_token, params.agent_id)
            if isinstance(joined, Reply):
                return joined
            if joined is not None:
                return self._taken_up(joined, params.agent_id)
            flags: dict[str, Json] = {"recovered": True}
            workflow_id = params.workflow_id or META
            return self._start(calling, params.agent_id, workflow_id, flags=flags, warning=RECOVERED)
        return self._fresh(calling, params)

    def _fresh(self, calling: Calling, params: p.StartSession) -> Outcome:
        parent = None
        if params.parent_session_token is not None:
            opened = self.ledger.open(params.parent_session_token, "ses", "nav", "st")
            if isinstance(opened, Trouble):
                return of_trouble(opened)
            parent = opened
        return self._start(calling, params.agent_id, params.workflow_id or META, parent)

    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome:
        progress = self._entering(params, call, _entered)
        if isinstance(progress, Reply):
            return progress
        outcome = self._act(params.session_token, progress)
        return self._not_entered(params, outcome) if isinstance(outcome, Refused) else outcome

    def _not_entered(self, params: shared.NextActivity, refused: Refused) -> Reply:
        refusal = refused.refusal
        reply = self._refusal(params.session_token, refused)
        if refusal.code not in (Code.DECISION_PENDING, Code.GATE_UNANSWERED):
            return reply
        held = refusal.about.get("checkpoint")
        text = f"Cannot transition to '{params.activity_id}': {refusal.message}"
        then = f"The worker must yield_checkpoint '{held}'; the orchestrator answers it."
        if refusal.code is Code.DECISION_PENDING:
            text = f"{text} The orchestrator must resolve it by calling respond_checkpoint."
            then = "Call respond_checkpoint."
        token = reply.meta["session_token"]
        assert isinstance(token, str)
        return failure(refusal.code.value, text, then, refusal.about, token)

    def get_workflow_status(self, params: shared.WithToken, call: Call) -> Outcome:
        """Say where the session stands; readable at any time, and never traced."""
        place = self.ledger.open(params.session_token, "ses")
        if isinstance(place, Trouble):
            return of_trouble(place)
        with self.ledger.store.reading() as reader:
            at = family.head(self.ledger, reader, place.session_id)
            if isinstance(at, Trouble):
                return of_trouble(at)
            body = self._status(reader, at)
        token = self._token(place, at)
        return told_json({**body, "session_token": token}, token)

    def _status(self, reader: Reader, at: Standing) -> dict[str, Json]:
        state, workflow = at.state, at.plan.workflow
        body: dict[str, Json] = {
            "status": status_of(at),
            "current_activity": state.activity or "none",
            "completed_activities": list(state.completed),
            "session_id": at.session.session_id,
            "workflow": {"id": workflow.id, "version": workflow.version, "title": workflow.name},
        }
        if state.open is not None:
            body["open_checkpoint"] = state.open.gate
        if state.finished_at is not None:
            body["completed_at"] = state.finished_at // 1000
        last = _last_checkpoint(reader, at)
        if last:
            body["last_checkpoint"] = last
        if state.children:
            body["children"] = [
                {"session_id": key, "workflow_id": name} for key, name in state.children.items()
            ]
        parent = self._parent(reader, at, DEEPEST)
        return {**body, "parent": parent} if parent else body

    def _parent(self, reader: Reader, at: Standing, levels: int) -> dict[str, Json] | None:
        """The session that triggered this one, and what triggered that, all the way up."""
        session_id = at.session.parent_session
        above = family.head(self.ledger, reader, session_id) if session_id and levels else None
        if above is None or isinstance(above, Trouble) or session_id is None:
            return None
        began = family.origin(reader, session_id, at.session.session_id)
        body: dict[str, Json] = {
            "session_id": session_id,
            "workflow_id": above.run.workflow_id,
            "activity": began.activity if began else above.state.activity,
            "version": above.plan.workflow.version,
        }
        further = self._parent(reader, above, levels - 1)
        return {**body, "parent": further} if further else body


def _last_checkpoint(reader: Reader, at: Standing) -> dict[str, Json]:
    kinds = ("gate_resolved", "activity_entered")
    answer: GateResolved | None = None
    for row in reader.events(at.session.session_id, kinds=kinds, newest_first=True):
        fact = read_fact(row)
        if answer is None and isinstance(fact, GateResolved):
            answer = fact
        elif answer is not None and not isinstance(fact, GateResolved):
            return _answer(answer, getattr(fact, "activity", None))
    return _answer(answer, None) if answer is not None else {}


def _answer(answer: GateResolved, activity: str | None) -> dict[str, Json]:
    body: dict[str, Json] = {"activity_id": activity, "checkpoint_id": answer.gate}
    return {**body, "option_id": answer.option, "timestamp": answer.at // 1000}


def _entered(moved: Moved) -> bytes:
    state = moved.state
    token = slot("ses", state.visit)
    activity = moved.before.plan.workflow.activity(state.activity)
    assert activity is not None, "a session that moved is in an activity"
    body: dict[str, Json] = {"activity_id": activity.id, "name": activity.name, "session_token": token}
    if state.finished:
        body = {
            "activity_id": state.left_to,
            "name": "Completed",
            "status": "completed",
            "session_token": token,
        }
    meta: dict[str, Json] = {"trace_token": slot("trc", *moved.trace)}
    return recorded(told_json(body, token, moved.warnings, meta))
