"""The generated parts of the documentation: none is stale, and no code is missing from its table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from documented import ROOT, Exchange, blocks
from interlock.cli.config import SURFACES
from interlock.cli.pages import pages
from interlock.core.outcomes import Code
from interlock.core.reasons import BlockerCode
from interlock.surfaces.meanings import BLOCKERS, ERRORS
from interlock.surfaces.navigation.errors import CODES
from server import INITIALIZE, Server

DOCS = ROOT / "docs"
DOORS = ROOT / "src" / "interlock" / "surfaces"
NOTICES = {"ARGUMENTS_IGNORED", "MODE_EXCEEDS_RECOMMENDATION", "NOTES_TRUNCATED", "NOT_TRIGGERED"}


def test_no_generated_page_is_stale() -> None:
    """Write them anew with: python -m interlock.cli.pages docs"""
    stale = [name for name, text in pages(DOCS).items() if (DOCS / name).read_text("utf-8") != text]
    assert stale == []


@pytest.mark.parametrize("door", SURFACES)
def test_every_code_that_a_door_writes_is_on_its_page(door: str) -> None:
    files = [*(DOORS / door).glob("*.py")]
    files += (DOORS / "activities").glob("*.py") if door in ("session", "gated") else []
    written = {code for file in files for code in re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', file.read_text())}
    assert written - NOTICES <= set(ERRORS[door])


def test_every_reason_of_the_core_is_on_a_page() -> None:
    told = {code for door in ("session", "gated", "navigation") for code in ERRORS[door]}
    assert {CODES.get(code, code.value) for code in Code} <= told
    assert {code.value for code in Code if code.value not in ERRORS["session"]} <= set(ERRORS["navigation"])
    assert set(BLOCKERS) == set(BlockerCode)


@pytest.mark.parametrize("door", SURFACES)
def test_the_exchange_on_a_page_is_what_the_server_says(door: str, tmp_path: Path) -> None:
    shown = [one for one in blocks(DOCS / "surfaces" / f"{door}.md") if one.language == "exchange"]
    assert [one.name for one in shown] == [door]
    with Server(tmp_path, "--surface", door, "--min-response-seconds", "0") as server:
        if door == "lookup":
            server.request("initialize", {**INITIALIZE, "protocolVersion": "2024-11-05"})
        assert Exchange(server).check(shown[0].body) >= 3
