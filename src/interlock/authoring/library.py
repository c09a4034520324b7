"""All workflows of all sources behind one interface: list them, load one, and report what is wrong.

Nothing is parsed that has not changed since it was last compiled, by this process or another. Threads may
share a library: one lock guards its records, so that each file is compiled once.
"""

from __future__ import annotations

import time
from _thread import RLock  # `threading` would slow down the start of every stdio server
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.compile.ids import lookup_id
from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic, in_reading_order
from interlock.authoring.sources.cache import Cache, CacheRecord, Content
from interlock.authoring.sources.listing import Listed, Listing, Shadowed, in_list_order
from interlock.authoring.sources.sources import PRECEDENCE, Source, Unit, units
from interlock.authoring.sources.stamps import Stamp, stamp_of, unchanged
from interlock.core.definition.workflow import Workflow

__all__ = ["BUNDLED", "Diagnostic", "Library", "Listed", "Listing", "Loaded", "Shadowed", "Source"]

MOST_REMEMBERED = 64

BUNDLED = Source("bundled", Path(__file__).parent.parent / "library" / "workflows")


class Loaded(Struct, frozen=True):
    """A workflow ready to run, with the texts it refers to by digest."""

    workflow: Workflow
    entry: Listed
    source: Source
    diagnostics: tuple[Diagnostic, ...]
    texts: Mapping[str, str] = {}

    @property
    def hash(self) -> str:
        return self.entry.hash

    def text(self, digest: str) -> str:
        return self.texts[digest]


class Library:
    """Reads the sources when asked, and again when their files have changed.

    `found` returns further sources on first use, so that starting up does not wait for them. `checks` is the
    file of the project that says what the checks run which workflows only name.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        cache_dir: Path | None = None,
        found: Callable[[], Iterable[Source]] = tuple,
        checks: Path | None = None,
    ) -> None:
        self._named = sources
        self._checks = checks
        self._found = found
        self._cache_dir = cache_dir
        self._scan: _Scan | None = None
        self._lock = RLock()

    @cached_property
    def _sources(self) -> list[_CompiledSource]:
        sources = [replace(source, checks=self._checks) for source in (*self._named, *self._found())]
        ordered = sorted(sources, key=lambda source: PRECEDENCE.index(source.kind))
        return [_CompiledSource(source, Cache(self._cache_dir, source)) for source in ordered]

    def add(self, sources: Iterable[Source], checks: Path | None = None) -> None:
        """Read these sources too from now on, and this file with the project's checks."""
        with self._lock:
            self._named, self._scan = [*self._named, *sources], None
            self._checks = checks or self._checks
            self.__dict__.pop("_sources", None)

    @property
    def sources(self) -> list[Source]:
        """The sources in order of precedence, those that are outranked first."""
        with self._lock:
            return [compiled.source for compiled in self._sources]

    def listing(self, elsewhere: Collection[str] = ()) -> Listing:
        """List what can be run, by namespace, kind and name, and what cannot, with reasons.

        `elsewhere` are workflows of other libraries, which may be named as children.
        """
        with self._lock:
            candidates = self._scanned().candidates
        winners = _winners(candidates)
        entries = [winner.record.entry for winner in winners.values() if winner.record.entry]
        known = {*elsewhere, *(entry.id for entry in entries)}
        diagnostics = [diagnostic for candidate in candidates for diagnostic in candidate.record.diagnostics]
        diagnostics += _duplicates(candidates)
        diagnostics += _ambiguous_ids(entries)
        diagnostics += _unknown_children(candidates, known)
        return Listing(
            tuple(sorted(entries, key=in_list_order)),
            tuple(sorted(diagnostics, key=in_reading_order)),
            tuple(_shadowed(candidates, winners)),
        )

    def hashes(self) -> dict[str, str]:
        """Return what can be run, by id, with the hash that changes when the workflow does.

        Files are looked at without the lock; other threads wait only while changed files are compiled.
        """
        scan = self._scan
        if scan is None or not all(source.is_current() for source in self._sources):
            with self._lock:
                scan = self._scanned()
        winners = _winners(scan.candidates)
        return {name: winner.record.entry.hash for name, winner in winners.items() if winner.record.entry}

    def load(self, workflow_id: str) -> Loaded | Diagnostic:
        """Load one workflow, or say why that is impossible."""
        with self._lock:
            if self._scan is None or not self._scan.is_current_for(workflow_id):
                self._scan = self._scanned()
            winners = _winners(self._scan.candidates)
            winner = (
                winners.get(workflow_id)
                or _by_lookup_id(workflow_id, winners)
                or _broken(workflow_id, self._scan.candidates)
            )
            if winner is None:
                return _not_found(workflow_id, winners)
            record, source = winner.record, winner.source
            if record.entry is None:
                return next(diagnostic for diagnostic in record.diagnostics if diagnostic.severity == "error")
            content = source.content(winner)
            if content is None:  # the files changed after the scan
                self._scan = None
                return self.load(workflow_id)
            return Loaded(content.workflow, record.entry, source.source, record.diagnostics, content.texts)

    def _scanned(self) -> _Scan:
        at = time.time_ns()
        candidates = [candidate for source in self._sources for candidate in source.candidates()]
        folders = {str(candidate.unit.path.parent) for candidate in candidates}
        folders |= {str(source.source.root) for source in self._sources}
        self._scan = _Scan(candidates, [stamp_of(folder) for folder in folders], at)
        return self._scan


class _Scan(Struct, frozen=True):
    """All candidates at one time; it is current while the workflow's files and the folders are the same."""

    candidates: list[_Candidate]
    folders: list[Stamp]
    at: int

    def is_current_for(self, workflow_id: str) -> bool:
        records = [
            candidate.record for candidate in self.candidates if candidate.record.workflow_id == workflow_id
        ]
        return (
            bool(records)
            and unchanged(self.folders, self.at)
            and all(unchanged(record.stamps, record.read_at) for record in records)
        )


class _Candidate(Struct, frozen=True):
    """A file or folder that may be a workflow, with its record."""

    source: _CompiledSource
    unit: Unit
    record: CacheRecord

    @property
    def file(self) -> str:
        root, path = self.source.source.root, self.unit.path
        return path.relative_to(root).as_posix() if path != root else path.name


class _CompiledSource:
    """One source: its records in memory, backed by the cache."""

    def __init__(self, source: Source, cache: Cache) -> None:
        self.source = source
        self._cache = cache
        self._records: dict[str, CacheRecord] | None = None
        self._contents: dict[str, Content] = {}

    def candidates(self) -> list[_Candidate]:
        """Return all candidates that have an id, after compiling those whose files have changed."""
        before = self._cache.records() if self._records is None else self._records
        records: dict[str, CacheRecord] = {}
        is_changed = False
        candidates = []
        for unit in units(self.source):
            record = before.get(str(unit.path))
            if record is None or not unchanged(record.stamps, record.read_at):
                record, is_changed = self._compile(unit), True
            records[str(unit.path)] = record
            if record.workflow_id:
                candidates.append(_Candidate(self, unit, record))
        if is_changed or len(before) > len(records):
            self._cache.write(records)
        self._records = records
        return candidates

    def is_current(self) -> bool:
        """Tell whether the candidates that were found last are still all there are, and as they were."""
        records = self._records
        if records is not None and self.source.kind == "bundled" and self.source.checks is None:
            return True
        return (
            records is not None
            and records.keys() == {str(unit.path) for unit in units(self.source)}
            and all(unchanged(record.stamps, record.read_at) for record in records.values())
        )

    def content(self, candidate: _Candidate) -> Content | None:
        """Return the workflow itself, compiled again if it is no longer cached."""
        path = str(candidate.unit.path)
        content = self._contents.get(path) or self._cache.content(candidate.record)
        if content is None:
            self._compile(candidate.unit)
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
        compiled = compile_unit(unit, self.source)
        self._contents.pop(str(unit.path), None)
        blob, mentions = "", compiled.mentions
        if compiled.workflow is not None:
            content = Content(compiled.workflow, compiled.texts)
            self._remember(str(unit.path), content)
            blob = self._cache.keep(content)
        return CacheRecord(
            compiled.workflow_id,
            compiled.entry,
            compiled.diagnostics,
            compiled.stamps,
            read_at,
            blob,
            mentions,
            compiled.owns_id,
        )


def _winners(candidates: Sequence[_Candidate]) -> dict[str, _Candidate]:
    """Choose one candidate per id: the last source's, of one source the first, broken or not (rule 38a)."""
    winners: dict[str, _Candidate] = {}
    for candidate in candidates:
        before = winners.get(candidate.record.workflow_id)
        if before is None or (
            candidate.record.owns_id and (not before.record.owns_id or before.source is not candidate.source)
        ):
            winners[candidate.record.workflow_id] = candidate
    return winners


def _shadowed(candidates: Sequence[_Candidate], winners: Mapping[str, _Candidate]) -> Iterator[Shadowed]:
    """Yield the workflows that a workflow of another source hides."""
    for candidate in candidates:
        winner = winners[candidate.record.workflow_id]
        if candidate.record.owns_id and winner.source is not candidate.source:
            yield Shadowed(
                candidate.record.workflow_id,
                candidate.source.source.label,
                candidate.file,
                str(candidate.unit.path),
                winner.source.source.label,
                winner.file,
                str(winner.unit.path),
            )


def _duplicates(candidates: Sequence[_Candidate]) -> Iterator[Diagnostic]:
    """Report workflows that one source defines twice."""
    first: dict[tuple[_CompiledSource, str], _Candidate] = {}
    for candidate in candidates:
        if not candidate.record.owns_id:
            continue
        workflow_id = candidate.record.workflow_id
        before = first.setdefault((candidate.source, workflow_id), candidate)
        if before is not candidate:
            message = f"'{workflow_id}' is also defined in {before.file}"
            yield _warning("IL404", message, candidate.file, workflow_id)


def _ambiguous_ids(entries: Sequence[Listed]) -> Iterator[Diagnostic]:
    """Report workflows whose ids look the same on the lookup surface."""
    shown: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: entry.id):
        other = shown.setdefault(lookup_id(entry.id), entry.id)
        if other != entry.id:
            message = f"'{entry.id}' and '{other}' are both shown as '{lookup_id(entry.id)}'"
            yield _warning("IL405", message, "", entry.id)


def _warning(code: str, message: str, file: str, workflow_id: str) -> Diagnostic:
    from interlock.authoring.diagnostics.codes import CODES

    return Diagnostic(code, message, CODES[code].next_action, file, 1, 1, "warning", workflow_id)


def _unknown_children(candidates: Sequence[_Candidate], known: Collection[str]) -> Iterator[Diagnostic]:
    for candidate in candidates:
        record = candidate.record
        missing = [mention for mention in record.mentions if mention.workflow not in known]
        if missing:
            from interlock.authoring.lint.triggers import unknown

            yield from unknown(missing, known, record.workflow_id)


def _by_lookup_id(workflow_id: str, winners: Mapping[str, _Candidate]) -> _Candidate | None:
    same = [winner for known, winner in winners.items() if lookup_id(known) == workflow_id]
    return same[0] if len(same) == 1 else None


def _broken(workflow_id: str, candidates: Sequence[_Candidate]) -> _Candidate | None:
    """Find a file that cannot be used by what it may be called: its name, or its id without the mount."""
    broken = (candidate for candidate in candidates if candidate.record.entry is None)
    return next(
        (
            candidate
            for candidate in broken
            if workflow_id
            and workflow_id in (candidate.unit.path.stem, candidate.record.workflow_id.partition(".")[2])
        ),
        None,
    )


def _not_found(workflow_id: str, winners: Mapping[str, _Candidate]) -> Diagnostic:
    from difflib import get_close_matches

    names = [known for known, winner in winners.items() if winner.record.entry]
    near = tuple(get_close_matches(workflow_id, names, n=3, cutoff=0.5))
    next_action = f"did you mean '{near[0]}'?" if near else "list the workflows to see their ids"
    message = f"there is no workflow '{workflow_id}'"
    return Diagnostic(ABSENT, message, next_action, "", 1, 1, "error", workflow_id, near)
