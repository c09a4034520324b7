"""What the documents of session and gated promise beyond the ordinary path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.ledger.tokens.inspect import Disclosed, disclose
from support.authored import write
from support.harness import Bench
from support.session_agents import (
    FLOW,
    HEAD,
    SessionAgent,
    answer_checkpoint,
    gated,
    join_session,
    lose_keyring,
    manifest,
    session,
    session_id_of,
    start_flow,
    write_flow,
)

SKILL = "id: {0}\nversion: 1.0.0\ncapability: {0}\n"
LISTED = {
    "many/workflow.toon": "id: many\nversion: 1.0.0\ntitle: Many\ninitialActivity: only\n"
    "skills[3]: one,two,three\n",
    "many/activities/00-only.toon": "id: only\nversion: 1.0.0\nname: Only\n",
    **{f"many/skills/0{n}-{name}.toon": SKILL.format(name) for n, name in enumerate(["one", "two", "three"])},
}
LENDER = {
    "lender/workflow.yaml": "id: lender\nversion: 1.0.0\ntitle: Lender\ninitialActivity: lent\n",
    "lender/activities/00-lent.toon": "id: lent\nversion: 1.0.0\nname: Lent\n"
    "steps[1]:\n  - id: use\n    name: Use\n    description: Use it.\n    skill: craft\n",
    "lender/skills/00-craft.toon": SKILL.format("craft") + 'resources[2]:\n  - "09"\n  - meta/01\n',
    "lender/resources/09-guide.md": "# The lender's guide\n",
    "borrower/workflow.toon": "id: borrower\nversion: 1.0.0\ntitle: Borrower\ninitialActivity: own\n"
    "activities[1]: lender/00-lent.toon\n",
    "borrower/activities/00-own.toon": "id: own\nversion: 1.0.0\nname: Own\n"
    "steps[1]:\n  - id: try\n    name: Try\n    description: Try it.\n    skill: craft\n"
    "transitions[1]:\n  - to: lent\n    isDefault: true\n",
    "borrower/resources/09-other.md": "# The borrower's own\n",
}


def begun(agent: SessionAgent, workflow: str, *activities: str) -> SessionAgent:
    agent.call("start_session", agent_id="lead", workflow_id=workflow)
    for activity in activities:
        agent.go(activity)
    return agent


def test_g3_all_skills_of_a_list_are_returned(bench: Bench) -> None:
    write(bench.workflows, LISTED)
    agent = begun(gated(bench), "many")
    assert list(agent.tell("get_skills").body["skills"]) == ["one", "two", "three"]


def test_g3_a_borrowed_activity_finds_its_skill_whoever_else_names_it(bench: Bench) -> None:
    """Rule 36."""
    write(bench.workflows, LENDER)
    agent = begun(session(bench), "borrower", "own", "lent")
    answer = agent.tell("get_skill", step_id="use")
    assert "capability: craft" in answer.text


@pytest.mark.parametrize("surface", [session, gated], ids=["session", "gated"])
def test_g3_a_borrowed_skill_names_the_owner_of_its_resources(bench: Bench, surface: Any) -> None:
    """Rule 36: a bare number always means the session's workflow."""
    write(bench.workflows, LENDER)
    agent = begun(surface(bench), "borrower", "own", "lent")
    text = agent.tell("get_skill", step_id="use").text
    assert "lender/09" in text
    assert "meta/01" in text
    name = "resource_id" if surface is session else "resource_index"
    assert "The lender's guide" in agent.tell("get_resource", **{name: "lender/09"}).text
    assert "The borrower's own" in agent.tell("get_resource", **{name: "09"}).text


def test_g6_a_trace_token_of_another_session_is_refused(bench: Bench) -> None:
    write_flow(bench)
    other = begun(session(bench), "flow")
    token = other.go("gather").meta["trace_token"]
    agent = begun(session(bench), "flow")
    body = agent.tell("get_trace", trace_tokens=[token]).body
    assert body["events"] == []
    assert body["token_errors"][0]["code"] == "TOKEN_SCOPE_MISMATCH"


def test_g6_an_answer_by_handle_is_not_logged_as_the_workers(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    events = lead.tell("get_trace").body["events"]
    agents = {event["name"]: event["aid"] for event in events}
    assert (agents["yield_checkpoint"], agents["respond_checkpoint"]) == ("worker", "")


def test_g6_a_repeat_is_traced_as_what_it_is(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    for _ in range(2):
        worker.tell("yield_checkpoint", checkpoint_id="scope")
    for _ in range(2):
        lead.call("respond_checkpoint", session_token=lead.token, option_id="yes")
    for _ in range(2):
        worker.tell("resume_checkpoint")
    events = lead.tell("get_trace").body["events"]
    told = [(event["name"], event["s"], event.get("about", {}).get("repeated", False)) for event in events]
    calls = ("yield_checkpoint", "respond_checkpoint", "resume_checkpoint")
    assert [entry for entry in told if entry[0] in calls] == [
        (name, "ok", repeated) for name in calls for repeated in (False, True)
    ]


def test_g7_more_fields_in_a_manifest_are_no_error(bench: Bench) -> None:
    lead = start_flow(bench)
    answer_checkpoint(join_session(lead), lead, "scope", "yes", variables={"goal": "bread"})
    steps = [{**entry, "duration": 3} for entry in manifest("look", "weigh")]
    done = [{"activity_id": "gather", "outcome": "completed", "by": "me"}]
    answer = lead.go("build", step_manifest=steps, activity_manifest=done)
    assert not answer.error
    unread = "'step_manifest[].duration', 'activity_manifest[].by'"
    assert answer.warnings == [f"Not read, because it is not known: {unread}."]


def test_g7_a_long_manifest_is_told_of_in_few_words(bench: Bench) -> None:
    lead = start_flow(bench)
    answer_checkpoint(join_session(lead), lead, "scope", "yes")
    steps = [{"step_id": f"s{number}", "output": ""} for number in range(8000)]
    answer = lead.go("build", step_manifest=steps)
    assert not answer.error
    assert len(answer.warnings) < 60
    assert len(answer.text) < 6000


def test_g7_a_default_that_is_shut_is_explained(bench: Bench) -> None:
    untyped = HEAD.replace("  - name: parts\n    type: array\n", "  - name: parts\n")
    write_flow(bench, {**FLOW, "flow/workflow.toon": untyped})
    lead = begun(session(bench), "flow", "gather")
    answer_checkpoint(join_session(lead), lead, "scope", "yes")
    answer = lead.go("build", step_manifest=manifest("look", "weigh"), variables={"parts": "none"})
    assert any("'parts == \"none\"' holds: 'finish' is expected" in warning for warning in answer.warnings)
    assert "requires condition ''" not in answer.text


def test_g7_gated_names_the_activity_that_comes_next(bench: Bench) -> None:
    write_flow(bench)
    agent = begun(gated(bench), "flow")
    assert agent.go("gather").body["expected_next"] == "build"
    answer = agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="skip")
    assert answer.body["expected_next"] == "finish"


def test_g7_gated_checks_the_workflow_of_a_token_that_it_adopts(bench: Bench) -> None:
    write_flow(bench)
    token = begun(gated(bench), "flow").token
    lose_keyring(bench)
    answer = gated(bench).call("start_session", workflow_id="child", session_token=token)
    assert answer.code == "WORKFLOW_MISMATCH"
    adopted = gated(bench).call("start_session", workflow_id="flow", session_token=token)
    assert adopted.body["adopted"] is True


def test_g7_a_token_shows_what_is_pending(bench: Bench) -> None:
    write_flow(bench)
    agent = begun(gated(bench), "flow", "gather")
    agent.tell("get_skill", step_id="look")
    shown = disclose(agent.ledger, agent.token)
    assert isinstance(shown, Disclosed)
    assert (shown.pcp, shown.pcpt) == (("scope", "danger"), bench.clock())
    assert shown.skill == "looking"
    assert session_id_of_gated(agent) == shown.sid


def test_g7_the_sequence_of_a_token_moves_with_every_call_that_is_recorded(bench: Bench) -> None:
    agent = start_flow(bench)
    worker = join_session(agent)
    counted = [disclose(agent.ledger, worker.token).seq]
    handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    counted.append(disclose(agent.ledger, worker.token).seq)
    agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    worker.tell("resume_checkpoint")
    counted.append(disclose(agent.ledger, worker.token).seq)
    assert counted == sorted(set(counted))


def test_g7_get_activity_names_every_step_and_says_which_is_optional(bench: Bench) -> None:
    """Every step has its id; what is required is the rule, and what is not is said."""
    step = "  - id: {0}\n    name: {0}\n    description: Do it.\n"
    files = {
        "few/workflow.toon": "id: few\nversion: 1.0.0\ntitle: Few\ninitialActivity: only\n",
        "few/activities/00-only.toon": "id: only\nversion: 1.0.0\nname: Only\nsteps[2]:\n"
        + step.format("must")
        + step.format("may")
        + "    required: false\n",
    }
    write(bench.workflows, files)
    text = begun(session(bench), "few", "only").tell("get_activity").text
    assert "id: must" in text
    assert text.count("required: false") == 1
    assert "required: false" in text.partition("id: may")[2]


def session_id_of_gated(agent: SessionAgent) -> str:
    trace: str = agent.tell("get_trace").body["traceId"]
    return trace


@pytest.mark.parametrize("resource", ["²", "٣", "0²"])
def test_g7_a_number_that_is_none_is_not_found(bench: Bench, resource: str) -> None:
    agent = start_flow(bench)
    assert agent.tell("get_resource", resource_id=resource).code == "NOT_FOUND"
    assert session_id_of(agent)


@pytest.mark.parametrize("surface", [session, gated], ids=["session", "gated"])
def test_g7_meta_is_listed(bench: Bench, surface: Any) -> None:
    agent = surface(bench)
    text = agent.call("list_workflows").text
    assert "meta" in (text if surface is session else [entry["id"] for entry in json.loads(text)])


def test_e10_the_workflow_and_its_primary_skill_are_sent_once(bench: Bench) -> None:
    write_flow(bench)
    agent = begun(session(bench), "flow")
    assert "capability: Lead" in agent.tell("get_skills").text
    short = agent.tell("get_workflow").text
    assert "capability: Lead" not in short
    assert "initialActivity: gather" in short
    assert agent.tell("get_workflow", full=True).text.startswith("id: lead")
    shortest = agent.tell("get_workflow").text
    assert "initialActivity" not in shortest
    assert shortest.count("unchanged: true") == 2


def test_e10_a_resource_is_sent_once(bench: Bench) -> None:
    agent = start_flow(bench)
    first = agent.tell("get_resource", resource_id="00").text
    again = agent.tell("get_resource", resource_id="00").text
    assert "Read me." in first
    assert "Read me." not in again
    assert "unchanged: true" in again


def test_e10_gated_sends_the_workflow_once(bench: Bench) -> None:
    write_flow(bench)
    agent = begun(gated(bench), "flow")
    first = agent.tell("get_workflow").body
    again = agent.tell("get_workflow").body
    assert "rules" in first
    assert (again["unchanged"], "rules" in again) == (True, False)
