"""The texts that belong to a workflow, found as agents ask for them (rule 36).

A skill is the workflow's own, else that of the `meta` of its source, else that of the bundled `meta`; a
reference `workflow/NN` names its owner. What a run is pinned to comes before what the library holds today.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from msgspec import Struct

from interlock.authoring.compile.ids import DOTLESS, NAMESPACED
from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.core.definition.workflow import Activity, Document, DocumentKind, Workflow

META = "meta"


class FoundDocument(Struct, frozen=True):
    """A document with its text, and the workflow that it was found in."""

    document: Document
    text: str
    owner: str


class Documents:
    """The documents of one workflow; those of others by name."""

    def __init__(self, workflow: Workflow, text: Callable[[str], str], library: Library) -> None:
        self.workflow = workflow
        self._text = text
        self._library = library

    @classmethod
    def of(cls, loaded: Loaded, library: Library) -> Documents:
        return cls(loaded.workflow, loaded.text, library)

    def own(self, kind: DocumentKind) -> list[Document]:
        """List what the workflow itself holds or borrows by name."""
        return [one for one in self.workflow.documents if one.kind == kind]

    def find(self, kind: DocumentKind, ref: str) -> FoundDocument | None:
        """Find a document by id or number, bare or as `workflow/ref`."""
        here = self._here(kind, ref)
        if here is not None:
            return FoundDocument(here, self._text(here.digest), self.workflow.id)
        owner, _, name = ref.rpartition("/")
        if owner == self.workflow.id:
            return self.find(kind, name)
        return next(self._elsewhere(kind, owner, name), None)

    def skill(self, ref: str) -> FoundDocument | None:
        return self.find("skill", ref)

    def resource(self, ref: str) -> FoundDocument | None:
        return self.find("resource", ref)

    def activity(self, activity: Activity) -> str:
        """The activity's own TOON file, or the compiled activity written as one."""
        if activity.document is not None:
            return self._text(activity.document)
        from interlock.surfaces.shared.written import activity_shape, as_toon

        return as_toon(activity_shape(activity))

    def _here(self, kind: DocumentKind, ref: str) -> Document | None:
        documents = self.own(kind)
        exact = next((one for one in documents if one.ref == ref), None)
        return exact or next((one for one in documents if _matches(one, ref)), None)

    def _elsewhere(self, kind: DocumentKind, owner: str, name: str) -> Iterator[FoundDocument]:
        if not owner and kind != "skill":
            return
        for loaded in self._lenders(owner or META):
            lender = Documents.of(loaded, self._library)
            found = lender._here(kind, name)
            if found is not None:
                yield FoundDocument(found, lender._text(found.digest), loaded.workflow.id)

    def _lenders(self, owner: str) -> Iterator[Loaded]:
        if not (DOTLESS.fullmatch(owner) or NAMESPACED.fullmatch(owner)):
            return
        libraries = [self._library, _bundled()] if owner == META else [self._library]
        for library in libraries:
            loaded = library.load(owner)
            if isinstance(loaded, Loaded):
                yield loaded


@cache
def _bundled() -> Library:
    """What comes with the product, whatever a source has put in its place; compiled once a process."""
    return Library([BUNDLED])


def _matches(document: Document, ref: str) -> bool:
    owner, _, name = ref.rpartition("/")
    lender, _, known = document.ref.rpartition("/")
    if owner != lender:
        return False
    return name in (known, document.id) or _same_number(name, known)


def _same_number(left: str, right: str) -> bool:
    """Numbers match whatever their zeros: 5, 05 and 005 are one."""
    return left.isdigit() and right.isdigit() and int(left) == int(right)
