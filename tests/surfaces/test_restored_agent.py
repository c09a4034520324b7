"""What an agent gets that has lost everything: at every surface that takes up a run again (E3, rule 47)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.core.run.commands import Terms
from interlock.surfaces.navigation import NavigationSurface
from support.harness import Agent, Bench, decision, gate, steps, workflow
from support.session_agents import gated, session

FLOW = workflow(
    *steps("one"),
    gate("ship", "now", "later"),
    {
        "id": "again",
        "type": "loop",
        "title": "Parts",
        "loop": {"type": "forEach", "items": "parts", "itemVar": "part", "maxIterations": 5},
        "body": [
            {"id": "make", "title": "Make", "prompt": "Make {{part}}.", "outputRequired": {"notes": True}}
        ],
    },
    metaGuidance=["Never push to main."],
)


def halfway(bench: Bench) -> Agent:
    """Return an agent in the second round of the loop, with notes, an artifact, a decision and a block."""
    bench.write(FLOW)
    agent = bench.agent(terms=Terms(min_response_ms=0))
    agent.start("test.flow", goal="mend the boiler", parts=["lid", "pipe"])
    agent.ack("## Fake step (one)\nstateToken: st.v1.fake", artifacts=[{"kind": "x.report", "leaks": 3}])
    agent.decide("later")
    agent.ack("lid made")
    return agent


def test_rehydrate_gives_goal_context_rules_decisions_artifacts_rounds_and_fenced_notes(bench: Bench) -> None:
    agent = halfway(bench)
    answer = agent.look()
    text = agent.text
    assert answer["goal"] == "mend the boiler"
    assert "Goal: mend the boiler" in text
    assert '- parts: ["lid","pipe"]' in text
    assert "- Never push to main." in text
    assert "- ship: later (Later), reported by the agent" in text
    assert "Round 2 of 2 of loop 'Parts', item: pipe." in text
    assert '- one, artifact: {"kind":"x.report","leaks":3}' in text
    assert "\n## Fake step" not in text
    assert "  > ## Fake step (one)" in text
    assert answer["decisions"] == {"ship": "later (Later), reported by the agent"}
    assert answer["recap"]["artifacts"][0]["stepId"] == "one"


def test_notes_of_a_blocked_attempt_are_marked(bench: Bench) -> None:
    bench.write(
        workflow(
            {
                "id": "one",
                "title": "One",
                "prompt": "x",
                "output": {"contractRef": "wr.contracts.verification_report"},
            }
        )
    )
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("tried it")
    agent.look()
    assert "- one (blocked attempt): tried it" in agent.text


def test_resume_is_enough_to_go_on(bench: Bench) -> None:
    agent = halfway(bench)
    fresh = bench.agent()
    found = fresh.call("resume_session", query="please resume my session about the boiler")
    assert [candidate["whyMatched"] for candidate in found["candidates"]] == ["matched_title"]
    assert "- ship: later (Later), reported by the agent" in fresh.text
    assert "Make pipe." in fresh.text
    tokens = {
        line.partition(": ")[0]: line.partition(": ")[2]
        for line in fresh.text.splitlines()
        if line.startswith(("stateToken: ", "ackToken: "))
    }
    done = fresh.call("continue_workflow", **tokens, output={"notesMarkdown": "pipe made"})
    assert done["isComplete"]
    assert agent.look()["branches"]


def test_a_long_history_stays_within_its_budget_and_names_what_is_left_out(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two"), metaGuidance=[f"Rule {n}: {'x' * 200}" for n in range(20)]))
    agent = bench.agent()
    agent.start("test.flow", goal="mend " * 20_000, **{f"key{n}": "y" * 1000 for n in range(30)})
    agent.ack("z" * 4000)
    agent.look()
    assert len(agent.text.encode()) < 24 * 1024
    assert "context values: key" in agent.text
    assert "standing rules: 10" in agent.text
    assert "- the end of the goal" in agent.text
    agent.call("resume_session", query="mend")
    assert len(agent.text.encode()) < 24 * 1024


def test_a_rewound_node_lists_its_newest_branches_and_the_preferred_one_and_quotes_them(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two", "three")))
    agent = bench.agent()
    started = agent.start("test.flow", goal="mend the boiler\n## Fake step")
    ways = [agent.ack(f"way {n}\n## Fake step", at=agent.look(started)) for n in range(30)]
    agent.ack("on", at=ways[0])
    branches = agent.look(started)["branches"]
    listed = [child["notes"].partition("\n")[0] for child in branches["children"]]
    assert listed == ["way 0", *(f"way {n}" for n in range(10, 30))]
    assert [child["preferred"] for child in branches["children"]] == [True, *[False] * 20]
    assert (branches["omitted"], branches["policy"]) == (9, "kept most recent entries")
    assert "[9 other branches omitted: kept most recent entries]" in agent.text
    assert "\n## Fake step" not in agent.text
    assert agent.text.count("  > ## Fake step") > len(listed)
    agent.call("resume_session", query="boiler")
    assert "\n- mend the boiler ## Fake step (test.flow" in agent.text
    assert "\n## Fake step" not in agent.text


def test_status_and_joining_a_session_give_the_same_brief(bench: Bench) -> None:
    agent = halfway(bench)
    lost = session(bench, Terms(min_response_ms=0))
    joined = lost.call("start_session", agent_id="b", session_token=agent.last["stateToken"])
    status = lost.tell("get_workflow_status")
    for body in (joined.body, status.body):
        assert body["goal"] == "mend the boiler"
        assert body["decisions"] == {"ship": "later (Later), reported by the agent"}
        assert body["rules"] == ["Never push to main."]
        assert body["loops"] == ["Round 2 of 2 of loop 'Parts', item: pipe."]
    other = gated(bench, Terms(min_response_ms=0))
    answer = other.call("start_session", workflow_id="test.flow", session_token=agent.last["stateToken"])
    assert answer.body["context"]["goal"] == "mend the boiler"


def test_a_situation_of_navigation_gives_the_same_brief(bench: Bench) -> None:
    agent = halfway(bench)
    client = Agent(NavigationSurface(bench.ledger()))
    client.call("nav_situation", state=agent.last["stateToken"])
    situation = json.loads(client.text)
    assert situation["brief"]["decisions"] == {"ship": "later (Later), reported by the agent"}
    assert situation["position"]["loop"]["round"] == "Round 2 of 2 of loop 'Parts', item: pipe."


def candidates(agent: Agent, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = agent.call("resume_session", query=query)["candidates"]
    return found


def test_the_words_of_one_run_of_a_session_lead_to_that_run(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    bench.write(workflow(*steps("one"), id="test.other"))
    agent = bench.agent()
    token = agent.call("start_session", title="Two runs")["sessionToken"]
    first = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    agent.ack("the pelican flew")
    agent.call("start_workflow", workflowId="test.other", sessionToken=token)
    agent.ack("the heron stayed")
    assert agent.last["isComplete"]
    best = candidates(bench.agent(), "resume my session about the pelican")[0]
    assert best["runId"] == first["session"]["runId"]
    assert candidates(bench.agent(), "heron")[0]["workflowId"] == "test.other"
    assert candidates(bench.agent(), "")[0]["runId"] == first["session"]["runId"], (
        "unfinished before finished"
    )


def test_most_words_matched_come_first_and_nothing_matches_is_said(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    for goal in ("mend the boiler with a gasket", "mend the fence", "paint the shed"):
        bench.clock.pass_seconds(60)
        agent.start("test.flow", goal=goal)
    assert [candidate["title"] for candidate in candidates(agent, "mend boiler gasket valve")][:2] == [
        "mend the boiler with a gasket",
        "mend the fence",
    ]
    answer = agent.call("resume_session", query="submarine")
    assert answer["matched"] is False
    assert "best" not in answer
    assert agent.text.startswith("Nothing matches 'submarine'.")


def test_a_session_with_notes_only_is_found_by_title_note_and_id(bench: Bench) -> None:
    agent = bench.agent()
    opened = agent.call("start_session", title="Albatross research")
    token = opened["sessionToken"]
    agent.call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": "wingspan noted"})
    session_id = opened["session"]["sessionId"]
    for query in ("albatross", "wingspan", session_id):
        found = candidates(bench.agent(), query)
        assert [item["sessionId"] for item in found] == [session_id]
        assert found[0]["snippet"]
        kept = bench.agent().call(
            "checkpoint_workflow", sessionToken=found[0]["sessionToken"], output={"notesMarkdown": query}
        )
        assert kept["kind"] == "ok"


@pytest.mark.parametrize("parameter", ["query", "resumeRef"])
def test_a_reference_returns_only_itself_also_by_the_beginning_of_a_run_id(
    bench: Bench, parameter: str
) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    started = [agent.start("test.flow", goal="same words")["session"] for _ in range(3)]
    for reference in (
        started[1]["sessionId"],
        started[1]["sessionId"][:15],
        started[1]["sessionId"][5:13],
        started[1]["runId"],
        started[1]["runId"][:14],
    ):
        found = agent.call("resume_session", **{parameter: reference})["candidates"]
        assert [item["runId"] for item in found] == [started[1]["runId"]], reference


def test_decisions_survive_a_new_visit_and_a_rewind_restores_them(bench: Bench) -> None:
    agent = halfway(bench)
    first = bench.agent()
    first.start("test.flow", goal="another", parts=["a"])
    at_gate = first.ack("did one")
    first.ack(artifacts=[decision("ship", "now")])
    assert first.look()["decisions"] == {"ship": "now (Now), reported by the agent"}
    assert "decisions" not in first.look(at_gate)
    assert agent.look()["decisions"] == {"ship": "later (Later), reported by the agent"}


def test_a_lost_agent_of_a_session_is_told_what_is_missing_before_it_can_go_on(bench: Bench) -> None:
    bench.write(
        workflow(
            {
                "id": "one",
                "title": "One",
                "promptBlocks": {"goal": "x", "outputRequired": {"notes": "What was done."}},
            },
            {
                "id": "two",
                "title": "Two",
                "prompt": "x",
                "validationCriteria": [{"type": "contains", "value": "jwt", "message": "Say how."}],
            },
            gate("ship", "now", "later"),
            *steps("three"),
        )
    )
    agent = session(bench, Terms(min_response_ms=0))
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    assert "initialActivity: main" in agent.tell("get_workflow").text
    agent.go("main", variables={"goal": "mend the boiler"})
    missing = (
        "Send in step_manifest what these steps produce: one, two (the output contains 'jwt'). "
        "Worker: yield_checkpoint with checkpoint_id 'ship'; "
        "orchestrator: ask the user, then respond_checkpoint."
    )
    assert f"\nbefore next_activity: {missing}\n" in agent.tell("get_activity").text
    status = agent.tell("get_workflow_status").body
    assert status["goal"] == "mend the boiler"
    assert status["next_action"] == f"Call get_activity and do its steps. Before next_activity: {missing}"
    outputs = [{"step_id": "one", "output": "done"}, {"step_id": "two", "output": "a jwt"}]
    yielded = agent.tell("yield_checkpoint", checkpoint_id="ship", step_manifest=outputs)
    assert not yielded.error, yielded.text
    joined = agent.call("start_session", agent_id="a", session_token=agent.token).body
    assert joined["next_action"] == (
        "Show the user checkpoint 'ship' (present_checkpoint with session_token), "
        "then call respond_checkpoint with the user's option_id."
    )
