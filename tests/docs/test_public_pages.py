"""SECURITY.md and CHANGELOG.md: what they point to is there."""

from __future__ import annotations

import re

from interlock import __version__
from support.paths import ROOT

SECURITY = (ROOT / "SECURITY.md").read_text("utf-8")


def test_every_promise_names_tests_that_are_there() -> None:
    promises = [line for line in SECURITY.splitlines() if line.startswith("| ") and "shown by" not in line]
    assert len(promises) >= 14
    for promise in promises:
        named = re.findall(r"`(tests/[^`]+)`", promise)
        assert named, promise
        assert [name for name in named if "def test_" not in (ROOT / name).read_text("utf-8")] == []


def test_the_changelog_begins_with_what_is_not_released_or_with_this_version() -> None:
    first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert first is not None
    assert first[1] == "Unreleased" or first[1].startswith(f"{__version__} ")
