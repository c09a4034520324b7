"""Required outputs: contracts, criteria, capabilities, divergence, and the loop of correction they make."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from interlock.core.json_schema import artifact_violations, example_of
from interlock.core.run.reasons import BlockerCode, Pointer
from interlock.ledger.log.records import AdvanceRecorded
from support.harness import Agent, Bench, filled, steps, workflow
from support.log import event_kinds, logged_events

VERDICT = {
    "id": "judge",
    "title": "Judge",
    "prompt": "x",
    "output": {"contractRef": "wr.contracts.review_verdict"},
}


def started(bench: Bench, *items: dict[str, Any], mode: Any = None, **fields: Any) -> Agent:
    bench.write(workflow(*items, *steps("last"), **fields))
    agent = bench.agent(mode)
    agent.start("test.flow")
    return agent


def test_a_missing_artifact_blocks_and_the_example_in_the_answer_passes(bench: Bench) -> None:
    agent = started(bench, VERDICT)
    blocked = agent.ack("looks fine")
    assert blocked["pending"]["stepId"] == "judge"
    (blocker,) = blocked["blockers"]
    assert blocker["code"] == "MISSING_REQUIRED_OUTPUT"
    assert blocker["pointer"]["contractRef"] == "wr.contracts.review_verdict"
    assert agent.ack(artifacts=[filled(blocker["example"])])["pending"]["stepId"] == "last"


def test_an_invalid_artifact_says_what_is_wrong_with_it(bench: Bench) -> None:
    agent = started(bench, VERDICT)
    blocked = agent.ack(artifacts=[{"kind": "wr.review_verdict", "verdict": "superb"}])
    assert blocked["blockers"][0]["code"] == "INVALID_REQUIRED_OUTPUT"
    assert "superb" in blocked["blockers"][0]["message"]


def test_the_used_ack_replays_the_block_and_only_the_fresh_one_works(bench: Bench) -> None:
    agent = started(bench, VERDICT)
    before = dict(agent.last)
    blocked = agent.ack("nothing", at=before)
    example = filled(blocked["blockers"][0]["example"])
    assert agent.ack("nothing", at=before) == blocked
    assert agent.ack(at=before, artifacts=[example])["kind"] == "blocked"
    assert (blocked["stateToken"], blocked["pending"]) == (before["stateToken"], before["pending"])
    assert agent.ack(at=blocked, artifacts=[example])["kind"] == "ok"
    made = logged_events(agent.ledger.store, blocked["session"]["sessionId"], "advance_recorded")
    outcomes = [row.event.outcome for row in made if isinstance(row.event, AdvanceRecorded)]
    assert outcomes == ["blocked", "advanced"], "one record of each attempt, and none of a repeat"


def test_notes_of_blocked_attempts_are_recapped_and_counted(bench: Bench) -> None:
    agent = started(bench, VERDICT, {**VERDICT, "id": "judge-again"})
    example = filled(agent.ack("first try " + "x" * 3000)["blockers"][0]["example"])
    agent.ack("second try " + "x" * 3000, artifacts=[example])
    agent.ack("third try " + "x" * 3000)
    agent.ack("fourth try " + "x" * 3000, artifacts=[example])
    recap = agent.look()["recap"]
    assert [entry["notes"][:5] for entry in recap["entries"]] == ["third", "fourt"]
    assert recap["omitted"] == 2


def test_extra_fields_of_an_artifact_pass_through(bench: Bench) -> None:
    agent = started(bench, VERDICT)
    example = filled(agent.ack()["blockers"][0]["example"])
    assert agent.ack(artifacts=[{**example, "mood": "sunny"}])["kind"] == "ok"


def test_an_output_with_a_kind_is_one_artifact(bench: Bench) -> None:
    agent = started(bench, VERDICT)
    example = filled(agent.ack()["blockers"][0]["example"])
    tokens = {"stateToken": agent.last["stateToken"], "ackToken": agent.last["ackToken"]}
    answer = agent.call("continue_workflow", **tokens, output={**example, "notesMarkdown": "with notes"})
    assert answer["pending"]["stepId"] == "last"
    assert agent.look()["recap"]["entries"][-1]["notes"] == "with notes"


def test_a_step_may_bring_its_own_schema(bench: Bench) -> None:
    schema = {"type": "object", "required": ["count"], "properties": {"count": {"type": "integer"}}}
    example = {"kind": "counted", "count": 3}
    output = {"schema": schema, "example": example, "hints": ["at most one line"]}
    agent = started(bench, *steps("count", output=output))
    assert "at most one line" in agent.last["pending"]["prompt"]
    assert agent.ack(artifacts=[{"kind": "counted", "count": "three"}])["blockers"][0]["code"] == (
        "INVALID_REQUIRED_OUTPUT"
    )
    assert agent.ack("two\nlines", artifacts=[example])["kind"] == "ok", "hints are not enforced"


def test_never_stop_turns_the_block_into_a_critical_gap(bench: Bench) -> None:
    agent = started(bench, VERDICT, mode="never-stop")
    assert agent.ack("no verdict")["pending"]["stepId"] == "last"
    assert agent.ack("done")["status"] == "complete_with_gaps"
    assert agent.last["gaps"] == 1
    assert agent.last["gapList"][0]["severity"] == "critical"


def test_full_auto_that_stops_on_the_user_is_still_blocked_by_a_contract(bench: Bench) -> None:
    assert started(bench, VERDICT, mode="stop").ack("no verdict")["kind"] == "blocked"


def test_requirements_are_told_before_the_attempt(bench: Bench) -> None:
    agent = started(bench, VERDICT)
    assert "wr.review_verdict" in agent.last["pending"]["prompt"]


def criteria(*rules: Any) -> dict[str, Any]:
    return {"id": "write", "title": "Write", "prompt": "x", "validationCriteria": list(rules)}


def test_every_failed_criterion_of_a_list_is_reported(bench: Bench) -> None:
    agent = started(
        bench,
        criteria(
            {"type": "contains", "value": "why", "message": "Say why."},
            {"type": "length", "min": 20, "message": "Too short."},
        ),
    )
    messages = {blocker["message"] for blocker in agent.ack("no")["blockers"]}
    assert messages == {"Say why.", "Too short."}
    assert agent.ack("this is why I did it, at length")["kind"] == "ok"


def test_criteria_beside_a_contract_are_enforced_too(bench: Bench) -> None:
    """Rule 31."""
    rule = {"type": "contains", "value": "because", "message": "Say why."}
    agent = started(bench, {**VERDICT, "validationCriteria": [rule]})
    blocked = agent.ack("looks fine")
    assert [blocker["code"] for blocker in blocked["blockers"]] == [
        "INVALID_REQUIRED_OUTPUT",
        "MISSING_REQUIRED_OUTPUT",
    ]
    verdict = [filled(blocked["blockers"][1]["example"])]
    blocked = agent.ack("looks fine", artifacts=verdict)
    assert [blocker["message"] for blocker in blocked["blockers"]] == ["Say why."]
    assert agent.ack("fine, because the tests pass", artifacts=verdict)["kind"] == "ok"


def test_criteria_beside_a_contract_read_the_artifact_if_there_are_no_notes(bench: Bench) -> None:
    rule = {"type": "contains", "value": "because", "message": "Say why."}
    agent = started(bench, {**VERDICT, "validationCriteria": [rule]})
    verdict = filled(agent.ack("fine, because the tests pass")["blockers"][0]["example"])
    assert agent.ack(artifacts=[verdict])["kind"] == "blocked"
    assert agent.ack(artifacts=[{**verdict, "summary": "because the tests pass"}])["kind"] == "ok"


def test_a_failing_tree_names_the_leaves_and_what_would_satisfy_them(bench: Bench) -> None:
    tree = {
        "or": [
            {"type": "contains", "value": "red", "message": "No red."},
            {"type": "regex", "pattern": "^blue", "message": "No blue."},
        ]
    }
    step = {"id": "write", "title": "Write", "prompt": "x", "validationCriteria": tree}
    agent = started(bench, step)
    blocker = agent.ack("green")["blockers"][0]
    assert "none of the alternatives holds: No red.; No blue." in blocker["message"]
    assert all(hint in blocker["suggestedFix"] for hint in ("red", "^blue"))
    assert agent.ack("blue sky")["kind"] == "ok"


def test_a_conditional_criterion_applies_only_when_its_condition_holds(bench: Bench) -> None:
    rule = {
        "type": "contains",
        "value": "tests",
        "message": "m",
        "condition": {"var": "size", "equals": "large"},
    }
    agent = started(bench, criteria(rule))
    assert agent.ack("nothing", size="large")["kind"] == "blocked"
    assert agent.ack("nothing", size="small")["kind"] == "ok"


def test_no_pattern_can_stall_the_server(bench: Bench) -> None:
    rule = {"type": "regex", "pattern": "(?=(a+)+$)(a+)+b", "message": "m"}
    agent = started(bench, criteria(rule))
    assert agent.ack("a" * 4000)["kind"] == "blocked"


def test_blockers_are_ordered_bounded_and_short(bench: Bench) -> None:
    rules = [{"type": "contains", "value": f"v{n}", "message": f"{n:02d} " + "ü" * 600} for n in range(14)]
    blockers = started(bench, criteria(*rules)).ack("nothing")["blockers"]
    assert len(blockers) == 10
    assert all(len(blocker["message"].encode()) <= 512 for blocker in blockers)
    places = [(blocker["code"], blocker["pointer"]["kind"]) for blocker in blockers]
    assert places == sorted(places)
    assert blockers[-1]["message"].endswith("And 4 more, which are listed once these are settled.")


def test_blockers_are_of_closed_sets_in_the_order_of_code_and_pointer(bench: Bench) -> None:
    assert {*BlockerCode} == {
        "USER_ONLY_DEPENDENCY",
        "MISSING_REQUIRED_OUTPUT",
        "INVALID_REQUIRED_OUTPUT",
        "REQUIRED_CAPABILITY_UNKNOWN",
        "REQUIRED_CAPABILITY_UNAVAILABLE",
        "INVARIANT_VIOLATION",
        "STORAGE_CORRUPTION_DETECTED",
    }
    pointers = {pointer.__struct_config__.tag for pointer in get_args(Pointer)}
    assert pointers == {"context_key", "output_contract", "capability", "workflow_step"}
    needs = [{"reason": "needs_user_artifact", "key": key, "question": "Where?"} for key in ("sky", "road")]
    blocks = {"goal": "Judge.", "outputRequired": {"size": "Its size", "colour": "Its colour"}}
    rules = [{"type": "contains", "value": "why", "message": "Say why."}]
    judge = {**VERDICT, "validationCriteria": rules, "userInput": needs, "promptBlocks": blocks}
    agent = started(bench, judge)
    blockers = agent.ack("nothing", artifacts=[{"kind": "wr.workflow_divergence"}])["blockers"]
    assert [(blocker["code"], *blocker["pointer"].values()) for blocker in blockers] == [
        ("INVALID_REQUIRED_OUTPUT", "output_contract", "wr.contracts.workflow_divergence"),
        ("INVALID_REQUIRED_OUTPUT", "workflow_step", "judge"),
        ("MISSING_REQUIRED_OUTPUT", "context_key", "colour"),
        ("MISSING_REQUIRED_OUTPUT", "context_key", "size"),
        ("MISSING_REQUIRED_OUTPUT", "output_contract", "wr.contracts.review_verdict"),
        ("USER_ONLY_DEPENDENCY", "context_key", "road"),
        ("USER_ONLY_DEPENDENCY", "context_key", "sky"),
    ]
    assert all(blocker["message"] and blocker["suggestedFix"] for blocker in blockers)


def test_what_to_do_about_a_blocker_is_short(bench: Bench) -> None:
    rules = [{"type": "contains", "value": "v" * 90 + str(n), "message": "m"} for n in range(14)]
    (blocker,) = started(bench, criteria(*rules)).ack()["blockers"]
    assert 900 < len(blocker["suggestedFix"].encode()) <= 1024
    assert blocker["suggestedFix"].endswith("with the fresh ackToken.")


def test_an_example_for_the_user_s_answer_has_its_options_or_a_value_of_the_variable(bench: Bench) -> None:
    """Rule 28: an approval has its own answers, free input what the variable may be."""
    approve = {"reason": "needs_user_approval", "key": "spend", "question": "Spend it?"}
    choose = {"reason": "needs_user_choice", "key": "count", "question": "How many?"}
    variables = [{"name": "count", "type": "number"}]
    agent = started(bench, *steps("pay", userInput=[approve, choose]), variables=variables)
    examples = [blocker["example"] for blocker in agent.ack("ready")["blockers"]]
    assert examples == [{"count": "<a number>"}, {"spend": "<approve | reject>"}]


FAILED = {"kind": "attempted_use", "attemptContext": "workflow_step", "result": "failure"}
OBSERVED = {
    "kind": "wr.capability_observation",
    "capability": "web_browsing",
    "provenance": {"kind": "attempted_use", "attemptContext": "workflow_step", "result": "success"},
}


def browsing(bench: Bench, mode: Any = None) -> Agent:
    return started(bench, mode=mode, capabilities={"web_browsing": "required"})


def test_required_browsing_is_probed_first(bench: Bench) -> None:
    agent = browsing(bench)
    assert agent.pending == "probe-web-browsing"
    blocked = agent.ack("it works")
    assert blocked["blockers"][0]["code"] == "MISSING_REQUIRED_OUTPUT"
    observed = {**filled(blocked["blockers"][0]["example"]), "capability": "web_browsing"}
    observed["status"] = "available"
    assert agent.ack(artifacts=[observed])["pending"]["stepId"] == "last"


def test_a_weak_claim_does_not_unlock_a_required_capability(bench: Bench) -> None:
    agent = browsing(bench)
    claim = {
        **OBSERVED,
        "status": "available",
        "provenance": {"kind": "manual_claim", "claimedBy": "agent", "claim": "available"},
    }
    blocked = agent.ack(artifacts=[claim])
    assert blocked["blockers"][0]["code"] == "REQUIRED_CAPABILITY_UNKNOWN"
    assert agent.ack(artifacts=[filled(blocked["blockers"][0]["example"])])["kind"] == "ok"


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ({**OBSERVED, "capability": "delegation", "status": "available"}, "of another capability"),
        (
            {**OBSERVED, "status": "available", "provenance": {**FAILED, "failureCode": "tool_missing"}},
            "does not say that it is available",
        ),
    ],
)
def test_only_a_successful_attempt_of_the_capability_itself_unlocks_it(
    bench: Bench, observation: dict[str, Any], words: str
) -> None:
    agent = browsing(bench)
    blocked = agent.ack(artifacts=[observation])
    assert blocked["blockers"][0]["code"] == "REQUIRED_CAPABILITY_UNKNOWN"
    assert words in blocked["blockers"][0]["message"]
    assert agent.ack(artifacts=[filled(blocked["blockers"][0]["example"])])["pending"]["stepId"] == "last"


UNAVAILABLE = {
    **OBSERVED,
    "status": "unavailable",
    "provenance": {**FAILED, "failureCode": "tool_missing"},
}


@pytest.mark.parametrize("mode", ["guided", "stop"])
def test_an_unavailable_required_capability_blocks(bench: Bench, mode: Any) -> None:
    blocked = browsing(bench, mode).ack(artifacts=[UNAVAILABLE])
    assert blocked["blockers"][0]["code"] == "REQUIRED_CAPABILITY_UNAVAILABLE"
    assert blocked["blockers"][0]["pointer"] == {"kind": "capability", "capability": "web_browsing"}


def test_an_unavailable_required_capability_is_a_gap_in_never_stop(bench: Bench) -> None:
    agent = browsing(bench, "never-stop")
    assert agent.ack(artifacts=[UNAVAILABLE])["pending"]["stepId"] == "last"
    assert agent.ack("done")["status"] == "complete_with_gaps"
    assert [gap["severity"] for gap in agent.last["gapList"]] == ["critical"]


@pytest.mark.parametrize(
    ("capability", "attempt", "instead"),
    [
        ("delegation", "Delegate to subagents", "do the parts one after the other"),
        ("web_browsing", "Look things up on the web", "work from what you have"),
    ],
)
def test_a_preferred_capability_is_not_probed_and_degrades_with_a_warning(
    bench: Bench, capability: str, attempt: str, instead: str
) -> None:
    agent = started(bench, *steps("first"), capabilities={capability: "preferred"})
    first = agent.last
    assert agent.pending == "first"
    assert attempt in first["pending"]["prompt"]
    assert instead in first["pending"]["prompt"]
    answer = agent.ack(artifacts=[{**UNAVAILABLE, "capability": capability}])
    (warning,) = answer["warnings"]
    assert warning["code"] == "CAPABILITY_DEGRADED"
    assert instead in warning["message"]
    assert kinds(agent).count("capability_observed") == 1
    assert "found to be unavailable" in answer["pending"]["prompt"]
    assert attempt not in answer["pending"]["prompt"]
    other = agent.ack("another way", at=agent.look(first))
    assert attempt in other["pending"]["prompt"], "what a branch has observed is unknown on another"


@pytest.mark.parametrize(
    "wrong", [{"capability": "telepathy"}, {"status": "dead"}, {"status": ["available"]}]
)
def test_an_observation_outside_the_closed_sets_is_named_and_counts_for_nothing(
    bench: Bench, wrong: dict[str, Any]
) -> None:
    agent = started(bench, *steps("first"), capabilities={"web_browsing": "preferred"})
    answer = agent.ack("tried", artifacts=[{**UNAVAILABLE, **wrong}])
    assert answer["pending"]["stepId"] == "last"
    (warning,) = answer["warnings"]
    assert warning["code"] == "OBSERVATION_NOT_TAKEN"
    assert "delegation, web_browsing" in warning["message"]
    assert "unknown, available, unavailable" in warning["message"]
    assert "capability_observed" not in kinds(agent)


@pytest.mark.parametrize(
    ("capability", "need", "words"),
    [
        ("web_browsing", "preferred", "Look things up on the web where it helps."),
        ("web_browsing", "disabled", "Do not browse the web"),
        ("delegation", "disabled", "Do not delegate"),
    ],
)
def test_what_a_workflow_prefers_or_disables_is_in_its_prompts(
    bench: Bench, capability: str, need: str, words: str
) -> None:
    agent = started(bench, *steps("first"), capabilities={capability: need})
    assert words in agent.last["pending"]["prompt"]


def test_a_divergence_is_recorded(bench: Bench) -> None:
    agent = started(bench, *steps("first"))
    agent.ack(artifacts=[{"kind": "wr.workflow_divergence", "reason": "safety_stop", "summary": "did less"}])
    assert "divergence_recorded" in kinds(agent)


@pytest.mark.parametrize("fields", [{}, {"reason": "safety_stop"}, {"reason": "mood", "summary": "did less"}])
def test_a_divergence_needs_a_known_reason_and_a_summary(bench: Bench, fields: dict[str, str]) -> None:
    agent = started(bench, *steps("first"))
    blocked = agent.ack(artifacts=[{"kind": "wr.workflow_divergence", **fields}])
    assert blocked["blockers"][0]["code"] == "INVALID_REQUIRED_OUTPUT"
    assert "efficiency_skip" in agent.text
    assert "divergence_recorded" not in kinds(agent)


def kinds(agent: Agent) -> list[str]:
    return event_kinds(agent.ledger.store, agent.last["session"]["sessionId"])


def test_an_assessment_that_is_too_low_asks_for_a_follow_up(bench: Bench) -> None:
    assessment = {
        "id": "ready",
        "purpose": "Is it ready?",
        "dimensions": [{"id": "confidence", "purpose": "How sure?", "levels": ["low", "high"]}],
    }
    step = {
        "id": "assess",
        "title": "Assess",
        "prompt": "x",
        "assessmentRefs": ["ready"],
        "assessmentConsequences": [
            {
                "when": {"anyEqualsLevel": "low"},
                "effect": {"kind": "require_followup", "guidance": "Look again."},
            }
        ],
    }
    agent = started(bench, step, assessments=[assessment])
    low = {
        "kind": "wr.assessment",
        "assessmentId": "ready",
        "dimensions": {"confidence": "low"},
        "summary": "hm",
    }
    assert "Look again." in agent.ack(artifacts=[low])["blockers"][0]["message"]
    assert agent.ack(artifacts=[{**low, "dimensions": {"confidence": "high"}}])["kind"] == "ok"


def test_a_missing_assessment_is_named_where_others_were_given(bench: Bench) -> None:
    assessments = [
        {
            "id": name,
            "purpose": "Is it?",
            "dimensions": [{"id": "yes", "purpose": "Is it?", "levels": ["low"]}],
        }
        for name in ("ready", "safe")
    ]
    agent = started(bench, *steps("assess", assessmentRefs=["ready", "safe"]), assessments=assessments)
    ready = {"kind": "wr.assessment", "assessmentId": "ready", "dimensions": {"yes": "low"}, "summary": "hm"}
    for given, missing in (
        ({"kind": "other"}, "This step needs an artifact of kind 'wr.assessment'. Given: other."),
        (ready, "This step needs the assessment 'safe', and others were given."),
    ):
        assert agent.ack(artifacts=[given])["blockers"][-1]["message"] == missing


SCHEMAS: dict[str, dict[str, Any]] = {
    "no type": {"required": ["a"], "properties": {"a": {"minLength": 9}}},
    "an alternative": {"oneOf": [{"type": "object", "required": ["a"], "properties": {"a": {"const": 3}}}]},
    "parts": {"properties": {"a": {"type": "integer"}}, "allOf": [{"required": ["b"]}], "type": "object"},
    "a reference": {"$ref": "#/$defs/all", "$defs": {"all": {"type": "object", "required": ["b"]}}},
    "its own kind": {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "t.report"}}},
    "no other members": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "null"}},
    },
    "lists in lists": {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 2}}},
    },
    "an optional member that no example is found for": {
        "type": "object",
        "properties": {"a": {"pattern": "^[0-9]{3}$"}, "b": {"type": "boolean"}},
    },
    "a tree without end": {"type": "object", "properties": {"child": {"$ref": "#"}}},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_an_example_is_made_where_the_author_gives_none(schema: dict[str, Any]) -> None:
    """Rule 31."""
    example = example_of(schema, "t.report")
    assert isinstance(example, dict)
    assert example["kind"] == "t.report"
    assert artifact_violations(schema, example) == []


def test_no_example_is_made_where_none_is_found() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"pattern": "^[0-9]{3}$"}}}
    assert example_of(schema, "t.report") is None


def test_criteria_say_what_to_avoid_and_the_schema_to_match(bench: Bench) -> None:
    avoided = {"not": {"type": "contains", "value": "TODO", "message": "Must not contain TODO"}}
    shaped = {"type": "schema", "schema": {"type": "object", "required": ["a"]}, "message": "Give a"}
    length = {"type": "length", "min": 5}
    agent = started(bench, *steps("write", validationCriteria=[avoided, shaped, length]))
    assert "- avoid that the output contains 'TODO' (Must not contain TODO)" in agent.text
    assert '- Give a: nothing but JSON that matches {"type":"object","required":["a"]}' in agent.text
    assert "- the output has at least 5 characters" in agent.text


NESTED = {
    "or": [
        {"type": "contains", "value": "RISK", "message": "Name a risk."},
        {
            "and": [
                {"type": "length", "min": 10, "message": "Be long."},
                {"type": "regex", "pattern": "^Done", "message": "Begin with Done."},
            ]
        },
    ]
}


def test_an_alternative_of_several_rules_stays_together(bench: Bench) -> None:
    agent = started(bench, *steps("write", validationCriteria=NESTED))
    listed = "  - one of:\n    - Name a risk.\n    - all of:\n      - Be long.\n      - Begin with Done."
    assert listed in agent.text
    (blocker,) = agent.ack("short")["blockers"]
    assert "Name a risk.; Be long. and Begin with Done." in blocker["message"]
    wanted = "contain 'RISK' OR (the output has 5 characters, at least 10 are needed AND the output must"
    assert wanted in blocker["suggestedFix"]
    assert agent.ack("long enough, and no more")["kind"] == "blocked"
    assert agent.ack("Done, and long enough")["kind"] == "ok"


def test_what_a_tree_asks_for_is_told_in_full_if_nothing_was_sent(bench: Bench) -> None:
    agent = started(bench, *steps("write", validationCriteria=NESTED))
    wanted = "contains 'RISK' OR (the output has at least 10 characters; the output matches /^Done/)"
    assert wanted in agent.ack()["blockers"][0]["suggestedFix"]


def test_a_conditional_criterion_says_when_it_applies(bench: Bench) -> None:
    condition = {"var": "size", "equals": "large"}
    rule = {"type": "contains", "value": "tests", "message": "Name the tests.", "condition": condition}
    agent = started(bench, criteria(rule, {"type": "length", "min": 5, "message": "Be long."}))
    assert '  - Name the tests. (if size == "large")\n  - Be long.\n' in agent.text
    assert 'tests\' (if size == "large"); the output has' in agent.ack()["blockers"][0]["suggestedFix"]


def test_a_violated_choice_lists_every_legal_value(bench: Bench) -> None:
    agent = started(bench, VERDICT)
    verdict = filled(agent.ack("looks fine")["blockers"][0]["example"])
    (blocker,) = agent.ack(artifacts=[{**verdict, "findings": [{"severity": "Major", "summary": "x"}]}])[
        "blockers"
    ]
    assert '"Major" is not one of "critical", "major", "minor", "nit"' in blocker["message"]


def test_a_probe_names_its_capability_and_the_codes_of_a_failure(bench: Bench) -> None:
    agent = started(bench, capabilities={"web_browsing": "required"})
    assert '"capability":"web_browsing"' in agent.text
    assert all(code in agent.text for code in ("tool_missing", "tool_error", "policy_blocked", "unknown"))


def test_a_confirmation_that_depends_says_on_what(bench: Bench) -> None:
    risky = {"var": "risk", "equals": "high"}
    agent = started(
        bench, *steps("ship", requireConfirmation=risky), *steps("tell", requireConfirmation=True)
    )
    assert 'When done, if risk == "high", ask the user to confirm, and revise it until they do' in agent.text
    agent.ack("shipped", risk="low")
    assert "When done, ask the user to confirm, and revise it until they do" in agent.text
