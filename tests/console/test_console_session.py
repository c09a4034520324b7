"""One session in the console: runs apart, forks with their cause, time in lanes, events that are filtered."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.console.pages.timelines import run_timeline
from interlock.core.principals import Principal
from interlock.ledger.queries.story import HandedIn, RunStory, StoryStep
from support.console_desk import Desk, desk
from support.harness import Bench, steps, workflow

__all__ = ["desk"]

EVE = Principal("eve", "user")


@pytest.fixture
def rewound(desk: Desk) -> Desk:
    """A run whose gate was answered twice: the first way, then another after a rewind."""
    desk.to_the_gate()
    at_gate = desk.agent.last
    desk.agent.decide("yes")
    desk.agent.ack("The first end.")
    desk.agent.call("continue_workflow", stateToken=at_gate["stateToken"])
    desk.agent.decide("no")
    desk.agent.ack("The other end.")
    return desk


def test_a_fork_is_told_with_its_cause_on_both_branches(rewound: Desk) -> None:
    page = rewound.shows(f"sessions/{rewound.ref}")
    (fork,) = page["forks"]
    assert (fork["cause"], fork["label"]) == ("first", "ship: yes (agent)")
    other = rewound.shows(f"sessions/{rewound.ref}", node=str(fork["branch"]))
    (back,) = other["forks"]
    assert (back["cause"], back["node"]) == ("rewound", fork["node"])
    assert other["story"]["steps"][-1]["handedIn"]["notes"] == ["The first end."]


def test_the_text_of_a_fork_leads_an_agent_to_the_node(rewound: Desk) -> None:
    page = rewound.shows(f"sessions/{rewound.ref}")
    session, gate = page["status"]["sessionId"], page["forks"][0]["node"]
    status, answer = rewound.act("fork", {"sessionId": session, "node": gate})
    assert status == 200
    found = re.search(r"stateToken (st\.v1\.\S+)", answer["text"])
    assert found is not None
    rewound.agent.call("continue_workflow", stateToken=found[1])
    assert rewound.agent.last["pending"]["stepId"] == "ship"
    rewound.agent.decide("yes")
    assert rewound.shows(f"sessions/{session}")["trees"][0]["forks"] == 2
    assert rewound.act("fork", {"sessionId": session, "node": 99})[0] == 404
    assert rewound.act("fork", {"sessionId": session, "node": gate}, EVE)[0] == 404


def test_runs_of_a_session_have_a_lane_each_and_the_session_one_of_its_own(desk: Desk) -> None:
    began = desk.agent.call("start_session")
    token = {"sessionToken": began["sessionToken"]}
    desk.agent.call("start_workflow", workflowId="test.flow", context={"goal": "First"}, **token)
    desk.clock.pass_seconds(60)
    desk.agent.call("checkpoint_workflow", output={"notesMarkdown": "Between them."}, **token)
    desk.clock.pass_seconds(60)
    desk.agent.call("start_workflow", workflowId="wr.small_task", context={"goal": "Second"}, **token)
    page = desk.shows(f"sessions/{desk.ref}")
    shown = ("title", "workflowId", "status", "branches")
    assert [tuple(run[name] for name in shown) for run in page["runs"]] == [
        ("First", "test.flow", "in_progress", 1),
        ("Second", "wr.small_task", "in_progress", 1),
    ]
    whole, first, second = page["lanes"]
    assert ["Between them." in mark["text"] for mark in whole["marks"]] == [True]
    assert whole["start"] <= first["start"] < whole["marks"][0]["at"] < second["start"] <= whole["end"]
    assert page["notes"] == ["Between them."]
    assert page["story"]["runId"] == page["runs"][1]["runId"], "one run at a time, the newest first"
    assert [step["item"] for step in page["story"]["steps"]] == ["agree"]


def test_a_node_shows_where_the_agent_diverged_and_what_it_observed(desk: Desk) -> None:
    desk.agent.start("test.flow")
    provenance = {"kind": "attempted_use", "attemptContext": "workflow_step", "result": "failure"}
    seen = {"kind": "wr.capability_observation", "capability": "delegation", "status": "unavailable"}
    left = {"kind": "wr.workflow_divergence", "reason": "safety_stop", "summary": "Did less."}
    desk.agent.ack("Done.", artifacts=[{**seen, "provenance": provenance}, left])
    page = desk.shows(f"sessions/{desk.ref}")
    assert [drawn["node"]["diverged"] for drawn in page["trees"][0]["nodes"]] == [[], ["safety_stop"]]
    marks = [(mark["kind"], mark["text"], mark["weight"]) for mark in page["story"]["steps"][0]["marks"]]
    assert ("capability", "delegation: unavailable", "warning") in marks
    assert ("divergence", "safety stop: Did less.", "warning") in marks


def test_loops_have_lanes_and_waiting_is_counted_apart(bench: Bench) -> None:
    desk = Desk(bench)
    config = {"type": "for", "count": 2, "maxIterations": 2}
    twice = {"type": "loop", "id": "each", "title": "Each", "loop": config, "body": steps("look")}
    bench.write(workflow(*steps("begin"), twice, id="test.loop"))
    desk.agent.start("test.loop", goal="Twice")
    for _ in range(2):
        desk.clock.pass_seconds(10)
        desk.agent.ack()
    timeline = desk.shows(f"sessions/{desk.ref}")["timeline"]
    assert [(lane["kind"], lane["name"], len(lane["bars"])) for lane in timeline["lanes"]] == [
        ("activity", "main", 1),
        ("loop", "each", 2),
    ]
    desk.to_the_gate()
    desk.clock.pass_seconds(300)
    waited = desk.shows(f"sessions/{desk.ref}")["timeline"]
    assert (waited["working"], waited["waiting"]) == (60_000, 300_000)


@st.composite
def stories(draw: st.DrawFn) -> RunStory:
    """Return a branch whose steps follow each other; only the last may be open."""
    at, told = 0, list[StoryStep]()
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["step", "decision", "input"]))
        activity, loops = draw(st.sampled_from("ab")), draw(st.sampled_from(["", "x", "x / y"]))
        done = at + draw(st.integers(0, 500))
        step = StoryStep(number, kind, "item", "item", "", "", at, done, activity=activity, loop=loops)
        told.append(step)
        at = done
    return RunStory("run", 0, tuple(told))


@given(stories(), st.integers(0, 10_000))
def test_every_moment_of_a_branch_is_working_or_waiting_in_one_lane(story: RunStory, now: int) -> None:
    timeline = run_timeline(story, now)
    bars = [bar for lane in timeline.lanes for bar in lane.bars]
    assert sorted(bar.node for bar in bars) == [step.node for step in story.steps]
    assert timeline.working + timeline.waiting == timeline.end - timeline.start
    assert sum(lane.working for lane in timeline.lanes) == timeline.working
    assert all(timeline.start <= bar.start <= bar.end <= timeline.end for bar in bars)


@pytest.mark.parametrize(
    ("kind", "now", "end"),
    [("step", 900, 300), ("decision", 900, 900), ("decision", None, 300), ("step", 50, 300)],
)
def test_an_open_step_lasts_until_its_last_attempt_and_a_question_until_now(
    kind: str, now: int | None, end: int
) -> None:
    step = StoryStep(0, kind, "item", "item", "", "", 100, blocked=(HandedIn(300, (), ()),))
    assert run_timeline(RunStory("run", 0, (step,)), now).end == end


def test_a_mode_that_the_user_sets_is_told_at_the_step_where_it_was_set(desk: Desk) -> None:
    session = desk.to_the_gate()["question"]["sessionId"]
    assert desk.act("mode", {"sessionId": session, "mode": "stop"})[0] == 200
    first, gate = desk.shows(f"sessions/{session}")["story"]["steps"]
    assert [mark["kind"] for mark in first["marks"]] == []
    assert [(mark["kind"], mark["text"]) for mark in gate["marks"]] == [
        ("mode", "mode stop, set by console (user)")
    ]


def test_a_node_shows_the_variables_that_held_there(desk: Desk) -> None:
    session = desk.to_the_gate()["question"]["sessionId"]
    page: Any = desk.shows(f"sessions/{session}/node", node="0")
    assert (page["variables"]["goal"], page["pending"]["id"], page["mode"]) == ("Ship it", "first", "guided")
    assert desk.shows(f"sessions/{session}/node", node="77")["error"]["code"] == "TOKEN_UNKNOWN_NODE"
    assert desk.shows(f"sessions/{session}/node", EVE, node="0")["error"]["code"] == "NOT_FOUND"


def test_events_are_filtered_by_kind_and_text_over_the_whole_log(desk: Desk) -> None:
    session = desk.to_the_gate()["question"]["sessionId"]
    everything = desk.shows(f"sessions/{session}/events")
    assert {row["kind"] for row in everything["events"]} <= {*everything["kinds"]}
    completed = desk.shows(f"sessions/{session}/events", kind="step_completed")
    assert [row["kind"] for row in completed["events"]] == ["step_completed"]
    built = desk.shows(f"sessions/{session}/events", q="BUILT it")
    assert ["Built it." in row["summary"] for row in built["events"]] == [True]
    assert desk.shows(f"sessions/{session}/events", q="nowhere")["events"] == []


def test_a_run_that_the_user_abandons_ends_for_good_and_waits_no_more(desk: Desk) -> None:
    session = desk.to_the_gate()["question"]["sessionId"]
    run = desk.shows(f"sessions/{session}")["runId"]
    request = {"sessionId": session, "runId": run, "reason": "Withdrawn"}
    assert desk.act("abandon", request, EVE)[0] == 404
    assert desk.act("abandon", {**request, "runId": "run_other"})[0] == 404
    assert desk.act("abandon", request)[0] == 200
    page = desk.shows(f"sessions/{session}")
    assert page["runs"][0]["status"] == "abandoned"
    assert "Withdrawn" in page["status"]["runs"][0]["abandoned"]
    assert desk.shows("inbox")["questions"] == []
    assert [line["status"] for line in desk.shows("runs", status="abandoned")["lines"]] == ["abandoned"]
    assert desk.shows("runs", status="waiting")["lines"] == []


def test_a_comparison_marks_what_one_side_has_and_the_other_lacks(rewound: Desk) -> None:
    fork = rewound.shows(f"sessions/{rewound.ref}")["forks"][0]
    ref = rewound.ref
    page = rewound.shows("compare", left=ref, right=ref, leftNode=str(fork["branch"]))
    shared, gate, end = page["steps"]
    assert (shared["shared"], gate["differences"]) == (True, ["artifacts", "decisions"])
    assert (gate["onlyLeft"]["decisions"], gate["onlyRight"]["decisions"]) == ([0], [0])
    assert (end["onlyLeft"]["notes"], end["onlyRight"]["notes"]) == ([0], [0])
    assert (page["left"]["tip"], page["left"]["waiting"]) == (fork["branch"], 0)
    tips = {choice["tip"] for choice in page["left"]["choices"]}
    assert tips == {page["left"]["tip"], page["right"]["tip"]}
    same = rewound.shows("compare", left=ref, right=ref)
    assert all(step["shared"] for step in same["steps"])
