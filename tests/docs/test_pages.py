"""The generated pages of the documentation are up to date and complete, and their examples work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from interlock.authoring.compile.builtins import contracts, features, references, templates
from interlock.authoring.compile.conditions import STEP_WORDS
from interlock.authoring.diagnostics.codes import CODES
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.filetypes.scenario_file import scenario_files
from interlock.authoring.library import BUNDLED, Library, Source
from interlock.authoring.simulate.findings import simulate
from interlock.authoring.simulate.scenarios import run_file
from interlock.authoring.text.yaml_plain import read_plain
from interlock.core.definition.conditions import Operator
from interlock.core.definition.workflow import LoopKind, Workflow
from support.documented import Block, blocks
from support.harness import compile_cache
from support.paths import DOCS
from tools.pages import diagnostics, file_formats
from tools.pages.diagnostics import FAMILIES

PAGES = {**diagnostics.pages(), **file_formats.pages()}
FORMATS = DOCS / "format.md"
FILES = [block for block in blocks(FORMATS) if "." in block.name]
FRAGMENTS = [block for block in blocks(FORMATS) if block.language == "yaml" and block not in FILES]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_would_be_generated_now(name: str) -> None:
    """Write them anew with: python -m tools.pages docs"""
    assert (DOCS / name).read_text("utf-8") == PAGES[name]


def test_every_code_is_on_its_page() -> None:
    text = PAGES["diagnostics.md"]
    assert [code for code in CODES if f"\n| {code} | " not in text] == []
    assert {code[:3] for code in CODES} == set(FAMILIES)


def test_every_bundled_workflow_is_on_its_page() -> None:
    text = (DOCS / "workflows.md").read_text(encoding="utf-8")
    entries = Library([BUNDLED], compile_cache()).listing().entries
    names = [entry.id for entry in entries if not entry.hidden and entry.kind == "workflow"]
    assert [name for name in names if f"| `{name}` |" not in text] == []


def test_everything_built_in_is_on_its_page() -> None:
    text = PAGES["builtins.md"]
    refs = [*contracts(), *templates(), *features(), *references()]
    assert [ref for ref in refs if f"<b>{ref}</b>" not in text] == []


def test_every_type_and_field_of_the_formats_is_on_its_page() -> None:
    sections = dict(part.partition("\n")[::2] for part in PAGES["format.md"].split("\n### ")[1:])
    for name, definition in file_formats.definitions().items():
        section = sections[file_formats.HEADINGS[name]].partition("\n## ")[0]
        fields = set(definition.get("properties", {})) - {"$schema"}
        fields -= set(STEP_WORDS) if name == "Condition" else set()
        assert [field for field in fields if f"\n| `{field}` |" not in section] == []


def test_every_operator_and_kind_of_loop_is_on_the_page_of_the_formats() -> None:
    text = PAGES["format.md"]
    assert [operator for operator in get_args(Operator) if f"\n| `{operator}` |" not in text] == []
    assert [word for word in STEP_WORDS if f"| `{word}` |" not in text] == []
    assert [kind for kind in get_args(LoopKind) if f"\n| `{kind}` |" not in text] == []


def loaded(folder: Path) -> tuple[list[Workflow], list[Diagnostic]]:
    library = Library([Source("user", folder)])
    listing = library.listing()
    return [library.load(entry.id).workflow for entry in listing.entries], list(listing.diagnostics)  # type: ignore[union-attr]


@pytest.fixture
def example_files(tmp_path: Path) -> Path:
    for block in FILES:
        path = tmp_path / block.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.body, "utf-8")
    return tmp_path


def test_the_example_workflows_compile_without_a_warning_and_are_sound(example_files: Path) -> None:
    workflows, problems = loaded(example_files)
    assert (sorted(workflow.form for workflow in workflows), problems) == (["activities", "steps"], [])
    assert [workflow.id for workflow in workflows if not simulate(workflow).sound] == []


def test_the_words_of_an_example_step_come_from_its_markdown_file(example_files: Path) -> None:
    (triage,) = (workflow for workflow in loaded(example_files)[0] if workflow.form == "activities")
    step = next(step for activity in triage.activities for step in activity.steps() if step.id == "reproduce")
    assert (step.title, step.prompt[0].text.splitlines()[0]) == (
        "Reproduce it",
        "Write the shortest script that shows the bug, and run it.",
    )


def test_the_example_scenarios_pass(example_files: Path) -> None:
    (file,) = scenario_files(example_files)
    run = run_file(file, Library([]))
    assert (run.diagnostics, [outcome.differences for outcome in run.outcomes]) == ((), [(), ()])


def as_workflow(kind: str, text: str) -> dict[str, object]:
    """Put a fragment where it belongs in a step workflow."""
    value = read_plain(text)
    read_in_conditions = re.findall(r"var(?:iable)?: (\w+)", text)
    given = f"The run starts with audience, service, suspects, tasks, {', '.join(read_in_conditions)}."
    head = {"id": "team.example", "name": "Example", "version": "1.0.0", "metaGuidance": [given]}
    match kind:
        case "items":
            return {**head, "steps": value}
        case "conditions":
            steps = [
                {"id": f"step-{number}", "title": "Step", "prompt": "Work.", "runCondition": condition}
                for number, condition in enumerate(value)
            ]
            return {**head, "steps": steps}
        case _:
            return {**head, **value}


@pytest.mark.parametrize("block", FRAGMENTS, ids=lambda block: block.body.splitlines()[0])
def test_an_example_fragment_compiles_without_a_warning(block: Block, tmp_path: Path) -> None:
    (tmp_path / "example.yaml").write_text(json.dumps(as_workflow(block.name, block.body)), "utf-8")
    workflows, problems = loaded(tmp_path)
    assert ([workflow.id for workflow in workflows], problems) == (["team.example"], [])


def test_each_main_part_of_the_formats_has_an_example() -> None:
    assert len(FILES) == 8
    assert {block.name for block in FRAGMENTS} == {"items", "conditions", "assessments"}
    kinds = {
        item["loop"]["type"]
        for block in FRAGMENTS
        if block.name == "items"
        for item in read_plain(block.body)
        if item.get("type") == "loop"
    }
    assert kinds == set(get_args(LoopKind))
