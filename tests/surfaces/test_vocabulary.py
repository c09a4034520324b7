"""No surface names a tool that it does not have, and what lies below the surfaces names none (rule 40)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import interlock
from interlock.authoring.library import BUNDLED, Library
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.run.reasons import (
    Blocker,
    BlockerCode,
    CapabilityPointer,
    ContextKey,
    ContractPointer,
    Pointer,
    WorkflowStep,
)
from interlock.ledger.errors import ErrorCode, LedgerError
from interlock.surfaces.call import Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.execution import errors as execution
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.gated import errors as gated
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.navigation import errors as navigation
from interlock.surfaces.refusals import Words
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.session import errors as session
from interlock.surfaces.shared import replies
from interlock.surfaces.shared.sentences import LEFT_OUT
from interlock.surfaces.tool import Surface, Tool
from support.harness import Bench, compile_cache

SOURCE = Path(interlock.__file__).parent
RUNNING = ["execution", "session", "gated", "navigation"]
TABLES: Mapping[str, Callable[[Refusal], Words]] = {
    "execution": execution.words,
    "session": session.words,
    "gated": gated.words,
    "navigation": navigation.words,
}
ERRORS: Mapping[str, Callable[[LedgerError], Reply]] = {
    "execution": execution.of_error,
    "session": replies.of_error,
    "gated": replies.of_error,
    "navigation": navigation.of_error,
}

STEP = {"step": "build"}
GATE = {"checkpoint": "scope"}
TIMES = {**GATE, "elapsed_ms": 100, "minimum_ms": 3000}
MISSING = {"variables": ["files"], "reason": "The list 'files' is not set."}
ABOUT: Mapping[Code, list[Mapping[str, Any]]] = {
    Code.RUN_FINISHED: [{}],
    Code.RUN_ABANDONED: [{"abandoned": "abandoned by the user, cli: no time", "at": 0}],
    Code.DECISION_PENDING: [
        {**GATE, **STEP},
        {**GATE, "activity": "plan"},
        {**GATE, "activity": "plan", "target": "ship"},
    ],
    Code.GATE_UNANSWERED: [
        {**GATE, "instance": "scope", "question": "Which?"},
        {**GATE, "instance": "scope", "question": "Which?", "target": "ship"},
        {"target": "ship", "activity": "plan", "pending": ["scope", "risk"]},
        {**GATE, "question": "Which?", "inbox": True, "iteration": 2, "item": {"file": "a"}},
        *({"target": "ship", "left_out": "scope", "in_activity": "plan", "kind": kind} for kind in LEFT_OUT),
    ],
    Code.NO_ACTIVITY: [{"initial": "plan"}, {"activities": ["plan", "ship"]}],
    Code.ACTIVITY_NOT_FOUND: [{"target": "ship", "activities": ["plan"]}],
    Code.ACTIVITY_NOT_COMPLETE: [{"activity": "plan"}],
    Code.INVALID_TRANSITION: [{"target": "ship", "valid": ["plan"]}, {"target": "ship", "valid": []}],
    Code.STEP_NOT_FOUND: [STEP, {**STEP, "pending_step": "test"}],
    Code.STEP_NOT_PENDING: [STEP, {**STEP, "pending_step": "test"}],
    Code.STEP_ALREADY_COMPLETE: [STEP, {**STEP, "pending_step": "test"}],
    Code.OUTPUT_REQUIRED: [
        {**STEP, "reason": "It needs a report.", "example": {"kind": "report"}},
        {"reason": "It needs a report.", "examples": [{"kind": "report"}]},
    ],
    Code.INPUT_REQUIRED: [
        MISSING,
        {**STEP, **MISSING, "from_user": True},
        {**STEP, **MISSING},
        {"activity": "plan", "limit": 100},
    ],
    Code.CHECKPOINT_NOT_FOUND: [
        {**GATE, "activity": "plan", "checkpoints": ["risk"]},
        {**GATE, "activity": "plan", "checkpoints": []},
    ],
    Code.CHECKPOINT_NOT_ACTIVE: [
        {},
        GATE,
        {**GATE, "pending": ["risk"]},
        {**GATE, "pending": []},
        {**GATE, "ahead": True},
    ],
    Code.CHECKPOINT_ALREADY_ACTIVE: [{**GATE, "requested": "risk"}],
    Code.CHECKPOINT_ALREADY_ANSWERED: [{**GATE, "option": "small"}, {**GATE, "option": None}],
    Code.CHECKPOINT_STILL_ACTIVE: [GATE],
    Code.CHECKPOINT_NOT_YIELDED: [{}, {"yielded_by": ["worker"]}],
    Code.OPTION_NOT_FOUND: [{**GATE, "option": "huge", "options": ["small"]}],
    Code.RESOLUTION_MODE: [{}],
    Code.TOO_FAST: [TIMES],
    Code.NOT_AUTO_ADVANCING: [GATE, {**GATE, "blocking": True}],
    Code.TIMER_RUNNING: [TIMES],
    Code.NOT_CONDITIONAL: [GATE],
    Code.CONDITION_HOLDS: [{**GATE, "condition": "risky == true"}],
    Code.USER_MUST_DECIDE: [
        GATE,
        {**GATE, "decided": "small"},
        {**GATE, "asked": True},
        {"reason": "Which?", "examples": []},
        {**STEP, "reason": "Which?"},
    ],
    Code.ROUND_DUE: [
        {"loop": "each", "iteration": 2, "condition": "it goes on while risky == true", "steps": ["make"]}
    ],
    Code.LOOP_NOT_FOUND: [
        {"loop": "each"},
        {"loop": "each", "pending_loop": "other"},
        {"loop": "each", "pending_step": "test"},
    ],
    Code.LOOP_ITEMS_REQUIRED: [MISSING],
    Code.CHILD_RUNNING: [{"children": ["helper"]}],
    Code.REASK_IMPOSSIBLE: [{"reason": "No question shows 'x'.", "variables": ["x"]}],
    Code.VARIABLES_TOO_LARGE: [{"bytes": 300_000, "most": 262_144}],
    Code.CHECK_FAILED: [
        {"check": "tests", "reason": "Check 'tests' failed (exit 1): expected exit 0.", "for_user": False},
        {"check": "tests", "reason": "Check 'tests' was not run: nobody has trusted it.", "for_user": True},
    ],
    Code.CHECKED_AGAIN: [{"reason": "Files have changed since checkpoint 'scope' was put."}],
    Code.GUARD_REFUSED: [{"invariant": "I1", "detail": "gate 'scope' is passed without an answer"}],
}
POINTERS: list[Pointer] = [
    ContextKey("files"),
    ContractPointer("team.report"),
    ContractPointer("wr.contracts.decision"),
    CapabilityPointer("delegation"),
    WorkflowStep("build"),
]


@pytest.fixture
def surfaces(tmp_path: Path) -> Mapping[str, Surface]:
    ledger = Bench(tmp_path).ledger()
    return {
        "execution": ExecutionSurface(ledger),
        "session": SessionSurface(ledger),
        "gated": GatedSurface(ledger),
        "navigation": NavigationSurface(ledger),
        "lookup": LookupSurface(Library([BUNDLED], compile_cache())),
    }


def foreign(surfaces: Mapping[str, Surface], *names: str) -> re.Pattern[str]:
    """The tools that none of the named surfaces has, as whole words."""
    every = {tool for surface in surfaces.values() for tool in surface.tools}
    others = every - {tool for name in names for tool in surfaces[name].tools}
    return re.compile(rf"\b({'|'.join(sorted(others))})\b")


def foreign_parameters(surfaces: Mapping[str, Surface], name: str) -> re.Pattern[str]:
    """The parameters that the surface does not have, where they are not also plain English words."""
    parameters = {
        key: {field for tool in surface.tools.values() for field in properties(tool)}
        for key, surface in surfaces.items()
    }
    every = set().union(*parameters.values())
    others = {word for word in every - parameters[name] if not (word.isalpha() and word.islower())}
    return re.compile(rf"\b({'|'.join(sorted(others))})\b")


def properties(tool: Tool) -> Iterator[str]:
    listed = tool.argument_schema()["properties"]
    assert isinstance(listed, Mapping)
    yield from listed


def literals(folder: Path) -> Iterator[tuple[str, str]]:
    """Every string of the code in a folder that is not a docstring, with its file."""
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            inner = [] if documented else ast.iter_child_nodes(node)
            for child in inner:
                if isinstance(child, ast.Constant) and isinstance(child.value, str):
                    yield path.name, child.value


def test_the_samples_cover_every_refusal() -> None:
    assert set(ABOUT) == set(Code)


@pytest.mark.parametrize("name", RUNNING)
def test_a_refusal_names_only_tools_of_its_own_surface(name: str, surfaces: Mapping[str, Surface]) -> None:
    others, strange = foreign(surfaces, name), foreign_parameters(surfaces, name)
    for code, samples in ABOUT.items():
        for about in samples:
            told = TABLES[name](Refusal(code, about))
            assert told.message, (code, about)
            assert told.next_action.endswith("."), (code, about)
            assert not re.search(r"None|''|: \.|{[a-z_]+}", told.message + told.next_action), (code, about)
            assert not others.search(f"{told.message} {told.next_action}"), (code, about)
            assert not strange.search(told.next_action), (code, about)


@pytest.mark.parametrize("name", RUNNING)
def test_an_error_of_the_ledger_names_only_tools_of_its_own_surface(
    name: str, surfaces: Mapping[str, Surface]
) -> None:
    others = foreign(surfaces, name)
    for code in get_args(ErrorCode):
        for action in ("Ask the user to run `interlock doctor`.", ""):
            reply = ERRORS[name](LedgerError(code, "A sentence.", action))
            assert not others.search(reply.text), code


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("code", ["TOKEN_UNKNOWN_NODE", "TOKEN_SCOPE_MISMATCH"])
def test_an_error_that_only_a_tool_can_mend_has_a_next_action_everywhere(name: str, code: ErrorCode) -> None:
    """The ledger has no command for people to offer there; the surface says which of its tools helps."""
    reply = ERRORS[name](LedgerError(code, "A sentence."))
    assert re.search(r"start_session|resume_session|nav_start", reply.text)


@pytest.mark.parametrize("code", list(BlockerCode))
def test_every_blocker_gets_a_fix_in_the_words_of_execution(
    code: BlockerCode, surfaces: Mapping[str, Surface]
) -> None:
    others = foreign(surfaces, "execution")
    for pointer in POINTERS:
        for example in (None, {"kind": "report"}):
            fix = execution.suggested_fix(Blocker(code, pointer, "A sentence.", example=example))
            assert fix
            assert not others.search(fix)


@pytest.mark.parametrize("name", [*RUNNING, "lookup"])
def test_what_a_surface_lists_names_only_its_own_tools(name: str, surfaces: Mapping[str, Surface]) -> None:
    surface, others = surfaces[name], foreign(surfaces, name)
    assert not others.search(surface.instructions)
    for tool in surface.tools.values():
        shown = [tool.description, tool.argument_schema(), tool.output_schema or {}, tool.examples]
        assert not others.search(msgspec.json.encode(shown).decode()), tool.name


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("surfaces/execution", ["execution"]),
        ("surfaces/session", ["session"]),
        ("surfaces/gated", ["gated"]),
        ("surfaces/navigation", ["navigation"]),
        ("surfaces/lookup", ["lookup"]),
        ("surfaces/refusals.py", []),
        ("core", []),
        ("ledger/errors.py", []),
    ],
)
def test_the_code_of_a_room_writes_no_foreign_tool_name(
    folder: str, names: list[str], surfaces: Mapping[str, Surface]
) -> None:
    others = foreign(surfaces, *names)
    found = [(file, text) for file, text in literals(SOURCE / folder) if others.search(text)]
    assert found == []


def test_what_session_and_gated_share_names_only_tools_of_both(surfaces: Mapping[str, Surface]) -> None:
    every = {tool for surface in surfaces.values() for tool in surface.tools}
    common = surfaces["session"].tools.keys() & surfaces["gated"].tools.keys()
    others = re.compile(rf"\b({'|'.join(sorted(every - common))})\b")
    found = [(file, text) for file, text in literals(SOURCE / "surfaces" / "shared") if others.search(text)]
    assert found == []
