"""Markdown that was written for agents, as a workflow: steps, gates where it asks, and a list of the rest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.authoring.convert import ConversionRefused, Converted, convert
from interlock.authoring.library import Library
from interlock.authoring.procedures.approvals import Approval, approvals_in
from interlock.authoring.procedures.outline import TextLine
from interlock.authoring.procedures.procedure import NoProcedure, procedure_of
from interlock.authoring.simulate.findings import simulate
from interlock.authoring.sources.paths import source_at
from interlock.authoring.text.yaml_writer import as_yaml
from support.authored import write
from support.cli_process import interlock
from support.corpus import needs_corpus
from support.paths import CORPUS

SKILL = """\
---
name: release-notes
description: Writes release notes. Use when a release is due.
allowed-tools: Read, Bash(git:*)
---
# Release notes

Keep it short.

## When to use

Whenever a tag is cut.

## Process

1. **Collect** the merged pull requests since the last tag.
   - `git log --oneline`

   ```sh
   1. not an item
   # not a heading, wait for approval
   ```
2. Draft the notes in `NOTES.md`. See [style](references/style.md).
3. Show the draft to the user and wait for approval before continuing.
4. Before publishing, get confirmation from the release manager. Publish to {{channel}}.
5. Tell the team. Do not ask the user again.

## Rules

- Never publish on a Friday.
- Keep links.

## Examples

1. one
2. two
"""


def converted(folder: Path, text: str | bytes, name: str = "SKILL.md", **options: Any) -> Converted:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = convert(path, **{"new_id": "t.w", **options})
    assert isinstance(found, Converted), found
    return found


def value_of(found: Converted) -> dict[str, Any]:
    (text,) = found.files.values()
    value: dict[str, Any] = yaml.safe_load(text)
    return value


def sound(folder: Path, found: Converted) -> None:
    """The workflow has no diagnostics, and no run of it gets stuck."""
    (text,) = found.files.values()
    write(folder / "out", {"w.yaml": text})
    library = Library([source_at(folder / "out" / "w.yaml")])
    assert library.listing().diagnostics == ()
    loaded = library.load("t.w")
    assert not simulate(loaded.workflow, 2_000).broken  # type: ignore[union-attr]


def test_a_skill_becomes_steps_and_gates_and_the_rest_is_listed_with_its_line(tmp_path: Path) -> None:
    found = converted(tmp_path, SKILL)
    sound(tmp_path, found)
    value = value_of(found)
    assert (value["name"], value["description"]) == (
        "release-notes",
        "Writes release notes. Use when a release is due.",
    )
    assert value["metaGuidance"] == ["Keep it short.", "Never publish on a Friday.", "Keep links."]
    collect, draft, before, publish, tell = value["steps"]
    assert (collect["id"], "1. not an item" in collect["prompt"]) == ("collect", True)
    step, gate = draft["body"]
    assert [option["id"] for option in gate["options"]] == ["approve", "change", "stop"]
    assert step["prompt"].endswith("do not ask for it yourself.")
    assert (before["type"], [option["id"] for option in before["options"]]) == ("gate", ["approve", "stop"])
    assert publish["runCondition"] == {
        "var": "approve_before_publishing_get_confirmation_from",
        "equals": "approved",
    }
    assert "{channel}" in publish["prompt"]
    assert tell["runCondition"] == publish["runCondition"]
    assert found.notes == (
        "SKILL.md:4: 'allowed-tools' of the front matter has no counterpart",
        "SKILL.md:10: the section 'When to use' (1 line) is part of no step",
        "SKILL.md:23: the file references/style.md is linked, and not copied",
        "SKILL.md:25: {{…}} is written {…}, or it would be filled in",
        "SKILL.md:26: no gate, because it waives approval: Do not ask the user again.",
        "SKILL.md:33: the section 'Examples' (2 lines) is part of no step",
    )


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    raw = b"\xef\xbb\xbf" + SKILL.replace("\n", "\r\n").encode()
    assert converted(tmp_path / "a", raw) == converted(tmp_path / "b", SKILL)
    assert value_of(converted(tmp_path / "c", SKILL.replace("\n", "\r"))) == value_of(
        converted(tmp_path / "d", SKILL)
    )


COMMAND = """\
---
description: Review a pull request
argument-hint: <number> [focus]
model: large
---
Review pull request $1 with focus $ARGUMENTS. Context: !`git status` and @docs/style.md

- Read the diff.
- Write the findings; `awk '{print $1}'` helps.
"""


def test_a_slash_command_keeps_its_arguments_as_variables(tmp_path: Path) -> None:
    found = converted(tmp_path, COMMAND, "commands/review-pr.md")
    sound(tmp_path, found)
    value = value_of(found)
    assert [(one["name"], one["required"]) for one in value["variables"]] == [
        ("argument_1", True),
        ("arguments", True),
    ]
    (step,) = value["steps"]
    assert "Review pull request {{argument_1}} with focus {{arguments}}" in step["prompt"]
    assert [note.partition(": ")[0] for note in found.notes] == [
        "review-pr.md:4",
        "review-pr.md:6",
        "review-pr.md:6",
    ]


AGENTS = """\
# Project

## Code style

- Use tabs.

## Release process

1. Run the tests.
2. Tag the commit.

### After it

Tell the team.

## Migration

1. Back up.
2. Never migrate without asking the owner.
"""


def test_of_an_agents_file_one_section_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text(AGENTS)
    refused = convert(path)
    assert isinstance(refused, ConversionRefused)
    assert "--section 'Release process'; --section 'Migration'" in refused.reason
    assert "Code style" not in refused.reason
    found = converted(tmp_path, AGENTS, "AGENTS.md", section="release process")
    sound(tmp_path, found)
    assert [step["id"] for step in value_of(found)["steps"]] == ["run-the-tests", "tag-the-commit"]
    assert found.notes == ("AGENTS.md:12: the section 'After it' (1 line) is part of no step",)
    assert list(converted(tmp_path, AGENTS, "AGENTS.md", new_id=None, section="Migration").files) == [
        "migration.yaml"
    ]
    unknown = convert(path, section="Deploy")
    assert isinstance(unknown, ConversionRefused)
    assert "its sections: 'Project', 'Code style', 'Release process'" in unknown.reason


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("## Step 1: Look\n\nA.\n\n### Deep\n\nB.\n\n## Step 2: Do\n\n1. x\n2. y\n", ["look", "do"]),
        ("Title\n=====\n\nLook\n----\n\nA.\n\nDo\n--\n\nB.\n", ["look", "do"]),
        ("# T\n\n1. a\n   1. deep\n   2. deeper\n2. b\n\n   more\n", ["a", "b"]),
        ("1. a\n1. b\n1. c\n", ["a", "b", "c"]),
        ("1) a\n\ntext between\n\n2) b\n\n1) c\n2) d\n", ["a", "b", "c", "d"]),
        ("## Checklist\n\n- [ ] first\n- [ ] second\n", ["first", "second"]),
        ("1. Same\n2. Same\n3. Same\n", ["same", "same-2", "same-3"]),
        ("# Release notes\n\n1. a\n2. b\n\n## Notes\n\n1. x\n2. y\n", ["a", "b"]),
        ("# Only a title\n\nDo it well.\n", ["only-a-title"]),
        ("Just do it.\n", ["go"]),
        ("1. 日本語\n2. Über alles\n", ["step", "uber-alles"]),
    ],
)
def test_what_becomes_a_step(tmp_path: Path, text: str, ids: list[str]) -> None:
    found = converted(tmp_path, text, "commands/go.md")
    sound(tmp_path, found)
    assert [step["id"] for step in value_of(found)["steps"]] == ids


@pytest.mark.parametrize(
    ("sentence", "side"),
    [
        ("Wait for the user's approval.", "after"),
        ("Present the plan for approval.", "after"),
        ("Stop and ask the user to confirm.", "after"),
        ("Do not proceed until the user confirms.", "after"),
        ("Never deploy without the owner's permission.", "after"),
        ("Once the user approves, go on.", "after"),
        ("Approval is required.", "after"),
        ("Confirm the scope with the user.", "after"),
        ("Before deploying, get sign-off from the lead.", "before"),
        ("Do not ask the user for confirmation.", None),
        ("No approval is needed.", None),
        ("Proceed without waiting for approval.", None),
        ("Ask the user which colour they like.", None),
        ("Check the approval workflow's code.", None),
        ("Read the user guide.", None),
    ],
)
def test_which_sentences_ask_for_approval(sentence: str, side: str | None) -> None:
    lines = [TextLine(1, "Do the work."), TextLine(2, sentence)]
    found = [one.side for one in approvals_in(lines) if isinstance(one, Approval)]
    assert found == ([side] if side else [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no text to make steps from"),
        ("\n \n\t\n", "no text to make steps from"),
        ("---\nname: x\ndescription: y\n---\n", "no text to make steps from"),
        ("# Title\n\n## Empty\n", "no text to make steps from"),
        ("<!-- nothing -->\n", "no text to make steps from"),
        ("1. a\n2. b\n\n" * 90_000, "more than 200 steps"),
        ("x" * 1_000_001, "the limit is 1000000"),
    ],
)
def test_what_has_no_steps_is_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "SKILL.md"
    path.write_text(text)
    began = time.monotonic()
    found = convert(path)
    assert isinstance(found, ConversionRefused)
    assert reason in found.reason
    assert time.monotonic() - began < 20


BAD_FRONT_MATTER = "---\nname: [unclosed\ndescription: kept\n---\n1. a\n2. b\n"


def test_front_matter_that_is_not_yaml_is_listed_and_its_lines_used(tmp_path: Path) -> None:
    found = converted(tmp_path, BAD_FRONT_MATTER)
    sound(tmp_path, found)
    assert value_of(found)["description"] == "kept"
    assert any("front matter" in note for note in found.notes)


@pytest.mark.parametrize(
    "text",
    [
        "# " + " " * 900_000,
        "1. " + "`" * 900_000,
        " " * 900_000 + "x",
        "](" * 450_000,
        "{{" * 450_000,
        "@a" + "-" * 900_000,
        "ask the user " * 70_000,
        "- [ ] x\n" * 100_000,
        "# h\n" * 200_000,
        "~~~\n" * 200_000,
        "<!--" * 200_000,
        "a.b. " * 180_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_megabyte_of_anything_ends_soon(text: str) -> None:
    began = time.monotonic()
    procedure_of(text, "x")
    assert time.monotonic() - began < 20


PIECES = st.sampled_from(
    [
        *("# T\n", "## Step 1: A\n", "## Step 2\n", "1. do\n", "2. ask the user to confirm.\n", "- x\n"),
        *("   - nested\n", "```\n", "~~~sh\n", "---\n", "===\n", "\n", "<!-- c\n", "-->\n", "| a | b |\n"),
        *("text: with colon\n", "{{a.b}} $ARGUMENTS\n", "\t1. tab\n", "> quote\n", "wait for approval\n"),
        *("\x00", "\x1b[31m", "\u2028", "🦊\n", "'\"\\\n", "* * *\n", "1)\n", "**Bold**: go\n"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_is_converted_is_valid(text: str) -> None:
    from tempfile import TemporaryDirectory

    found = procedure_of(text, "Any")
    if isinstance(found, NoProcedure):
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "w.yaml"
        path.write_text(as_yaml({"id": "t.w", **found.fields}), encoding="utf-8")
        listing = Library([source_at(path)]).listing()
        assert [one for one in listing.diagnostics if one.severity == "error"] == []
        assert len(listing.entries) == 1
    assert all(note.line >= 1 for note in found.unmapped)


@needs_corpus
def test_every_text_of_the_corpus_becomes_a_valid_workflow(tmp_path: Path) -> None:
    for number, path in enumerate(sorted(CORPUS.rglob("*.md"))):
        found = convert(path, "t.w")
        assert isinstance(found, Converted), (path, found)
        (text,) = found.files.values()
        write(tmp_path / str(number), {"w.yaml": text})
        listing = Library([source_at(tmp_path / str(number) / "w.yaml")]).listing()
        assert (len(listing.entries), listing.diagnostics) == (1, ()), path


@pytest.mark.slow
def test_the_command_prints_the_workflow_and_lists_the_rest(tmp_path: Path) -> None:
    write(tmp_path, {"release-notes/SKILL.md": SKILL})
    printed = interlock(tmp_path / "data", "convert", str(tmp_path / "release-notes"))
    assert (printed.code, yaml.safe_load(printed.out)["id"]) == (0, "user.release_notes")
    assert "SKILL.md:10: the section 'When to use' (1 line) is part of no step" in printed.err
    to = ("--to", str(tmp_path / "flows"), "--id", "team.notes")
    assert interlock(tmp_path / "data", "convert", str(tmp_path / "release-notes"), *to).code == 0
    ran = interlock(tmp_path / "data", "validate", "--strict", str(tmp_path / "flows"))
    assert (ran.code, ran.err) == (0, "1 workflow usable, no errors.\n")
    bare = interlock(tmp_path / "data", "convert", str(tmp_path / "release-notes"), "--id", "notes")
    assert (bare.code, "'notes' is not a namespaced id of your own" in bare.err) == (1, True)


@pytest.mark.slow
def test_a_file_without_an_id_is_told_so(tmp_path: Path) -> None:
    write(tmp_path, {"w.json": '{"name": "W", "version": "1", "steps": [{"id": "a"}]}'})
    ran = interlock(tmp_path / "data", "convert", str(tmp_path / "w.json"))
    assert (ran.code, "it declares no id; choose one with --id team.name" in ran.err) == (1, True)
