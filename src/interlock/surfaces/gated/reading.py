"""What agents read through the gated surface: JSON, skills as objects with references to their resources."""

from __future__ import annotations

from interlock.core.hashing import digest_of
from interlock.core.values import Json
from interlock.ledger.runs.shared_sessions import Calling
from interlock.surfaces.call import Call, Outcome
from interlock.surfaces.gated import params as p
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.documents import FoundDocument
from interlock.surfaces.shared.reading_call import ReadingCall, asked_skill
from interlock.surfaces.shared.replies import as_json
from interlock.surfaces.shared.session_tools import SessionTools, digest_mark
from interlock.surfaces.shared.workflow_shapes import summary_shape, workflow_shape
from interlock.surfaces.tool import tool

UNCHANGED: dict[str, Json] = {
    "unchanged": True,
    "next_action": "full: true sends it again.",
}


class GatedReading:
    """The reading tools of the gated surface; none of them waits for a checkpoint (rule 15)."""

    def __init__(self, tools: SessionTools) -> None:
        self._tools = tools

    @tool(read_only=True)
    def get_workflow(self, params: shared.GetWorkflow, call: Call) -> Outcome:
        """Rules, variables, modes, initialActivity and activities; summary=false gives all of it."""
        reading = self._tools.reading_call(params.session_token, Calling("get_workflow"))
        workflow = reading.workflow
        shape = summary_shape(workflow) if params.summary else workflow_shape(workflow)
        if params.summary and (model := workflow.extra.get("executionModel")):
            shape["executionModel"] = model
        mark = digest_mark(digest_of(as_json(shape).encode()))
        if reading.holds(mark, full=params.full):
            return reading.json_answer({"id": workflow.id, "digest": mark, **UNCHANGED})
        return reading.json_answer({**shape, "digest": mark})

    @tool(read_only=True)
    def get_skills(self, params: p.GetSkills, call: Call) -> Outcome:
        """The workflow's skills."""
        reading = self._tools.reading_call(params.session_token, Calling("get_skills"))
        skills: dict[str, Json] = {}
        failed: list[Json] = []
        for ref in reading.workflow.skills:
            skill = reading.documents.skill(ref)
            if skill is None:
                failed.append(ref)
            else:
                skills[skill.document.id] = _skill_json(reading, skill, full=params.full)
        body: dict[str, Json] = {"scope": "workflow", "skills": skills}
        return reading.json_answer({**body, "failed_skills": failed} if failed else body)

    @tool(read_only=True)
    def get_skill(self, params: shared.GetSessionSkill, call: Call) -> Outcome:
        """The skill of a step, or of the activity."""
        about = {"step": params.step_id[:128]} if params.step_id else {}
        reading = self._tools.reading_call(params.session_token, Calling("get_skill", about))
        asked = asked_skill(reading, params)
        reading, skill = asked
        return reading.json_answer({"skill": _skill_json(reading, skill, full=params.full)})

    @tool(read_only=True)
    def get_resource(self, params: p.GetResource, call: Call) -> Outcome:
        """A resource's text."""
        ref = params.resource_index
        calling = Calling("get_resource", {"resource": ref[:128]})
        reading = self._tools.reading_call(params.session_token, calling)
        resource = reading.documents.resource(ref)
        if resource is None:
            known = ", ".join(document.ref for document in reading.documents.own("resource")) or "none"
            raise reading.refused("NOT_FOUND", f"Resource not found: {ref}", f"Use one of: {known}.")
        named, mark = _reference(resource, ref), digest_mark(resource.document.digest)
        if reading.holds(mark, full=params.full):
            return reading.json_answer({"resource": {**named, "digest": mark, **UNCHANGED}})
        return reading.json_answer({"resource": {**named, "content": resource.text}})


def _skill_json(reading: ReadingCall, skill: FoundDocument, *, full: bool) -> dict[str, Json]:
    """Return a skill as an object; its resources by reference, without their texts."""
    mark = digest_mark(skill.document.digest)
    if reading.holds(mark, full=full):
        return {"id": skill.document.id, "digest": mark, **UNCHANGED}
    fields = _decoded(skill.text)
    named = fields.pop("resources", None)
    owner = skill.document.ref.rpartition("/")[0]
    references: list[Json] = []
    for ref in map(str, named) if isinstance(named, list) else ():
        # A bare number in a borrowed skill means a resource of the skill's owner.
        index = ref if "/" in ref or not owner else f"{owner}/{ref}"
        resource = reading.documents.resource(index)
        if resource is not None:
            references.append(_reference(resource, index))
    body: dict[str, Json] = {**fields, "digest": mark}
    return {**body, "_resources": references} if references else body


def _reference(resource: FoundDocument, index: str) -> dict[str, Json]:
    return {"index": index, "id": resource.document.id, "version": resource.document.version}


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
