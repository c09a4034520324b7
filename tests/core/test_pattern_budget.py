"""Author regexes share one time budget a call (rule 33)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not, Scope, holds
from interlock.core.definition.criteria import failed_checks
from interlock.core.definition.workflow import AllRules, AnyRule, Criteria, NotRule, Rule
from interlock.core.patterns import BadPattern, limited_time, matches, search
from support.harness import Bench, gate, steps, workflow

SLOW_TEXT = "a" * 60 + "!"
NOWHERE = Scope({}, {})


def slow(number: int) -> str:
    """Return one of many patterns that need look-around and try every split of the text."""
    return f"(?=a)(?:a|a?)+(?:a|aa)+${number}"


class Ticks:
    """A clock that moves by a step at each reading."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_all_patterns_of_a_call_share_one_budget() -> None:
    with limited_time(0.5, time.monotonic):
        rules = AllRules(tuple(Rule("regex", "M", pattern=slow(number)) for number in range(300)))
        failed = failed_checks(rules, SLOW_TEXT, NOWHERE)
    assert len(failed) == 300
    assert all(check.message == "M" for check in failed)
    assert slow(299) in failed[-1].requirement
    assert "not evaluated" in failed[-1].requirement


def test_fast_patterns_count_too() -> None:
    with limited_time(2.0, Ticks(0.5)):
        assert [search("a", "a") for _ in range(4)] == [True] * 4
        with pytest.raises(BadPattern, match=r"'a' was not evaluated: .* 2 s"):
            search("a", "a")
    assert search("a", "a")


def test_a_condition_that_was_not_evaluated_counts_as_the_caller_says_also_when_negated() -> None:
    test: Condition = Compare("word", "matches", "a")
    scope = Scope({"word": "a"}, {})
    with limited_time(0.5, Ticks(0.4)):
        assert [matches("a", "a") for _ in range(3)] == [True, True, None]
        for condition in (test, Not(test), AllOf((test, Not(test))), AnyOf((test, Not(test)))):
            assert holds(condition, scope)
            assert not holds(condition, scope, unknown=False)
        assert not holds(AllOf((test, Compare("word", "==", "b"))), scope)
        assert holds(AnyOf((test, Compare("word", "==", "a"))), scope, unknown=False)


def test_a_pattern_that_takes_too_long_does_not_pass_a_gate_or_a_step(bench: Bench) -> None:
    slow_condition = {"var": "text", "matches": slow(1)}
    bench.write(
        workflow(
            *steps("one"),
            gate("ship", "now", "later", condition=slow_condition),
            {**steps("two")[0], "runCondition": {"not": slow_condition}},
        )
    )
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("done", text=SLOW_TEXT)
    assert agent.pending == "ship"
    assert "Warning: A condition could not be evaluated and counts as met" in agent.text
    agent.decide("now")
    assert agent.pending == "two"


def test_every_call_has_its_own_budget() -> None:
    for _ in range(3):
        with limited_time(0.5, Ticks(0.4)):
            assert search("a", "a")


@pytest.mark.parametrize(
    "criteria",
    [
        NotRule(Rule("regex", "M", pattern="b")),
        NotRule(AnyRule((Rule("contains", "N", value="z"), Rule("regex", "M", pattern="b")))),
        NotRule(NotRule(Rule("regex", "M", pattern="a"))),
        AnyRule((Rule("contains", "N", value="z"), Rule("regex", "M", pattern="a"))),
    ],
)
def test_what_was_not_evaluated_never_passes(criteria: Criteria) -> None:
    assert failed_checks(criteria, "a", NOWHERE) == ()
    with limited_time(0.0, Ticks(0.1)):
        assert failed_checks(criteria, "a", NOWHERE) != ()


@pytest.mark.parametrize(
    "criteria",
    [
        NotRule(AllRules((Rule("contains", "N", value="z"), Rule("regex", "M", pattern="b")))),
        AnyRule((Rule("contains", "N", value="a"), Rule("regex", "M", pattern="a"))),
    ],
)
def test_what_the_other_rules_decide_is_decided(criteria: Criteria) -> None:
    with limited_time(0.0, Ticks(0.1)):
        assert failed_checks(criteria, "a", NOWHERE) == ()


def test_a_tool_call_stops_evaluating_when_its_patterns_have_used_up_their_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.core.patterns.SECONDS_OF_A_CALL", 0.01)
    rules: list[dict[str, Any]] = [
        {"type": "regex", "pattern": slow(number), "message": f"M{number}"} for number in range(300)
    ]
    step = {"id": "one", "title": "One", "prompt": "Do.", "validationCriteria": rules}
    bench.write(
        {"id": "t.slow", "name": "S", "description": "d", "version": "1.0.0", "steps": [step]}, "slow"
    )
    agent = bench.agent()
    agent.start("t.slow")
    blocked = agent.ack(SLOW_TEXT)
    assert blocked["kind"] == "blocked"
    assert "was not evaluated" in agent.text
