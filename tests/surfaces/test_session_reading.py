"""The session surface: what the reading tools return, and that reading changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import toon_format

from support.harness import Bench, gate, workflow
from support.harness import steps as plain_steps
from support.session_agents import (
    FLOW,
    GATHER,
    LEAD,
    SessionAgent,
    answer_checkpoint,
    gated,
    join_session,
    session,
    start_flow,
    walk_to_finish,
    write_flow,
)


def test_the_summary_begins_with_the_primary_skill_and_is_shorter(bench: Bench) -> None:
    agent = start_flow(bench)
    short, full = agent.tell("get_workflow").text, agent.tell("get_workflow", summary=False).text
    assert short.startswith("id: lead\n")
    assert "\n\n---\n\nsession_token: " in short
    for part in ("rules[1]", "variables[4]", "modes[1]", "initialActivity: gather", "build,Build,true"):
        assert part in short
    assert len(short) < len(full)
    assert GATHER.rstrip() in full


def test_a_loop_names_the_loops_and_checkpoints_inside_it(bench: Bench) -> None:
    inner = {"id": "inner", "type": "loop", "title": "Inner", "body": plain_steps("paint")}
    inner["loop"] = {"type": "for", "count": 2, "maxIterations": 2}
    bench.write(
        workflow({**inner, "id": "outer", "body": [*plain_steps("open"), gate("fits", "yes"), inner]})
    )
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    agent.go("main")
    body = toon_format.decode(agent.tell("get_activity").text.partition("\n\n")[2])
    assert isinstance(body, dict)
    outer = next(loop for loop in body["loops"] if loop["id"] == "outer")
    assert outer["steps"][1:] == [
        {"type": "checkpoint", "checkpoint": "fits"},
        {"type": "loop", "loop": "inner"},
    ]


def test_next_activity_returns_id_and_name_and_get_activity_the_whole_activity(bench: Bench) -> None:
    write_flow(bench)
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    answer = agent.go("gather")
    assert answer.body == {"activity_id": "gather", "name": "Gather", "session_token": answer.token}
    assert answer.meta["trace_token"].startswith("trc.v1.")
    assert answer.meta["validation"] == {"status": "valid", "warnings": []}
    text = agent.tell("get_activity").text
    assert text.startswith(f"session_token: {answer.token}\n")
    for part in ("id: gather", "steps[3]", "condition: risky == true", "checkpoints[2]", "transitions[2]"):
        assert part in text


def test_the_token_stands_once_in_the_text_and_once_in_meta(bench: Bench) -> None:
    agent = start_flow(bench)
    calls = [
        agent.tell("get_workflow"),
        agent.tell("get_activity"),
        agent.tell("get_skills"),
        agent.tell("get_skill", step_id="look"),
        agent.tell("get_resource", resource_id="00"),
        agent.tell("get_workflow_status"),
        agent.tell("get_trace"),
        agent.go("nowhere"),
    ]
    for answer in calls:
        assert answer.text.count("ses.v1.") == 1
        assert msgspec.json.encode(answer.meta).count(b"ses.v1.") == 1
        assert b"ses.v1." not in msgspec.json.encode(answer.fields)


def test_what_the_agent_was_sent_is_answered_unchanged(bench: Bench) -> None:
    """Rule 17a."""
    agent = start_flow(bench)
    for tool, more in (("get_activity", {}), ("get_skills", {}), ("get_skill", {"step_id": "look"})):
        whole = agent.tell(tool, **more).text
        again = agent.tell(tool, **more).text
        assert "unchanged: true (full: true sends it again)" in again
        assert len(again) <= 450
        assert agent.tell(tool, full=True, **more).text == whole


@pytest.mark.parametrize("surface", [session, gated])
def test_an_agent_that_joins_again_is_sent_everything_again(
    bench: Bench, surface: Callable[[Bench], SessionAgent]
) -> None:
    """Rule 17a: whoever takes up a session may have lost what it read, and may do so in another process."""
    write_flow(bench)
    here, elsewhere = surface(bench), surface(bench)
    here.call("start_session", agent_id="a", workflow_id="flow")
    whole = here.tell("get_skills").text
    assert "unchanged" in here.tell("get_skills").text
    elsewhere.call("start_session", agent_id="a", workflow_id="flow", session_token=here.token)
    assert here.tell("get_skills").text == whole
    assert "unchanged" in here.tell("get_skills").text


def test_what_one_agent_was_sent_another_is_sent_too(bench: Bench) -> None:
    agent = start_flow(bench)
    whole = agent.tell("get_activity").text
    other = join_session(agent)
    assert "steps[" in other.tell("get_activity").text
    assert "steps[" in whole
    assert "unchanged" in agent.tell("get_activity").text


@pytest.mark.parametrize(
    ("step", "skill"), [("look", "id: looking"), ("make", "id: session-protocol"), (None, "id: lead")]
)
def test_skills_come_from_the_workflow_its_meta_or_a_named_one(
    bench: Bench, step: str | None, skill: str
) -> None:
    """Rule 36: own workflow, then meta; steps in loops are found too."""
    agent = start_flow(bench)
    if step == "make":
        answer_checkpoint(join_session(agent), agent, "scope", "yes", variables={"parts": ["x"]})
        agent.go("build")
    answer = agent.tell("get_skill", step_id=step) if step else agent.tell("get_skill")
    assert skill in answer.text


@pytest.mark.parametrize("surface", [session, gated])
def test_a_supporting_skill_is_read_by_its_name(
    bench: Bench, surface: Callable[[Bench], SessionAgent]
) -> None:
    named = GATHER.replace("  primary: lead\n", "  primary: lead\n  supporting[1]: looking\n")
    write_flow(bench, {**FLOW, **{path: named for path, text in FLOW.items() if text == GATHER}})
    agent = surface(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    assert agent.tell("get_skill", step_id="look").code == "NO_ACTIVITY"
    agent.go("gather")
    text = agent.tell("get_skill", skill_id="looking").text
    assert text == agent.tell("get_skill", step_id="look", full=True).text
    assert "lead" in agent.tell("get_skill").text
    refused = agent.tell("get_skill", step_id="weigh")
    assert refused.code == "NO_SKILL"
    assert "Supporting skills of the activity, by skill_id: looking." in refused.text
    assert agent.tell("get_skill", skill_id="nobody").code == "NOT_FOUND"
    assert agent.tell("get_skill", skill_id="../flow/looking").code == "NOT_FOUND"
    assert agent.tell("get_skill", skill_id="looking", step_id="look").code == "VALIDATION_ERROR"


def test_a_meta_of_the_same_source_comes_before_the_bundled_one(bench: Bench) -> None:
    """Rule 36."""
    own = "id: session-protocol\nversion: 9.0.0\ncapability: Ours\n"
    meta = "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: only\n"
    only = "id: only\nversion: 1.0.0\nname: Only\nsteps: [{id: work, name: Work, description: Work.}]\n"
    files = {
        "meta/workflow.yaml": meta,
        "meta/activities/00-only.yaml": only,
        "meta/skills/00-session-protocol.toon": own,
    }
    write_flow(bench, {**FLOW, **files})
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    answer_checkpoint(agent, agent, "scope", "yes")
    agent.go("build")
    assert agent.tell("get_skill", step_id="make").text.endswith(own)
    assert "id: bootstrap" in agent.tell("get_resource", resource_id="meta/00").text


def test_before_any_activity_the_skill_is_the_primary_one(bench: Bench) -> None:
    write_flow(bench)
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    skill = agent.tell("get_skill").text
    assert skill.startswith(f"session_token: {agent.token}\n")
    assert skill.endswith(f"\n\n{LEAD}")
    assert agent.tell("get_activity").code == "NO_ACTIVITY"


def test_get_skills_is_the_primary_skill_under_its_scope_and_the_token(bench: Bench) -> None:
    agent = start_flow(bench)
    header, skill = agent.tell("get_skills").text.split("\n\n---\n\n")
    assert (header.splitlines()[:2], skill) == (["scope: workflow", f"session_token: {agent.token}"], LEAD)


def test_resources_are_found_bare_and_by_workflow(bench: Bench) -> None:
    agent = start_flow(bench)
    for ref in ("00", "0", "guide"):
        text = agent.tell("get_resource", resource_id=ref, full=True).text
        assert f"resource_id: {ref}\nid: guide\nversion: 3.0.0\n" in text
        assert text.endswith("Read me.") or text.endswith("Read me.\n")
    assert "id: bootstrap" in agent.tell("get_resource", resource_id="meta/00").text
    again = agent.tell("get_resource", resource_id="0").text
    assert again.startswith("resource_id: 0\nid: guide\nversion: 3.0.0\n")
    assert "unchanged: true" in again
    missing = agent.tell("get_resource", resource_id="77")
    assert missing.code == "NOT_FOUND"
    assert "00" in missing.fields["next"]


def test_a_workflow_in_yaml_or_steps_is_read_as_toon(bench: Bench) -> None:
    bench.write(workflow(*plain_steps("one", "two", requireConfirmation=True)))
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    agent.go("main")
    text = agent.tell("get_activity").text
    assert "steps[2]" in text
    assert "id: confirm-one" in text


def test_status_survives_a_restart(bench: Bench) -> None:
    agent = walk_to_finish(start_flow(bench))
    before = agent.tell("get_workflow_status").body
    fresh = session(bench)
    fresh.token = agent.token
    assert fresh.tell("get_workflow_status").body == before
    assert (before["current_activity"], before["session_token"]) == ("finish", agent.token)
    assert before["workflow"] == {"id": "flow", "version": "1.2.0", "title": "Flow"}
    assert before["last_checkpoint"] == {
        "activity_id": "build",
        "checkpoint_id": "fit",
        "option_id": "fits",
        "timestamp": bench.clock.now // 1000,
    }


def test_reading_with_an_old_token_works_and_says_so(bench: Bench) -> None:
    agent = start_flow(bench)
    old = agent.token
    answer_checkpoint(join_session(agent), agent, "scope", "yes", variables={"parts": []})
    agent.go("build")
    answer = agent.call("get_activity", session_token=old)
    assert "id: build" in answer.text
    assert any("moved on" in warning for warning in answer.warnings)


def test_reading_never_makes_a_token_stale(bench: Bench) -> None:
    agent = start_flow(bench)
    token = agent.token
    for tool in ("get_workflow", "get_activity", "get_skill", "get_skills", "get_trace"):
        assert agent.call(tool, session_token=token).token == token


def test_a_bound_gate_that_is_asked_after_its_step_is_named_after_it(bench: Bench) -> None:
    """Rule 23: only its step sets what the question shows."""
    write_flow(
        bench, {**FLOW, "flow/workflow.toon": FLOW["flow/workflow.toon"].replace("    required: true\n", "")}
    )
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    body = toon_format.decode(agent.tell("get_activity").text.partition("\n\n")[2])
    assert isinstance(body, dict)
    assert [step.get("id") or step for step in body["steps"]] == [
        "look",
        "weigh",
        {"type": "checkpoint", "checkpoint": "scope"},
        "warn",
    ]
    assert "checkpoint" not in body["steps"][3]


LOOSE = {
    "loose/workflow.yaml": "{id: loose, version: 1.0.0, title: Loose}",
    "loose/activities/00-open.yaml": "{id: open, version: 1.0.0, name: Open, steps: [{id: do, name: Do}]}",
    "loose/activities/01-close.yaml": "{id: close, version: 1.0.0, name: Close, steps: [{id: do, name: Do}]}",
}


def test_a_read_before_the_first_activity_says_with_which_to_begin(bench: Bench) -> None:
    write_flow(bench)
    write_flow(bench, LOOSE)
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    assert "Call next_activity with activity_id 'gather'." in agent.tell("get_activity").text
    agent.call("start_session", agent_id="a", workflow_id="loose")
    text = agent.tell("get_activity").text
    assert "Call next_activity with the activity that fits the goal: open, close." in text
