"""Runs that are given up (rule 35): by the agent on every surface, by the user, once and for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import msgspec
import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from interlock.core.run.outcomes import Refusal
from interlock.ledger.decisions.inbox import inbox
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.health import examine
from interlock.ledger.log.rebuild import differences, rebuild
from interlock.ledger.queries.run_lines import RunsWanted, run_lines
from interlock.ledger.queries.search import find
from interlock.ledger.queries.status import session_status
from interlock.ledger.queries.tree import trees_of
from interlock.ledger.runs.abandonment import abandon_run
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.whole_session import WholeSession
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.transfer.bundle import Bundle, read_bundle
from interlock.ledger.transfer.export_import import export_session, import_bundle
from interlock.store.protocol import SessionFilter, SessionRow
from interlock.store.sqlite.store import open_store
from interlock.surfaces.call import Era
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.navigation import NavigationSurface
from support.authored import write
from support.cli_process import Terminal, interlock, to_the_gate
from support.cli_process import agent as cli_agent
from support.harness import Agent, Bench, compile_cache, gate, steps, workflow
from support.log import logged_events
from support.navigation_client import FILES, NavigationClient, events, opened
from support.postgres_server import open_in, require_postgres, shared_server
from support.server import Server
from support.session_agents import (
    FLOW,
    SessionAgent,
    gated,
    join_session,
    manifest,
    session,
    session_id_of,
    start_flow,
    walk_to_finish,
    write_flow,
)

WHY = "the ticket was withdrawn"
OVER = "Nothing: the run was abandoned. Call start_session without session_token to begin a new one."


@pytest.fixture
def agent(bench: Bench) -> Agent:
    bench.write(workflow(*steps("first"), gate("approve", "yes", "no"), *steps("last")))
    return bench.agent()


def abandon(agent: Agent, at: dict[str, Any] | None = None, why: str = WHY, **more: Any) -> dict[str, Any]:
    tokens = {name: (at or agent.last)[name] for name in ("stateToken", "ackToken")}
    return agent.call("continue_workflow", **tokens, abandon=why, **more)


def by_user(ledger: Ledger, session_id: str, run: int = 0, why: str = WHY) -> Position:
    position = abandon_run(ledger, session_id, run, "cli", why)
    assert isinstance(position, Position), position
    return position


def session_of(ledger: Ledger, session_id: str) -> SessionRow:
    with ledger.store.reading() as reader:
        row = reader.session(session_id)
    assert row is not None
    return row


def given_up(ledger: Ledger, session_id: str) -> list[str]:
    rows = logged_events(ledger.store, session_id, "run_abandoned")
    return [row.event.how.text for row in rows]  # type: ignore[attr-defined]


# execution


def test_an_agent_gives_up_its_run_and_leaves_what_it_has(agent: Agent) -> None:
    agent.start("test.flow")
    gone = abandon(agent, output={"notesMarkdown": "half of it is done"}, context={"x": 1})
    assert "The variables of this call were not read" in agent.text
    assert (gone["status"], gone["isComplete"], gone["pending"]) == ("abandoned", False, None)
    assert gone["nextIntent"] == "rehydrate_only"
    assert "abandoned by its agent (test-client): the ticket was withdrawn. It cannot go on." in agent.text
    shown = agent.look(gone)
    assert (shown["status"], shown["abandoned"]["reason"]) == ("abandoned", WHY)
    assert shown["recap"]["entries"][-1]["notes"] == "half of it is done"
    assert "ackToken" not in shown
    assert "checkpointToken" not in shown


def test_the_same_call_again_returns_the_recorded_answer(bench: Bench, agent: Agent) -> None:
    """Rule 7: also in another process."""
    first = agent.start("test.flow")
    abandon(agent)
    answered = agent.text
    abandon(agent, first)
    assert agent.text == answered
    other = bench.agent()
    abandon(other, first)
    assert other.text == answered
    assert len(given_up(agent.ledger, first["session"]["sessionId"])) == 1
    abandon(agent, first, "something else")
    assert agent.text.startswith("This call was made before with other arguments")


def test_nothing_goes_on_in_a_run_that_was_given_up_on_any_branch(agent: Agent) -> None:
    first = agent.start("test.flow")
    second = agent.ack("one way")
    fork = agent.look(first)
    other = agent.ack("another way", at=fork)
    abandon(agent, second)
    for at in (agent.look(first), agent.look(other)):
        assert (at["status"], at["pending"]) == ("abandoned", None)
        assert "branches" not in at
    refused = agent.ack("on", at=other)
    assert (refused["code"], refused["details"]["reason"]) == ("PRECONDITION_FAILED", "RUN_ABANDONED")
    assert "abandoned by its agent (test-client): the ticket was withdrawn." in refused["message"]
    assert "start_workflow" in refused["details"]["suggestion"]
    noted = agent.call(
        "checkpoint_workflow",
        stateToken=other["stateToken"],
        checkpointToken=other["checkpointToken"],
        output={"notesMarkdown": "too late"},
    )
    assert noted["details"]["reason"] == "RUN_ABANDONED"


def test_without_an_ack_token_abandon_is_not_read_and_the_answer_says_so(agent: Agent) -> None:
    agent.start("test.flow")
    shown = agent.call("continue_workflow", stateToken=agent.last["stateToken"], abandon=WHY)
    assert shown["pending"]["stepId"] == "first"
    assert "abandon were ignored: without ackToken" in agent.text


def test_a_run_that_has_ended_cannot_be_given_up(bench: Bench) -> None:
    bench.write(workflow(*steps("only")))
    agent = bench.agent("never-stop")
    agent.start("test.flow")
    agent.ack()
    assert agent.last["isComplete"]
    session_id = agent.last["session"]["sessionId"]
    assert isinstance(abandon_run(agent.ledger, session_id, 0, "cli", WHY), Refusal)
    assert given_up(agent.ledger, session_id) == []


# the user


def test_a_question_of_a_run_that_was_given_up_leaves_the_inbox(bench: Bench) -> None:
    bench.write(workflow(gate("approve", "yes", "no"), *steps("last")))
    agent = bench.agent(terms=Terms(decisions="user"))
    agent.start("test.flow")
    agent.ack()
    session_id = agent.last["session"]["sessionId"]
    assert [question.id for question in inbox(agent.ledger)] == ["approve"]
    by_user(agent.ledger, session_id)
    assert inbox(agent.ledger) == ()
    with agent.ledger.store.reading() as reader:
        assert reader.sessions(SessionFilter(agent.ledger.owner, awaiting=True)) == []


def test_the_first_reason_stands(agent: Agent) -> None:
    session_id = agent.start("test.flow")["session"]["sessionId"]
    first = by_user(agent.ledger, session_id)
    again = by_user(agent.ledger, session_id, why="another")
    assert first.state.abandoned == again.state.abandoned
    assert given_up(agent.ledger, session_id) == [f"abandoned by the user, cli: {WHY}"]


def test_another_run_of_the_session_stays_its_head(bench: Bench) -> None:
    bench.write(workflow(*steps("first", "last")))
    agent = bench.agent()
    token = agent.call("start_session", title="Two runs")["sessionToken"]
    one = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    session_id = one["session"]["sessionId"]
    two = agent.ack("second run")
    by_user(agent.ledger, session_id, run=0)
    assert session_of(agent.ledger, session_id).head_run == 1
    assert agent.ack("goes on", at=two)["isComplete"]
    assert agent.look(one)["status"] == "abandoned"
    with agent.ledger.store.reading() as reader:
        assert list(differences(reader, rebuild(session_id, reader.commits(session_id)))) == []


def test_a_run_that_was_given_up_stays_readable_and_is_not_offered_first(bench: Bench, agent: Agent) -> None:
    session_id = agent.start("test.flow", title="pelican")["session"]["sessionId"]
    agent.ack("a note about the pelican")
    by_user(agent.ledger, session_id)
    going_on = agent.start("test.flow", title="pelican too")["session"]["sessionId"]
    ledger = bench.ledger()
    row = session_of(ledger, session_id)
    status = session_status(WholeSession(ledger, row)).runs[0]
    assert (status.status, status.pending.kind) == ("abandoned", "nothing")
    assert status.abandoned == f"abandoned by the user, cli: {WHY}"
    tree = trees_of(WholeSession(ledger, row))[0]
    assert (tree.status, tree.nodes[-1].label, tree.nodes[-1].pending.title) == (
        "abandoned",
        "abandoned",
        "abandoned",
    )
    assert [line.session_id for line in run_lines(ledger, RunsWanted(status="abandoned")).lines] == [
        session_id
    ]
    resumed = agent.call("resume_session", resumeRef=session_id)
    assert resumed["best"]["status"] == "abandoned"
    assert "ready to go on" not in agent.text
    found = find(ledger, "pelican").candidates
    assert [candidate.session.session_id for candidate in found] == [going_on, session_id]
    assert examine(ledger.store, row).health == "healthy"
    with ledger.store.reading() as reader:
        assert list(differences(reader, rebuild(session_id, reader.commits(session_id)))) == []


def test_a_bundle_carries_it(bench: Bench, agent: Agent, tmp_path: Path) -> None:
    session_id = agent.start("test.flow")["session"]["sessionId"]
    by_user(agent.ledger, session_id)
    ledger = agent.ledger
    exported = export_session(ledger.store, session_of(ledger, session_id), ledger.pins, ledger.clock())
    (tmp_path / "elsewhere").mkdir()
    other = Bench(tmp_path / "elsewhere")
    elsewhere = other.ledger()
    bundle = read_bundle(msgspec.json.encode(exported))
    assert isinstance(bundle, Bundle), bundle
    imported = import_bundle(elsewhere, bundle)
    assert session_status(WholeSession(elsewhere, imported)).runs[0].status == "abandoned"
    position = elsewhere.position(imported.session_id, 0)
    assert isinstance(position, Position)
    assert position.state.abandoned is not None
    assert position.state.abandoned.reason == WHY
    other.close()


# session and gated


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_an_orchestrator_gives_up_its_session_while_a_checkpoint_is_pending(
    bench: Bench, surface: str
) -> None:
    write_flow(bench)
    lead = session(bench) if surface == "session" else gated(bench)
    lead.call("start_session", agent_id="lead", workflow_id="flow")
    lead.go("gather")
    if surface == "session":
        join_session(lead).tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"})
    held, token = lead.go("build"), lead.token
    assert held.code in ("DECISION_PENDING", "GATE_UNANSWERED")
    given = {"step_manifest": manifest("look"), "variables": {"x": 1}}
    gone = lead.go("__terminal__", abandon=WHY, **given)
    assert gone.warnings == ["The variables of this call were not read: the run is given up."]
    assert gone.body["status"] == "abandoned"
    assert gone.body["message"] == f"The run was abandoned by its agent (lead): {WHY}"
    repeat = {"session_token": token, "activity_id": "__terminal__", "abandon": WHY}
    assert lead.call("next_activity", **repeat, **given).text == gone.text
    outputs = logged_events(lead.ledger.store, _id(lead), "node_output_appended")
    assert [row.event.step for row in outputs] == ["look"]  # type: ignore[attr-defined]
    refused = lead.go("build")
    assert refused.code == "RUN_ABANDONED"
    assert f"abandoned by its agent (lead): {WHY}. " in refused.text.replace("\n", " ")
    assert "start_session" in refused.text
    if surface == "session":
        status = lead.tell("get_workflow_status").body
        assert (status["status"], status["abandoned"]["by"]) == ("abandoned", "lead")
        assert "completed_at" not in status
        assert status["next_action"] == OVER
        assert "open_checkpoint" not in status
        for tool, arguments in (
            ("yield_checkpoint", {"checkpoint_id": "scope"}),
            ("respond_checkpoint", {"option_id": "yes"}),
            ("present_checkpoint", {}),
            ("resume_checkpoint", {}),
        ):
            assert lead.tell(tool, **arguments).code == "RUN_ABANDONED", tool
    else:
        answer = lead.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
        assert answer.code == "RUN_ABANDONED"
    read = lead.tell("get_workflow")
    assert (read.error, "The run was abandoned by its agent (lead)" in read.text) == (False, True)
    named = {"agent_id": "late", "workflow_id": "flow", "session_token": lead.token}
    joined = lead.call("start_session", **named)
    assert "It cannot go on." in joined.warnings[0]
    assert joined.body["next_action"] == OVER
    assert len(given_up(lead.ledger, _id(lead))) == 1
    assert inbox(lead.ledger) == ()


def _id(agent: SessionAgent) -> str:
    if not isinstance(agent.surface, GatedSurface):
        return session_id_of(agent)
    with agent.ledger.store.reading() as reader:
        return reader.sessions(SessionFilter(agent.ledger.owner))[0].session_id


def test_abandon_names_the_end_and_a_stale_token_gives_up_nothing(bench: Bench) -> None:
    lead = start_flow(bench)
    old = lead.token
    assert lead.go("build", abandon=WHY).code == "VALIDATION_ERROR"
    worker = join_session(lead)
    worker.tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"})
    lead.tell("respond_checkpoint", option_id="skip")
    lead.go("finish")
    stale = lead.call("next_activity", session_token=old, activity_id="__terminal__", abandon=WHY)
    assert stale.code == "STALE_TOKEN"
    assert given_up(lead.ledger, session_id_of(lead)) == []


def test_a_parent_is_told_of_a_child_that_was_given_up(bench: Bench) -> None:
    parent = walk_to_finish(start_flow(bench))
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    child.go("only", variables={"risky": True})
    child.go("__terminal__", abandon=WHY)
    assert "children" not in parent.tell("get_workflow_status").body
    returned = logged_events(parent.ledger.store, session_id_of(parent), "child_returned")
    assert [(row.event.outcome, row.event.sets) for row in returned] == [("abandoned", {})]  # type: ignore[attr-defined]
    assert not parent.go("__terminal__").error


def test_a_run_that_was_given_up_starts_no_child(bench: Bench) -> None:
    parent = walk_to_finish(start_flow(bench))
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    parent.go("__terminal__", abandon=WHY)
    refused = session(bench).call(
        "start_session", agent_id="d", workflow_id="child", parent_session_token=parent.token
    )
    assert refused.code == "CONFLICT"
    assert "starts no child" in refused.text
    told = child.go("only")
    assert told.code == "RUN_ABANDONED"
    why = f"the parent was abandoned by its agent (orchestrator): {WHY}."
    assert f"abandoned by its parent (flow): {why}" in told.text.replace("\n", " ")


# children that their parent leaves behind


def left_behind(ledger: Ledger) -> NavigationClient:
    """Start a parent, its child and the child's child; both children wait for the user. Return the parent."""
    client = NavigationClient(NavigationSurface(ledger))
    parent = client.start()["state"]
    state = parent
    for _ in range(2):
        child = client.call("nav_start", workflow_id="build", parent_state=state)
        state = client.act("complete_step", child["state"], step_id="analyze")["state"]
    assert [question.id for question in inbox(ledger)] == ["approve", "approve"]
    client.state = parent
    return client


def check_left_behind(ledger: Ledger, why: str) -> None:
    """The children say so wherever they are read; nothing of them waits for anybody."""
    with ledger.store.reading() as reader:
        rows = reader.sessions(SessionFilter(ledger.owner))
    children = [row for row in rows if row.parent_session]
    assert len(children) == 2
    by_age = sorted(children, key=lambda row: row.parent_session in {child.session_id for child in children})
    below = f"abandoned by its parent (build): the parent was abandoned by its parent (build): {why}"
    for row, text in zip(by_age, (f"abandoned by its parent (build): {why}", below), strict=True):
        status = session_status(WholeSession(ledger, row)).runs[0]
        assert (status.status, status.pending.kind, status.abandoned) == ("abandoned", "nothing", text)
        assert given_up(ledger, row.session_id) == [text]
    assert inbox(ledger) == ()
    listed = {line.session_id for line in run_lines(ledger, RunsWanted(status="abandoned")).lines}
    assert {row.session_id for row in children} <= listed
    for row in rows:
        assert examine(ledger.store, row).health == "healthy"
        with ledger.store.reading() as reader:
            assert list(differences(reader, rebuild(row.session_id, reader.commits(row.session_id)))) == []


@pytest.mark.parametrize("by", ["its parent", "the user"])
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_a_child_that_is_left_behind_is_abandoned_with_its_own_children(
    bench: Bench, kind: str, by: str
) -> None:
    store = open_store(bench.folder) if kind == "sqlite" else open_in(bench.folder)
    write(bench.workflows, FILES)
    library = Library([BUNDLED, Source("configured", bench.workflows)], compile_cache())
    settings = Settings(terms=Terms(decisions="user"))
    ledger = Ledger(store, Keys(bench.folder), library, settings, bench.clock)
    try:
        client = left_behind(ledger)
        if by == "the user":
            by_user(ledger, _root(ledger).session_id)
            check_left_behind(ledger, f"the parent was abandoned by the user, cli: {WHY}")
            return
        state = client.state
        gone_on = client.act("complete_step", step_id="analyze", abandon_children=True)
        assert gone_on["success"]
        assert "Child 'build' was still running; it is abandoned." in str(gone_on["warnings"])
        again = client.act("complete_step", state, step_id="analyze", abandon_children=True)
        assert again == gone_on
        (question,) = inbox(ledger)
        assert question.session_id == _root(ledger).session_id  # the parent has reached its own gate
        by_user(ledger, _root(ledger).session_id)
        check_left_behind(ledger, "the parent went on without it")
    finally:
        store.close()


def _root(ledger: Ledger) -> SessionRow:
    with ledger.store.reading() as reader:
        return next(row for row in reader.sessions(SessionFilter(ledger.owner)) if not row.parent_session)


def test_a_child_that_has_ended_stays_as_it_ended(client: NavigationClient, bench: Bench) -> None:
    """A rewound parent still waits for it; going on without it changes nothing in the child."""
    parent = client.into_build()
    child = client.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    waiting = client.situation(parent["state"])
    client.act("complete_step", child["state"], step_id="aid")
    ended = client.go("__terminal__")
    assert ended["status"] == "completed"
    gone_on = client.act("complete_step", waiting["state"], step_id="prepare", abandon_children=True)
    assert gone_on["success"]
    assert client.situation(ended["state"])["status"] == "completed"
    assert events(bench, "run_abandoned") == []


# navigation


@pytest.fixture
def client(bench: Bench) -> NavigationClient:
    return opened(bench)


def test_navigation_offers_to_give_up_and_replays_it(client: NavigationClient, bench: Bench) -> None:
    start = client.start()
    offered = [offer for offer in start["availableActions"]["optional"] if offer["action"] == "abandon"]
    assert [offer["note"] for offer in offered] == ["<why>"]
    gone = client.act("abandon", note=WHY)
    assert gone["status"] == "abandoned"
    assert gone["message"] == f"The run was abandoned by its agent (unknown): {WHY}"
    assert gone["availableActions"] == {"required": [], "optional": [], "blocked": []}
    assert client.act("abandon", state=start["state"], note=WHY) == gone
    for state in (start["state"], gone["state"]):
        refused = client.act("complete_step", state=state, step_id="analyze", variables={"size": "L"})
        assert refused["error"]["code"] == "WORKFLOW_ABANDONED"
        assert "nav_start" in refused["error"]["next"]
        assert client.situation(state)["status"] == "abandoned"
    assert len(events(bench, "run_abandoned")) == 1
    assert client.act("abandon", state=start["state"])["error"]["code"] == "MISSING_PARAMETER"


def test_a_parent_on_navigation_goes_on_when_its_child_was_given_up(
    client: NavigationClient, bench: Bench
) -> None:
    parent = client.into_build()
    child = client.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    blocked = client.situation(parent["state"])["availableActions"]
    assert blocked["required"] == []
    assert "abandon" in [offer["action"] for offer in blocked["optional"]]
    gone = client.act("abandon", state=child["state"], note=WHY)
    assert gone["message"].endswith("Go on with the parent's state")
    assert client.situation(parent["state"])["availableActions"]["required"]
    assert [event["outcome"] for event in events(bench, "child_returned")] == ["abandoned"]


def test_a_parent_goes_on_when_the_user_gives_up_its_child(client: NavigationClient, bench: Bench) -> None:
    parent = client.into_build()
    client.call("nav_start", workflow_id="helper", parent_state=parent["state"])
    ledger = bench.ledger()
    with ledger.store.reading() as reader:
        sessions = reader.sessions(SessionFilter(ledger.owner))
    child = next(session for session in sessions if session.parent_session)
    by_user(ledger, child.session_id)
    assert client.situation(parent["state"])["availableActions"]["required"]
    assert [event["outcome"] for event in events(bench, "child_returned")] == ["abandoned"]


# processes


@pytest.mark.slow
def test_two_processes_and_a_killed_one_give_up_a_run_once(tmp_path: Path) -> None:
    """The answer is lost with the first server; the second returns it, and a third finds the run over."""
    bench = Bench(tmp_path)
    bench.write(workflow(*steps("first", "last")))
    arguments = ("--workflows", str(bench.workflows))
    with Server(tmp_path, *arguments) as first:
        at = first.call("start_workflow", workflowId="test.flow")
        tokens = {"stateToken": at["stateToken"], "ackToken": at["ackToken"]}
        first.send("tools/call", {"name": "continue_workflow", "arguments": {**tokens, "abandon": WHY}})
        with Server(tmp_path, *arguments) as second:
            gone = second.call("continue_workflow", **tokens, abandon=WHY)
        answer = first.receive()["result"]["structuredContent"]
    assert (gone["status"], answer["status"]) == ("abandoned", "abandoned")
    assert gone["stateToken"] == answer["stateToken"]
    with Server(tmp_path, *arguments) as third:
        fresh = third.call("continue_workflow", stateToken=at["stateToken"])
        assert fresh["abandoned"]["reason"] == WHY
    assert len(given_up(bench.ledger(), at["session"]["sessionId"])) == 1
    bench.close()


@pytest.mark.slow
@pytest.mark.parametrize("era", get_args(Era))
@pytest.mark.parametrize("surface", ["session", "gated", "navigation"])
def test_a_server_killed_after_it_answered_has_given_up_the_run_once(
    bench: Bench, surface: str, era: Era
) -> None:
    """The question is open; the same call to another process returns the same answer, and nothing goes on."""
    write(bench.workflows, FILES if surface == "navigation" else FLOW)
    arguments = ("--workflows", str(bench.workflows), "--surface", surface)
    with Server(bench.folder, *arguments, era=era) as first:
        tool, abandoning, going_on = open_question(first, surface)
        answer = first.call(tool, **abandoning)
        first.kill()
    assert answer["status"] == "abandoned"
    assert WHY in answer["message"]
    with Server(bench.folder, *arguments, era=era) as second:
        assert second.call(tool, **abandoning) == answer
        refused = second.call(tool, **going_on)
        named = refused["error"]["code"] if surface == "navigation" else refused["code"]
        assert named == ("WORKFLOW_ABANDONED" if surface == "navigation" else "RUN_ABANDONED")
        assert WHY in refused["_text"]
        second.kill()
    ledger = bench.ledger()
    with ledger.store.reading() as reader:
        (row,) = reader.sessions(SessionFilter(ledger.owner))
    assert len(given_up(ledger, row.session_id)) == 1
    assert inbox(ledger) == ()
    assert examine(ledger.store, row).health == "healthy"


def open_question(server: Server, surface: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Take a run to an open question; return the tool, how it abandons, and how it would go on."""
    if surface == "navigation":
        start = server.call("nav_start", workflow_id="build")["state"]
        state = server.call("nav_action", state=start, action="complete_step", step_id="analyze")["state"]
        answering = {"action": "respond_to_checkpoint", "checkpoint_id": "approve", "option_id": "yes"}
        abandoning = {"state": state, "action": "abandon", "note": WHY}
        return "nav_action", abandoning, {"state": state, **answering}
    started = server.call("start_session", agent_id="lead", workflow_id="flow")
    entered = server.call("next_activity", session_token=started["session_token"], activity_id="gather")
    token = entered["session_token"]
    if surface == "session":
        token = server.call("yield_checkpoint", session_token=token, checkpoint_id="scope")["session_token"]
    abandoning = {"session_token": token, "activity_id": "__terminal__", "abandon": WHY}
    return "next_activity", abandoning, {"session_token": token, "activity_id": "build"}


@pytest.mark.slow
def test_the_command_line_gives_up_a_run(tmp_path: Path) -> None:
    with cli_agent(tmp_path) as one:
        session_id = to_the_gate(one)
        ran = interlock(tmp_path, "abandon", session_id, "--reason", WHY)
        assert (ran.code, ran.out.endswith(f"was abandoned by the user, cli: {WHY}.\n")) == (0, True)
        refused = one.go_on()
        assert WHY in refused["message"]
    again = interlock(tmp_path, "abandon", session_id, "--reason", "other", "--json")
    assert (again.code, again.json["status"], again.json["reason"]) == (0, "abandoned", WHY)
    assert interlock(tmp_path, "inbox", "--json").json["questions"] == []
    status = interlock(tmp_path, "status", session_id)
    assert (status.code, WHY in status.out) == (0, True)
    assert "preferred tip, abandoned" in interlock(tmp_path, "tree", session_id).out
    listed = interlock(tmp_path, "sessions", "--status", "abandoned", "--json").json["sessions"]
    assert [line["sessionId"] for line in listed] == [again.json["sessionId"]]
    played = Terminal(tmp_path, "play", session_id)
    assert played.until(WHY)
    assert played.end()[0] == 0
    assert interlock(tmp_path, "abandon", "nowhere").code == 3
    assert interlock(tmp_path, "abandon", session_id, "--run", "run_none").code == 3


@pytest.mark.slow
def test_postgres_keeps_it_too(tmp_path: Path) -> None:
    require_postgres()
    schema = f"abandoned_{uuid4().hex[:8]}"
    url = shared_server().in_schema(schema)
    try:
        with cli_agent(tmp_path, "--store", url) as one:
            session_id = to_the_gate(one)
            ran = interlock(tmp_path, "abandon", session_id, "--reason", WHY, INTERLOCK_STORE=url)
            assert ran.code == 0, ran.err
            assert WHY in one.go_on()["message"]
        assert interlock(tmp_path, "inbox", "--json", INTERLOCK_STORE=url).json["questions"] == []
        assert interlock(tmp_path, "doctor", INTERLOCK_STORE=url).code == 0
    finally:
        shared_server().execute(f"DROP SCHEMA {schema} CASCADE")
