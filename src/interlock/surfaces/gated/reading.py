"""What agents read through the gated surface: JSON, skills as objects with references to their resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock.core.values import Json
from interlock.ledger.runs.shared_sessions import Calling, Said
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.gated import params as p
from interlock.surfaces.shared import params as shared
from interlock.surfaces.shared.documents import FoundDocument
from interlock.surfaces.shared.position import SessionPosition
from interlock.surfaces.shared.replies import failure, told_json
from interlock.surfaces.shared.session_tools import ActivityDoor, digest_mark, not_found, said
from interlock.surfaces.shared.written import activity_shape, header_shape, summary_shape


class GatedReading(ActivityDoor):
    """The reading tools of the gated surface; none of them waits for a checkpoint (rule 15)."""

    def get_workflow(self, params: shared.GetWorkflow, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            if params.summary:
                return told_here(here, summary_shape(here.workflow) | _model(here))
            activities: list[Json] = [activity_shape(one) for one in here.workflow.activities]
            return told_here(here, header_shape(here.workflow) | {"activities": activities})

        return self._read(params.session_token, Calling("get_workflow"), answer)

    def get_skills(self, params: p.GetSkills, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            skills: dict[str, Json] = {}
            failed: list[Json] = []
            for ref in _workflow_skills(here):
                found = here.documents.skill(ref)
                if found is None:
                    failed.append(ref)
                else:
                    skills[found.document.id] = _skill(here, found, params.known or [])
            body: dict[str, Json] = {"scope": "workflow", "skills": skills}
            return told_here(here, {**body, "failed_skills": failed} if failed else body)

        return self._read(params.session_token, Calling("get_skills"), answer)

    def get_skill(self, params: p.GetSkill, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            ref = _step_skill(here, params.step_id)
            if isinstance(ref, Reply):
                return said(ref)
            found = here.documents.skill(ref)
            if found is None:
                return not_found(here, "Skill", ref, "Go on without it, and tell the user.")
            return told_here(here, {"skill": _skill(here, found, [params.known or ""])})

        calling = Calling("get_skill", {"step": params.step_id[:128]})
        return self._read(params.session_token, calling, answer)

    def get_resource(self, params: p.GetResource, call: Call) -> Outcome:
        def answer(here: SessionPosition) -> Said[Reply]:
            found = here.documents.resource(params.resource_index)
            if found is None:
                known = ", ".join(one.ref for one in here.documents.own("resource")) or "none"
                return not_found(here, "Resource", params.resource_index, f"Use one of: {known}.")
            reference = {**_reference(found), "index": params.resource_index}
            return told_here(here, {"resource": {**reference, "content": found.text}})

        calling = Calling("get_resource", {"resource": params.resource_index[:128]})
        return self._read(params.session_token, calling, answer)


def told_here(here: SessionPosition, body: Mapping[str, Json]) -> Said[Reply]:
    warnings = here.warnings()
    return said(told_json({**body, "session_token": here.token}, here.token, warnings), warnings)


def _model(here: SessionPosition) -> dict[str, Json]:
    model = here.workflow.extra.get("executionModel")
    return {"executionModel": model} if model else {}


def _workflow_skills(here: SessionPosition) -> Iterator[str]:
    """The skills that a workflow names for itself; none named means its primary one."""
    named = here.workflow.extra.get("skills")
    if isinstance(named, list):
        yield from (str(one) for one in named)
    elif here.workflow.primary_skill:
        yield here.workflow.primary_skill


def _step_skill(here: SessionPosition, step_id: str) -> str | Reply:
    activity = here.activity
    if activity is None:
        text = "No activity has been entered yet."
        return failure("NO_ACTIVITY", text, "Call next_activity first.", token=here.token)
    step = activity.step(step_id)
    if step is None:
        listed = ", ".join(one.id for one in activity.steps())
        text = f"Step not found: {step_id} in activity {activity.id}"
        return failure("STEP_NOT_FOUND", text, f"Use one of: {listed}.", token=here.token)
    if step.skill is None:
        return failure("NO_SKILL", f"Step '{step_id}' has no skill.", "Go on without one.", token=here.token)
    return step.skill


def _skill(here: SessionPosition, found: FoundDocument, known: list[str]) -> dict[str, Json]:
    """A skill as an object; its resources by reference, without their texts."""
    mark = digest_mark(found.document.digest)
    if mark in known:
        return {"id": found.document.id, "digest": mark, "unchanged": True}
    fields = _decoded(found.text)
    named = fields.pop("resources", None)
    references = (
        [ref for one in named for ref in _references(here, found, str(one))]
        if isinstance(named, list)
        else []
    )
    body: dict[str, Json] = {**fields, "digest": mark}
    return {**body, "_resources": references} if references else body


def _references(here: SessionPosition, found: FoundDocument, ref: str) -> Iterator[dict[str, Json]]:
    """A bare number in a borrowed skill means a resource of the skill's owner."""
    owner = found.document.ref.rpartition("/")[0]
    full = ref if "/" in ref or not owner else f"{owner}/{ref}"
    resource = here.documents.resource(full)
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
