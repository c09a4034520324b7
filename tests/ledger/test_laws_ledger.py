"""Laws of the ledger: whatever chats do with their tokens, the log keeps every step once and no branch moves.

A machine plays the execution surface against a small model: a tree of nodes with notes and modes.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from interlock.core.run.preferences import PRESETS, Mode, Preferences, stricter
from interlock.ledger.decisions.modes import set_session_mode
from interlock.ledger.log.health import examine
from interlock.ledger.runs.position import Position, tip_of
from interlock.store.protocol import SessionFilter
from support.harness import Agent, Bench, FormAnswer, decision, gate, steps, workflow
from support.proof import times

ROUND = {"kind": "test.size", "size": 1}
SIZED = {"schema": {"type": "object", "required": ["size"]}, "example": ROUND}
FLOW = workflow(
    *steps("first"),
    {"id": "sized", "title": "Sized", "prompt": "Measure {{colour}}.", "output": SIZED},
    {
        "id": "again",
        "type": "loop",
        "title": "Again",
        "loop": {"type": "for", "count": 2, "maxIterations": 2},
        "body": [*steps("inner"), gate("ok", "yes", "no")],
    },
    {"id": "last", "title": "Last", "prompt": "x", "requireConfirmation": True},
)
NOTES = st.sampled_from(["", "short", "long " * 800])  # two of the long ones fill a recap


class Node:
    """What the model knows of a node; `noted` is what was written down there, with where it led."""

    def __init__(self, answer: FormAnswer, parent: Node | None, preferences: Preferences) -> None:
        self.token = answer["stateToken"]
        self.session = answer["session"]["sessionId"]
        self.pending = answer["pending"]["stepId"] if answer["pending"] else None
        self.complete = answer["isComplete"]
        self.parent = parent
        self.preferences = preferences
        self.children: list[Node] = []
        self.noted: list[Noted] = []

    def path(self) -> list[Node]:
        return [*(self.parent.path() if self.parent else []), self]

    def recap(self) -> list[str]:
        nodes = self.path()
        pairs = zip(nodes, [*nodes[1:], None], strict=True)
        return [note.text for node, towards in pairs for note in node.noted if note.led(towards)]


class Noted:
    """Notes of one attempt. A blocked one leads where its successors lead; a checkpoint goes with all."""

    def __init__(self, text: str, *, everywhere: bool = False) -> None:
        self.text = text
        self.everywhere = everywhere
        self.child: Node | None = None
        self.blocked = False

    def led(self, towards: Node | None) -> bool:
        if self.everywhere:
            return True
        return self.blocked if towards is None else self.child is towards


class Call:
    """A call that was made, and the answer to it."""

    def __init__(self, tool: str, arguments: dict[str, Any], agent: Agent) -> None:
        self.tool = tool
        self.arguments = arguments
        self.answer = agent.call(tool, **arguments)
        self.text = agent.text


class Chats(RuleBasedStateMachine):
    """Agents with old and new tokens on one data folder."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.bench = Bench(self.folder)
        self.bench.write(FLOW)
        self.agent = self.bench.agent()
        self.nodes: dict[str, Node] = {}
        self.answers: list[FormAnswer] = []
        self.calls: list[Call] = []
        self.used: dict[tuple[str, str], Call] = {}
        self.chains: dict[tuple[str, str], list[Noted]] = {}
        self.tips: dict[str, Node] = {}
        self.number = 0

    def teardown(self) -> None:
        if not hasattr(self, "agent"):
            return
        self.everything_says_what_it_said()
        self.every_log_is_sound()
        self.agent.ledger.store.close()
        shutil.rmtree(self.folder)

    # what chats do

    @precondition(lambda self: len(self.tips) < 2)
    @rule()
    def start(self) -> None:
        answer = Call("start_workflow", {"workflowId": "test.flow"}, self.agent).answer
        node = Node(answer, None, PRESETS["guided"])
        self.nodes[node.token] = self.tips[node.session] = node
        self.answers.append(answer)

    @precondition(lambda self: self.answers)
    @rule(data=st.data(), notes=NOTES, right=st.booleans(), delta=st.booleans())
    def acknowledge(self, data: st.DataObject, notes: str, right: bool, delta: bool) -> None:
        """With any tokens ever given out: the newest, an old one, one that was used."""
        at = self.drawn(data)
        if "ackToken" not in at:
            return
        arguments: dict[str, Any] = {"stateToken": at["stateToken"], "ackToken": at["ackToken"]}
        arguments["output"] = {
            "notesMarkdown": self.noted(notes),
            "artifacts": [ROUND, decision("ok", "yes")] if right else [],
        }
        if delta:
            arguments["context"] = {"colour": f"colour {self.number}"}
        self.advance("continue_workflow", arguments, at["ackToken"])

    @precondition(lambda self: self.answers)
    @rule(data=st.data(), notes=NOTES.filter(bool))
    def checkpoint(self, data: st.DataObject, notes: str) -> None:
        at = self.drawn(data)
        arguments = {"stateToken": at["stateToken"], "checkpointToken": at["checkpointToken"]}
        output = {"notesMarkdown": self.noted(notes)}
        self.advance("checkpoint_workflow", {**arguments, "output": output}, at["checkpointToken"])

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def rehydrate(self, data: st.DataObject) -> None:
        """Rule 3: nothing is written; an unused node gives its own token again, a used one a fresh one."""
        at = self.drawn(data)
        node = self.nodes[at["stateToken"]]
        with self.nothing_written():
            answer = self.agent.look(at)
        self.compare(node, answer)
        self.answers.append(answer)

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        """Rule 7: the same call again, the same bytes again, and nothing written."""
        before = data.draw(st.sampled_from(self.calls))
        with self.nothing_written():
            again = Call(before.tool, before.arguments, self.agent)
        assert (again.text, again.answer) == (before.text, before.answer)

    @rule()
    def restart(self) -> None:
        self.agent.ledger.store.close()
        self.agent = self.bench.agent()

    @precondition(lambda self: self.tips)
    @rule(data=st.data(), mode=st.sampled_from(list(PRESETS)))
    def change_mode(self, data: st.DataObject, mode: Mode) -> None:
        """Rule 29: a change attaches to all current tips; above them only what is tighter does."""
        session, chosen = data.draw(st.sampled_from(list(self.tips))), PRESETS[mode]
        assert isinstance(set_session_mode(self.agent.ledger, session, chosen, "cli"), int)
        for node in self.nodes.values():
            if node.session == session and not node.complete:
                node.preferences = stricter(node.preferences, chosen) if node.children else chosen

    # what the model makes of it

    def drawn(self, data: st.DataObject) -> FormAnswer:
        """Return the newest answer as often as any other: a branch must grow before its recap is cut."""
        answer: FormAnswer = data.draw(st.sampled_from(self.answers[-1:]) | st.sampled_from(self.answers))
        return answer

    def noted(self, notes: str) -> str:
        self.number += 1
        return f"{notes} {self.number}" if notes else ""

    def advance(self, tool: str, arguments: dict[str, Any], token: str) -> None:
        node, key = self.nodes[arguments["stateToken"]], (arguments["stateToken"], token)
        if key in self.used:
            with self.nothing_written():
                again = Call(tool, arguments, self.agent)
            self.same_in_all_but_meta(again, self.used[key])
            return
        call = Call(tool, arguments, self.agent)
        assert not call.answer["_error"], call.answer
        self.used[key] = call
        self.calls.append(call)
        self.answers.append(call.answer)
        self.record(node, key, call)

    def same_in_all_but_meta(self, again: Call, before: Call) -> None:
        assert again.text.endswith(before.text)
        assert (again.text == before.text) == (again.arguments == before.arguments)
        assert again.answer | {"_meta": 0} == before.answer | {"_meta": 0}
        assert ("interlock/replay" in again.answer["_meta"]) == (again.arguments != before.arguments)

    def record(self, node: Node, key: tuple[str, str], call: Call) -> None:
        written = Noted(call.arguments["output"]["notesMarkdown"])
        if written.text:
            node.noted.append(written)
        chain = [*self.chains.get(key, []), written]
        if call.tool == "checkpoint_workflow":
            written.everywhere = True
            assert call.answer["stateToken"] == node.token
        elif call.answer["kind"] == "blocked":
            assert not node.preferences.never_stops
            written.blocked = True
            assert call.answer["stateToken"] == node.token
            self.chains[node.token, call.answer["ackToken"]] = chain
        else:
            child = Node(call.answer, node, node.preferences)
            assert child.token not in self.nodes
            node.children.append(child)
            self.nodes[child.token] = self.tips[child.session] = child
            for item in chain:
                item.child = child

    # what must hold

    def compare(self, node: Node, answer: FormAnswer) -> None:
        assert answer["stateToken"] == node.token
        assert (answer["pending"]["stepId"] if answer["pending"] else None) == node.pending
        assert answer["preferences"]["autonomy"] == node.preferences.autonomy
        told = answer.get("recap", {"entries": []})
        shown, everything = [entry["notes"] for entry in told["entries"]], node.recap()
        assert shown == everything[len(everything) - len(shown) :]
        assert told.get("omitted", 0) == len(everything) - len(shown)
        branches = answer.get("branches", {"children": []})
        assert len(branches["children"]) + branches.get("omitted", 0) == len(node.children)

    def everything_says_what_it_said(self) -> None:
        """A fork leaves its parent and its siblings alone; a replay leaves everything alone."""
        with self.nothing_written():
            for node in self.nodes.values():
                self.compare(node, self.agent.call("continue_workflow", stateToken=node.token))
        for call in self.calls:
            again = Call(call.tool, call.arguments, self.agent)
            assert (again.text, again.answer) == (call.text, call.answer)

    def every_log_is_sound(self) -> None:
        """Rule 43: the chain is whole; each session's preferred tip is where it was advanced last."""
        ledger = self.agent.ledger
        with ledger.store.reading() as reader:
            sessions = reader.sessions(SessionFilter(limit=1000))
            assert {session.session_id for session in sessions} == set(self.tips)
            for session in sessions:
                assert examine(ledger.store, session).health == "healthy"
                target = ledger.open(self.tips[session.session_id].token, "st")
                assert isinstance(target, Position)
                (run,) = reader.runs(session.session_id)
                assert tip_of(session, run) == session.head_node == target.node.node
                counted = sum(node.session == session.session_id for node in self.nodes.values())
                rows = [row for row in reader.nodes(session.session_id) if row.kind == "step"]
                assert len(rows) == counted

    def nothing_written(self) -> Unwritten:
        return Unwritten(self.agent)


class Unwritten:
    """Fails if a row of the store was changed meanwhile."""

    def __init__(self, agent: Agent) -> None:
        self.connection = agent.ledger.store._connection  # type: ignore[attr-defined]

    def __enter__(self) -> None:
        self.before = self.connection.total_changes()

    def __exit__(self, *_: object) -> None:
        assert self.connection.total_changes() == self.before


Chats.TestCase.settings = settings(
    max_examples=times(300), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestChats = pytest.mark.slow(Chats.TestCase)


def test_a_null_deletes_whatever_a_blocked_attempt_before_it_sent(bench: Bench) -> None:
    """Rule 19: what a blocked attempt told is kept, and the next one's null still deletes."""
    bench.write(FLOW)
    agent = bench.agent()
    agent.start("test.flow", colour="red", shape="round")
    agent.ack()
    assert agent.ack(shape="square", size=3)["kind"] == "blocked"
    assert agent.ack(colour=None, size=None)["kind"] == "blocked"
    agent.ack(artifacts=[ROUND])
    position = agent.ledger.open(agent.last["stateToken"], "st")
    assert isinstance(position, Position)
    kept = position.state.variables
    assert {name: kept.get(name) for name in ("colour", "shape", "size")} == {
        "colour": None,
        "shape": "square",
        "size": None,
    }
