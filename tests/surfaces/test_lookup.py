"""The lookup surface: what it shows of a workflow, which step it offers, what it says of an output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from interlock.authoring.library import BUNDLED, Library, Source
from interlock.core.definition.workflow import Activity, Step, Workflow
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.lookup.names import names_of
from interlock.surfaces.lookup.progress import Offered, due_step
from interlock.surfaces.tool import Call, Reply, RpcFailure, call_tool
from support.paths import CORPUS

CAP = 25

Ask = Callable[..., Any]


def asking(library: Library) -> Ask:
    """Call a tool in process; a failure comes back as it is, an answer as plain JSON."""
    surface = LookupSurface(library)

    def ask(tool: str, **arguments: Any) -> Any:
        outcome = call_tool(surface, tool, arguments, Call())
        if isinstance(outcome, RpcFailure):
            return outcome
        assert isinstance(outcome, Reply)
        assert msgspec.json.decode(outcome.text) == outcome.structured
        return outcome.structured

    return ask


def everything() -> Library:
    mounts = {"activities": None, "steps": "corpus", "steps-v1": "older"}
    found = [
        Source("configured", CORPUS / folder, name)
        for folder, name in mounts.items()
        if (CORPUS / folder).is_dir()
    ]
    return Library([BUNDLED, *found])


@pytest.fixture(scope="module")
def ask_all() -> Ask:
    return asking(everything())


def step(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "title": id.title(), "prompt": f"Do {id}.", **more}


def loop(id: str, body: list[Any], **terms: Any) -> dict[str, Any]:
    config = {"maxIterations": 3, **terms}
    return {"id": id, "type": "loop", "title": id.title(), "loop": config, "body": body}


def document(*steps: Any, id: str = "team.some_flow", **more: Any) -> dict[str, Any]:
    head = {"id": id, "name": "Some flow", "description": "For a test", "version": "1.0.0"}
    return {**head, **more, "steps": list(steps)}


def save(folder: Path, *documents: dict[str, Any]) -> Library:
    for one in documents:
        (folder / f"{one['id']}.json").write_bytes(msgspec.json.encode(one))
    return Library([Source("configured", folder)])


@pytest.fixture
def ask_about(tmp_path: Path) -> Callable[..., Ask]:
    return lambda *steps, **more: asking(save(tmp_path, document(*steps, **more)))


def walk(ask: Ask, workflow: str = "team-some-flow", cap: int = CAP, **context: Any) -> list[str]:
    """Feed completed steps back one by one."""
    done: list[str] = []
    while len(done) < cap:
        answer = ask("workflow_next", workflowId=workflow, completedSteps=done, context=context)
        if answer["isComplete"]:
            assert answer["step"] == {}
            break
        done.append(answer["step"]["id"])
    return done


def test_the_list_shows_ids_with_dashes_and_the_category(tmp_path: Path) -> None:
    library = save(
        tmp_path,
        document(step("one"), id="team.a_b", category="ops"),
        document(step("one"), id="team.c", tags=["first", "second"]),
        document(step("one"), id="team.d"),
    )
    entries = asking(library)("workflow_list")["workflows"]
    assert [(entry["id"], entry["category"]) for entry in entries] == [
        ("team-a-b", "ops"),
        ("team-c", "first"),
        ("team-d", "general"),
    ]
    assert entries[0].keys() == {"id", "name", "description", "category", "version"}


@pytest.mark.parametrize("spelling", ["team.some_flow", "team-some-flow", "team.some-flow", "team_some_flow"])
def test_ids_are_taken_in_both_forms(ask_about: Callable[..., Ask], spelling: str) -> None:
    """Rule 38."""
    ask = ask_about(step("do_this"), step("then"))
    assert ask("workflow_get", id=spelling)["id"] == "team-some-flow"
    assert ask("workflow_get", id=spelling)["steps"][0]["id"] == "do-this"
    for done in ("do_this", "do-this"):
        answer = ask("workflow_next", workflowId=spelling, completedSteps=[done], currentStep=done)
        assert answer["step"]["id"] == "then"


def test_two_ids_that_look_the_same_are_still_told_apart(tmp_path: Path) -> None:
    """Rule 38: a collision is a diagnostic; the written ids still work."""
    ask = asking(save(tmp_path, document(step("one"), id="team.a_b"), document(step("two"), id="team.a-b")))
    assert ask("workflow_get", id="team.a_b")["steps"][0]["id"] == "one"
    assert ask("workflow_get", id="team.a-b")["steps"][0]["id"] == "two"
    assert ask("workflow_get", id="team-a-b").code == -32001


def test_a_workflow_comes_back_as_it_was_written(ask_about: Callable[..., Ask]) -> None:
    rules = [
        {"type": "contains", "value": "plan", "message": "name the plan"},
        {"or": [{"type": "regex", "pattern": "a+", "flags": "i", "message": "an a"},
                {"not": {"type": "length", "min": 2, "max": 9, "message": "short"}}]},
    ]  # fmt: skip
    condition = {"and": [{"var": "x", "gte": 2}, {"not": {"var": "y", "equals": "no"}}, {"var": "z"}]}
    steps = [
        step("one", requireConfirmation=True, runCondition=condition),
        step("two", requireConfirmation={"var": "risk", "in": ["high"]}),
        loop(
            "each", [step("inner", requireConfirmation=False)], type="forEach", items="list", itemVar="item"
        ),
    ]
    lists = {"preconditions": ["p"], "clarificationPrompts": ["c"], "metaGuidance": ["m"]}
    got = ask_about(*steps, **lists)("workflow_get", id="team-some-flow")
    assert got["steps"][0] == steps[0]
    assert got["steps"][1] == steps[1]
    assert got["steps"][2] == steps[2]
    assert {name: got[name] for name in lists} == lists
    judged = ask_about(step("one", validationCriteria=rules))("workflow_get", id="team-some-flow")
    assert judged["steps"][0]["validationCriteria"] == rules


def test_conditional_pieces_of_a_prompt_keep_their_order(ask_about: Callable[..., Ask]) -> None:
    fragments = [{"text": "Only fast.", "when": {"var": "fast", "equals": True}}]
    ask = ask_about(step("one", promptFragments=fragments, guidance=["Be brief"]))
    shown = ask("workflow_get", id="team-some-flow")["steps"][0]
    assert shown["promptFragments"] == fragments
    assert "Only fast." not in shown["prompt"]
    offered = ask("workflow_next", workflowId="team-some-flow", completedSteps=[], context={"fast": True})
    assert "Be brief" in offered["guidance"]["prompt"]
    assert offered["guidance"]["prompt"].endswith("Only fast.")


def test_metadata_and_preview_leave_the_steps_out(ask_about: Callable[..., Ask]) -> None:
    hidden = step("hidden", runCondition={"var": "x", "equals": 1})
    ask = ask_about(hidden, step("shown"), loop("each", [step("inner")], type="for", count=2))
    metadata = ask("workflow_get", id="team-some-flow", mode="metadata")
    preview = ask("workflow_get", id="team-some-flow", mode="preview")
    assert "steps" not in metadata | preview
    assert metadata["totalSteps"] == preview["totalSteps"] == 3
    assert preview["firstStep"]["id"] == "shown"
    assert preview.keys() - metadata.keys() == {"firstStep"}


def test_every_workflow_fits_the_schema_and_is_a_workflow_again(ask_all: Ask) -> None:
    surface = LookupSurface(Library([]))
    schema = surface.tools["workflow_get"].output_schema
    fits = jsonschema_rs.validator_for(msgspec.to_builtins(schema))
    entries = ask_all("workflow_list")["workflows"]
    assert len(entries) > 10
    for entry in entries:
        for mode in ({}, {"mode": "metadata"}, {"mode": "preview"}):
            fits.validate(msgspec.to_builtins(ask_all("workflow_get", id=entry["id"], **mode)))
        whole = ask_all("workflow_get", id=entry["id"])
        verdict = ask_all("workflow_validate_json", workflowJson=msgspec.json.encode(whole).decode())
        assert verdict["issues"] == []


def test_the_schema_of_a_workflow_is_strict() -> None:
    schema = LookupSurface(Library([])).tools["workflow_get"].output_schema
    fits = jsonschema_rs.validator_for(msgspec.to_builtins(schema))
    good = document(step("one"), loop("two", [step("three")], type="for", count=2), id="a-b")
    assert fits.is_valid(good)
    assert not fits.is_valid(document(step("one", runCondition={"x": 1}), id="a-b"))
    assert not fits.is_valid(document(loop("two", [{"id": "three"}], type="for"), id="a-b"))
    assert not fits.is_valid({"id": "a-b", "name": "A", "description": ""})


def test_the_listed_examples_fit_their_own_schemas() -> None:
    for tool in LookupSurface(Library([])).tools.values():
        if tool.examples:
            asked, answered = tool.examples["request"], tool.examples["response"]
            params = msgspec.to_builtins(asked)["params"]
            jsonschema_rs.validate(msgspec.to_builtins(tool.accepts()), params)
            jsonschema_rs.validate(msgspec.to_builtins(tool.output_schema), msgspec.to_builtins(answered))


def test_every_answer_fits_its_output_schema(ask_all: Ask) -> None:
    tools = LookupSurface(Library([])).tools
    first = ask_all("workflow_next", workflowId="wr-feature", completedSteps=[])["step"]["id"]
    asked = [
        ("workflow_list", {}),
        ("workflow_next", {"workflowId": "wr-feature", "completedSteps": []}),
        ("workflow_validate", {"workflowId": "wr-feature", "stepId": first, "output": "x"}),
        ("workflow_validate_json", {"workflowJson": "{"}),
    ]
    for name, params in asked:
        answer = msgspec.to_builtins(ask_all(name, **params))
        jsonschema_rs.validate(msgspec.to_builtins(tools[name].output_schema), answer)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, ["first", "last"]),
        ({"size": "large"}, ["first", "careful", "last"]),
        ({"size": " LARGE "}, ["first", "careful", "last"]),
        ({"size": "small"}, ["first", "last"]),
    ],
)
def test_conditions_read_the_context(
    ask_about: Callable[..., Ask], context: dict[str, Any], expected: list[str]
) -> None:
    careful = step("careful", runCondition={"var": "size", "equals": "large"})
    assert walk(ask_about(step("first"), careful, step("last")), **context) == expected


def test_a_step_passed_over_for_want_of_a_variable_is_named(ask_about: Callable[..., Ask]) -> None:
    """Rule 20."""
    ask = ask_about(step("careful", runCondition={"var": "size", "equals": "large"}), step("last"))
    guidance = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])["guidance"]
    assert len(guidance["warnings"]) == 1
    assert "careful" in guidance["warnings"][0]
    assert "size" in guidance["warnings"][0]


def test_steps_done_out_of_order_are_not_offered_again(ask_about: Callable[..., Ask]) -> None:
    ask = ask_about(step("one"), step("two"), step("three"))
    first = ask("workflow_next", workflowId="team-some-flow", completedSteps=["two"])
    assert first["step"]["id"] == "one"
    then = ask("workflow_next", workflowId="team-some-flow", completedSteps=["two", "one"])
    assert then["step"]["id"] == "three"


def test_instances_of_a_step_in_a_loop_are_numbered(ask_about: Callable[..., Ask]) -> None:
    """Rule 38, and the loop's variables are worked into the prompt."""
    body = [step("look", prompt="Look at {{file}}."), step("note")]
    ask = ask_about(loop("each", body, type="forEach", items="files", itemVar="file"), step("end"))
    files = ["a.py", "b.py"]
    assert walk(ask, files=files) == ["look", "note", "look-2", "note-2", "end"]
    second = ask(
        "workflow_next",
        workflowId="team-some-flow",
        completedSteps=["look", "note"],
        context={"files": files},
    )
    assert second["step"]["id"] == "look-2"
    assert second["step"]["prompt"] == "Look at b.py."
    assert "Look at b.py." in second["guidance"]["prompt"]


def test_the_number_of_an_instance_never_hides_another_step(ask_about: Callable[..., Ask]) -> None:
    """Rule 38: `look-2` is a step of its own here, so the second visit of `look` is `look-3`."""
    ask = ask_about(loop("twice", [step("look")], type="for", count=2), step("look-2"))
    assert walk(ask) == ["look", "look-3", "look-2"]


ACTIVITIES = {
    "workflow.yaml": "id: two-rooms\nversion: 1.0.0\ntitle: Two rooms\ninitialActivity: first\n",
    "activities/01-first.yaml": """
id: first
version: 1.0.0
name: First
steps:
  - { id: look, name: Look, description: Look around }
  - { id: leave, name: Leave, description: Leave the room }
checkpoints:
  - id: sure
    name: Sure
    message: Sure?
    options:
      - { id: done, label: Done, effect: { transitionTo: __terminal__ } }
transitions:
  - { to: second, isDefault: true }
""",
    "activities/02-second.yaml": """
id: second
version: 1.0.0
name: Second
steps:
  - { id: look, name: Look, description: Look again }
""",
}


def written(folder: Path, files: dict[str, str]) -> Library:
    (folder / "activities").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return Library([Source("configured", folder)])


def test_an_activity_workflow_is_the_list_of_its_steps(tmp_path: Path) -> None:
    """Rule 38: equal ids in two activities are numbered; gates are left out."""
    ask = asking(written(tmp_path, ACTIVITIES))
    assert [one["id"] for one in ask("workflow_get", id="two-rooms")["steps"]] == ["look", "leave", "look-2"]
    assert walk(ask, "two-rooms") == ["look", "leave", "look-2"]
    second = ask("workflow_next", workflowId="two-rooms", completedSteps=["look", "leave"])
    assert "Look again" in second["step"]["prompt"]


def test_a_steered_loop_is_gone_through_once_and_confirmations_pass(ask_about: Callable[..., Ask]) -> None:
    source = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control"}
    steered = loop("again", [step("try")], type="while", conditionSource=source)
    ask = ask_about(step("first", requireConfirmation=True), steered, step("last"))
    assert walk(ask) == ["first", "try", "last"]
    guidance = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])["guidance"]
    assert guidance["requiresConfirmation"] is True


def gate(id: str, **effect: Any) -> dict[str, Any]:
    options = [{"id": "first", "label": "First", "effect": effect}, {"id": "other", "label": "Other"}]
    return {"id": id, "type": "gate", "message": "Which?", "options": options}


def test_what_a_gate_would_have_decided_is_read_from_the_context(ask_about: Callable[..., Ask]) -> None:
    quick = gate("pace", setVariable={"pace": "quick"})
    slow = step("slow", runCondition={"var": "pace", "equals": "slow"})
    asked = gate("again", setVariable={"pace": "quick"})
    only = loop("only", [gate("alone", setVariable={"pace": "quick"})], type="for", count=2)
    ask = ask_about(quick, loop("twice", [asked, slow], type="for", count=2), only, step("last"))
    assert walk(ask, pace="slow") == ["slow", "slow-2", "last"]
    assert walk(ask) == ["last"]


def test_a_loop_without_its_items_is_passed_by_with_a_warning(ask_about: Callable[..., Ask]) -> None:
    ask = ask_about(loop("each", [step("look")], type="forEach", items="files"), step("end"))
    answer = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])
    assert answer["step"]["id"] == "end"
    assert "files" in answer["guidance"]["warnings"][0]


ROUND = {
    "workflow.yaml": "id: merry-go-round\nversion: 1.0.0\ntitle: Round\ninitialActivity: here\n",
    "activities/01-here.yaml": """
id: here
version: 1.0.0
name: Here
steps:
  - { id: look, name: Look, description: Look, condition: { var: fair, equals: open } }
transitions:
  - { to: here, condition: { type: simple, variable: again, operator: "==", value: true } }
  - { to: __terminal__, condition: { type: simple, variable: again, operator: "==", value: false } }
""",
}


def test_a_workflow_that_goes_round_without_a_step_is_an_invalid_state(tmp_path: Path) -> None:
    ask = asking(written(tmp_path, ROUND))
    asked = {"workflowId": "merry-go-round", "completedSteps": []}
    refused = ask("workflow_next", **asked)
    assert (refused.code, refused.data["workflowId"]) == (-32005, "merry-go-round")
    assert "here" in refused.data["details"]
    assert ask("workflow_get", id="merry-go-round", mode="preview").code == -32005
    assert ask("workflow_next", **asked, context={"again": False})["isComplete"] is True


def test_independent_activities_begin_with_the_one_that_the_context_names() -> None:
    """Rule 35."""
    rooms = tuple(Activity(name, name, (Step(f"do-{name}", name),)) for name in ("one", "two"))
    workflow = Workflow("rooms", "Rooms", "", "1.0.0", rooms, form="activities")
    for context, expected in (({}, "do-one"), ({"choose-activity": "two"}, "do-two")):
        offered = due_step(workflow, names_of(workflow), frozenset(), context)
        assert isinstance(offered, Offered)
        assert offered.name == expected


def test_guidance_names_what_the_output_must_hold(ask_about: Callable[..., Ask]) -> None:
    rules = [
        {"type": "contains", "value": "plan", "message": "name the plan"},
        {"type": "length", "min": 9, "message": "more", "condition": {"var": "long", "equals": True}},
    ]
    ask = ask_about(step("one", validationCriteria=rules, modelTier="strong"))
    guidance = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])["guidance"]
    assert guidance["validationCriteria"] == ["name the plan"]
    assert guidance["modelHint"] == "strong"


TREE = {
    "or": [
        {"type": "contains", "value": "yes", "message": "say yes"},
        {"and": [{"type": "regex", "pattern": "^no", "flags": "i", "message": "begin with no"},
                 {"type": "length", "min": 6, "message": "say why"}]},
    ]
}  # fmt: skip
SCHEMA = {"type": "object", "required": ["verdict"]}


@pytest.mark.parametrize(
    ("rules", "output", "valid", "words"),
    [
        ([{"type": "contains", "value": "ab", "message": "M"}], "xaby", True, []),
        ([{"type": "contains", "value": "ab", "message": "M"}], "xa", False, ["M", "'ab'"]),
        ([{"type": "regex", "pattern": "^a.c$", "message": "M"}], "abc", True, []),
        ([{"type": "regex", "pattern": "^A.C$", "flags": "i", "message": "M"}], "abc", True, []),
        ([{"type": "regex", "pattern": "^A.C$", "message": "M"}], "abc", False, ["M", "^A.C$"]),
        ([{"type": "regex", "pattern": "(?<!x)y", "message": "M"}], "xy", False, ["M"]),
        ([{"type": "length", "min": 3, "max": 4, "message": "M"}], "ab", False, ["M", "at least 3"]),
        ([{"type": "length", "min": 3, "max": 4, "message": "M"}], "abcde", False, ["M", "at most 4"]),
        ([{"type": "schema", "schema": SCHEMA, "message": "M"}], '{"verdict": 1}', True, []),
        ([{"type": "schema", "schema": SCHEMA, "message": "M"}], "{}", False, ["M", "verdict"]),
        ([{"type": "schema", "schema": SCHEMA, "message": "M"}], "no json", False, ["M", "JSON"]),
        (TREE, "yes", True, []),
        (TREE, "No, never", True, []),
        (TREE, "no", False, ["say yes", "say why"]),
        ({"not": {"type": "contains", "value": "TODO", "message": "M"}}, "TODO", False, ["TODO"]),
    ],
)
def test_validation(
    ask_about: Callable[..., Ask], rules: Any, output: str, valid: bool, words: list[str]
) -> None:
    ask = ask_about(step("one", validationCriteria=rules))
    verdict = ask("workflow_validate", workflowId="team-some-flow", stepId="one", output=output)
    assert verdict["valid"] is valid
    said = " ".join([*verdict["issues"], *verdict["suggestions"]])
    assert bool(said) is not valid
    for word in words:
        assert word in said


def test_all_failures_of_a_list_are_reported(ask_about: Callable[..., Ask]) -> None:
    rules = [{"type": "contains", "value": value, "message": value * 3} for value in "abc"]
    ask = ask_about(step("one", validationCriteria=rules))
    verdict = ask("workflow_validate", workflowId="team-some-flow", stepId="one", output="b")
    assert verdict["issues"] == ["aaa", "ccc"]
    assert len(verdict["suggestions"]) == 2


def test_conditional_rules_read_the_context(ask_about: Callable[..., Ask]) -> None:
    rule = {"type": "length", "min": 9, "message": "M", "condition": {"var": "long", "equals": True}}
    ask = ask_about(step("one", validationCriteria=[rule]))
    asked = {"workflowId": "team-some-flow", "stepId": "one", "output": "short"}
    assert ask("workflow_validate", **asked)["valid"] is True
    assert ask("workflow_validate", **asked, context={"long": True})["valid"] is False


def test_without_criteria_any_output_will_do_and_instances_are_known(ask_about: Callable[..., Ask]) -> None:
    ask = ask_about(loop("twice", [step("look")], type="for", count=2))
    for name in ("look", "look-2"):
        verdict = ask("workflow_validate", workflowId="team-some-flow", stepId=name, output="x")
        assert verdict == {"valid": True, "issues": [], "suggestions": []}


def test_criteria_that_cannot_be_run_are_the_authors_fault(ask_about: Callable[..., Ask]) -> None:
    """Rule 33: the pattern backtracks without end, and no input can stall the server."""
    slow = {"type": "regex", "pattern": "(?=a)(a|aa)+$", "message": "M"}
    ask = ask_about(step("one", validationCriteria=[slow]))
    refused = ask("workflow_validate", workflowId="team-some-flow", stepId="one", output="a" * 60 + "c")
    assert refused.code == -32004
    assert refused.data["stepId"] == "one"


@pytest.mark.parametrize(
    ("text", "valid", "target"),
    [
        ('{\n "id": }', False, "line 2"),
        ("[]", False, "line 1"),
        (msgspec.json.encode(document()).decode(), False, "must not be empty"),
        (msgspec.json.encode(document(step("one"))).decode(), True, ""),
        (msgspec.json.encode(document(step("one"), id="Not An Id")).decode(), False, "Not An Id"),
        (msgspec.json.encode(document(loop("l", "nowhere", type="for", count=1))).decode(), False, "nowhere"),  # type: ignore[arg-type]
        (msgspec.json.encode(document(step("one"), {
            "id": "g", "type": "gate", "message": "Which?",
            "options": [{"id": "a", "effect": {"transitionTo": "elsewhere"}}],
        })).decode(), False, "elsewhere"),
        ("[" * 5000, False, "line 1"),
        ('"' + "x" * 1_000_001 + '"', False, "1000000"),
    ],
)  # fmt: skip
def test_bad_json_is_an_answer(ask_about: Callable[..., Ask], text: str, valid: bool, target: str) -> None:
    verdict = ask_about(step("one"))("workflow_validate_json", workflowJson=text)
    assert verdict["valid"] is valid
    assert bool(verdict["issues"]) is not valid
    assert target in " ".join(verdict["issues"])


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("workflow_list", {"x": 1}, "x"),
        ("workflow_get", {}, "id"),
        ("workflow_get", {"id": None}, "id"),
        ("workflow_get", {"id": 5}, "id"),
        ("workflow_get", {"id": "ab"}, "id"),
        ("workflow_get", {"id": "a" * 65}, "id"),
        ("workflow_get", {"id": "Upper"}, "id"),
        ("workflow_get", {"id": "../etc"}, "id"),
        ("workflow_get", {"id": "team-some-flow\n"}, "id"),
        ("workflow_get", {"id": "team-some-flow", "mode": "all"}, "mode"),
        ("workflow_get", {"id": "team-some-flow", "extra": 1}, "extra"),
        ("workflow_next", {"completedSteps": []}, "workflowId"),
        ("workflow_next", {"workflowId": "team-some-flow"}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": "one"}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": [1]}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": ["a b"]}, "completedSteps"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": ["one", "one"]}, "completed"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": [], "context": []}, "context"),
        ("workflow_next", {"workflowId": "team-some-flow", "completedSteps": [], "currentStep": "x"}, "curr"),
        ("workflow_validate", {"workflowId": "team-some-flow", "stepId": "one"}, "output"),
        ("workflow_validate", {"workflowId": "team-some-flow", "stepId": "one", "output": ""}, "output"),
        ("workflow_validate", {"workflowId": "team-some-flow", "stepId": "o", "output": "x"}, "stepId"),
        ("workflow_validate_json", {}, "workflowJson"),
        ("workflow_validate_json", {"workflowJson": ""}, "workflowJson"),
    ],
)  # fmt: skip
def test_bad_parameters_name_their_field(
    ask_about: Callable[..., Ask], tool: str, arguments: dict[str, Any], field: str
) -> None:
    refused = ask_about(step("one"))(tool, **arguments)
    assert refused.code == -32602
    assert refused.message == "Invalid params"
    assert refused.data["details"].startswith(field)


@pytest.mark.parametrize(
    "arguments",
    [
        {"completedSteps": [], "currentStep": "none-such"},
        {"completedSteps": ["none-such"]},
        {"completedSteps": ["one-1"]},
        {"completedSteps": ["one-" + "9" * 5000]},
    ],
)
def test_unknown_steps_are_named(ask_about: Callable[..., Ask], arguments: dict[str, Any]) -> None:
    ask = ask_about(step("one"))
    refused = ask("workflow_next", workflowId="team-some-flow", **arguments)
    named = [*arguments["completedSteps"], arguments.get("currentStep")][0]
    assert (refused.code, refused.data) == (-32003, {"stepId": named})


def test_a_file_at_fault_is_told_apart_from_one_that_is_missing(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "broken.json").write_text('{"id": "broken", "steps": [')
    (inside / "dangling.json").symlink_to(inside / "nothing.json")
    (outside / "secret.json").write_bytes(msgspec.json.encode(document(step("one"), id="secret")))
    (inside / "leading-out.json").symlink_to(outside / "secret.json")
    ask = asking(Library([Source("configured", inside)]))
    codes = {"broken": -32002, "dangling": -32006, "leading-out": -32007, "missing": -32001}
    for name, code in codes.items():
        refused = ask("workflow_get", id=name)
        assert refused.code == code
        assert refused.data["workflowId"] == name
        assert str(tmp_path) not in str(refused.data)
