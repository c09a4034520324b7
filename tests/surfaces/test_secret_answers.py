"""A secret is never taken as an answer, on any channel, and nothing of it is kept (rule 28)."""

from __future__ import annotations

import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from support.harness import Bench, decision, gate, steps, workflow

KEY = "sk_live_q8Zr2LmN0pXsT5vWyA3dF7hJ"
NEED = {"reason": "needs_user_secret_or_token", "key": "apiKey", "question": "The key of the shop?"}
WHERE = {"reason": "needs_user_environment_action", "key": "where", "question": "Where is the key?"}


def recorded(ledger: Ledger) -> str:
    """Return all that the store has of every session, as text."""
    with ledger.store.reading() as reader:
        sessions = reader.session_ids("", 100)
        commits = [row.body for session in sessions for row in reader.commits(session)]
        nodes = [row.state + row.outputs for session in sessions for row in reader.nodes(session)]
        blocked = [row.kept + row.outputs for session in sessions for row in reader.blocked(session)]
    return b"".join([*commits, *nodes, *blocked]).decode(errors="replace")


def test_a_question_of_a_secret_is_answered_with_provided_or_refused(bench: Bench) -> None:
    bench.write(workflow(*steps("pay", userInput=[NEED]), *steps("last")))
    agent, ledger = bench.agent(terms=Terms(decisions="user")), bench.ledger()
    agent.start("test.flow")
    agent.ack()
    (asked,) = inbox(ledger)
    assert [option.id for option in asked.options] == ["provided", "refused"]
    with pytest.raises(LedgerError, match="is not an option"):
        answer_question(ledger, asked, KEY)
    with pytest.raises(LedgerError) as refused:
        answer_question(ledger, asked, "provided", f"it is {KEY}")
    assert "looks like an API key" in refused.value.next_action
    answer_question(ledger, asked, "provided", "in the environment of the job")
    assert agent.ack()["pending"]["stepId"] == "last"
    assert KEY not in recorded(ledger)


def test_a_refused_secret_leaves_the_step_pending(bench: Bench) -> None:
    bench.write(workflow(*steps("pay", userInput=[NEED]), *steps("last")))
    agent, ledger = bench.agent(terms=Terms(decisions="user")), bench.ledger()
    agent.start("test.flow")
    agent.ack()
    (asked,) = inbox(ledger)
    answer_question(ledger, asked, "refused")
    assert agent.ack()["kind"] == "blocked"
    assert "has refused this: The key of the shop?" in agent.text


def test_an_agent_that_sends_the_secret_itself_is_told_what_to_send(bench: Bench) -> None:
    bench.write(workflow(*steps("pay", userInput=[NEED]), *steps("last")))
    agent, ledger = bench.agent(terms=Terms(decisions="agent")), bench.ledger()
    agent.start("test.flow")
    assert agent.ack(apiKey=KEY)["kind"] == "blocked"
    assert "'provided' or 'refused'" in agent.text
    assert agent.ack(artifacts=[decision("apiKey", KEY)])["kind"] == "blocked"
    assert agent.ack(apiKey="provided")["pending"]["stepId"] == "last"
    state = recorded(ledger)
    assert '"apiKey":"provided"' in state


def test_an_answer_in_words_that_holds_a_secret_is_refused(bench: Bench) -> None:
    bench.write(workflow(*steps("pay", userInput=[WHERE]), *steps("last")))
    agent, ledger = bench.agent(terms=Terms(decisions="user")), bench.ledger()
    agent.start("test.flow")
    agent.ack()
    (asked,) = inbox(ledger)
    with pytest.raises(LedgerError) as refused:
        answer_question(ledger, asked, f"the token is {KEY}")
    assert "looks like an API key" in refused.value.next_action
    assert KEY not in recorded(ledger)
    answer_question(ledger, asked, "in $SHOP_KEY")
    assert agent.ack()["pending"]["stepId"] == "last"


def test_a_note_to_a_gate_holds_no_secret(bench: Bench) -> None:
    bench.write(workflow(*steps("first"), gate("ship", "yes", "no"), *steps("last")))
    agent, ledger = bench.agent(terms=Terms(decisions="user")), bench.ledger()
    agent.start("test.flow")
    agent.ack()
    (asked,) = inbox(ledger)
    with pytest.raises(LedgerError) as refused:
        answer_question(ledger, asked, "yes", "password: hunter2")
    assert "looks like a password" in refused.value.next_action
    assert "hunter2" not in recorded(ledger)
