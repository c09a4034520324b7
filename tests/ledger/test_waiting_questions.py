"""Which questions wait for the user, whatever else happens in their session."""

from __future__ import annotations

from interlock.ledger.decisions.inbox import inbox
from support.harness import Bench, steps, workflow


def test_a_question_waits_although_another_run_of_the_session_was_advanced_last(bench: Bench) -> None:
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"}
    bench.write(workflow(*steps("ask", userInput=[need])))
    bench.write(workflow(*steps("one", "two", "three"), id="test.other"))
    agent = bench.agent()
    token = agent.call("start_session", title="Two runs")["sessionToken"]
    asking = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    agent.call("start_workflow", workflowId="test.other", sessionToken=token)
    agent.ack("one done")
    assert agent.ack("no colour yet", at=asking)["kind"] == "blocked"
    assert [question.id for question in inbox(agent.ledger)] == ["colour"]
    other = agent.call("start_workflow", workflowId="test.other", sessionToken=token)
    agent.ack("went on", at=other)
    assert [question.id for question in inbox(agent.ledger)] == ["colour"]
