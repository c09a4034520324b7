"""The texts that belong to a workflow, found as agents ask for them (rule 36).

A skill is the workflow's own, else that of the `meta` of its source, else that of the bundled `meta`; a
reference `workflow/NN` names its owner. What a run is pinned to comes before what the library holds today.

In texts that come with the product a list entry, an entry of a mapping or a line of Markdown may begin with
the names of surfaces, as in `session and gated: …`; other surfaces do not read it. In other texts such a
beginning may mean anything, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from msgspec import Struct

from interlock.authoring.compile.ids import DOTLESS, NAMESPACED
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.core.definition.workflow import Activity, Document, DocumentKind, Workflow
from interlock.core.values import MISSING, Json, Missing

META = "meta"
WHOLE = ("when", "cause")  # a tool or an error of another surface is left out whole
_NAMES = r"(?:execution|session|gated|navigation|lookup)"
_MARK = re.compile(rf"({_NAMES}(?:(?:, | and ){_NAMES})*): ", re.IGNORECASE)
_LINE = re.compile(rf"(\s*(?:- |\d+\. )){_MARK.pattern}(.*)", re.IGNORECASE | re.DOTALL)


class FoundDocument(Struct, frozen=True):
    """A document with its text, and the workflow that it was found in."""

    document: Document
    text: str
    owner: str


class Documents:
    """The documents of one workflow; those of others by name. Bundled ones are for one surface."""

    def __init__(
        self, workflow: Workflow, text: Callable[[str], str], library: Library, surface: str
    ) -> None:
        self.workflow = workflow
        self.surface = surface
        self._text = text
        self._library = library

    @classmethod
    def of(cls, loaded: Loaded, library: Library, surface: str) -> Documents:
        return cls(loaded.workflow, loaded.text, library, surface)

    def own(self, kind: DocumentKind) -> list[Document]:
        """List what the workflow itself holds or borrows by name."""
        return [document for document in self.workflow.documents if document.kind == kind]

    def find(self, kind: DocumentKind, ref: str) -> FoundDocument | None:
        """Find a document by id or number, bare or as `workflow/ref`."""
        document = self._own_document(kind, ref)
        if document is not None:
            return self._found(document, self._text(document.digest), self.workflow.id)
        owner, _, name = ref.rpartition("/")
        if owner == self.workflow.id:
            return self.find(kind, name)
        owner = owner or (META if kind == "skill" else "")
        if not (DOTLESS.fullmatch(owner) or NAMESPACED.fullmatch(owner)):
            return None
        for library in [self._library, _bundled()] if owner == META else [self._library]:
            lender = library.load(owner)
            if isinstance(lender, Diagnostic):
                continue
            document = Documents.of(lender, library, self.surface)._own_document(kind, name)
            if document is not None:
                return self._found(document, lender.text(document.digest), lender.workflow.id)
        return None

    def _found(self, document: Document, text: str, owner: str) -> FoundDocument:
        if document.digest in _bundled_digests():
            text = for_surface(text, self.surface, is_toon=document.format == "toon")
        return FoundDocument(document, text, owner)

    def skill(self, ref: str) -> FoundDocument | None:
        return self.find("skill", ref)

    def resource(self, ref: str) -> FoundDocument | None:
        return self.find("resource", ref)

    def activity(self, activity: Activity) -> str:
        """Return the activity's own TOON file, or the compiled activity written as one."""
        if activity.document is not None:
            return self._text(activity.document)
        from interlock.surfaces.shared.workflow_shapes import activity_shape, as_toon

        return as_toon(activity_shape(activity))

    def _own_document(self, kind: DocumentKind, ref: str) -> Document | None:
        documents = self.own(kind)
        exact = next((document for document in documents if document.ref == ref), None)
        return exact or next((document for document in documents if _matches(document, ref)), None)


@cache
def _bundled() -> Library:
    """What comes with the product, whatever a source has put in its place; compiled once a process."""
    return Library([BUNDLED])


@cache
def _bundled_digests() -> frozenset[str]:
    """The texts of the bundled `meta`, whatever source they are found in."""
    loaded = _bundled().load(META)
    return (
        frozenset(document.digest for document in loaded.workflow.documents)
        if isinstance(loaded, Loaded)
        else frozenset()
    )


def _matches(document: Document, ref: str) -> bool:
    """Tell whether a reference means the document; 5, 05 and 005 are the same number."""
    owner, _, name = ref.rpartition("/")
    lender, _, known = document.ref.rpartition("/")
    if owner != lender:
        return False
    numbers = name.isascii() and name.isdigit() and known.isascii() and known.isdigit()
    same_number = numbers and int(name) == int(known)
    return same_number or name in (known, document.id)


@lru_cache(maxsize=64)
def for_surface(text: str, surface: str, *, is_toon: bool) -> str:
    """Return a text without what is marked for other surfaces."""
    if not is_toon:
        return "".join(_line(line, surface) for line in text.splitlines(keepends=True))
    import toon_format

    from interlock.surfaces.shared.workflow_shapes import as_toon

    kept = _kept(toon_format.decode(text, strict=False), surface)
    return f"{as_toon(kept)}\n" if isinstance(kept, Mapping) else text


def _line(line: str, surface: str) -> str:
    marked = _LINE.match(line)
    if marked is None:
        return line
    return f"{marked[1]}{marked[3]}" if surface in marked[2].lower() else ""


def _kept(value: Json, surface: str) -> Json | Missing:
    match value:
        case str():
            marked = _MARK.match(value)
            if marked is None:
                return value
            return value[marked.end() :] if surface in marked[1].lower() else MISSING
        case list() | tuple():
            return [kept for member in value if not isinstance(kept := _kept(member, surface), Missing)]
        case Mapping():
            members = {name: _kept(member, surface) for name, member in value.items()}
            if any(isinstance(members.get(name), Missing) for name in WHOLE):
                return MISSING
            return {name: kept for name, kept in members.items() if not isinstance(kept, Missing)}
        case _:
            return value
