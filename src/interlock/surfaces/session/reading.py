"""The reading tools of the session surface: TOON under a header with the token; refused while blocked."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.definition.workflow import Activity
from interlock.core.engine.exits import exits
from interlock.core.hashing import digest_of
from interlock.ledger.runs.shared_sessions import Calling, Said
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.session import params as p
from interlock.surfaces.shared import params as shared
from interlock.surfaces.shared.position import SessionPosition
from interlock.surfaces.shared.replies import failure, told
from interlock.surfaces.shared.session_tools import (
    ActivityDoor,
    Read,
    digest_mark,
    found_text,
    not_found,
    said,
)
from interlock.surfaces.shared.written import as_toon, header_shape, summary_shape

FENCE = "\n\n---\n\n"


class SessionReading(ActivityDoor):
    """The reading tools of the session surface."""

    def get_workflow(self, params: shared.GetWorkflow, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            shape = summary_shape if params.summary else header_shape
            head = self._written(here, shape.__name__, lambda: as_toon(shape(here.workflow)))
            parts = [f"session_token: {here.token}\n{head}"]
            skill = here.documents.skill(here.workflow.primary_skill or "")
            if skill is not None:
                parts.insert(0, skill.text.rstrip())
            if not params.summary:
                parts += [self._activity(here, one).rstrip() for one in here.workflow.activities]
            return _told(here, FENCE.join(parts))

        return self._open_read(params.session_token, Calling("get_workflow"), answer)

    def get_activity(self, params: p.GetActivity, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            if here.activity is None:
                return said(_no_activity(here))
            text = self._activity(here, here.activity)
            mark = digest_mark(digest_of(text.encode()))
            header = "\n".join((f"session_token: {here.token}", f"digest: {mark}", *_standing(here)))
            same = params.known == mark
            return _told(here, f"{header}\nunchanged: true" if same else f"{header}\n\n{text}")

        return self._open_read(params.session_token, Calling("get_activity"), answer)

    def get_skills(self, params: p.GetActivity, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            header = f"scope: workflow\nsession_token: {here.token}"
            ref = here.workflow.primary_skill
            if ref is None:
                return _told(here, header)
            skill = here.documents.skill(ref)
            if skill is None:
                return _told(here, f"{header}\nfailed_skills: {ref}")
            return _told(here, found_text(skill, header, params.known, FENCE))

        return self._open_read(params.session_token, Calling("get_skills"), answer)

    def get_skill(self, params: p.GetSkill, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            ref = _skill_ref(here, params.step_id)
            if isinstance(ref, Reply):
                return said(ref)
            skill = here.documents.skill(ref)
            if skill is None:
                return not_found(
                    here, "Skill", ref, "Go on without it, and tell the user that it is missing."
                )
            return _told(here, found_text(skill, f"session_token: {here.token}", params.known))

        about = {"step": params.step_id} if params.step_id else {}
        return self._open_read(params.session_token, Calling("get_skill", about), answer)

    def get_resource(self, params: p.GetResource, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            found = here.documents.resource(params.resource_id)
            if found is None:
                return not_found(here, "Resource", params.resource_id, _near(here, params.resource_id))
            document = found.document
            header = f"resource_id: {params.resource_id}\nid: {document.id}\nversion: {document.version}"
            return _told(here, f"{header}\nsession_token: {here.token}\n\n{found.text}")

        calling = Calling("get_resource", {"resource": params.resource_id[:128]})
        return self._open_read(params.session_token, calling, answer)

    def _activity(self, here: SessionPosition, activity: Activity) -> str:
        return self._written(here, f"activity {activity.id}", lambda: here.documents.activity(activity))

    def _open_read(self, token: str, calling: Calling, answer: Read) -> Outcome:
        """A read that is refused while a checkpoint is open (rule 15)."""

        def unless_blocked(here: SessionPosition) -> Said[Reply]:
            return said(blocked(here)) if here.state.open is not None else answer(here)

        return self._read(token, calling, unless_blocked)


def blocked(here: SessionPosition) -> Reply:
    """Refuse whatever a worker or orchestrator wants while the user has not decided."""
    assert here.state.open is not None
    gate = here.state.open.gate
    text = (
        f"Blocked: Active checkpoint '{gate}' on activity '{here.state.activity}'. "
        "All tools are gated until the checkpoint is resolved. The orchestrator must call respond_checkpoint "
        "with the checkpoint_handle to clear the gate before any other tool calls can proceed."
    )
    then = "Have the checkpoint answered with respond_checkpoint."
    return failure("DECISION_PENDING", text, then, {"checkpoint": gate}, here.token)


def _told(here: SessionPosition, text: str) -> Said[Reply]:
    warnings = here.warnings()
    return said(told(text, here.token, warnings), warnings)


def _no_activity(here: SessionPosition) -> Reply:
    text = "No activity has been entered yet."
    return failure("NO_ACTIVITY", text, "Call next_activity with the initialActivity.", token=here.token)


def _standing(here: SessionPosition) -> Iterator[str]:
    """What the file cannot say: the ways out as the variables stand, and the answers given so far."""
    if not here.state.finished:
        yield f"ways: {'; '.join(_ways(here))}"
    answers = [f"{key}={option or 'dismissed'}" for key, option in here.state.answers.items()]
    if answers:
        yield f"answered: {', '.join(answers)}"


def _ways(here: SessionPosition) -> Iterator[str]:
    for exit_ in exits(here.at.plan, here.state):
        condition = f" if {exit_.condition}" if exit_.condition else ""
        yield f"{exit_.to}{condition}{' (expected)' if exit_.expected else ''}"


def _skill_ref(here: SessionPosition, step_id: str | None) -> str | Reply:
    activity = here.activity
    if activity is None:
        if step_id is not None:
            return _no_activity(here)
        return here.workflow.primary_skill or _no_skill(here, f"Workflow '{here.workflow.id}'")
    if step_id is None:
        return activity.primary_skill or _no_skill(here, f"Activity '{activity.id}'")
    step = activity.step(step_id)
    if step is None:
        return _no_step(here, activity, step_id)
    return step.skill or _no_skill(here, f"Step '{step_id}'")


def _no_skill(here: SessionPosition, who: str) -> Reply:
    return failure("NO_SKILL", f"{who} has no skill.", "Go on without one.", token=here.token)


def _no_step(here: SessionPosition, activity: Activity, step_id: str) -> Reply:
    listed = ", ".join(step.id for step in activity.steps())
    text = f"Step not found: {step_id} in activity {activity.id}"
    return failure("STEP_NOT_FOUND", text, f"Use one of: {listed}.", token=here.token)


def _near(here: SessionPosition, ref: str) -> str:
    known = [one.ref for one in here.documents.own("resource")]
    same = [one for one in known if one.rpartition("/")[2] == ref]
    return f"Use one of: {', '.join(same or known) or 'none; this workflow has no resources'}."
