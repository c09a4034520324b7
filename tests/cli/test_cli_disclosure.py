"""What people are told about a run beside its steps: gaps that are open or closed, and divergences."""

from __future__ import annotations

from click.testing import CliRunner

from interlock.cli.main import cli
from support.harness import Bench, gate, steps, workflow


def run(bench: Bench, *arguments: str) -> str:
    """Return what a command prints."""
    return CliRunner().invoke(cli, [*arguments, "--data-dir", str(bench.folder)]).output


def test_status_lists_gaps_and_tree_marks_a_divergence(bench: Bench) -> None:
    bench.write(workflow(*steps("one"), gate("ship", "now", "later"), *steps("two")))
    agent = bench.agent("never-stop")
    agent.start("test.flow")
    reason = {"reason": "efficiency_skip", "summary": "The tests exist already."}
    agent.ack("one", artifacts=[{"kind": "wr.workflow_divergence", **reason}])
    agent.ack()
    session = agent.last["session"]["sessionId"]
    agent.ledger.close()
    shown = run(bench, "status", session)
    assert "1 open" in shown
    assert "critical: 'ship?' was decided" in shown
    assert "[diverged: efficiency skip]" in run(bench, "tree", session)


def test_references_are_delivered_at_the_start_and_named_later(bench: Bench) -> None:
    reference = {"id": "style", "title": "Style guide", "source": "docs/style.md", "purpose": "how we write"}
    bench.write(workflow(*steps("one", "two"), references=[reference]))
    agent = bench.agent()
    agent.start("test.flow")
    assert "References:\n- Style guide: docs/style.md; how we write" in agent.text
    agent.look()
    assert "- Style guide" in agent.text
    assert "docs/style.md" not in agent.text
