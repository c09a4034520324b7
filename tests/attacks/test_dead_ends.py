"""What leaves an honest agent, or the user, without a next move."""

from __future__ import annotations

from typing import Any

from support.attacker import (
    AUTO,
    CLAIMING,
    EVERY,
    STEPWISE,
    USER,
    Attacker,
    accepts,
    activity,
    held,
    on,
    pass_seconds,
    question,
    questions_in,
    step,
    taken_up,
    write_activities,
)
from support.harness import Bench, decision

YES_OR_NO: dict[str, Any] = {"yes": {}, "no": {}}
APPROVAL = {"reason": "needs_user_approval", "question": "Send {{target}}?"}
PREPARE = step("prepare", sets=["target"])
SEND = step("send", userInput=[APPROVAL])
ASKS_OF_A_STEP = activity("plan", PREPARE, SEND, question("deploy", "Deploy {{target}}?", **YES_OR_NO))


def walking_to_deploy(agent: Attacker) -> tuple[str, dict[str, Any]]:
    """Return the call that claims both steps, with what the first one sets, and reaches the gate."""
    tool = "yield_checkpoint" if agent.surface == "session" else "get_checkpoint"
    where = {} if agent.surface == "session" else {"activity_id": "plan"}
    manifest = [{"step_id": "prepare", "output": "x"}, {"step_id": "send", "output": "x"}]
    token = {"session_token": agent.tokens["session_token"], "checkpoint_id": "deploy"}
    return tool, {**token, **where, "step_manifest": manifest, "variables": {"target": "staging"}}


@on(*CLAIMING)
def test_a_form_in_the_middle_of_a_walk_keeps_what_the_call_brought(bench: Bench, surface: str) -> None:
    write_activities(bench, ASKS_OF_A_STEP, target="string")
    agent = Attacker(bench, surface, AUTO)
    agent.start()
    tool, arguments = walking_to_deploy(agent)
    asked = agent.call_with_forms(accepts("approve"), tool, **arguments)
    held(questions_in(asked) == ["Send «staging»?"], f"asked: {asked}")
    held(agent.has_done("send"), agent.text)
    held([record.option for record in agent.decisions()] == ["approve"], "the user's answer was lost")


@on(*EVERY, begun=EVERY, moment=["before the question", "at the question"])
def test_the_users_answer_reaches_the_agent_that_took_the_run_up(
    bench: Bench, surface: str, begun: str, moment: str
) -> None:
    """The inbox asks once, and the agent goes on as its text says."""
    deploy = question("deploy", "Deploy?", yes={}, no={})
    write_activities(bench, activity("plan", step("prepare"), deploy, step("send")))
    first = Attacker(bench, begun, USER)
    first.start()
    if moment == "at the question":
        first.do("prepare")
        first.reach("deploy")
    agent = taken_up(bench, surface, first)
    if moment == "before the question":
        agent.do("prepare")
    agent.reach("deploy")
    if surface == "execution":
        agent.ack()  # the agent tries, and is told that the user must answer
    agent.user_decides("deploy", "yes")
    agent.use_decision("deploy", "yes")
    if surface == "gated" and not agent.decisions("deploy"):
        agent.respond("deploy", "yes")  # what was asked on another surface waits to be used
    agent.walk("send", ">__terminal__")
    assert [answer.option for answer in agent.decisions("deploy")] == ["yes"]
    assert not agent.waiting()
    assert agent.has_done("send"), agent.text


def absent(name: str) -> dict[str, Any]:
    return {"type": "simple", "variable": name, "operator": "notExists"}


def answer_where(agent: Attacker, by: str) -> None:
    """Answer the question that asks for the variable, and do not bring it."""
    agent.start()
    agent.reach("where")
    if by == "user":
        agent.user_decides("where", "yes")
        agent.use_decision("where", "yes")
    else:
        agent.respond("where", "yes")


def send_for_deploy(agent: Attacker) -> None:
    """Send what the question 'deploy' shows and waits for."""
    match agent.surface:
        case "execution":
            agent.ack(context={"url": "staging"})
        case "navigation":
            agent.act("respond_to_checkpoint", checkpoint_id="deploy", variables={"url": "staging"})
        case _:
            agent.reach("deploy", url="staging")


@on(*EVERY, by=["user", "agent"])
def test_what_a_question_asked_for_and_was_not_given_can_be_sent_for_the_next_one(
    bench: Bench, surface: str, by: str
) -> None:
    """The user says that there is a URL, and nobody has sent it: the question that shows it waits for it."""
    where = question("where", "Is there a URL?", condition=absent("url"), **YES_OR_NO)
    deploy = question("deploy", "Deploy {{url}}?", **YES_OR_NO)
    write_activities(bench, activity("plan", where, deploy, step("send")), url="string")
    agent = Attacker(bench, surface, USER if by == "user" else AUTO)
    answer_where(agent, by)
    send_for_deploy(agent)
    assert agent.variables.get("url") == "staging", agent.text
    agent.walk("send", url="PRODUCTION")
    if by == "user":
        assert agent.user_decides("deploy", "yes") == "Deploy «staging»?"
    held(agent.variables["url"] == "staging", "the agent has changed what the question shows")


@on(*EVERY, by=["user", "agent"])
def test_a_list_that_a_question_asked_for_and_was_not_given_can_be_sent_for_its_loop(
    bench: Bench, surface: str, by: str
) -> None:
    where = question("where", "Are there URLs?", condition=absent("urls"), **YES_OR_NO)
    each = {"type": "forEach", "items": "urls", "variable": "url", "maxIterations": 5}
    rounds = {"type": "loop", "id": "rounds", "title": "Rounds", "loop": each, "body": [step("send")]}
    write_activities(bench, activity("plan", where, rounds), urls="array")
    agent = Attacker(bench, surface, USER if by == "user" else AUTO)
    answer_where(agent, by)
    agent.walk("send", urls=["staging"])
    match surface:
        case "execution":
            agent.walk("send")
        case "navigation":
            agent.act("advance_loop", loop_id="rounds", variables={"urls": ["staging"]})
            agent.walk("send", ">__terminal__")
        case _:
            agent.walk(">__terminal__", urls=["staging"])
    assert agent.variables.get("urls") == ["staging"], agent.text
    assert agent.has_done("send"), agent.text
    assert agent.has_completed(), agent.text


@on(*EVERY, by=["user", "agent"])
def test_what_a_question_asked_for_and_was_not_given_can_be_sent_for_a_steps_own_question(
    bench: Bench, surface: str, by: str
) -> None:
    where = question("where", "Is there a URL?", condition=absent("url"), **YES_OR_NO)
    approval = {"reason": "needs_user_approval", "question": "Send {{url}}?"}
    write_activities(bench, activity("plan", where, step("send", userInput=[approval])), url="string")
    agent = Attacker(bench, surface, USER if by == "user" else AUTO)
    answer_where(agent, by)
    agent.walk("send", ">__terminal__", url="staging")
    held(not agent.has_done("send"), "a step was done without its approval")
    output = None
    if by == "user":
        (waiting,) = agent.waiting()
        assert agent.user_decides(waiting.id, "approve") == "Send «staging»?"
    else:
        assert "Send «staging»?" in agent.text
        output = {"artifacts": [decision("send:needs_user_approval", "approve")]}
    agent.do("send", output)
    agent.walk(">__terminal__")
    assert agent.has_done("send"), agent.text
    assert agent.variables["url"] == "staging"


@on("execution", then=["approve", "reject"])
def test_the_user_answers_again_what_the_agent_has_changed_after_the_answer(
    bench: Bench, surface: str, then: str
) -> None:
    """What a blocked call has sent is replaced by the next one, and the question is put in other words."""
    write_activities(bench, activity("plan", SEND), target="string")
    agent = Attacker(bench, surface, USER)
    agent.start()
    for target in ("staging", "PRODUCTION", "staging", "preview"):
        agent.walk("send", ">__terminal__", target=target)
        for waiting in agent.waiting():
            assert agent.user_decides(waiting.id, then) == f"Send «{target}»?"
        held(not agent.has_done("send") or then == "approve", "the step was done against the user's will")
    agent.walk("send", ">__terminal__")
    assert agent.has_done("send") is (then == "approve"), agent.text
    if then == "approve":
        held(f"Send «{agent.variables['target']}»?" in agent.seen, "the user has approved something else")


@on(*EVERY, by=["user", "agent"])
def test_what_a_question_asked_for_and_was_not_given_can_be_sent_for_a_late_one(
    bench: Bench, surface: str, by: str
) -> None:
    """The gate was passed by and applies when its activity is left."""
    ready = {"type": "simple", "variable": "ready", "operator": "==", "value": True}
    where = question("where", "Is there a URL?", condition=absent("url"), **YES_OR_NO)
    deploy = question("deploy", "Deploy {{url}}?", condition=ready, **YES_OR_NO)
    write_activities(bench, activity("plan", where, deploy, step("send")), url="string", ready="boolean")
    agent = Attacker(bench, surface, USER if by == "user" else AUTO)
    answer_where(agent, by)
    agent.walk("send", ">__terminal__", ready=True)
    send_for_deploy(agent)
    assert agent.variables.get("url") == "staging", agent.text
    held(not agent.has_completed(), "a gate was passed")


@on(*CLAIMING)
def test_a_question_that_was_passed_by_is_put_once_it_is_whole(bench: Bench, surface: str) -> None:
    ready = {"type": "simple", "variable": "ready", "operator": "==", "value": True}
    deploy = question("deploy", "Deploy {{url}}?", condition=ready, **YES_OR_NO)
    write_activities(bench, activity("plan", deploy, step("send")), url="string", ready="boolean")
    agent = Attacker(bench, surface, USER)
    agent.start(ready=False)
    for brings in ({}, {"url": "staging"}):
        if surface == "session":
            agent.reach("deploy", **brings)
        else:
            agent.respond("deploy", "yes", **brings)
        is_lacking = "'deploy' shows 'url', which nobody has set" in agent.text
        assert is_lacking is not bool(brings), agent.text
    assert agent.user_decides("deploy", "yes") == "Deploy «staging»?"


@on(*CLAIMING)
def test_an_output_in_the_words_of_the_round_before_is_said_to_count_once(bench: Bench, surface: str) -> None:
    """A repeated call is not another round, so the agent is told how to report one."""
    more = {"type": "simple", "variable": "more", "operator": "==", "value": True}
    report = {"kind": "report", "schema": {"type": "object"}, "example": {"kind": "report"}}
    rounds = {
        "type": "loop",
        "id": "rounds",
        "title": "Rounds",
        "loop": {"type": "while", "condition": more, "maxIterations": 3},
        "body": [step("work", output=report)],
    }
    write_activities(bench, activity("plan", rounds), more="boolean")
    agent = Attacker(bench, surface)
    agent.start(more=True)
    for words, due in (("a", "Round 2"), ("a", "Round 2"), ("b", "Round 3")):
        agent.do("work", {"artifacts": [{"kind": "report", "about": words}]})
        agent.go("__terminal__")
        assert due in agent.text
        assert ("was sent before" in agent.text) is (words == "a" and "Recorded" not in agent.text)


@on("session")
def test_a_worker_resumes_after_the_default_was_taken_by_its_own_call(bench: Bench, surface: str) -> None:
    timed = {"blocking": False, "defaultOption": "no", "autoAdvanceMs": 1000}
    deploy = question("deploy", "Deploy?", **timed, **YES_OR_NO)
    write_activities(bench, activity("plan", deploy, step("send")))
    agent = Attacker(bench, surface, USER)
    agent.start()
    agent.reach("deploy")
    pass_seconds(bench, 1.5)
    resumed = agent.tell("resume_checkpoint")
    assert (resumed.get("status"), resumed.get("resolved_option")) == ("resumed", "no"), agent.text


@on(*EVERY, by=["user", "agent"])
def test_a_worker_resumes_after_another_surface_has_answered_its_question(
    bench: Bench, surface: str, by: str
) -> None:
    write_activities(bench, activity("plan", question("deploy", "Deploy?", **YES_OR_NO), step("send")))
    terms = USER if by == "user" else AUTO
    worker = Attacker(bench, "session", terms)
    worker.start()
    worker.reach("deploy")
    agent = taken_up(bench, surface, worker, terms)
    agent.reach("deploy")
    if by == "user":
        agent.respond("deploy", "yes")
        assert not agent.decisions("deploy")
        agent.user_decides("deploy", "yes")
    agent.respond("deploy", "yes")
    assert [answer.option for answer in agent.decisions("deploy")] == ["yes"], agent.text
    resumed = worker.tell("resume_checkpoint")
    assert (resumed.get("status"), resumed.get("resolved_option")) == ("resumed", "yes"), worker.text
    worker.walk("send", ">__terminal__")
    assert worker.has_completed(), worker.text


@on(*EVERY)
def test_a_workflow_of_questions_alone_ends_with_its_gaps(bench: Bench, surface: str) -> None:
    ready = {"type": "simple", "variable": "ready", "operator": "==", "value": True}
    plan = activity(
        "plan", question("deploy", "Deploy?", **YES_OR_NO), to=[{"to": "ship", "condition": ready}]
    )
    ship = activity("ship", question("announce", "Announce?", **YES_OR_NO))
    write_activities(bench, plan, ship, ready="boolean")
    agent = Attacker(bench, surface)
    agent.start(ready=False)
    agent.reach("deploy")
    agent.respond("deploy", "yes")
    agent.walk(">__terminal__")
    assert agent.status == "complete_with_gaps", agent.text
    if surface == "navigation":
        output = {"artifacts": [{"kind": "wr.gaps", "resolved": [{"gap": 1, "summary": "It was meant so."}]}]}
        assert '"step_id":"any"' in agent.text
        agent.act("complete_step", step_id="any", output=output)
        assert agent.status == "complete", agent.text


@on("navigation")
def test_an_action_that_asks_again_is_not_said_to_be_done(bench: Bench, surface: str) -> None:
    deploy = question("deploy", "Deploy {{target}}?", **YES_OR_NO)
    write_activities(bench, activity("plan", PREPARE, deploy, step("send")), target="string")
    agent = Attacker(bench, surface, USER)
    agent.start()
    agent.do("prepare", target="staging")
    answer = agent.act("complete_step", step_id="send", reask={"target": "PRODUCTION"})
    assert not agent.has_done("send")
    assert answer["message"] == "Checkpoint 'deploy' is asked again"


@on(*EVERY, begun=STEPWISE, moment=["before the run is taken up", "after it"])
def test_what_the_user_has_answered_on_one_surface_is_not_asked_again_on_another(
    bench: Bench, surface: str, begun: str, moment: str
) -> None:
    """The answer waits on the node for the agent's next call, whichever surface that comes from."""
    agent = taken_up_with_an_answer(bench, surface, begun, moment)
    agent.reach("deploy")
    assert not agent.waiting(), "the user is asked again"
    agent.respond("deploy", "no")
    assert [answer.option for answer in agent.decisions("deploy")] == ["no"], agent.text
    agent.walk("send", ">__terminal__")
    assert agent.has_completed() or surface == "execution", agent.text


def taken_up_with_an_answer(bench: Bench, surface: str, begun: str, moment: str = "before") -> Attacker:
    """Take a run up at a question to which the user says no, before that or after it."""
    deploy = question("deploy", "Deploy?", **YES_OR_NO)
    write_activities(bench, activity("plan", step("prepare"), deploy, step("send")))
    first = Attacker(bench, begun, USER)
    first.start()
    first.do("prepare")
    if moment.startswith("before"):
        first.user_decides("deploy", "no")
    agent = taken_up(bench, surface, first)
    if moment.startswith("after"):
        agent.user_decides("deploy", "no")
    return agent


@on(*CLAIMING, begun=STEPWISE)
def test_a_walk_past_a_question_that_the_user_has_answered_elsewhere_uses_the_answer(
    bench: Bench, surface: str, begun: str
) -> None:
    agent = taken_up_with_an_answer(bench, surface, begun)
    assert "open the inbox" not in agent.text
    agent.walk("send", ">__terminal__")
    assert [answer.option for answer in agent.decisions("deploy")] == ["no"], agent.text
    assert agent.has_completed(), agent.text


@on("gated", begun=STEPWISE)
def test_a_walk_to_a_question_that_the_user_has_answered_elsewhere_tells_the_answer(
    bench: Bench, surface: str, begun: str
) -> None:
    agent = taken_up_with_an_answer(bench, surface, begun)
    answer = agent.reach("deploy", seen=True)
    assert (answer["resolved"], answer["resolved_option"]) == (True, "no"), agent.text
