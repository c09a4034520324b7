"""Rule 19: the variables of a run are bounded in all, not only call by call."""

from __future__ import annotations

from support.harness import Bench, steps, workflow
from support.session_agents import start_flow, write_flow

LARGE = "x" * 200_000
LONG = workflow(*steps(*(f"step-{number}" for number in range(9))))


def test_calls_that_are_small_enough_alone_are_refused_once_they_are_too_large_together(bench: Bench) -> None:
    bench.write(LONG)
    agent = bench.agent()
    agent.start("test.flow")
    first = agent.ack("one", a=LARGE)
    refused = agent.ack("two", at=first, b=LARGE)
    assert (refused["code"], refused["details"]["reason"]) == ("PRECONDITION_FAILED", "VARIABLES_TOO_LARGE")
    assert "would have 400" in refused["message"]
    assert "null" in refused["details"]["suggestion"]
    assert agent.ack("two", at=first, b=LARGE, a=None)["kind"] == "ok"


def test_blocked_attempts_do_not_pile_up_either(bench: Bench) -> None:
    size = {"schema": {"type": "object", "required": ["size"]}, "example": {"kind": "test.size", "size": 1}}
    bench.write(workflow({"id": "sized", "title": "Sized", "prompt": "x", "output": size}))
    agent = bench.agent()
    agent.start("test.flow")
    assert agent.ack("one", a=LARGE)["kind"] == "blocked"
    assert agent.ack("two", b=LARGE)["code"] == "PRECONDITION_FAILED"


def test_a_refused_call_keeps_nothing_of_what_is_too_large(bench: Bench) -> None:
    write_flow(bench)
    lead = start_flow(bench)
    lead.tell("next_activity", activity_id="build", variables={"parts": [LARGE]})
    refused = lead.tell("next_activity", activity_id="build", variables={"goal": LARGE})
    assert refused.code == "VARIABLES_TOO_LARGE", refused.text[:300]
    assert "Send less in variables" in refused.text
