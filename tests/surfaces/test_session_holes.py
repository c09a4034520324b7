"""The ten holes of an earlier server, each tried here: what got through there must not get through."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from interlock.ledger.tokens.tokens import Pointer, mint, new_handle, read
from support.harness import Bench
from support.session_agents import (
    FLOW,
    HEAD,
    SessionAgent,
    answer_checkpoint,
    gated,
    join_session,
    lose_keyring,
    session,
    start_flow,
    write_flow,
)


def yield_scope(bench: Bench) -> tuple[SessionAgent, SessionAgent, str]:
    """A worker that has yielded, its orchestrator, and the handle."""
    lead = start_flow(bench)
    worker = join_session(lead)
    handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    return lead, worker, handle


def test_1_the_token_from_before_the_yield_does_not_pass_the_gate(bench: Bench) -> None:
    lead = start_flow(bench)
    before = lead.token
    lead.tell("yield_checkpoint", checkpoint_id="scope")
    assert lead.call("next_activity", session_token=before, activity_id="build").code == "DECISION_PENDING"
    assert lead.call("get_activity", session_token=before).code == "DECISION_PENDING"


def test_1_a_used_handle_is_not_answered_again_with_another_option(bench: Bench) -> None:
    lead, _, handle = yield_scope(bench)
    first = lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    again = lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    assert again == first
    other = lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="skip")
    assert (other.code, other.fields["option"]) == ("CHECKPOINT_ALREADY_ANSWERED", "yes")


def test_1_a_used_handle_does_not_answer_the_next_question(bench: Bench) -> None:
    lead, worker, handle = yield_scope(bench)
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    worker.tell("resume_checkpoint", variables={"risky": True})
    bench.clock.pass_seconds(1)
    worker.tell("yield_checkpoint", checkpoint_id="danger")
    answer = lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="go")
    assert answer.code == "CHECKPOINT_ALREADY_ANSWERED"
    assert lead.tell("get_workflow_status").body["open_checkpoint"] == "danger"


def test_2_an_activity_is_not_left_without_its_checkpoint_being_yielded(bench: Bench) -> None:
    lead = start_flow(bench)
    for target in ("build", "finish", "gather", "__terminal__"):
        assert lead.go(target).code == "GATE_UNANSWERED"


@pytest.mark.parametrize("mode", ["auto_advance", "condition_not_met"])
def test_3_false_is_not_a_mode(bench: Bench, mode: str) -> None:
    lead, _, handle = yield_scope(bench)
    answer = lead.call("respond_checkpoint", checkpoint_handle=handle, **{mode: False})
    assert answer.code == "RESOLUTION_MODE"
    answer = lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes", **{mode: False})
    assert answer.body["resolved_option"] == "yes"


@pytest.mark.parametrize("mode", ["auto_advance", "condition_not_met"])
def test_3_false_is_not_a_mode_at_the_gated_surface(bench: Bench, mode: str) -> None:
    write_flow(bench)
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow")
    agent.go("gather")
    assert agent.tell("respond_checkpoint", checkpoint_id="scope", **{mode: False}).code == "RESOLUTION_MODE"


def test_4_a_forged_token_is_not_adopted(bench: Bench) -> None:
    lead = start_flow(bench)
    forged = f"ses.v1.{urlsafe_b64encode(new_handle() + bytes(18)).decode().rstrip('=')}"
    for token in (forged, lead.token[:-4], "eyJ3ZiI6ImZsb3cifQ.00", "", "x" * 5000):
        answer = session(bench).call("start_session", agent_id="thief", session_token=token)
        assert answer.body["recovered"] is True
        assert answer.body["workflow"]["id"] == "meta"
        assert answer.warnings == [answer.body["warning"]]
        assert "the earlier state was NOT inherited" in answer.body["warning"]


def test_4_a_forged_visit_is_not_believed(bench: Bench) -> None:
    """Rule 6: this keyring has signed the session; where its key is lost, the state comes from the log."""
    lead = start_flow(bench)
    raw = bytearray(urlsafe_b64decode(lead.token.removeprefix("ses.v1.") + "=="))
    raw[13] = 9
    forged = f"ses.v1.{urlsafe_b64encode(bytes(raw)).decode().rstrip('=')}"
    assert lead.call("get_activity", session_token=forged).code == "TOKEN_BAD_SIGNATURE"
    answer = session(bench).call("start_session", agent_id="orchestrator", session_token=forged)
    assert answer.body["recovered"] is True
    lose_keyring(bench)
    answer = session(bench).call("start_session", agent_id="orchestrator", session_token=forged)
    assert (answer.body["adopted"], answer.body["current_activity"]) == (True, "gather")
    assert "the token signed again" in answer.body["warning"]
    assert decoded(answer.token)[:14] == decoded(lead.token)[:14]
    again = session(bench).call("start_session", agent_id="orchestrator", session_token=forged)
    assert again.body["recovered"] is True, "the new keyring has signed it now"


def decoded(token: str) -> bytes:
    return urlsafe_b64decode(token.removeprefix("ses.v1.") + "==")


def test_4_a_token_of_an_older_process_is_simply_valid(bench: Bench) -> None:
    lead = start_flow(bench)
    answer = session(bench).call("start_session", agent_id="orchestrator", session_token=lead.token)
    assert answer.body["inherited"] is True
    assert "warning" not in answer.body


def test_4_another_owner_s_session_is_not_taken_up(bench: Bench) -> None:
    lead = start_flow(bench)
    answer = session(bench, owner="somebody").call("start_session", agent_id="x", session_token=lead.token)
    assert answer.body["recovered"] is True


def test_5_a_condition_that_holds_is_not_dismissed(bench: Bench) -> None:
    lead = start_flow(bench)
    answer_checkpoint(lead, lead, "scope", "yes", variables={"risky": True})
    handle = lead.tell("yield_checkpoint", checkpoint_id="danger").body["checkpoint_handle"]
    answer = lead.call("respond_checkpoint", checkpoint_handle=handle, condition_not_met=True)
    assert answer.code == "CONDITION_HOLDS"
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow")
    agent.go("gather")
    answering = {"option_id": "yes", "variables": {"risky": True}}
    assert not agent.tell("respond_checkpoint", checkpoint_id="scope", **answering).error
    answer = agent.tell("respond_checkpoint", checkpoint_id="danger", condition_not_met=True)
    assert answer.code == "CONDITION_HOLDS"


@pytest.mark.parametrize("surface", [session, gated])
def test_5_a_dismissal_lasts_only_while_the_condition_is_false(bench: Bench, surface) -> None:  # type: ignore[no-untyped-def]
    write_flow(bench)
    agent = surface(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    if surface is session:
        answer_checkpoint(agent, agent, "scope", "yes")
        handle = agent.tell("yield_checkpoint", checkpoint_id="danger").body["checkpoint_handle"]
        assert agent.call("respond_checkpoint", checkpoint_handle=handle, condition_not_met=True).body[
            "dismissed"
        ]
    else:
        agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
        assert agent.tell("respond_checkpoint", checkpoint_id="danger", condition_not_met=True).body[
            "dismissed"
        ]
    answer = agent.go("build", variables={"risky": True})
    assert answer.code == "GATE_UNANSWERED"
    assert "danger" in answer.text


def test_6_looking_at_a_checkpoint_elsewhere_does_not_move_the_session(bench: Bench) -> None:
    write_flow(bench)
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow")
    agent.go("gather")
    answer = agent.tell("get_checkpoint", activity_id="build", checkpoint_id="fit")
    assert answer.body["checkpoint"]["id"] == "fit"
    refused = agent.call("next_activity", session_token=answer.token, activity_id="build")
    assert (refused.code, refused.fields["pending"]) == ("GATE_UNANSWERED", ["scope", "danger"])


@pytest.mark.parametrize("surface", [session, gated])
def test_7_version_drift_is_seen_and_the_pinned_definition_served(bench: Bench, surface) -> None:  # type: ignore[no-untyped-def]
    write_flow(bench)
    agent = surface(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    write_flow(bench, {**FLOW, "flow/workflow.toon": HEAD.replace("1.2.0", "2.0.0").replace("brief", "loud")})
    bench.clock.pass_seconds(1)
    expected = (
        "Workflow version drift: session started with v1.2.0 but current definition is v2.0.0. "
        "Workflow may have changed mid-session."
    )
    answer = agent.tell("get_workflow")
    assert answer.warnings == [expected]
    assert "Be brief." in answer.text
    assert expected in agent.go("gather").warnings


def test_8_an_answer_by_handle_is_traced_and_is_the_last_checkpoint(bench: Bench) -> None:
    lead, _, handle = yield_scope(bench)
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    last = lead.tell("get_workflow_status").body["last_checkpoint"]
    assert (last["checkpoint_id"], last["option_id"]) == ("scope", "yes")
    traced = [
        event for event in lead.tell("get_trace").body["events"] if event["name"] == "respond_checkpoint"
    ]
    assert traced[0]["about"] == {"checkpoint": "scope"}


def test_9_effects_are_held_by_the_server_not_relayed_in_prose(bench: Bench) -> None:
    lead = start_flow(bench)
    answer_checkpoint(lead, lead, "scope", "yes", variables={"goal": "bread", "parts": []})
    lead.go("build")
    fresh = session(bench)
    fresh.token = lead.token
    executor = bench.agent()
    executor.call("continue_workflow", stateToken=fresh.token)
    with lead.ledger.store.reading() as reader:
        session_id = lead.tell("get_workflow_status").body["session_id"]
        row = reader.session(session_id)
        assert row is not None
        node = reader.node(session_id, row.head_node or 0)
    assert node is not None
    assert b'"verdict":"agreed"' in node.state


@pytest.mark.parametrize(
    "name", ["../flow", "../../etc/passwd", "flow/../flow", "/etc/passwd", "..", "flow\\..", "FLOW", "flow "]
)
def test_10_ids_do_not_lead_out_of_the_library(bench: Bench, name: str) -> None:
    write_flow(bench)
    for agent in (session(bench), gated(bench)):
        assert agent.call("start_session", agent_id="a", workflow_id=name).code == "NOT_FOUND"
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    for ref in (f"{name}/00", f"flow/{name}", name):
        assert agent.tell("get_resource", resource_id=ref).code == "NOT_FOUND"
    assert agent.go(name).code == "ACTIVITY_NOT_FOUND"


def test_10_no_token_and_no_handle_lies_in_the_data_folder(bench: Bench) -> None:
    lead, worker, handle = yield_scope(bench)
    tokens = {lead.token, worker.token, handle}
    answer = lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    tokens.add(answer.body["checkpoint_handle"])
    worker.tell("resume_checkpoint")
    answer = lead.go("build", step_manifest=[{"step_id": "look", "output": "done"}])
    tokens |= {answer.token, answer.meta["trace_token"]}
    lead.call("get_activity", session_token=worker.token[:-1] + "!")
    lead.ledger.store.close()
    stored = b"".join(path.read_bytes() for path in bench.folder.rglob("*") if path.is_file())
    for token in tokens:
        assert token.encode() not in stored
        assert token.rpartition(".")[2].encode() not in stored
    assert b"ses.v1." not in stored
    assert b"trc.v1." not in stored


def test_10_no_handle_is_in_any_event(bench: Bench) -> None:
    lead, _, handle = yield_scope(bench)
    lead.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    pointer = read(lead.ledger.keys.keyring(), handle, ("ses",))
    assert isinstance(pointer, Pointer)
    session_id = lead.tell("get_workflow_status").body["session_id"]
    with lead.ledger.store.reading() as reader:
        log = b"".join(row.body for row in reader.commits(session_id))
    secret = pointer.handle
    for spelling in (secret, secret.hex().encode(), urlsafe_b64encode(secret).rstrip(b"=")):
        assert spelling not in log


def test_errors_repeat_no_token(bench: Bench) -> None:
    lead = start_flow(bench)
    stranger = mint(lead.ledger.keys.keyring().current, Pointer("ses", new_handle()))
    for token in (stranger, stranger[:-1], "ack" + stranger[3:], "garbage"):
        answer = session(bench).call("get_activity", session_token=token)
        assert answer.error
        assert token not in answer.text
        assert token not in str(answer.fields)
