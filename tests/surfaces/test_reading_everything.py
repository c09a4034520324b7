"""Every reading tool of every surface reads every workflow: the corpus, ours, one with every field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.sources.sources import Source
from interlock.core.definition.workflow import Workflow
from interlock.core.run.commands import Terms
from interlock.surfaces.call import Call, Outcome, Refused, Reply, RpcError
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.ledger_surface import LedgerSurface
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.shared.workflow_shapes import activity_shape, workflow_shape
from interlock.surfaces.tool import Surface
from support.every_field import write_every_field
from support.harness import Bench, compile_cache
from support.paths import CORPUS

FREELY = Terms(decisions="agent", enforcement="advisory", min_response_ms=0)


class Reader:
    """Calls tools of one surface; an exception in a handler fails the test as it is."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.called: set[str] = set()

    def read(self, tool: str, **arguments: Any) -> Reply | None:
        self.called.add(tool)
        params = msgspec.convert(arguments, self.surface.tools[tool].params)
        try:
            outcome: Outcome = self.surface.tools[tool].handler(params, Call())
        except Refused as refused:
            outcome = refused.reply
        assert isinstance(outcome, (Reply, RpcError)), outcome
        if isinstance(outcome, RpcError):
            return None
        assert outcome.text
        msgspec.json.encode([outcome.structured, dict(outcome.meta)])
        return outcome


def token_of(reply: Reply | None) -> str:
    assert reply is not None
    return str(reply.meta["session_token"])


def steps_of(workflow: Workflow) -> Iterator[tuple[str, str]]:
    for activity in workflow.activities:
        for step in activity.steps():
            yield activity.id, step.id


def read_session(reader: Reader, workflow: Workflow) -> None:
    for tool in ("discover", "list_workflows", "health_check"):
        reader.read(tool)
    start = {"agent_id": "a", "workflow_id": workflow.id}
    token = token_of(reader.read("start_session", **start))
    for arguments in ({}, {"summary": False}, {"summary": True}):
        reader.read("get_workflow", session_token=token, **arguments)
    for tool in ("get_skills", "get_workflow_status", "get_trace"):
        reader.read(tool, session_token=token)
    for document in workflow.documents:
        if document.kind == "resource":
            reader.read("get_resource", session_token=token, resource_id=document.ref)
    for activity in workflow.activities:
        entered = reader.read(
            "next_activity",
            session_token=token_of(reader.read("start_session", **start)),
            activity_id=activity.id,
        )
        if entered is None or entered.is_error:
            continue
        token = token_of(entered)
        reader.read("get_activity", session_token=token)
        reader.read("get_activity", session_token=token)
        reader.read("get_activity", session_token=token, full=True)
        for tool in ("get_skills", "get_skill", "get_workflow_status"):
            reader.read(tool, session_token=token)
        for step in activity.steps():
            reader.read("get_skill", session_token=token, step_id=step.id)
        for gate in activity.gates():
            begun = token_of(reader.read("start_session", **start))
            token = token_of(reader.read("next_activity", session_token=begun, activity_id=activity.id))
            reader.read("yield_checkpoint", session_token=token, checkpoint_id=gate.id)
            reader.read("present_checkpoint", session_token=token)


def read_gated(reader: Reader, workflow: Workflow) -> None:
    for tool in ("discover", "list_workflows", "health_check"):
        reader.read(tool)
    token = token_of(reader.read("start_session", workflow_id=workflow.id))
    for arguments in ({}, {"summary": False}, {"summary": True}):
        reader.read("get_workflow", session_token=token, **arguments)
    for tool in ("get_skills", "get_trace"):
        reader.read(tool, session_token=token)
    for document in workflow.documents:
        if document.kind == "resource":
            reader.read("get_resource", session_token=token, resource_index=document.ref)
    for activity in workflow.activities:
        begun = token_of(reader.read("start_session", workflow_id=workflow.id))
        entered = reader.read("next_activity", session_token=begun, activity_id=activity.id)
        if entered is None or entered.is_error:
            continue
        token = token_of(entered)
        reader.read("get_skills", session_token=token)
        for gate in activity.gates():
            reader.read("get_checkpoint", session_token=token, activity_id=activity.id, checkpoint_id=gate.id)
        for step in activity.steps():
            if "get_skill" in reader.surface.tools:
                reader.read("get_skill", session_token=token, step_id=step.id)


def read_navigation(reader: Reader, workflow: Workflow) -> None:
    for tool in ("list_workflows", "health_check", "get_activities", "get_skills", "discover_resources"):
        reader.read(tool)
    of_workflow = {"workflow_id": workflow.id}
    started = reader.read("nav_start", **of_workflow)
    assert started is not None
    state = msgspec.json.decode(started.text)["state"]
    reader.read("nav_situation", state=state)
    reader.read("nav_checkpoint", state=state)
    for tool in ("get_workflow", "list_skills", "list_workflow_resources", "list_templates"):
        reader.read(tool, **of_workflow)
    for document in workflow.documents:
        if document.kind == "skill":
            reader.read("get_skill", skill_id=document.id, **of_workflow)
        else:
            index = document.ref.rpartition("/")[2]
            reader.read("get_resource", index=index, **of_workflow)
            reader.read("get_template", index=index, **of_workflow)
    for activity in workflow.activities:
        of_activity = {**of_workflow, "activity_id": activity.id}
        reader.read("get_workflow_activity", **of_activity)
        reader.read("get_activity", activity_id=activity.id)
        for gate in activity.gates():
            reader.read("get_checkpoint", checkpoint_id=gate.id, **of_activity)
        for other in workflow.activities:
            reader.read("validate_transition", from_activity=activity.id, to_activity=other.id, **of_workflow)


def read_lookup(reader: Reader, workflow: Workflow) -> None:
    reader.read("workflow_list")
    name = workflow.id.replace(".", "-").replace("_", "-")
    reader.read("workflow_get", id=name)
    for mode in ("metadata", "preview"):
        reader.read("workflow_get", id=name, mode=mode)
    reader.read("workflow_next", workflowId=name, completedSteps=[])
    for _, step in steps_of(workflow):
        shown = step.lower().replace("#", "-")
        reader.read("workflow_validate", workflowId=name, stepId=shown, output="ok")


def read_execution(reader: Reader, workflow: Workflow) -> None:
    reader.read("list_workflows")
    for mode in ("metadata", "preview"):
        reader.read("inspect_workflow", workflowId=workflow.id, mode=mode)
    started = reader.read("start_workflow", workflowId=workflow.id)
    assert started is not None
    assert not started.is_error
    tokens = dict(re.findall(r"^(stateToken|checkpointToken): (\S+)$", started.text, re.MULTILINE))
    reader.read("continue_workflow", stateToken=tokens["stateToken"])
    reader.read("checkpoint_workflow", **tokens, output={"notesMarkdown": "half way"})
    reader.read("resume_session", query=workflow.name)
    reader.read("start_session", title=workflow.name)


def read_documents(surface: LedgerSurface, workflow: Workflow) -> None:
    """Read the workflow as a prompt and as resources, which every surface with a log offers alike."""
    assert surface.prompts().text(workflow.id, {"goal": "x"})
    assert surface.prompts().text("resume", {"query": workflow.name})
    resources = surface.resources()
    for resource in resources.all():
        if workflow.id in resource.uri:
            assert resources.read(resource.uri) is not None, resource.uri


def read_everywhere(bench: Bench, library: Library, workflow: Workflow) -> None:
    ledger = bench.ledger(terms=FREELY)
    ledger.library = library
    read_execution(Reader(ExecutionSurface(ledger)), workflow)
    read_documents(ExecutionSurface(ledger), workflow)
    read_session(Reader(SessionSurface(ledger)), workflow)
    read_gated(Reader(GatedSurface(ledger)), workflow)
    read_navigation(Reader(NavigationSurface(ledger)), workflow)
    read_lookup(Reader(LookupSurface(library)), workflow)


def loaded_from(library: Library) -> list[Workflow]:
    workflows = [library.load(entry.id) for entry in library.listing().entries]
    return [loaded.workflow for loaded in workflows if isinstance(loaded, Loaded)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["every-field", "every-field-in-steps"])
def test_a_workflow_with_every_field_set_is_read(bench: Bench, tmp_path: Path, name: str) -> None:
    library = Library([BUNDLED, Source("configured", write_every_field(tmp_path / "files"))], compile_cache())
    loaded = library.load(name)
    assert isinstance(loaded, Loaded), loaded
    read_everywhere(bench, library, loaded.workflow)


def test_the_whole_definition_has_what_the_head_of_a_file_says(tmp_path: Path) -> None:
    library = Library([BUNDLED, Source("configured", write_every_field(tmp_path))], compile_cache())
    loaded = library.load("every-field")
    assert isinstance(loaded, Loaded), loaded
    shape: Any = workflow_shape(loaded.workflow)
    assert (shape["category"], shape["minServerVersion"]) == ("text", "0.0.1")
    assert shape["skills"] == {"primary": "craft", "supporting": ["craft"]}
    assert shape["recommendedPreferences"] == {
        "recommendedAutonomy": "full_auto_never_stop",
        "recommendedRiskPolicy": "aggressive",
    }


def test_what_a_file_says_is_not_replaced_by_an_unknown_field_of_the_same_name(tmp_path: Path) -> None:
    library = Library([BUNDLED, Source("configured", write_every_field(tmp_path))], compile_cache())
    loaded = library.load("every-field")
    assert isinstance(loaded, Loaded), loaded
    shape: Any = activity_shape(loaded.workflow.activities[0])
    assert shape["name"] == "helper"
    step = next(step for step in shape["steps"] if step.get("id") == "do")
    assert isinstance(step["confirmedBy"], str)
    assert step["skill_args"]


@pytest.mark.slow
def test_every_bundled_workflow_is_read(bench: Bench) -> None:
    library = Library([BUNDLED], compile_cache())
    for workflow in loaded_from(library):
        read_everywhere(bench, library, workflow)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["activities", "steps", "steps-v1"])
def test_every_workflow_of_the_corpus_is_read(bench: Bench, corpus: Path, folder: str) -> None:
    assert corpus == CORPUS
    source = Source("configured", corpus / folder, "mounted")
    library = Library([BUNDLED, source], compile_cache())
    workflows = loaded_from(Library([source], compile_cache()))
    assert any(workflow.id.startswith("mounted.") for workflow in workflows) or folder == "activities"
    for workflow in workflows:
        read_everywhere(bench, library, workflow)


@pytest.mark.slow
def test_no_reading_tool_is_left_out(bench: Bench, tmp_path: Path) -> None:
    library = Library([BUNDLED, Source("configured", write_every_field(tmp_path / "files"))], compile_cache())
    loaded = library.load("every-field")
    assert isinstance(loaded, Loaded), loaded
    ledger = bench.ledger(terms=FREELY)
    ledger.library = library
    acting = {
        "execution": set[str](),
        "session": {"resume_checkpoint", "respond_checkpoint"},
        "gated": {"respond_checkpoint"},
        "navigation": {"nav_action"},
        "lookup": {"workflow_validate_json"},
    }
    readers = {
        "execution": (read_execution, ExecutionSurface(ledger)),
        "session": (read_session, SessionSurface(ledger)),
        "gated": (read_gated, GatedSurface(ledger)),
        "navigation": (read_navigation, NavigationSurface(ledger)),
        "lookup": (read_lookup, LookupSurface(library)),
    }
    for name, (read, surface) in readers.items():
        reader = Reader(surface)
        read(reader, loaded.workflow)
        assert set(surface.tools) - reader.called == acting[name]
