"""A worker and an orchestrator as two real servers on one data folder; either may be killed at any point."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.authored import write
from support.session_agents import FLOW, Answer, manifest

pytestmark = pytest.mark.slow


class Server:
    """One `interlock mcp` process and the client that talks to it."""

    def __init__(self, folder: Path, surface: str = "session") -> None:
        command = [sys.executable, "-m", "interlock", "mcp", "--surface", surface, "--data-dir", str(folder)]
        command += ["--workflows", str(folder / "given"), "--min-response-seconds", "0"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0
        client = {"name": "test", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.send(method, **params)
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def send(self, method: str, **params: Any) -> None:
        self.last += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def call(self, tool: str, **arguments: Any) -> Answer:
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        return Answer(
            result["content"][0]["text"],
            result.get("_meta", {}),
            result.get("isError", False),
            result.get("structuredContent") or {},
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


class Party:
    """Two agents on one session, each with a process of its own that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers = {name: Server(folder) for name in ("lead", "worker")}
        answer = self.servers["lead"].call("start_session", agent_id="lead", workflow_id="flow")
        self.tokens = {"lead": answer.token}
        self.go("gather")
        answer = self.servers["worker"].call(
            "start_session", agent_id="worker", session_token=self.tokens["lead"]
        )
        self.tokens["worker"] = answer.token

    def kill(self, *names: str) -> None:
        for name in names:
            self.servers[name].kill()
            self.servers[name] = Server(self.folder)

    def tell(self, name: str, tool: str, **arguments: Any) -> Answer:
        answer = self.servers[name].call(tool, session_token=self.tokens[name], **arguments)
        assert not answer.error, answer.text
        self.tokens[name] = answer.meta.get("session_token", self.tokens[name])
        return answer

    def go(self, activity: str, **arguments: Any) -> Answer:
        return self.tell("lead", "next_activity", activity_id=activity, **arguments)

    def close(self) -> None:
        for server in self.servers.values():
            server.kill()


@pytest.fixture
def party(tmp_path: Path) -> Iterator[Party]:
    write(tmp_path / "given", FLOW)
    party_of_two = Party(tmp_path)
    yield party_of_two
    party_of_two.close()


def yield_checkpoint(party: Party, gate: str, **arguments: Any) -> str:
    handle = party.tell("worker", "yield_checkpoint", checkpoint_id=gate, **arguments).body[
        "checkpoint_handle"
    ]
    assert isinstance(handle, str)
    return handle


def test_yield_in_one_process_respond_in_the_other_resume_in_the_first(party: Party) -> None:
    handle = yield_checkpoint(party, "scope", variables={"goal": "bread"})
    shown = party.servers["lead"].call("present_checkpoint", checkpoint_handle=handle)
    assert "Is «bread» the goal?" in shown.text
    answer = party.servers["lead"].call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    assert answer.body["effect"] == {"setVariable": {"verdict": "agreed"}}
    assert party.tell("worker", "resume_checkpoint").body["resolved_option"] == "yes"
    assert party.go("build", step_manifest=manifest("look", "weigh")).body["activity_id"] == "build"


def test_either_killed_after_every_call_and_the_walk_goes_on(party: Party) -> None:
    handle = yield_checkpoint(party, "scope", variables={"goal": "bread"})
    party.kill("worker", "lead")
    party.tell("lead", "respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    party.kill("lead")
    party.tell("worker", "resume_checkpoint")
    party.kill("worker")
    party.go("build", step_manifest=manifest("look", "weigh"), variables={"parts": ["a", "b"]})
    party.kill("lead", "worker")
    party.tell("worker", "get_activity")
    for option in ("fits", "bad"):
        handle = yield_checkpoint(party, "fit")
        party.kill("worker")
        party.tell("lead", "respond_checkpoint", checkpoint_handle=handle, option_id=option)
        party.tell("worker", "resume_checkpoint")
    party.kill("lead")
    party.go("finish")
    party.kill("lead")
    party.go("__terminal__")
    status = party.tell("worker", "get_workflow_status").body
    assert status["status"] == "completed"
    assert status["completed_activities"] == ["gather", "build", "finish"]


def test_a_restart_keeps_trace_answers_activities_and_variables(party: Party) -> None:
    handle = yield_checkpoint(party, "scope", variables={"goal": "bread"})
    party.tell("lead", "respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    party.tell("worker", "resume_checkpoint")
    segment = party.go("build", variables={"parts": []}).meta["trace_token"]
    before = party.tell("lead", "get_trace").body
    status = party.tell("lead", "get_workflow_status").body
    party.kill("lead", "worker")
    assert party.tell("lead", "get_trace").body == before
    assert party.tell("lead", "get_workflow_status").body == status
    names = [
        event["name"] for event in party.tell("lead", "get_trace", trace_tokens=[segment]).body["events"]
    ]
    assert names[-4:] == ["yield_checkpoint", "respond_checkpoint", "resume_checkpoint", "next_activity"]
    shown = Server(party.folder, "execution")
    answer = shown.call("continue_workflow", stateToken=party.tokens["lead"])
    shown.kill()
    assert answer.fields["pending"]["stepId"] == "begin"


def test_a_call_whose_answer_was_lost_is_repeated_and_happens_once(party: Party) -> None:
    handle = yield_checkpoint(party, "scope", variables={"goal": "g", "parts": []})
    lead = party.servers["lead"]
    arguments = {"checkpoint_handle": handle, "option_id": "yes"}
    lead.send("tools/call", name="respond_checkpoint", arguments=arguments)
    party.kill("lead")
    party.servers["lead"].call("respond_checkpoint", **arguments)
    party.tell("worker", "resume_checkpoint")
    move = {"session_token": party.tokens["lead"], "activity_id": "build"}
    party.servers["lead"].send("tools/call", name="next_activity", arguments=move)
    party.kill("lead")
    assert party.servers["lead"].call("next_activity", **move).body["activity_id"] == "build"
    events = party.tell("lead", "get_trace").body["events"]
    # Where the lost call was recorded before the kill, its repeat is traced too, and marked as one.
    done = [
        event["name"] for event in events if event["s"] == "ok" and not event.get("about", {}).get("repeated")
    ]
    assert done.count("respond_checkpoint") == 1
    assert done.count("next_activity") == 2


def test_two_processes_that_move_at_once_make_one_visit(party: Party) -> None:
    """Rule 13: whoever comes second gets the recorded answer of the same move."""
    handle = yield_checkpoint(party, "scope", variables={"goal": "g", "parts": []})
    party.tell("lead", "respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    party.tell("worker", "resume_checkpoint")
    for name, target in (("lead", "build"), ("worker", "build")):
        arguments = {"session_token": party.tokens[name], "activity_id": target}
        party.servers[name].send("tools/call", name="next_activity", arguments=arguments)
    for server in party.servers.values():
        assert server.process.stdout is not None
        result = json.loads(server.process.stdout.readline())["result"]
        assert json.loads(result["content"][0]["text"])["activity_id"] == "build"
    party.tokens["lead"] = (
        party.servers["lead"].call("get_activity", session_token=party.tokens["lead"]).token
    )
    events = party.tell("lead", "get_trace").body["events"]
    moves = [event for event in events if event["name"] == "next_activity" and event["act"] == "gather"]
    assert len(moves) == 1
