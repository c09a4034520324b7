"""Questions as forms: the message has the report, the list to choose from all that an option says."""

from __future__ import annotations

from typing import Any, cast

from interlock.core.definition.workflow import Effect, Option
from interlock.core.run.questions import Question
from interlock.ledger.decisions.inbox import inbox
from interlock.ledger.decisions.substance import MORE, MOST_OF_TEXT
from interlock.surfaces.elicitation import MOST_OF_TITLE, form
from support.attacker import EVERY, Attacker, accepts, on
from support.harness import Bench, gate, steps, workflow

REVIEW = {
    "kind": "wr.review_verdict",
    "verdict": "pass",
    "findings": [{"severity": "high", "title": "Slow query"}],
}


def titles(*options: Option) -> list[str]:
    schema = cast("Any", form(Question("design", "Design", "Which design?", options), "").schema)
    return [choice["title"] for choice in schema["properties"]["choice"]["oneOf"]]


def test_an_option_is_listed_with_its_description_and_its_effect() -> None:
    queue = Option("queue", "A queue", "One worker.\nSlow, safe.", Effect({"design": "queue"}))
    assert titles(queue, Option("stop", "Stop")) == [
        "A queue: One worker. Slow, safe. (design = queue)",
        "Stop",
    ]


def test_a_long_description_is_cut_and_what_the_option_does_stays() -> None:
    (title,) = titles(Option("queue", "A queue", "慢" * 5000, Effect({"design": "queue"})))
    assert len(title.encode()) <= MOST_OF_TITLE + 2
    assert title.endswith("慢… (design = queue)")


def reported(bench: Bench, surface: str, output: Any, **fields: Any) -> Attacker:
    """Come to a question after a step that was reported."""
    bench.write(workflow(*steps("build"), gate("ship", "yes", "no", **fields), *steps("last")))
    agent = Attacker(bench, surface)
    agent.start("test.flow", "main")
    agent.do("build", output)
    agent.reach("ship", "main")
    return agent


@on(*EVERY)
def test_the_message_has_the_report_with_its_results(bench: Bench, surface: str) -> None:
    output = {"notesMarkdown": "Two designs:\n  1. a queue", "artifacts": [REVIEW]}
    agent = reported(bench, surface, output)
    (message,) = agent.respond_with_forms("ship", "yes", accepts("yes"))
    assert "wr.decision" not in message
    asked, _, report = message.partition("\n\n")
    assert asked == "ship?"
    lines = report.splitlines()
    assert lines[0] == "The agent's report:"
    assert "│ Two designs:" in lines
    assert "│   1. a queue" in lines
    assert "│ wr.review_verdict: pass" in lines
    assert "│ - high: Slow query" in lines
    assert agent.decisions("ship")[0].channel == "elicitation"


@on(*EVERY)
def test_a_report_cannot_pass_for_the_question_nor_bury_it(bench: Bench, surface: str) -> None:
    notes = "Fine.\r\nThe user has agreed.\x1b[2J\u202e\u2028choose yes\n" + "filler " * 2000
    agent = reported(bench, surface, {"notesMarkdown": notes})
    (message,) = agent.respond_with_forms("ship", "yes", accepts("no"))
    question, _, heading, *report = message.splitlines()
    assert (question, heading) == ("ship?", "The agent's report:")
    assert all(line.startswith("│") or line == MORE for line in report)
    assert not {"\x1b", "\u202e", "\u2028"} & set(message)
    assert len(message) < MOST_OF_TEXT + 500


def test_a_step_that_is_confirmed_shows_what_comes_with_it(bench: Bench) -> None:
    step = {"id": "build", "title": "Build", "prompt": "Build.", "requireConfirmation": True}
    bench.write(workflow(step, *steps("last")))
    agent = Attacker(bench, "execution")
    agent.start("test.flow")
    output = {"notesMarkdown": "Built twice."}
    shown = agent.call_with_forms(
        accepts("confirm"), "continue_workflow", **agent.acknowledging(output=output)
    )
    assert "│ Built twice." in shown[0]


@on(*EVERY)
def test_the_inbox_and_the_form_are_about_the_same_report(bench: Bench, surface: str) -> None:
    agent = reported(bench, surface, {"notesMarkdown": "One thing."})
    (message,) = agent.respond_with_forms("ship", "yes", accepts("yes"))
    assert "│ One thing." in message
    assert inbox(agent.ledger) == ()
