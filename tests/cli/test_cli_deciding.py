"""Decisions and modes at a terminal: who may decide, what is recorded, what an agent makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.cli_process import REPORT, Agent, Terminal, agent, decision, interlock, to_the_gate

pytestmark = pytest.mark.slow

USER = ("--decisions", "user")


def decisions(data: Path, session: str) -> list[dict[str, Any]]:
    ran = interlock(data, "log", session, "--kind", "decision_recorded", "--json")
    return [event["event"] for event in ran.json["events"]]


def decide(data: Path, *arguments: str, answer: str = "\n") -> tuple[int, str]:
    terminal = Terminal(data, "decide", *arguments)
    terminal.until("[Y/n]")
    terminal.type(answer)
    return terminal.end()


def test_the_users_decision_opens_the_gate_that_the_agent_cannot(tmp_path: Path) -> None:
    """Rule 27: under policy `user` only the user's own channels count."""
    with agent(tmp_path, *USER) as one:
        session = to_the_gate(one)
        assert one.go_on("", decision("accept"))["kind"] == "blocked"
        assert decide(tmp_path, session, "accept", "--note", "seen on staging")[0] == 0
        assert one.go_on()["pending"]["stepId"] == "close-task"
    resolved = interlock(tmp_path, "log", session, "--kind", "gate_resolved", "--json").json["events"]
    events = [item["event"] for item in resolved]
    assert [(event["option"], event["channel"], event["note"]) for event in events] == [
        ("accept", "cli", "seen on staging")
    ]


def test_deciding_needs_a_terminal(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
    ran = interlock(tmp_path, "decide", session, "accept", given="y\n")
    assert (ran.code, ran.out) == (2, "")
    assert "terminal" in ran.err
    assert decisions(tmp_path, session) == []


@pytest.mark.slow
def test_a_decision_that_is_not_confirmed_is_none(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
    assert decide(tmp_path, session, "accept", answer="n\n")[0] == 1
    terminal = Terminal(tmp_path, "decide", session, "accept")
    terminal.until("[Y/n]")
    assert terminal.interrupt()[0] == 1
    assert decisions(tmp_path, session) == []


def test_a_choice_can_be_made_by_number(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
    terminal = Terminal(tmp_path, "decide", session)
    assert "1 = accept, 2 = rework" in terminal.until("Your choice")
    terminal.type("2\n\n")
    assert terminal.end()[0] == 0
    assert [decision["option"] for decision in decisions(tmp_path, session)] == ["rework"]
    assert interlock(tmp_path, "inbox").out == "No decision is waiting for you.\n"
    status = interlock(tmp_path, "status", session, "--json")
    assert (status.code, status.json["runs"][0]["decided"]) == (0, "rework")


@pytest.mark.parametrize("command", ["decide", "play"])
def test_an_option_whose_id_is_a_number_is_chosen_by_its_id(tmp_path: Path, command: str) -> None:
    options = [{"id": "2", "label": "Two servers"}, {"id": "1", "label": "One server"}]
    gate = {"type": "gate", "id": "go", "name": "Go", "message": "Delete how many?", "options": options}
    steps = [gate, {"id": "b", "title": "B", "prompt": "B."}]
    flow = {"id": "my.flow", "name": "Flow", "description": "d", "version": "1.0.0", "steps": steps}
    (tmp_path / "flow.json").write_text(json.dumps(flow))
    data, files = tmp_path / "data", ("--workflows", str(tmp_path / "flow.json"))
    if command == "decide":
        with agent(data, *USER, *files) as one:
            session = one.start("my.flow", goal="Tidy up")["session"]["sessionId"]
            terminal = Terminal(data, "decide", session)
            terminal.until("Your choice: ")
            terminal.type("1\n\n")
            assert terminal.end()[0] == 0
            one.go_on()
    else:
        terminal = Terminal(data, "play", "my.flow", "--goal", "Tidy up", *files)
        terminal.until("Your choice: ")
        terminal.type("1\n")
        terminal.until("notes: ")
        terminal.interrupt()
        session = interlock(data, "sessions", "--json").json["sessions"][0]["sessionId"]
    resolved = interlock(data, "log", session, "--kind", "gate_resolved", "--json").json["events"]
    assert [item["event"]["option"] for item in resolved] == ["1"]


def test_an_option_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
    code, text = Terminal(tmp_path, "decide", session, "maybe").end()
    assert code == 2
    assert "accept, rework, stop" in text


def test_a_decision_is_made_once(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
    assert decide(tmp_path, session, "accept")[0] == 0
    assert Terminal(tmp_path, "decide", session, "rework").end()[0] == 5
    assert [decision["option"] for decision in decisions(tmp_path, session)] == ["accept"]


def test_a_decision_is_used_once_and_a_rewind_asks_again(tmp_path: Path) -> None:
    """Rule 26: single use. The place that the agent went back to is in the inbox, though it is no tip."""
    with agent(tmp_path, *USER) as one:
        session = to_the_gate(one)
        gate = one.said
        decide(tmp_path, session, "accept")
        assert one.go_on()["pending"]["stepId"] == "close-task"
        assert interlock(tmp_path, "inbox").code == 0
        one.call("continue_workflow", stateToken=gate["stateToken"])
        assert one.go_on()["kind"] == "blocked"
        assert decide(tmp_path, session, "rework")[0] == 0
        assert one.go_on()["pending"]["stepId"] == "make-change"


def test_a_run_that_moves_on_while_the_user_thinks_takes_no_decision(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
        terminal = Terminal(tmp_path, "decide", session, "accept")
        terminal.until("[Y/n]")
        one.go_on("", decision("rework"))
    terminal.type("y\n")
    code, text = terminal.end()
    assert code == 5
    assert "no longer waits" in text
    assert decisions(tmp_path, session) == []


def _set_pin(data: Path, pin: str) -> None:
    terminal = Terminal(data, "config", "pin")
    for prompt in ("New PIN", "Repeat"):
        terminal.until(prompt)
        terminal.type(f"{pin}\n")
    assert terminal.end()[0] == 0


@pytest.mark.slow
def test_a_pin_is_asked_for_where_one_is_set(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
    _set_pin(tmp_path, "open-sesame")
    for pin, code, kept in (("open-barley", 1, 0), ("open-sesame", 0, 1)):
        terminal = Terminal(tmp_path, "decide", session, "accept")
        terminal.until("[Y/n]")
        terminal.type("y\n")
        terminal.until("PIN")
        terminal.type(f"{pin}\n")
        ended, text = terminal.end()
        assert (ended, len(decisions(tmp_path, session))) == (code, kept)
        assert pin not in text
    assert not any(b"open-sesame" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert interlock(tmp_path, "mode", "never-stop").code == 2
    assert interlock(tmp_path, "mode", "--json").json["modes"][0]["mode"] == "guided"


def test_what_only_the_user_can_give_is_asked_in_the_inbox(tmp_path: Path) -> None:
    """Rule 28: a user-only dependency is satisfied by a decision."""
    asked = {"reason": "needs_user_choice", "key": "region", "question": "Which region?"}
    steps = [{"id": "deploy", "title": "Deploy", "prompt": "Deploy.", "userInput": [asked]}]
    steps.append({"id": "report", "title": "Report", "prompt": "Deployed to {{region}}."})
    flow = {"id": "my.flow", "name": "Flow", "description": "d", "version": "1.0.0", "steps": steps}
    (tmp_path / "flow.json").write_text(json.dumps(flow))
    data = tmp_path / "data"
    with agent(data, *USER, "--workflows", str(tmp_path / "flow.json")) as one:
        session = one.start("my.flow", goal="Deploy")["session"]["sessionId"]
        assert one.go_on("Ready.")["kind"] == "blocked"
        waiting = interlock(data, "inbox", "--json").json["questions"]
        assert [(each["id"], each["message"], each["options"]) for each in waiting] == [
            ("region", "Which region?", [])
        ]
        assert decide(data, session, "north")[0] == 0
        assert "north" in one.go_on("Done.")["pending"]["prompt"]


def test_a_question_in_a_loop_names_its_round_and_item_on_the_screen(tmp_path: Path) -> None:
    """Rule 16: the same words in another round are another question."""
    options = [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
    gate = {"type": "gate", "id": "go", "name": "Go", "message": "Go on?", "options": options}
    each = {"type": "forEach", "items": "hosts", "itemVar": "host", "maxIterations": 5}
    loop = {"type": "loop", "id": "each", "title": "Each", "loop": each, "body": [gate]}
    steps = [loop, {"id": "b", "title": "B", "prompt": "B."}]
    flow = {"id": "my.flow", "name": "Flow", "description": "d", "version": "1.0.0", "steps": steps}
    (tmp_path / "flow.json").write_text(json.dumps(flow))
    data = tmp_path / "data"
    with agent(data, *USER, "--workflows", str(tmp_path / "flow.json")) as one:
        session = one.start("my.flow", hosts=["a", "b"])["session"]["sessionId"]
    assert "Go (round 1 of 2: «a»)" in interlock(data, "inbox").out
    terminal = Terminal(data, "decide", session)
    assert "Go (round 1 of 2: «a»)" in terminal.until("Your choice: ")
    assert terminal.interrupt()[0] == 1


class Caller:
    """An agent at one of the other surfaces, on a workflow with one gate between two steps."""

    def __init__(self, one: Agent) -> None:
        self.one = one

    def __call__(self, tool: str, **arguments: str) -> Any:
        answer = self.one.ask("tools/call", {"name": tool, "arguments": arguments})
        return json.loads(answer["content"][0]["text"]) | answer.get("_meta", {})


@contextmanager
def at_the_surface(folder: Path, surface: str) -> Iterator[tuple[Path, Caller]]:
    options = [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
    gate = {"type": "gate", "id": "go", "name": "Go", "message": "Go on?", "options": options}
    steps = [{"id": "a", "title": "A", "prompt": "A."}, gate, {"id": "b", "title": "B", "prompt": "B."}]
    flow = {"id": "my.flow", "name": "Flow", "description": "d", "version": "1.0.0", "steps": steps}
    path = folder / "flow.json"
    path.write_text(json.dumps(flow))
    with agent(folder / "data", "--surface", surface, "--workflows", str(path), *USER) as one:
        yield folder / "data", Caller(one)


def decide_in_the_inbox(data: Path) -> str:
    ref = str(interlock(data, "inbox", "--json").json["questions"][0]["ref"])
    assert decide(data, ref, "yes")[0] == 0
    return ref


def test_a_yielded_checkpoint_is_answered_at_once_and_can_be_resumed_from(tmp_path: Path) -> None:
    with at_the_surface(tmp_path, "session") as (data, call):
        begun = call("start_session", agent_id="worker", workflow_id="my.flow")["session_token"]
        entered = call("next_activity", session_token=begun, activity_id="main")["session_token"]
        yielded = call("yield_checkpoint", session_token=entered, checkpoint_id="go")["session_token"]
        ref = decide_in_the_inbox(data)
        assert call("resume_checkpoint", session_token=yielded)["resolved_option"] == "yes"
    assert "go: yes (cli, user)" in interlock(data, "tree", ref).out


def test_a_pending_checkpoint_is_answered_at_once_and_the_activity_can_be_left(tmp_path: Path) -> None:
    with at_the_surface(tmp_path, "gated") as (data, call):
        begun = call("start_session", workflow_id="my.flow")["session_token"]
        entered = call("next_activity", session_token=begun, activity_id="main")["session_token"]
        asked = {"activity_id": "main", "checkpoint_id": "go", "step_manifest": [{"step_id": "a"}]}
        put = call("get_checkpoint", session_token=entered, **asked)["session_token"]
        decide_in_the_inbox(data)
        assert call("next_activity", session_token=put, activity_id="__terminal__")["status"] == "completed"


def test_a_navigating_agent_keeps_its_state_and_passes_with_the_users_decision(tmp_path: Path) -> None:
    answer = {"action": "respond_to_checkpoint", "checkpoint_id": "go", "option_id": "yes"}
    with at_the_surface(tmp_path, "navigation") as (data, call):
        state = call("nav_start", workflow_id="my.flow")["state"]
        state = call("nav_action", state=state, action="complete_step", step_id="a")["state"]
        assert call("nav_action", state=state, **answer)["success"] is False
        ref = decide_in_the_inbox(data)
        assert call("nav_action", state=state, **answer)["success"] is True
    assert interlock(data, "tree", ref, "--json").json["runs"][0]["forks"] == 0


def test_a_mode_attaches_to_the_tips_and_spares_what_came_before(tmp_path: Path) -> None:
    """Rule 29: what holds at a node is the nearest change on its path to the root."""
    with agent(tmp_path) as one:
        session = one.start("wr.small_task", goal="Change the mode")["session"]["sessionId"]
        root = one.said
        one.go_on("First branch.")
        one.call("continue_workflow", stateToken=root["stateToken"])
        one.go_on("Second branch.")
        assert interlock(tmp_path, "mode", "stop", "--session", session).code == 2  # from a pipe
        assert Terminal(tmp_path, "mode", "stop", "--session", session).end()[0] == 0
        modes = interlock(tmp_path, "mode", "--session", session, "--json").json["modes"]
        assert [(each["node"], each["mode"]) for each in modes] == [(1, "stop"), (2, "stop")]
        after = one.call("continue_workflow", stateToken=one.said["stateToken"])
        assert after["preferences"]["autonomy"] == "full_auto_stop_on_user_deps"
        before = one.call("continue_workflow", stateToken=root["stateToken"])
        assert before["preferences"]["autonomy"] == "guided"


def test_the_global_mode_holds_for_new_sessions_only(tmp_path: Path) -> None:
    """Rule 29: global values are copied into the session at its start."""
    with agent(tmp_path) as one:
        begun = one.start("wr.small_task", goal="Before")
        assert interlock(tmp_path, "mode", "never-stop", "--risk", "balanced").code == 2  # from a pipe
        assert Terminal(tmp_path, "mode", "never-stop", "--risk", "balanced").end()[0] == 0
        fresh = one.start("wr.small_task", goal="After")["preferences"]
        assert fresh == {"autonomy": "full_auto_never_stop", "riskPolicy": "balanced"}
        again = one.call("continue_workflow", stateToken=begun["stateToken"])
        assert again["preferences"]["autonomy"] == "guided"


def test_a_mode_for_a_session_whose_run_has_ended_is_for_its_next_run(tmp_path: Path) -> None:
    with agent(tmp_path) as one:
        session = to_the_gate(one)
        one.go_on("", decision("accept"))
        one.go_on("Handed over.", REPORT)
    ran = interlock(tmp_path, "mode", "guided", "--session", session)
    assert ran.code == 0
    assert ran.out.startswith("guided  the next run, conservative risk\n")
    assert "for later runs of session" in ran.err
    assert interlock(tmp_path, "mode", "stop", "--session", session).code == 2  # looser: at a terminal only


def test_what_was_decided_without_the_user_is_resolved_at_a_terminal(tmp_path: Path) -> None:
    with agent(tmp_path, "--mode", "never-stop") as one:
        session = to_the_gate(one)
        while one.said["pending"]:
            one.go_on("done")
    listed = interlock(tmp_path, "gaps", session, "--json").json["gaps"]
    number = next(gap["number"] for gap in listed if gap.get("users") and gap["severity"] == "critical")
    refused = interlock(tmp_path, "gaps", session, "resolve", str(number))
    assert (refused.code, refused.out) == (2, "")
    assert "terminal" in refused.err
    assert "Name the gap" in Terminal(tmp_path, "gaps", session, "resolve").end()[1]
    code, text = Terminal(tmp_path, "gaps", session, "resolve", str(number), "--note", "fine").end()
    assert (code, f"Gap {number} (critical, resolved: fine)" in text) == (0, True)
    assert Terminal(tmp_path, "gaps", session, "resolve", "99").end()[0] != 0
    (event,) = interlock(tmp_path, "log", session, "--kind", "gap_resolved", "--json").json["events"]
    assert (event["event"]["channel"], event["event"]["strength"]) == ("cli", "user")
