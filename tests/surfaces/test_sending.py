"""All that a step must send stands in one block, with types and legal values, and no favourable example."""

from __future__ import annotations

from typing import Any

from support.harness import Bench, gate, steps, workflow

LEVELS: Any = {
    "type": "object",
    "required": ["verdict"],
    "properties": {"verdict": {"enum": ["pass", "fail"]}},
}
CRITERIA = [{"type": "contains", "value": "because", "message": "Say why"}]
ASK = {"reason": "needs_user_choice", "key": "url", "question": "Which address?"}


def text_of_first_step(bench: Bench, *items: dict[str, Any], **more: Any) -> str:
    bench.write(workflow(*items, **more))
    agent = bench.agent()
    agent.start("test.flow", goal="walrus")
    return agent.text


def test_variables_artifacts_notes_and_the_users_answer_are_one_block(bench: Bench) -> None:
    text = text_of_first_step(
        bench,
        *steps(
            "look",
            sets=["size", "ready"],
            userInput=[ASK],
            output={"kind": "t.report", "schema": LEVELS, "example": {"verdict": "pass"}},
            validationCriteria=CRITERIA,
        ),
        *steps("small", runCondition={"var": "size", "in": ["small", "large"]}),
        *steps("each", runCondition={"var": "ready", "equals": True}),
        variables=[{"name": "ready", "type": "boolean"}],
    )
    block = text.partition("Send when it is done:\n")[2].partition("\n\n")[0]
    assert block.splitlines() == [
        "- context.url, the user's answer: <url>",
        '- context.size: "small" | "large"',
        "- context.ready (boolean): true | false",
        '- output.artifacts (output.t.report): {"kind":"t.report","verdict":"<pass | fail>"}',
        "- output.notesMarkdown, which must satisfy:",
        "  - Say why",
    ]


def test_a_step_that_sends_only_notes_is_told_so_by_the_footer_alone(bench: Bench) -> None:
    text = text_of_first_step(bench, *steps("look"))
    assert "Send when it is done" not in text
    assert "continue_workflow with output.notesMarkdown and these tokens" in text


def test_the_step_before_says_what_the_question_will_show(bench: Bench) -> None:
    asked = gate("deploy", "yes", "no", message="Deploy {{version}} to {{place.host}}?")
    text = text_of_first_step(bench, *steps("look"), asked)
    assert "Then the user is asked 'Deploy', and is shown `version`, `place.host`." in text
