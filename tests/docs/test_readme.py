"""The front page: its transcript and its picture are what the product prints today."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from support.documented import ROOT, blocks
from tools.readme_gate import PICTURE, Example, play

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return play(tmp_path_factory.mktemp("example"))


@pytest.mark.slow
def test_the_transcript_is_what_happens(example: Example) -> None:
    """Print it anew with: python -m tools.readme_gate"""
    (shown,) = (block.body.splitlines() for block in blocks(README) if block.name == "transcript")
    assert shown == example.transcript
    assert len(shown) == 10


def test_the_picture_shows_what_the_user_sees(example: Example) -> None:
    """Draw it anew with: python -m tools.readme_gate"""
    printed = re.sub(r"\x1b\[[\d;]*m", "", example.screen)
    assert words(printed) == words(text_of(PICTURE))


def text_of(picture: Path) -> str:
    parts = re.findall(r"<text [^>]*clip-path[^>]*>([^<]*)</text>", picture.read_text("utf-8"))
    return html.unescape(" ".join(parts))


def words(text: str) -> list[str]:
    return text.replace("\xa0", " ").split()


def test_the_first_screen_says_what_it_is_and_how_to_run_it() -> None:
    lines = README.read_text("utf-8").splitlines()
    assert lines[4].startswith("Interlock is an MCP server that makes AI agents follow a workflow")
    assert {"make run", "make test"} <= {line.partition("#")[0].strip() for line in lines[:30]}
