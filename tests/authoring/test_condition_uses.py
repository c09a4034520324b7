"""The one walk over conditions finds all that a compiled workflow has, and where its file has each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from interlock.authoring.library import BUNDLED, Library, Loaded, Source
from interlock.core.definition.condition_uses import EVERYTHING, conditions_of
from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not
from interlock.core.definition.workflow import Workflow
from support.authored import diagnostics, write
from support.every_field import write_every_field


def conditions_in(value: object) -> Iterator[Condition]:
    """Yield the conditions anywhere in a value, by looking into every field of every struct."""
    match value:
        case Compare() | AllOf() | AnyOf() | Not():
            yield value
        case Struct():
            for field in value.__struct_fields__:
                yield from conditions_in(getattr(value, field))
        case tuple():
            for member in value:
                yield from conditions_in(member)


def workflows(library: Library) -> list[Workflow]:
    found = (library.load(entry.id) for entry in library.listing().entries)
    return [loaded.workflow for loaded in found if isinstance(loaded, Loaded)]


def test_the_walk_finds_every_condition(tmp_path: Path) -> None:
    library = Library([BUNDLED, Source("configured", write_every_field(tmp_path))])
    for workflow in workflows(library):
        found = sorted(map(repr, conditions_of(workflow, EVERYTHING)))
        assert found == sorted(map(repr, conditions_in(workflow.activities)))


HEAD = "id: team.w\nname: W\nversion: 1.0.0\nvariables: [{name: known, required: true}]\nsteps:\n"
STEP = "{id: s, title: S, prompt: Do.}"
UNKNOWN = "{var: knwon, equals: 1}"


@pytest.mark.parametrize(
    "item",
    [
        f"{{id: s, title: S, prompt: Do., runCondition: §{UNKNOWN}}}",
        f"{{id: s, title: S, prompt: Do., requireConfirmation: §{UNKNOWN}}}",
        f"{{id: s, title: S, prompt: Do., checks: [{{id: t, run: 'true', when: §{UNKNOWN}}}]}}",
        f"{{id: l, type: loop, loop: {{type: while, maxIterations: 2, condition: §{UNKNOWN}}}, "
        f"body: [{STEP}]}}",
        "{id: l, type: loop, loop: {type: while, maxIterations: 2, "
        f"conditionSource: {{kind: context_variable, condition: §{UNKNOWN}}}}}, body: [{STEP}]}}",
        f"{{id: l, type: loop, loop: {{type: for, maxIterations: 2, count: 2, breakCondition: §{UNKNOWN}}}, "
        f"body: [{STEP}]}}",
    ],
)
def test_a_diagnostic_points_at_the_condition_itself(tmp_path: Path, item: str) -> None:
    before, _, after = f"  - {item}\n".partition("§")
    write(tmp_path, {"w.yaml": HEAD + before + after})
    (diagnostic,) = diagnostics(tmp_path)
    assert diagnostic.code == "IL507"
    assert (diagnostic.line, diagnostic.column) == (HEAD.count("\n") + 1, len(before) + 1)
