"""All that a step must send stands in one block, with types and legal values, and no favourable example."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.surfaces.navigation import NavigationSurface
from support.harness import Agent, Bench, gate, steps, workflow

LEVELS: Any = {
    "type": "object",
    "required": ["verdict"],
    "properties": {"verdict": {"enum": ["pass", "fail"]}},
}
CRITERIA = [{"type": "contains", "value": "because", "message": "Say why"}]
YES_OR_NO: list[dict[str, Any]] = [
    {"id": "yes", "label": "Yes", "effect": {"setVariable": {"review": True}}},
    {"id": "no", "label": "No", "effect": {"setVariable": {"review": False}}},
]
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
        '- context.size: "small" | "large" | <another value>',
        "- context.ready (boolean): true | false",
        '- output.artifacts (output.t.report): {"kind":"t.report","verdict":"<pass | fail>"}',
        "- output.notesMarkdown, which must satisfy:",
        "  - Say why",
    ]


def test_a_step_that_sends_only_notes_is_told_so_by_the_footer_alone(bench: Bench) -> None:
    text = text_of_first_step(bench, *steps("look"))
    assert "Send when it is done" not in text
    assert "Then continue_workflow with output.notesMarkdown and:" in text


def test_the_step_before_says_what_the_question_will_show(bench: Bench) -> None:
    asked = gate("deploy", "yes", "no", message="Deploy {{version}} to {{place.host}}?")
    text = text_of_first_step(bench, *steps("look"), asked)
    assert "Then the user is asked 'Deploy', and is shown `version`, `place.host`." in text


def test_a_question_with_a_condition_is_announced_as_one_that_may_come(bench: Bench) -> None:
    failed = {"variable": "passed", "operator": "==", "value": False}
    asked = gate("failed", "mend", "go-on", message="Failed: {{failures}}. Mend it?", condition=failed)
    text = text_of_first_step(bench, *steps("look", sets=["passed"]), asked)
    assert "Then the user may be asked 'Failed', and is then shown `failures`." in text
    assert "Then the user is asked" not in text


@pytest.mark.parametrize(("option", "is_told"), [("yes", True), ("no", False)])
def test_a_question_whose_condition_the_user_has_decided_is_announced_or_not(
    bench: Bench, option: str, is_told: bool
) -> None:
    """It was announced in every round of a loop although the user had chosen not to be asked."""
    wanted = {"variable": "review", "operator": "==", "value": True}
    plan = gate("plan", *YES_OR_NO, message="Look at each?")
    asked = gate("each", "good", message="Is {{change}} good?", condition=wanted)
    bench.write(workflow(plan, *steps("work"), asked, *steps("end")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.decide(option)
    assert ("Then the user is asked 'Each', and is shown `change`." in agent.text) is is_told
    assert "may be asked" not in agent.text


def test_a_question_behind_a_loop_is_announced_as_one_that_may_come(bench: Bench) -> None:
    again = {"type": "until", "condition": {"var": "green", "equals": True}, "maxIterations": 4}
    poll = {"id": "poll", "type": "loop", "title": "Poll", "loop": again, "body": steps("look")}
    asked = gate("deploy", "yes", message="Deploy {{version}}?")
    text = text_of_first_step(bench, poll, asked)
    assert "Then the user may be asked 'Deploy', and is then shown `version`." in text


def test_what_only_the_text_of_a_step_says_it_sets_is_told_with_the_call_that_takes_it(bench: Bench) -> None:
    """The footer named only notes where the text said "set ciStatus": a poll that never ended."""
    poll = {"type": "until", "condition": {"var": "ciStatus", "equals": "green"}, "maxIterations": 4}
    look = {"id": "look", "title": "Look", "prompt": "Look at CI and set ciStatus and `failures`."}
    text = text_of_first_step(
        bench,
        {"id": "poll", "type": "loop", "title": "Poll", "loop": poll, "body": [look]},
        *steps("mend", runCondition={"var": "failures", "gt": 0}),
        variables=[{"name": "failures", "type": "number"}, {"name": "ciStatus"}],
    )
    block = text.partition("Send when it is done:\n")[2].partition("\n\n")[0]
    assert block.splitlines() == [
        '- context, as far as the step sets it: ciStatus ("green" | <another value>), failures (number)',
        "- output.notesMarkdown: what was done and found",
    ]


def test_a_step_that_does_not_send_what_its_text_says_is_told_so(bench: Bench) -> None:
    """Rule 31: what only prose promises is a warning."""
    look = {"id": "look", "title": "Look", "prompt": "Set `mode` and `depth` to what fits."}
    fast = steps("fast", runCondition={"var": "mode", "equals": "fast"})
    deep = steps("deep", runCondition={"var": "depth", "not_equals": 1})
    bench.write(workflow(look, *fast, *deep))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("looked")
    assert "Warning: The text of step 'look' says to set 'mode', 'depth', and nobody has." in agent.text
    agent.start("test.flow")
    agent.ack("looked", mode="slow", depth=None)  # null says that it is not known
    assert "The text of step 'look'" not in agent.text


def test_a_variable_with_a_default_may_be_sent_and_is_not_missed(bench: Bench) -> None:
    """Told to produce it, left out of what to send, then warned: three texts that disagreed."""
    flow = workflow(
        *steps("pick", sets=["channel"]),
        *steps("ship", prompt="Ship to {{channel}}."),
        variables=[{"name": "channel", "type": "string", "defaultValue": "preview"}],
    )
    flow["$schema"] = "step-workflow.schema.json"
    bench.write(flow)
    agent = bench.agent()
    agent.start("test.flow")
    assert '- context, as far as the step sets it: channel (string, else "preview")' in agent.text
    agent.ack("picked")
    assert "Ship to preview." in agent.text
    assert "Warning" not in agent.text


def test_an_answer_without_a_variable_is_told_with_the_whole_artifact(bench: Bench) -> None:
    """Without its checkpointId no agent could send it before it was blocked."""
    approve = {"reason": "needs_user_approval", "question": "Deploy?"}
    restart = {"reason": "needs_user_environment_action", "question": "Restart the VPN, please."}
    bench.write(workflow(*steps("ship", userInput=[approve, restart])))
    agent = bench.agent()
    agent.start("test.flow")
    told = [
        line for line in agent.text.splitlines() if line.startswith("- output.artifacts, the user's answer: ")
    ]
    approval, restarted = (json.loads(line.partition("answer: ")[2]) for line in told)
    assert approval["optionId"] == "<approve | reject>"
    assert restarted["optionId"] == "<the user's answer>"
    sent = [{**approval, "optionId": "approve"}, {**restarted, "optionId": "it is restarted"}]
    assert agent.ack("shipped", artifacts=sent)["isComplete"]


def sent_as_shown(agent: Any, **filled: Any) -> str:
    """Send what the text says to send in context, with its placeholders filled."""
    text: str = agent.text
    shape = text.partition("Send in context: ")[2].splitlines()[0]
    for placeholder, value in filled.items():
        shape = shape.replace(f'"<{placeholder}>"', json.dumps(value))
    agent.ack("", **json.loads(shape))
    return str(agent.text)


def test_an_example_of_a_member_keeps_the_other_members(bench: Bench) -> None:
    """A value is replaced as a whole: sent as it was shown, the example lost the module's name."""
    tests = {"type": "forEach", "items": "module.tests", "itemVar": "test", "maxIterations": 9}
    run = {"id": "run", "title": "Run", "prompt": "Run {{test}} of {{module.name}}."}
    inner = {"id": "inner", "type": "loop", "title": "Tests", "loop": tests, "body": [run]}
    modules = {"type": "forEach", "items": "modules", "itemVar": "module", "maxIterations": 9}
    bench.write(workflow({"id": "outer", "type": "loop", "title": "All", "loop": modules, "body": [inner]}))
    agent = bench.agent()
    agent.start("test.flow", modules=[{"name": "core"}])
    assert "Run t1 of core." in sent_as_shown(agent, item="t1")
    agent.start("test.flow", modules=[{"name": "core", "about": "x" * 3000}])
    assert "x" * 50 not in agent.text
    assert "'module' is not taken: it is the placeholder of an example." in sent_as_shown(agent, item="t1")


def test_what_a_question_of_a_step_shows_of_a_member_is_asked_for_as_one(bench: Bench) -> None:
    approve = {"reason": "needs_user_approval", "question": "Deploy to {{place.host}}?"}
    bench.write(workflow(*steps("ship", userInput=[approve])))
    agent = bench.agent()
    agent.start("test.flow", place={"port": 80})
    blocked = agent.ack("shipped")
    assert blocked["blockers"][0]["example"] == {"place": {"port": 80, "host": "<host>"}}


def test_in_never_stop_mode_what_is_a_gap_is_not_a_warning_too(bench: Bench) -> None:
    later = steps("later", runCondition={"var": "size", "equals": "small"})
    ask = gate("add", "none", "more", required=False)
    bench.write(workflow(*steps("judge", sets=["size"]), ask, *later))
    agent = bench.agent("never-stop")
    agent.start("test.flow")
    agent.ack("judged")
    assert "Gap 1 (critical): Step 'judge' must set 'size'" in agent.text
    assert "should set 'size'" not in agent.text
    assert "It is optional" not in agent.text  # an option is taken in any case
    assert "Nobody is asked: choose what fits best, which is recorded as a gap" in agent.text


def test_an_assessment_that_is_not_good_enough_is_named_with_its_level(bench: Bench) -> None:
    dimensions = [{"id": "tests", "levels": ["low", "high"]}, {"id": "docs", "levels": ["low", "high"]}]
    needs = {"when": {"anyEqualsLevel": "low"}, "effect": {"guidance": "Write the missing tests first."}}
    assess = steps("assess", assessmentRefs=["ready"], assessmentConsequences=[needs])
    bench.write(workflow(*assess, assessments=[{"id": "ready", "dimensions": dimensions}]))
    agent = bench.agent()
    agent.start("test.flow")
    rated = {"kind": "wr.assessment", "assessmentId": "ready", "dimensions": {"tests": "low", "docs": "high"}}
    blocked = agent.ack("assessed", artifacts=[rated])
    assert blocked["blockers"][0]["message"] == (
        "The artifact 'wr.assessment' is not accepted: tests is low: Write the missing tests first."
    )


def test_a_step_that_the_user_confirms_says_what_to_send_as_any_other(bench: Bench) -> None:
    """Told to send "output", an agent that did as it was told ended with a gap: nothing was written down."""
    bench.write(workflow(*steps("one", requireConfirmation=True)))
    agent = bench.agent()
    agent.start("test.flow")
    told = "ask the user to confirm, and revise it until they do; then continue_workflow with "
    assert f"When done, {told}output.notesMarkdown and these tokens." in agent.text
    bench.write(workflow(*steps("one", requireConfirmation=True, notesOptional=True), id="test.bare"))
    agent.start("test.bare")
    assert f"When done, {told}these tokens." in agent.text
    rules = [{"type": "contains", "value": "because", "message": "Say why"}]
    bench.write(workflow(*steps("one", requireConfirmation=True, validationCriteria=rules), id="test.block"))
    agent.start("test.block")
    assert f"When done, {told}that and these tokens." in agent.text


def test_a_step_that_asks_first_and_is_confirmed_afterwards_says_both(bench: Bench) -> None:
    """A bare acknowledgement reports the confirmation, so an agent must know that there is one."""
    bench.write(workflow(*steps("one", requireConfirmation=True, userInput=[ASK])))
    agent = bench.agent()
    agent.start("test.flow")
    assert (
        "Ask the user first. When done, ask the user to confirm, and revise it until they do;" in agent.text
    )


def write_each_task(bench: Bench, *before: dict[str, Any]) -> None:
    loop = {"type": "forEach", "items": "tasks", "itemVar": "task", "maxIterations": 5}
    body = steps("work", prompt="Work on {{task}}.")
    each = {"id": "each", "type": "loop", "title": "Each", "loop": loop, "body": body}
    declared = [{"name": "tasks", "type": "array"}, {"name": "task", "type": "object"}]
    bench.write({"$schema": "step-workflow.schema.json", **workflow(*before, each, variables=declared)})


def each_task(bench: Bench) -> Agent:
    write_each_task(bench, *steps("plan", sets=["tasks"]))
    agent = bench.agent()
    agent.start("test.flow")
    return agent


def test_the_example_of_a_list_has_items_of_the_type_that_its_loop_declares(bench: Bench) -> None:
    """It was ["<item>"]: sent as shown, every round was about a task that is not set."""
    agent = each_task(bench)
    assert '- context.tasks (array): [{"<member>":"<value>"}]' in agent.text
    agent.ack("planned", tasks=[{"title": "login"}])
    assert 'Work on {"title":"login"}.' in agent.text
    assert "Warning" not in agent.text


def test_a_list_whose_items_no_round_could_take_is_refused_when_it_is_sent(bench: Bench) -> None:
    agent = each_task(bench)
    blocked = agent.ack("planned", tasks=["login", {"title": "logout"}])
    assert blocked["kind"] == "blocked"
    assert "'tasks' is not taken: each of its items is declared as object." in agent.text
    assert 'Send a JSON array, such as [{"<member>":"<value>"}].' in agent.text
    agent.ack("planned", tasks=['{"title": "login"}'])  # JSON as text is an object too
    assert agent.pending == "work"


def test_navigation_says_what_the_items_of_a_loop_are(bench: Bench) -> None:
    """It said "a list: tasks", and of a list of words only that the list is not set."""
    write_each_task(bench)
    agent = Agent(NavigationSurface(bench.ledger()))
    started = agent.call("nav_start", workflow_id="test.flow")
    (offer,) = started["availableActions"]["required"]
    assert offer["loop_items"] == [{"<member>": "<value>"}]
    advance = {"action": "advance_loop", "loop_id": "each"}
    refused = agent.call("nav_action", state=started["state"], **advance, loop_items=["login"])
    assert refused["error"]["message"] == (
        "Loop 'each' needs its items: 'tasks' is not taken: each of its items is declared as object. "
        'Send a JSON array, such as [{"<member>":"<value>"}].'
    )
    begun = agent.call("nav_action", state=started["state"], **advance, loop_items=[{"title": "login"}])
    assert begun["position"]["step"]["id"] == "work"


def test_a_list_whose_items_are_not_among_the_declared_values_is_refused(bench: Bench) -> None:
    """It was taken, and the user was then asked about another item than the one of the round."""
    loop = {"type": "forEach", "items": "envs", "itemVar": "env", "maxIterations": 5}
    each = {"id": "each", "type": "loop", "title": "Each", "loop": loop, "body": steps("work")}
    declared = [
        {"name": "envs", "type": "array"},
        {"name": "env", "type": "string", "values": ["dev", "prod"]},
    ]
    bench.write(workflow(*steps("plan", sets=["envs"]), each, variables=declared))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("planned", envs=["staging"])
    assert '\'envs\' is not taken: each of its items is one of "dev" | "prod".' in agent.text
    assert 'Send a JSON array, such as ["<dev | prod>"].' in agent.text
    agent.ack("planned", envs=["dev"])
    assert agent.pending == "work"


def write_each_file(bench: Bench) -> None:
    loop = {"type": "forEach", "items": "plan.files", "itemVar": "file", "maxIterations": 5}
    body = steps("work", prompt="Work on {{file}} of {{plan.title}}.")
    bench.write(workflow({"id": "each", "type": "loop", "title": "Each", "loop": loop, "body": body}))


def test_navigation_takes_the_items_of_a_loop_over_a_member(bench: Bench) -> None:
    """They were refused: the name of a variable has no dot."""
    write_each_file(bench)
    agent = Agent(NavigationSurface(bench.ledger()))
    started = agent.call("nav_start", workflow_id="test.flow", initial_variables={"plan": {"title": "T"}})
    advance = {"action": "advance_loop", "loop_id": "each", "loop_items": ["a.py"]}
    begun = agent.call("nav_action", state=started["state"], **advance)
    assert "Work on a.py of T." in begun["availableActions"]["required"][0]["description"]


def test_a_placeholder_in_a_list_inside_a_value_is_not_taken(bench: Bench) -> None:
    write_each_file(bench)
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack(plan={"title": "T", "files": ["<item>"]})
    assert "'plan' is not taken: it is the placeholder of an example. Send its value." in agent.text
    agent.ack(plan={"title": "T", "files": ["a.py"]})
    assert "Work on a.py of T." in agent.text
