"""Texts become values with exact locations, and damaged texts become diagnostics, never exceptions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.formats import LARGEST_FILE, Format, decode, parse_text
from interlock.authoring.text.locations import DEEPEST, Location, SourceLocation
from interlock.authoring.text.markdown import as_step, read_page
from interlock.authoring.text.yaml_writer import as_yaml

FORMATS: tuple[Format, ...] = ("json", "yaml", "toon")

JSON = '{\n  "id": "x",\n  "steps": [\n    {"id": "a", "title": "A"},\n    {"id": "b"}\n  ]\n}\n'
YAML = "id: x\nsteps:\n  - id: a\n    title: A\n  - id: b\n"
TOON = "id: x\nsteps[2]:\n  - id: a\n    title: A\n  - id: b\n"


@pytest.mark.parametrize(("form", "text"), [("json", JSON), ("yaml", YAML), ("toon", TOON)])
def test_the_three_formats_mean_the_same(form: Format, text: str) -> None:
    parsed = parse_text("w", text, form, Report())
    assert parsed is not None
    assert parsed.value == {"id": "x", "steps": [{"id": "a", "title": "A"}, {"id": "b"}]}


@pytest.mark.parametrize(
    ("form", "text", "value", "key"),
    [
        ("json", JSON, Location(4, 26), Location(4, 17)),
        ("yaml", YAML, Location(4, 12), Location(4, 5)),
        ("toon", TOON, Location(4, 12), Location(4, 5)),
    ],
)
def test_values_and_keys_have_locations(form: Format, text: str, value: Location, key: Location) -> None:
    parsed = parse_text("w", text, form, Report())
    assert parsed is not None
    step = SourceLocation(parsed) / "steps" / 0
    assert (step / "title").located() == value
    assert step.key("title").located() == key


@pytest.mark.parametrize(("form", "text"), [("json", JSON), ("yaml", YAML), ("toon", TOON)])
def test_what_is_absent_lies_where_its_parent_lies(form: Format, text: str) -> None:
    parsed = parse_text("w", text, form, Report())
    assert parsed is not None
    step = SourceLocation(parsed) / "steps" / 1
    assert (step / "title").located() == step.located()
    assert step.located().line == 5


def codes(text: str, form: Format) -> list[tuple[str, int, int]]:
    report = Report()
    parse_text("w", text, form, report)
    return [(diagnostic.code, diagnostic.line, diagnostic.column) for diagnostic in report.diagnostics()]


COMMENTED = 'a[2]:\n  # first\n  - id: x\n  - id: y\nb[2]{id,text}:\n  x,"see: this"\n  y,plain\n'


@pytest.mark.parametrize(("path", "line"), [(("a", 1, "id"), 4), (("b", 0, "id"), 6), (("b", 1, "text"), 7)])
def test_comments_and_rows_with_colons_do_not_shift_the_lines_of_toon(
    path: tuple[str | int, ...], line: int
) -> None:
    parsed = parse_text("w", COMMENTED, "toon", Report())
    assert parsed is not None
    assert SourceLocation(parsed, path).located().line == line


@pytest.mark.parametrize(
    ("text", "message", "location"),
    [
        ("", "the file is empty", (1, 1)),
        ("\n \n", "the file is empty", (1, 1)),
        ('{\n  // why\n  "a": 1}', "JSON has no comments", (2, 3)),
        ('{"a": 1, # why\n "b": 2}', "JSON has no comments", (1, 10)),
        ('{"a": [1, 2,\n]}', "a comma after the last entry", (1, 12)),
        ('{"a": 1,\n}', "a comma after the last entry", (1, 8)),
        ('{"a": [1, 2', "the text ends too early", (1, 12)),
        ("id: x\n", "a value is missing or wrong here", (1, 1)),
        ("{a: 1}", "the name of a field must be in double quotes", (1, 2)),
        ('{"a": "x\ny"}', "a line break or control character inside quotes; write \\n", (1, 9)),
    ],
)
def test_an_error_in_json_is_said_in_the_words_of_an_author(
    text: str, message: str, location: tuple[int, int]
) -> None:
    report = Report()
    assert parse_text("w", text, "json", report) is None
    (found,) = report.diagnostics()
    assert (found.message, (found.line, found.column)) == (message, location)


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("json", '{"a": 1,\n "a": 2}', [("IL006", 2, 2)]),
        ("yaml", "a: 1\na: 2\n", [("IL006", 2, 1)]),
        ("toon", "a: 1\na: 2\n", [("IL008", 2, 1)]),
        ("json", '{"a": \n}', [("IL004", 2, 1)]),
        ("yaml", "a: [1\nb: 2\n", [("IL004", 1, 4)]),
        ("yaml", "a: !!python/object:x {}\n", [("IL007", 1, 4)]),
        ("yaml", "--- a\n--- b\n", [("IL007", 2, 1)]),
        ("yaml", "a: &x [1, *x]\n", [("IL007", 1, 11)]),
        ("json", '{"a": "\\u0000"}', [("IL005", 1, 7)]),
        ("json", '{"a": "\\ud800"}', [("IL005", 1, 7)]),
        ("json", '{"a": NaN}', [("IL010", 1, 7)]),
        ("json", '{"a": 90071992547409931}', [("IL010", 1, 7)]),
        ("yaml", "a: \0", [("IL005", 1, 4)]),
        ("toon", "a[2]:\n  - x\n", [("IL008", 1, 1)]),
    ],
)
def test_diagnostics_have_a_code_and_a_location(form: Format, text: str, expected: list[object]) -> None:
    assert codes(text, form) == expected


def test_yaml_words_are_text_and_not_booleans() -> None:
    parsed = parse_text("w", "a: yes\nb: no\nc: on\nd: true\ne: 010\nf: 2024-01-01\ng: ~\n", "yaml", Report())
    assert parsed is not None
    assert parsed.value == {
        "a": "yes", "b": "no", "c": "on", "d": True, "e": 10, "f": "2024-01-01", "g": None,
    }  # fmt: skip


def test_yaml_aliases_repeat_a_value() -> None:
    parsed = parse_text("w", "a: &x [1, 2]\nb: *x\n", "yaml", Report())
    assert parsed is not None
    assert parsed.value == {"a": [1, 2], "b": [1, 2]}


def test_aliases_that_multiply_are_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    assert [code for code, _, _ in codes(bomb, "yaml")] == ["IL007"]


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("depth", [DEEPEST + 2, 5_000, 100_000])
def test_deep_nesting_is_refused(form: Format, depth: int) -> None:
    assert codes("[" * depth + "]" * depth, form)[0][0] in ("IL003", "IL004")


def test_nesting_within_the_limit_is_read() -> None:
    assert codes("[" * DEEPEST + "]" * DEEPEST, "json") == []


def test_files_over_the_limit_are_refused() -> None:
    report = Report()
    assert decode("w", b" " * (LARGEST_FILE + 1), report) is None
    assert [diagnostic.code for diagnostic in report.diagnostics()] == ["IL002"]


def test_bytes_that_are_not_text_are_refused() -> None:
    report = Report()
    assert decode("w", b"\xff\xfe\x00", report) is None
    assert [diagnostic.code for diagnostic in report.diagnostics()] == ["IL001"]


def test_front_matter_keeps_its_locations() -> None:
    page = read_page("s.md", "---\ntitle: A\nagentRole: B\n---\n\nDo it.\n", Report())
    step = as_step(page)
    assert step.value == {"title": "A", "agentRole": "B", "prompt": "Do it."}
    assert (SourceLocation(step) / "agentRole").located() == Location(3, 12)


def test_broken_front_matter_still_gives_its_single_lines() -> None:
    report = Report()
    page = read_page("r.md", "---\nid: abc\nwhat: a: b\n---\nBody\n", report)
    assert (page.fields.value, page.body) == ({"id": "abc", "what": "a: b"}, "Body")
    assert [diagnostic.code for diagnostic in report.diagnostics()] == ["IL004"]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_every_json_value_is_read_as_it_was_written(value: object) -> None:
    text = json.dumps(value, indent=1)
    report = Report()
    parsed = parse_text("w", text, "json", report)
    if parsed is None:
        assert "\\u0000" in text or "\\ud" in text
    else:
        assert parsed.value == value
        assert parsed.locations.values[()].line == 1


@settings(max_examples=300)
@given(st.sampled_from(FORMATS), st.sampled_from((JSON, YAML, TOON)), st.data())
def test_damaged_texts_give_a_value_or_a_location(form: Format, text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    middle = data.draw(st.text(max_size=12))
    report = Report()
    damaged = text[:cut] + middle + text[cut + data.draw(st.integers(0, 9)) :]
    parsed = parse_text("w", damaged, form, report)
    assert parsed is not None or report.failed
    assert all(diagnostic.line >= 1 and diagnostic.column >= 1 for diagnostic in report.diagnostics())
    if parsed is not None:
        assert (SourceLocation(parsed) / "steps" / 0).located().line >= 1


@given(st.text(max_size=200))
def test_any_text_without_front_matter_is_a_body(text: str) -> None:
    report = Report()
    page = read_page("p.md", f"# Title\n{text}", report)
    assert (page.fields.value, page.body) == ({}, f"# Title\n{text}".strip())
    assert report.diagnostics() == ()


FIELDS = st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers(0, 99), max_size=4)


@given(st.one_of(st.text(max_size=200), FIELDS.map(as_yaml)).filter(lambda front: "---" not in front))
def test_any_front_matter_is_read_as_yaml_or_reported(front: str) -> None:
    report = Report()
    page = read_page("p.md", f"---\n{front}\n---\nbody", report)
    parsed = parse_text("p.md", f"\n{front}\n", "yaml", Report())
    assert page.body == "body"
    if parsed is not None and isinstance(parsed.value, dict):
        assert page.fields.value == parsed.value
        assert not report.failed
    else:
        assert isinstance(page.fields.value, dict)
        assert report.failed or (parsed is not None and parsed.value is None)
