"""The reading tools of the session surface: TOON under a header with the token; refused while blocked."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.definition.workflow import Activity
from interlock.core.engine.exits import exits
from interlock.core.hashing import digest_of
from interlock.ledger.runs.shared_sessions import Calling
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.session import params as p
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.position import SessionPosition
from interlock.surfaces.shared.replies import failure, told
from interlock.surfaces.shared.session_tools import SessionTools, digest_mark, found_text
from interlock.surfaces.shared.written import as_toon, header_shape, summary_shape

FENCE = "\n\n---\n\n"


class SessionReading:
    """The reading tools of the session surface."""

    def __init__(self, tools: SessionTools) -> None:
        self._tools = tools

    def get_workflow(self, params: shared.GetWorkflow, call: Call) -> Outcome:
        position = self._unblocked(params.session_token, Calling("get_workflow"))
        if isinstance(position, Reply):
            return position
        shape = summary_shape if params.summary else header_shape
        head = self._tools.written(position, shape.__name__, lambda: as_toon(shape(position.workflow)))
        parts = [f"session_token: {position.token}\n{head}"]
        skill = position.documents.skill(position.workflow.primary_skill or "")
        if skill is not None:
            parts.insert(0, skill.text.rstrip())
        if not params.summary:
            parts += [
                self._activity(position, activity).rstrip() for activity in position.workflow.activities
            ]
        return _told(position, FENCE.join(parts))

    def get_activity(self, params: p.GetActivity, call: Call) -> Outcome:
        position = self._unblocked(params.session_token, Calling("get_activity"))
        if isinstance(position, Reply):
            return position
        if position.activity is None:
            return position.answer(_no_activity(position))
        text = self._activity(position, position.activity)
        mark = digest_mark(digest_of(text.encode()))
        header = "\n".join((f"session_token: {position.token}", f"digest: {mark}", *_situation(position)))
        same = params.known == mark
        return _told(position, f"{header}\nunchanged: true" if same else f"{header}\n\n{text}")

    def get_skills(self, params: p.GetActivity, call: Call) -> Outcome:
        position = self._unblocked(params.session_token, Calling("get_skills"))
        if isinstance(position, Reply):
            return position
        header = f"scope: workflow\nsession_token: {position.token}"
        ref = position.workflow.primary_skill
        if ref is None:
            return _told(position, header)
        skill = position.documents.skill(ref)
        if skill is None:
            return _told(position, f"{header}\nfailed_skills: {ref}")
        return _told(position, found_text(skill, header, params.known, FENCE))

    def get_skill(self, params: p.GetSkill, call: Call) -> Outcome:
        about = {"step": params.step_id} if params.step_id else {}
        position = self._unblocked(params.session_token, Calling("get_skill", about))
        if isinstance(position, Reply):
            return position
        ref = _skill_ref(position, params.step_id)
        if isinstance(ref, Reply):
            return position.answer(ref)
        skill = position.documents.skill(ref)
        if skill is None:
            return position.not_found("Skill", ref, "Go on without it, and tell the user that it is missing.")
        return _told(position, found_text(skill, f"session_token: {position.token}", params.known))

    def get_resource(self, params: p.GetResource, call: Call) -> Outcome:
        calling = Calling("get_resource", {"resource": params.resource_id[:128]})
        position = self._unblocked(params.session_token, calling)
        if isinstance(position, Reply):
            return position
        resource = position.documents.resource(params.resource_id)
        if resource is None:
            return position.not_found("Resource", params.resource_id, _near(position, params.resource_id))
        document = resource.document
        header = f"resource_id: {params.resource_id}\nid: {document.id}\nversion: {document.version}"
        return _told(position, f"{header}\nsession_token: {position.token}\n\n{resource.text}")

    def _activity(self, position: SessionPosition, activity: Activity) -> str:
        return self._tools.written(
            position, f"activity {activity.id}", lambda: position.documents.activity(activity)
        )

    def _unblocked(self, token: str, calling: Calling) -> SessionPosition | Reply:
        """Open the head for a read, which is refused while a checkpoint is open (rule 15)."""
        position = self._tools.reading(token, calling)
        if isinstance(position, Reply) or position.state.open is None:
            return position
        return position.answer(_blocked(position, position.state.open.gate))


def _blocked(position: SessionPosition, gate: str) -> Reply:
    text = (
        f"Blocked: Active checkpoint '{gate}' on activity '{position.state.activity}'. "
        "All tools are gated until the checkpoint is resolved. The orchestrator must call respond_checkpoint "
        "with the checkpoint_handle to clear the gate before any other tool calls can proceed."
    )
    then = "Have the checkpoint answered with respond_checkpoint."
    return failure("DECISION_PENDING", text, then, {"checkpoint": gate}, position.token)


def _told(position: SessionPosition, text: str) -> Reply:
    warnings = position.warnings()
    return position.answer(told(text, position.token, warnings), warnings)


def _no_activity(position: SessionPosition) -> Reply:
    text = "No activity has been entered yet."
    return failure("NO_ACTIVITY", text, "Call next_activity with the initialActivity.", token=position.token)


def _situation(position: SessionPosition) -> Iterator[str]:
    """What the file cannot say: the exits as the variables are now, and the answers given so far."""
    if not position.state.finished:
        listed = (
            f"{exit_.to}{f' if {exit_.condition}' if exit_.condition else ''}"
            f"{' (expected)' if exit_.expected else ''}"
            for exit_ in exits(position.position.plan, position.state)
        )
        yield f"ways: {'; '.join(listed)}"
    answers = [f"{key}={option or 'dismissed'}" for key, option in position.state.answers.items()]
    if answers:
        yield f"answered: {', '.join(answers)}"


def _skill_ref(position: SessionPosition, step_id: str | None) -> str | Reply:
    activity = position.activity
    if activity is None:
        if step_id is not None:
            return _no_activity(position)
        return position.workflow.primary_skill or _no_skill(position, f"Workflow '{position.workflow.id}'")
    if step_id is None:
        return activity.primary_skill or _no_skill(position, f"Activity '{activity.id}'")
    step = activity.step(step_id)
    if step is None:
        listed = ", ".join(step.id for step in activity.steps())
        text = f"Step not found: {step_id} in activity {activity.id}"
        return failure("STEP_NOT_FOUND", text, f"Use one of: {listed}.", token=position.token)
    return step.skill or _no_skill(position, f"Step '{step_id}'")


def _no_skill(position: SessionPosition, who: str) -> Reply:
    return failure("NO_SKILL", f"{who} has no skill.", "Go on without one.", token=position.token)


def _near(position: SessionPosition, ref: str) -> str:
    known = [document.ref for document in position.documents.own("resource")]
    same = [name for name in known if name.rpartition("/")[2] == ref]
    return f"Use one of: {', '.join(same or known) or 'none; this workflow has no resources'}."
