"""Once means once: a call sent again after its answer was lost changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Era
from interlock.surfaces.execution import ExecutionSurface
from support.authored import write
from support.harness import Agent, Bench, rotate, steps, workflow
from support.log import logged_events
from support.navigation_client import FILES, NavigationClient, opened
from support.server import Server
from support.session_agents import (
    FLOW,
    SessionAgent,
    answer_checkpoint,
    gated,
    join_session,
    manifest,
    session,
    session_id_of,
    start_flow,
    write_flow,
)

Payload = dict[str, Any]
ERAS = pytest.mark.parametrize("era", get_args(Era))

ROUNDS = {
    "rounds/workflow.yaml": """
id: rounds
version: 1.0.0
title: Rounds
initialActivity: work
variables:
  - { name: parts, type: array }
""",
    "rounds/activities/00-work.yaml": """
id: work
version: 1.0.0
name: Work
loops:
  - id: each
    name: Each part
    type: forEach
    variable: part
    over: parts
    steps:
      - { id: plan, name: Plan, description: Plan it., checkpoint: g1 }
      - { id: make, name: Make, description: Make it., checkpoint: g2 }
checkpoints:
  - id: g1
    name: First
    message: "Plan {{part}}?"
    options: [{ id: "yes", label: "Yes" }, { id: "no", label: "No" }]
  - id: g2
    name: Second
    message: "Make {{part}}?"
    options: [{ id: "yes", label: "Yes" }, { id: "no", label: "No" }]
""",
}


def outputs(agent: SessionAgent) -> list[tuple[str, str]]:
    """The outputs that the log of the agent's session holds."""
    rows = logged_events(agent.ledger.store, session_id_of(agent), "node_output_appended")
    return [(row.event.step, row.event.notes) for row in rows]  # type: ignore[attr-defined]


def begin_rounds(
    bench: Bench, *parts: str, files: Mapping[str, str] = ROUNDS
) -> tuple[SessionAgent, SessionAgent]:
    write(bench.workflows, files)
    lead = session(bench)
    lead.call("start_session", agent_id="lead", workflow_id="rounds")
    lead.go("work", variables={"parts": list(parts)})
    return lead, join_session(lead)


# D1: navigation


@pytest.mark.parametrize("between", ["refused", "child", "situation", "nothing"])
def test_d1_the_same_action_again_is_a_replay_whatever_came_between(bench: Bench, between: str) -> None:
    client = opened(bench)
    state = client.start(size="small")["state"]
    refused: Payload = {"state": state, "action": "complete_step", "step_id": "nowhere"}
    good: Payload = {**refused, "step_id": "analyze", "output": {"notesMarkdown": "Looked."}}
    client.call("nav_action", **refused, variables={"a": 1})
    first = client.call("nav_action", **good)
    match between:
        case "refused":
            client.call("nav_action", **refused, variables={"a": 2})
        case "child":
            client.call("nav_start", workflow_id="helper", parent_state=state)
        case "situation":
            client.call("nav_action", **refused, variables={"a": 2})
            good["state"] = client.situation(state)["state"]
    assert client.call("nav_action", **good) == first
    assert count_notes(client) == 1


def test_d1_a_state_that_is_shown_again_stays_the_same(bench: Bench) -> None:
    client = opened(bench)
    state = client.start(size="small")["state"]
    client.act("complete_step", state, step_id="nowhere", variables={"a": 1})
    assert client.situation(state)["state"] == state


def count_notes(client: NavigationClient) -> int:
    store = client.surface.ledger.store
    with store.reading() as reader:
        sessions = reader.sessions(SessionFilter())
    return sum(len(logged_events(store, row.session_id, "node_output_appended")) for row in sessions)


# D2: a step's output counts once a visit (rule 14)


def test_d2_an_output_that_came_with_a_yield_is_not_recorded_again(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    given: Payload = {"step_manifest": manifest("look"), "variables": {"goal": "bread"}}
    answer_checkpoint(worker, lead, "scope", "yes", **given)
    answer = lead.go("build", step_manifest=manifest("look", "weigh"))
    assert answer.warnings == []
    assert outputs(lead) == [("look", "look done"), ("weigh", "weigh done")]


def test_d2_an_output_that_came_with_a_yield_need_not_be_sent_again(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    given: Payload = {"step_manifest": manifest("look"), "variables": {"goal": "bread"}}
    answer_checkpoint(worker, lead, "scope", "yes", **given)
    answer = lead.go("build", step_manifest=manifest("weigh"))
    assert answer.warnings == []
    assert outputs(lead) == [("look", "look done"), ("weigh", "weigh done")]


def test_d2_an_output_that_is_still_missing_is_named(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    answer_checkpoint(worker, lead, "scope", "yes")
    warnings = lead.go("build", step_manifest=manifest("weigh"), variables={"goal": "bread"}).warnings
    assert "Missing steps in manifest: [look]" in warnings
    assert outputs(lead) == [("weigh", "weigh done")]


LATE = {
    **ROUNDS,
    "rounds/activities/00-work.yaml": """
id: work
version: 1.0.0
name: Work
steps:
  - { id: one, name: One, description: One. }
  - { id: two, name: Two, description: Two., checkpoint: g1 }
  - { id: three, name: Three, description: Three., checkpoint: g2 }
checkpoints:
  - { id: g1, name: G1, message: "G1?", options: [{ id: "yes", label: "Yes" }] }
  - { id: g2, name: G2, message: "G2?", options: [{ id: "yes", label: "Yes" }] }
  - { id: g3, name: G3, message: "G3?", options: [{ id: "yes", label: "Yes" }] }
""",
}
ONE_TWO_THREE = [(step, f"{step} done") for step in ("one", "two", "three")]


def test_d2_an_output_that_comes_late_is_recorded_once(bench: Bench) -> None:
    """The first yield claims the step without its output, the second brings it, the manifest repeats it."""
    lead, worker = begin_rounds(bench, files=LATE)
    answer_checkpoint(worker, lead, "g1", "yes")
    answer_checkpoint(worker, lead, "g2", "yes", step_manifest=manifest("one", "two"))
    answer_checkpoint(worker, lead, "g3", "yes", step_manifest=manifest("one", "two"))
    answer = lead.go("__terminal__", step_manifest=manifest("one", "two", "three"))
    assert (answer.warnings, outputs(lead)) == ([], ONE_TWO_THREE)


def test_d2_a_step_that_a_manifest_names_twice_is_recorded_once(bench: Bench) -> None:
    lead, worker = begin_rounds(bench, files=LATE)
    answer_checkpoint(worker, lead, "g1", "yes")
    answer_checkpoint(worker, lead, "g2", "yes")
    answer_checkpoint(worker, lead, "g3", "yes")
    answer = lead.go("__terminal__", step_manifest=manifest("one", "one", "two", "two", "three"))
    assert (answer.warnings, outputs(lead)) == ([], ONE_TWO_THREE)


def test_d2_what_a_refused_walk_has_passed_is_recorded_once(bench: Bench) -> None:
    """A walk to the third gate stops at the first: the step before that is done, the rest is sent again."""
    lead, worker = begin_rounds(bench, files=LATE)
    refused = worker.tell("yield_checkpoint", checkpoint_id="g3", step_manifest=manifest("one", "two"))
    assert (refused.code, refused.fields["checkpoint"]) == ("GATE_UNANSWERED", "g1")
    assert "Recorded as done: one." in refused.text
    answer_checkpoint(worker, lead, "g1", "yes")
    answer_checkpoint(worker, lead, "g2", "yes", step_manifest=manifest("one", "two"))
    answer_checkpoint(worker, lead, "g3", "yes", step_manifest=manifest("three"))
    answer = lead.go("__terminal__")
    assert (answer.warnings, outputs(lead)) == ([], ONE_TWO_THREE)


@pytest.mark.parametrize("whole", [True, False], ids=["whole manifest", "only what is new"])
@pytest.mark.parametrize("elsewhere", ["execution", "navigation"])
def test_d2_a_step_acknowledged_on_another_surface_counts_as_reported(
    bench: Bench, elsewhere: str, whole: bool
) -> None:
    lead, _ = begin_rounds(bench, files=LATE)
    token = lead.token
    if elsewhere == "execution":
        agent = Agent(ExecutionSurface(bench.ledger()))
        agent.call("continue_workflow", stateToken=token)
        agent.ack("one done")
        agent.decide("yes")
        token = agent.ack()["stateToken"]  # without notes
    else:
        client = opened(bench)
        client.situation(token)
        client.act("complete_step", step_id="one", output={"notesMarkdown": "one done"})
        client.respond("yes", "g1")
        token = client.act("complete_step", step_id="two")["state"]
    lead.call("start_session", agent_id="lead", session_token=token)
    answer_checkpoint(join_session(lead), lead, "g2", "yes")
    answer_checkpoint(join_session(lead), lead, "g3", "yes")
    done = manifest("one", "two", "three") if whole else manifest("three")
    answer = lead.go("__terminal__", step_manifest=done)
    assert not [text for text in answer.warnings if "manifest" in text]
    notes = [(step, text) for step, text in outputs(lead) if text]
    assert notes == [("one", "one done"), ("three", "three done")]


def rounds_done(*numbers: int) -> list[Payload]:
    return [
        {"step_id": step, "output": f"{step} {number}"} for number in numbers for step in ("plan", "make")
    ]


@pytest.mark.parametrize("whole", [True, False], ids=["whole manifest", "only what is new"])
def test_d2_in_a_loop_each_round_has_its_own_output(bench: Bench, whole: bool) -> None:
    """A worker may send all it has done so far with each call, or only what is new."""
    lead, worker = begin_rounds(bench, "a", "b")
    done = rounds_done(1, 2)
    sent = 0
    for gate, so_far in (("g1", 0), ("g2", 1), ("g1", 2), ("g2", 3)):
        steps_done = done[0 if whole else sent : so_far]
        answer_checkpoint(worker, lead, gate, "yes", step_manifest=steps_done)
        sent = so_far
    answer = lead.go("__terminal__", step_manifest=done if whole else done[sent:])
    assert not answer.error
    assert outputs(lead) == [(entry["step_id"], entry["output"]) for entry in done]


@pytest.mark.parametrize("resent", ["the whole manifest", "the last round", "only what is new"])
@pytest.mark.parametrize("elsewhere", ["execution", "navigation"])
def test_d2_a_round_acknowledged_on_another_surface_is_not_recorded_again(
    bench: Bench, elsewhere: str, resent: str
) -> None:
    lead, _ = begin_rounds(bench, "a", "b", "c")
    token = lead.token
    client, agent = opened(bench), Agent(ExecutionSurface(bench.ledger()))
    if elsewhere == "execution":
        agent.call("continue_workflow", stateToken=token)
        for number in (1, 2):
            for step in ("plan", "make"):
                agent.decide("yes")
                token = agent.ack(f"{step} {number}")["stateToken"]
        assert agent.pending == "g1"
    else:
        client.situation(token)
        for number in (1, 2):
            client.act("advance_loop", loop_id="each")
            for step, gate in (("plan", "g1"), ("make", "g2")):
                client.respond("yes", gate)
                output = {"notesMarkdown": f"{step} {number}"}
                token = client.act("complete_step", step_id=step, output=output)["state"]
    lead.call("start_session", agent_id="lead", session_token=token)
    answer_checkpoint(join_session(lead), lead, "g1", "yes")
    worker = join_session(lead)
    done = rounds_done(1, 2, 3)
    first = {"the whole manifest": 0, "the last round": 2, "only what is new": 4}[resent]
    answer_checkpoint(worker, lead, "g2", "yes", step_manifest=done[first:5])
    answer = lead.go("__terminal__", step_manifest=done[first:] if first < 4 else done[5:])
    assert not answer.error
    notes = [(step.rpartition("::")[2], text) for step, text in outputs(lead) if text]
    assert notes == [(entry["step_id"], entry["output"]) for entry in done]


def test_d2_what_was_done_in_a_round_may_be_sent_again_with_the_rest_of_it(bench: Bench) -> None:
    """A worker that tells at each gate what it has done in its round repeats the round's first steps."""
    lead, worker = begin_rounds(bench, "a", "b", "c")
    done = rounds_done(1, 2, 3)
    answer_checkpoint(worker, lead, "g1", "yes")
    for number in range(3):
        start = 2 * number
        answer_checkpoint(worker, lead, "g2", "yes", step_manifest=done[start : start + 1])
        if number < 2:
            answer_checkpoint(worker, lead, "g1", "yes", step_manifest=done[start : start + 2])
    assert not lead.go("__terminal__", step_manifest=done[4:]).error
    assert outputs(lead) == [(entry["step_id"], entry["output"]) for entry in done]


def test_d2_equal_outputs_of_two_rounds_do_not_hold_the_second_up(bench: Bench) -> None:
    lead, worker = begin_rounds(bench, "a", "b")
    for _ in range(2):
        answer_checkpoint(worker, lead, "g1", "yes")
        answer_checkpoint(worker, lead, "g2", "yes", step_manifest=[{"step_id": "plan", "output": "ok"}])
    assert not lead.go("__terminal__").error


# D3: yield, respond and resume again


def test_d3_a_repeated_yield_returns_the_recorded_answer(bench: Bench) -> None:
    worker = join_session(start_flow(bench))
    call = {"checkpoint_id": "scope", "step_manifest": manifest("look"), "variables": {"goal": "bread"}}
    first = worker.tell("yield_checkpoint", **call)
    assert worker.tell("yield_checkpoint", **call) == first
    assert outputs(worker) == [("look", "look done")]


def test_d3_another_agent_does_not_yield_what_is_open(bench: Bench) -> None:
    lead = start_flow(bench)
    worker, other = join_session(lead), join_session(lead, "other")
    worker.tell("yield_checkpoint", checkpoint_id="scope")
    assert other.tell("yield_checkpoint", checkpoint_id="scope").code == "CHECKPOINT_ALREADY_ACTIVE"


@pytest.mark.parametrize("by", ["handle", "token"])
def test_d3_a_repeated_answer_returns_the_recorded_one(bench: Bench, by: str) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    named = {"checkpoint_handle": handle} if by == "handle" else {"session_token": lead.token}
    first = lead.call("respond_checkpoint", **named, option_id="yes")
    assert lead.call("respond_checkpoint", **named, option_id="yes") == first
    assert lead.call("respond_checkpoint", **named, option_id="skip").code == "CHECKPOINT_ALREADY_ANSWERED"
    worker.tell("resume_checkpoint")
    assert lead.call("respond_checkpoint", **named, option_id="yes") == first


def test_d3_a_repeated_answer_at_gated_returns_the_recorded_one(bench: Bench) -> None:
    write_flow(bench)
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow")
    agent.go("gather")
    first = agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
    assert agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes") == first


def test_d3_a_repeated_resume_returns_the_recorded_answer(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    first = worker.tell("resume_checkpoint")
    assert worker.tell("resume_checkpoint") == first


def test_d3_a_resume_belongs_to_the_agent_that_yielded(bench: Bench) -> None:
    lead = start_flow(bench)
    worker, other = join_session(lead), join_session(lead, "other")
    handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    refusal = other.tell("resume_checkpoint")
    assert refusal.code == "CHECKPOINT_NOT_YIELDED"
    assert "(worker)" in refusal.text
    assert worker.tell("resume_checkpoint").body["resolved_option"] == "yes"


def test_d3_one_agent_can_resume_after_another_has_yielded(bench: Bench) -> None:
    lead, worker = begin_rounds(bench, "a")
    other = join_session(lead, "other")
    handle = worker.tell("yield_checkpoint", checkpoint_id="g1").body["checkpoint_handle"]
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    handle = other.tell("yield_checkpoint", checkpoint_id="g2").body["checkpoint_handle"]
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="no")
    assert worker.tell("resume_checkpoint").body["resolved_option"] == "yes"
    assert other.tell("resume_checkpoint").body["resolved_option"] == "no"


# G1: two gates in each round (rule 16)


@pytest.mark.parametrize("agents", [("worker",), ("worker", "other")], ids=["one worker", "two workers"])
def test_g1_each_round_asks_its_gates_again_without_a_number(bench: Bench, agents: tuple[str, ...]) -> None:
    lead, _ = begin_rounds(bench, "a", "b", "c")
    asked: list[tuple[str, Any, Any]] = []
    for turn in range(6):
        refusal = lead.go("__terminal__")
        assert refusal.code == "GATE_UNANSWERED"
        gate = refusal.fields["checkpoint"]
        worker = join_session(lead, agents[turn % len(agents)])
        opened_gate = worker.tell("yield_checkpoint", checkpoint_id=gate)
        assert opened_gate.body["status"] == "yielded", opened_gate.text
        shown = lead.call("present_checkpoint", checkpoint_handle=opened_gate.body["checkpoint_handle"])
        assert f"iteration: {opened_gate.body['iteration']}" in shown.text
        asked.append((gate, opened_gate.body["iteration"], opened_gate.body["item"]))
        assert (refusal.fields["iteration"], refusal.fields["item"]) == asked[-1][1:]
        lead.tell("respond_checkpoint", option_id="yes")
        worker.tell("resume_checkpoint")
    rounds = [(1, "a"), (2, "b"), (3, "c")]
    assert asked == [(gate, *number) for number in rounds for gate in ("g1", "g2")]
    assert not lead.go("__terminal__").error


def test_g1_an_answered_round_is_asked_for_by_its_number(bench: Bench) -> None:
    lead, worker = begin_rounds(bench, "a", "b")
    for gate, option in (("g1", "yes"), ("g2", "no"), ("g1", "no"), ("g2", "yes")):
        answer_checkpoint(worker, lead, gate, option)
    other = join_session(lead, "other")
    told = [
        other.tell("yield_checkpoint", checkpoint_id=gate, iteration=number).body
        for number in (1, 2)
        for gate in ("g1", "g2")
    ]
    assert [answer["status"] for answer in told] == ["answered"] * 4
    assert [answer["resolved_option"] for answer in told] == ["yes", "no", "no", "yes"]


def test_g1_a_yield_sent_again_after_its_answer_does_not_open_the_next_round(bench: Bench) -> None:
    lead, worker = begin_rounds(bench, "a", "b")
    worker.tell("yield_checkpoint", checkpoint_id="g1")
    lead.tell("respond_checkpoint", option_id="yes")
    again = worker.tell("yield_checkpoint", checkpoint_id="g1").body
    assert (again["status"], again["iteration"]) == ("answered", 1)


def test_g1_a_gate_after_the_loop_is_not_answered_before_it(bench: Bench) -> None:
    files = dict(ROUNDS)
    files["rounds/activities/00-work.yaml"] += """
  - id: closing
    name: Closing
    message: "Close it?"
    options: [{ id: "yes", label: "Yes" }, { id: "no", label: "No" }]
"""
    lead, worker = begin_rounds(bench, "a", "b", files=files)
    answer_checkpoint(worker, lead, "g1", "yes")
    assert worker.tell("yield_checkpoint", checkpoint_id="closing").fields["checkpoint"] == "g2"
    for gate in ("g2", "g1", "g2", "closing"):
        answer_checkpoint(worker, lead, gate, "yes")
    assert not lead.go("__terminal__").error


# D6: notes accumulate (rule 8)


def test_d6_each_answer_and_each_rehydrate_has_a_fresh_checkpoint_token(bench: Bench) -> None:
    bench.write(workflow(*steps("first", "second")))
    agent = bench.agent()
    first = agent.start("test.flow")
    tokens, answer = [first["checkpointToken"]], first
    for number in range(3):
        call = {"stateToken": answer["stateToken"], "checkpointToken": answer["checkpointToken"]}
        note = {"output": {"notesMarkdown": f"note {number}"}}
        answer = agent.call("checkpoint_workflow", **call, **note)
        assert agent.call("checkpoint_workflow", **call, **note) == answer
        tokens.append(answer["checkpointToken"])
    seen = [agent.look(first)["checkpointToken"] for _ in range(2)]
    assert len({*tokens, *seen}) == len(tokens) + len(seen)
    agent.call(
        "checkpoint_workflow",
        stateToken=first["stateToken"],
        checkpointToken=seen[0],
        output={"notesMarkdown": "note 3"},
    )
    text = json.dumps(agent.look(first))
    assert all(f"note {number}" in text for number in range(4))
    assert agent.ack("done", at=answer)["pending"]["stepId"] == "second"


def test_d6_notes_at_a_rewound_node_do_not_hand_out_a_used_ack_token(bench: Bench) -> None:
    bench.write(workflow(*steps("first", "second")))
    agent = bench.agent()
    first = agent.start("test.flow")
    agent.ack("one way", at=first)
    noted = agent.call(
        "checkpoint_workflow",
        stateToken=first["stateToken"],
        checkpointToken=first["checkpointToken"],
        output={"notesMarkdown": "note"},
    )
    assert noted["ackToken"] != first["ackToken"]


# The same over real servers: the answer is lost with its process, and another process is asked again.


class Servers:
    """Two servers on one data folder; the answer of either can be lost with its process."""

    def __init__(self, folder: Path, era: Era, *arguments: str) -> None:
        self.folder, self.era, self.arguments = folder, era, arguments
        self.running = [self._start(), self._start()]

    def _start(self) -> Server:
        common = ["--workflows", str(self.folder / "given"), "--min-response-seconds", "0"]
        return Server(self.folder / "data", *common, *self.arguments, era=self.era)

    def call(self, tool: str, **arguments: Any) -> Payload:
        self.running.reverse()
        return self.running[0].call(tool, **arguments)

    def lost(self, tool: str, **arguments: Any) -> Payload:
        """Make a call, kill its server before the agent has read the answer, and make it again."""
        first = self.call(tool, **arguments)
        self.running[0].kill()
        self.running[0] = self._start()
        again = self.call(tool, **arguments)
        assert again == first
        assert self.call(tool, **arguments) == first
        return first

    def close(self) -> None:
        for server in self.running:
            server.kill()


@contextmanager
def servers(folder: Path, era: Era, files: dict[str, str], surface: str) -> Iterator[Servers]:
    write(folder / "given", files)
    both = Servers(folder, era, "--surface", surface)
    try:
        yield both
    finally:
        both.close()


@ERAS
def test_d1_over_real_servers(tmp_path: Path, era: Era) -> None:
    with servers(tmp_path, era, FILES, "navigation") as both:
        state = both.call("nav_start", workflow_id="build")["state"]
        refused = {"state": state, "action": "complete_step", "step_id": "nowhere"}
        good = {**refused, "step_id": "analyze", "output": {"notesMarkdown": "Looked."}}
        both.call("nav_action", **refused, variables={"a": 1})
        first = both.lost("nav_action", **good)
        both.call("nav_action", **refused, variables={"a": 2})
        both.call("nav_start", workflow_id="helper", parent_state=state)
        assert both.call("nav_action", **good) == first


@ERAS
def test_d2_and_d3_over_real_servers(tmp_path: Path, era: Era) -> None:
    with servers(tmp_path, era, FLOW, "session") as both:
        lead = both.call("start_session", agent_id="lead", workflow_id="flow")["_meta"]["session_token"]
        lead = both.lost("next_activity", session_token=lead, activity_id="gather")["_meta"]["session_token"]
        joined = both.call("start_session", agent_id="worker", session_token=lead)
        worker = joined["_meta"]["session_token"]
        yielded = both.lost(
            "yield_checkpoint",
            session_token=worker,
            checkpoint_id="scope",
            step_manifest=manifest("look"),
            variables={"goal": "bread"},
        )
        handle = json.loads(yielded["_text"])["checkpoint_handle"]
        both.lost("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
        both.lost("respond_checkpoint", session_token=lead, option_id="yes")
        other = both.call("start_session", agent_id="other", session_token=lead)["_meta"]["session_token"]
        assert both.call("resume_checkpoint", session_token=other)["code"] == "CHECKPOINT_NOT_YIELDED"
        both.lost("resume_checkpoint", session_token=worker)
        left = both.lost(
            "next_activity",
            session_token=lead,
            activity_id="build",
            step_manifest=manifest("look", "weigh"),
        )
        assert left["_meta"]["validation"]["warnings"] == []


@ERAS
def test_d3_at_gated_over_real_servers(tmp_path: Path, era: Era) -> None:
    with servers(tmp_path, era, FLOW, "gated") as both:
        token = both.call("start_session", workflow_id="flow")["_meta"]["session_token"]
        token = both.lost("next_activity", session_token=token, activity_id="gather")["_meta"][
            "session_token"
        ]
        both.lost("respond_checkpoint", session_token=token, checkpoint_id="scope", option_id="yes")


@ERAS
@pytest.mark.parametrize("surface", ["session", "gated"])
def test_d5_over_real_servers(tmp_path: Path, era: Era, surface: str) -> None:
    with servers(tmp_path, era, FLOW, surface) as both:
        started = both.call("start_session", agent_id="lead", workflow_id="flow")
        token = started["_meta"]["session_token"]

        def begin(token: str) -> Payload:
            named = {} if surface == "session" else {"workflow_id": "flow"}
            return both.call("start_session", agent_id="lead", session_token=token, **named)

        for spelled in (f"{token}AAAA", token[:20]):
            answer = begin(spelled)
            is_refused = answer["_error"] and answer["code"].startswith("TOKEN_")
            assert is_refused if surface == "gated" else json.loads(answer["_text"])["recovered"]
        assert json.loads(begin(f' "{token}"')["_text"])["inherited"] is True
        keys = Keys(tmp_path / "data")
        rotate(keys)
        assert json.loads(begin(token)["_text"])["inherited"] is True
        rotate(keys)
        for tool in ("start_session", "get_trace"):
            answer = begin(token) if tool == "start_session" else both.call(tool, session_token=token)
            assert (answer["_error"], answer["code"]) == (True, "TOKEN_KEY_RETIRED")
            assert "adopt" not in answer["_text"]


@ERAS
def test_d6_over_real_servers(tmp_path: Path, era: Era) -> None:
    with servers(tmp_path, era, FLOW, "execution") as both:
        answer = first = both.call("start_workflow", workflowId="child")
        for number in range(3):
            answer = both.lost(
                "checkpoint_workflow",
                stateToken=answer["stateToken"],
                checkpointToken=answer["checkpointToken"],
                output={"notesMarkdown": f"note {number}"},
            )
        seen = both.call("continue_workflow", stateToken=first["stateToken"])["_text"]
        assert [seen.count(f"note {number}") for number in range(3)] == [1, 1, 1]


# D3 by session token: a token answers one question (rule 13)


def yield_two(bench: Bench) -> tuple[SessionAgent, SessionAgent, Payload]:
    """Answer the first question by session token, open the second, and return the first call."""
    lead, worker = begin_rounds(bench, "a", "b")
    worker.tell("yield_checkpoint", checkpoint_id="g1")
    call: Payload = {"session_token": lead.token, "option_id": "yes"}
    return lead, worker, call


def resolved_gates(agent: SessionAgent) -> list[tuple[str, str]]:
    rows = logged_events(agent.ledger.store, session_id_of(agent), "gate_resolved")
    return [(row.event.key, row.event.option) for row in rows]  # type: ignore[attr-defined]


def test_d3_a_repeat_by_session_token_never_answers_a_newer_question(bench: Bench) -> None:
    lead, worker, call = yield_two(bench)
    first = lead.call("respond_checkpoint", **call)
    worker.tell("resume_checkpoint")
    worker.tell("yield_checkpoint", checkpoint_id="g2")
    again = lead.call("respond_checkpoint", **call)
    assert {**again.body, "warnings": None} == {**first.body, "warnings": None}
    assert again.warnings == [
        "Checkpoint 'g2' was not answered. 'g2' is open now: call present_checkpoint, then answer with the "
        "checkpoint_handle it shows."
    ]
    assert resolved_gates(lead) == [("each@0::g1", "yes")]
    refused = lead.call("respond_checkpoint", **{**call, "option_id": "no"})
    assert (refused.code, refused.fields["option"]) == ("CHECKPOINT_ALREADY_ANSWERED", "yes")
    assert "'g2' is open now" in refused.text
    assert resolved_gates(lead) == [("each@0::g1", "yes")]


def test_d3_the_token_of_the_answer_answers_the_next_question(bench: Bench) -> None:
    lead, worker, call = yield_two(bench)
    lead.call("respond_checkpoint", **call)
    for gate in ("g2", "g1", "g2"):
        worker.tell("resume_checkpoint")
        worker.tell("yield_checkpoint", checkpoint_id=gate)
        assert lead.tell("respond_checkpoint", option_id="yes").body["checkpoint_id"] == gate
    assert [gate for gate, _ in resolved_gates(lead)] == [
        f"each@{number}::{gate}" for number in (0, 1) for gate in ("g1", "g2")
    ]


def test_d3_presenting_a_question_gives_a_token_that_answers_it(bench: Bench) -> None:
    """Another agent has answered the question before; this one has never seen that answer."""
    lead, worker, call = yield_two(bench)
    other = join_session(lead, "other")
    lead.call("respond_checkpoint", **call)
    worker.tell("resume_checkpoint")
    worker.tell("yield_checkpoint", checkpoint_id="g2")
    old = other.token
    refused = other.tell("respond_checkpoint", option_id="yes")
    assert refused.code == "CHECKPOINT_ALREADY_ANSWERED"  # it is no repeat: another agent has sent that one
    other.token = old
    assert "session_token: " in other.tell("present_checkpoint").text
    assert other.tell("respond_checkpoint", option_id="no").body["checkpoint_id"] == "g2"


@pytest.mark.parametrize("surface", ["session"])
@ERAS
def test_d3_a_repeat_after_a_kill_returns_the_recorded_answer(tmp_path: Path, surface: str, era: Era) -> None:
    """Two processes: the first is killed before its answer is read, a worker goes on in the second."""
    write(tmp_path / "workflows", ROUNDS)
    arguments = ("--workflows", str(tmp_path / "workflows"), "--surface", surface)
    arguments += ("--min-response-seconds", "0")
    with Server(tmp_path, *arguments, era=era) as first:
        lead = first.call("start_session", agent_id="lead", workflow_id="rounds")
        entered = first.call(
            "next_activity",
            session_token=lead["session_token"],
            activity_id="work",
            variables={"parts": ["a"]},
        )
        worker = first.call("start_session", agent_id="w", session_token=entered["session_token"])
        worker = first.call("yield_checkpoint", session_token=worker["session_token"], checkpoint_id="g1")
        call = {"session_token": entered["session_token"], "option_id": "yes"}
        answer = first.call("respond_checkpoint", **call)
        first.kill()
    with Server(tmp_path, *arguments, era=era) as second:
        worker = second.call("resume_checkpoint", session_token=worker["session_token"])
        second.call("yield_checkpoint", session_token=worker["session_token"], checkpoint_id="g2")
        again = second.call("respond_checkpoint", **call)
        assert (again["checkpoint_id"], again["session_token"]) == ("g1", answer["session_token"])
        status = second.call("get_workflow_status", session_token=call["session_token"])
        assert status["open_checkpoint"] == "g2"


def test_d3_a_token_from_before_a_rewind_answers_nothing(bench: Bench) -> None:
    """The answer that the token has seen is on another branch, where the question is not open again."""
    lead, worker = begin_rounds(bench, files=LATE)
    execution = Agent(ExecutionSurface(bench.ledger()))
    start = execution.call("continue_workflow", stateToken=lead.token)
    worker.tell("yield_checkpoint", checkpoint_id="g1")
    assert not lead.tell("respond_checkpoint", option_id="yes").error
    seen = lead.token
    execution.ack("one, in another way", at=execution.look(start))
    assert execution.pending == "g1"
    refused = lead.call("respond_checkpoint", session_token=seen, option_id="yes")
    assert refused.code == "STALE_TOKEN"
    assert not lead.tell("respond_checkpoint", option_id="yes").error  # by the token of the refusal


# E9: a handle is no session token


def test_e9_a_handle_is_refused_where_a_session_token_belongs(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    yielded = worker.tell("yield_checkpoint", checkpoint_id="scope").body
    handle = yielded["checkpoint_handle"]
    assert yielded["session_token"] == worker.token != handle
    assert "it is not a session_token" in yielded["message"]
    for tool, more in (
        ("get_workflow_status", {}),
        ("get_trace", {}),
        ("get_workflow", {}),
        ("next_activity", {"activity_id": "build"}),
        ("yield_checkpoint", {"checkpoint_id": "scope"}),
    ):
        refused = lead.call(tool, session_token=handle, **more)
        assert refused.code == "TOKEN_SCOPE_MISMATCH", tool
        assert "This is a checkpoint_handle, not a session_token" in refused.text
    shown = lead.call("present_checkpoint", checkpoint_handle=handle)
    assert f"checkpoint_handle: {handle}" in shown.text
    assert "session_token" not in shown.text


# Rule 7 in the words of session: what a repeat sends differently is not read


def test_a_repeated_entry_with_another_manifest_says_that_it_was_not_read(bench: Bench) -> None:
    lead = start_flow(bench)
    answer_checkpoint(join_session(lead), lead, "scope", "yes", variables={"goal": "bread"})
    call: Payload = {"session_token": lead.token, "activity_id": "build"}
    first = lead.call("next_activity", **call, step_manifest=manifest("look", "weigh"))
    assert lead.call("next_activity", **call, step_manifest=manifest("look", "weigh")) == first
    again = lead.call("next_activity", **call, step_manifest=manifest("look"), variables={"x": 1})
    assert again.body["session_token"] == first.body["session_token"]
    assert "was not read" in again.warnings[0]
    assert again.body["warnings"][0] == again.warnings[0]
    assert "x" not in lead.tell("get_workflow_status").body.get("context", {})
