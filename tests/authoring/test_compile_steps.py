"""Step workflows compile to one activity whose prompts contain everything that the agent must do."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.templates import arguments, fill_placeholders
from interlock.authoring.library import Loaded
from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Not, Scope
from interlock.core.definition.dialects import INTERLOCK, WORKRAIL
from interlock.core.definition.prompts import render
from interlock.core.definition.workflow import AllRules, AnyRule, Gate, Loop, NotRule, Rule, Step
from interlock.core.hashing import workflow_hash
from interlock.core.json_schema import artifact_violations
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json
from support.authored import ASK, compiled, diagnostics, head, library, main, step, words, write


def test_a_step_workflow_is_one_activity_that_ends(tmp_path: Path) -> None:
    loaded = compiled(tmp_path, head(ASK))
    assert loaded.workflow.form == "steps"
    assert loaded.workflow.initial == "main"
    assert [activity.id for activity in loaded.workflow.activities] == ["main"]
    assert main(loaded).transitions == ()


def test_json_and_yaml_compile_to_the_same_but_for_who_declares(tmp_path: Path) -> None:
    """JSON is a file of others: what its steps set need not be declared (rule 31)."""
    first = compiled(tmp_path / "json", head(ASK, metaGuidance=["Be kind."]))
    text = (
        "id: t.w\nname: W\ndescription: d\nversion: 1.0.0\nmetaGuidance: [Be kind.]\n"
        "steps:\n  - id: ask\n    title: Ask\n    prompt: Ask.\n"
    )
    second = library(write(tmp_path / "yaml", {"w.yaml": text})).load("t.w")
    assert isinstance(second, Loaded)
    assert (first.workflow.dialect, second.workflow.dialect) == (WORKRAIL, INTERLOCK)
    assert first.workflow == replace(second.workflow, declares_sets=False)


def test_a_prompt_begins_with_the_role_and_what_is_required_is_no_part_of_it(tmp_path: Path) -> None:
    raw: Json = {
        "id": "ask",
        "title": "Ask",
        "agentRole": "A careful reader.",
        "promptBlocks": {
            "goal": "Find out.",
            "constraints": ["Stay calm.", "Stay kind."],
            "procedure": ["1. Look.", "2. Ask."],
            "outputRequired": {"answer": "One line"},
            "verify": ["It is true."],
        },
        "guidance": ["Take notes."],
        "validationCriteria": [{"type": "contains", "value": "x", "message": "Mention x"}],
        "outputContract": {"contractRef": "wr.contracts.loop_control"},
    }
    text = words(step(compiled(tmp_path, head(raw, agentRole="Somebody else.")), "ask"))
    marks = [
        "Role: A careful",
        "## Goal",
        "## Constraints",
        "## Procedure",
        "## Output required",
        "## Verify",
    ]
    marks += ["Guidance:"]
    assert [text.find(mark) for mark in marks] == sorted(text.find(mark) for mark in marks)
    assert -1 not in [text.find(mark) for mark in marks]
    assert "Somebody else." not in text
    assert "- Stay calm.\n- Stay kind." in text
    assert "1. Look.\n2. Ask." in text
    assert "wr.loop_control" not in text  # what to send is one block of its own, in the words of the surface
    assert "Mention x" not in text


def test_the_role_of_the_workflow_is_the_default(tmp_path: Path) -> None:
    assert words(step(compiled(tmp_path, head(ASK, agentRole="A clerk.")), "ask")).startswith(
        "Role: A clerk."
    )


def test_fragments_keep_their_conditions(tmp_path: Path) -> None:
    fragments: Json = [{"id": "deep", "when": {"var": "depth", "in": ["full"]}, "text": "Dig."}]
    raw: Json = {"id": "ask", "title": "Ask", "prompt": "Ask {{who}}.", "promptFragments": fragments}
    made = step(compiled(tmp_path, head(raw)), "ask").prompt
    assert [(item.text, item.when) for item in made] == [
        ("Ask {{who}}.", None),
        ("Dig.", Compare("depth", "in", ["full"])),
    ]


@pytest.mark.parametrize(
    ("raw", "condition"),
    [
        ({"var": "a"}, Compare("a", "truthy")),
        ({"var": "a", "equals": "x"}, Compare("a", "equals", "x")),
        ({"var": "a", "gt": 1, "lte": 5}, AllOf((Compare("a", ">", 1), Compare("a", "<=", 5)))),
        ({"not": {"var": "a", "matches": "^x"}}, Not(Compare("a", "matches", "^x"))),
        (
            {"or": [{"var": "a"}, {"and": [{"var": "b"}, {"var": "c"}]}]},
            AnyOf((Compare("a", "truthy"), AllOf((Compare("b", "truthy"), Compare("c", "truthy"))))),
        ),
        ({"type": "simple", "variable": "a.b", "operator": "!=", "value": 1}, Compare("a.b", "!=", 1)),
        ({"type": "simple", "variable": "a", "operator": "exists"}, Compare("a", "exists")),
        ({"type": "not", "condition": {"variable": "a", "value": 1}}, Not(Compare("a", "==", 1))),
    ],
)
def test_conditions_of_both_dialects(tmp_path: Path, raw: Json, condition: object) -> None:
    one: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "runCondition": raw}
    assert step(compiled(tmp_path, head(one)), "ask").condition == condition


@pytest.mark.parametrize(
    ("raw", "confirm"),
    [
        (True, True),
        (False, False),
        ({"var": "risky", "equals": True}, Compare("risky", "equals", True)),
        ({"kind": "human_approval"}, True),
        ({"kind": "human_approval", "condition": {"var": "risky"}}, Compare("risky", "truthy")),
    ],
)
def test_confirmations_are_flags_conditions_or_both(tmp_path: Path, raw: Json, confirm: object) -> None:
    one: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "requireConfirmation": raw}
    assert step(compiled(tmp_path, head(one)), "ask").confirm == confirm


def test_criteria_are_a_list_a_tree_or_a_pattern(tmp_path: Path) -> None:
    rule: Json = {"type": "length", "min": 3, "message": "too short"}
    forms: list[tuple[Json, object]] = [
        ([rule], AllRules((Rule("length", "too short", minimum=3),))),
        ({"or": [rule, {"not": rule}]}, None),
        ("^done", Rule("regex", "must match ^done", pattern="^done")),
    ]
    for number, (raw, expected) in enumerate(forms):
        one: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "validationCriteria": raw}
        made = step(compiled(tmp_path / str(number), head(one)), "ask").criteria
        if expected is None:
            assert isinstance(made, AnyRule)
            assert isinstance(made.rules[1], NotRule)
        else:
            assert made == expected


def test_every_field_that_asks_for_output_gives_a_contract(tmp_path: Path) -> None:
    """Rule 31."""
    schema: Json = {"type": "object", "required": ["size"], "properties": {"size": {"type": "number"}}}
    own: Json = {"kind": "t.measure", "schema": schema, "example": {"size": 3}, "hints": ["in metres"]}
    raw: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "output": own}
    made = step(compiled(tmp_path, head(raw)), "ask")
    (contract,) = made.contracts
    assert (contract.artifact, contract.example) == ("t.measure", {"kind": "t.measure", "size": 3})
    assert made.hints == ("in metres",)
    assert contract.shown_example == {"kind": "t.measure", "size": "<a number, such as 3>"}


def test_of_an_unknown_contract_only_the_kind_is_known(tmp_path: Path) -> None:
    raw: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "output": {"contractRef": "wr.contracts.tea"}}
    loaded = compiled(tmp_path, head(raw))
    (contract,) = step(loaded, "ask").contracts
    assert (contract.artifact, contract.known, contract.schema) == ("wr.tea", False, {})
    assert [diagnostic.code for diagnostic in loaded.diagnostics] == ["IL205"]


def test_assessments_become_contracts_with_followups(tmp_path: Path) -> None:
    assessment: Json = {"id": "ready", "dimensions": [{"id": "trust", "levels": ["low", "high"]}]}
    then: Json = {"kind": "require_followup", "guidance": "Look again."}
    raw: Json = {
        "id": "ask", "title": "Ask", "prompt": "Ask.", "assessmentRefs": ["ready"],
        "assessmentConsequences": [{"when": {"anyEqualsLevel": "low"}, "effect": then}],
    }  # fmt: skip
    (contract,) = step(compiled(tmp_path, head(raw, assessments=[assessment])), "ask").contracts
    assert contract.artifact == "wr.assessment"
    assert [(followup.level, followup.guidance, followup.assessment) for followup in contract.followups] == [
        ("low", "Look again.", "ready")
    ]
    check = jsonschema_rs.validator_for(dict(contract.schema)).is_valid
    assert check(contract.example)
    assert check({"kind": "wr.assessment", "dimensions": {"trust": "low"}})
    assert not check({"kind": "wr.assessment", "dimensions": {"trust": "lowish"}})


@pytest.mark.parametrize("ref", sorted(packs.contracts()))
def test_every_pack_has_an_example_that_passes_and_lets_more_fields_pass(ref: str) -> None:
    pack = packs.contracts()[ref]
    check = jsonschema_rs.validator_for(dict(pack.schema)).is_valid
    assert check(dict(pack.example))
    assert check({**pack.example, "somethingElse": [1]})
    assert not check({})
    assert pack.example["kind"] == pack.kind


def test_a_failed_attempt_says_why_and_a_good_one_does_not() -> None:
    pack = packs.contracts()["wr.contracts.capability_observation"]
    check = jsonschema_rs.validator_for(dict(pack.schema)).is_valid
    tried = {"kind": "attempted_use", "attemptContext": "workflow_step", "result": "failure"}
    seen = {"kind": pack.kind, "capability": "delegation", "status": "unavailable"}
    assert not check({**seen, "provenance": tried})
    assert check({**seen, "provenance": {**tried, "failureCode": "tool_missing"}})


def test_loops_nest_and_keep_their_settings(tmp_path: Path) -> None:
    inner: Json = {
        "id": "inner", "type": "loop", "title": "I", "body": [ASK],
        "loop": {"type": "until", "condition": {"var": "done"}, "maxIterations": 3},
    }  # fmt: skip
    outer: Json = {
        "id": "outer", "type": "loop", "title": "O", "body": [inner], "runCondition": {"var": "go"},
        "loop": {"type": "forEach", "items": "files", "itemVar": "file", "maxIterations": 9},
    }  # fmt: skip
    (loop,) = main(compiled(tmp_path, head(outer))).items
    assert isinstance(loop, Loop)
    assert (loop.kind, loop.items, loop.item_var, loop.max_iterations) == ("forEach", "files", "file", 9)
    assert loop.run_condition == Compare("go", "truthy")
    (nested,) = loop.body
    assert isinstance(nested, Loop)
    assert [item.id for item in nested.body] == ["ask"]


def test_a_confirmation_of_a_loop_is_not_dropped_silently(tmp_path: Path) -> None:
    loop: Json = {
        "id": "l", "type": "loop", "title": "L", "body": [ASK], "requireConfirmation": True,
        "loop": {"type": "for", "count": 2, "maxIterations": 2},
    }  # fmt: skip
    assert [diagnostic.code for diagnostic in compiled(tmp_path, head(loop)).diagnostics] == ["IL105"]


def test_a_step_named_as_a_body_runs_only_there(tmp_path: Path) -> None:
    loop: Json = {
        "id": "again", "type": "loop", "title": "L", "body": "ask",
        "loop": {"type": "for", "count": "times", "maxIterations": 5},
    }  # fmt: skip
    items = main(compiled(tmp_path, head(ASK, loop))).items
    assert [item.id for item in items] == ["again"]
    assert isinstance(items[0], Loop)
    assert [item.id for item in items[0].body] == ["ask"]
    assert items[0].count == "times"


@pytest.mark.parametrize("bodies", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "b"}])
def test_a_loop_cannot_run_itself(tmp_path: Path, bodies: dict[str, str]) -> None:
    config: Json = {"type": "for", "count": 2, "maxIterations": 2}
    loops: list[Json] = [
        {"id": name, "type": "loop", "title": "L", "loop": config, "body": body}
        for name, body in bodies.items()
    ]
    write(tmp_path, {"w.json": json.dumps(head(*loops))})
    assert [diagnostic.code for diagnostic in diagnostics(tmp_path)] == ["IL306"]


def test_a_loop_may_be_steered_by_an_artifact(tmp_path: Path) -> None:
    decide: Json = {
        "id": "decide", "title": "D", "prompt": "Decide.",
        "outputContract": {"contractRef": "wr.contracts.loop_control"},
    }  # fmt: skip
    source: Json = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control"}
    loop: Json = {
        "id": "again", "type": "loop", "title": "L", "body": [decide],
        "loop": {"type": "while", "conditionSource": source, "maxIterations": 5},
    }  # fmt: skip
    (made,) = main(compiled(tmp_path, head(loop))).items
    assert isinstance(made, Loop)
    assert made.steered


def test_gates_may_be_in_the_list_of_steps(tmp_path: Path) -> None:
    """Rule 30."""
    gate: Json = {
        "id": "ok", "type": "gate", "message": "Go?", "defaultOption": "go", "autoAdvanceMs": 1000,
        "options": [{"id": "go", "effect": {"setVariable": {"x": 1}}}, {"id": "no", "label": "No"}],
    }  # fmt: skip
    last: Json = {"id": "end", "title": "End", "prompt": "End."}
    items = main(compiled(tmp_path, head(ASK, gate, last))).items
    assert [type(item) for item in items] == [Step, Gate, Step]
    made = items[1]
    assert isinstance(made, Gate)
    assert made.options[0].effect.set_variables == {"x": 1}
    assert not made.blocking, "rule 24: a default and a time make it non-blocking"


def test_a_required_capability_is_probed_first(tmp_path: Path) -> None:
    loaded = compiled(
        tmp_path, head(ASK, capabilities={"web_browsing": "required", "delegation": "preferred"})
    )
    first = main(loaded).items[0]
    assert isinstance(first, Step)
    assert (first.id, first.probes) == ("probe-web-browsing", "web_browsing")
    assert first.provenance == "wr.templates.capability_probe"
    assert [contract.ref for contract in first.contracts] == ["wr.contracts.capability_observation"]
    assert len(main(loaded).items) == 2


def test_a_template_call_expands_in_place(tmp_path: Path) -> None:
    call: Json = {"templateId": "wr.templates.capability_probe", "args": {"capability": "delegation"}}
    loaded = compiled(tmp_path, head(ASK, {"id": "try", "title": "Try", "templateCall": call}))
    made = main(loaded).items[1]
    assert isinstance(made, Step)
    assert (made.id, made.probes) == ("try.probe", "delegation")
    assert "{capability}" not in words(made)


@given(st.text(alphabet="{}ab_ ", max_size=30))
def test_filling_all_arguments_leaves_none_and_no_variable_is_touched(text: str) -> None:
    assert arguments(fill_placeholders(text, dict.fromkeys(arguments(text), " "))) == []
    assert fill_placeholders("{{a}} {a}", {"a": 1}) == "{{a}} 1"


def test_functions_are_spelled_out_where_they_are_named(tmp_path: Path) -> None:
    defined: Json = [{"name": "log", "definition": "Write it down.", "parameters": ["what"]}]
    raw: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "functionReferences": ["log()"]}
    loaded = compiled(tmp_path, head(raw, {**dict(ASK), "id": "other"}, functionDefinitions=defined))  # type: ignore[arg-type]
    assert "log(what): Write it down." in words(step(loaded, "ask"))
    assert "log" not in words(step(loaded, "other"))


def test_features_and_references_are_part_of_the_prompt(tmp_path: Path) -> None:
    ref = packs.references()["wr.refs.memory_query"]
    feature = packs.features()["wr.features.subagent_guidance"]
    blocks: Json = {"goal": "G", "constraints": [{"kind": "ref", "refId": ref.ref}]}
    raw: Json = {"id": "ask", "title": "Ask", "promptBlocks": blocks}
    text = words(step(compiled(tmp_path, head(raw, features=[feature.ref])), "ask"))
    assert ref.text in text
    assert feature.constraints[0] in text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["Look.", {"kind": "text", "text": "Act."}], "- Look.\n- Act."),
        ([{"kind": "text", "text": "Look, "}, {"kind": "text", "text": "act."}], "Look, act."),
        (
            ["Look.", [{"kind": "text", "text": "Act "}, {"kind": "text", "text": "now."}]],
            "- Look.\n- Act now.",
        ),
    ],
)
def test_the_entries_of_a_block_are_lines_and_the_parts_of_one_text_are_not(
    tmp_path: Path, parts: Json, text: str
) -> None:
    raw: Json = {"id": "ask", "title": "Ask", "promptBlocks": {"procedure": parts}}
    assert words(step(compiled(tmp_path, head(raw)), "ask")) == f"## Procedure\n{text}"


@pytest.mark.parametrize(
    ("config", "count", "items"),
    [
        ({"type": "for", "count": "3"}, 3, None),
        ({"type": "for", "count": "{{rounds}}"}, "rounds", None),
        ({"type": "forEach", "items": "{{plan.parts}}"}, None, "plan.parts"),
    ],
)
def test_a_loop_may_name_its_variable_as_prompts_do(
    tmp_path: Path, config: dict[str, Json], count: Json, items: Json
) -> None:
    each: Json = {
        "id": "l",
        "type": "loop",
        "title": "L",
        "loop": {**config, "maxIterations": 5},
        "body": [ASK],
    }
    (loop,) = main(compiled(tmp_path, head(each))).items
    assert isinstance(loop, Loop)
    assert (loop.count, loop.items) == (count, items)


def test_criteria_that_would_be_ignored_are_an_error(tmp_path: Path) -> None:
    short: Json = {"type": "length", "max": 9, "message": "Short."}
    criteria: Json = {"and": [short], "or": [short]}
    write(
        tmp_path,
        {
            "w.json": json.dumps(
                head({"id": "a", "title": "A", "prompt": "P", "validationCriteria": criteria})
            )
        },
    )
    (found,) = diagnostics(tmp_path)
    assert (found.code, found.message) == ("IL102", "'or' has no effect beside 'and'")


def test_user_input_and_preferences(tmp_path: Path) -> None:
    """Rule 28."""
    need: Json = {"reason": "needs_user_choice", "question": "Which?", "key": "which"}
    raw: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "userInput": [need]}
    wish: Json = {"recommendedAutonomy": "full_auto_never_stop", "recommendedRiskPolicy": "balanced"}
    loaded = compiled(tmp_path, head(raw, recommendedPreferences=wish))
    assert [(item.reason, item.key) for item in step(loaded, "ask").user_input] == [
        ("needs_user_choice", "which")
    ]
    assert loaded.workflow.recommended == Preferences("full_auto_never_stop", "balanced")


def test_parallel_steps_are_instructions_for_the_agent(tmp_path: Path) -> None:
    raw: Json = {
        "id": "fan", "title": "Fan", "type": "parallel",
        "parallelDelegations": [{"workflowId": "t.one", "args": {"depth": 2}}, {"workflowId": "t.two"}],
    }  # fmt: skip
    text = words(step(compiled(tmp_path, head(raw)), "fan"))
    assert "`t.one`" in text
    assert "`t.two`" in text


def test_a_delegation_shows_all_its_fields_while_its_condition_holds(tmp_path: Path) -> None:
    one: Json = {
        "workflowId": "t.one", "goal": "Find holes.", "contextMapping": {"plan": "$plan"},
        "allowedTools": ["Read", "Grep"], "modelTier": "mid", "runCondition": {"var": "deep", "equals": True},
    }  # fmt: skip
    raw: Json = {"id": "fan", "title": "Fan", "type": "parallel", "parallelDelegations": [one]}
    fragments = step(compiled(tmp_path, head(raw)), "fan").prompt
    line = (
        '- `t.one`; goal: Find holes.; context: {"plan": "$plan"}; only these tools: Read, Grep; model: mid'
    )
    assert line in render(fragments, Scope({"deep": True}, {}))
    assert "t.one" not in render(fragments, Scope({"deep": False}, {}))
    assert "t.one" not in render(fragments, Scope({}, {"deep": False}))


def test_rule_20_a_delegation_that_an_unset_variable_passes_over_is_named(tmp_path: Path) -> None:
    one: Json = {"workflowId": "t.one", "runCondition": {"var": "deep", "equals": True}}
    raw: Json = {"id": "fan", "title": "Fan", "type": "parallel", "parallelDelegations": [one]}
    fragments = step(compiled(tmp_path, head(raw)), "fan").prompt
    line = "- `t.one` is passed over: nobody has set 'deep' (deep == true)."
    assert line in render(fragments, Scope({}, {}))
    assert line in render(fragments, Scope({"deep": None}, {}))


SYNTHESES: dict[str, tuple[Json, str]] = {
    "none": (None, "Then bring their results together."),
    "text": ("Merge them.", "Merge them."),
    "a list": (
        ["Merge them.", "Rank them."],
        "Then bring their results together:\n- Merge them.\n- Rank them.",
    ),
    "an object": (
        {"strategy": "merge", "rules": ["by severity", "no doubles"], "limits": {"most": 5}, "strict": True},
        "Then bring their results together:\n- strategy: merge\n- rules: by severity; no doubles\n"
        "- limits: most: 5\n- strict: true",
    ),
}


@pytest.mark.parametrize("name", SYNTHESES)
def test_a_synthesis_is_written_in_words(tmp_path: Path, name: str) -> None:
    synthesis, text = SYNTHESES[name]
    delegations: Json = [{"workflowId": "t.one"}]
    raw: Json = {"id": "fan", "title": "Fan", "type": "parallel", "parallelDelegations": delegations}
    loaded = compiled(tmp_path, head({**raw, "synthesis": synthesis}))
    assert words(step(loaded, "fan")).endswith(text)


def test_an_optional_dimension_of_an_assessment_may_be_left_out(tmp_path: Path) -> None:
    dimensions: list[Json] = [{"id": "fit", "levels": ["low", "high"]}]
    dimensions.append({"id": "style", "levels": ["low", "high"], "required": False})
    raw: Json = {"id": "rate", "title": "Rate", "prompt": "Rate.", "assessmentRefs": ["quality"]}
    loaded = compiled(tmp_path, head(raw, assessments=[{"id": "quality", "dimensions": dimensions}]))
    (contract,) = step(loaded, "rate").contracts
    rated: Json = {"kind": "wr.assessment", "dimensions": {"fit": "high"}}
    assert artifact_violations(contract.schema, rated) == []
    assert artifact_violations(contract.schema, {"kind": "wr.assessment", "dimensions": {"style": "low"}})


def test_duplicate_step_ids_are_numbered(tmp_path: Path) -> None:
    """Rule 37."""
    loaded = compiled(tmp_path, head(ASK, ASK))
    assert [item.id for item in main(loaded).items] == ["ask", "ask#2"]
    assert [diagnostic.code for diagnostic in loaded.diagnostics] == ["IL215"]


def test_unknown_fields_are_kept_and_named(tmp_path: Path) -> None:
    raw: Json = {"id": "ask", "title": "Ask", "prompt": "Ask.", "runConditon": {"var": "x"}}
    loaded = compiled(tmp_path, head(raw))
    assert step(loaded, "ask").extra == {"runConditon": {"var": "x"}}
    (diagnostic,) = loaded.diagnostics
    assert (diagnostic.code, diagnostic.next_action) == ("IL105", "did you mean 'runCondition'?")


def test_prompts_may_be_in_markdown_files(tmp_path: Path) -> None:
    files = {
        "w/workflow.yaml": "id: t.w\nname: W\nversion: 1.0.0\nvariables: [{name: who}]\nsteps:\n  - ask\n"
        "  - id: end\n    title: End\n",
        "w/steps/ask.md": "---\ntitle: Ask\nrequireConfirmation: true\n---\nAsk {{who}}.\n",
        "w/steps/end.md": "Stop here.\n",
    }
    loaded = library(write(tmp_path, files)).load("t.w")
    assert isinstance(loaded, Loaded)
    assert words(step(loaded, "ask")) == "Ask {{who}}."
    assert step(loaded, "ask").confirm is True
    assert words(step(loaded, "end")) == "Stop here."


def test_diagnostics_of_a_markdown_file_are_reported_there(tmp_path: Path) -> None:
    files = {
        "w/workflow.yaml": "id: t.w\nname: W\nversion: 1.0.0\nsteps: [ask]\n",
        "w/steps/ask.md": "---\ntitle: 7\n---\nAsk.\n",
        "w/steps/aks.md": "Never shown.\n",
    }
    write(tmp_path, files)
    (found,) = diagnostics(tmp_path)
    assert (found.code, found.file, found.line, found.column) == ("IL102", "w/steps/ask.md", 2, 8)


def test_routines_are_known_by_folder_and_by_name(tmp_path: Path) -> None:
    first = json.dumps(head(ASK, id="t.plain"))
    second = json.dumps(head(ASK, id="t.routine-x"))
    found = library(write(tmp_path, {"routines/a.json": first, "b.json": second})).listing()
    assert {entry.id: entry.kind for entry in found.entries} == {
        "t.plain": "routine",
        "t.routine-x": "routine",
    }


def test_the_hash_moves_with_every_change_of_meaning(tmp_path: Path) -> None:
    """A run is pinned to this value: a change of the compiled form must be deliberate."""
    loaded = compiled(tmp_path, head(ASK))
    assert loaded.hash == GOLDEN_HASH
    other = compiled(tmp_path / "other", head(ASK, metaGuidance=["Be kind."]))
    assert other.hash != loaded.hash


def test_the_hash_covers_what_is_expanded_into_a_workflow(tmp_path: Path) -> None:
    """It is that of the compiled value, which has templates, features, contracts and capabilities in it."""
    probe: Json = {"templateId": "wr.templates.capability_probe", "args": {"capability": "delegation"}}
    contract: Json = {"contractRef": "wr.contracts.review_verdict"}
    judged: Json = {"id": "ask", "title": "Ask", "prompt": "x", "output": contract}
    blocks: Json = {"id": "ask", "title": "Ask", "promptBlocks": {"goal": "Ask."}}
    expanded = {
        "smallest real use": head(ASK, {"id": "try", "title": "Try", "templateCall": probe}),
        "blocking": head(judged),
        "subagent": head(blocks, features=["wr.features.subagent_guidance"]),
        '"delegation":"preferred"': head(ASK, capabilities={"delegation": "preferred"}),
    }
    for number, (part, document) in enumerate(expanded.items()):
        loaded = compiled(tmp_path / str(number), document)
        assert loaded.hash == workflow_hash(loaded.workflow)
        assert part in msgspec.json.encode(loaded.workflow).decode()


GOLDEN_HASH = "sha256:f77e715e80d6a116db73bb9243df77c0bd265dc4c91d52a45b6c8a9dc8e0339f"


def test_a_feature_takes_the_settings_that_it_has_and_keeps_the_defaults_of_the_rest(tmp_path: Path) -> None:
    ask = {"id": "ask", "title": "Ask", "promptBlocks": {"goal": "Ask."}}
    loaded = compiled(
        tmp_path,
        head(
            ask,
            features=[
                {"id": "wr.features.capabilities", "config": {"capabilities": ["web_browsing"]}},
                {"id": "wr.features.output_contracts", "config": {"attempts": 2}},
                "wr.features.mode_guidance",
            ],
        ),
    )
    text = words(step(loaded, "ask"))
    assert "Treat web browsing as unproven" in text
    assert "after 2 refusals" in text
    assert "each assumption in your notes" in text


@pytest.mark.parametrize(
    ("feature", "config", "message"),
    [
        ("output_contracts", {"attempts": 9}, "is one of: 1, 2, 3, 4, 5"),
        ("output_contracts", {"attempts": True}, "is one of: 1, 2, 3, 4, 5"),
        ("output_contracts", {"tries": 2}, "has no setting 'tries'; it has: attempts"),
        ("capabilities", {"capabilities": "delegation"}, "is a list of some of: delegation, web_browsing"),
        ("capabilities", {"capabilities": []}, "is a list of some of: delegation, web_browsing"),
        ("memory_context", {"depth": 2}, "has no setting 'depth'; it has: none"),
    ],
)
def test_a_setting_that_a_feature_does_not_accept_is_an_error(
    tmp_path: Path, feature: str, config: Json, message: str
) -> None:
    used: Json = {"id": f"wr.features.{feature}", "config": config}
    write(tmp_path, {"w.json": json.dumps(head(features=[used]))})
    (error,) = diagnostics(tmp_path)
    assert (error.code, error.severity) == ("IL221", "error")
    assert message in error.message


def test_an_error_at_the_top_does_not_hide_those_of_the_steps(tmp_path: Path) -> None:
    """One run of the validator names them all; what the broken part declares is not called unknown."""
    loop = {"id": "l", "type": "loop", "title": "L", "loop": {"type": "for", "count": 1}, "body": [ASK]}
    judge = {**step_source(), "runCondition": {"var": "x", "equal": 1}, "assessmentRefs": ["ready"]}
    broken = head(judge, loop, version=1, assessments=[{"id": "ready"}], metaGuidance="be nice")
    write(tmp_path, {"w.json": json.dumps({**broken, "name": None})})
    found = {(item.code, item.message) for item in diagnostics(tmp_path) if item.severity == "error"}
    assert found == {
        ("IL102", "expected text, got null"),
        ("IL102", "expected text, got a number"),
        ("IL102", "expected a list, got text"),
        ("IL101", "the field 'dimensions' is missing"),
        ("IL301", "unknown operator 'equal'"),
        ("IL305", "the loop has no maxIterations"),
    }


def step_source(**fields: Json) -> dict[str, Json]:
    return {"id": "judge", "title": "Judge", "prompt": "Judge.", **fields}


def test_an_error_in_the_head_of_a_folder_does_not_hide_those_of_its_activities(tmp_path: Path) -> None:
    files = {
        "w/workflow.yaml": "id: w\nversion: 1\ntitle: W\n",
        "w/activities/a.yaml": "id: a\nname: A\nsteps: [{id: s}, {id: l, type: loop, loop: {type: for}}]\n",
    }
    write(tmp_path, files)
    files_of = {item.file.rpartition("/")[2] for item in diagnostics(tmp_path) if item.severity == "error"}
    assert files_of == {"workflow.yaml", "a.yaml"}


def test_what_a_step_declares_to_verify_and_audit_is_told(tmp_path: Path) -> None:
    """Other servers make steps of it; kept and never shown, it was declared and never done."""
    declared = step_source(
        verification={"command": "make test", "prompt": "Run it."},
        audit={"prompt": "Read it again.", "rubric": ["right", "small"]},
    )
    loaded = compiled(tmp_path, head(declared))
    text = words(step(loaded, "judge"))
    assert "Then verify it:\n- command: make test\n- prompt: Run it." in text
    assert "Then audit it:\n- prompt: Read it again.\n- rubric: right; small" in text
    assert "Then" not in words(step(compiled(tmp_path, head(step_source())), "judge"))
