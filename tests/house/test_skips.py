"""A test that is skipped says what it needs."""

from __future__ import annotations

import ast

import pytest

from support.paths import TESTS

SKIPS = {"pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail", "pytest.importorskip"}


def silent_skips(text: str) -> list[int]:
    """Return the lines that skip a test without a reason; a mark that is not called has none."""
    tree = ast.parse(text)
    reasoned = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (
            any(keyword.arg == "reason" for keyword in node.keywords)
            or (ast.unparse(node.func) == "pytest.skip" and node.args)
        )
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in SKIPS and id(node) not in reasoned
    ]


def test_every_skip_gives_a_reason() -> None:
    texts = {str(path.relative_to(TESTS)): path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    skipping = {name: text for name, text in texts.items() if any(skip in text for skip in SKIPS)}
    assert {name: lines for name, text in skipping.items() if (lines := silent_skips(text))} == {}


@pytest.mark.parametrize(
    ("source", "silent"),
    [
        ("pytest.skip()", True),
        ("pytest.skip('needs git')", False),
        ("@pytest.mark.skip\ndef test(): ...", True),
        ("@pytest.mark.skip(reason='needs git')\ndef test(): ...", False),
        ("mark = pytest.mark.skipif(True)", True),
        ("mark = pytest.mark.skipif(True, reason='needs git')", False),
        ("git = pytest.importorskip('git')", True),
    ],
)
def test_a_silent_skip_is_recognised(source: str, silent: bool) -> None:
    assert (silent_skips(source) != []) is silent
