"""Attacks on the path: around a gate, over it, or out of the loop that it stands in."""

from __future__ import annotations

from typing import Any

from support.attacker import (
    ASKING,
    AUTO,
    CLAIMING,
    EVERY,
    STEPWISE,
    USER,
    Attacker,
    accepts,
    activity,
    declines,
    equals,
    held,
    on,
    pass_seconds,
    question,
    sets,
    step,
    write_activities,
)
from support.harness import Bench, decision, gate, steps, workflow

YES_OR_NO: dict[str, Any] = {"yes": {}, "no": {}}
SHIP = activity("ship", step("send"))

ASKED = {
    "gate": [gate("deploy", "yes", "no", message="Deploy to {{env}}?"), *steps("launch")],
    "approval": [
        {
            "id": "launch",
            "title": "Launch",
            "prompt": "Launch it.",
            "userInput": [
                {"reason": "needs_user_approval", "key": "deploy", "question": "Deploy to {{env}}?"}
            ],
        }
    ],
}


def write_rounds(bench: Bench, asked: str) -> None:
    each = {"type": "forEach", "items": "envs", "itemVar": "env", "maxIterations": 5}
    loop = {"type": "loop", "id": "each", "title": "Each", "loop": each, "body": ASKED[asked]}
    bench.write(workflow(*steps("begin"), loop, *steps("last")))


@on(*EVERY, asked=ASKED)
def test_a7_an_answer_serves_one_round_of_its_loop(bench: Bench, surface: str, asked: str) -> None:
    write_rounds(bench, asked)
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", envs=["staging", "PRODUCTION"])
    agent.do("begin")
    if surface == "navigation":
        agent.act("advance_loop", loop_id="each")
    if asked == "gate":
        agent.reach("deploy", "main")
    else:
        agent.walk("launch", ">__terminal__")
    option = "yes" if asked == "gate" else "approve"
    assert agent.user_decides("deploy", option) == "Deploy to «staging»?"
    agent.use_decision("deploy", option)
    for _ in range(2):
        agent.walk("launch")
        if surface == "navigation":
            agent.act("advance_loop", loop_id="each")
    agent.walk("last", ">__terminal__")
    assert agent.has_done("launch")
    held(not agent.has_completed(), f"two rounds, and the user was asked {agent.seen}")


@on(*CLAIMING, asked=ASKED)
def test_a7_a_run_of_another_surface_brings_the_answer_of_one_round_only(
    bench: Bench, surface: str, asked: str
) -> None:
    write_rounds(bench, asked)
    begun = Attacker(bench, "execution", USER)
    begun.start("test.flow", envs=["staging", "PRODUCTION"])
    begun.do("begin")
    begun.do("launch")
    agent = Attacker(bench, surface, USER)
    token = begun.tokens["stateToken"]
    agent.call("start_session", workflow_id="test.flow", agent_id="agent", session_token=token)
    option = "yes" if asked == "gate" else "approve"
    assert agent.user_decides("deploy", option) == "Deploy to «staging»?"
    agent.walk("launch", "launch", "last", ">__terminal__")
    if asked == "gate":
        agent.reach("deploy", "main")
        agent.use_decision("deploy", option)
        agent.respond("deploy", option)
        agent.walk("launch", "launch", "last", ">__terminal__")
        assert [question.message for question in agent.waiting("deploy")] == ["Deploy to «PRODUCTION»?"]
    assert agent.has_done("launch")
    held(not agent.has_completed(), f"two rounds, and the user was asked {agent.seen}")


@on(*CLAIMING)
def test_a7_an_answer_that_waits_serves_one_of_two_rounds_that_ask_in_the_same_words(
    bench: Bench, surface: str
) -> None:
    each = {"type": "forEach", "items": "envs", "itemVar": "env", "maxIterations": 5}
    body = [gate("deploy", "yes", "no", message="Deploy the next one?"), *steps("launch")]
    bench.write(workflow({"type": "loop", "id": "each", "title": "Each", "loop": each, "body": body}))
    begun = Attacker(bench, "execution", USER)
    begun.start("test.flow", envs=["staging", "PRODUCTION"])
    agent = Attacker(bench, surface, USER)
    token = begun.tokens["stateToken"]
    agent.call("start_session", workflow_id="test.flow", agent_id="agent", session_token=token)
    agent.user_decides("deploy", "yes")
    agent.walk("launch", "launch", ">__terminal__")
    assert agent.has_done("launch")
    assert len(agent.waiting("deploy")) == 1
    assert "GUARD_REFUSED" not in agent.text
    held(not agent.has_completed(), f"two rounds, and the user was asked {agent.seen}")


@on(*CLAIMING)
def test_a_run_that_no_activity_was_entered_in_comes_to_its_question_on_execution(
    bench: Bench, surface: str
) -> None:
    bench.write(workflow(*ASKED["approval"], *steps("last")))
    begun = Attacker(bench, surface, USER)
    begun.call("start_session", workflow_id="test.flow", agent_id="agent")
    agent = Attacker(bench, "execution", USER)
    agent.call("continue_workflow", stateToken=begun.tokens["session_token"])
    agent.ack(output={"notesMarkdown": "launched"}, context={"env": "staging"})
    assert not agent.has_done("launch")
    assert "not done" in agent.text
    assert agent.user_decides("deploy", "approve") == "Deploy to «staging»?"
    agent.ack(output={"notesMarkdown": "launched"})
    assert agent.has_done("launch")
    held([answer.channel for answer in agent.decisions("deploy")] == ["cli"], "the agent has answered")


REACTIONS = {"approve": accepts("approve"), "reject": accepts("reject"), "nothing": declines}


@on(*CLAIMING, answer=REACTIONS)
def test_where_no_activity_was_entered_the_form_of_a_step_counts(
    here: Bench, surface: str, answer: str
) -> None:
    here.write(workflow(*ASKED["approval"], *steps("last")))
    begun = Attacker(here, surface, AUTO)
    begun.call("start_session", workflow_id="test.flow", agent_id="agent")
    agent = Attacker(here, "execution", AUTO, client=ASKING)
    agent.call("continue_workflow", stateToken=begun.tokens["session_token"])
    acked = agent.acknowledging(output={"notesMarkdown": "launched"}, context={"env": "staging"})
    shown = agent.call_with_forms(REACTIONS[answer], "continue_workflow", **acked)
    assert len(shown) == 1
    assert "GUARD" not in agent.text
    held(agent.has_done("launch") == (answer == "approve"), f"the form was answered with {answer}")
    assert answer == "approve" or agent.waiting("deploy")


@on(*EVERY)
def test_a9_an_open_question_is_not_talked_out_of_its_condition(bench: Bench, surface: str) -> None:
    asked = question("deploy", "Deploy?", condition=equals("risky", True), **YES_OR_NO)
    write_activities(bench, activity("plan", asked, step("prepare"), to="ship"), SHIP, risky="boolean")
    agent = Attacker(bench, surface, USER)
    agent.start(risky=True)
    agent.reach("deploy")
    assert agent.waiting("deploy")
    agent.walk("prepare", ">ship", risky=False)
    if surface in CLAIMING:
        named = {"checkpoint_id": "deploy"} if surface == "gated" else {}
        agent.tell("respond_checkpoint", condition_not_met=True, **named)
    agent.walk("prepare", ">ship", "send")
    held(agent.waiting("deploy"), "the question is gone from the inbox")
    held(not agent.has_entered("ship"), "the gate was passed")


BEFORE_THE_LATER = {
    "gate": [step("prepare"), question("budget", "May it cost that much?", **YES_OR_NO)],
    "contract": [step("prove", output={"contractRef": "wr.contracts.gate_verdict"})],
}


@on(*EVERY, earlier=BEFORE_THE_LATER)
def test_a12_a_later_gate_is_no_exit_before_an_earlier_one(bench: Bench, surface: str, earlier: str) -> None:
    later = question("deploy", "Deploy?", leave={"transitionTo": "ship"}, stay={})
    write_activities(bench, activity("plan", *BEFORE_THE_LATER[earlier], later, to="ship"), SHIP)
    agent = Attacker(bench, surface)
    agent.start()
    if earlier == "gate":
        agent.do("prepare")
    agent.reach("deploy")
    agent.respond("deploy", "leave")
    if surface == "session":
        agent.tell("resume_checkpoint")
    agent.walk(">ship", "send", ">__terminal__")
    assert agent.has_done("prepare") == (earlier == "gate")
    held(not agent.decisions("deploy"), f"the {earlier} before it was left out")
    held(not agent.has_entered("ship"), f"the {earlier} before the exit was left out")


HELD_IN_CHECK = {
    "gate": activity("check", question("deploy", "Deploy?", **YES_OR_NO), step("look"), to="ship"),
    "gate in a loop": activity(
        "check",
        to="ship",
        loops=[
            {
                "id": "each",
                "name": "Each",
                "type": "forEach",
                "variable": "part",
                "over": "parts",
                "steps": [question("deploy", "Deploy {{part}}?", **YES_OR_NO), step("look")],
            }
        ],
    ),
    "confirmation": activity("check", step("look", requireConfirmation=True), to="ship"),
    "input": activity(
        "check",
        step("look", userInput=[{"reason": "needs_user_approval", "key": "signed", "question": "Sign?"}]),
        to="ship",
    ),
    "contract": activity(
        "check", step("look", output={"contractRef": "wr.contracts.gate_verdict"}), to="ship"
    ),
}


@on(*CLAIMING, "navigation", held_by=HELD_IN_CHECK, target=["ship", "__terminal__"])
def test_a13_no_jump_over_what_an_activity_requires(
    bench: Bench, surface: str, held_by: str, target: str
) -> None:
    write_activities(
        bench, activity("plan", step("prepare"), to="check"), HELD_IN_CHECK[held_by], SHIP, parts="array"
    )
    agent = Attacker(bench, surface, USER)
    agent.start(parts=["one"])
    agent.walk("prepare", f">{target}")
    assert agent.has_done("prepare")
    held(not agent.has_entered("ship"), f"jumped over the {held_by}")
    held(not agent.has_completed(), f"ended without the {held_by}")


@on(*EVERY, first=["work", "gate"])
def test_a14_a_round_that_the_user_asked_for_is_not_left_out(bench: Bench, surface: str, first: str) -> None:
    again = {"id": "again", "label": "Again", "effect": {"setVariable": {"redo": True}}}
    enough = {"id": "enough", "label": "Enough", "effect": {"setVariable": {"redo": False}}}
    body = [*steps("work"), gate("good", again, enough)]
    bench.write(
        workflow(
            {
                "type": "loop",
                "id": "rounds",
                "title": "Rounds",
                "loop": {"type": "while", "condition": {"var": "redo", "equals": True}, "maxIterations": 5},
                "body": body if first == "work" else body[::-1],
            },
            *steps("last"),
            variables=[{"name": "redo", "type": "boolean", "description": "More?", "defaultValue": True}],
        )
    )
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main")
    if surface == "navigation":
        agent.act("advance_loop", loop_id="rounds")
    if first == "work":
        agent.do("work")
    agent.reach("good", "main")
    agent.user_decides("good", "again")
    agent.use_decision("good", "again")
    agent.walk("work", "last", ">__terminal__")
    assert [record.option for record in agent.decisions("good")] == ["again"]
    held(not agent.has_completed(), "the run ended although the user wanted another round")
    held(not agent.has_done("last"), "the loop was left although the user wanted another round")


@on(*EVERY)
def test_a18_without_an_initial_activity_nobody_begins_after_the_gate(bench: Bench, surface: str) -> None:
    asked = question("deploy", "Deploy?", **YES_OR_NO)
    write_activities(bench, activity("plan", asked, step("prepare"), to="ship"), SHIP, initial=None)
    agent = Attacker(bench, surface)
    if surface == "navigation":
        agent.call("nav_start", workflow_id="deploy", activity_id="ship")
    else:
        agent.start(first="ship")
    if surface == "execution" and "ackToken" in agent.tokens:
        agent.respond("choose-activity", "ship")
    if surface != "navigation" or "state" in agent.tokens:
        agent.walk("send", ">__terminal__")
    held(not agent.has_completed(), "the run is complete, and nobody was asked")
    held(not agent.has_entered("ship"), "the run began after the gate")


TIMED = activity(
    "plan",
    step("prepare"),
    question("deploy", "Deploy?", blocking=False, defaultOption="yes", autoAdvanceMs=1000, **YES_OR_NO),
    to="ship",
)


@on(*CLAIMING)
def test_time_a_question_that_was_never_shown_has_no_default(bench: Bench, surface: str) -> None:
    write_activities(bench, TIMED, SHIP)
    agent = Attacker(bench, surface)
    agent.start()
    pass_seconds(bench, 1.5)
    agent.walk("prepare", ">ship", "send", ">__terminal__")
    held(not agent.has_entered("ship"), "the default was taken for a question that nobody saw")


@on(*STEPWISE)
def test_time_a_default_runs_from_the_showing(here: Bench, surface: str) -> None:
    write_activities(here, TIMED, SHIP)
    agent = Attacker(here, surface)
    agent.start()
    pass_seconds(here, 1.5)
    agent.walk("prepare", ">ship")
    agent.walk("send")
    held(not agent.has_entered("ship"), "the default was taken at once")


@on(*EVERY)
def test_ends_a_completed_run_takes_no_decision(bench: Bench, surface: str) -> None:
    optional = question("deploy", "Deploy?", required=False, yes=sets(approved=True), no={})
    write_activities(bench, activity("plan", step("prepare"), optional), approved="boolean")
    agent = Attacker(bench, surface)
    agent.start()
    agent.walk("prepare", ">__terminal__")
    if surface == "execution":
        agent.respond("deploy", "no")
    assert agent.has_completed()
    before = agent.decisions()
    if surface == "execution":
        late = {"artifacts": [decision("deploy", "yes")]}
        tokens = {name: agent.tokens[name] for name in ("stateToken", "checkpointToken")}
        agent.call("checkpoint_workflow", **tokens, output=late)
    agent.reach("deploy")
    agent.respond("deploy", "yes")
    held(agent.decisions() == before, f"{agent.decisions()} after the end")


WAYS_OUT = question("deploy", "Deploy?", required=False, stay={}, skip={"transitionTo": "last"})


@on(*CLAIMING, "navigation", where=["plan", "middle"])
def test_search_an_option_that_nobody_chose_is_no_exit(bench: Bench, surface: str, where: str) -> None:
    offered = {name: [WAYS_OUT] if name == where else [] for name in ("plan", "middle")}
    write_activities(
        bench,
        activity("plan", step("prepare"), *offered["plan"], to="middle"),
        activity("middle", step("look"), *offered["middle"], to="ship"),
        activity("ship", question("really", "Really?", **YES_OR_NO), step("send"), to="last"),
        activity("last", step("close")),
    )
    agent = Attacker(bench, surface, USER)
    agent.start()
    agent.walk("prepare", ">last", "close", ">__terminal__")
    held(not agent.has_entered("last"), "the gate of 'ship' was left out by an option that nobody chose")


BESIDE = {
    "without exits": activity("aside", step("read")),
    "before the first": activity(
        "aside", step("read"), to=[{"to": "plan", "condition": equals("quick", False)}]
    ),
}


@on(*CLAIMING, "navigation", beside=BESIDE, first=["plan", "aside"])
def test_search_going_back_before_the_beginning_is_no_way_past_a_gate(
    bench: Bench, surface: str, beside: str, first: str
) -> None:
    write_activities(
        bench,
        activity("plan", step("prepare"), to="check"),
        activity("check", question("deploy", "Deploy?", **YES_OR_NO), step("look"), to="ship"),
        SHIP,
        BESIDE[beside],
        quick="boolean",
    )
    agent = Attacker(bench, surface, USER)
    agent.start(first=first)
    if first == "plan":
        agent.walk("prepare", ">aside", quick=True)
    agent.walk("read", ">ship", "send", ">__terminal__", quick=True)
    held(not agent.has_entered("ship"), "the gate of 'check' was left out")


APPROVE = {
    "deploy": {"label": "Deploy", "effect": {"setVariable": {"approved": True}}},
    "cancel": {"label": "Cancel"},
}
APPROVED = {"var": "approved", "equals": True}


@on(*EVERY, when=["at the start", "before the gate"])
def test_a_variable_that_only_an_answer_sets_is_never_the_agents(
    bench: Bench, surface: str, when: str
) -> None:
    asked = gate("approve", *({"id": name, **option} for name, option in APPROVE.items()))
    ship = {"id": "ship", "title": "Ship", "prompt": "Ship it.", "runCondition": APPROVED}
    bench.write(workflow(*steps("build"), asked, ship, *steps("last")))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", **({"approved": True} if when == "at the start" else {}))
    agent.do("build", approved=True)
    agent.reach("approve", "main", approved=True)
    agent.user_decides("approve", "cancel")
    agent.use_decision("approve", "cancel", approved=True)
    agent.walk("ship", "last", ">__terminal__", approved=True)
    held(not agent.has_done("ship"), "the agent shipped what the user had cancelled")


@on(*EVERY)
def test_a_loop_that_ends_by_an_answer_is_not_ended_by_the_agent(bench: Bench, surface: str) -> None:
    asked = gate("approve", *({"id": name, **option} for name, option in APPROVE.items()))
    until = {"type": "until", "condition": APPROVED, "maxIterations": 5}
    loop = {"type": "loop", "id": "tries", "title": "Tries", "loop": until, "body": [*steps("try"), asked]}
    bench.write(workflow(*steps("build"), loop, *steps("last")))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", approved=True)
    agent.do("build", approved=True)
    if surface == "navigation":
        agent.act("advance_loop", loop_id="tries", variables={"approved": True})
    agent.walk("try", "last", ">__terminal__", approved=True)
    held(not agent.has_done("last"), "the loop was left without the answer that ends it")
    held(not agent.has_completed(), "the run ended without the answer that ends its loop")


@on(*EVERY)
def test_an_exit_that_an_answer_opens_is_not_opened_by_the_agent(bench: Bench, surface: str) -> None:
    approve = question("approve", "Deploy?", yes=sets(approved=True), no={})
    routes = [{"to": "ship", "condition": equals("approved", True)}, {"to": "review", "isDefault": True}]
    review = activity("review", approve, step("look"), to="ship")
    write_activities(bench, activity("plan", step("prepare"), to=routes), review, SHIP)
    agent = Attacker(bench, surface, USER)
    agent.start(approved=True)
    agent.walk("prepare", ">ship", approved=True)
    held(not agent.has_entered("ship"), "the agent opened an exit that only the user's answer opens")


@on(*STEPWISE)
def test_what_a_loop_sets_for_each_round_is_not_the_agents(bench: Bench, surface: str) -> None:
    write_rounds(bench, "gate")
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", envs=["staging", "PRODUCTION"])
    agent.do("begin")
    if surface == "navigation":
        agent.act("advance_loop", loop_id="each")
    agent.reach("deploy", "main", env="somewhere", currentIndex=9, currentIteration=9)
    assert "staging" in agent.user_decides("deploy", "yes")
    agent.use_decision("deploy", "yes", env="somewhere")
    agent.walk("launch", env="somewhere", currentIteration=9)
    held("somewhere" not in agent.variables.values(), "the agent has replaced the item of a round")
    held(9 not in agent.variables.values(), "the agent has counted the rounds")


@on(*EVERY)
def test_a_default_whose_time_has_come_does_not_replace_what_the_user_decided(
    bench: Bench, surface: str
) -> None:
    timed = {"blocking": False, "defaultOption": "now", "autoAdvanceMs": 1000}
    bench.write(workflow(gate("send", "now", "later", **timed), *steps("post", "last")))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main")
    agent.reach("send", "main")
    agent.user_decides("send", "later")
    pass_seconds(bench, 5)
    agent.walk("post", ">__terminal__")
    agent.use_decision("send", "later")
    held([answer.option for answer in agent.decisions("send")] == ["later"], "the server answered instead")
