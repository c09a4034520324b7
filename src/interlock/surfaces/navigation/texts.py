"""Skills, resources and templates, each by name or number; universal skills are those of `meta` (rule 36)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Library, Loaded
from interlock.core.definition.workflow import Document, DocumentKind
from interlock.core.run.surface_policy import NAVIGATION
from interlock.core.values import Json
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.errors import not_found, not_loaded
from interlock.surfaces.navigation.render import body_reply
from interlock.surfaces.parameters import NoParams
from interlock.surfaces.shared.documents import META, Documents
from interlock.surfaces.tool import tool


class Texts:
    """The skill, resource, template and discovery tools."""

    def __init__(self, library: Library) -> None:
        self.library = library

    @tool(read_only=True, uses_store=False)
    def get_skills(self, params: NoParams, call: Call) -> Outcome:
        """Summarize all skills and what they enable."""
        body: dict[str, Json] = {
            "description": "All skills with what they enable; universal ones serve every workflow.",
            "usage": "Load a skill with get_skill when an activity or a step names it.",
            "universal": [_summary(loaded, skill) for loaded in self._meta() for skill in _skills(loaded)],
            "workflow_specific": {
                loaded.workflow.id: [_summary(loaded, skill) for skill in skills]
                for loaded in self._others()
                if (skills := self._specific_skills(loaded))
            },
        }
        return body_reply(body)

    @tool(read_only=True, uses_store=False)
    def list_skills(self, params: p.ListSkills, call: Call) -> Outcome:
        """List universal skills, and a workflow's own."""
        universal: list[Json] = [skill.ref for loaded in self._meta() for skill in _skills(loaded)]
        body: dict[str, Json] = {"universal": universal}
        if params.workflow_id is None:
            return body_reply(body)
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        specific: list[Json] = [skill.ref for skill in self._specific_skills(loaded)]
        return body_reply({**body, "workflow_specific": specific})

    @tool(read_only=True, uses_store=False)
    def get_skill(self, params: p.GetSkill, call: Call) -> Outcome:
        """Get a skill: the workflow's own, else universal."""
        loaded = self.library.load(params.workflow_id or META)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        skill = Documents.of(loaded, self.library, NAVIGATION.name).skill(params.skill_id)
        if skill is None:
            known = [skill.ref for skill in _skills(loaded)]
            return not_found("SKILL_NOT_FOUND", f"Skill not found: {params.skill_id}", known)
        return Reply(skill.text)

    @tool(read_only=True, uses_store=False)
    def list_workflow_resources(self, params: p.OfWorkflow, call: Call) -> Outcome:
        """List a workflow's resources."""
        return self._document_list(params, "resource", "resources")

    @tool(read_only=True, uses_store=False)
    def get_resource(self, params: p.OfIndex, call: Call) -> Outcome:
        """Get a resource by index, e.g. 03."""
        return self._document_text(params, "resource", "RESOURCE_NOT_FOUND")

    @tool(read_only=True, uses_store=False)
    def list_templates(self, params: p.OfWorkflow, call: Call) -> Outcome:
        """List a workflow's templates."""
        return self._document_list(params, "template", "templates")

    @tool(read_only=True, uses_store=False)
    def get_template(self, params: p.OfIndex, call: Call) -> Outcome:
        """Get a template by index."""
        return self._document_text(params, "template", "TEMPLATE_NOT_FOUND")

    @tool(read_only=True, uses_store=False)
    def discover_resources(self, params: NoParams, call: Call) -> Outcome:
        """List every workflow, activity, skill, resource and template by id."""
        workflows = [*self._meta(), *self._others()]
        body: dict[str, Json] = {
            "workflows": [entry.id for entry in self.library.listing().entries],
            "activities": {
                loaded.workflow.id: [activity.id for activity in loaded.workflow.activities]
                for loaded in workflows
            },
            "resources": _refs_by_workflow(workflows, "resource"),
            "templates": _refs_by_workflow(workflows, "template"),
            "skills": _refs_by_workflow(workflows, "skill"),
        }
        return body_reply(body)

    def _document_list(self, params: p.OfWorkflow, kind: DocumentKind, name: str) -> Outcome:
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        documents: list[Json] = [
            {
                "index": document.ref,
                "name": document.id,
                "title": document.title,
                "format": "toon" if document.format == "toon" else "markdown",
            }
            for document in _own_documents(loaded, kind)
        ]
        return body_reply({"workflow_id": loaded.workflow.id, name: documents})

    def _document_text(self, params: p.OfIndex, kind: DocumentKind, code: str) -> Outcome:
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        document = Documents.of(loaded, self.library, NAVIGATION.name).find(kind, str(params.index))
        if document is None:
            known = [document.ref for document in _own_documents(loaded, kind)]
            text = f"{kind.capitalize()} not found: {params.index} in workflow {loaded.workflow.id}"
            return not_found(code, text, known)
        return Reply(document.text)

    def _specific_skills(self, loaded: Loaded) -> list[Document]:
        """A workflow's own skills, without those it borrows from `meta`."""
        if loaded.workflow.id == META:
            return []
        return [skill for skill in _skills(loaded) if skill.owner != META]

    def _meta(self) -> Iterator[Loaded]:
        loaded = self.library.load(META)
        if isinstance(loaded, Loaded):
            yield loaded

    def _others(self) -> Iterator[Loaded]:
        for entry in self.library.listing().entries:
            loaded = self.library.load(entry.id) if entry.id != META else None
            if isinstance(loaded, Loaded):
                yield loaded


def _own_documents(loaded: Loaded, kind: DocumentKind) -> list[Document]:
    """A workflow's own documents; a reference with a slash belongs to another."""
    documents = loaded.workflow.documents
    return [document for document in documents if document.kind == kind and "/" not in document.ref]


def _skills(loaded: Loaded) -> list[Document]:
    return _own_documents(loaded, "skill")


def _refs_by_workflow(workflows: list[Loaded], kind: DocumentKind) -> dict[str, Json]:
    return {
        loaded.workflow.id: [document.ref for document in documents]
        for loaded in workflows
        if (documents := _own_documents(loaded, kind))
    }


def _summary(loaded: Loaded, skill: Document) -> dict[str, Json]:
    """Summarize a skill; its capability is read from the text, where the file can be read at all."""
    from interlock.authoring.diagnostics.codes import Report
    from interlock.authoring.text.formats import parse_text

    parsed = parse_text("skill", loaded.text(skill.digest), "toon", Report())
    value = parsed.value if parsed is not None else None
    capability = value.get("capability") if isinstance(value, dict) else None
    parameters: dict[str, Json] = {"skill_id": skill.ref, "workflow_id": loaded.workflow.id}
    return {
        "id": skill.ref,
        "capability": capability if capability and isinstance(capability, str) else skill.title,
        "next_action": {"tool": "get_skill", "parameters": parameters},
    }
