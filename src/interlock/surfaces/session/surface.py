"""The session surface: sixteen tools over one head per session."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock import __version__
from interlock.core.definition.prompts import interpolate, remark_text
from interlock.core.run.notices import Notices
from interlock.core.run.surface_policy import SESSION
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.children import Ancestor, ancestors, last_answer
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import Calling, session_token
from interlock.surfaces.briefs import brief_fields
from interlock.surfaces.call import Call, Elicit, Outcome, Reply, Wait
from interlock.surfaces.ledger_surface import LedgerSurface
from interlock.surfaces.parameters import NoParams
from interlock.surfaces.recorded import repeatable
from interlock.surfaces.session import params as p
from interlock.surfaces.session.checkpoints import Checkpoints
from interlock.surfaces.session.errors import next_action, words
from interlock.surfaces.session.instructions import INSTRUCTIONS, PROMPTS
from interlock.surfaces.session.reading import SessionReading
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.documents import META
from interlock.surfaces.shared.reading_call import status_of
from interlock.surfaces.shared.replies import json_reply, of_error, of_refusal, with_warning
from interlock.surfaces.shared.session_errors import completed
from interlock.surfaces.shared.session_tools import RECOVERED, SERVER, NotEntered, SessionTools
from interlock.surfaces.shared.workflow_filter import NO_MATCH, ListWorkflows, found_workflows, shadowed_among
from interlock.surfaces.shared.workflow_shapes import as_toon
from interlock.surfaces.tool import Tool, tool, tools_of

TAKE_UP = "Call start_session with your agent_id and the session_token of the candidate that is meant."
TAKE_HANDLES = ("present_checkpoint", "respond_checkpoint", "resume_checkpoint")


class SessionSurface(LedgerSurface):
    """Sixteen tools over one head per session."""

    name = "session"
    instructions = INSTRUCTIONS
    prompt_texts = PROMPTS

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.shared = SessionTools(ledger, SESSION, next_action, *TAKE_HANDLES)
        self.reading = SessionReading(self.shared)
        self.checkpoints = Checkpoints(self.shared)
        self.tools = tools_of(self, self.reading, self.checkpoints, self.shared)

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        return self.shared.invalid(tool, reason)

    def error_reply(self, error: LedgerError) -> Reply:
        return of_error(error)

    @tool(read_only=True, uses_store=False)
    def discover(self, params: NoParams, call: Call) -> Outcome:
        """Start here: server, version, and how to work with it."""
        return Reply(f"server: {SERVER}\nversion: {__version__}\n\n{self.shared.bootstrap()}")

    @tool(read_only=True, uses_store=False)
    def list_workflows(self, params: ListWorkflows, call: Call) -> Outcome:
        """List workflows: id, title, version, tags."""
        entries = found_workflows(self.shared.visible_workflows(), params)
        if params.narrows and not entries:
            return Reply(NO_MATCH)
        workflows: list[Json] = [
            {"id": entry.id, "title": entry.name, "version": entry.version, "tags": list(entry.tags)}
            for entry in entries
        ]
        hidden = shadowed_among(self.shared.shadowed(), entries, params)
        shadowed: list[Json] = [workflow.message for workflow in hidden]
        return Reply(as_toon({"workflows": workflows, **({"shadowed": shadowed} if shadowed else {})}))

    @tool()
    def start_session(self, params: p.StartSession, call: Call) -> Outcome:
        """Start a session of a workflow, inherit one by session_token, or start a child with
        parent_session_token. Returns session_token. With find: lists earlier work.
        """
        found = self.shared.found(params.find, params.session_token, TAKE_UP)
        if found is not None:
            return found
        key = repeatable(self.ledger, "session start_session", params.requestId, params, with_warning)
        if isinstance(key, Reply):
            return key
        about: dict[str, Json] = {"workflow": params.workflow_id[:128]} if params.workflow_id else {}
        calling, workflow_id = Calling("start_session", about), params.workflow_id or META
        if params.session_token is not None:
            joined = self.shared.join(calling, params.session_token, params.agent_id, call)
            if joined is not None:
                return joined
            recovered: dict[str, Json] = {"recovered": True}
            return self.shared.start(
                calling, params.agent_id, workflow_id, key, flags=recovered, warning=RECOVERED
            )
        parent = None
        if params.parent_session_token is not None:
            pointer = self.ledger.read_token(params.parent_session_token, "ses", "nav", "st")
            head = self.ledger.head_of(pointer)
            parent = head
        return self.shared.start(calling, params.agent_id, workflow_id, key, parent)

    @tool(idempotent=True)
    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome:
        """Orchestrator: leave the current activity, its steps done, and enter the next. The first is
        initialActivity. Refused while a checkpoint is unanswered. Then get_activity.
        """
        entered = self.shared.enter_activity(params, call)
        if isinstance(entered, (Reply, Elicit, Wait)):
            return entered
        if isinstance(entered, NotEntered):
            return of_refusal(entered.refusal, words(entered.refusal), entered.progress.token)
        state, activity = entered.decided.state, entered.activity
        scope = entered.progress.position.plan.scope(state.variables)
        body: dict[str, Json] = {"activity_id": activity.id, "name": interpolate(activity.name, scope)}
        if state.finished:
            body = {"activity_id": state.visit.left_to, **completed(entered.progress.position, state)}
        elif state.replies.remark is not None:
            body["user_note"] = remark_text(state.replies.remark)
        return self.shared.record_entry(entered, body)

    @tool(read_only=True)
    def get_workflow_status(self, params: shared.WithToken, call: Call) -> Outcome:
        """Where the session stands: status, activity, last checkpoint, parent."""
        # Readable at any time, and never traced.
        pointer = self.shared.pointer(params.session_token, "get_workflow_status")
        position = self.ledger.at(pointer)
        with self.ledger.store.reading() as reader:
            body = {**_status(position), **brief_fields(self.ledger.brief(reader, position))}
        last = last_answer(self.ledger, position.session_id)
        if last is not None:
            body["last_checkpoint"] = {
                "activity_id": last.activity,
                "checkpoint_id": last.event.gate,
                "option_id": last.event.option,
                "timestamp": last.event.at // 1000,
            }
        token = session_token(self.ledger, position.handle, position)
        body |= _parent(ancestors(self.ledger, position))
        body["next_action"] = self.shared.next_action(position, call)
        standing = self.ledger.standing(position)
        return json_reply({**body, "session_token": token}, token, Notices(standing))


def _status(position: Position) -> dict[str, Json]:
    state, workflow = position.state, position.plan.workflow
    body: dict[str, Json] = {
        "status": status_of(position),
        "current_activity": state.visit.activity or "none",
        "completed_activities": list(state.route.completed),
        "session_id": position.session_id,
        "workflow": {"id": workflow.id, "version": workflow.version, "title": workflow.name},
    }
    if state.active is not None:
        body["open_checkpoint"] = state.active.gate
    if state.abandoned is not None:
        body["abandoned"] = msgspec.to_builtins(state.abandoned)
    elif state.finished_at is not None:
        body["completed_at"] = state.finished_at // 1000
    if state.children:
        body["children"] = [{"session_id": key, "workflow_id": name} for key, name in state.children.items()]
    return body


def _parent(above: Sequence[Ancestor]) -> dict[str, Json]:
    """Nest the sessions above, each within the one below it."""
    if not above:
        return {}
    nearest, *others = above
    parent: dict[str, Json] = {
        "session_id": nearest.session_id,
        "workflow_id": nearest.workflow_id,
        "activity": nearest.activity,
        "version": nearest.version,
    }
    return {"parent": {**parent, **_parent(others)}}
