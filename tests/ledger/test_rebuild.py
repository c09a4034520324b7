"""Rule 44: everything that is not an event can be rebuilt from events, row for row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.modes import set_session_mode
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.projection import Rows
from interlock.ledger.log.rebuild import differences, rebuild, recorded_in
from interlock.ledger.retention import stale
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.tool import call_tool
from support.harness import Agent, Bench, FormAnswer, gate, steps, workflow
from support.session_agents import (
    QUICK,
    answer_checkpoint,
    gated,
    join_session,
    manifest,
    start_flow,
    write_flow,
)

TWICE = {"type": "for", "count": 2, "maxIterations": 3}
FLOW = workflow(
    *steps("one"),
    {
        "type": "loop",
        "id": "again",
        "loop": TWICE,
        "body": steps("inner"),
    },
    gate("fork", "left", "right"),
    *steps("two", "three"),
)


def rebuilt(ledger: Ledger, session_id: str) -> tuple[Rows, list[str]]:
    with ledger.store.reading() as reader:
        rows = rebuild(session_id, reader.commits(session_id))
        return rows, list(differences(reader, rows))


def every_session(ledger: Ledger) -> list[str]:
    with ledger.store.reading() as reader:
        return [session.session_id for session in reader.sessions(SessionFilter())]


def no_differences(ledger: Ledger) -> None:
    for session_id in every_session(ledger):
        assert rebuilt(ledger, session_id)[1] == []


def branched(agent: Agent) -> str:
    """A run with two branches, a checkpoint, a blocked attempt, an artifact and a second run."""
    first = agent.start("test.flow", goal="mend the rebuild")
    agent.ack("first notes", artifacts=[{"kind": "note", "text": "an artifact"}], colour="red")
    agent.call(
        "checkpoint_workflow",
        stateToken=agent.last["stateToken"],
        checkpointToken=agent.last["checkpointToken"],
        output={"notesMarkdown": "kept on the way"},
    )
    agent.ack("second branch", at=agent.look(first))
    agent.ack("inner")
    agent.ack("inner again")
    agent.ack("no decision yet")
    agent.decide("left")
    session: str = first["session"]["sessionId"]
    return session


def test_all_rows_of_a_run_follow_from_its_events(bench: Bench) -> None:
    bench.write(FLOW)
    agent = bench.agent()
    session = branched(agent)
    rows, differing = rebuilt(agent.ledger, session)
    assert differing == []
    assert len(rows.nodes) == 7
    assert len(rows.all_blocked()) == 1
    assert [row.kind for row in rows.nodes.values()].count("note") == 1
    assert len(recorded_in(rows)) == 7


def test_a_session_without_a_run_is_rebuilt_with_its_notes(bench: Bench) -> None:
    agent = bench.agent()
    token = agent.call("start_session", title="Only notes")["sessionToken"]
    for notes in ("earlier", "later"):
        agent.call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": notes})
    no_differences(agent.ledger)


def test_a_session_of_several_agents_is_rebuilt_with_its_child(bench: Bench) -> None:
    lead = start_flow(bench)
    worker = join_session(lead)
    answer_checkpoint(worker, lead, "scope", "yes", variables={"goal": "bread"})
    lead.go("build", step_manifest=manifest("look", "weigh", "unheard-of"), variables={"parts": ["crust"]})
    lead.go("finish", variables={"kept": "although refused"})
    worker.token = join_session(lead).token
    answer_checkpoint(worker, lead, "fit", "fits")
    lead.go("finish", step_manifest=manifest("begin", "make", "check"))
    child = join_session(lead, "child")
    child.call("start_session", agent_id="child", workflow_id="child", parent_session_token=lead.token)
    child.go("only")
    child.go("__terminal__", step_manifest=manifest("work"))
    lead.go("__terminal__", step_manifest=manifest("close"))
    assert len(every_session(lead.ledger)) == 2
    no_differences(lead.ledger)


def test_a_gated_session_is_rebuilt(bench: Bench) -> None:
    write_flow(bench)
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow")
    agent.go("gather")
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="redo")
    agent.go("gather", step_manifest=manifest("look", "weigh"))
    no_differences(agent.ledger)


def test_a_navigated_run_is_rebuilt_with_what_refused_calls_told(bench: Bench) -> None:
    write_flow(bench)
    policy = NavigationSurface(bench.ledger(terms=QUICK))

    def call(tool: str, **arguments: Any) -> FormAnswer:
        reply = call_tool(policy, tool, arguments, Call(Client("test")))
        assert isinstance(reply, Reply)
        body: FormAnswer = msgspec.json.decode(reply.text)
        return body

    first = call("nav_start", workflow_id="flow")["state"]
    call("nav_action", state=first, action="transition", activity_id="build", variables={"goal": "told"})
    second = call("nav_action", state=first, action="complete_step", step_id="look")["state"]
    call("nav_action", state=first, action="complete_step", step_id="look", variables={"goal": "fork"})
    call("nav_action", state=second, action="complete_step", step_id="close", variables={"goal": "late"})
    no_differences(policy.ledger)


def test_a_changed_row_is_noticed(bench: Bench) -> None:
    bench.write(FLOW)
    agent = bench.agent()
    session = branched(agent)
    ledger = agent.ledger
    connection = ledger.store._connection  # type: ignore[attr-defined]
    connection.execute("INSERT INTO observations VALUES (?, 'git_branch', 'never seen')", (session,))
    assert rebuilt(ledger, session)[1] == ["observations"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE sessions SET title = 'x'", "session row"),
        ("UPDATE sessions SET visit_index = 99", "session row"),
        ("UPDATE sessions SET next_node = 99", "session row"),
        ("UPDATE runs SET status = 'complete'", "runs"),
        ("UPDATE nodes SET depth = 9 WHERE node = 1", "node 1"),
        ("UPDATE nodes SET entries = 9 WHERE node = 1", "node 1"),
        ("UPDATE nodes SET outputs = x'' WHERE node = 1", "node 1"),
        ("UPDATE nodes SET response = x'7b7d' WHERE node = 1", "response to attempt 0 on node 0"),
        ("DELETE FROM nodes WHERE node = 1", "node 1"),
        ("UPDATE blocked SET kept = x'7b7d'", "attempt 0 on node 5"),
        ("UPDATE blocked SET response = x'7b7d'", "response to attempt 0 on node 5"),
        ("DELETE FROM blocked", "attempt 0 on node 5"),
        ("INSERT INTO modes SELECT session_id, 1, 9, x'7b7d' FROM sessions", "modes"),
    ],
)
def test_every_kind_of_changed_row_is_named(bench: Bench, change: str, named: str) -> None:
    bench.write(FLOW)
    agent = bench.agent()
    session = branched(agent)
    agent.ledger.store._connection.execute(change)  # type: ignore[attr-defined]
    assert rebuilt(agent.ledger, session)[1] == [named]


def test_what_the_user_sets_beside_the_log_is_no_difference(bench: Bench) -> None:
    bench.write(FLOW)
    agent = bench.agent()
    session = branched(agent)
    with agent.ledger.store.writing() as writer:
        writer.set_keep(session, True)
    set_session_mode(agent.ledger, session, PRESETS["stop"], "cli")
    set_session_mode(agent.ledger, session, PRESETS["never-stop"], "cli")
    assert rebuilt(agent.ledger, session)[1] == []


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.sampled_from(["ack", "decide", "look back", "keep", "bare"]), max_size=12))
def test_whatever_an_agent_does_is_rebuilt_as_it_was_written(bench: Bench, moves: list[str]) -> None:
    bench.write(FLOW)
    agent = bench.agent()
    seen = [agent.start("test.flow", goal="law")]
    for number, move in enumerate(moves):
        seen.append(moved(agent, move, number, seen))
    no_differences(agent.ledger)


def moved(agent: Agent, move: str, number: int, seen: list[dict[str, Any]]) -> dict[str, Any]:
    last = seen[-1]
    if last.get("isComplete") or "ackToken" not in last:
        return agent.look(seen[0])
    match move:
        case "decide":
            return agent.decide("right", at=last)
        case "look back":
            return agent.look(seen[number // 2])
        case "keep":
            output = {"notesMarkdown": f"kept {number}"}
            tokens = {name: last[name] for name in ("stateToken", "checkpointToken")}
            agent.call("checkpoint_workflow", **tokens, output=output)
            return last
        case "bare":
            return agent.ack(at=last, number=number)
        case _:
            return agent.ack(f"notes {number}", at=last)


def test_a_clock_that_was_set_back_does_not_make_a_session_older(bench: Bench) -> None:
    """Otherwise it would be listed among the old ones, and be removed with them."""
    bench.write(FLOW)
    agent = bench.agent()
    agent.start("test.flow")
    began = bench.clock.now
    bench.clock.pass_seconds(-400 * 86_400)
    agent.ack("notes")
    no_differences(agent.ledger)
    bench.clock.now = began
    assert list(stale(agent.ledger.store, began)) == []
    assert list(stale(agent.ledger.store, began + 1)) == every_session(agent.ledger)
