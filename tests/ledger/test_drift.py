"""Drift: a changed or removed workflow file is a warning, and files are looked at once a second."""

from __future__ import annotations

from support.harness import Agent, Bench, steps, workflow

FLOW = workflow(*steps("first", "second"))


def warnings(agent: Agent, started: dict[str, object]) -> list[str]:
    return [warning["code"] for warning in agent.look(started).get("warnings", [])]


def test_a_change_is_seen_within_a_second(bench: Bench) -> None:
    bench.write(FLOW)
    agent = bench.agent()
    started = agent.start("test.flow")
    assert warnings(agent, started) == []
    bench.write(workflow(*steps("quite", "different")))
    bench.clock.pass_seconds(0.9)
    assert warnings(agent, started) == []
    bench.clock.pass_seconds(0.1)
    assert warnings(agent, started) == ["WORKFLOW_CHANGED"]


def test_a_removed_file_is_a_warning_until_it_is_back(bench: Bench) -> None:
    path = bench.write(FLOW)
    agent = bench.agent()
    started = agent.start("test.flow")
    path.unlink()
    bench.clock.pass_seconds(1)
    assert warnings(agent, started) == ["WORKFLOW_GONE"]
    bench.write(FLOW)
    bench.clock.pass_seconds(1)
    assert warnings(agent, started) == []


def test_a_clock_that_is_set_back_does_not_stop_the_looks(bench: Bench) -> None:
    bench.write(FLOW)
    agent = bench.agent()
    started = agent.start("test.flow")
    assert warnings(agent, started) == []
    bench.write(workflow(*steps("quite", "different")))
    bench.clock.pass_seconds(-3600)
    assert warnings(agent, started) == ["WORKFLOW_CHANGED"]
