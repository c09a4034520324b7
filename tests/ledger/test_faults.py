"""Faults of the store, at every point of every command: the same call again, and all is as if none had been.

Each story is told once without a fault, then once for every crash point it passes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from interlock.core.run.commands import Terms
from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.decisions.modes import set_global_mode, set_session_mode
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import kind_of
from interlock.ledger.log.health import examine
from interlock.ledger.log.rebuild import differences, rebuild
from interlock.ledger.log.records import AdvanceRecorded
from interlock.store.protocol import SessionFilter, SessionRow, Store, StoreUnavailable
from interlock.store.sqlite.store import SqliteStore, open_store
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import Surface, call_tool
from support.faults import At, Watched
from support.harness import Bench, decision, gate, steps, workflow
from support.log import logged_events
from support.paths import FIXTURES
from support.proof import SEED, line, times
from support.server import INITIALIZE, Server, ServerGone
from support.session_agents import FLOW as ACTIVITIES
from support.session_agents import manifest, write_flow

CRASHING = FIXTURES / "crashing_server.py"
DEAD = 57  # its exit code

SIZE = {"kind": "test.size", "size": 1}
STEPS = workflow(
    *steps("first"),
    {
        "id": "sized",
        "title": "Sized",
        "prompt": "x",
        "output": {"schema": {"type": "object", "required": ["size"]}, "example": SIZE},
    },
    gate("ok", "yes", "no"),
    *steps("last"),
)
FormAnswer = dict[str, Any]
Log = list[tuple[str, str, str]]
STANDS = ("CHECKPOINT_ALREADY_ACTIVE", "CHECKPOINT_NOT_YIELDED")  # it was done, and nothing is lost
BEGINNINGS = ("start_workflow", "start_session", "nav_start")


class Caller:
    """An agent that sends a call again, unchanged, when it hears of a failure."""

    def __init__(self, surface: Surface, ledger: Ledger, strike: At) -> None:
        self.surface = surface
        self.ledger = ledger
        self.strike = strike
        self.orphans = 0
        self.ended = False

    def __call__(self, tool: str, **arguments: Any) -> FormAnswer:
        answer = self._once(tool, arguments)
        if self.strike.struck and not self.ended:
            self.ended = True
            assert answer["_error"], answer
            begins = tool in BEGINNINGS and "session_token" not in arguments
            self.orphans += begins and self.strike.struck == "committed"
            answer = self._once(tool, arguments)
            if self.strike.struck == "committed" and answer.get("code") in STANDS:
                return answer
        assert not answer["_error"], (tool, self.strike.struck, answer)
        return answer

    def _once(self, tool: str, arguments: Mapping[str, Any]) -> FormAnswer:
        reply = call_tool(self.surface, tool, arguments, Call(Client("test-client")))
        assert isinstance(reply, Reply)
        raw = reply.structured
        fields = msgspec.json.decode(bytes(raw)) if isinstance(raw, msgspec.Raw) else dict(raw or {})
        if not fields and reply.text.startswith("{"):  # navigation sends its JSON once, as text
            fields = msgspec.json.decode(reply.text)
        failed = reply.is_error or fields.get("success") is False
        return {**fields, "_error": failed, "_text": reply.text, "_meta": dict(reply.meta)}

    def again(self, act: Callable[[], object]) -> None:
        """Do something that no tool does, twice if it fails."""
        try:
            act()
        except StoreUnavailable:
            self.ended = True
            with suppress(LedgerError):  # it was recorded the first time, and the fault came after
                act()


def pair(at: FormAnswer, kind: str = "ackToken") -> FormAnswer:
    return {"stateToken": at["stateToken"], kind: at[kind]}


def execution(call: Caller) -> None:
    """Advance, be blocked, get through, checkpoint, rewind, fork, note, start a second run."""
    start = call("start_workflow", workflowId="test.flow", context={"goal": "x"})
    second = call("continue_workflow", **pair(start), output={"notesMarkdown": "one"})
    blocked = call("continue_workflow", **pair(second), context={"colour": "red"})
    assert blocked["kind"] == "blocked"
    third = call("continue_workflow", **pair(blocked), output={"artifacts": [SIZE]})
    call("checkpoint_workflow", **pair(third, "checkpointToken"), output={"notesMarkdown": "kept"})
    fresh = call("continue_workflow", stateToken=start["stateToken"])
    call("continue_workflow", **pair(fresh), output={"notesMarkdown": "another way"})
    last = call("continue_workflow", **pair(third), output={"artifacts": [decision("ok", "yes")]})
    assert call("continue_workflow", **pair(last))["isComplete"]


def notes(call: Caller) -> None:
    """Notes without a run."""
    token = call("start_session", title="Work")["sessionToken"]
    artifacts = [{"kind": "note"}, {"kind": "note"}]
    call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": "a", "artifacts": artifacts})
    call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": "b"})


def people(call: Caller) -> None:
    """The user's own doings: a mode for all, a mode for one session, a decision in the inbox."""
    call.again(lambda: set_global_mode(call.ledger, PRESETS["stop"]))
    start = call("start_workflow", workflowId="test.flow")
    second = call("continue_workflow", **pair(start))
    third = call("continue_workflow", **pair(second), output={"artifacts": [SIZE]})
    session_id = start["session"]["sessionId"]
    (question,) = [question for question in inbox(call.ledger) if question.session_id == session_id]
    call.again(lambda: answer_question(call.ledger, question, "no"))
    call.again(lambda: set_session_mode(call.ledger, session_id, PRESETS["guided"], "cli"))
    last = call("continue_workflow", **pair(third))
    assert last["pending"]["stepId"] == "last"


def navigation(call: Caller) -> None:
    here = call("nav_start", workflow_id="test.flow")
    here = call("nav_action", state=here["state"], action="complete_step", step_id="first")
    output = {"artifacts": [SIZE]}
    here = call("nav_action", state=here["state"], action="complete_step", step_id="sized", output=output)
    answer = {"action": "respond_to_checkpoint", "checkpoint_id": "ok", "option_id": "yes"}
    here = call("nav_action", state=here["state"], **answer)
    here = call("nav_action", state=here["state"], action="complete_step", step_id="last")
    targets = here["availableActions"]["required"]
    call("nav_action", state=here["state"], action="transition", activity_id=targets[0]["activity"])


def token(answer: FormAnswer) -> str:
    found = answer["_meta"]["session_token"]
    assert isinstance(found, str)
    return found


def session(call: Caller) -> None:
    """Two agents, one head: enter, yield, respond, resume, go on."""
    lead = token(call("start_session", agent_id="lead", workflow_id="flow"))
    lead = token(call("next_activity", session_token=lead, activity_id="gather"))
    worker = token(call("start_session", agent_id="worker", session_token=lead))
    call("yield_checkpoint", session_token=worker, checkpoint_id="scope")
    shown = call("present_checkpoint", session_token=worker)["_text"]
    handle = shown.rpartition("checkpoint_handle: ")[2].split()[0]
    call("respond_checkpoint", checkpoint_handle=handle, session_token=lead, option_id="yes")
    call("resume_checkpoint", session_token=worker)
    done = manifest("look", "weigh")
    call("next_activity", session_token=lead, activity_id="build", step_manifest=done)


def gated(call: Caller) -> None:
    head = token(call("start_session", agent_id="lead", workflow_id="flow"))
    head = token(call("next_activity", session_token=head, activity_id="gather"))
    head = token(call("respond_checkpoint", session_token=head, checkpoint_id="scope", option_id="yes"))
    head = token(
        call("respond_checkpoint", session_token=head, checkpoint_id="danger", condition_not_met=True)
    )
    call("next_activity", session_token=head, activity_id="build", step_manifest=manifest("look", "weigh"))


Story = Callable[[Caller], None]
STORIES: list[tuple[Story, Callable[[Ledger], Surface]]] = [
    (execution, ExecutionSurface),
    (notes, ExecutionSurface),
    (people, ExecutionSurface),
    (navigation, NavigationSurface),
    (session, SessionSurface),
    (gated, GatedSurface),
]


class Stage:
    """A store on which a story is told again and again, each time with its own fault."""

    def __init__(self, folder: Path, story: Story, surface: Callable[[Ledger], Surface]) -> None:
        bench = Bench(folder)
        bench.write(STEPS)
        write_flow(bench, ACTIVITIES)
        self.story = story
        self.ledger = bench.ledger(terms=Terms(min_response_ms=0))
        self.surface = surface(self.ledger)
        store = self.ledger.store
        assert isinstance(store, SqliteStore)
        self.store = store
        self.seen: set[str] = set()

    def tell(self, number: int) -> tuple[Caller, list[Log]]:
        """Tell the story with a fault at that point; give the logs that it left."""
        strike = At(number)
        self.ledger.store = Watched(self.store, strike)
        caller = Caller(self.surface, self.ledger, strike)
        self.story(caller)
        return caller, self.new_logs()

    def new_logs(self) -> list[Log]:
        with self.store.reading() as reader:
            sessions = reader.sessions(SessionFilter(limit=9999))
        return sorted(log(self.store, session) for session in sessions if self._is_new(session))

    def _is_new(self, session: SessionRow) -> bool:
        new = session.session_id not in self.seen
        self.seen.add(session.session_id)
        return new


def log(store: Store, session: SessionRow) -> Log:
    """What the log tells, without the calls that were only traced; it must be sound and rebuildable."""
    assert examine(store, session).health == "healthy"
    with store.reading() as reader:
        rows = rebuild(session.session_id, reader.commits(session.session_id))
        assert list(differences(reader, rows)) == []
    events = [(kind_of(row.event), row) for row in logged_events(store, session.session_id)]
    return [(kind, str(row.run), str(row.node)) for kind, row in events if kind != "call_traced"]


@pytest.mark.parametrize(("story", "surface"), STORIES, ids=[story.__name__ for story, _ in STORIES])
def test_a_call_that_failed_succeeds_when_sent_again_and_counts_once(
    tmp_path: Path, story: Story, surface: Callable[[Ledger], Surface]
) -> None:
    """Rule 43: a command is one transaction, so a fault anywhere leaves all of it or nothing."""
    stage = Stage(tmp_path, story, surface)
    _, expected = stage.tell(0)
    points, _ = stage.tell(0)
    for number in range(1, points.strike.passed + 1):
        caller, found = stage.tell(number)
        assert caller.strike.struck
        for item in expected:
            assert item in found, caller.strike.struck
            found.remove(item)
        assert len(found) == caller.orphans
    stage.store.close()


@pytest.mark.slow
@pytest.mark.proof
def test_faults_at_random_points_of_random_stories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, faults = Random(SEED), times(1000)
    stages: list[tuple[Stage, list[Log], int]] = []
    for number, (story, surface) in enumerate(STORIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        stage = Stage(folder, story, surface)
        _, expected = stage.tell(0)
        stages.append((stage, expected, stage.tell(0)[0].strike.passed))
    for _ in range(faults):
        stage, expected, points = chance.choice(stages)
        caller, found = stage.tell(chance.randrange(points) + 1)
        assert caller.strike.struck
        missing = [item for item in expected if item not in found]
        assert missing == []
        assert len(found) == len(expected) + caller.orphans
    for stage, _, _ in stages:
        stage.store.close()
    with capsys.disabled():
        print(line("disk faults", faults=faults, lost=0, doubled=0))


def test_a_fault_while_the_server_is_idle_loses_neither_words_nor_traces(tmp_path: Path) -> None:
    """Nobody waits for an idle server, so its errors are kept quiet and its work is done the next time."""
    bench = Bench(tmp_path)
    write_flow(bench, ACTIVITIES)
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    store = ledger.store
    assert isinstance(store, SqliteStore)
    doubled = 0
    for number in count(1):
        strike = At(number)
        call = Caller(SessionSurface(ledger), ledger, At(0))
        lead = token(call("start_session", agent_id="lead", workflow_id="flow"))
        call("get_workflow", session_token=lead)
        ledger.store = Watched(store, strike)
        ledger.idle()
        ledger.store = store
        doubled += strike.struck == "committed" and bool(ledger.unwritten)
        ledger.idle()
        with store.reading() as reader:
            assert reader.unindexed(9) == []
            sessions = reader.session_ids("", 999)
            kept = sum(len(reader.traces(session_id, -1, 999, 9)) for session_id in sessions)
        assert kept == number + doubled, strike.struck
        assert store.integrity() == []
        if not strike.struck:
            break
    assert number > 5
    assert doubled == 1  # only where the write has happened and nobody can know


class Mortal(Server):
    """The real server, which drops dead at the given crash point."""

    def __init__(self, data: Path, point: int) -> None:
        command = [sys.executable, str(CRASHING), str(point), "--data-dir", str(data)]
        command += ["--workflows", str(data / "workflows-under-test")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.era = "handshake"
        self._id = 0
        self.request("initialize", INITIALIZE)


class Survivor:
    """An agent whose server may die once: it starts another and sends the same call again."""

    def __init__(self, data: Path, point: int) -> None:
        self.data = data
        self.server: Server = Mortal(data, point)
        self.died_in = ""

    def __call__(self, tool: str, **arguments: Any) -> FormAnswer:
        try:
            answer = self.server.call(tool, **arguments)
        except ServerGone:
            self.server.kill()
            assert self.server.process.returncode == DEAD
            self.died_in = tool
            self.server = Mortal(self.data, 0)
            answer = self.server.call(tool, **arguments)
        assert "code" not in answer, answer
        return answer


def crash_story(call: Survivor) -> FormAnswer:
    start = call("start_workflow", workflowId="test.flow", context={"goal": "x"})
    second = call("continue_workflow", **pair(start), output={"notesMarkdown": "one"})
    blocked = call("continue_workflow", **pair(second), output={"notesMarkdown": "two"})
    call("checkpoint_workflow", **pair(blocked, "checkpointToken"), output={"notesMarkdown": "kept"})
    return call("continue_workflow", **pair(blocked), output={"notesMarkdown": "three", "artifacts": [SIZE]})


@pytest.mark.slow
def test_a_process_that_dies_at_any_point_of_a_command_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Everything acknowledged is there after a restart, the call in flight is there or cleanly retried."""
    for point in count(1):
        folder = tmp_path / str(point)
        folder.mkdir()
        Bench(folder).write(STEPS)
        agent = Survivor(folder, point)
        last = crash_story(agent)
        recap = agent("continue_workflow", stateToken=last["stateToken"])["recap"]
        assert [entry["notes"] for entry in recap["entries"]] == ["one", "two", "kept", "three"]
        agent.server.kill()
        assert advances(folder, last) == ["advanced", "blocked", "noted", "advanced"]
        if not agent.died_in:
            break
    assert point > 30


def advances(folder: Path, at: FormAnswer) -> list[str]:
    """The outcome of every attempt that is recorded; the log must be sound."""
    store = open_store(folder)
    with store.reading() as reader:
        session = reader.session(at["session"]["sessionId"])
    assert session is not None
    assert examine(store, session).health == "healthy"
    events = [row.event for row in logged_events(store, session.session_id, "advance_recorded")]
    store.close()
    return [event.outcome for event in events if isinstance(event, AdvanceRecorded)]
