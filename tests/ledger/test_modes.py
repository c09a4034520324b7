"""Modes, policies and decisions: the whole table of rule 27, and what a mode change touches (rule 29)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields

from interlock.core.run.commands import Terms
from interlock.core.run.events import GapRecorded, GateResolved
from interlock.core.run.preferences import PRESETS, DecisionPolicy, Mode
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.decisions.modes import session_modes, set_global_mode, set_session_mode
from interlock.ledger.log.health import examine
from interlock.ledger.log.rebuild import differences, rebuild
from interlock.ledger.runs.position import Position
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent, Bench, decision, every_surface, gate, steps, workflow
from support.log import logged_events

ASKS_THE_USER = {
    "id": "needs-user",
    "title": "Needs the user",
    "prompt": "x",
    "userInput": [{"reason": "needs_user_artifact", "key": "designDoc", "question": "Where is the design?"}],
}
CONFIRMED = {"id": "confirmed", "title": "Confirmed", "prompt": "x", "requireConfirmation": True}


def agent_at(bench: Bench, item: dict[str, Any], mode: Mode, policy: DecisionPolicy = "auto") -> Agent:
    bench.write(workflow(item, *steps("last")))
    agent = bench.agent(mode, Terms(decisions=policy))
    agent.start("test.flow")
    return agent


def gaps(agent: Agent) -> list[tuple[str, str]]:
    session = agent.last["session"]["sessionId"]
    events = [row.event for row in logged_events(agent.ledger.store, session, "gap_recorded")]
    return [(event.severity, event.detail) for event in events if isinstance(event, GapRecorded)]


@pytest.mark.parametrize("policy", ["auto", "agent"])
def test_guided_takes_a_bare_ack_as_the_report_of_a_confirmation(
    bench: Bench, policy: DecisionPolicy
) -> None:
    agent = agent_at(bench, CONFIRMED, "guided", policy)
    assert agent.last["nextIntent"] == "await_user_confirmation"
    assert agent.ack("done")["pending"]["stepId"] == "last"
    assert gaps(agent) == []


def test_guided_under_policy_user_waits_for_the_users_own_confirmation(bench: Bench) -> None:
    agent = agent_at(bench, CONFIRMED, "guided", "user")
    assert agent.ack()["pending"]["stepId"] == "confirm-confirmed"
    blocked = agent.ack(artifacts=[decision("confirm-confirmed", "proceed")])
    assert blocked["kind"] == "blocked"
    assert "inbox" in blocked["blockers"][0]["suggestedFix"]
    assert "example" not in blocked["blockers"][0]


@pytest.mark.parametrize("mode", ["stop", "never-stop"])
@pytest.mark.parametrize("policy", ["auto", "user", "agent"])
def test_full_auto_assumes_a_confirmation_and_records_it(
    bench: Bench, mode: Mode, policy: DecisionPolicy
) -> None:
    agent = agent_at(bench, CONFIRMED, mode, policy)
    assert agent.last["nextIntent"] == "perform_pending_then_continue"
    assert agent.ack("done")["pending"]["stepId"] == "last"
    assert gaps(agent) == [("info", "needs_user_approval")]
    assert agent.ack("done")["status"] == "complete"


@pytest.mark.parametrize("mode", ["guided", "stop"])
@pytest.mark.parametrize("policy", ["auto", "agent"])
def test_a_checkpoint_takes_the_agents_report(bench: Bench, mode: Mode, policy: DecisionPolicy) -> None:
    agent = agent_at(bench, gate("which", "left", "right"), mode, policy)
    assert agent.ack()["blockers"][0]["code"] == "USER_ONLY_DEPENDENCY"
    assert agent.decide("up")["blockers"][0]["code"] == "INVALID_REQUIRED_OUTPUT"
    assert agent.decide("left")["pending"]["stepId"] == "last"


@pytest.mark.parametrize("mode", ["guided", "stop"])
def test_a_checkpoint_under_policy_user_refuses_the_agents_report(bench: Bench, mode: Mode) -> None:
    agent = agent_at(bench, gate("which", "left", "right"), mode, "user")
    assert agent.decide("left")["kind"] == "blocked"
    assert agent.decide("left")["pending"]["stepId"] == "which"


@pytest.mark.parametrize("policy", ["auto", "user", "agent"])
@pytest.mark.parametrize(("report", "taken"), [(None, "right"), ("left", "left"), ("nonsense", "right")])
def test_never_stop_passes_a_checkpoint_with_a_critical_gap(
    bench: Bench, policy: DecisionPolicy, report: str | None, taken: str
) -> None:
    options = [
        {"id": name, "label": name, "effect": {"setVariable": {"way": name}}} for name in ("left", "right")
    ]
    agent = agent_at(bench, gate("which", *options, defaultOption="right"), "never-stop", policy)
    answer = agent.decide(report) if report else agent.ack()
    assert answer["kind"] == "ok"
    assert gaps(agent) == [("critical", "needs_user_choice")]
    assert variables(agent)["way"] == taken
    assert agent.ack("done")["status"] == "complete_with_gaps"


def test_never_stop_without_a_default_takes_the_first_option(bench: Bench) -> None:
    options = [
        {"id": name, "label": name, "effect": {"setVariable": {"way": name}}} for name in ("left", "right")
    ]
    agent = agent_at(bench, gate("which", *options), "never-stop")
    agent.ack()
    assert variables(agent)["way"] == "left"


@pytest.mark.parametrize("mode", ["guided", "stop"])
def test_a_user_only_dependency_blocks_until_its_context_key_is_sent(bench: Bench, mode: Mode) -> None:
    agent = agent_at(bench, ASKS_THE_USER, mode)
    blocked = agent.ack()["blockers"][0]
    assert blocked["code"] == "USER_ONLY_DEPENDENCY"
    assert blocked["pointer"] == {"kind": "context_key", "key": "designDoc"}
    assert agent.ack(designDoc="docs/design.md")["pending"]["stepId"] == "last"


def test_a_user_only_dependency_under_policy_user_does_not_believe_the_agent(bench: Bench) -> None:
    agent = agent_at(bench, ASKS_THE_USER, "guided", "user")
    assert agent.ack(designDoc="docs/design.md")["kind"] == "blocked"


def test_a_user_only_dependency_is_a_critical_gap_in_never_stop(bench: Bench) -> None:
    agent = agent_at(bench, ASKS_THE_USER, "never-stop")
    assert agent.ack("done")["pending"]["stepId"] == "last"
    assert [warning["code"] for warning in agent.last["warnings"]] == ["GAP"]
    assert "Where is the design?" in agent.last["warnings"][0]["message"]
    assert gaps(agent) == [("critical", "needs_user_artifact")]


@pytest.mark.parametrize(("mark", "kind"), [(None, "ok"), ("irreversible_action", "blocked")])
def test_only_a_non_assumable_choice_stops_full_auto(bench: Bench, mark: str | None, kind: str) -> None:
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"}
    item = {
        "id": "choose",
        "title": "Choose",
        "prompt": "x",
        "userInput": [need | ({"nonAssumable": mark} if mark else {})],
    }
    assert agent_at(bench, item, "stop").ack()["kind"] == kind


def test_variables_of_a_blocked_attempt_are_kept(bench: Bench) -> None:
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    agent = bench.agent()
    agent.start("test.flow")
    assert agent.ack(colour="red")["kind"] == "blocked"
    agent.decide("left")
    assert variables(agent)["colour"] == "red"


def test_rule_10_variables_of_a_blocked_attempt_count_whichever_token_comes_next(bench: Bench) -> None:
    """The agent forgets the blocked answer, looks again, and goes on with the fresh token."""
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    agent = bench.agent()
    started = agent.start("test.flow")
    blocked = agent.ack(colour="red", shape="round")
    assert blocked["kind"] == "blocked"
    fresh = agent.look(started)
    assert fresh["ackToken"] not in (started["ackToken"], blocked["ackToken"])
    assert agent.decide("left", at=fresh, shape="square")["pending"]["stepId"] == "last"
    assert variables(agent) == {"colour": "red", "shape": "square"}


def test_rule_10_each_blocked_attempt_adds_to_what_is_kept(bench: Bench) -> None:
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    agent = bench.agent()
    started = agent.start("test.flow")
    agent.ack(colour="red", shape="round")
    agent.look(started)
    agent.ack(shape="square")
    agent.look(started)
    agent.ack(colour=None)
    agent.ledger.store.close()
    agent = bench.agent()
    agent.look(started)
    agent.decide("left")
    assert variables(agent) == {"shape": "square", "colour": None}


def test_the_users_recorded_decision_lets_the_agent_on(bench: Bench) -> None:
    agent = agent_at(bench, gate("which", "left", "right"), "guided", "user")
    agent.ack()
    (question,) = inbox(agent.ledger)
    assert answer_question(agent.ledger, question, "right")
    assert agent.ack("done")["pending"]["stepId"] == "last"
    assert channels(agent) == ["cli"]


def channels(agent: Agent) -> list[str]:
    session = agent.last["session"]["sessionId"]
    events = [row.event for row in logged_events(agent.ledger.store, session, "gate_resolved")]
    return [event.channel for event in events if isinstance(event, GateResolved)]


def variables(agent: Agent) -> dict[str, Any]:
    position = agent.ledger.position(agent.last["session"]["sessionId"])
    assert isinstance(position, Position)
    return dict(position.state.variables)


def test_a_mode_beyond_the_recommendation_is_a_warning_not_a_block(bench: Bench) -> None:
    advice = {"recommendedAutonomy": "guided", "recommendedRiskPolicy": "conservative"}
    bench.write(workflow(*steps("first"), recommendedPreferences=advice))
    answer = bench.agent("never-stop").start("test.flow")
    (warning,) = answer["warnings"]
    assert warning["code"] == "MODE_EXCEEDS_RECOMMENDATION"
    assert warning["message"].endswith("recommended: guided, conservative.")
    assert answer["preferences"]["autonomy"] == "full_auto_never_stop"


def test_no_tool_changes_the_mode(bench: Bench) -> None:
    """Rule 29. Where a tool has a parameter `mode`, it says how much of a workflow is returned."""
    reading = {"inspect_workflow", "workflow_get"}
    preferences = {"mode", "autonomy", "riskPolicy", "risk_policy", "preferences", "decisions"}
    for surface in every_surface(bench):
        for tool in surface.tools.values():
            accepted = {field.encode_name: field.type for field in fields(tool.params)}
            offered = preferences & {*accepted, *tool.argument_schema()["properties"]}
            assert offered == ({"mode"} if tool.name in reading else set()), tool.name
            if offered:
                assert "Literal['metadata', 'preview']" in str(accepted["mode"])


def test_full_auto_says_so_in_the_prompt(bench: Bench) -> None:
    bench.write(workflow(*steps("first")))
    for mode in ("stop", "never-stop"):
        prompt = bench.agent(mode).start("test.flow")["pending"]["prompt"]
        assert (
            "resolve questions from context and by stated assumptions; write both into your notes" in prompt
        )
    assert "Full-auto" not in bench.agent("guided").start("test.flow")["pending"]["prompt"]


def test_a_blocked_gate_asks_in_the_words_that_the_user_reads(bench: Bench) -> None:
    asked = {**gate("which", "left", "right"), "message": "Which way for {{thing}}?"}
    bench.write(workflow(asked))
    agent = bench.agent()
    agent.start("test.flow", thing="the parser")
    assert "Which way for «the parser»?" in agent.ack()["blockers"][0]["message"]


def test_rule_29_a_session_keeps_the_mode_of_its_start_for_its_first_run(bench: Bench) -> None:
    bench.write(workflow(*steps("one"), id="test.later"))
    agent = bench.agent()
    token = agent.call("start_session", title="Later")["sessionToken"]
    set_global_mode(agent.ledger, PRESETS["never-stop"])
    agent.call("start_workflow", workflowId="test.later", sessionToken=token)
    assert "Full-auto" not in agent.text


def test_rule_29_a_session_without_a_run_can_be_given_a_mode(bench: Bench) -> None:
    bench.write(workflow(*steps("one"), id="test.later"))
    agent = bench.agent()
    opened = agent.call("start_session", title="Later")
    session_id, token = opened["session"]["sessionId"], opened["sessionToken"]
    assert set_session_mode(agent.ledger, session_id, PRESETS["stop"], "cli") == 0
    assert modes_of(agent, session_id) == [("stop", None)]
    agent.call("start_workflow", workflowId="test.later", sessionToken=token)
    assert "Full-auto" in agent.text
    assert set_session_mode(agent.ledger, session_id, PRESETS["guided"], "cli") == 1
    agent.call("start_workflow", workflowId="test.later", sessionToken=token)
    assert "Full-auto" not in agent.text
    assert modes_of(agent, session_id) == [("guided", 0), ("guided", 1)]


def modes_of(agent: Agent, session_id: str) -> list[tuple[Mode, int | None]]:
    with agent.ledger.store.reading() as reader:
        session = reader.session(session_id)
        assert session is not None
        assert not list(differences(reader, rebuild(session_id, reader.commits(session_id))))
    assert examine(agent.ledger.store, session).health == "healthy"
    return [(line.mode, line.node) for line in session_modes(agent.ledger, session)]


def test_rule_29_a_rewind_does_not_undo_what_the_user_tightened(bench: Bench) -> None:
    bench.write(workflow(*steps("one"), gate("which", "left", "right"), *steps("last")))
    agent = bench.agent("never-stop")
    first = agent.start("test.flow")
    at_gate = agent.ack("done")
    agent.ack("assumed")
    session_id = agent.last["session"]["sessionId"]
    set_session_mode(agent.ledger, session_id, PRESETS["guided"], "cli")
    later = Agent(ExecutionSurface(bench.ledger()))
    for node in (first, at_gate):
        assert later.look(node)["preferences"]["autonomy"] == "guided"
    later.look(at_gate)
    assert later.ack("again")["kind"] == "blocked"
    changes = [row.event for row in logged_events(agent.ledger.store, session_id, "preferences_changed")]
    assert {(change.channel, change.source) for change in changes} == {("cli", "user")}
    assert modes_of(agent, session_id)


def test_rule_29_what_the_user_loosens_reaches_no_earlier_node(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two", "three")))
    agent = bench.agent()
    first = agent.start("test.flow")
    agent.ack("done")
    tip = agent.ack("done")
    assert set_session_mode(agent.ledger, first["session"]["sessionId"], PRESETS["never-stop"], "cli") == 1
    assert agent.look(first)["preferences"]["autonomy"] == "guided"
    assert agent.look(tip)["preferences"]["autonomy"] == "full_auto_never_stop"
    assert agent.ack("done")["preferences"]["autonomy"] == "full_auto_never_stop", "and its descendants"


def test_rule_29_the_mode_of_a_process_tightens_its_own_calls_and_no_others(bench: Bench) -> None:
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    loose = bench.agent("never-stop")
    started = loose.start("test.flow")
    careful = bench.agent("guided")
    assert careful.look(started)["preferences"]["autonomy"] == "guided"
    assert careful.ack("without a decision")["kind"] == "blocked"
    careful.look(started)
    assert careful.decide("left")["preferences"]["autonomy"] == "guided"
    assert loose.look(careful.last)["preferences"]["autonomy"] == "full_auto_never_stop"
    assert modes_of(loose, started["session"]["sessionId"]) == [("never-stop", 1)]


ASKING = {
    "userInput": [
        {"reason": "needs_user_artifact", "key": "design", "question": "Where is the design?"},
        {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"},
    ]
}


def test_a_step_says_what_the_mode_asks_the_user_and_what_it_assumes(bench: Bench) -> None:
    """Rule 28: outside guided a choice is assumed; nothing else is, unless the mode never stops."""
    bench.write(workflow(*steps("draw", **ASKING), gate("ship", "yes", message="Ship {{colour}}?")))
    guided, stop, never = (bench.agent(mode).start("test.flow")["pending"]["prompt"] for mode in PRESETS)
    assert (
        "Only the user can answer this, before the work:\n- Where is the design?\n- Which colour?" in guided
    )
    assert "Only the user can answer this, before the work:\n- Where is the design?\n\n" in stop
    assert "state what you assume:\n- Which colour?" in stop
    assert "Full-auto: resolve all other questions" in stop
    assert "context.design, the user's answer" in stop
    assert "context.colour, what you assume" in stop
    assert "state what you assume:\n- Where is the design?\n- Which colour?" in never
    assert "the user's answer" not in never
    assert "Full-auto: resolve questions" in never
    assert "Then the user is asked 'Ship'" in stop
    assert "Then comes the question 'Ship', which shows `colour`." in never
