"""A schema refers only to its own document: nothing is read from a file or a host."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.authoring.library import Library, Loaded, Source
from interlock.core.definition.conditions import Scope
from interlock.core.definition.criteria import failed_checks
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Activity, Contract, NotRule, Rule, Step, Workflow
from interlock.core.engine.requirements import unmet
from interlock.core.json_schema import violations
from interlock.core.run.output import Output
from support.authored import head
from support.cli_process import interlock
from support.harness import Bench
from support.lookup_client import lookup_client
from support.paths import SOURCE

CANARY = "canary-d41d8cd9"


class Outside:
    """A file and a host that no schema may reach."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "outside" / "secret.json"
        self.file.parent.mkdir()
        self.file.write_text(json.dumps({"const": CANARY}))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}/schema.json"

    def was_called(self) -> bool:
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    target = Outside(tmp_path)
    yield target
    called = target.was_called()
    target.listener.close()
    assert not called


def schemas(file: str) -> dict[str, dict[str, Any]]:
    """Return one schema for each way to refer to another document."""
    folder, _, name = file.rpartition("/")
    reference = {"$ref": file}
    return {
        "plain": reference,
        "with a fragment": {"$ref": f"{file}#/const"},
        "relative": {"$ref": "secret.json"},
        "relative to an id": {"$id": f"{folder}/own.json", "$ref": name},
        "relative to an inner id": {"properties": {"a": {"$id": f"{folder}/own.json", "$ref": name}}},
        "relative to an older id": {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": f"{folder}/own.json",
            "allOf": [{"$ref": name}],
        },
        "dynamic": {"$dynamicRef": file},
        "recursive": {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": file},
        "in allOf": {"allOf": [{"type": "object"}, reference]},
        "in not": {"not": reference},
        "in a property": {"properties": {"a": {"items": reference}}},
        "in a property named const": {"properties": {"const": reference}},
        "in an unused definition": {"$defs": {"a": reference}},
        "in an unknown keyword": {"$ref": "#/more", "more": reference},
        "in data that is used as a schema": {"$ref": "#/const", "const": reference},
        "as the meta-schema": {"$schema": file},
    }


REFERENCES = list(schemas("x/y"))


@pytest.fixture(params=REFERENCES)
def schema_of(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def both(outside: Outside, name: str) -> list[dict[str, Any]]:
    return [schemas(outside.file.as_uri())[name], schemas(outside.address)[name]]


def with_output(schema: dict[str, Any]) -> dict[str, Any]:
    return head(
        {"id": "ask", "title": "A", "prompt": "P", "output": {"kind": "k", "schema": schema, "example": {}}}
    )


def with_criterion(schema: dict[str, Any]) -> dict[str, Any]:
    rule = {"type": "schema", "schema": schema, "message": "M"}
    return head({"id": "ask", "title": "A", "prompt": "P", "validationCriteria": [{"not": rule}]})


def test_a_file_with_such_a_schema_does_not_compile(tmp_path: Path, outside: Outside, schema_of: str) -> None:
    folder = tmp_path / "workflows"
    folder.mkdir()
    for schema in both(outside, schema_of):
        for workflow in (with_output(schema), with_criterion(schema)):
            (folder / "w.json").write_text(json.dumps(workflow, indent=1))
            library = Library([Source("configured", folder)])
            listing = library.listing()
            assert listing.entries == ()
            errors = [error for error in listing.diagnostics if error.severity == "error"]
            assert errors
            assert all(error.file == "w.json" and error.line > 1 for error in errors)
            assert CANARY not in repr(listing)
            assert not isinstance(library.load("t.w"), Loaded)


def test_the_diagnostic_names_the_reference_at_its_location(tmp_path: Path, outside: Outside) -> None:
    (tmp_path / "w.json").write_text(
        json.dumps(with_output({"allOf": [{"$ref": outside.address}]}), indent=1)
    )
    (error,) = Library([Source("configured", tmp_path / "w.json")]).listing().diagnostics
    line = (tmp_path / "w.json").read_text().splitlines()[error.line - 1]
    assert (error.code, outside.address in error.message, outside.address in line) == ("IL308", True, True)


def test_lookup_refuses_such_a_text(outside: Outside, schema_of: str) -> None:
    ask = lookup_client(Library([]))
    for schema in both(outside, schema_of):
        for workflow in (with_output(schema), with_criterion(schema)):
            verdict = ask("workflow_validate_json", workflowJson=json.dumps(workflow))
            assert verdict["valid"] is False
            assert CANARY not in repr(verdict)


def test_a_validator_never_reads_what_a_recorded_workflow_refers_to(outside: Outside, schema_of: str) -> None:
    for schema in both(outside, schema_of):
        for value in (1, CANARY, {"a": [1], "const": 1}):
            assert CANARY not in repr([text for text in violations(schema, value) if value != CANARY])


def test_an_acknowledgement_is_blocked_by_a_schema_that_cannot_be_used(outside: Outside) -> None:
    for schema in both(outside, "plain"):
        step = Step("s", "S", contracts=(Contract("output.k", "k", schema),))
        plan = Plan(Workflow("w", "W", "", "1.0.0", (Activity("a", "A", (step,)),)))
        (blocker,) = unmet(plan, step, Output(artifacts=({"kind": "k"},)), Scope({}, {}), ())
        assert "cannot be used" in blocker.message
        (failed,) = failed_checks(Rule("schema", "M", schema=schema), "1", Scope({}, {}))
        assert "cannot be used" in failed.requirement
        (failed,) = failed_checks(NotRule(Rule("schema", "M", schema=schema)), "1", Scope({}, {}))
        assert "cannot be used" in failed.requirement


def test_the_server_lists_and_validates_without_a_connection(tmp_path: Path, outside: Outside) -> None:
    bench = Bench(tmp_path)
    for index, schema in enumerate(both(outside, "plain")):
        bench.write({**with_output(schema), "id": f"t.w{index}"})
        agent = bench.agent()
        answer = agent.call("list_workflows")
        assert CANARY not in repr(answer) + agent.text
        refusal = agent.start(f"t.w{index}")
        assert refusal["_error"]
        assert CANARY not in repr(refusal) + agent.text


def test_the_command_names_the_code_and_no_content(tmp_path: Path, outside: Outside) -> None:
    for schema in both(outside, "plain"):
        path = tmp_path / "w.json"
        path.write_text(json.dumps(with_output(schema)))
        ran = interlock(tmp_path / "data", "validate", str(path))
        assert ran.code == 1
        assert "IL308" in ran.out
        assert CANARY not in ran.out + ran.err


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "object"}}},
        {"$dynamicRef": "#node", "$dynamicAnchor": "node"},
        {"$id": "https://host.example/own", "$ref": "#/$defs/a", "$defs": {"a": True}},
        {"properties": {"a": {"const": {"$ref": "file:///data-not-a-reference"}}}},
        {"properties": {"$ref": {"type": "string"}}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
    ],
)
def test_references_within_the_document_are_allowed(tmp_path: Path, schema: dict[str, Any]) -> None:
    (tmp_path / "w.json").write_text(json.dumps(with_output(schema)))
    assert Library([Source("configured", tmp_path)]).listing().diagnostics == ()


def test_validators_are_built_in_one_module() -> None:
    users = {
        path.name for path in SOURCE.rglob("*.py") if "jsonschema_rs" in path.read_text(encoding="utf-8")
    }
    assert users == {"json_schema.py"}
