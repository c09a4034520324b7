"""What a step declares as required is required, and every example can be sent back (rule 31)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from interlock.core.engine.acknowledge import ONLY_GAPS
from interlock.core.run.commands import Terms
from interlock.ledger.decisions.gaps import resolve_gap
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.rebuild import differences, rebuild
from interlock.ledger.runs.position import Position
from interlock.store.protocol import SessionFilter
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.navigation import NavigationSurface
from support.cli_process import interlock
from support.harness import Agent, Bench, filled, gate, steps, workflow
from support.log import logged_events
from support.navigation_client import NavigationClient, events
from support.session_agents import gated, session

NOTES = {"promptBlocks": {"goal": "Look.", "outputRequired": {"notes": "what was seen"}}}
VERDICT = {"var": "verdict", "equals": "bad"}


def flow(bench: Bench) -> None:
    """Write a workflow whose first step must decide whether the second is done."""
    bench.write(
        workflow(
            {"id": "judge", "title": "Judge", "prompt": "Judge it.", "sets": ["verdict", "unread"]},
            {**steps("mend")[0], "runCondition": VERDICT},
            {**steps("praise")[0], "runCondition": {"var": "verdict", "in": ["good", "fine"]}},
        )
    )


def test_required_notes_are_required(bench: Bench) -> None:
    bench.write(workflow({"id": "look", "title": "Look", **NOTES}, *steps("two")))
    agent = bench.agent()
    agent.start("test.flow")
    assert "notesMarkdown: what was seen" in agent.text
    blocked = agent.ack(artifacts=[{"kind": "x"}])
    assert [blocker["code"] for blocker in blocked["blockers"]] == ["MISSING_REQUIRED_OUTPUT"]
    assert "requires notes" in agent.text
    assert agent.ack("seen")["pending"]["stepId"] == "two"


def test_required_notes_are_a_gap_in_never_stop(bench: Bench) -> None:
    bench.write(workflow({"id": "look", "title": "Look", **NOTES}))
    agent = bench.agent("never-stop")
    agent.start("test.flow")
    assert agent.ack()["status"] == "complete_with_gaps"
    assert "Warning: Gap 1 (critical): Step 'look' requires notes" in agent.text


@pytest.mark.parametrize("surface", [session, gated])
def test_required_notes_are_required_of_a_claim(bench: Bench, surface: Any) -> None:
    bench.write(workflow({"id": "look", "title": "Look", **NOTES}))
    agent = surface(bench, Terms(min_response_ms=0))
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    assert agent.go("__terminal__").code == "OUTPUT_REQUIRED"
    done = [{"step_id": "look", "output": "seen"}]
    assert agent.go("__terminal__", step_manifest=done).body["status"] == "completed"


NAMED = {"goal": "Look.", "outputRequired": {"riskLevel": "Low / High", "artifact": "a table"}}


def named(bench: Bench) -> None:
    bench.write(workflow({"id": "look", "title": "Look", "promptBlocks": NAMED}))


@pytest.mark.parametrize("key", ["notesMarkdown", "context"])
def test_keys_of_other_servers_require_notes(bench: Bench, key: str) -> None:
    blocks = {"goal": "Look.", "outputRequired": {key: "what was seen"}}
    bench.write(workflow({"id": "look", "title": "Look", "promptBlocks": blocks}))
    agent = bench.agent()
    agent.start("test.flow")
    assert agent.ack()["blockers"][0]["message"] == "Step 'look' requires notes, and none were sent."
    assert agent.ack("seen")["status"] == "complete"


def test_whatever_key_stands_under_output_required_is_required(bench: Bench) -> None:
    named(bench)
    agent = bench.agent()
    agent.start("test.flow")
    assert "\n- context.riskLevel" in agent.text
    blocked = agent.ack("seen")
    pointers = [blocker["pointer"] for blocker in blocked["blockers"]]
    assert pointers == [
        {"kind": "context_key", "key": "riskLevel"},
        {"kind": "workflow_step", "stepId": "look"},
    ]
    assert agent.ack("seen", artifacts=[{"kind": "table"}], riskLevel="Low")["status"] == "complete"


@pytest.mark.parametrize(
    ("notes", "artifact"),
    [
        ("Risk level: low.", {"kind": "table"}),
        ("", {"kind": "riskLevel"}),
        ("", {"kind": "x", "riskLevel": 1}),
    ],
)
def test_a_named_output_may_stand_in_the_notes_or_in_an_artifact(
    bench: Bench, notes: str, artifact: dict[str, Any]
) -> None:
    named(bench)
    agent = bench.agent()
    agent.start("test.flow")
    assert agent.ack(notes, artifacts=[artifact])["status"] == "complete"


def test_a_named_output_is_a_gap_in_never_stop(bench: Bench) -> None:
    named(bench)
    agent = bench.agent("never-stop")
    agent.start("test.flow")
    assert agent.ack("seen")["status"] == "complete_with_gaps"


def test_a_named_output_is_required_on_navigation(bench: Bench) -> None:
    named(bench)
    client = Agent(NavigationSurface(bench.ledger()))
    started = client.call("nav_start", workflow_id="test.flow")
    complete = {"state": started["state"], "action": "complete_step", "step_id": "look"}
    assert client.call("nav_action", **complete)["error"]["code"] == "OUTPUT_REQUIRED"
    output = {"artifacts": [{"kind": "table"}]}
    done = client.call("nav_action", **complete, output=output, variables={"riskLevel": "Low"})
    assert done["success"]


@pytest.mark.parametrize("surface", [session, gated])
def test_a_named_output_is_required_of_a_claim(bench: Bench, surface: Any) -> None:
    named(bench)
    agent = surface(bench, Terms(min_response_ms=0))
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    done = [{"step_id": "look", "output": {"artifacts": [{"kind": "table"}]}}]
    refusal = agent.go("__terminal__", step_manifest=done)
    assert (refusal.code, refusal.fields["variables"]) == ("INPUT_REQUIRED", ["riskLevel"])
    assert (
        agent.go("__terminal__", step_manifest=done, variables={"riskLevel": "Low"}).body["status"]
        == "completed"
    )


@pytest.mark.parametrize("surface", [session, gated])
def test_unknown_members_of_manifests_are_named(bench: Bench, surface: Any) -> None:
    bench.write(workflow(*steps("look")))
    agent = surface(bench, Terms(min_response_ms=0))
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    done = [{"step_id": "look", "output": "seen", "status": "done"}]
    visited = [{"activity_id": "main", "outcome": "seen", "result": "good"}]
    answer = agent.go("__terminal__", step_manifest=done, activity_manifest=visited)
    unread = "Not read, because it is not known: 'step_manifest[].status', 'activity_manifest[].result'."
    assert unread in answer.text
    assert unread in str(answer.meta["validation"])


@pytest.mark.parametrize("tool", ["yield_checkpoint", "get_checkpoint", "respond_checkpoint"])
def test_unknown_members_of_manifests_are_named_at_checkpoints(bench: Bench, tool: str) -> None:
    bench.write(workflow(*steps("look"), gate("ship", "now", "later")))
    agent = (session if tool == "yield_checkpoint" else gated)(bench, Terms(min_response_ms=0))
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    more = {"get_checkpoint": {"activity_id": "main"}, "respond_checkpoint": {"option_id": "now"}}
    done = [{"step_id": "look", "output": "seen", "status": "done"}]
    answer = agent.tell(tool, checkpoint_id="ship", step_manifest=done, **more.get(tool, {}))
    assert "Not read, because it is not known: 'step_manifest[].status'." in answer.text


def test_a_variable_that_decides_what_follows_is_shown_with_its_values_and_required(bench: Bench) -> None:
    flow(bench)
    agent = bench.agent()
    agent.start("test.flow")
    assert re.search(
        r'^- context\.verdict[^:]*: "bad" \| "good" \| "fine" \| <another value>$', agent.text, re.MULTILINE
    )
    blocked = agent.ack("judged", unread=1)
    assert blocked["blockers"][0]["pointer"] == {"kind": "context_key", "key": "verdict"}
    assert blocked["blockers"][0]["example"] == {"verdict": "<bad | good | fine | another value>"}
    assert agent.ack("judged", verdict="good")["pending"]["stepId"] == "praise"


@pytest.mark.parametrize(
    ("compared", "choices"),
    [("high", '"high" | <another value>'), (True, "true | false"), (5, "5 | <another value>")],
)
def test_one_value_that_a_condition_compares_is_not_shown_as_the_only_choice(
    bench: Bench, compared: Any, choices: str
) -> None:
    later = steps("later", runCondition={"var": "risk", "equals": compared})
    bench.write(workflow(*steps("judge", sets=["risk"]), *later))
    agent = bench.agent()
    agent.start("test.flow")
    assert re.search(rf"^- context\.risk[^:]*: {re.escape(choices)}$", agent.text, re.MULTILINE)
    assert f"Its values: {choices}." in agent.ack("judged")["blockers"][0]["message"]


def test_a_closed_list_of_values_is_shown_without_others_and_enforced(bench: Bench) -> None:
    """An author's "small, normal or large" is not "small or normal" because conditions compare with two."""
    size = {"name": "size", "type": "string", "values": ["small", "normal", "large"]}
    later = steps("later", runCondition={"var": "size", "equals": "small"})
    bench.write(workflow(*steps("judge", sets=["size"]), *later, variables=[size]))
    agent = bench.agent()
    agent.start("test.flow")
    assert '- context.size (string): "small" | "normal" | "large"\n' in agent.text
    blocked = agent.ack("judged", size="tiny")
    assert 'Its values: "small" | "normal" | "large".' in blocked["blockers"][0]["message"]
    assert blocked["blockers"][0]["example"] == {"size": "<small | normal | large>"}
    assert "'size' is not taken: it is one of " in agent.text
    assert agent.ack("judged", size="large")["isComplete"]


def test_an_answer_of_the_user_is_one_of_the_declared_values(bench: Bench) -> None:
    need = {"reason": "needs_user_choice", "key": "channel", "question": "Which channel?"}
    channel = {"name": "channel", "values": ["stable", "preview"]}
    bench.write(workflow(*steps("publish", userInput=[need]), variables=[channel]))
    agent = bench.agent()
    agent.start("test.flow")
    assert """context.channel (string), the user's answer: "stable" | "preview"\n""" in agent.text
    wrong = {"kind": "wr.decision", "checkpointId": "channel", "optionId": "nightly"}
    blocked = agent.ack("asked", artifacts=[wrong])
    assert "it is one of" in blocked["blockers"][0]["message"]
    assert agent.ack("asked", channel="stable")["isComplete"]


def test_navigation_and_the_claiming_surfaces_require_it_too(bench: Bench) -> None:
    flow(bench)
    client = Agent(NavigationSurface(bench.ledger()))
    client.call("nav_start", workflow_id="test.flow")
    started = json.loads(client.text)
    assert started["availableActions"]["required"][0]["needs"][0]["example"] == {
        "verdict": "<bad | good | fine | another value>"
    }
    client.call("nav_action", state=started["state"], action="complete_step", step_id="judge")
    assert json.loads(client.text)["error"]["code"] == "OUTPUT_REQUIRED"
    for surface in (session, gated):
        agent = surface(bench, Terms(min_response_ms=0))
        agent.call("start_session", workflow_id="test.flow", agent_id="a")
        agent.go("main")
        claimed = [{"step_id": "judge", "output": "judged"}]
        refusal = agent.go("__terminal__", step_manifest=claimed)
        assert (refusal.code, refusal.fields["variables"]) == ("INPUT_REQUIRED", ["verdict"])
        passed = agent.go("__terminal__", step_manifest=claimed, variables={"verdict": "good"})
        assert passed.body["status"] == "completed"


def test_every_example_that_a_block_offers_passes_or_is_a_placeholder(bench: Bench) -> None:
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which?"}
    loop = {"type": "forEach", "items": "parts", "maxIterations": 3}
    report = {"contractRef": "wr.contracts.verification_report"}
    bench.write(
        workflow(
            *steps("report", output=report),
            gate("ship", "now", "later"),
            *steps("colour", userInput=[need]),
            {"id": "each", "type": "loop", "title": "Each", "loop": loop, "body": steps("part")},
            *steps("ask", userInput=[{"reason": "needs_user_approval", "question": "Ok?"}]),
            capabilities={"delegation": "required"},
        )
    )
    agent = bench.agent()
    answer = agent.start("test.flow")
    seen = []
    while not answer["isComplete"]:
        seen.append(answer["pending"]["stepId"])
        assert len(seen) < 30, seen
        if not answer.get("blockers"):
            answer = agent.ack(notes="" if answer["pending"].get("decision") else "done")
            continue
        example = answer["blockers"][0]["example"]
        if "kind" in example:
            example = {name: filled(value) for name, value in example.items()}
            answer = agent.ack("done", artifacts=[example])
        else:
            answer = agent.ack("done", **{name: filled(value) for name, value in example.items()})
        assert not answer.get("blockers"), agent.text
    assert {"probe-delegation", "report", "ship", "colour", "part", "ask"} <= set(seen)


def test_a_gap_is_resolved_by_an_event_that_names_it(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack(
        "one", artifacts=[{"kind": "wr.gaps", "open": [{"severity": "critical", "summary": "No docs."}]}]
    )
    assert agent.last["gaps"] == 1
    closing = {"kind": "wr.gaps", "resolved": [{"gap": 1, "summary": "Written."}, {"gap": 9}]}
    done = agent.ack("two", artifacts=[closing])
    assert done["status"] == "complete"
    assert done["gapList"][0]["resolved"] == "Written."
    assert "Gap 1 (critical, resolved: Written.)" in agent.text
    assert "There is no open gap 9 to resolve." in agent.text


CLAIMED: Any = {"kind": "wr.gaps", "resolved": [{"gap": 1, "summary": "The user said now."}]}


def decided_without_the_user(bench: Bench) -> Agent:
    """An agent in never-stop mode that has passed a gate, and says that the user has agreed."""
    bench.write(workflow(gate("ship", "now", "later"), *steps("last")))
    agent = bench.agent("never-stop")
    agent.start("test.flow")
    agent.ack()
    agent.ack("done", artifacts=[CLAIMED])
    return agent


def test_only_the_user_resolves_what_was_decided_without_them(bench: Bench) -> None:
    agent = decided_without_the_user(bench)
    ended, session_id = agent.last, agent.last["session"]["sessionId"]
    assert (ended["status"], ended["gaps"], ended["gapList"][0]["users"]) == ("complete_with_gaps", 1, True)
    assert "Gap 1 stays open" in agent.text
    assert "interlock gaps" in agent.text
    tokens = {name: ended[name] for name in ("stateToken", "checkpointToken")}
    assert agent.call("checkpoint_workflow", **tokens, output={"artifacts": [CLAIMED]})["_error"]
    position = resolve_gap(agent.ledger, session_id, 0, 1, "Seen.", "cli")
    assert isinstance(position, Position)
    assert position.state.status == "complete"
    assert agent.look(ended)["status"] == "complete"
    (event,) = logged_events(agent.ledger.store, session_id, "gap_resolved")
    assert (event.event.channel, event.event.summary) == ("cli", "Seen.")  # type: ignore[union-attr]
    with pytest.raises(LedgerError) as again:
        resolve_gap(agent.ledger, session_id, 0, 1, "Seen.", "cli")
    assert again.value.code == "NOT_FOUND"


def test_a_gap_of_an_execution_run_waits_for_its_end_and_others_do_not(bench: Bench) -> None:
    bench.write(workflow(gate("ship", "now", "later"), *steps("last")))
    working = bench.agent("never-stop")
    working.start("test.flow")
    working.ack()
    executing = working.last["session"]["sessionId"]
    with pytest.raises(LedgerError) as refused:
        resolve_gap(working.ledger, executing, 0, 1, "Seen.", "cli")
    assert refused.value.code == "CONFLICT"
    client = NavigationClient(NavigationSurface(bench.ledger("never-stop")))
    client.start("test.flow")
    client.act("respond_to_checkpoint", checkpoint_id="ship", option_id="now")
    with client.surface.ledger.store.reading() as reader:
        (session_id,) = {row.session_id for row in reader.sessions(SessionFilter())} - {executing}
    assert isinstance(resolve_gap(client.surface.ledger, session_id, 0, 1, "Seen.", "console"), Position)
    client.done("last")
    position = client.surface.ledger.position(session_id)
    assert isinstance(position, Position)
    assert (position.state.gaps.open, position.state.visit.done) == (0, ("last",)), (
        "the agent went on from there"
    )


DISCLOSED = {
    "kind": "wr.gaps",
    "open": [{"severity": "critical", "summary": "Not tested on Windows."}, {"summary": "No docs."}],
}
CLOSED = {"kind": "wr.gaps", "resolved": [{"gap": 1, "summary": "Tested there."}]}


def test_an_agent_is_told_once_how_a_gap_closes_and_a_lost_one_reads_which_are_open(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two", "three", "four")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("one", artifacts=[DISCLOSED])
    assert '{"kind":"wr.gaps","resolved":[{"gap":<number>,"summary":"<how>"}]}' in agent.text
    agent.ack("two", artifacts=[{"kind": "wr.gaps", "open": [{"summary": "Another."}]}])
    assert "wr.gaps" not in agent.text
    agent.ack("three", artifacts=[CLOSED])
    agent.call("continue_workflow", stateToken=agent.last["stateToken"])
    open_gaps = agent.text.partition("Open gaps:")[2].partition("\n\n")[0]
    assert open_gaps == "\n- gap 2: No docs. (warning)\n- gap 3: Another. (warning)"


@pytest.mark.parametrize("surface", [session, gated])
def test_gaps_open_and_close_by_a_manifest_too(bench: Bench, surface: Any) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = surface(bench, Terms(min_response_ms=0))
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    done = [
        {"step_id": "one", "output": {"artifacts": [DISCLOSED]}},
        {"step_id": "two", "output": {"artifacts": [CLOSED]}},
    ]
    assert agent.go("__terminal__", step_manifest=done).warnings == [
        "Gap 1 (critical, resolved: Tested there.): Not tested on Windows.",
        "Gap 2 (warning): No docs.",
    ]


def test_gaps_open_and_close_at_navigation_and_people_read_both(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two", "three")))
    agent = NavigationClient(NavigationSurface(bench.ledger()))
    agent.start("test.flow")
    agent.done("one", output={"artifacts": [DISCLOSED]})
    agent.done("two", output={"artifacts": [CLOSED]})
    open_gaps = agent.situation()["brief"]["openGaps"]
    assert (open_gaps["gap 2"], "gap 1" in open_gaps) == ("No docs. (warning)", False)
    (session_row,) = interlock(bench.folder, "sessions", "--json").json["sessions"]
    status = interlock(bench.folder, "status", session_row["ref"]).out
    assert "gaps                1 open" in status
    assert "critical, resolved: Tested there.: Not tested on Windows." in status
    notes = interlock(bench.folder, "notes", session_row["ref"]).out
    assert "Not tested on Windows." in notes
    assert "- Gap 1 (critical, resolved: Tested there.): Not tested on Windows." in notes


LATER: list[Any] = [
    {"kind": "wr.gaps", "resolved": [{"gap": number, "summary": f"Closed {number}."}]} for number in (1, 2)
]


def closed_later(bench: Bench, surface: str) -> None:
    """End a run with two gaps, close one after the other, each call twice; a third finds nothing to close."""
    bench.write(workflow(*steps("one")))
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    texts: list[str] = []
    match surface:
        case "execution":
            agent = Agent(ExecutionSurface(ledger))
            agent.start("test.flow")
            answer = agent.ack("one", artifacts=[DISCLOSED])
            texts.append(agent.text)
            end = answer
            for artifact in [*LATER, *LATER[:1]]:
                tokens = {name: answer[name] for name in ("stateToken", "checkpointToken")}
                for _ in range(2):
                    agent.call("checkpoint_workflow", **tokens, output={"artifacts": [artifact]})
                    texts.append(agent.text)
                answer = agent.look(end)  # by the token of the end
            assert answer["status"] == "complete"
            assert "earlier point" not in agent.text
            del texts[-1]
        case "navigation":
            client = NavigationClient(NavigationSurface(ledger))
            client.start("test.flow")
            client.done("one", output={"artifacts": [DISCLOSED]})
            texts.append(json.dumps(client.go("__terminal__")))
            state = client.state
            for artifact in LATER:
                for _ in range(2):
                    given = {"step_id": "one", "output": {"artifacts": [artifact]}}
                    texts.append(json.dumps(client.act("complete_step", state, **given)))
            texts.append(
                json.dumps(client.act("complete_step", state, step_id="one", output={"artifacts": LATER}))
            )
        case _:
            lead = (session if surface == "session" else gated)(bench, Terms(min_response_ms=0))
            lead.call("start_session", workflow_id="test.flow", agent_id="a")
            lead.go("main")
            ended = [{"step_id": "one", "output": {"artifacts": [DISCLOSED]}}]
            before = lead.token
            texts.append(lead.go("__terminal__", step_manifest=ended).text)
            for artifact in LATER:
                for _ in range(2):
                    given = [{"step_id": "one", "output": {"artifacts": [artifact]}}]
                    texts.append(lead.go("__terminal__", step_manifest=given).text)
            given = [{"step_id": "one", "output": {"artifacts": LATER}}]
            texts.append(lead.go("__terminal__", step_manifest=given).text)
            again = {"session_token": before, "activity_id": "__terminal__", "step_manifest": ended}
            assert lead.call("next_activity", **again).text == texts[0]
    end, first, repeat, second, last_repeat, third = texts
    assert "wr.gaps" in end
    assert (repeat, last_repeat) == (first, second)
    assert "Gap 1 (critical, resolved: Closed 1.)" in first
    assert "Gap 2 (warning): No docs." in first
    assert "Gap 2 (warning, resolved: Closed 2.)" in second
    assert "wr.gaps" not in second
    assert "There is no open gap 1 to resolve." in third


@pytest.mark.parametrize("surface", ["execution", "session", "gated", "navigation"])
def test_a_gap_is_resolved_after_its_run_has_ended(bench: Bench, surface: str) -> None:
    closed_later(bench, surface)
    ledger = bench.ledger()
    with ledger.store.reading() as reader:
        (row,) = reader.sessions(SessionFilter(ledger.owner))
        (run,) = reader.runs(row.session_id)
        assert list(differences(reader, rebuild(row.session_id, reader.commits(row.session_id)))) == []
    assert run.status == "complete"  # it ended with gaps, and has none any more
    resolved = logged_events(ledger.store, row.session_id, "gap_resolved")
    assert [event.event.gap for event in resolved] == [1, 2]  # type: ignore[attr-defined]


def test_what_comes_after_the_end_changes_nothing_else(bench: Bench) -> None:
    """Neither variables nor new gaps: a run that has ended stays as it ended, but for its open gaps."""
    bench.write(workflow(*steps("one")))
    client = NavigationClient(NavigationSurface(bench.ledger()))
    client.start("test.flow")
    client.done("one", output={"artifacts": [DISCLOSED]})
    client.go("__terminal__")
    both = {**LATER[0], "open": [{"summary": "Another."}]}
    told = client.done("one", output={"artifacts": [both]}, variables={"x": 1})
    assert told["success"]
    assert told["warnings"][0]["message"] == ONLY_GAPS
    assert [event["gap"] for event in events(bench, "gap_resolved")] == [1]
    assert len(events(bench, "gap_recorded")) == 2
    assert events(bench, "context_set") == []
    assert client.done("one", output={"artifacts": [DISCLOSED]})["error"]["code"] == "WORKFLOW_COMPLETED"


def test_a_gap_of_a_run_that_was_abandoned_stays_open(bench: Bench) -> None:
    """Rule 35: whatever would change it is refused; nobody relies on what it left."""
    bench.write(workflow(*steps("one", "two")))
    client = NavigationClient(NavigationSurface(bench.ledger()))
    client.start("test.flow")
    client.done("one", output={"artifacts": [DISCLOSED]})
    client.act("abandon", note="not needed")
    refused = client.done("two", output={"artifacts": [CLOSED]})
    assert refused["error"]["code"] == "WORKFLOW_ABANDONED"
    assert events(bench, "gap_resolved") == []


def test_a_gap_that_an_agent_discloses_counts(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    agent = bench.agent()
    agent.start("test.flow")
    disclosed = {"kind": "wr.gaps", "open": [{"severity": "critical", "summary": "Not tested on Windows."}]}
    assert agent.ack("one", artifacts=[disclosed])["status"] == "complete_with_gaps"
    assert "Gap 1 (critical): Not tested on Windows." in agent.text


def test_notes_that_are_kept_do_not_repeat_the_step(bench: Bench) -> None:
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    started = agent.start("test.flow")
    tokens = {name: started[name] for name in ("stateToken", "checkpointToken")}
    kept = agent.call("checkpoint_workflow", **tokens, output={"notesMarkdown": "half way"})
    assert agent.text.startswith("Kept. 'One' (one) is still pending.")
    assert "Do one." not in agent.text
    assert f"ackToken: {kept['ackToken']}" in agent.text


def test_a_failed_criterion_names_the_fault(bench: Bench) -> None:
    bench.write(workflow(*steps("one", validationCriteria=[{"type": "regex", "pattern": "^ab"}])))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("cd")
    assert "the output must match /^ab/" in agent.text


def test_a_broken_file_is_named_with_its_line_and_code(bench: Bench) -> None:
    path = bench.write(workflow(*steps("one")))
    path.write_text(path.read_text().replace('"prompt":"Do one."', '"prompt":""'))
    agent = bench.agent()
    answer = agent.start("test.flow")
    assert (answer["code"], answer["message"][:17]) == ("VALIDATION_ERROR", "test.flow.json:1:")
    assert "IL110" in answer["message"]


SHOWN = """\
id: test.own
name: Own
description: For a test.
version: 1.0.0
steps:
  - {id: agree, title: Agree, prompt: Agree on it., sets: [acceptance]}
  - {id: build, title: Build, prompt: "Build until {{acceptance}} holds."}
"""


def own(bench: Bench) -> None:
    """Write a file of our own whose first step sets what the text of the second shows."""
    (bench.workflows / "own.yaml").write_text(SHOWN)


def test_a_variable_that_a_later_text_shows_is_required_of_the_step_that_sets_it(bench: Bench) -> None:
    own(bench)
    agent = bench.agent()
    agent.start("test.own")
    assert "\n- context.acceptance" in agent.text
    blocked = agent.ack("agreed")
    assert blocked["blockers"][0]["message"] == "Step 'agree' must set 'acceptance', which is shown later on."
    assert blocked["blockers"][0]["example"] == {"acceptance": "<acceptance>"}
    agent.ack("agreed", acceptance="every test passes")
    assert "Build until every test passes holds." in agent.text


def test_a_variable_that_is_shown_later_is_required_on_the_other_surfaces(bench: Bench) -> None:
    own(bench)
    client = Agent(NavigationSurface(bench.ledger()))
    state = client.call("nav_start", workflow_id="test.own")["state"]
    refused = client.call("nav_action", state=state, action="complete_step", step_id="agree")
    assert refused["error"]["code"] == "OUTPUT_REQUIRED"
    for surface in (session, gated):
        agent = surface(bench, Terms(min_response_ms=0))
        agent.call("start_session", workflow_id="test.own", agent_id="a")
        agent.go("main")
        refusal = agent.go("__terminal__", step_manifest=[{"step_id": "agree", "output": "x"}])
        assert (refusal.code, refusal.fields["variables"]) == ("INPUT_REQUIRED", ["acceptance"])


def test_in_files_of_others_a_variable_that_is_only_shown_is_a_warning(bench: Bench) -> None:
    shown = {"id": "build", "title": "Build", "prompt": "Build until {{acceptance}} holds."}
    bench.write(workflow(*steps("agree", sets=["acceptance"]), shown))
    agent = bench.agent()
    agent.start("test.flow")
    assert agent.ack("agreed")["pending"]["stepId"] == "build"
    assert "Warning: Step 'agree' should set 'acceptance'; it is not set." in agent.text


def test_a_step_of_which_nothing_was_written_down_is_a_warning_and_a_gap(bench: Bench) -> None:
    bench.write(workflow(*steps("look")))
    agent = bench.agent()
    agent.start("test.flow")
    assert "continue_workflow with output.notesMarkdown" in agent.text
    ended = agent.ack()
    assert (ended["status"], ended["gaps"]) == ("complete_with_gaps", 1)
    assert "Gap 1 (warning): Nothing was written down about step 'look'." in agent.text
    agent.start("test.flow")
    assert agent.ack("seen")["status"] == "complete"


def test_navigation_asks_for_notes_and_records_their_absence(bench: Bench) -> None:
    bench.write(workflow(*steps("look")))
    client = Agent(NavigationSurface(bench.ledger()))
    body = client.call("nav_start", workflow_id="test.flow")
    (offer,) = body["availableActions"]["required"]
    assert offer["output"] == {"notesMarkdown": "<what was done>"}
    done = client.call("nav_action", state=body["state"], action="complete_step", step_id="look")
    assert "Nothing was written down about step 'look'." in str(done["warnings"])


def test_notes_are_not_missed_where_the_file_waives_them_or_an_artifact_came(bench: Bench) -> None:
    bench.write(workflow(*steps("look", notesOptional=True), *steps("show")))
    agent = bench.agent()
    agent.start("test.flow")
    assert "output.notesMarkdown" not in agent.text
    agent.ack()
    assert agent.ack(artifacts=[{"kind": "found"}])["status"] == "complete"
