"""Lost races: a call that another one overtook is run again from its read, so that both count, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.modes import set_session_mode
from interlock.ledger.log.health import examine
from interlock.ledger.log.rebuild import differences, rebuild
from interlock.ledger.retention import collect, set_keep
from interlock.ledger.retry import MOST_TRIES, until_recorded
from interlock.store.protocol import (
    Changes,
    LoadedRows,
    Reader,
    Store,
    StoreBusy,
    StoreConflict,
    TraceRow,
    Writer,
)
from support.harness import Agent, Bench, FormAnswer, gate, steps, workflow
from support.log import logged_events
from support.navigation_client import events, opened
from support.session_agents import FLOW, join_session, start_flow, write_flow

LOOP = {"type": "for", "count": 200, "maxIterations": 200}
LONG = workflow({"id": "again", "type": "loop", "title": "Again", "loop": LOOP, "body": steps("once")})


class Overtaken:
    """A store in which somebody else always gets in between a call's read and its write, a few times."""

    def __init__(self, store: Store, *rivals: Callable[[], object]) -> None:
        self.store = store
        self.rivals = list(rivals)

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        return self.store.load(handle, node=node, attempt=attempt)

    def append(self, *changes: Changes) -> None:
        if self.rivals:
            self.rivals.pop(0)()
        self.store.append(*changes)

    def trace(self, rows: Sequence[TraceRow]) -> None:
        self.store.trace(rows)

    def reading(self) -> AbstractContextManager[Reader]:
        return self.store.reading()

    def writing(self) -> AbstractContextManager[Writer]:
        return self.store.writing()

    def close(self) -> None:
        self.store.close()


@pytest.fixture
def agents(bench: Bench) -> tuple[Agent, Agent]:
    """Two processes, as it were, on one data folder."""
    bench.write(workflow(*steps("first", "second"), gate("which", "left", "right"), *steps("last")))
    return bench.agent(), bench.agent()


def overtake(agent: Agent, *rivals: Callable[[], object]) -> None:
    agent.ledger.store = Overtaken(agent.ledger.store, *rivals)


def keep_note(agent: Agent, at: FormAnswer, text: str) -> FormAnswer:
    tokens = {name: at[name] for name in ("stateToken", "checkpointToken")}
    return agent.call("checkpoint_workflow", **tokens, output={"notesMarkdown": text})


def sound(agent: Agent, session_id: str) -> None:
    store = agent.ledger.store
    with store.reading() as reader:
        session = reader.session(session_id)
        assert session is not None
        assert list(differences(reader, rebuild(session_id, reader.commits(session_id)))) == []
    assert examine(store, session).health == "healthy"


def test_a_call_that_was_overtaken_by_another_is_run_again(agents: tuple[Agent, Agent]) -> None:
    ours, theirs = agents
    started = ours.start("test.flow")
    overtake(ours, lambda: keep_note(theirs, started, "theirs"))
    second = ours.ack("ours", at=started)
    assert second["pending"]["stepId"] == "second"
    assert [entry["notes"] for entry in theirs.look(second)["recap"]["entries"]] == ["theirs", "ours"]
    sound(ours, started["session"]["sessionId"])


def test_the_same_attempt_made_by_two_at_once_counts_once(agents: tuple[Agent, Agent]) -> None:
    ours, theirs = agents
    started = ours.start("test.flow")
    overtake(ours, lambda: theirs.ack("the same", at=started))
    answer = ours.ack("the same", at=started)
    assert answer == theirs.last
    session_id = started["session"]["sessionId"]
    assert len(logged_events(ours.ledger.store, session_id, "advance_recorded")) == 1
    sound(ours, session_id)


def test_two_forks_of_one_node_at_once_are_two_branches(agents: tuple[Agent, Agent]) -> None:
    ours, theirs = agents
    started = ours.start("test.flow")
    ours.ack("first", at=started)
    one, other = ours.look(started), theirs.look(started)
    assert one["ackToken"] != other["ackToken"]
    overtake(ours, lambda: theirs.ack("their branch", at=other))
    mine = ours.ack("my branch", at=one)
    assert mine["stateToken"] != theirs.last["stateToken"]
    assert len(ours.look(started)["branches"]["children"]) == 3
    sound(ours, started["session"]["sessionId"])


def test_a_call_is_overtaken_several_times_and_still_gets_through(agents: tuple[Agent, Agent]) -> None:
    ours, theirs = agents
    started = ours.start("test.flow")
    session_id = started["session"]["sessionId"]
    modes = [PRESETS[mode] for mode in ("stop", "never-stop", "guided", "stop", "never-stop")]
    overtake(
        ours, *(lambda mode=mode: set_session_mode(theirs.ledger, session_id, mode, "cli") for mode in modes)
    )
    assert ours.ack("at last", at=started)["preferences"] == {
        "autonomy": modes[-1].autonomy,
        "riskPolicy": modes[-1].risk_policy,
    }
    changes = logged_events(ours.ledger.store, session_id, "preferences_changed")
    assert [change.node for change in changes] == [None, 0] * len(modes)  # for later runs, and at the tip
    assert len(logged_events(ours.ledger.store, session_id, "step_completed")) == 1
    sound(ours, session_id)


def test_a_mode_that_was_overtaken_attaches_to_the_new_tip(agents: tuple[Agent, Agent]) -> None:
    ours, theirs = agents
    started = ours.start("test.flow")
    overtake(ours, lambda: theirs.ack(at=started))
    assert set_session_mode(ours.ledger, started["session"]["sessionId"], PRESETS["stop"], "cli") == 1
    assert theirs.look(theirs.last)["preferences"]["autonomy"] == PRESETS["stop"].autonomy
    assert theirs.look(started)["preferences"]["autonomy"] == PRESETS["guided"].autonomy


@pytest.mark.parametrize(("calls", "outcome"), [(1, "abandoned"), (2, "completed")])
def test_a_child_that_moves_while_its_parent_leaves_it_behind(bench: Bench, calls: int, outcome: str) -> None:
    """It is abandoned where it is by then; one that has ended meanwhile has returned to its parent."""
    ours, theirs = opened(bench), opened(bench)
    parent = ours.into_build()
    child = theirs.call("nav_start", workflow_id="helper", parent_state=parent["state"])

    def go_on() -> None:
        theirs.act("complete_step", child["state"], step_id="aid")
        if calls == 2:
            theirs.go("__terminal__")

    ours.surface.ledger.store = Overtaken(ours.surface.ledger.store, go_on)
    done = ours.act("complete_step", parent["state"], step_id="prepare", abandon_children=True)
    assert done["success"], done
    assert theirs.situation()["status"] == outcome
    assert [event["outcome"] for event in events(bench, "child_returned")] == [outcome]
    assert len(events(bench, "run_abandoned")) == (outcome == "abandoned")


def test_a_run_that_is_started_while_another_one_starts_gets_its_own_number(
    agents: tuple[Agent, Agent],
) -> None:
    ours, theirs = agents
    token = ours.call("start_session", title="Two at once")["sessionToken"]
    arguments = {"workflowId": "test.flow", "sessionToken": token}
    overtake(ours, lambda: theirs.call("start_workflow", **arguments))
    mine = ours.call("start_workflow", **arguments)
    assert mine["session"]["runId"] != theirs.last["session"]["runId"]
    with ours.ledger.store.reading() as reader:
        assert [run.run for run in reader.runs(mine["session"]["sessionId"])] == [0, 1]
    sound(ours, mine["session"]["sessionId"])


def test_a_session_that_is_removed_meanwhile_is_told_and_not_brought_back(
    agents: tuple[Agent, Agent],
) -> None:
    ours, theirs = agents
    started = ours.start("test.flow")
    overtake(ours, lambda: collect(theirs.ledger.store, before=2**60, now=1))
    assert ours.ack(at=started)["code"] == "TOKEN_UNKNOWN_NODE"
    with ours.ledger.store.reading() as reader:
        assert reader.stray_sessions() == reader.session_ids("", 9) == []


def test_a_keep_mark_that_is_set_meanwhile_stays(agents: tuple[Agent, Agent]) -> None:
    ours, theirs = agents
    started = ours.start("test.flow")
    session_id = started["session"]["sessionId"]
    overtake(ours, lambda: set_keep(theirs.ledger.store, session_id, True))
    ours.ack(at=started)
    assert not collect(theirs.ledger.store, before=2**60, now=1)
    sound(ours, session_id)


def test_notes_of_a_session_that_were_sent_by_two_at_once_are_kept_once(agents: tuple[Agent, Agent]) -> None:
    ours, theirs = agents
    token = ours.call("start_session", title="Notes")["sessionToken"]
    arguments = {"sessionToken": token, "output": {"notesMarkdown": "an idea"}}
    overtake(ours, lambda: theirs.call("checkpoint_workflow", **arguments))
    kept = ours.call("checkpoint_workflow", **arguments)
    session_id = kept["session"]["sessionId"]
    assert len(logged_events(ours.ledger.store, session_id, "node_output_appended")) == 1


def test_two_agents_who_join_at_once_have_handles_of_their_own(bench: Bench) -> None:
    write_flow(bench, FLOW)
    lead = start_flow(bench)
    lead.ledger.store = Overtaken(lead.ledger.store, lambda: join_session(lead, "faster"))
    slower = join_session(lead, "slower")
    assert not slower.tell("get_workflow").error
    with lead.ledger.store.reading() as reader:
        (session_id,) = reader.session_ids("", 9)
        agents = [row.agent for row in reader.handles(session_id)]
    assert {"faster", "slower"} <= set(agents)


def test_a_call_that_always_loses_says_that_the_session_is_busy() -> None:
    tries = 0

    def lose() -> None:
        nonlocal tries
        tries += 1
        raise StoreConflict

    with pytest.raises(StoreBusy):
        until_recorded(lose)()
    assert tries == MOST_TRIES


def test_threads_on_one_run_lose_and_double_nothing(bench: Bench) -> None:
    """Every thread has its own connection, as a process has; all use the same tokens."""
    bench.write(LONG)
    workers = [bench.agent() for _ in range(3)]
    here = workers[0].start("test.flow")
    with ThreadPoolExecutor(len(workers)) as pool:
        for number in range(15):
            calls = [pool.submit(worker.ack, f"step {number}", at=here) for worker in workers]
            answers = [call.result() for call in calls]
            assert answers[0] == answers[1] == answers[2]
            here = answers[0]
    session_id = here["session"]["sessionId"]
    assert len(logged_events(workers[0].ledger.store, session_id, "step_completed")) == 15
    sound(workers[0], session_id)
