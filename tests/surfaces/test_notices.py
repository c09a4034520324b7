"""What an answer discloses beside its result, at every surface: in the text, in fields, in the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
import pytest

from interlock.core.run.commands import Terms
from interlock.core.run.preferences import Mode
from interlock.ledger.log.records import AdvanceRecorded, CallTraced
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Call, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.gated import GatedSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import Surface, call_tool
from support.harness import Bench, gate, steps, workflow
from support.log import logged_events

Walk: TypeAlias = Callable[[Surface], Iterator[Reply]]


def surface(bench: Bench, kind: type[Surface], mode: Mode = "guided") -> Surface:
    """Return a surface on a ledger of its own."""
    return kind(bench.ledger(mode, Terms(min_response_ms=0)))  # type: ignore[call-arg]


def tell(surface: Surface, tool: str, **arguments: Any) -> Reply:
    reply = call_tool(surface, tool, arguments, Call())
    assert isinstance(reply, Reply)
    assert not reply.is_error, reply.text
    return reply


def fields(reply: Reply) -> dict[str, Any]:
    raw = reply.structured
    body = msgspec.json.decode(bytes(raw)) if isinstance(raw, msgspec.Raw) else raw
    return dict(body) if body else dict(json.loads(reply.text))


def disclosed(reply: Reply) -> list[str]:
    """Return the messages that a program reads, each of which must be in the text too."""
    listed = fields(reply).get("warnings", []) if reply.structured or reply.text.startswith("{") else None
    if listed is None:
        listed = reply.meta["validation"]["warnings"]  # type: ignore[index, call-overload]
    messages = [item["message"] if isinstance(item, dict) else str(item) for item in listed]
    for message in messages:
        assert msgspec.json.encode(message).decode()[1:-1] in reply.text or message in reply.text
    return messages


def execution_answers(surface: Surface, **output: Any) -> Iterator[Reply]:
    answer = tell(surface, "start_workflow", workflowId="test.flow")
    yield answer
    while not (body := fields(answer))["isComplete"]:
        tokens = {name: body[name] for name in ("stateToken", "ackToken")}
        answer = tell(surface, "continue_workflow", **tokens, output={"notesMarkdown": "done", **output})
        yield answer


def session_answers(surface: Surface) -> Iterator[Reply]:
    agent = {"agent_id": "a"} if surface.name == "session" else {}
    answer = tell(surface, "start_session", workflow_id="test.flow", **agent)
    yield answer
    for target in ("main", "__terminal__"):
        claimed = [{"step_id": step, "output": "done"} for step in ("one", "two")]
        answer = tell(
            surface,
            "next_activity",
            session_token=answer.meta["session_token"],
            activity_id=target,
            step_manifest=claimed if target != "main" else None,
        )
        yield answer


def navigation_answers(surface: Surface) -> Iterator[Reply]:
    answer = tell(surface, "nav_start", workflow_id="test.flow")
    yield answer
    while actions := (body := fields(answer))["availableActions"]["required"]:
        names = ("step", "checkpoint", "activity", "loop")
        given = {f"{name}_id": actions[0][name] for name in names if name in actions[0]}
        if "options" in actions[0]:
            given["option_id"] = actions[0]["options"][0]
        given["output"] = {"notesMarkdown": "done"}
        answer = tell(surface, "nav_action", state=body["state"], action=actions[0]["action"], **given)
        yield answer


WALKS: list[tuple[type[Surface], Walk]] = [
    (ExecutionSurface, execution_answers),
    (SessionSurface, session_answers),
    (GatedSurface, session_answers),
    (NavigationSurface, navigation_answers),
]


@pytest.mark.parametrize(("kind", "walk"), WALKS)
def test_drift_and_a_mode_beyond_the_recommended_are_told_at_every_answer(
    bench: Bench, kind: type[Surface], walk: Walk
) -> None:
    recommended = {"recommendedAutonomy": "guided", "recommendedRiskPolicy": "conservative"}
    flow = workflow(*steps("one", "two"), recommendedPreferences=recommended)
    bench.write(flow)
    served = surface(bench, kind, "never-stop")
    answers = walk(served)
    assert any("beyond what this workflow recommends" in text for text in disclosed(next(answers)))
    bench.write({**flow, "description": "Another."})
    bench.clock.pass_seconds(2)
    for answer in answers:
        texts = disclosed(answer)
        assert sum("beyond what this workflow recommends" in text for text in texts) == 1
        assert sum("has changed on disk" in text for text in texts) == 1


@pytest.mark.parametrize(("kind", "walk"), WALKS)
def test_never_stop_names_each_gap_when_it_is_made_and_all_at_the_end(
    bench: Bench, kind: type[Surface], walk: Walk
) -> None:
    bench.write(workflow(*steps("one"), gate("ship", "now", "later"), *steps("two")))
    answers = list(walk(surface(bench, kind, "never-stop")))
    end = disclosed(answers[-1])
    assert [text for text in end if text.startswith("Gap ")] == [
        "Gap 1 (critical, for the user to resolve): 'ship?' was decided without the user: now."
    ]
    made = [number for number, answer in enumerate(answers) if any("Gap 1" in t for t in disclosed(answer))]
    if kind in (ExecutionSurface, NavigationSurface):
        assert len(made) == 2, "when it was made, and at the end"
    for answer in answers:
        assert "Ask the user" not in answer.text
        assert "to the user" not in answer.text


@pytest.mark.parametrize(("kind", "walk"), WALKS)
def test_a_step_that_was_passed_over_and_a_loop_at_its_limit_are_told(
    bench: Bench, kind: type[Surface], walk: Walk
) -> None:
    body = [{"id": "try", "title": "Try", "prompt": "Try."}]
    loop = {"type": "for", "count": 3, "maxIterations": 2}
    flow = workflow(
        *steps("one"),
        {"id": "skipped", "title": "S", "prompt": "S.", "runCondition": {"var": "risky", "equals": True}},
        {"id": "again", "type": "loop", "title": "Again", "loop": loop, "body": body},
        *steps("two"),
    )
    bench.write(flow)
    answers = list(walk(surface(bench, kind)))
    told = [text for answer in answers for text in disclosed(answer)]
    assert "Step 'skipped' was passed over: nobody has set 'risky' (risky == true)." in told
    assert any("'again' was left at its limit of 2" in text for text in told)
    assert any("'again' was left at its limit of 2" in text for text in disclosed(answers[-1])), "at the end"


def test_warnings_stand_after_the_result_and_in_one_line_each(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    served = surface(bench, ExecutionSurface)
    answer = [*execution_answers(served, notesMarkdown="x" * 5000)][1]
    last = answer.text.splitlines()[-1]
    assert last == "Warning: Your notes were longer than 4096 bytes and were cut at the end."
    assert answer.text.index("ackToken") < answer.text.index(last)


def test_a_reading_tool_of_the_session_surface_says_its_warnings_in_the_text(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    served = surface(bench, SessionSurface)
    token = tell(served, "start_session", workflow_id="test.flow", agent_id="a").meta["session_token"]
    tell(served, "next_activity", session_token=token, activity_id="main")
    answer = tell(served, "get_activity", session_token=token)
    assert answer.text.splitlines()[-1].startswith("Warning: The session has moved on to 'main'")


def test_long_notes_of_a_claimed_step_are_told_too(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    served = surface(bench, GatedSurface)
    token = tell(served, "start_session", workflow_id="test.flow").meta["session_token"]
    token = tell(served, "next_activity", session_token=token, activity_id="main").meta["session_token"]
    claimed = [{"step_id": "one", "output": "x" * 5000}]
    answer = tell(
        served,
        "next_activity",
        session_token=token,
        activity_id="__terminal__",
        step_manifest=claimed,
    )
    assert "The notes of step 'one' were longer than 4096 bytes and were cut at the end." in disclosed(answer)


def test_output_that_a_repeated_call_ignored_is_told_first(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    served = surface(bench, ExecutionSurface)
    start = fields(tell(served, "start_workflow", workflowId="test.flow"))
    tokens = {name: start[name] for name in ("stateToken", "ackToken")}
    first = tell(served, "continue_workflow", **tokens, output={"notesMarkdown": "first"})
    again = tell(served, "continue_workflow", **tokens, output={"notesMarkdown": "second"})
    note, _, rest = again.text.partition("\n\n")
    assert rest == first.text
    assert "was not read" in note
    assert "continue_workflow with only stateToken" in note
    assert again.structured == first.structured


def test_what_was_disclosed_is_in_the_log(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    served = surface(bench, ExecutionSurface)
    answer = [*execution_answers(served, notesMarkdown="x" * 5000)][1]
    assert isinstance(served, ExecutionSurface)
    session_id = fields(answer)["session"]["sessionId"]
    recorded = logged_events(served.ledger.store, session_id, "advance_recorded")[0].event
    assert isinstance(recorded, AdvanceRecorded)
    assert [notice.code for notice in recorded.notices] == ["NOTES_TRUNCATED"]


CAREFUL = workflow(*steps("one"), recommendedPreferences={"recommendedAutonomy": "guided"})
BEYOND = "goes beyond what this workflow recommends"
STARTS: list[tuple[type[Surface], str, dict[str, str]]] = [
    (ExecutionSurface, "start_workflow", {"workflowId": "test.flow"}),
    (NavigationSurface, "nav_start", {"workflow_id": "test.flow"}),
    (SessionSurface, "start_session", {"workflow_id": "test.flow", "agent_id": "a"}),
    (GatedSurface, "start_session", {"workflow_id": "test.flow", "agent_id": "a"}),
]


@pytest.mark.parametrize(("kind", "tool", "named"), STARTS, ids=lambda value: getattr(value, "name", ""))
def test_what_a_start_discloses_is_in_the_log(
    bench: Bench, kind: type[Surface], tool: str, named: dict[str, str]
) -> None:
    """Rule 18: also where the surface traces no other call."""
    bench.write(CAREFUL)
    assert BEYOND in tell(surface(bench, kind, "never-stop"), tool, **named).text
    store = bench.ledger().store
    with store.reading() as reader:
        session_id = reader.sessions(SessionFilter(limit=1))[0].session_id
    call = logged_events(store, session_id, "call_traced")[0].event
    assert isinstance(call, CallTraced)
    assert (call.tool, BEYOND in call.warnings[0]) == (tool, True)


def test_what_joining_discloses_is_in_the_trace(bench: Bench) -> None:
    bench.write(CAREFUL)
    served = surface(bench, SessionSurface, "never-stop")
    start = json.loads(tell(served, "start_session", workflow_id="test.flow", agent_id="lead").text)
    tell(served, "start_session", agent_id="worker", session_token=start["session_token"])
    traced = json.loads(tell(served, "get_trace", session_token=start["session_token"]).text)["events"]
    assert [bool(event.get("vw")) for event in traced] == [True, True]
