"""All workflows of all sources behind one door: list them, load one, hear what is wrong with the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from interlock.authoring.compiled import Compiled, compile_unit
from interlock.authoring.diagnostics import Problem, in_reading_order
from interlock.authoring.files import stamp_of
from interlock.authoring.identity import IdStatus, lookup_id, status_of, suggested
from interlock.authoring.packs import LIBRARY
from interlock.authoring.sources import PRECEDENCE, Source, Unit, units
from interlock.core.workflow import Form, Kind, Workflow

__all__ = ["BUNDLED", "Library", "Listed", "Listing", "Loaded", "Problem", "Source"]

BUNDLED = Source("bundled", LIBRARY / "workflows")


class Listed(Struct, frozen=True):
    """One line of the list."""

    id: str
    name: str
    description: str
    version: str
    kind: Kind
    form: Form
    category: str
    tags: tuple[str, ...]
    source: str
    hash: str
    id_status: IdStatus
    suggested_id: str | None = None
    hidden: bool = False


class Listing(Struct, frozen=True):
    entries: tuple[Listed, ...]
    problems: tuple[Problem, ...]


class Loaded(Struct, frozen=True):
    """A workflow ready to run, with the texts it refers to by digest."""

    workflow: Workflow
    hash: str
    source: Source
    problems: tuple[Problem, ...]
    texts: Mapping[str, str] = {}

    def text(self, digest: str) -> str:
        return self.texts[digest]


class Library:
    """Reads the sources when asked and again when their files have changed."""

    def __init__(self, sources: Sequence[Source], cache_dir: Path | None = None) -> None:
        self._sources = sorted(sources, key=lambda source: PRECEDENCE.index(source.kind))
        self._cache_dir = cache_dir
        self._known: dict[tuple[int, Unit], Compiled | None] = {}

    def listing(self) -> Listing:
        """List what can be run, by namespace, kind and name, and what cannot, with reasons."""
        found = list(self._compiled())
        entries = [_listed(source, one) for source, one in _winners(found).values() if one.workflow]
        problems = [problem for _, one in found for problem in one.problems]
        return Listing(tuple(sorted(entries, key=_order)), tuple(sorted(problems, key=in_reading_order)))

    def load(self, workflow_id: str) -> Loaded | Problem:
        """Load one workflow, or say why that is impossible."""
        found = list(self._compiled())
        winners = _winners(found)
        chosen = winners.get(workflow_id) or _by_lookup_id(workflow_id, winners)
        if chosen is None:
            return _not_found(workflow_id, winners)
        source, one = chosen
        if one.workflow is None:
            return next(problem for problem in one.problems if problem.severity == "error")
        return Loaded(one.workflow, one.hash, source, one.problems, one.texts)

    def _compiled(self) -> Iterator[tuple[Source, Compiled]]:
        for number, source in enumerate(self._sources):
            for unit in units(source):
                one = self._fresh(number, source, unit)
                if one is not None:
                    yield source, one

    def _fresh(self, number: int, source: Source, unit: Unit) -> Compiled | None:
        known = self._known.get((number, unit))
        if known is None or any(stamp_of(stamp.path) != stamp for stamp in known.stamps):
            known = self._known[number, unit] = compile_unit(unit, source)
        return known


def _winners(found: Sequence[tuple[Source, Compiled]]) -> dict[str, tuple[Source, Compiled]]:
    """Later sources win; a broken file never hides a good one."""
    chosen: dict[str, tuple[Source, Compiled]] = {}
    for source, one in found:
        before = chosen.get(one.workflow_id)
        if before is None or (one.workflow is not None and _outranks(source, before)):
            chosen[one.workflow_id] = (source, one)
    return chosen


def _outranks(source: Source, before: tuple[Source, Compiled]) -> bool:
    return before[1].workflow is None or before[0] != source


def _listed(source: Source, one: Compiled) -> Listed:
    workflow = one.workflow
    assert workflow is not None
    status = status_of(workflow)
    return Listed(
        id=workflow.id,
        name=workflow.name,
        description=workflow.description,
        version=workflow.version,
        kind=workflow.kind,
        form=workflow.form,
        category=workflow.category or next(iter(workflow.tags), "general"),
        tags=workflow.tags,
        source=source.kind,
        hash=one.hash,
        id_status=status,
        suggested_id=suggested(workflow.id) if status == "legacy" else None,
        hidden=workflow.id == "meta",
    )


def _order(entry: Listed) -> tuple[str, str, str, str]:
    namespace = entry.id.partition(".")[0] if "." in entry.id else ""
    return namespace, {"workflow": "0", "routine": "1"}[entry.kind], entry.name, entry.id


def _by_lookup_id(
    workflow_id: str, winners: Mapping[str, tuple[Source, Compiled]]
) -> tuple[Source, Compiled] | None:
    same = [one for known, one in winners.items() if lookup_id(known) == workflow_id]
    return same[0] if len(same) == 1 else None


def _not_found(workflow_id: str, winners: Mapping[str, tuple[Source, Compiled]]) -> Problem:
    names = [known for known, (_, one) in winners.items() if one.workflow]
    near = tuple(get_close_matches(workflow_id, names, n=3, cutoff=0.5))
    fix = f"did you mean '{near[0]}'?" if near else "list the workflows to see their ids"
    message = f"no workflow is called '{workflow_id}'"
    return Problem("IL512", message, fix, "", 1, 1, "error", workflow_id, near)
