"""The execution surface: start, advance, replay, rehydrate, fork, checkpoint, resume."""

from __future__ import annotations

import msgspec
import pytest

from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.modes import set_session_mode
from interlock.ledger.log.records import NodeCreated
from interlock.store.sqlite.lock import FileLock
from interlock.surfaces.registry import build_surface
from support.harness import Agent, Bench, FormAnswer, decision, gate, steps, workflow
from support.log import logged_events

FLOW = workflow(*steps("first", "second", "third"))


@pytest.fixture
def agent(bench: Bench) -> Agent:
    bench.write(FLOW)
    return bench.agent()


def payload(answer: FormAnswer) -> FormAnswer:
    return {key: value for key, value in answer.items() if key != "_meta"}


def events(agent: Agent) -> int:
    with agent.ledger.store.reading() as reader:
        session = agent.last["session"]["sessionId"]
        return sum(row.last - row.first + 1 for row in reader.commits(session))


def everything(agent: Agent) -> list[object]:
    """Every row of the database."""
    connection = agent.ledger.store._connection  # type: ignore[attr-defined]
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    return [list(connection.execute(f"SELECT * FROM {name}")) for name in sorted(tables)]


def test_a_run_goes_step_by_step_to_its_end(agent: Agent) -> None:
    agent.start("test.flow", goal="try it")
    seen = [agent.pending]
    while not agent.last["isComplete"]:
        agent.ack("done")
        seen.append(agent.pending)
    assert seen == ["first", "second", "third", None]
    assert agent.last["status"] == "complete"
    assert agent.last["nextIntent"] == "complete"
    assert agent.last["pending"] is None


def test_the_answer_has_every_field_of_the_contract(agent: Agent) -> None:
    answer = agent.start("test.flow")
    assert answer["pending"] == {
        "stepId": "first",
        "title": "First",
        "prompt": "Do first.",
        "requireConfirmation": False,
    }
    assert answer["preferences"] == {"autonomy": "guided", "riskPolicy": "conservative"}
    assert set(answer["session"]) == {"sessionId", "runId"}
    documented = {"stateToken", "pending", "ackToken", "checkpointToken", "isComplete", "session"}
    more = {"preferences", "kind", "nextIntent", "workflow", "_meta", "_error"}
    assert set(answer) == documented | more, "and nothing about how the text is made"
    for name, prefix in (("stateToken", "st.v1."), ("ackToken", "ack.v1."), ("checkpointToken", "chk.v1.")):
        assert answer[name].startswith(prefix)
        assert len(answer[name]) <= 48
        assert answer[name] in agent.text


def test_a_replay_returns_the_identical_payload_and_appends_nothing(agent: Agent) -> None:
    started = agent.start("test.flow")
    first = agent.ack("once", at=started)
    text, before = agent.text, everything(agent)
    assert agent.ack("once", at=started) == first
    assert agent.text == text
    assert everything(agent) == before


def test_a_replay_asked_for_something_else_says_what_was_ignored(agent: Agent) -> None:
    started = agent.start("test.flow")
    first = agent.ack("once", at=started)
    again = agent.ack("something else", at=started, colour="red")
    assert payload(again) == payload(first)
    assert again["_meta"]["interlock/replay"]["ignored"] == ["output", "context"]


def test_a_replay_holds_in_another_process_after_the_file_vanished(agent: Agent, bench: Bench) -> None:
    started = agent.start("test.flow")
    first = agent.ack("once", at=started)
    agent.ledger.store.close()
    (bench.workflows / "test.flow.json").unlink()
    other = bench.agent()
    assert other.ack("once", at=started) == first
    assert other.ack("on", at=first)["pending"]["stepId"] == "third"


def test_a_replay_is_not_computed_again(bench: Bench) -> None:
    bench.write(FLOW)
    agent = bench.agent("never-stop")
    started = agent.start("test.flow")
    first = agent.ack("once", at=started)
    text = agent.text
    set_session_mode(agent.ledger, first["session"]["sessionId"], PRESETS["guided"], "cli")
    bench.write(workflow(*steps("quite", "different")))
    bench.clock.pass_seconds(1)
    other = bench.agent()
    today = other.look(first)
    assert today["preferences"] != first["preferences"]
    assert today["warnings"]
    before = everything(other)
    assert other.ack("once", at=started) == first
    assert other.text == text
    assert everything(other) == before


def test_a_changed_file_is_a_warning_and_the_run_keeps_its_own(agent: Agent, bench: Bench) -> None:
    started = agent.start("test.flow")
    bench.write(workflow(*steps("quite", "different")))
    bench.clock.pass_seconds(1)
    looked = agent.look(started)
    assert looked["pending"]["stepId"] == "first"
    assert [warning["code"] for warning in looked["warnings"]] == ["WORKFLOW_CHANGED"]
    assert agent.ack(at=started)["pending"]["stepId"] == "second"


def test_rehydrate_changes_no_row_and_gives_the_unused_attempt_again(agent: Agent) -> None:
    agent.start("test.flow")
    tip = agent.ack("what I did first")
    before = everything(agent)
    looked = agent.look(tip)
    assert everything(agent) == before
    short = [{"stepId": "first", "notes": "what I did first"}]
    assert looked["recap"] == {"entries": short, "truncated": False}
    assert looked["ackToken"] == tip["ackToken"]
    assert "branches" not in looked


def test_rehydrate_says_that_output_without_ack_was_ignored(agent: Agent) -> None:
    started = agent.start("test.flow")
    looked = agent.call("continue_workflow", stateToken=started["stateToken"], output={"notesMarkdown": "x"})
    assert looked["warnings"][0]["code"] == "ARGUMENTS_IGNORED"


def test_a_rewound_node_shows_its_branches_and_forks_with_a_fresh_token(agent: Agent) -> None:
    started = agent.start("test.flow")
    second = agent.ack("the first way", at=started)
    agent.ack("further on the first way", at=second)
    looked = agent.look(started)
    assert looked["ackToken"] != started["ackToken"]
    assert [child["notes"] for child in looked["branches"]["children"]] == ["the first way"]
    downstream = [entry["notes"] for entry in looked["branches"]["downstream"]["entries"]]
    assert downstream == ["the first way", "further on the first way"]
    forked = agent.ack("the second way", at=looked)
    assert forked["pending"]["stepId"] == "second"
    assert forked["stateToken"] != second["stateToken"]


def test_a_fork_keeps_both_recaps_intact(agent: Agent) -> None:
    started = agent.start("test.flow")
    one = agent.ack("branch one", at=started)
    other = agent.ack("branch two", at=agent.look(started))
    assert [entry["notes"] for entry in agent.look(one)["recap"]["entries"]] == ["branch one"]
    assert [entry["notes"] for entry in agent.look(other)["recap"]["entries"]] == ["branch two"]


def test_the_preferred_tip_is_where_work_was_done_last(agent: Agent) -> None:
    started = agent.start("test.flow", goal="tips")
    one = agent.ack("branch one", at=started)
    agent.ack("branch two", at=agent.look(started))
    last = agent.ack("back on one", at=one)
    found = agent.call("resume_session", query="tips")["candidates"][0]
    assert found["stateToken"] == last["stateToken"]


def test_variables_are_restored_by_a_rewind(bench: Bench) -> None:
    asks = {
        "id": "only-red",
        "title": "Red",
        "prompt": "x",
        "runCondition": {"var": "colour", "equals": "red"},
    }
    bench.write(workflow(*steps("first"), asks, *steps("last")))
    agent = bench.agent()
    started = agent.start("test.flow")
    assert agent.ack(at=started, colour="red")["pending"]["stepId"] == "only-red"
    assert agent.ack(at=agent.look(started), colour="blue")["pending"]["stepId"] == "last"


def test_a_checkpoint_keeps_notes_and_is_no_fork(agent: Agent) -> None:
    started = agent.start("test.flow")
    arguments = {
        "stateToken": started["stateToken"],
        "checkpointToken": started["checkpointToken"],
        "output": {"notesMarkdown": "half way"},
    }
    kept = agent.call("checkpoint_workflow", **arguments)
    assert (kept["pending"], kept["stateToken"]) == (started["pending"], started["stateToken"])
    count = events(agent)
    assert agent.call("checkpoint_workflow", **arguments) == kept
    assert events(agent) == count
    on = agent.ack("all the way", at=started)
    looked = agent.look(on)
    assert [entry["notes"] for entry in looked["recap"]["entries"]] == ["half way", "all the way"]
    assert "branches" not in looked


def test_advances_and_notes_are_edges_of_their_own_kinds(agent: Agent) -> None:
    started = agent.start("test.flow")
    agent.call(
        "checkpoint_workflow",
        stateToken=started["stateToken"],
        checkpointToken=started["checkpointToken"],
        output={"notesMarkdown": "half way"},
    )
    agent.ack("all the way", at=started)
    created = logged_events(agent.ledger.store, started["session"]["sessionId"], "node_created")
    edges = [row.event.edge for row in created if isinstance(row.event, NodeCreated)]
    assert edges == ["root", "checkpoint", "acked_step"]


def test_a_checkpoint_alone_is_no_branch(agent: Agent) -> None:
    started = agent.start("test.flow")
    agent.call(
        "checkpoint_workflow",
        stateToken=started["stateToken"],
        checkpointToken=started["checkpointToken"],
        output={"notesMarkdown": "half way"},
    )
    looked = agent.look(started)
    assert looked["ackToken"] == started["ackToken"]
    assert looked["recap"]["entries"] == [{"stepId": "first", "notes": "half way"}]


def test_a_session_holds_notes_and_several_runs(agent: Agent) -> None:
    opened = agent.call("start_session", title="Release 12")
    token = opened["sessionToken"]
    assert token.startswith("sst.v1.")
    agent.call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": "before any run"})
    one = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    two = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    assert one["session"]["sessionId"] == two["session"]["sessionId"] == opened["session"]["sessionId"]
    assert one["session"]["runId"] != two["session"]["runId"]
    on = [agent.ack(notes, at=at) for notes, at in (("of two", two), ("of one", one))]
    assert [answer["pending"]["stepId"] for answer in on] == ["second", "second"]
    further = agent.ack("of two again", at=on[0])
    assert [entry["notes"] for entry in agent.look(further)["recap"]["entries"]] == ["of two", "of two again"]
    assert [entry["notes"] for entry in agent.look(on[1])["recap"]["entries"]] == ["of one"]


def test_resume_finds_work_by_words_by_id_and_by_the_beginning_of_an_id(agent: Agent) -> None:
    started = agent.start("test.flow", goal="Repair the flaky login test")
    session = started["session"]["sessionId"]
    for arguments in (
        {"query": "login flaky"},
        {"resumeRef": session},
        {"resumeRef": session[: len("sess_") + 8]},
        {"resumeRef": started["session"]["runId"]},
    ):
        before = everything(agent)
        found = agent.call("resume_session", **arguments)["candidates"]
        assert everything(agent) == before
        assert [item["sessionId"] for item in found] == [session]
        assert found[0]["stateToken"] in agent.text
        assert agent.look(found[0])["pending"]["stepId"] == "first"


def test_resume_with_an_unknown_reference_says_what_to_do(agent: Agent) -> None:
    answer = agent.call("resume_session", resumeRef="sess_nothing")
    assert answer["code"] == "NOT_FOUND"
    assert "query" in answer["details"]["suggestion"]


def test_optional_tools_can_be_switched_off(bench: Bench) -> None:
    surface = build_surface("execution", bench, frozenset({"start_session", "resume_session"}))
    assert set(surface.tools) == {
        "list_workflows",
        "inspect_workflow",
        "start_workflow",
        "continue_workflow",
        "checkpoint_workflow",
    }


def test_inspect_shows_the_hash_that_start_pins(agent: Agent) -> None:
    before = everything(agent)
    shown = agent.call("inspect_workflow", workflowId="test.flow")
    assert everything(agent) == before
    assert shown["workflowHash"] == agent.start("test.flow")["workflow"]["hash"]
    assert [item["id"] for item in shown["activities"][0]["items"]] == ["first", "second", "third"]
    assert "activities" not in agent.call("inspect_workflow", workflowId="test.flow", mode="metadata")


def test_notes_are_of_a_session_or_of_a_node_and_not_of_both(agent: Agent) -> None:
    token = agent.call("start_session", title="Release 12")["sessionToken"]
    started = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    node = {name: started[name] for name in ("stateToken", "checkpointToken")}
    before = everything(agent)
    refused = agent.call("checkpoint_workflow", sessionToken=token, **node, output={"notesMarkdown": "x"})
    assert refused["code"] == "VALIDATION_ERROR"
    assert refused["details"]["suggestion"] == (
        "Send stateToken and checkpointToken of one response, or a sessionToken."
    )
    assert everything(agent) == before


def test_the_list_says_what_each_entry_is_and_whether_its_id_has_a_namespace(bench: Bench) -> None:
    bench.write(workflow(*steps("first"), id="old-name"))
    listed = bench.agent().call("list_workflows")["workflows"]
    by_id = {entry["workflowId"]: (entry["kind"], entry["idStatus"]) for entry in listed}
    assert by_id["wr.feature"] == ("workflow", "namespaced")
    assert by_id["wr.routine-plan-generation"] == ("routine", "namespaced")
    assert by_id["old-name"] == ("workflow", "legacy")
    kinds = [entry["kind"] for entry in listed if entry["workflowId"].startswith("wr.")]
    assert kinds == sorted(kinds, key=["workflow", "routine"].index), "workflows come first"


def test_legacy_ids_run_with_a_suggested_name(bench: Bench) -> None:
    bench.write(workflow(*steps("first"), id="old-name"))
    agent = bench.agent()
    entry = next(
        workflow
        for workflow in agent.call("list_workflows")["workflows"]
        if workflow["workflowId"] == "old-name"
    )
    assert entry["idStatus"] == "legacy"
    assert entry["suggestedId"].endswith(".old-name")
    started = agent.start("old-name")
    assert started["pending"]["stepId"] == "first"
    assert [warning["code"] for warning in started["warnings"]] == ["LEGACY_WORKFLOW_ID"]
    assert entry["suggestedId"] in started["warnings"][0]["message"]
    (warning,) = agent.call("inspect_workflow", workflowId="old-name")["warnings"]
    assert entry["suggestedId"] in warning["fix"]
    assert entry["suggestedId"] in agent.text


def test_an_unknown_workflow_is_answered_with_the_nearest(agent: Agent) -> None:
    answer = agent.start("test.flwo")
    assert answer["code"] == "NOT_FOUND"
    assert "test.flow" in answer["message"] + answer["details"]["suggestion"]


def test_a_foreign_workflow_in_the_reserved_namespace_is_refused_with_advice(bench: Bench) -> None:
    bench.write(workflow(*steps("first"), id="wr.mine"))
    agent = bench.agent()
    refused = agent.start("wr.mine")
    assert "'wr.mine' is in the reserved namespace wr" in refused["message"]
    assert "--workflows NAME=PATH" in refused["details"]["suggestion"]
    listed = agent.call("list_workflows")
    assert "wr.mine" not in [entry["workflowId"] for entry in listed["workflows"]]
    (warning,) = listed["warnings"]
    assert "reserved namespace" in warning["message"]
    assert "--workflows NAME=PATH" in warning["fix"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"capabilities": {"telepathy": "required"}}, "'telepathy' is not one of delegation, web_browsing"),
        ({"capabilities": {"delegation": "maybe"}}, "'maybe' is not one of disabled, preferred, required"),
        (
            {"recommendedPreferences": {"recommendedAutonomy": "wild"}},
            "'wild' is not one of full_auto_never_stop, full_auto_stop_on_user_deps, guided",
        ),
        (
            {"recommendedPreferences": {"recommendedRiskPolicy": "bold"}},
            "'bold' is not one of aggressive, balanced, conservative",
        ),
        (
            {"steps": steps("ask", userInput=[{"reason": "needs_luck", "question": "?"}])},
            "'needs_luck' is not one of needs_user_account_access, needs_user_approval, needs_user_artifact, "
            "needs_user_choice, needs_user_environment_action, needs_user_secret_or_token",
        ),
    ],
)
def test_a_workflow_invents_no_capability_preference_or_reason(
    bench: Bench, fields: FormAnswer, message: str
) -> None:
    bench.write({**FLOW, **fields})
    assert message in bench.agent().start("test.flow")["message"]


def test_notes_over_budget_are_cut_at_a_character_and_the_agent_is_told(agent: Agent) -> None:
    started = agent.start("test.flow")
    answer = agent.ack("ü" * 3000, at=started)
    assert "NOTES_TRUNCATED" in [warning["code"] for warning in answer["warnings"]]
    note = agent.look(answer)["recap"]["entries"][0]["notes"]
    assert note.endswith("ü\n\n[TRUNCATED]")
    assert len(note.encode()) <= 4096


def test_a_long_recap_says_how_much_was_left_out(bench: Bench) -> None:
    bench.write(
        workflow(
            {
                "id": "again",
                "type": "loop",
                "title": "L",
                "loop": {"type": "for", "count": 60, "maxIterations": 60},
                "body": steps("once"),
            }
        )
    )
    agent = bench.agent()
    agent.start("test.flow")
    for number in range(50):
        agent.ack(f"{number:03d} " + "x" * 400)
    recap = agent.look()["recap"]
    shown = [entry["notes"][:3] for entry in recap["entries"]]
    assert shown == [f"{number:03d}" for number in range(50)][-len(shown) :], "the newest, in order"
    assert recap["truncated"] is True
    assert recap["policy"] in agent.text
    assert recap["omitted"] == 50 - len(shown)
    assert f"{recap['omitted']} earlier entries omitted" in agent.text


def test_every_first_continue_succeeds(agent: Agent) -> None:
    for _ in range(100):
        agent.start("test.flow")
        assert agent.ack()["pending"]["stepId"] == "second"


def test_what_comes_with_an_acknowledgement_counts_from_the_next_step_on(bench: Bench) -> None:
    """Rule 12: the node says what is acknowledged, whatever the call makes of its condition."""
    deep = {"var": "deep", "equals": True}
    bench.write(workflow(*steps("look", "dig", runCondition=deep), *steps("last")))
    agent = bench.agent()
    assert agent.start("test.flow", deep=True)["pending"]["stepId"] == "look"
    acknowledged = agent.ack("seen", deep=False)
    assert acknowledged["pending"]["stepId"] == "last"
    agent.call("continue_workflow", stateToken=acknowledged["stateToken"])
    assert "seen" in agent.text, "the step is done, although its condition is false now"


def test_a_gate_is_a_pending_step_that_needs_the_users_decision(bench: Bench) -> None:
    yes = {"id": "yes", "label": "Yes", "effect": {"setVariable": {"agreed": True}}}
    bench.write(workflow(*steps("first"), gate("go-on", yes, "no"), *steps("last")))
    agent = bench.agent()
    agent.start("test.flow")
    asked = agent.ack()
    assert asked["pending"]["stepId"] == "go-on"
    assert asked["nextIntent"] == "await_user_confirmation"
    blocked = agent.ack("I just go on")
    assert blocked["kind"] == "blocked"
    assert blocked["blockers"][0]["code"] == "USER_ONLY_DEPENDENCY"
    assert blocked["blockers"][0]["pointer"] == {
        "kind": "output_contract",
        "contractRef": "wr.contracts.decision",
    }
    assert blocked["blockers"][0]["example"]["checkpointId"] == "go-on"
    assert agent.decide("yes")["pending"]["stepId"] == "last"


def test_no_live_token_lies_in_the_database(agent: Agent, bench: Bench) -> None:
    started = agent.start("test.flow")
    answer = agent.ack("noted", at=started)
    agent.ledger.store.close()
    stored = b"".join(path.read_bytes() for path in bench.folder.glob("interlock.db*"))
    for token in (started["stateToken"], answer["stateToken"], answer["ackToken"]):
        assert token.encode() not in stored


def test_a_note_cannot_forge_a_token_slot(agent: Agent) -> None:
    agent.start("test.flow")
    refused = agent.ack("\0st:0:0\0")
    assert refused["code"] == "VALIDATION_ERROR"
    forged = agent.ack("\\u0000st:0:0\\u0000", at={**refused, **_tokens(agent)})
    assert "st.v1." not in forged["pending"]["prompt"]
    assert agent.look()["recap"]["entries"][0]["notes"] == "\\u0000st:0:0\\u0000"


def _tokens(agent: Agent) -> FormAnswer:
    return agent.start("test.flow")


def test_the_whole_list_of_tools_stays_within_its_bytes(agent: Agent) -> None:
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.argument_schema()}
        for tool in agent.surface.tools.values()
    ]
    assert len(msgspec.json.encode(listed)) <= 6000


def test_an_advance_adds_at_most_400_bytes_to_the_authors_prompt(agent: Agent) -> None:
    agent.start("test.flow")
    answer = agent.ack("noted")
    assert len(agent.text.encode()) - len(answer["pending"]["prompt"].encode()) <= 400


def test_files_that_cannot_be_loaded_are_counted_as_files(bench: Bench) -> None:
    broken = {"id": "test.broken", "steps": [{"id": "one"}, {"id": "one", "prompt": 3}, 7]}
    bench.write(broken, "broken")
    agent = bench.agent()
    listed = agent.call("list_workflows")
    assert len(listed["warnings"]) > 1
    assert "\n1 file could not be loaded:\n" in agent.text


def test_what_an_open_question_owns_is_ignored_and_said_to_be(bench: Bench) -> None:
    """Rule 19: the blocked answer says so, and no later one shows it as context."""
    options = [{"id": "go", "label": "Go"}, {"id": "stop", "label": "Stop"}]
    ship = {"type": "gate", "id": "ship", "name": "Ship", "message": "Ship {{release}}?", "options": options}
    bench.write(workflow(ship, *steps("one")))
    agent = bench.agent()
    agent.start("test.flow", release="1.0")
    blocked = agent.ack("no answer yet", release="9.9.9", other="kept")
    assert blocked["kind"] == "blocked"
    assert "'release' stays 1.0" in agent.text
    agent.look()
    assert "9.9.9" not in agent.text
    assert "other: kept" in agent.text


def test_two_decisions_that_differ_are_none(bench: Bench) -> None:
    """Rule 24: a gate is answered in exactly one way."""
    bench.write(workflow(gate("ship", "yes", "no"), *steps("one")))
    agent = bench.agent()
    begun = agent.start("test.flow")
    both = [decision("ship", "yes"), decision("ship", "no")]
    assert agent.ack(artifacts=both, at=begun)["code"] == "VALIDATION_ERROR"
    assert "'ship'" in agent.text
    assert agent.look(begun)["pending"]["stepId"] == "ship"
    agent.ack(artifacts=[decision("ship", "yes"), decision("ship", "yes")], at=begun)
    assert agent.pending == "one"


def test_whether_to_retry_is_one_of_two_kinds(bench: Bench, agent: Agent) -> None:
    agent.start("test.flow")
    refused = agent.call("continue_workflow", stateToken="st.v1.none", ackToken=agent.last["ackToken"])
    assert refused["retry"] == {"kind": "not_retryable"}
    agent.ledger.store.deadline = 0.01  # type: ignore[attr-defined]
    lock = FileLock(bench.folder / "interlock.lock")
    with lock:
        locked = agent.call("start_workflow", workflowId="test.flow")
    lock.close()
    assert locked["code"] == "TOKEN_SESSION_LOCKED"
    assert locked["retry"] == {"kind": "retryable_after_ms", "afterMs": 1000}
    assert "retry" not in agent.call("start_workflow", workflowId="test.flow")


def test_a_narrowed_list_only_counts_the_files_that_cannot_be_loaded(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    (bench.workflows / "broken.json").write_text('{"id": "test.broken", "steps": [}')
    agent = bench.agent()
    agent.call("list_workflows", find="flow")
    assert "1 file could not be loaded: list_workflows without arguments says why." in agent.text
    assert "broken.json" not in agent.text


def test_an_empty_id_is_no_broken_file(bench: Bench) -> None:
    (bench.workflows / "latin.json").write_bytes(b'{"id": "test.latin", "name": "Caf\xe9"}')
    agent = bench.agent()
    assert agent.start("")["code"] == "NOT_FOUND"


def test_what_was_read_from_a_text_is_no_warning(bench: Bench) -> None:
    look = {"id": "look", "title": "Look", "prompt": "Set `mode`."}
    bench.write(workflow(look, *steps("fast", runCondition={"var": "mode", "equals": "fast"})))
    agent = bench.agent()
    assert agent.call("inspect_workflow", workflowId="test.flow")["warnings"] == []
    assert "Warning" not in agent.text


def test_finished_work_is_found_and_not_offered_to_go_on_with(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    agent = bench.agent()
    begun = agent.start("test.flow", goal="walrus")
    agent.call("resume_session", query="walrus")
    assert "The best match, ready to go on:" in agent.text
    agent.ack("done", at=begun)
    agent.call("resume_session", query="walrus")
    assert "The best match:" in agent.text
    assert "ready to go on" not in agent.text


def test_the_name_of_the_workflow_is_not_called_a_goal(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.look()
    assert "Run of Flow" in agent.text
    assert "Goal:" not in agent.text


def test_an_optional_question_says_that_it_is(bench: Bench) -> None:
    bench.write(workflow(gate("add", "none", "more", required=False), *steps("one")))
    agent = bench.agent()
    agent.start("test.flow")
    assert "It is optional: without an answer, the question is passed over." in agent.text
    assert agent.ack("")["pending"]["stepId"] == "one"


def test_after_notes_were_kept_the_text_says_how_to_go_on(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    agent = bench.agent()
    begun = agent.start("test.flow")
    tokens = {name: begun[name] for name in ("stateToken", "checkpointToken")}
    agent.call("checkpoint_workflow", **tokens, output={"notesMarkdown": "half of it"})
    told = "Kept. 'One' (one) is still pending. When it is done: continue_workflow with these tokens."
    assert agent.text.startswith(told)


def test_the_outline_says_where_a_run_stops_for_the_user(bench: Bench) -> None:
    need = {"reason": "needs_user_choice", "key": "channel", "question": "Which?"}
    bench.write(workflow(*steps("one", requireConfirmation=True), *steps("two", userInput=[need])))
    agent = bench.agent()
    agent.call("inspect_workflow", workflowId="test.flow")
    assert "  - One (one), the user confirms it\n  - Two (two), asks the user" in agent.text
