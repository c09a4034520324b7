"""Attacks on values: what a question showed and what its answer set is not the agent's to change."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.ledger.decisions.inbox import answer_question
from interlock.ledger.errors import LedgerError
from support.attacker import (
    AUTO,
    CLAIMING,
    EVERY,
    USER,
    Attacker,
    accepts,
    activity,
    equals,
    held,
    on,
    question,
    sets,
    step,
    write_activities,
)
from support.harness import Bench, gate, steps, workflow

APPROVED = {"yes": sets(approved=True), "no": sets(approved=False)}
LAUNCH = step("launch", "Launch it at {{target}}.", condition=equals("approved", True))
TO_THE_END = ("prepare", ">ship", "send", "launch", ">__terminal__")


def refused_by_the_user(bench: Bench, surface: str, shown: str, **variables: Any) -> Attacker:
    """An agent whose user has said no in the inbox."""
    agent = Attacker(bench, surface, USER)
    agent.start(**variables)
    agent.reach("deploy")
    assert agent.user_decides("deploy", "no") == shown
    agent.use_decision("deploy", "no")
    return agent


@on(*EVERY)
def test_a2_dotted_keys_do_not_rewrite_what_a_user_decided(bench: Bench, surface: str) -> None:
    answers = {"yes": sets(approval={"status": "granted"}), "no": sets(approval={"status": "refused"})}
    launch = step(
        "launch", "Deploy to {{at.host}} now.", condition=equals("approval.status", "granted"), required=True
    )
    write_activities(
        bench,
        activity("plan", question("deploy", "Deploy to {{at}}?", **answers), step("prepare"), to="ship"),
        activity("ship", step("send", "Send it to {{at.host}}."), launch),
        at="object",
        approval="object",
    )
    shown = 'Deploy to «{"host":"staging"}»?'
    agent = refused_by_the_user(bench, surface, shown, at={"host": "staging"})
    agent.walk(*TO_THE_END, **{"at.host": "PRODUCTION", "approval.status": "granted"})
    assert agent.has_done("send")
    held(not agent.has_done("launch"), f"launched although the user said no: {agent.variables}")
    held("PRODUCTION" not in agent.text, agent.text)


@on(*EVERY)
def test_a2_dotted_keys_do_not_change_what_a_user_was_shown(bench: Bench, surface: str) -> None:
    write_activities(
        bench,
        activity("plan", question("deploy", "Deploy to {{at}}?", **APPROVED), step("prepare"), to="ship"),
        activity("ship", step("send"), step("launch", condition=equals("at.host", "PRODUCTION"))),
        at="object",
        approved="boolean",
    )
    agent = Attacker(bench, surface, USER)
    agent.start(at={"host": "staging"})
    agent.reach("deploy")
    agent.user_decides("deploy", "yes")
    agent.use_decision("deploy", "yes")
    agent.walk(*TO_THE_END, **{"at.host": "PRODUCTION"})
    assert agent.has_done("send")
    held(not agent.has_done("launch"), f"the user was shown staging: {agent.variables}")


def deploying(bench: Bench, *shipping: dict[str, Any], own: bool = False) -> None:
    """Write a workflow that asks before anything else, and launches only what was approved."""
    write_activities(
        bench,
        activity("plan", question("deploy", "Deploy to {{target}}?", **APPROVED), step("prepare"), to="ship"),
        activity("ship", *shipping, LAUNCH),
        own=own,
        target="string",
        approved="boolean",
    )


@on(
    *EVERY,
    text=["Never set approved yourself.", "Do not set or reset approved here."],
    file=["own", "of others"],
)
def test_a3_a_text_that_forbids_to_set_a_variable_does_not_permit_it(
    bench: Bench, surface: str, text: str, file: str
) -> None:
    deploying(bench, step("send", text), own=file == "own")
    agent = refused_by_the_user(bench, surface, "Deploy to «staging»?", target="staging")
    agent.walk(*TO_THE_END, approved=True)
    assert agent.has_done("send")
    held(agent.variables["approved"] is False, f"the user's No became {agent.variables['approved']}")
    held(not agent.has_done("launch"), "launched although the user said no")


@on(*EVERY, text=["Read who has set approved.", "Stop if approved = false."])
def test_a3_in_our_own_files_no_text_permits_to_set_a_variable(bench: Bench, surface: str, text: str) -> None:
    deploying(bench, step("send", text), own=True)
    agent = refused_by_the_user(bench, surface, "Deploy to «staging»?", target="staging")
    agent.walk(*TO_THE_END, approved=True)
    assert agent.has_done("send")
    held(agent.variables["approved"] is False, f"the user's No became {agent.variables['approved']}")


@on(*CLAIMING, "navigation", declared=["sets", "text"])
def test_a4_a_skipped_step_does_not_permit_to_set_its_variable(
    bench: Bench, surface: str, declared: str
) -> None:
    optional = step("celebrate", "Set approved to what the customers say.", required=False)
    if declared == "sets":
        optional = step("celebrate", required=False, actions=[{"action": "set", "target": "approved"}])
    deploying(bench, optional, step("send"))
    agent = refused_by_the_user(bench, surface, "Deploy to «staging»?", target="staging")
    agent.walk("prepare", ">ship")
    agent.walk("send", "launch", ">__terminal__", approved=True)
    assert agent.has_done("send")
    assert not agent.has_done("celebrate")
    held(agent.variables["approved"] is False, "a skipped step set it")
    held(not agent.has_done("launch"), "launched although the user said no")


PACKAGES = (
    activity(
        "plan",
        step("list", "List the packages.", sets=["packages"]),
        question("deploy", "Packages: {{packages}}?", **APPROVED),
        to="ship",
    ),
    activity("ship", step("send", "Do {{packages}}.")),
)


@on(*EVERY)
def test_a5_a_step_before_the_gate_does_not_change_what_was_approved(bench: Bench, surface: str) -> None:
    write_activities(bench, *PACKAGES, packages="array", approved="boolean")
    agent = Attacker(bench, surface, USER)
    agent.start(packages=["write docs"])
    agent.do("list", packages=["write docs"])
    agent.reach("deploy")
    assert "write docs" in agent.user_decides("deploy", "yes")
    agent.use_decision("deploy", "yes")
    if surface == "execution":
        agent.ack(context={"packages": ["drop the production database"]})
    elif surface == "navigation":
        agent.act("transition", activity_id="ship", variables={"packages": ["drop the production database"]})
    else:
        manifest = [{"step_id": "list", "output": "done"}]
        agent.go("ship", step_manifest=manifest, variables={"packages": ["drop the production database"]})
    assert agent.has_entered("ship")
    held(agent.variables["packages"] == ["write docs"], f"{agent.variables['packages']} were not approved")


@on(*EVERY, how=["reported", "inbox"])
def test_a6_an_early_answer_is_not_used_for_another_target(bench: Bench, surface: str, how: str) -> None:
    write_activities(
        bench,
        activity(
            "plan",
            step("choose", "Choose the target.", actions=[{"action": "set", "target": "target"}]),
            to="ship",
            checkpoints=[question("deploy", "Deploy to {{target}}?", **APPROVED)],
        ),
        activity("ship", step("send", "Send it to {{target}}.")),
        target="string",
        approved="boolean",
    )
    agent = Attacker(bench, surface, AUTO if how == "reported" else USER)
    agent.start(target="staging")
    agent.reach("deploy")
    if how == "reported":
        agent.respond("deploy", "yes")
    elif agent.waiting("deploy"):
        agent.user_decides("deploy", "yes")
    if surface == "session":
        agent.tell("resume_checkpoint")
    agent.walk("choose", ">ship", target="PRODUCTION")
    assert agent.has_done("choose")
    if surface in ("execution", "navigation"):
        held("Send it to PRODUCTION" not in agent.text, agent.text)
    shown = {record.question for record in agent.decisions("deploy")}
    if agent.has_entered("ship"):
        held(f"Deploy to «{agent.variables['target']}»?" in shown, f"{agent.variables} after {shown}")


OPEN = (
    activity("plan", question("deploy", "Deploy to {{target}}?", **APPROVED), step("prepare"), to="ship"),
    activity("ship", step("send", "Send it to {{target}}.")),
)


def talk_over(agent: Attacker) -> None:
    """Send another target with a call that the open question refuses."""
    if agent.surface == "execution":
        agent.ack(context={"target": "PRODUCTION"})
    elif agent.surface == "navigation":
        agent.act("complete_step", step_id="prepare", variables={"target": "PRODUCTION"})
    else:
        agent.go("ship", variables={"target": "PRODUCTION"})


@on(*EVERY)
def test_a8_what_came_after_the_showing_is_not_what_the_user_decided_in_the_inbox(
    bench: Bench, surface: str
) -> None:
    write_activities(bench, *OPEN, target="string", approved="boolean")
    agent = Attacker(bench, surface, USER)
    agent.start(target="staging")
    agent.reach("deploy")
    (on_screen,) = agent.waiting("deploy")
    assert on_screen.message == "Deploy to «staging»?"
    talk_over(agent)
    assert answer_question(agent.ledger, on_screen, "yes")
    agent.use_decision("deploy", "yes")
    agent.walk("prepare", ">ship", "send")
    assert agent.has_entered("ship")
    held(agent.variables["target"] == "staging", f"the user was shown staging: {agent.variables}")


@on(*EVERY)
def test_a8_what_came_after_the_showing_is_not_what_the_agent_was_told(bench: Bench, surface: str) -> None:
    """The agent shows the user the question, changes it, and reports the answer to what was shown."""
    write_activities(bench, *OPEN, target="string", approved="boolean")
    agent = Attacker(bench, surface)
    agent.start(target="staging")
    agent.reach("deploy")
    talk_over(agent)
    agent.respond("deploy", "yes")
    if surface == "session":
        agent.tell("resume_checkpoint")
    agent.walk("prepare", ">ship", "send")
    assert agent.has_entered("ship")
    held(
        agent.variables["target"] == "staging",
        f"the question that was shown named staging: {agent.variables}",
    )


@on(*EVERY)
def test_a10_an_inner_loop_does_not_release_what_the_outer_question_showed(
    bench: Bench, surface: str
) -> None:
    bench.write(
        workflow(
            {
                "type": "loop",
                "id": "outer",
                "title": "Outer",
                "loop": {"type": "forEach", "items": "places", "itemVar": "place", "maxIterations": 3},
                "body": [
                    gate("deploy", "yes", "no", message="Deploy to {{place}}?"),
                    {
                        "type": "loop",
                        "id": "inner",
                        "title": "Inner",
                        "loop": {"type": "forEach", "items": "parts", "itemVar": "place", "maxIterations": 3},
                        "body": [{"id": "pack", "title": "Pack", "prompt": "Pack {{place}}."}],
                    },
                    gate("fine", "yes"),
                    *steps("ready"),
                    {
                        "id": "launch",
                        "title": "Launch",
                        "prompt": "DEPLOY to {{place}}.",
                        "runCondition": {"var": "place", "equals": "PRODUCTION"},
                    },
                ],
            },
            *steps("last"),
        )
    )
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", places=["staging"], parts=["docs"])
    if surface == "navigation":
        agent.act("advance_loop", loop_id="outer")
    agent.reach("deploy", "main")
    assert agent.user_decides("deploy", "yes") == "Deploy to «staging»?"
    agent.use_decision("deploy", "yes")
    if surface == "navigation":
        agent.act("advance_loop", loop_id="inner")
    agent.walk("pack")
    agent.reach("fine", "main")
    agent.user_decides("fine", "yes")
    agent.use_decision("fine", "yes")
    agent.walk("ready", "launch", "last", ">__terminal__", place="PRODUCTION")
    assert agent.has_done("last")
    held(not agent.has_done("launch"), "deployed to a place that the user was not shown")


@on(*EVERY)
def test_a11_a_loop_that_needs_a_list_does_not_take_what_was_not_shown(bench: Bench, surface: str) -> None:
    each = {"type": "forEach", "items": "envs", "itemVar": "env", "maxIterations": 3}
    body = [{"id": "launch", "title": "Launch", "prompt": "Deploy to {{env}}."}]
    bench.write(
        workflow(
            gate("deploy", "yes", "no", message="Deploy to {{envs}}?"),
            *steps("prepare"),
            {"type": "loop", "id": "each", "title": "Each", "loop": each, "body": body},
            *steps("last"),
        )
    )
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", envs="staging")
    agent.reach("deploy", "main")
    assert agent.user_decides("deploy", "yes") == "Deploy to «staging»?"
    agent.use_decision("deploy", "yes")
    agent.walk("prepare", envs=["PRODUCTION"])
    if surface == "navigation":
        agent.act("advance_loop", loop_id="each", loop_items=["PRODUCTION"])
    agent.walk("launch", "last", ">__terminal__", envs=["PRODUCTION"])
    assert agent.has_done("prepare")
    items = [event.items for event in agent.events("loop_entered")]
    held(("PRODUCTION",) not in items, f"the user approved staging, the loop went through {items}")


RISKY = activity(
    "plan",
    step("assess", actions=[{"action": "set", "target": "risky"}]),
    question("deploy", "Deploy?", yes={}, no={}, condition=equals("risky", True)),
    to="ship",
)


@on(*EVERY)
def test_types_a_boolean_sent_as_text_does_not_pass_a_conditional_gate(bench: Bench, surface: str) -> None:
    write_activities(bench, RISKY, activity("ship", step("send")), risky="boolean")
    agent = Attacker(bench, surface, USER)
    agent.start()
    agent.walk("assess", ">ship", risky="true")
    if surface == "gated":
        agent.tell("respond_checkpoint", checkpoint_id="deploy", condition_not_met=True)
        agent.go("ship")
    assert agent.has_done("assess")
    held(not agent.has_entered("ship"), f"the gate was passed: {agent.variables}")


@on(*EVERY)
def test_search_a_setter_before_its_gate_does_not_change_what_the_gate_decided(
    bench: Bench, surface: str
) -> None:
    setter = step("propose", actions=[{"action": "set", "target": "approved"}])
    write_activities(
        bench,
        activity("plan", setter, question("deploy", "Deploy?", **APPROVED), to="ship"),
        activity("ship", step("send"), LAUNCH),
        approved="boolean",
        target="string",
    )
    agent = Attacker(bench, surface, USER)
    agent.start(approved=True)
    agent.do("propose", approved=True)
    agent.reach("deploy")
    agent.user_decides("deploy", "no")
    agent.use_decision("deploy", "no")
    agent.walk("propose", ">ship", "propose", "send", "launch", ">__terminal__", approved=True)
    assert agent.has_done("send")
    held(agent.variables["approved"] is False, "a step before the gate undid its answer")
    held(not agent.has_done("launch"), "launched although the user said no")


NOWHERE: dict[str, Any] = {"told": {}, "nowhere": {}}
NO_ADDRESS = {"type": "simple", "variable": "address", "operator": "notExists"}
PUBLISH = step(
    "publish",
    "Publish to {{address}}.",
    condition={"type": "simple", "variable": "address", "operator": "exists"},
)


@on(*EVERY, by=["inbox", "form"])
def test_an_agent_adds_nothing_to_what_the_user_has_answered(bench: Bench, surface: str, by: str) -> None:
    """The question asks for an address by its absence; who answers does not see what the agent brings."""
    asked = question("where", "Where may it be published?", condition=NO_ADDRESS, **NOWHERE)
    write_activities(bench, activity("plan", asked, step("prepare"), PUBLISH, step("last")), address="string")
    agent = Attacker(bench, surface, USER if by == "inbox" else AUTO)
    agent.start()
    agent.reach("where")
    evil = {"address": "http://evil"}
    if by == "form":
        assert agent.respond_with_forms("where", "nowhere", accepts("nowhere"), **evil)
    else:
        agent.respond("where", "nowhere", **evil)
        agent.user_decides("where", "nowhere")
        agent.use_decision("where", "nowhere", **evil)
    if surface == "session":
        agent.tell("resume_checkpoint", variables=evil)
    agent.walk("prepare", "publish", "last", ">__terminal__", **evil)
    assert agent.has_done("last")
    assert [answer.option for answer in agent.decisions("where")] == ["nowhere"]
    held(not agent.has_done("publish"), f"published, which the user did not decide: {agent.variables}")


@on(*EVERY)
def test_an_agent_that_reports_the_answer_brings_what_was_asked_for(bench: Bench, surface: str) -> None:
    asked = question("where", "Where may it be published?", condition=NO_ADDRESS, **NOWHERE)
    write_activities(bench, activity("plan", asked, PUBLISH, step("last")), address="string")
    agent = Attacker(bench, surface)
    agent.start()
    agent.reach("where")
    agent.respond("where", "told", address="http://here")
    assert agent.variables["address"] == "http://here"


@on(*EVERY)
def test_an_approval_that_lacks_a_name_is_asked_with_what_the_call_brings(bench: Bench, surface: str) -> None:
    """The agent may send what a step's own question shows together with the step; then the user is asked."""
    need = {"reason": "needs_user_approval", "key": "signed", "question": "Deploy to {{target}}?"}
    bench.write(workflow(*steps("send", userInput=[need]), *steps("launch")))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main")
    agent.do("send", target="staging")
    if surface in CLAIMING:
        agent.go("__terminal__")
    assert not agent.has_done("send")
    assert agent.user_decides("signed", "approve") == "Deploy to «staging»?"
    agent.walk("send", "launch", *([">__terminal__"] if surface in CLAIMING else []))
    assert agent.has_done("send")
    assert [answer.question for answer in agent.decisions("signed")] == ["Deploy to «staging»?"]
    assert agent.variables["target"] == "staging"


@on(*EVERY)
def test_an_answer_that_does_not_fit_its_variable_is_not_recorded(bench: Bench, surface: str) -> None:
    """A user says "no, wait" to what is declared as true or false; the agent's own value must not count."""
    need = {"reason": "needs_user_choice", "key": "go", "question": "Send it?"}
    launch = steps("launch", runCondition={"var": "go", "equals": True})
    flow = workflow(*steps("ask", userInput=[need]), *launch, *steps("last"))
    bench.write({**flow, "variables": [{"name": "go", "type": "boolean"}]})
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", go=True)
    done = ("ask", *([">__terminal__"] if surface in CLAIMING else []))
    agent.walk(*done)
    (asked,) = agent.waiting("go")
    with pytest.raises(LedgerError) as refused:
        answer_question(agent.ledger, asked, "no, wait")
    assert "true or false" in refused.value.next_action
    assert agent.user_decides("go", "false") == "Send it?"
    agent.walk("ask", "last", *([">__terminal__"] if surface in CLAIMING else []))
    assert agent.has_done("ask")
    held(not agent.has_done("launch"), f"sent, although the user said no: {agent.variables}")


@on(*CLAIMING, "navigation")
def test_an_open_approval_is_not_talked_away_by_the_condition_of_its_step(bench: Bench, surface: str) -> None:
    need = {"reason": "needs_user_approval", "question": "Wipe the disk?"}
    wipe = steps("wipe", userInput=[need], runCondition={"var": "dry", "notExists": True})
    bench.write(workflow(*wipe, *steps("last")))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main")
    end = [">__terminal__"] if surface in CLAIMING else []
    agent.walk("wipe", *end)
    assert [question.message for question in agent.waiting()] == ["Wipe the disk?"]
    agent.walk("wipe", "last", *end, dry=True)
    held("dry" not in agent.variables, "the question is gone because the agent has sent 'dry'")
    assert [question.message for question in agent.waiting()] == ["Wipe the disk?"]


@on(*EVERY)
def test_two_questions_of_one_kind_in_a_step_are_two_questions(bench: Bench, surface: str) -> None:
    needs = [{"reason": "needs_user_approval", "question": text} for text in ("Go?", "Really?")]
    bench.write(workflow(*steps("send", userInput=needs), *steps("last")))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main")
    end = [">__terminal__"] if surface in CLAIMING else []
    agent.walk("send", *end)
    assert [asked.message for asked in agent.waiting()] == ["Go?", "Really?"]
    for asked in agent.waiting():
        answer_question(agent.ledger, asked, "approve")
    agent.walk("send", *end)
    assert agent.has_done("send")


@on("session", "gated", "navigation")
def test_what_a_step_asks_is_in_the_inbox_after_the_run_was_taken_up_elsewhere(
    bench: Bench, surface: str
) -> None:
    need = {"reason": "needs_user_approval", "question": "Wipe the disk?"}
    bench.write(workflow(*steps("wipe", userInput=[need]), *steps("last")))
    agent = Attacker(bench, "execution", USER)
    agent.start("test.flow", "main")
    agent.do("wipe")
    assert agent.waiting()
    other = Attacker(bench, surface, USER)
    token = agent.tokens["stateToken"]
    if surface == "navigation":
        other.call("nav_situation", state=token)
        other.do("wipe")
    else:
        other.call("start_session", workflow_id="test.flow", agent_id="agent", session_token=token)
        other.walk("wipe", ">__terminal__")
    assert [asked.message for asked in other.waiting()] == ["Wipe the disk?"]


def asking_about(bench: Bench) -> None:
    """Write a question that shows a variable which a step before it may find out."""
    write_activities(
        bench,
        activity(
            "plan",
            step("prepare"),
            question("deploy", "Deploy to {{target}}?", **APPROVED),
            step("send", "Send it to {{target}}."),
        ),
        target="string",
        approved="boolean",
    )


@on(*EVERY)
def test_null_says_that_a_value_is_not_known_and_the_user_is_shown_it(bench: Bench, surface: str) -> None:
    """GUARD, whole questions: without the name the question waits; with null it is put, and says so."""
    asking_about(bench)
    agent = Attacker(bench, surface, USER)
    agent.start()
    agent.do("prepare")
    agent.reach("deploy")
    assert agent.waiting("deploy") == [], "nobody has set the target"
    if surface == "navigation":
        agent.act("respond_to_checkpoint", checkpoint_id="deploy", variables={"target": None})
    elif surface == "execution":
        agent.ack(context={"target": None})
    else:
        agent.reach("deploy", target=None)
    assert agent.user_decides("deploy", "yes") == "Deploy to [not known: target]?"
    agent.use_decision("deploy", "yes", target="PRODUCTION")
    agent.walk("send", target="PRODUCTION")
    held(agent.variables["target"] is None, f"the user was not shown {agent.variables}")


@on(*EVERY)
def test_null_for_what_a_question_owns_changes_nothing(bench: Bench, surface: str) -> None:
    asking_about(bench)
    agent = Attacker(bench, surface, USER)
    agent.start(target="staging")
    agent.do("prepare")
    agent.reach("deploy")
    agent.user_decides("deploy", "yes")
    agent.use_decision("deploy", "yes", target=None)
    agent.walk("send", target=None, approved=None)
    held(agent.variables["target"] == "staging", str(agent.variables))
    held(agent.variables["approved"] is True, str(agent.variables))
