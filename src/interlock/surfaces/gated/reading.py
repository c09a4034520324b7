"""What agents read through the gated surface: JSON, skills as objects with references to their resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock.core.values import Json
from interlock.ledger.runs.shared_sessions import Calling
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.gated import params as p
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.documents import FoundDocument
from interlock.surfaces.shared.position import SessionPosition
from interlock.surfaces.shared.replies import failure, told_json
from interlock.surfaces.shared.session_tools import SessionTools, digest_mark
from interlock.surfaces.shared.written import activity_shape, header_shape, summary_shape


class GatedReading:
    """The reading tools of the gated surface; none of them waits for a checkpoint (rule 15)."""

    def __init__(self, tools: SessionTools) -> None:
        self._tools = tools

    def get_workflow(self, params: shared.GetWorkflow, call: Call) -> Outcome:
        position = self._tools.reading(params.session_token, Calling("get_workflow"))
        if isinstance(position, Reply):
            return position
        if params.summary:
            return told_at(position, summary_shape(position.workflow) | _model(position))
        activities: list[Json] = [activity_shape(activity) for activity in position.workflow.activities]
        return told_at(position, header_shape(position.workflow) | {"activities": activities})

    def get_skills(self, params: p.GetSkills, call: Call) -> Outcome:
        position = self._tools.reading(params.session_token, Calling("get_skills"))
        if isinstance(position, Reply):
            return position
        skills: dict[str, Json] = {}
        failed: list[Json] = []
        for ref in _workflow_skills(position):
            skill = position.documents.skill(ref)
            if skill is None:
                failed.append(ref)
            else:
                skills[skill.document.id] = _skill(position, skill, params.known or [])
        body: dict[str, Json] = {"scope": "workflow", "skills": skills}
        return told_at(position, {**body, "failed_skills": failed} if failed else body)

    def get_skill(self, params: p.GetSkill, call: Call) -> Outcome:
        calling = Calling("get_skill", {"step": params.step_id[:128]})
        position = self._tools.reading(params.session_token, calling)
        if isinstance(position, Reply):
            return position
        ref = _step_skill(position, params.step_id)
        if isinstance(ref, Reply):
            return position.answer(ref)
        skill = position.documents.skill(ref)
        if skill is None:
            return position.not_found("Skill", ref, "Go on without it, and tell the user.")
        return told_at(position, {"skill": _skill(position, skill, [params.known or ""])})

    def get_resource(self, params: p.GetResource, call: Call) -> Outcome:
        calling = Calling("get_resource", {"resource": params.resource_index[:128]})
        position = self._tools.reading(params.session_token, calling)
        if isinstance(position, Reply):
            return position
        resource = position.documents.resource(params.resource_index)
        if resource is None:
            known = ", ".join(document.ref for document in position.documents.own("resource")) or "none"
            return position.not_found("Resource", params.resource_index, f"Use one of: {known}.")
        reference = {**_reference(resource), "index": params.resource_index}
        return told_at(position, {"resource": {**reference, "content": resource.text}})


def told_at(position: SessionPosition, body: Mapping[str, Json]) -> Reply:
    warnings = position.warnings()
    reply = told_json({**body, "session_token": position.token}, position.token, warnings)
    return position.answer(reply, warnings)


def _model(position: SessionPosition) -> dict[str, Json]:
    model = position.workflow.extra.get("executionModel")
    return {"executionModel": model} if model else {}


def _workflow_skills(position: SessionPosition) -> Iterator[str]:
    """The skills that a workflow names for itself; none named means its primary one."""
    named = position.workflow.extra.get("skills")
    if isinstance(named, list):
        yield from (str(one) for one in named)
    elif position.workflow.primary_skill:
        yield position.workflow.primary_skill


def _step_skill(position: SessionPosition, step_id: str) -> str | Reply:
    activity = position.activity
    if activity is None:
        text = "No activity has been entered yet."
        return failure("NO_ACTIVITY", text, "Call next_activity first.", token=position.token)
    step = activity.step(step_id)
    if step is None:
        listed = ", ".join(one.id for one in activity.steps())
        text = f"Step not found: {step_id} in activity {activity.id}"
        return failure("STEP_NOT_FOUND", text, f"Use one of: {listed}.", token=position.token)
    if step.skill is None:
        return failure(
            "NO_SKILL", f"Step '{step_id}' has no skill.", "Go on without one.", token=position.token
        )
    return step.skill


def _skill(position: SessionPosition, found: FoundDocument, known: list[str]) -> dict[str, Json]:
    """A skill as an object; its resources by reference, without their texts."""
    mark = digest_mark(found.document.digest)
    if mark in known:
        return {"id": found.document.id, "digest": mark, "unchanged": True}
    fields = _decoded(found.text)
    named = fields.pop("resources", None)
    references = (
        [ref for one in named for ref in _references(position, found, str(one))]
        if isinstance(named, list)
        else []
    )
    body: dict[str, Json] = {**fields, "digest": mark}
    return {**body, "_resources": references} if references else body


def _references(position: SessionPosition, found: FoundDocument, ref: str) -> Iterator[dict[str, Json]]:
    """A bare number in a borrowed skill means a resource of the skill's owner."""
    owner = found.document.ref.rpartition("/")[0]
    full = ref if "/" in ref or not owner else f"{owner}/{ref}"
    resource = position.documents.resource(full)
    if resource is not None:
        yield {**_reference(resource), "index": full}


def _reference(found: FoundDocument) -> dict[str, Json]:
    return {"index": found.document.ref, "id": found.document.id, "version": found.document.version}


def _decoded(text: str) -> dict[str, Json]:
    """Read TOON strictly, then leniently; a text that is neither is passed on as it is."""
    import toon_format

    for strict in (True, False):
        try:
            value = toon_format.decode(text, strict=strict)
        except (toon_format.ToonDecodeError, ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return dict(value)
    return {"text": text}
