"""The second oracle, on logs that are written by hand."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tools import search
from tools.search.oracle import NEVER_STOP, Oracle
from tools.search.seen import Seen
from tools.search.workflows import START, workflow_of


def rules(
    kinds: list[str],
    *batches: list[dict[str, Any]],
    shape: str = "one",
    policy: str = "user",
    mode: str = "guided",
    files: str = "sha256:sound",
) -> list[str]:
    """Return the rules that a log breaks, a list of events a command, with these files all the while."""
    oracle, seen, broken = Oracle(workflow_of(kinds, shape)), Seen(), list[str]()
    started = {"kind": "run_started", "preferences": {"autonomy": mode}, "policy": policy}
    for batch in (
        [started, {"kind": "context_set", "delta": START, "source": "initial"}, entered()],
        *batches,
    ):
        seen, violations = oracle.read(seen, [with_effect(oracle, event) for event in batch], files)
        broken += [violation.rule for violation in violations]
    return broken


def with_effect(oracle: Oracle, event: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with what its option sets, unless it says something else."""
    question = oracle.questions.get(event.get("gate", ""))
    option = question.options.get(event.get("option", "")) if question is not None else None
    return {"sets": dict(option.sets), **event} if option is not None else event


def entered(activity: str = "a") -> dict[str, Any]:
    return {"kind": "activity_entered", "activity": activity}


def left(to: str = "__terminal__") -> dict[str, Any]:
    return {"kind": "activity_left", "to": to}


def shown(gate: str = "g1", digest: str = "d", question: str = "") -> dict[str, Any]:
    event = {"kind": "question_shown", "key": gate, "gate": gate, "shown": digest, "at": 0}
    return {**event, "question": question}


def answered(gate: str = "g1", option: str = "yes", channel: str = "console", **more: Any) -> dict[str, Any]:
    event = {"kind": "gate_resolved", "gate": gate, "option": option, "channel": channel, "how": "chosen"}
    return {**event, "shown": "d", "question": "", "at": 0, **more}


def sent(**delta: Any) -> dict[str, Any]:
    return {"kind": "context_set", "delta": delta}


def unset(name: str) -> dict[str, Any]:
    return {"kind": "child_returned", "sets": {name: None}}


def gap(key: str, summary: str = "") -> dict[str, Any]:
    event = {"kind": "gap_recorded", "severity": "critical", "category": "unexpected"}
    return {**event, "key": key, "summary": summary}


def completed(step: str) -> dict[str, Any]:
    return {"kind": "step_completed", "step": step}


@pytest.mark.parametrize("module", ["oracle", "seen", "declared", "workflows"])
def test_the_oracle_shares_no_code_with_the_core(module: str) -> None:
    tree = ast.parse((Path(search.__path__[0]) / f"{module}.py").read_text("utf-8"))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert not [name for name in imported if name.startswith("interlock")]
    assert not [name for name in imported if name in ("tools.search.adapter", "tools.search.compiled")]


def test_an_answered_gate_is_passed() -> None:
    assert rules(["gate"], [shown()], [answered()], [left()]) == []


def test_an_unanswered_gate_is_not() -> None:
    assert rules(["gate"], [shown()], [left()]) == ["unanswered"]


def test_an_answer_by_form_counts_under_auto_only() -> None:
    log = [[shown()], [answered(channel="elicitation")], [left()]]
    assert rules(["gate"], *log) == ["channel"]
    assert rules(["gate"], *log, policy="auto") == []


def test_in_never_stop_mode_an_agent_answers_for_nobody() -> None:
    done = {"kind": "run_completed", "status": "complete"}
    for channel, broken in {"agent": ["complete"], "elicitation": []}.items():
        log = [[shown()], [answered(channel=channel), gap("g1")], [left(), done]]
        for policy in ("auto", "client"):
            assert rules(["gate"], *log, policy=policy, mode=NEVER_STOP) == broken


def test_an_answer_to_other_words_than_were_shown() -> None:
    assert rules(["gate"], [shown()], [answered(shown="other")], [left()]) == ["digest"]


def test_an_answer_to_a_question_that_was_not_shown() -> None:
    assert rules(["gate"], [answered()], [left()]) == ["unshown"]


def test_an_agent_does_not_answer_what_the_user_declined() -> None:
    declined = {"kind": "question_declined", "gate": "g1", "channel": "elicitation"}
    assert rules(["gate"], [shown()], [declined], [answered(channel="agent")], policy="auto") == ["declined"]
    assert rules(["gate"], [shown()], [declined], [answered(channel="elicitation")], policy="auto") == []


def test_what_was_shown_stays_as_it_was() -> None:
    assert rules(["gate"], [shown()], [answered()], [sent(target="PRODUCTION")]) == ["bent"]


def test_a_key_with_a_dot_is_a_change_too() -> None:
    assert rules(["dotted"], [shown()], [answered()], [sent(**{"plan.host": "PRODUCTION"})]) == ["dotted"]


def test_a_declared_step_after_the_gate_may_change_it() -> None:
    change = [completed("s2"), {**sent(target="PRODUCTION"), "by": "s2"}]
    assert rules(["gate", "setter"], [shown()], [answered()], change) == []
    unnamed = [completed("s2"), sent(target="PRODUCTION")]
    assert rules(["gate", "setter"], [shown()], [answered()], unnamed) == ["bent"]


def test_a_declared_step_before_the_gate_may_not() -> None:
    change = [sent(target="PRODUCTION"), completed("s1")]
    assert rules(["setter", "gate"], [shown("g2")], [answered("g2")], change) == ["bent"]


def test_every_round_of_a_loop_has_its_own_answer() -> None:
    first, second = (
        {"kind": "loop_entered", "loop": "l1", "total": 2, "sets": {"item": "staging"}},
        {"kind": "loop_iterated", "loop": "l1", "sets": {"item": "PRODUCTION"}},
    )
    end = [{"kind": "loop_left", "loop": "l1"}, left()]
    log = [[first, shown()], [answered(), {**second, "iteration": 1}]]
    assert rules(["each"], *log, end) == ["unanswered"]
    assert rules(["each"], *log, [shown()], [answered(), *end]) == []


def test_a_loop_is_not_left_while_its_next_round_is_due() -> None:
    again = answered(option="again", sets={"again": True})
    begun = [{"kind": "loop_entered", "loop": "l1"}, completed("s1"), shown()]
    assert rules(["while"], begun, [again, {"kind": "loop_left", "loop": "l1"}]) == ["loop-left"]


def test_an_option_that_leads_away_waives_what_stands_after_its_gate_only() -> None:
    away = [answered(option="away", transition_to="__terminal__"), left()]
    assert rules(["away", "gate"], [shown()], away) == []
    away = [answered("g2", option="away", transition_to="__terminal__"), left()]
    assert rules(["gate", "away"], [shown("g2")], away) == ["unanswered"]


def test_a_jump_leaves_out_what_stands_on_the_path() -> None:
    assert rules(["gate", "step"], [completed("s0"), left("c"), entered("c")], shape="three") == ["jumped"]


def test_a_jump_leaves_out_a_confirmation_in_guided_mode_only() -> None:
    log = [[completed("s0"), left("c"), entered("c")], [{"kind": "run_completed", "status": "complete"}]]
    assert rules(["confirm", "step"], *log, shape="three") == ["jumped"]
    for mode in ("full_auto_stop_on_user_deps", NEVER_STOP):
        assert rules(["confirm", "step"], *log, shape="three", mode=mode) == []


def test_in_never_stop_mode_an_agent_answers_in_a_new_visit_and_replaces_nothing_before() -> None:
    agents = [answered(channel="agent"), gap("g1")]
    log = [[shown()], [answered()], agents, [sent(target="PRODUCTION")]]
    assert rules(["gate"], *log, mode=NEVER_STOP) == ["replaced"]
    assert rules(["gate"], *log) == ["bent"]
    again = [[shown()], [answered()], [left("a"), entered()], agents, [sent(target="PRODUCTION")]]
    assert rules(["gate"], *again, mode=NEVER_STOP) == []


def test_what_the_mode_or_the_terms_let_pass_is_disclosed() -> None:
    for log in ([left()], [answered(channel="agent"), left()]):
        assert rules(["gate"], log, mode=NEVER_STOP) == ["undisclosed"]
        assert rules(["gate"], [gap("g1"), *log], mode=NEVER_STOP) == []
        assert rules(["gate"], [gap("g2"), *log], mode=NEVER_STOP) == ["undisclosed"]
    begun = {"kind": "loop_entered", "loop": "l1", "total": 1}
    over = {"kind": "loop_left", "loop": "l1"}
    assert rules(["each"], [begun, gap("g1"), over], mode=NEVER_STOP) == ["undisclosed"]
    assert rules(["each"], [begun, gap("l1@0::g1"), over], mode=NEVER_STOP) == []


def test_in_never_stop_mode_an_agents_option_leads_away_from_what_follows_it() -> None:
    agents = answered(option="away", channel="agent", transition_to="__terminal__")
    assert rules(["away", "yes-or-nothing"], [agents, gap("g1"), left()], mode=NEVER_STOP) == []
    assert rules(["away", "yes-or-nothing"], [agents, left()], mode=NEVER_STOP) == ["undisclosed"]


def test_outside_guided_mode_a_confirmation_is_assumed_and_that_is_recorded() -> None:
    assumed = answered("confirm-s1", option="proceed", channel="server", how="assumed")
    stop = "full_auto_stop_on_user_deps"
    assert rules(["confirm"], [completed("s1"), assumed, left()], mode=stop) == []
    assert rules(["confirm"], [completed("s1"), left()], mode=stop) == ["unanswered"]


def test_a_shortcut_may_be_claimed() -> None:
    assert rules(["gate", "step"], [completed("s0"), left("c"), entered("c")], shape="detour") == []


def test_a_condition_is_judged_when_the_activity_is_left() -> None:
    assert rules(["conditional"], [sent(risky=False)], [left()]) == []
    assert rules(["conditional"], [sent(risky=False)], [sent(risky=True)], [left()]) == ["unanswered"]


def test_a_variable_has_its_type() -> None:
    assert rules(["conditional"], [sent(risky="true")]) == ["typed"]


def test_a_question_is_shown_whole() -> None:
    assert rules(["gate"], [unset("target")], [shown()]) == ["whole"]
    assert rules(["gate"], [sent(target=None)], [shown()]) == [], "it is not known, and shown so"


def test_in_never_stop_mode_what_a_question_lacks_is_a_gap() -> None:
    other, named = (gap("g1", f"put without '{name}'") for name in ("plan", "target"))
    minor = {**named, "severity": "warning"}
    lacking, never = [unset("target")], NEVER_STOP
    assert rules(["gate"], lacking, [shown(), named], mode=never) == []
    for wrong in (other, minor):
        assert rules(["gate"], lacking, [shown(), wrong], mode=never) == ["whole"]
    assert rules(["gate"], lacking, [shown(), named]) == ["whole"]


def test_in_never_stop_mode_what_a_question_lacked_was_not_shown_and_may_be_sent() -> None:
    lacks = [shown(), gap("g1", "put without 'plan.host'")]
    log = [[sent(plan={})], lacks, [answered()], [sent(plan={"host": "PRODUCTION"})]]
    assert rules(["dotted"], *log, mode=NEVER_STOP) == []
    assert rules(["dotted"], [shown()], *log[2:], mode=NEVER_STOP) == ["bent"]


def test_a_question_that_is_asked_again_has_no_answer() -> None:
    again = [{**sent(target="PRODUCTION"), "source": "reask"}, shown(digest="e")]
    assert rules(["gate"], [shown()], [answered()], again, [left()]) == ["unanswered"]
    assert rules(["gate"], [shown()], [answered()], again, [answered(shown="e")], [left()]) == []


def test_what_only_an_answer_sets_is_not_asked_for_by_value() -> None:
    again = [{**sent(approved=True), "source": "reask"}, shown()]
    assert rules(["yes-or-nothing"], [shown()], [answered(option="no")], again) == ["bent"]


@pytest.mark.parametrize("mode", ["guided", NEVER_STOP])
def test_what_only_answers_set_is_never_the_agents(mode: str) -> None:
    by_child = {"kind": "child_returned", "sets": {"approved": True}}
    for event in (sent(approved=True), {**sent(approved=True), "source": "initial"}, by_child):
        assert rules(["gate"], [event], mode=mode) == ["decided"]
    assert rules(["gate"], [sent(approved=None)], mode=mode) == []


def test_what_a_step_sets_too_is_the_agents_until_it_is_shown() -> None:
    assert rules(["optional-setter", "gate"], [sent(approved=True)]) == []


def test_the_names_that_a_loop_sets_for_each_round_are_not_the_agents() -> None:
    begun = {"kind": "loop_entered", "loop": "l1", "total": 2, "sets": {"item": "staging"}}
    over = {"kind": "loop_left", "loop": "l1"}
    for event in (sent(item="PRODUCTION"), sent(item=None), sent(currentIndex=1)):
        assert rules(["each"], [begun], [event]) == ["round"]
        assert rules(["each"], [event], [begun]) == []
    assert rules(["each-plain"], [begun], [over], [sent(item="PRODUCTION")]) == []


def test_a_question_may_be_given_the_name_of_its_round_that_it_lacks() -> None:
    begun = {"kind": "loop_entered", "loop": "l1", "total": 2}
    assert rules(["each"], [begun], [sent(item="staging")]) == []
    assert rules(["each-plain"], [begun], [sent(item="staging")]) == ["round"]


def test_a_question_that_was_shown_is_not_talked_away() -> None:
    assert rules(["conditional"], [shown()], [sent(risky=False)], [left()]) == ["talked-away"]
    assert rules(["conditional"], [shown()], [sent(risky=False), shown()], [left()]) == ["talked-away"]


def test_work_that_is_done_again_is_confirmed_again() -> None:
    confirmed = answered("confirm-s1", "proceed")
    assert rules(["confirm"], [completed("s1"), shown("confirm-s1")], [confirmed, left()]) == []
    assert rules(["confirm"], [shown("confirm-s1")], [confirmed], [completed("s1"), left()]) == ["unanswered"]


def test_a_rejected_approval_lets_no_step_be_done() -> None:
    rejected = answered("s1_approval", "reject", how="given")
    assert rules(["approval"], [shown("s1_approval")], [rejected, completed("s1")]) == ["unanswered"]


def test_an_option_does_what_the_workflow_says() -> None:
    assert rules(["gate"], [shown()], [answered(sets={"approved": False})]) == ["effect"]


def approved(by: str, option: str = "yes", seat: str = "", digest: str = "d") -> dict[str, Any]:
    approval = {"by": by, "seat": seat or by, "entitled": seat or by, "option": option, "channel": "console"}
    return {"kind": "approval_given", "key": "g1", "gate": "g1", "shown": digest, "approval": approval}


def decided(option: str = "yes", **more: Any) -> dict[str, Any]:
    return answered(option=option, channel="approvers", **more)


def test_two_different_people_decide_a_gate_with_approvers() -> None:
    assert rules(["approvers"], [shown()], [approved("bob")], [approved("cy"), decided()], [left()]) == []
    for only in (
        [approved("bob")],
        [approved("bob"), approved("bob")],
        [approved("bob"), approved("cy", "no")],
    ):
        assert rules(["approvers"], [shown()], only, [decided()]) == ["quorum"]


def test_a_person_and_a_seat_have_one_answer() -> None:
    twice = [approved("bob"), approved("bob", seat="cy")]
    assert rules(["approvers"], [shown()], twice, [decided()]) == ["quorum"]
    stood_in = [approved("bob"), approved("fay", seat="bob")]
    assert rules(["approvers"], [shown()], stood_in, [decided()]) == ["quorum"]


def test_who_started_the_run_does_not_decide_it_nor_does_a_stand_in() -> None:
    for approval in (approved("ann"), approved("dan", seat="ann"), approved("eve")):
        assert rules(["approvers"], [shown()], [approval]) == ["approver"]


def test_nobody_else_decides_a_gate_with_approvers() -> None:
    for channel in ("agent", "elicitation", "console"):
        log = [[shown()], [answered(channel=channel)], [left()]]
        assert rules(["approvers"], *log, policy="agent") == ["channel"]
        assert rules(["approvers"], *log, mode=NEVER_STOP) == ["undisclosed"]


def test_other_words_ask_every_approver_again() -> None:
    log = [[shown()], [approved("bob")], [shown(digest="e")], [approved("cy", digest="e")]]
    assert rules(["approvers"], *log, [decided(shown="e")]) == ["quorum"]


def ran(passed: bool = True, key: str = "s1", tree: str = "sha256:sound") -> dict[str, Any]:
    return {"kind": "check_ran", "key": key, "check": "tests", "passed": passed, "tree_after": tree}


def test_a_step_is_done_after_its_check_has_passed_on_these_files() -> None:
    assert rules(["checked"], [ran(), completed("s1"), left()]) == []
    for log in ([], [ran(passed=False)], [ran(tree="sha256:edited")], [ran(key="s2")]):
        assert rules(["checked"], [*log, completed("s1")]) == ["unchecked"]


def test_in_never_stop_mode_a_failed_check_is_a_gap() -> None:
    failed = ran(passed=False)
    assert rules(["checked"], [failed, gap("s1"), completed("s1")], mode=NEVER_STOP) == []
    assert rules(["checked"], [failed, completed("s1")], mode=NEVER_STOP) == ["undisclosed"]


def test_a_question_shows_the_result_of_these_files() -> None:
    begun = {"kind": "loop_entered", "loop": "l1", "total": 1, "sets": {"item": "one"}}
    log = [begun, ran(key="l1@0::s1"), completed("s1")]
    current, old = "passed (on files sound)", "passed (on files edited)"
    assert rules(["each-reporting"], log, [shown(question=current)]) == []
    assert rules(["each-reporting"], log, [shown(question=old)]) == ["stale"]


def test_no_agent_writes_the_results_of_checks() -> None:
    assert rules(["each-reporting"], [sent(checks={"tests": "passed"})]) == ["reserved"]
