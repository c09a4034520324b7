"""Finding a workflow in the list: by words, tags and source, ranked as work is (rule 47)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from interlock.authoring.sources.listing import Listed, Shadowed
from interlock.ledger.queries.search import words_of
from interlock.surfaces.parameters import Params

SOME_WORDS = 4
NO_MATCH = "No workflow matches. Call list_workflows with fewer words, or without arguments for all of them."


class ListWorkflows(Params, frozen=True):
    find: Annotated[str, Meta(description="Words")] | None = None
    tags: list[str] | None = None
    source: Annotated[str, Meta(description="Such as project or bundled")] | None = None

    @property
    def narrows(self) -> bool:
        """Say whether the call asks for less than the whole list."""
        return any((self.find, self.tags, self.source))


def found_workflows(entries: Sequence[Listed], wanted: ListWorkflows) -> list[Listed]:
    """Return the workflows that a call asks for, best match first; without words in the order of the list."""
    tags = {tag.casefold() for tag in wanted.tags or ()}
    fitting = [
        entry
        for entry in entries
        if tags <= {tag.casefold() for tag in entry.tags} and _is_of(entry, wanted.source)
    ]
    if not (words := words_of(wanted.find or "")):
        return fitting
    id_meant = (wanted.find or "").strip().casefold()
    tiers = {entry.id: _tier(entry, id_meant, words) for entry in fitting}
    ranked = sorted(fitting, key=lambda entry: tiers[entry.id])
    whole = [entry for entry in ranked if tiers[entry.id] < SOME_WORDS]
    return whole or [entry for entry in ranked if tiers[entry.id] < SOME_WORDS + len(words)]


def shadowed_among(
    shadowed: Sequence[Shadowed], entries: Sequence[Listed], wanted: ListWorkflows
) -> list[Shadowed]:
    """Return the shadowed files to tell of: all, or those of the workflows that were found."""
    found = {entry.id for entry in entries}
    return [each for each in shadowed if not wanted.narrows or each.workflow_id in found]


def _is_of(entry: Listed, source: str | None) -> bool:
    namespace = entry.id.partition(".")[0] if "." in entry.id else ""
    return not source or source.casefold() in (entry.source.casefold(), namespace)


def _tier(entry: Listed, id_meant: str, words: Sequence[str]) -> int:
    """Rank an entry: its id, its names, its tags, its description, else by how many words are missing."""
    if entry.id.casefold() == id_meant:
        return 0
    names = f"{entry.id} {entry.name}".casefold()
    labelled = " ".join((names, *entry.tags, entry.category)).casefold()
    texts = (names, labelled, f"{labelled} {entry.description.casefold()}")
    for tier, text in enumerate(texts, 1):
        if all(word in text for word in words):
            return tier
    return SOME_WORDS + sum(word not in texts[-1] for word in words)
