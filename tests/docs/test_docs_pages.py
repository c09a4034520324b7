"""The generated parts of the documentation: none is stale, and no code is missing from its table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from interlock.core.run.outcomes import Code
from interlock.core.run.reasons import BlockerCode
from interlock.surfaces.navigation.errors import CODES
from interlock.surfaces.registry import SURFACES
from support.documented import ROOT, Exchange, blocks
from support.server import INITIALIZE, Server
from tools.pages.codes import BLOCKERS, ERRORS
from tools.pages.commands import pages
from tools.pages.results import OPEN, RESULTS

DOCS = ROOT / "docs"
SURFACE_ROOM = ROOT / "src" / "interlock" / "surfaces"
NOTICES = {"ARGUMENTS_IGNORED", "MODE_EXCEEDS_RECOMMENDATION", "NOTES_TRUNCATED", "NOT_TRIGGERED"}
NOTICES |= {"STILL_WAITING", "MOVED_ON", "OLD_STATE", "OTHER_BRANCH", "NEW_BRANCH", "SENT_BEFORE"}


def test_no_generated_page_is_stale() -> None:
    """Write them anew with: python -m tools.pages docs"""
    stale = [name for name, text in pages(DOCS).items() if (DOCS / name).read_text("utf-8") != text]
    assert stale == []


def test_the_comparison_repeats_the_numbers_of_the_readme() -> None:
    numbers = (ROOT / "README.md").read_text("utf-8").partition("## Numbers")[2].partition("\n## ")[0]
    table = (DOCS / "comparison.md").read_text("utf-8").partition("| Interlock |")[2].partition("\n\n")[0]
    figures = [
        figure
        for row in table.splitlines()
        for figure in re.findall(
            r"[\d.,]+ (?:ms|bytes)|\d+ / \d+ MB", row.split("|")[-2:-1][0] if "|" in row else ""
        )
    ]
    assert len(figures) == 5
    assert [figure for figure in figures if figure.removesuffix(" bytes") not in numbers] == []


@pytest.mark.parametrize("surface", SURFACES)
def test_every_code_that_a_surface_writes_is_on_its_page(surface: str) -> None:
    files = [*(SURFACE_ROOM / surface).glob("*.py")]
    files += (SURFACE_ROOM / "shared").glob("*.py") if surface in ("session", "gated") else []
    written = {code for file in files for code in re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', file.read_text())}
    assert written - NOTICES <= set(ERRORS[surface])


def test_every_reason_of_the_core_is_on_a_page() -> None:
    told = {code for surface in ("session", "gated", "navigation") for code in ERRORS[surface]}
    assert {CODES.get(code, code.value) for code in Code} <= told
    assert {code.value for code in Code if code.value not in ERRORS["session"]} <= set(ERRORS["navigation"])
    assert set(BLOCKERS) == set(BlockerCode)


def started(surface: str, folder: Path) -> Server:
    server = Server(folder, "--surface", surface, "--min-response-seconds", "0")
    if surface == "lookup":
        server.request("initialize", {**INITIALIZE, "protocolVersion": "2024-11-05"})
    return server


@pytest.mark.parametrize("surface", SURFACES)
def test_the_exchange_on_a_page_is_what_the_server_says(surface: str, tmp_path: Path) -> None:
    shown = [block for block in blocks(DOCS / "surfaces" / f"{surface}.md") if block.language == "exchange"]
    assert [item.name for item in shown] == [surface]
    with started(surface, tmp_path) as server:
        assert Exchange(server).check(shown[0].body) >= 3


FLOW, TOKEN, STATE = '"workflow_id": "work-package"', '"session_token": "ses.v1.…"', '"state": "v1.gzB64.…"'
# What the question shows, and what decides what follows.
WHOLE = '"variables": {"issue_ref": "#7", "scope": "one page", "complexity": "small", "open_questions": []}'
CALLS = {
    "execution": (
        "list_workflows {}",
        'inspect_workflow {"workflowId": "wr.small_task"}',
        'start_session {"title": "Notes"}',
        'checkpoint_workflow {"sessionToken": "sst.v1.…", "output": {"notesMarkdown": "Half way."}}',
        'resume_session {"query": "notes"}',
    ),
    "session": (
        "discover {}",
        "list_workflows {}",
        "health_check {}",
        f'start_session {{"agent_id": "one", {FLOW}}}',
        f"get_workflow_status {{{TOKEN}}}",
        f"get_workflow {{{TOKEN}}}",
        f'next_activity {{{TOKEN}, "activity_id": "understand-issue"}}',
        f"get_activity {{{TOKEN}}}",
        f"get_skills {{{TOKEN}}}",
        f"get_skill {{{TOKEN}}}",
        f'get_resource {{{TOKEN}, "resource_id": "00"}}',
        f"get_trace {{{TOKEN}}}",
        f'yield_checkpoint {{{TOKEN}, "checkpoint_id": "confirm-scope", {WHOLE}}}',
        f"present_checkpoint {{{TOKEN}}}",
        f'respond_checkpoint {{{TOKEN}, "option_id": "full"}}',
        f"resume_checkpoint {{{TOKEN}}}",
        f'yield_checkpoint {{{TOKEN}, "checkpoint_id": "confirm-scope", {WHOLE}}}',
    ),
    "gated": (
        "discover {}",
        "list_workflows {}",
        "health_check {}",
        f"start_session {{{FLOW}}}",
        f"get_workflow {{{TOKEN}}}",
        f'next_activity {{{TOKEN}, "activity_id": "understand-issue"}}',
        f'get_checkpoint {{{TOKEN}, "activity_id": "understand-issue", "checkpoint_id": "confirm-scope"}}',
        f'respond_checkpoint {{{TOKEN}, "checkpoint_id": "confirm-scope", "option_id": "full", {WHOLE}}}',
        f"get_skills {{{TOKEN}}}",
        f'get_skill {{{TOKEN}, "step_id": "write-analysis"}}',
        f'get_resource {{{TOKEN}, "resource_index": "00"}}',
        f"get_trace {{{TOKEN}}}",
    ),
    "navigation": (
        f"nav_start {{{FLOW}}}",
        f"nav_situation {{{STATE}}}",
        f"nav_checkpoint {{{STATE}}}",
        f'nav_action {{{STATE}, "action": "complete_step", "step_id": "read-issue"}}',
        "list_workflows {}",
        f"get_workflow {{{FLOW}}}",
        f'get_workflow_activity {{{FLOW}, "activity_id": "prepare"}}',
        f'get_checkpoint {{{FLOW}, "activity_id": "prepare", "checkpoint_id": "red-baseline"}}',
        f'validate_transition {{{FLOW}, "from_activity": "prepare", "to_activity": "plan"}}',
        "health_check {}",
        "get_activities {}",
        'get_activity {"activity_id": "prepare"}',
        "get_skills {}",
        f"list_skills {{{FLOW}}}",
        f'get_skill {{{FLOW}, "skill_id": "analyse-issue"}}',
        f"list_workflow_resources {{{FLOW}}}",
        f'get_resource {{{FLOW}, "index": "00"}}',
        f"list_templates {{{FLOW}}}",
        f'get_template {{{FLOW}, "index": "00"}}',
        "discover_resources {}",
    ),
    "lookup": ('workflow_get {"id": "wr-small-task"}',),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_what_a_page_says_of_a_result_is_what_the_tool_answers(surface: str, tmp_path: Path) -> None:
    with started(surface, tmp_path) as server:
        talk = Exchange(server)
        for call in CALLS[surface]:
            tool, _, arguments = call.partition(" ")
            result = talk.result(tool, json.loads(arguments))
            assert not result.get("isError"), result
            if tool in RESULTS[surface]:
                check_result(RESULTS[surface][tool], result)
    assert {call.partition(" ")[0] for call in CALLS[surface]} >= set(RESULTS[surface])


def check_result(told: str, result: dict[str, Any]) -> None:
    text = result["content"][0]["text"]
    named = set(re.findall(r"`(\w+)`", told)) - {"_meta"}
    try:
        body = json.loads(text)
    except ValueError:
        assert told.startswith(("Text", "As continue_workflow"))
        body = result.get("structuredContent", {})
    else:
        assert "JSON" in told
    if isinstance(body, dict):
        assert OPEN in told or set(body) <= named, told
        assert not named or set(body) & named, told
