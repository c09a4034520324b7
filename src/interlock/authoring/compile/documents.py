"""The texts of a workflow folder: skills, resources and templates, found by name or number.

Skills come from the workflow, then from the `meta` beside it, then from the bundled `meta` (rule 36).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.formats import parse
from interlock.authoring.text.locations import SourceLocation
from interlock.authoring.text.markdown import read_page, titled
from interlock.core.definition.workflow import Document, DocumentKind
from interlock.core.hashing import digest_of
from interlock.core.values import Json

NUMBERED = re.compile(r"(?:(\d+)-)?(.+)\.(toon|yaml|yml|md)")
_FOLDERS = {"skill": ("skills",), "resource": ("resources", "guides"), "template": ("templates",)}
KINDS: tuple[DocumentKind, ...] = ("skill", "resource", "template")
_README = "readme.md"


class Named(Struct, frozen=True):
    """A file of a folder, by its number and name."""

    path: Path
    number: str
    name: str
    ending: Literal["toon", "yaml", "yml", "md"]


class Text(Struct, frozen=True):
    """A text with the document that describes it, and the resources it refers to."""

    document: Document
    content: str
    resources: tuple[str, ...] = ()
    location: SourceLocation | None = None


def named_files(reader: SourceReader, folder: Path, endings: Sequence[str]) -> list[Named]:
    """The files of a folder in the order of their names; a TOON file wins over others of its number."""
    found: dict[tuple[str, str], Named] = {}
    for name in reader.names(folder):
        match = NUMBERED.fullmatch(name)
        if match is None or match[3] not in endings or name.lower() == _README:
            continue
        one = Named(folder / name, match[1] or "", match[2], match[3])  # type: ignore[arg-type]
        key = (one.number, one.name)
        if key not in found or one.ending == "toon":
            found[key] = one
    return list(found.values())


class Shelf:
    """The skills, resources and templates of one workflow folder."""

    def __init__(self, reader: SourceReader, folder: Path) -> None:
        self._reader = reader
        self.folder = folder
        self._files: dict[DocumentKind, list[Named]] = {}

    @property
    def name(self) -> str:
        return self.folder.name

    def all(self, kind: DocumentKind) -> Iterator[Text]:
        for one in self._named(kind):
            text = self._text(one, kind, _ref(one, kind))
            if text is not None:
                yield text

    def find(self, kind: DocumentKind, wanted: str, ref: str) -> Text | None:
        """Find a skill by id or a resource by number; the document is called as it was asked for."""
        for one in self._named(kind):
            if one.name == wanted or (one.number and same_number(one.number, wanted)):
                return self._text(one, kind, ref)
        return None

    def names(self, kind: DocumentKind) -> list[str]:
        return [_ref(one, kind) for one in self._named(kind)]

    def _named(self, kind: DocumentKind) -> list[Named]:
        if kind not in self._files:
            endings = ("toon", "yaml", "yml") if kind == "skill" else ("toon", "md")
            folders = (named_files(self._reader, self.folder / name, endings) for name in _FOLDERS[kind])
            self._files[kind] = next((found for found in folders if found), [])
        return self._files[kind]

    def _text(self, one: Named, kind: DocumentKind, ref: str) -> Text | None:
        text = self._reader.text(one.path)
        if text is None:
            return None
        if one.ending == "md":
            return self._page(one, kind, ref, text)
        form: Literal["toon", "yaml"] = "toon" if one.ending == "toon" else "yaml"
        scratch = Report()
        parsed = parse(self._reader.shown(one.path), text, form, scratch)
        self._reader.report.add_as_warnings(scratch)
        fields = parsed.value if parsed is not None and isinstance(parsed.value, Mapping) else {}
        content = text if form == "toon" else as_toon(fields)
        document = _described(one, kind, ref, content, fields)
        return Text(document, content, _resources(fields), SourceLocation(parsed) if parsed else None)

    def _page(self, one: Named, kind: DocumentKind, ref: str, text: str) -> Text:
        scratch = Report()
        page = read_page(self._reader.shown(one.path), text, scratch)
        self._reader.report.add_as_warnings(scratch)
        title, digest = page.text("title") or titled(one.name), digest_of(page.body.encode())
        name, version = page.text("id") or one.name, page.text("version")
        return Text(Document(kind, ref, name, digest, title, version, "md"), page.body)


def _ref(one: Named, kind: DocumentKind) -> str:
    return one.name if kind == "skill" or not one.number else one.number


def _described(
    one: Named, kind: DocumentKind, ref: str, content: str, fields: Mapping[str, Json]
) -> Document:
    return Document(
        kind=kind,
        ref=ref,
        id=str(fields.get("id") or one.name),
        digest=digest_of(content.encode()),
        title=str(fields.get("title") or fields.get("name") or titled(one.name)),
        version=str(fields.get("version") or ""),
        format="toon",
    )


def _resources(fields: Mapping[str, Json]) -> tuple[str, ...]:
    named = fields.get("resources")
    return tuple(str(one) for one in named if isinstance(one, (str, int))) if isinstance(named, list) else ()


def as_toon(value: Mapping[str, Json]) -> str:
    import toon_format

    written: str = toon_format.encode(dict(value))
    return written + "\n"


def same_number(left: str, right: str) -> bool:
    """Numbers match whatever their zeros: 5, 05 and 005 are one."""
    return right.isdigit() and left.zfill(3) == right.zfill(3)
