"""The rules of docs/rules.md: numbered in order, cited where they exist, and each promise held by a test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT

FOLDERS = ("src", "tests", "docs", "bench")
SUFFIXES = {".py", ".md", ".json", ".toon", ".yaml", ".yml", ".txt", ".mjs"}
PAGE = (ROOT / "docs" / "rules.md").read_text("utf-8")

TESTS = (ROOT / "docs" / "rules-tests.md").read_text("utf-8")

_TEST = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)
_POINT = re.compile(r"^(?:- |\d\. )(.+?)(?=\n(?:- |\d\. |\n)|\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| \[([^]]+)\]\(rules\.md#rule-([^)]+)\) \| (.+?) \| (`.+`) \|$", re.MULTILINE)
_TITLE = re.compile(r'^<a id="rule-([^"]+)"></a>\*\*([^ ]+)\. .+?\.\*\*', re.MULTILINE | re.DOTALL)
_GAP = r"(?:[ \t]+|[ \t]*\n[ \t#]*)"  # a citation may go on in the next line of a comment
_NUMBER = r"\d+[a-z]?\b(?!\.\d)"
_JOIN = rf"(?:,{_GAP}and{_GAP}|,{_GAP}|{_GAP}and{_GAP}|{_GAP}to{_GAP})"
_CITATION = re.compile(rf"\brules?{_GAP}({_NUMBER}(?:{_JOIN}{_NUMBER})*)", re.IGNORECASE)
_RANGE = re.compile(rf"({_NUMBER}){_GAP}to{_GAP}({_NUMBER})")


def cited(text: str) -> list[str]:
    """The numbers that a text cites, each number of a range included."""
    numbers: list[str] = []
    for citation in _CITATION.finditer(text):
        listed = citation[1].lower()
        numbers += re.findall(_NUMBER, listed)
        for first, last in _RANGE.findall(listed):
            numbers += (str(number) for number in range(_order(first)[0] + 1, _order(last)[0]))
    return numbers


def unknown(text: str) -> set[str]:
    return set(cited(text)) - {number for _, number in _TITLE.findall(PAGE)}


def _order(number: str) -> tuple[int, str]:
    digits = number.rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits), number.removeprefix(digits)


def _citing_files() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    for folder in FOLDERS:
        files = (file for file in (ROOT / folder).rglob("*") if file.suffix in SUFFIXES and file.is_file())
        yield from (file for file in files if file != Path(__file__))


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("Merge shallowly; `null` deletes (rule 19).", ["19"]),
        ("Rule 13a: a start is repeatable.", ["13a"]),
        ("The decision record of rule 26: question by digest.", ["26"]),
        ("Decisions (rules 26 and 27).", ["26", "27"]),
        ("Opened by hand (rules 15, 16 and 22).", ["15", "16", "22"]),
        ("Asking the user (rules 10, 26, 27): answered.", ["10", "26", "27"]),
        ("Rules 43 to 47", ["43", "47", "44", "45", "46"]),
        ("Shared sessions (rules 6, 13 to 15)", ["6", "13", "15", "14"]),
        ("See [rule 22](rules.md#rule-22), and rule 31.", ["22", "31"]),
        ("    # what came with the call is kept (rules 10\n    # and 19)", ["10", "19"]),
        ("A rule of the domain; 3 rules; rules[0]; rule 1.5 of a format.", []),
        ("A heading about one rule\n\n1. and a list", []),
    ],
)
def test_a_citation_is_read(sentence: str, numbers: list[str]) -> None:
    assert cited(sentence) == numbers


@pytest.mark.parametrize("sentence", ["(rule 0)", "Rule 49.", "rules 19 and 99", "rules 46 to 49", "rule 9b"])
def test_an_unknown_number_is_noticed(sentence: str) -> None:
    assert unknown(sentence)


def test_every_cited_rule_exists() -> None:
    texts = {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in _citing_files()}
    assert {name: numbers for name, text in texts.items() if (numbers := unknown(text))} == {}
    for folder in FOLDERS:
        assert any(cited(text) for name, text in texts.items() if name.startswith(folder)), folder


def test_the_rules_are_numbered_in_order_without_gaps() -> None:
    numbers = [number for _, number in _TITLE.findall(PAGE)]
    assert numbers == sorted(set(numbers), key=_order)
    whole = [number for number in numbers if number.isdigit()]
    assert whole == [str(number) for number in range(1, len(whole) + 1)]
    assert {"4a", "13a", "17a", "27a", "31a", "38a"} == set(numbers) - set(whole)


def test_every_rule_has_an_anchor_and_a_title() -> None:
    rules = _TITLE.findall(PAGE)
    assert all(anchor == number for anchor, number in rules)
    assert len(rules) == PAGE.count("<a id=") == len(re.findall(r"\*\*\d+[a-z]?\. ", PAGE))


def promises() -> dict[str, str]:
    """Return the promises by number, as in 26 and 26.3: the title of a rule, the first words of a point."""
    promised: dict[str, str] = {}
    for rule in re.split(r'(?=<a id="rule-)', PAGE)[1:]:
        text = rule.partition("\n## ")[0]
        titled = re.match(r'<a id="rule-([^"]+)"></a>\*\*[^ ]+ (.+?)\*\*', text, re.DOTALL)
        assert titled is not None, text
        promised[titled[1]] = " ".join(titled[2].split())
        for at, point in enumerate(_POINT.findall(text), 1):
            promised[f"{titled[1]}.{at}"] = " ".join(point.replace("**", "").split()[:8])
    return promised


def test_every_promise_of_the_rules_names_its_tests() -> None:
    rows = _ROW.findall(TESTS)
    assert {number: words for number, _, words, _ in rows} == promises()
    assert all(number.partition(".")[0] == anchor for number, anchor, _, _ in rows)
    assert len(rows) == len(TESTS.splitlines()) - 7, "a row cannot be read"


def test_every_test_that_a_promise_names_is_there() -> None:
    named = set(re.findall(r"`([^`]+)::([^`]+)`", "".join(tests for *_, tests in _ROW.findall(TESTS))))
    there = {
        (file, name)
        for file in {file for file, _ in named}
        for name in _TEST.findall((ROOT / "tests" / file).read_text("utf-8"))
    }
    assert named - there == set()
