"""What the documents of session and gated promise beyond the ordinary path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.core.run.commands import Terms
from interlock.ledger.tokens.inspect import Disclosed, disclose
from support.authored import write
from support.harness import Bench
from support.session_agents import (
    BUILD,
    FLOW,
    GATHER,
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


@pytest.mark.parametrize(
    "skills", ["skills[3]: one,two,three\n", "skills:\n  primary: one\n  supporting[2]: two,three\n"]
)
def test_g3_all_skills_of_a_workflow_are_returned(bench: Bench, skills: str) -> None:
    head = LISTED["many/workflow.toon"].replace("skills[3]: one,two,three\n", skills)
    write(bench.workflows, {**LISTED, "many/workflow.toon": head})
    agent = begun(gated(bench), "many")
    assert list(agent.tell("get_skills").body["skills"]) == ["one", "two", "three"]
    whole = agent.tell("get_workflow", summary=False).body
    assert whole["skills"] == {"primary": "one", "supporting": ["two", "three"]}
    assert "id: one" in begun(session(bench), "many").tell("get_skills").text


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


def test_g7_gated_checks_the_workflow_of_a_token_and_adopts_none(bench: Bench) -> None:
    write_flow(bench)
    token = begun(gated(bench), "flow").token
    answer = gated(bench).call("start_session", workflow_id="child", session_token=token)
    assert answer.code == "WORKFLOW_MISMATCH"
    lose_keyring(bench)
    answer = gated(bench).call("start_session", workflow_id="flow", session_token=token)
    assert answer.code == "TOKEN_BAD_SIGNATURE"


def test_g7_a_token_shows_what_is_pending(bench: Bench) -> None:
    write_flow(bench)
    agent = begun(gated(bench), "flow", "gather")
    agent.tell("get_skill", step_id="look")
    shown = disclose(agent.ledger, agent.token)
    assert isinstance(shown, Disclosed)
    assert (shown.pcp, shown.pcpt) == (("scope", "danger"), bench.clock())
    assert (shown.wf, shown.act, shown.skill, shown.v) == ("flow", "gather", "looking", "1.2.0")
    assert (shown.sid, shown.aid, shown.ts) == (session_id_of_gated(agent), "lead", bench.clock())
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
    assert disclose(agent.ledger, agent.token).pcp == ("danger",)


@pytest.mark.parametrize("surface", [session, gated], ids=["session", "gated"])
def test_an_inherited_token_leads_to_the_same_fields_under_another_agent(bench: Bench, surface: Any) -> None:
    write_flow(bench)
    agent = begun(surface(bench), "flow")
    agent.go("gather", transition_condition="default")
    agent.tell("get_skill", step_id="look")
    if surface is session:
        agent.tell("yield_checkpoint", checkpoint_id="scope")
    other = surface(bench)
    other.call("start_session", agent_id="worker", workflow_id="flow", session_token=agent.token)
    first, second = (disclose(agent.ledger, token) for token in (agent.token, other.token))
    assert (first.cond, first.skill) == ("default", "looking")
    assert (first.bcp, first.pcp) == (("scope", ()) if surface is session else ("", ("scope", "danger")))
    assert (first.aid, second) == ("lead", replace(first, aid="worker"))


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


@pytest.mark.parametrize("surface", [session, gated], ids=["session", "gated"])
def test_the_condition_of_a_transition_is_recorded(bench: Bench, surface: Any) -> None:
    write_flow(bench)
    agent = begun(surface(bench, Terms(enforcement="advisory", min_response_ms=0)), "flow")
    agent.go("gather", transition_condition="default")
    assert disclose(agent.ledger, agent.token).cond == "default"
    agent.go("finish", transition_condition="the parts are none", variables={"parts": "none"})
    assert disclose(agent.ledger, agent.token).cond == "the parts are none"
    calls = [event for event in agent.tell("get_trace").body["events"] if event["name"] == "next_activity"]
    assert [call["about"]["condition"] for call in calls] == ["default", "the parts are none"]


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


def test_a_checkpoint_of_another_activity_is_not_yielded(bench: Bench) -> None:
    agent = start_flow(bench)
    for checkpoint in ("fit", "nowhere"):
        refused = agent.tell("yield_checkpoint", checkpoint_id=checkpoint)
        assert (refused.code, refused.fields["checkpoints"]) == ("CHECKPOINT_NOT_FOUND", ["scope", "danger"])
    assert agent.tell("get_workflow_status").body["status"] == "active"


def test_without_a_step_the_skill_is_that_of_the_activity(bench: Bench) -> None:
    own = BUILD.replace("steps[1]:", "skills:\n  primary: looking\nsteps[1]:", 1)
    write_flow(bench, {**FLOW, "flow/activities/01-build.toon": own})
    agent = begun(session(bench), "flow")
    assert "id: lead" in agent.tell("get_skill").text
    agent.go("gather")
    answer_checkpoint(agent, agent, "scope", "yes", variables={"parts": []})
    agent.go("build")
    assert "id: looking" in agent.tell("get_skill").text


SKIPPING = GATHER.replace(
    "          transitionTo: gather\n",
    "          skipActivities[1]: build\n          setVariable:\n            verdict: skipped\n",
)


@pytest.mark.parametrize("surface", [session, gated], ids=["session", "gated"])
def test_an_effect_sets_variables_and_skips_activities(bench: Bench, surface: Any) -> None:
    write_flow(bench, {**FLOW, "flow/activities/00-gather.toon": SKIPPING})
    agent = begun(surface(bench), "flow", "gather")
    if surface is session:
        answer = answer_checkpoint(agent, agent, "scope", "redo")
    else:
        answer = agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="redo")
    assert answer.body["effect"] == {"setVariable": {"verdict": "skipped"}, "skipActivities": ["build"]}
    joined = agent.call("start_session", agent_id="a", workflow_id="flow", session_token=agent.token).body
    assert joined["context"]["verdict"] == "skipped"
    assert agent.go("finish", step_manifest=manifest("look", "weigh")).warnings == []


def test_presenting_shows_effects_and_the_time_after_which_the_default_is_taken(bench: Bench) -> None:
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes", variables={"parts": ["crust"]})
    agent.go("build")
    agent.tell("yield_checkpoint", checkpoint_id="fit")
    shown = agent.tell("present_checkpoint").text
    for part in (
        "message: Does «crust» fit?",
        "blocking: false",
        "defaultOption: fits",
        "autoAdvanceMs: 30000",
    ):
        assert part in shown
    assert "label: Bad" in shown or "bad,Bad" in shown


@pytest.mark.parametrize("surface", [session, gated], ids=["session", "gated"])
def test_the_trace_names_its_source_and_the_time_and_warnings_of_each_call(
    bench: Bench, surface: Any
) -> None:
    write_flow(bench)
    agent = begun(surface(bench), "flow", "gather")
    agent.tell("get_skill", step_id="look")
    refused = agent.go("nowhere")
    body = agent.tell("get_trace").body
    assert (body["source"], body["event_count"]) == ("log", len(body["events"]))
    names = ["start_session", "next_activity", "get_skill", "next_activity"]
    assert [event["name"] for event in body["events"]] == names
    for event in body["events"]:
        assert {"ts", "ms", "s", "wf", "act", "aid"} <= set(event)
        assert event["ts"] == bench.clock() // 1000
        assert event["ms"] >= 0
    assert body["events"][-1]["err"] == refused.fields["message"]


def test_a_token_leads_to_every_field_of_its_document(bench: Bench) -> None:
    lead = start_flow(bench)
    lead.tell("get_skill", step_id="look")
    worker = join_session(lead)
    worker.tell("yield_checkpoint", checkpoint_id="scope")
    shown = disclose(lead.ledger, worker.token)
    assert (shown.wf, shown.act, shown.skill, shown.v) == ("flow", "gather", "looking", "1.2.0")
    assert (shown.sid, shown.aid, shown.bcp, shown.ts) == (
        session_id_of(lead),
        "worker",
        "scope",
        bench.clock(),
    )
    lead.tell("respond_checkpoint", option_id="skip")
    worker.tell("resume_checkpoint")
    lead.go("finish", transition_condition="skipped")
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=lead.token)
    parents = disclose(child.ledger, child.token)
    assert disclose(lead.ledger, lead.token).cond == "skipped"
    assert (parents.psid, parents.pwf, parents.pact, parents.pv) == (shown.sid, "flow", "finish", "1.2.0")


def test_a_token_of_a_child_names_the_activity_that_its_parent_was_in(bench: Bench) -> None:
    lead = start_flow(bench)
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=lead.token)
    answer_checkpoint(lead, lead, "scope", "yes", variables={"parts": []})
    lead.go("build")
    assert disclose(child.ledger, child.token).pact == "gather"
    assert child.tell("get_workflow_status").body["parent"]["activity"] == "gather"
