"""A fault in the engine meets the guard: the call is refused, nothing changes, other calls work (rule 48)."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from interlock.core.definition.program import END
from interlock.core.engine import settle
from interlock.store.protocol import SessionFilter
from interlock.store.sqlite.store import open_store
from interlock.surfaces.call import Era
from support.harness import Bench, broken_promises, gate, steps, workflow
from support.paths import TESTS
from support.server import Server
from support.session_agents import session, start_flow, walk_to_finish

GATED = workflow(*steps("first"), gate("sure", "yes", "no"), *steps("second"), id="test.gated")
PLAIN = workflow(*steps("first"), id="test.plain")


def test_a_start_that_the_guard_refuses_is_an_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench.write(PLAIN)
    agent, entered = bench.agent(), settle.entered
    with monkeypatch.context() as planted, caplog.at_level(logging.ERROR, "interlock.guard"):
        planted.setattr(settle, "entered", lambda *about: replace(entered(*about), next=END))
        refused = agent.start("test.plain")
    assert refused["code"] == "GUARD_REFUSED"
    assert "does not begin at its beginning (I1)" in refused["message"]
    assert "refused StartRun in test.plain: I1" in caplog.text
    with agent.ledger.store.reading() as reader:
        assert not reader.sessions(SessionFilter())
    assert agent.start("test.plain")["pending"]["stepId"] == "first"


def test_a_childs_return_that_the_guard_refuses_is_an_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = walk_to_finish(start_flow(bench))
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    child.go("only")
    with monkeypatch.context() as planted:
        planted.setattr("interlock.core.engine.decide.unowned", lambda plan, state, sent: (dict(sent), []))
        refused = child.go("__terminal__", variables={"verdict": "crusty"})
    assert refused.code == "GUARD_REFUSED"
    assert "guard refused this: 'verdict' is written, and question 'gather/scope' owns it" in refused.text
    assert parent.tell("get_workflow_status").body["children"]
    assert not child.go("__terminal__", variables={"verdict": "crusty"}).error
    assert "children" not in parent.tell("get_workflow_status").body


@pytest.mark.slow
@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_fault_in_a_running_server_is_refused_and_harms_nothing(
    bench: Bench, era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write(GATED)
    bench.write(PLAIN, "plain")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    data, workflows = bench.folder, ("--workflows", str(bench.workflows))
    with Server(data, *workflows, era=era, module="support.faulty_server") as server:
        began = server.call("start_workflow", workflowId="test.gated")
        for _ in "twice":
            refused = server.ack(began)
            assert refused["details"]["reason"] == "GUARD_REFUSED"
        plain = server.call("start_workflow", workflowId="test.plain")
        assert server.ack(plain)["isComplete"]
    assert broken_promises(open_store(data)) == []
    with Server(data, *workflows, era=era) as server:
        asked = server.ack(began)
        assert "sure" in asked["pending"]["stepId"]
