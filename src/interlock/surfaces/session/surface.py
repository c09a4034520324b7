"""The session surface: sixteen tools over one head per session. A handler parses, calls, renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock import __version__
from interlock.core.run.surface_policy import SESSION
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs import children as family
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import Calling, Moved, RefusedCall
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.session import params as p
from interlock.surfaces.session.checkpoints import Checkpoints
from interlock.surfaces.session.tools import INSTRUCTIONS, tools
from interlock.surfaces.shared import params as shared
from interlock.surfaces.shared.documents import META
from interlock.surfaces.shared.replies import of_error, recorded, told_json
from interlock.surfaces.shared.session_tools import SERVER, status_of
from interlock.surfaces.shared.written import as_toon
from interlock.surfaces.tool import Call, Outcome, Reply, Tool

RECOVERED = (
    "The session token was not recognised. This is a fresh session; the earlier state was NOT inherited."
)


class SessionSurface(Checkpoints):
    """The navigation surface."""

    name = "session"
    instructions = INSTRUCTIONS
    policy = SESSION

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
            if isinstance(opened, LedgerError):
                return of_error(opened)
            parent = opened
        return self._start(calling, params.agent_id, params.workflow_id or META, parent)

    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome:
        progress = self._entering(params, call, _entered)
        if isinstance(progress, Reply):
            return progress
        outcome = self._act(params.session_token, progress)
        return self._refusal(params.session_token, outcome) if isinstance(outcome, RefusedCall) else outcome

    def get_workflow_status(self, params: shared.WithToken, call: Call) -> Outcome:
        """Say where the session stands; readable at any time, and never traced."""
        target = self.ledger.open(params.session_token, "ses")
        if isinstance(target, LedgerError):
            return of_error(target)
        with self.ledger.store.reading() as reader:
            at = family.head(self.ledger, reader, target.session_id)
            if isinstance(at, LedgerError):
                return of_error(at)
            last = family.last_answer(reader, target.session_id)
            above = list(family.ancestors(self.ledger, reader, at))
        body = {**_status(at), **_last_checkpoint(last), **_parent(above)}
        token = self._token(target, at)
        return told_json({**body, "session_token": token}, token)


def _status(at: Position) -> dict[str, Json]:
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
    if state.children:
        body["children"] = [{"session_id": key, "workflow_id": name} for key, name in state.children.items()]
    return body


def _last_checkpoint(last: family.LastAnswer | None) -> dict[str, Json]:
    if last is None:
        return {}
    answer: dict[str, Json] = {
        "activity_id": last.activity,
        "checkpoint_id": last.event.gate,
        "option_id": last.event.option,
        "timestamp": last.event.at // 1000,
    }
    return {"last_checkpoint": answer}


def _parent(above: Sequence[family.Ancestor]) -> dict[str, Json]:
    """The sessions above, each within the one below it."""
    if not above:
        return {}
    parent: dict[str, Json] = {
        "session_id": above[0].session_id,
        "workflow_id": above[0].workflow_id,
        "activity": above[0].activity,
        "version": above[0].version,
    }
    return {"parent": {**parent, **_parent(above[1:])}}


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
