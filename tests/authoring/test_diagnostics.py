"""Each code of the table has a smallest file that shows it, at its exact location, once."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from interlock.authoring.diagnostics.codes import CODES
from interlock.authoring.library import Diagnostic, Library, Source
from interlock.core.definition.workflow import NonAssumable
from support.authored import write
from support.diagnostic_cases import CASES, MARK

SHOWN_ELSEWHERE = {
    "IL001": "bytes that are not text: test_formats",
    "IL009": "links that lead out: test_compile_activities",
    "IL220": "a borrowed activity: test_compile_activities",
    "IL407": "two sources: test_shadowing",
    "IL512": "an unknown workflow: test_library",
    "IL601": "a scenario's names: test_scenarios",
}


def files_of(code: str) -> dict[str, str]:
    return {name: text.replace(MARK, "") for name, text in CASES[code].items()}


def marked_location(code: str) -> tuple[str, int, int]:
    """Return the location of the mark; a diagnostic of several files has none."""
    for name, text in CASES[code].items():
        before, mark, _ = text.partition(MARK)
        if mark:
            return name, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return "", 1, 1


def found_in(folder: Path, files: dict[str, str]) -> list[Diagnostic]:
    return list(Library([Source("configured", write(folder, files))]).listing().diagnostics)


def test_every_code_has_a_case() -> None:
    assert set(CASES) | set(SHOWN_ELSEWHERE) == set(CODES)
    assert not set(CASES) & set(SHOWN_ELSEWHERE)


@pytest.mark.parametrize("code", CASES)
def test_a_smallest_file_shows_the_code_once_at_its_location(tmp_path: Path, code: str) -> None:
    found = [item for item in found_in(tmp_path, files_of(code)) if item.code == code]
    assert [(item.file, item.line, item.column) for item in found] == [marked_location(code)]
    assert found[0].severity == CODES[code].severity
    assert found[0].next_action


@pytest.mark.parametrize("code", CASES)
def test_no_other_diagnostic_is_reported_beside_it(tmp_path: Path, code: str) -> None:
    allowed = {code, "IL508"} | ({"IL201"} if code == "IL404" else set())
    assert {item.code for item in found_in(tmp_path, files_of(code))} <= allowed


@pytest.mark.parametrize("code", [code for code in CASES if CODES[code].severity == "error"])
def test_an_error_makes_the_workflow_unusable(tmp_path: Path, code: str) -> None:
    write(tmp_path, files_of(code))
    assert Library([Source("configured", tmp_path)]).listing().entries == ()


@pytest.mark.parametrize("code", [code for code in CASES if CODES[code].severity == "warning"])
def test_a_warning_does_not(tmp_path: Path, code: str) -> None:
    write(tmp_path, files_of(code))
    assert Library([Source("configured", tmp_path)]).listing().entries


@pytest.mark.parametrize(
    ("code", "next_action"),
    [
        ("IL103", "did you mean 'while'?"),
        ("IL105", "did you mean 'name'?"),
        ("IL301", "did you mean 'equals'?"),
        ("IL402", "rename it to 'user.w'"),
        ("IL507", "did you mean 'known'?"),
    ],
)
def test_near_misses_are_suggested(tmp_path: Path, code: str, next_action: str) -> None:
    assert [item.next_action for item in found_in(tmp_path, files_of(code)) if item.code == code] == [
        next_action
    ]


@pytest.mark.parametrize(("value", "got"), [("true", "true"), ("3", "3"), ("[]", "a list"), ("maybe", "")])
def test_a_value_outside_of_a_closed_set_is_told_what_the_field_takes(
    tmp_path: Path, value: str, got: str
) -> None:
    need = f"{{reason: needs_user_choice, key: which, question: Which?, nonAssumable: {value}}}"
    step = f"{{id: a, title: A, prompt: Do., userInput: [{need}]}}"
    text = f"id: t.w\nname: W\ndescription: d\nversion: 1.0.0\nsteps:\n  - {step}\n"
    (item,) = found_in(tmp_path, {"w.yaml": text})
    words = ", ".join(sorted(get_args(NonAssumable)))
    assert item.code == "IL103"
    assert item.message == (
        f"expected one of {words}, got {got}" if got else f"'maybe' is not one of {words}"
    )


def test_all_diagnostics_of_a_file_are_reported_together(tmp_path: Path) -> None:
    text = "id: t.w\nname: 7\nversion: true\nsteps: {}\n"
    found = [(item.code, item.line) for item in found_in(tmp_path, {"w.yaml": text})]
    assert found == [("IL102", 2), ("IL102", 3), ("IL102", 4)]
