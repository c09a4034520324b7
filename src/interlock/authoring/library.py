"""All workflows of all sources behind one interface: list them, load one, hear what is wrong with the rest.

Nothing is parsed that has not changed since it was last compiled, by this process or another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from interlock.authoring.compile.ids import lookup_id
from interlock.authoring.diagnostics.diagnostic import Diagnostic, in_reading_order
from interlock.authoring.sources.cache import Cache, CacheRecord, Content
from interlock.authoring.sources.listing import Listed, Listing, in_list_order
from interlock.authoring.sources.sources import PRECEDENCE, Source, Unit, units
from interlock.authoring.sources.stamps import Stamp, stamp_of, unchanged
from interlock.core.definition.workflow import Workflow

__all__ = ["BUNDLED", "Diagnostic", "Library", "Listed", "Listing", "Loaded", "Source"]

MOST_REMEMBERED = 64

BUNDLED = Source("bundled", Path(__file__).parent.parent / "library" / "workflows")


class Loaded(Struct, frozen=True):
    """A workflow ready to run, with the texts it refers to by digest."""

    workflow: Workflow
    hash: str
    source: Source
    diagnostics: tuple[Diagnostic, ...]
    texts: Mapping[str, str] = {}

    def text(self, digest: str) -> str:
        return self.texts[digest]


class Library:
    """Reads the sources when asked, and again when their files have changed.

    `found` looks for further sources when the first question comes, so that starting up does not wait for it.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cache_dir: Path | None = None,
        found: Callable[[], Iterable[Source]] = tuple,
    ) -> None:
        self._named = sources
        self._found = found
        self._cache_dir = cache_dir
        self._scan: _Scan | None = None

    @cached_property
    def _shelves(self) -> list[_Shelf]:
        sources = [*self._named, *self._found()]
        ordered = sorted(sources, key=lambda source: PRECEDENCE.index(source.kind))
        return [_Shelf(source, Cache(self._cache_dir, source)) for source in ordered]

    def listing(self, elsewhere: Collection[str] = ()) -> Listing:
        """List what can be run, by namespace, kind and name, and what cannot, with reasons.

        `elsewhere` are workflows of other libraries, which may be named as children.
        """
        found = self._scanned().found
        entries = [one.record.entry for one in _winners(found).values() if one.record.entry]
        known = [entry.id for entry in entries]
        diagnostics = [diagnostic for one in found for diagnostic in one.record.diagnostics]
        diagnostics += [*_repeats(found), *_collisions(entries), *_unknown(found, {*known, *elsewhere})]
        return Listing(
            tuple(sorted(entries, key=in_list_order)), tuple(sorted(diagnostics, key=in_reading_order))
        )

    def load(self, workflow_id: str) -> Loaded | Diagnostic:
        """Load one workflow, or say why that is impossible."""
        scan = self._scan
        if scan is None or not scan.holds_for(workflow_id):
            scan = self._scanned()
        winners = _winners(scan.found)
        chosen = winners.get(workflow_id) or _by_lookup_id(workflow_id, winners)
        if chosen is None:
            return _not_found(workflow_id, winners)
        if chosen.record.entry is None:
            return next(one for one in chosen.record.diagnostics if one.severity == "error")
        return _loaded(chosen, chosen.record.entry) or self._again(workflow_id)

    def _again(self, workflow_id: str) -> Loaded | Diagnostic:
        """The files changed between the look at them and the reading."""
        self._scan = None
        return self.load(workflow_id)

    def _scanned(self) -> _Scan:
        at = time.time_ns()
        found = [one for shelf in self._shelves for one in shelf.records()]
        folders = {str(one.unit.path.parent) for one in found} | {
            str(one.source.root) for one in self._shelves
        }
        self._scan = _Scan(found, [stamp_of(folder) for folder in folders], at)
        return self._scan


def _loaded(chosen: _Found, entry: Listed) -> Loaded | None:
    content = chosen.shelf.content(chosen)
    if content is None:
        return None
    record = chosen.record
    return Loaded(content.workflow, entry.hash, chosen.shelf.source, record.diagnostics, content.texts)


class _Scan(Struct, frozen=True):
    """What was found at one time; it holds for a workflow while its files and the folders are the same."""

    found: list[_Found]
    folders: list[Stamp]
    at: int

    def holds_for(self, workflow_id: str) -> bool:
        same = [one for one in self.found if one.record.workflow_id == workflow_id]
        return (
            bool(same)
            and unchanged(self.folders, self.at)
            and all(unchanged(one.record.stamps, one.record.read_at) for one in same)
        )


class _Found(Struct, frozen=True):
    """A record and where it lies."""

    shelf: _Shelf
    unit: Unit
    record: CacheRecord


class _Shelf:
    """One source: its records in memory, backed by the cache."""

    def __init__(self, source: Source, cache: Cache) -> None:
        self.source = source
        self._cache = cache
        self._known: dict[str, CacheRecord] | None = None
        self._contents: dict[str, Content] = {}

    def records(self) -> list[_Found]:
        known = self._cache.records() if self._known is None else self._known
        self._known = {}
        changed = False
        found = []
        for unit in units(self.source):
            record = known.get(str(unit.path))
            if record is None or not unchanged(record.stamps, record.read_at):
                record, changed = self._compile(unit), True
            self._known[str(unit.path)] = record
            found.append(_Found(self, unit, record))
        if changed or len(known) > len(self._known):
            self._cache.write(self._known)
        return [one for one in found if one.record.workflow_id]

    def content(self, found: _Found) -> Content | None:
        """The workflow itself, compiled once more if what was kept of it is gone."""
        path = str(found.unit.path)
        content = self._contents.get(path) or self._cache.content(found.record)
        if content is None:
            self._compile(found.unit)
            return self._contents.get(path)
        self._remember(path, content)
        return content

    def _remember(self, path: str, content: Content) -> None:
        if len(self._contents) >= MOST_REMEMBERED:
            self._contents.pop(next(iter(self._contents)))
        self._contents[path] = content

    def _compile(self, unit: Unit) -> CacheRecord:
        from interlock.authoring.compile.unit import compile_unit

        read_at = time.time_ns()
        made = compile_unit(unit, self.source)
        self._contents.pop(str(unit.path), None)
        if made.workflow is None:
            return CacheRecord(made.workflow_id, None, made.diagnostics, made.stamps, read_at)
        content = Content(made.workflow, made.texts)
        self._remember(str(unit.path), content)
        blob = self._cache.keep(content)
        return CacheRecord(
            made.workflow_id, made.entry, made.diagnostics, made.stamps, read_at, blob, made.mentions
        )


def _winners(found: Sequence[_Found]) -> dict[str, _Found]:
    """Later sources win; a broken file never hides a good one; within a source the first wins."""
    chosen: dict[str, _Found] = {}
    for one in found:
        before = chosen.get(one.record.workflow_id)
        if before is None or (
            one.record.entry and (not before.record.entry or before.shelf is not one.shelf)
        ):
            chosen[one.record.workflow_id] = one
    return chosen


def _repeats(found: Sequence[_Found]) -> Iterator[Diagnostic]:
    """Workflows that stand twice in one source."""
    first: dict[tuple[_Shelf, str], _Found] = {}
    for one in found:
        before = first.setdefault((one.shelf, one.record.workflow_id), one)
        if before is not one and one.record.entry and before.record.entry:
            message = f"'{one.record.workflow_id}' is also defined in {_file(before)}"
            yield _warning("IL404", message, _file(one), one.record.workflow_id)


def _file(one: _Found) -> str:
    root, path = one.shelf.source.root, one.unit.path
    return path.relative_to(root).as_posix() if path != root else path.name


def _collisions(entries: Sequence[Listed]) -> Iterator[Diagnostic]:
    """Workflows whose ids look the same at the lookup surface."""
    shown: dict[str, str] = {}
    for entry in sorted(entries, key=lambda one: one.id):
        other = shown.setdefault(lookup_id(entry.id), entry.id)
        if other != entry.id:
            message = f"'{entry.id}' and '{other}' are both shown as '{lookup_id(entry.id)}'"
            yield _warning("IL405", message, "", entry.id)


def _unknown(found: Sequence[_Found], known: Collection[str]) -> Iterator[Diagnostic]:
    """Children that no workflow can be found for."""
    for one in found:
        missing = [mention for mention in one.record.mentions if mention.workflow not in known]
        if missing:
            from interlock.authoring.lint.triggers import unknown

            yield from unknown(missing, known, one.record.workflow_id)


def _warning(code: str, message: str, file: str, workflow_id: str) -> Diagnostic:
    from interlock.authoring.diagnostics.codes import CODES

    return Diagnostic(code, message, CODES[code].next_action, file, 1, 1, "warning", workflow_id)


def _by_lookup_id(workflow_id: str, winners: Mapping[str, _Found]) -> _Found | None:
    same = [one for known, one in winners.items() if lookup_id(known) == workflow_id]
    return same[0] if len(same) == 1 else None


def _not_found(workflow_id: str, winners: Mapping[str, _Found]) -> Diagnostic:
    from difflib import get_close_matches

    names = [known for known, one in winners.items() if one.record.entry]
    near = tuple(get_close_matches(workflow_id, names, n=3, cutoff=0.5))
    fix = f"did you mean '{near[0]}'?" if near else "list the workflows to see their ids"
    message = f"no workflow is called '{workflow_id}'"
    return Diagnostic("IL512", message, fix, "", 1, 1, "error", workflow_id, near)
