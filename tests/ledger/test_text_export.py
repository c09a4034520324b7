"""An exported session as Markdown and HTML: each run with what was noted in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.ledger.transfer.bundle import Bundle
from interlock.ledger.transfer.export_import import export_session
from interlock.ledger.transfer.text_export import as_html, as_markdown
from support.harness import Agent, Bench, steps, workflow


@pytest.fixture
def bundle(bench: Bench) -> Bundle:
    """A session with two runs, each with one note."""
    bench.write(workflow(*steps("bake"), id="test.bread"))
    bench.write(workflow(*steps("brew"), id="test.tea"))
    agent = bench.agent()
    session_token = agent.call("start_session", title="Breakfast")["sessionToken"]
    for workflow_id, note in (("test.bread", "The crust is brown."), ("test.tea", "The water boiled.")):
        agent.call("start_workflow", workflowId=workflow_id, sessionToken=session_token)
        agent.ack(note)
    return exported(agent)


def exported(agent: Agent) -> Bundle:
    with agent.ledger.store.reading() as reader:
        session = reader.session(agent.last["session"]["sessionId"])
    assert session is not None
    return export_session(agent.ledger.store, session, agent.ledger.pins, agent.ledger.clock())


@pytest.mark.parametrize(
    ("render", "heading"), [(as_markdown, "\n## "), (as_html, "<h2>")], ids=["markdown", "html"]
)
def test_a_note_stands_once_under_its_own_run(
    bundle: Bundle, render: Callable[[Bundle], str], heading: str
) -> None:
    _, bread, tea = render(bundle).split(heading)
    assert bread.startswith("test.bread")
    assert tea.startswith("test.tea")
    assert [bread.count("The crust is brown."), bread.count("The water boiled.")] == [1, 0]
    assert [tea.count("The crust is brown."), tea.count("The water boiled.")] == [0, 1]
