"""The session surface: sixteen tools over one head per session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock import __version__
from interlock.core.engine.decide import decide
from interlock.core.run.outcomes import Decided, Refusal
from interlock.core.run.surface_policy import SESSION
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError, error_of, internal_error
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.children import Ancestor, LastAnswer, ancestors, last_answer
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import Calling, SessionCall
from interlock.ledger.tokens.slots import slot
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.recorded import body_of, encoded, live, replayed
from interlock.surfaces.session import params as p
from interlock.surfaces.session.checkpoints import Checkpoints
from interlock.surfaces.session.errors import words
from interlock.surfaces.session.reading import SessionReading
from interlock.surfaces.session.tools import INSTRUCTIONS, tools
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.documents import META
from interlock.surfaces.shared.position import status_of
from interlock.surfaces.shared.replies import of_error, of_refusal, told_json
from interlock.surfaces.shared.session_tools import RECOVERED, SERVER, SessionTools, claims_of
from interlock.surfaces.shared.written import as_toon
from interlock.surfaces.strict_params import NoParams
from interlock.surfaces.tool import Surface, Tool


class SessionSurface(Surface):
    """Sixteen tools over one head per session."""

    name = "session"
    instructions = INSTRUCTIONS

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.shared = SessionTools(ledger, SESSION)
        self.reading = SessionReading(self.shared)
        self.checkpoints = Checkpoints(self.shared)
        self.tools: Mapping[str, Tool] = {
            tool.name: tool for tool in tools(self, self.shared, self.reading, self.checkpoints)
        }

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        return self.shared.invalid(tool, reason)

    def unknown(self, name: str) -> Outcome:
        return self.shared.unknown(name, self.tools)

    def expected(self, error: Exception) -> Outcome | None:
        known = error_of(error)
        return of_error(known) if known is not None else None

    def failed(self, tool: Tool, error: Exception, reference: str) -> Outcome:
        return of_error(internal_error(error, reference))

    def idle(self) -> None:
        self.ledger.idle()

    def close(self) -> None:
        self.ledger.close()

    def discover(self, params: NoParams, call: Call) -> Outcome:
        return Reply(f"server: {SERVER}\nversion: {__version__}\n\n{self.shared.bootstrap()}")

    def list_workflows(self, params: NoParams, call: Call) -> Outcome:
        listed: list[Json] = [
            {"id": entry.id, "title": entry.name, "version": entry.version, "tags": list(entry.tags)}
            for entry in self.shared.listed()
        ]
        return Reply(as_toon({"workflows": listed}))

    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        about: dict[str, Json] = {"workflow": params.workflow_id[:128]} if params.workflow_id else {}
        calling, workflow_id = Calling("start_session", about), params.workflow_id or META
        if params.session_token is not None:
            joined = self.shared.join(calling, params.session_token, params.agent_id)
            if joined is not None:
                return joined
            recovered: dict[str, Json] = {"recovered": True}
            return self.shared.start(
                calling, params.agent_id, workflow_id, flags=recovered, warning=RECOVERED
            )
        parent = None
        if params.parent_session_token is not None:
            pointer = self.ledger.read_token(params.parent_session_token, "ses", "nav", "st")
            if isinstance(pointer, LedgerError):
                return of_error(pointer)
            head = self.ledger.at(Pointer("ses", pointer.handle))
            if isinstance(head, LedgerError):
                return of_error(head)
            parent = head
        return self.shared.start(calling, params.agent_id, workflow_id, parent)

    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome:
        calling = Calling("next_activity", {"target": params.activity_id})
        progress = self.shared.calling(params.session_token, calling, params.variables)
        if isinstance(progress, Reply):
            return progress
        claims = claims_of(params.step_manifest)
        if isinstance(claims, Reply):
            return claims
        if progress.is_stale or progress.state.finished:
            repeated = progress.repeated(params.activity_id)
            if repeated is not None:
                return (
                    of_error(repeated)
                    if isinstance(repeated, LedgerError)
                    else replayed(repeated, self.ledger)
                )
        if progress.is_stale:
            return self.shared.stale(progress)
        command = self.shared.entering(progress, params, claims, call.client.name)
        decided = decide(progress.position.plan, progress.state, command)
        if isinstance(decided, Refusal):
            progress.refuse(decided.code.value, decided.kept)
            return of_refusal(decided, words(decided), progress.token)
        warnings = self.shared.entry_warnings(progress, params, decided)
        reply = encoded(_entered(progress, decided, warnings))
        progress.record(decided, body_of(reply), warnings=warnings, claims=claims, target=params.activity_id)
        return live(reply, self.ledger, progress.pointer.handle)

    def get_workflow_status(self, params: shared.WithToken, call: Call) -> Outcome:
        """Say where the session stands; readable at any time, and never traced."""
        position = self.ledger.open(params.session_token, "ses")
        if isinstance(position, LedgerError):
            return of_error(position)
        last, above = last_answer(self.ledger, position.session_id), ancestors(self.ledger, position)
        body = {**_status(position), **_last_checkpoint(last), **_parent(above)}
        token = self.ledger.mint("ses", position.handle, position.state.visit)
        return told_json({**body, "session_token": token}, token)


def _status(position: Position) -> dict[str, Json]:
    state, workflow = position.state, position.plan.workflow
    body: dict[str, Json] = {
        "status": status_of(position),
        "current_activity": state.activity or "none",
        "completed_activities": list(state.completed),
        "session_id": position.session_id,
        "workflow": {"id": workflow.id, "version": workflow.version, "title": workflow.name},
    }
    if state.open is not None:
        body["open_checkpoint"] = state.open.gate
    if state.finished_at is not None:
        body["completed_at"] = state.finished_at // 1000
    if state.children:
        body["children"] = [{"session_id": key, "workflow_id": name} for key, name in state.children.items()]
    return body


def _last_checkpoint(last: LastAnswer | None) -> dict[str, Json]:
    if last is None:
        return {}
    answer: dict[str, Json] = {
        "activity_id": last.activity,
        "checkpoint_id": last.event.gate,
        "option_id": last.event.option,
        "timestamp": last.event.at // 1000,
    }
    return {"last_checkpoint": answer}


def _parent(above: Sequence[Ancestor]) -> dict[str, Json]:
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


def _entered(progress: SessionCall, decided: Decided, warnings: tuple[str, ...]) -> Reply:
    state = decided.state
    token = slot("ses", state.visit)
    activity = progress.position.plan.workflow.activity(state.activity)
    assert activity is not None, "a session that moved is in an activity"
    body: dict[str, Json] = {"activity_id": activity.id, "name": activity.name, "session_token": token}
    if state.finished:
        body = {
            "activity_id": state.left_to,
            "name": "Completed",
            "status": "completed",
            "session_token": token,
        }
    meta: dict[str, Json] = {"trace_token": slot("trc", *progress.trace_range)}
    return told_json(body, token, warnings, meta)
