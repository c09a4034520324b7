"""Skills, resources and templates, each by name or number; universal skills are those of `meta` (rule 36)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import Library, Loaded
from interlock.core.definition.workflow import Document, DocumentKind
from interlock.core.values import Json
from interlock.surfaces.call import Call, Outcome, Reply
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.errors import not_found, not_loaded
from interlock.surfaces.navigation.render import shown
from interlock.surfaces.shared.documents import META, Documents
from interlock.surfaces.strict_params import NoParams


class Texts:
    """The skill, resource, template and discovery tools."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def get_skills(self, params: NoParams, call: Call) -> Outcome:
        body: dict[str, Json] = {
            "description": "All skills with what they enable; universal ones serve every workflow.",
            "usage": "Load a skill with get_skill when an activity or a step names it.",
            "universal": [_summary(loaded, one) for loaded in self._meta() for one in _skills(loaded)],
            "workflow_specific": {
                loaded.workflow.id: [_summary(loaded, one) for one in own]
                for loaded in self._others()
                if (own := self._specific(loaded))
            },
        }
        return shown(body)

    def list_skills(self, params: p.ListSkills, call: Call) -> Outcome:
        universal: list[Json] = [one.ref for loaded in self._meta() for one in _skills(loaded)]
        body: dict[str, Json] = {"universal": universal}
        if params.workflow_id is None:
            return shown(body)
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        return shown({**body, "workflow_specific": [one.ref for one in self._specific(loaded)]})

    def get_skill(self, params: p.GetSkill, call: Call) -> Outcome:
        loaded = self.library.load(params.workflow_id or META)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        found = Documents.of(loaded, self.library).skill(params.skill_id)
        if found is None:
            listed = [one.ref for one in _skills(loaded)]
            return not_found("SKILL_NOT_FOUND", f"Skill not found: {params.skill_id}", listed)
        return Reply(found.text)

    def list_workflow_resources(self, params: p.OfWorkflow, call: Call) -> Outcome:
        return self._listed(params, "resource", "resources")

    def get_resource(self, params: p.OfIndex, call: Call) -> Outcome:
        return self._text(params, "resource", "RESOURCE_NOT_FOUND")

    def list_templates(self, params: p.OfWorkflow, call: Call) -> Outcome:
        return self._listed(params, "template", "templates")

    def get_template(self, params: p.OfIndex, call: Call) -> Outcome:
        return self._text(params, "template", "TEMPLATE_NOT_FOUND")

    def discover_resources(self, params: NoParams, call: Call) -> Outcome:
        everything = [*self._meta(), *self._others()]
        body: dict[str, Json] = {
            "workflows": [one.id for one in self.library.listing().entries],
            "activities": {
                one.workflow.id: [each.id for each in one.workflow.activities] for one in everything
            },
            "resources": _held(everything, "resource"),
            "templates": _held(everything, "template"),
            "skills": _held(everything, "skill"),
        }
        return shown(body)

    def _listed(self, params: p.OfWorkflow, kind: DocumentKind, name: str) -> Outcome:
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        return shown({"workflow_id": loaded.workflow.id, name: [_line(one) for one in _own(loaded, kind)]})

    def _text(self, params: p.OfIndex, kind: DocumentKind, code: str) -> Outcome:
        loaded = self.library.load(params.workflow_id)
        if isinstance(loaded, Diagnostic):
            return not_loaded(loaded)
        found = Documents.of(loaded, self.library).find(kind, str(params.index))
        if found is None:
            listed = [one.ref for one in _own(loaded, kind)]
            text = f"{kind.capitalize()} not found: {params.index} in workflow {loaded.workflow.id}"
            return not_found(code, text, listed)
        return Reply(found.text)

    def _specific(self, loaded: Loaded) -> list[Document]:
        """A workflow's own skills, without those it borrows from `meta`."""
        borrowed = {one.digest for meta in self._meta() for one in _skills(meta)}
        if loaded.workflow.id == META:
            return []
        return [one for one in _skills(loaded) if one.digest not in borrowed and "/" not in one.ref]

    def _meta(self) -> Iterator[Loaded]:
        loaded = self.library.load(META)
        if isinstance(loaded, Loaded):
            yield loaded

    def _others(self) -> Iterator[Loaded]:
        for entry in self.library.listing().entries:
            loaded = self.library.load(entry.id) if entry.id != META else None
            if isinstance(loaded, Loaded):
                yield loaded


def _own(loaded: Loaded, kind: DocumentKind) -> list[Document]:
    """A workflow's own documents; a reference with a slash belongs to another."""
    return [one for one in loaded.workflow.documents if one.kind == kind and "/" not in one.ref]


def _skills(loaded: Loaded) -> list[Document]:
    return _own(loaded, "skill")


def _held(everything: list[Loaded], kind: DocumentKind) -> dict[str, Json]:
    return {
        one.workflow.id: [document.ref for document in documents]
        for one in everything
        if (documents := _own(one, kind))
    }


def _line(document: Document) -> dict[str, Json]:
    return {
        "index": document.ref,
        "name": document.id,
        "title": document.title,
        "format": "toon" if document.format == "toon" else "markdown",
    }


def _summary(loaded: Loaded, document: Document) -> dict[str, Json]:
    """A skill in one line; its capability is read from the text, where the file can be read at all."""
    following: dict[str, Json] = {"skill_id": document.ref, "workflow_id": loaded.workflow.id}
    return {
        "id": document.ref,
        "capability": _capability(loaded.text(document.digest)) or document.title,
        "next_action": {"tool": "get_skill", "parameters": following},
    }


def _capability(text: str) -> str | None:
    from interlock.authoring.diagnostics.codes import Report
    from interlock.authoring.text.formats import parse

    parsed = parse("skill", text, "toon", Report())
    value = parsed.value if parsed is not None else None
    found = value.get("capability") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None
