"""Attacks on who decides: forged forms, questions that nobody was asked, terms that become looser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.console.console import Console
from interlock.core.principals import Principal
from interlock.core.run.commands import Terms
from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.modes import set_session_mode
from interlock.ledger.decisions.user_pin import set_pin
from interlock.ledger.ledger import Ledger
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.ledger.transfer.export_import import export_session
from interlock.surfaces.call import Call, FormAnswer, Outcome
from support.attacker import (
    AUTO,
    CLAIMING,
    EVERY,
    STEPWISE,
    USER,
    Attacker,
    Reaction,
    accepts,
    activity,
    declines,
    held,
    on,
    question,
    questions_in,
    step,
    taken_up,
    write_activities,
)
from support.cli_process import interlock
from support.harness import Bench
from support.http_server import HttpServer, bearer
from support.killed_servers import http_outcome

YES_OR_NO: dict[str, Any] = {"yes": {}, "no": {}}
DEPLOY = question("deploy", "Deploy?", **YES_OR_NO)
ASKS_FIRST = activity("plan", DEPLOY, step("prepare"), to="ship")
SHIP = activity("ship", step("send"))


def at_the_gate(bench: Bench, surface: str, terms: Terms = AUTO, **more: Any) -> Attacker:
    write_activities(bench, ASKS_FIRST, SHIP)
    agent = Attacker(bench, surface, terms, **more)
    agent.start()
    agent.reach("deploy")
    return agent


@on(*EVERY, pin=["", "1234"])
def test_a1_a_client_does_not_answer_for_the_user(bench: Bench, surface: str, pin: str) -> None:
    agent = at_the_gate(bench, surface, USER)
    set_pin(agent.ledger.store, agent.ledger.owner, pin)
    agent.respond_with_forms("deploy", "yes", accepts("yes"))
    if surface == "session":
        agent.tell("resume_checkpoint")
    agent.walk("prepare", ">ship")
    held(not agent.decisions("deploy"), f"recorded: {agent.decisions('deploy')}")
    held(not agent.has_entered("ship"), "the gate was passed")


class OverHttp(Bench):
    """A bench whose tools are called over HTTP, with the token of a principal."""

    def __init__(self, folder: Path, token: str, *flags: str) -> None:
        super().__init__(folder)
        self._token = bearer(token)
        self._server = HttpServer(folder, "--workflows", str(self.workflows), *flags, "--quiet")

    def close(self) -> None:
        self._server.stop()
        super().close()

    def call(self, surface: str, ledger: Ledger, tool: str, arguments: dict[str, Any], call: Call) -> Outcome:
        return http_outcome(self._server, surface, tool, arguments, call, self._token)


@pytest.mark.slow
@on(*EVERY)
def test_a1_a_token_of_role_user_does_not_answer_its_own_form(here: Bench, surface: str) -> None:
    token = AccessTokens(here.folder).add("ada", "user", 1)
    bench = OverHttp(here.folder, token, "--decisions", "user")
    try:
        agent = at_the_gate(bench, surface, USER)
        agent.respond_with_forms("deploy", "yes", accepts("yes"))
        held(not agent.decisions("deploy"), f"recorded: {agent.decisions('deploy')}")
    finally:
        bench.close()


def unasked(agent: Attacker, shown: list[str]) -> str:
    return f"forms: {shown}, recorded: {[(record.gate, record.channel) for record in agent.decisions()]}"


@on(*EVERY)
def test_a15_an_optional_gate_is_put_to_the_user(bench: Bench, surface: str) -> None:
    write_activities(bench, activity("plan", {**DEPLOY, "required": False}, step("prepare"), to="ship"), SHIP)
    agent = Attacker(bench, surface)
    agent.start()
    agent.reach("deploy")
    shown = questions_in(agent.respond_with_forms("deploy", "yes", declines))
    held(shown == ["Deploy?"] and not agent.decisions("deploy"), unasked(agent, shown))


@on(*EVERY)
def test_a15_a_gate_after_an_optional_step_is_put_to_the_user(bench: Bench, surface: str) -> None:
    bound = [step("maybe", required=False), step("prepare", checkpoint="deploy")]
    write_activities(bench, activity("plan", *bound, to="ship", checkpoints=[DEPLOY]), SHIP)
    agent = Attacker(bench, surface)
    agent.start()
    if surface == "execution":
        agent.do("maybe")
    agent.reach("deploy")
    shown = questions_in(agent.respond_with_forms("deploy", "yes", declines))
    held(shown == ["Deploy?"] and not agent.decisions("deploy"), unasked(agent, shown))


APPROVAL = {"reason": "needs_user_approval", "key": "signed", "question": "Delete it for good?"}


def finishing(agent: Attacker, **variables: Any) -> tuple[str, dict[str, Any]]:
    """Return the call that completes the step `delete`, with an approval that the agent made up."""
    match agent.surface:
        case "execution":
            return "continue_workflow", agent.acknowledging(context=variables)
        case "navigation":
            named = {"action": "complete_step", "step_id": "delete", "variables": variables}
            return "nav_action", {"state": agent.tokens["state"], **named}
    manifest = [{"step_id": "delete", "output": "done"}]
    sent = {"activity_id": "ship", "step_manifest": manifest, "variables": variables}
    return "next_activity", {"session_token": agent.tokens["session_token"], **sent}


@on(*EVERY)
def test_a15_an_approval_after_an_optional_step_is_put_to_the_user(bench: Bench, surface: str) -> None:
    write_activities(
        bench,
        activity("plan", step("maybe", required=False), step("delete", userInput=[APPROVAL]), to="ship"),
        SHIP,
    )
    agent = Attacker(bench, surface)
    agent.start()
    if surface == "execution":
        agent.do("maybe")
    tool, arguments = finishing(agent, signed="approve")
    shown = questions_in(agent.call_with_forms(declines, tool, **arguments))
    held(shown == ["Delete it for good?"] and not agent.has_done("delete"), unasked(agent, shown))


@on(*EVERY)
def test_a15_a_step_with_approval_and_confirmation_asks_for_both(bench: Bench, surface: str) -> None:
    """The user approves, and does not answer the confirmation."""
    both = step("delete", userInput=[APPROVAL], requireConfirmation=True)
    write_activities(bench, activity("plan", both, to="ship"), SHIP)
    agent = Attacker(bench, surface)
    agent.start()

    def reacts(message: str) -> FormAnswer:
        return accepts("approve")(message) if "for good" in message else declines(message)

    tool, arguments = finishing(agent, signed="approve")
    shown = questions_in(agent.call_with_forms(reacts, tool, **arguments))
    held("Delete it for good?" in shown, unasked(agent, shown))
    confirmed = [record for record in agent.decisions() if record.gate.startswith("confirm")]
    held(not confirmed, unasked(agent, shown))
    held(not agent.has_entered("ship"), unasked(agent, shown))


@on(*CLAIMING)
def test_a15_a_confirmation_named_by_its_step_is_put_to_the_user(bench: Bench, surface: str) -> None:
    write_activities(bench, activity("plan", step("look", requireConfirmation=True), to="ship"), SHIP)
    agent = Attacker(bench, surface)
    agent.start()
    agent.do("look")
    agent.reach("confirm-look")
    shown = questions_in(agent.respond_with_forms("look", "proceed", declines))
    held(len(shown) == 1 and not agent.decisions(), unasked(agent, shown))


CLIENT = Terms(decisions="client", min_response_ms=0)


@on(*EVERY)
def test_a_form_that_names_no_option_answers_nothing(bench: Bench, surface: str) -> None:
    """A client that does not keep to the form's schema is told the options; the next form counts."""
    agent = at_the_gate(bench, surface, CLIENT)
    agent.respond_with_forms("deploy", "yes", accepts("whatever"))
    held(not agent.decisions(), unasked(agent, []))
    assert "whatever" in agent.text
    agent.respond_with_forms("deploy", "yes", accepts("no"))
    assert [(answer.option, answer.channel) for answer in agent.decisions()] == [("no", "elicitation")]


@on(*EVERY)
def test_a_form_that_neither_approves_nor_rejects_answers_nothing(bench: Bench, surface: str) -> None:
    write_activities(bench, activity("plan", step("delete", userInput=[APPROVAL]), to="ship"), SHIP)
    agent = Attacker(bench, surface, CLIENT)
    agent.start()
    tool, arguments = finishing(agent)
    agent.call_with_forms(accepts("whatever"), tool, **arguments)
    held(not agent.decisions() and not agent.has_done("delete"), unasked(agent, []))
    tool, arguments = finishing(agent)
    agent.call_with_forms(accepts("approve"), tool, **arguments)
    assert agent.has_done("delete")


@on(*EVERY)
def test_a_form_that_neither_proceeds_nor_revises_answers_nothing(bench: Bench, surface: str) -> None:
    write_activities(bench, activity("plan", step("delete", requireConfirmation=True), to="ship"), SHIP)
    agent = Attacker(bench, surface, CLIENT)
    agent.start()
    tool, arguments = finishing(agent)
    agent.call_with_forms(accepts("whatever"), tool, **arguments)
    if surface in CLAIMING:
        agent.reach("confirm-delete")
    for choice in ("whatever", "proceed"):
        held(not agent.decisions() and not agent.has_entered("ship"), unasked(agent, []))
        agent.respond_with_forms("confirm-delete", "proceed", accepts(choice))
    assert [answer.option for answer in agent.decisions()] == ["proceed"]


def user_is_faster(agent: Attacker, gate: str, own: str, of_form: str) -> Reaction:
    """Return a form's answer that comes after the user has decided in the inbox."""

    def reacts(_message: str) -> FormAnswer:
        if agent.waiting(gate):
            agent.user_decides(gate, own)
        return FormAnswer("accept", {"choice": of_form})

    return reacts


@on(*EVERY, policy=["auto", "client"])
def test_people_a_form_does_not_override_what_the_user_decided(
    bench: Bench, surface: str, policy: str
) -> None:
    agent = at_the_gate(bench, surface, AUTO if policy == "auto" else CLIENT)
    agent.respond_with_forms("deploy", "no", user_is_faster(agent, "deploy", "no", "yes"))
    answers = [(answer.option, answer.channel) for answer in agent.decisions("deploy")]
    held(answers == [("no", "cli")], f"recorded: {answers}")


@on(*EVERY, policy=["auto", "client"])
def test_people_a_form_does_not_override_what_the_user_rejected(
    bench: Bench, surface: str, policy: str
) -> None:
    write_activities(bench, activity("plan", step("delete", userInput=[APPROVAL]), to="ship"), SHIP)
    agent = Attacker(bench, surface, AUTO if policy == "auto" else CLIENT)
    agent.start()
    tool, arguments = finishing(agent)
    agent.call_with_forms(declines, tool, **arguments)  # so that the question is in the inbox
    tool, arguments = finishing(agent)
    agent.call_with_forms(user_is_faster(agent, "signed", "reject", "approve"), tool, **arguments)
    answers = [(answer.option, answer.channel) for answer in agent.decisions("signed")]
    held(answers == [("reject", "cli")], f"recorded: {answers}")
    held(not agent.has_done("delete"), "the step was done")


def never_stopping_bundle(folder: Path) -> str:
    """Export a run that was begun in never-stop mode and stands before its gate."""
    folder.mkdir()
    bench = Bench(folder)
    write_activities(bench, activity("plan", step("prepare"), DEPLOY, to="ship"), SHIP)
    agent = Attacker(bench, "execution", Terms(decisions="agent"), "never-stop")
    agent.start()
    ledger = agent.ledger
    with ledger.store.reading() as reader:
        session = reader.session(agent.session_id)
    assert session is not None
    raw = msgspec.json.encode(export_session(ledger.store, session, ledger.pins, ledger.clock()))
    bench.close()
    return raw.decode()


def run_imported(bench: Bench) -> Attacker:
    """Go on with the imported run on a server where only the user decides."""
    agent = Attacker(bench, "execution", USER, "guided")
    agent.call("resume_session", resumeRef=agent.session_id)
    if "stateToken" not in agent.tokens:
        (candidate,) = agent.call("resume_session", query="Deploy")["candidates"]
        agent.tokens["stateToken"] = candidate["stateToken"]
    agent.call("continue_workflow", stateToken=agent.tokens["stateToken"])
    agent.walk("prepare", "send", "send")
    return agent


@pytest.mark.slow
def test_a16_an_import_from_a_pipe_does_not_loosen_the_terms(here: Bench, tmp_path: Path) -> None:
    raw = never_stopping_bundle(tmp_path / "other")
    write_activities(here, activity("plan", step("prepare"), DEPLOY, to="ship"), SHIP)
    ledger = here.ledger()
    set_pin(ledger.store, ledger.owner, "1234")
    interlock(here.folder, "import", "-", given=raw)
    agent = run_imported(here)
    held(not agent.decisions("deploy"), f"recorded: {agent.decisions('deploy')}")
    held(not agent.has_entered("ship"), "the gate was passed")


def test_a16_a_token_of_role_user_imports_nothing(here: Bench, tmp_path: Path) -> None:
    raw = never_stopping_bundle(tmp_path / "other")
    write_activities(here, activity("plan", step("prepare"), DEPLOY, to="ship"), SHIP)
    console = Console(here.ledger(), "1.0.0")
    answer = console.act(Principal("ada", "user"), "import", raw.encode())
    held(answer.status in (401, 403), f"{answer.status}: {answer.body!r}")
    assert console.act(Principal("eve", "admin"), "import", raw.encode()).status == 200


BEFORE_THE_GATE = (activity("plan", step("read"), step("prepare"), DEPLOY, to="ship"), SHIP)


def rewind(agent: Attacker, before: dict[str, Any]) -> None:
    """Go on from an earlier answer, and do the first step in another way: the run gets a second branch."""
    agent.tokens, agent.claims = dict(before), []
    if agent.surface == "execution":
        agent.call("continue_workflow", stateToken=before["stateToken"])
    agent.do("read", {"notesMarkdown": "Once more, with care."})


@on(*EVERY)
def test_a17_a_rewind_does_not_undo_what_the_user_tightened(bench: Bench, surface: str) -> None:
    write_activities(bench, *BEFORE_THE_GATE)
    agent = Attacker(bench, surface, USER, "never-stop")
    agent.start()
    before = dict(agent.tokens)
    agent.do("read")
    tightened = set_session_mode(agent.ledger, agent.session_id, PRESETS["guided"], "cli")
    assert isinstance(tightened, int)
    assert tightened
    rewind(agent, before)
    agent.walk("prepare")
    if surface == "navigation":
        agent.respond("deploy", "yes")
    agent.walk(">ship", "send", ">__terminal__")
    held(not agent.decisions("deploy"), f"recorded: {agent.decisions('deploy')}")
    held(not agent.has_entered("ship"), "the gate was passed")


@on(*EVERY)
def test_a17_a_tighter_process_holds_its_own_calls(bench: Bench, surface: str) -> None:
    write_activities(bench, *BEFORE_THE_GATE)
    begun = Attacker(bench, surface, USER, "never-stop")
    begun.start()
    agent = Attacker(bench, surface, USER, "guided")
    agent.tokens = begun.tokens
    agent.walk("read", "prepare")
    if surface == "navigation":
        agent.respond("deploy", "yes")
    agent.walk(">ship", "send", ">__terminal__")
    held(not agent.decisions("deploy"), f"recorded: {agent.decisions('deploy')}")
    held(not agent.has_entered("ship"), "the gate was passed")


@on(*EVERY, when=["before the end", "after the end"])
def test_gaps_what_was_decided_without_the_user_is_not_closed_by_the_agent(
    bench: Bench, surface: str, when: str
) -> None:
    write_activities(bench, *BEFORE_THE_GATE)
    agent = Attacker(bench, surface, AUTO, "never-stop")
    agent.start()
    agent.walk("read", "prepare", ">ship")
    if surface in STEPWISE:
        agent.respond("deploy", "yes")
        agent.walk(">ship")
    assert agent.decisions("deploy")
    resolved = [{"gap": number, "summary": "The user agreed."} for number in (1, 2, 3)]
    closing = {"artifacts": [{"kind": "wr.gaps", "resolved": resolved}]}
    agent.do("send", closing if when == "before the end" else None)
    agent.walk(">__terminal__")
    assert agent.has_completed()
    if when == "after the end" and surface == "execution":
        tokens = {name: agent.tokens[name] for name in ("stateToken", "checkpointToken")}
        agent.call("checkpoint_workflow", **tokens, output=closing)
    elif when == "after the end":
        agent.do("send", closing)
        agent.walk(">__terminal__")
    held(agent.status == "complete_with_gaps", f"the run is {agent.status}, and nobody asked the user")


@on(*EVERY)
def test_declines_advisory_enforcement_does_not_pass_a_declined_question(bench: Bench, surface: str) -> None:
    agent = at_the_gate(bench, surface, Terms(enforcement="advisory", min_response_ms=0))
    shown = questions_in(agent.respond_with_forms("deploy", "yes", declines))
    assert shown == ["Deploy?"]
    agent.walk("prepare", ">ship", "send")
    held(not agent.has_entered("ship"), "the user was asked, did not answer, and was passed by")


@on(*STEPWISE)
def test_declines_a_rewind_does_not_forget_a_decline(bench: Bench, surface: str) -> None:
    write_activities(bench, *BEFORE_THE_GATE)
    agent = Attacker(bench, surface)
    agent.start()
    before = dict(agent.tokens)
    agent.walk("read", "prepare")
    assert questions_in(agent.respond_with_forms("deploy", "yes", declines)) == ["Deploy?"]
    rewind(agent, before)
    agent.walk("prepare")
    agent.respond("deploy", "yes")
    held(not agent.decisions("deploy"), f"recorded: {agent.decisions('deploy')}")


BEGINNINGS = {"before the first activity": [], "at the end of an activity": [activity("plan", to="ask")]}


@on(*STEPWISE, begun=CLAIMING, where=BEGINNINGS, asks=["gate", "input"])
def test_declines_the_agent_does_not_answer_a_declined_form_of_another_surfaces_run(
    bench: Bench, surface: str, begun: str, where: str, asks: str
) -> None:
    """The call that meets the question comes to its activity first, where another surface left the run."""
    asked = [DEPLOY, step("delete")] if asks == "gate" else [step("delete", userInput=[APPROVAL])]
    before = BEGINNINGS[where]
    write_activities(bench, *before, activity("ask", *asked), initial="plan" if before else "ask")
    first = Attacker(bench, begun)
    first.call("start_session", workflow_id="deploy", agent_id="agent")
    if before:
        first.go("plan")
    agent = Attacker(bench, surface)
    token = {"stateToken" if surface == "execution" else "state": first.tokens["session_token"]}
    agent.call("continue_workflow" if surface == "execution" else "nav_situation", **token)
    if before and surface == "navigation":
        agent.act("transition", activity_id="ask")
    if asks == "gate":
        shown = agent.respond_with_forms("deploy", "yes", declines)
    else:
        tool, arguments = finishing(agent, signed="approve")
        shown = agent.call_with_forms(declines, tool, **arguments)
    held(len(shown) == 1 and not agent.decisions(), unasked(agent, shown))
    assert agent.events("question_declined"), agent.text
    agent.user_decides(*("deploy", "no") if asks == "gate" else ("signed", "approve"))


@on(*EVERY, begun=STEPWISE)
def test_people_an_agent_that_takes_a_run_up_does_not_override_what_the_user_decided(
    bench: Bench, surface: str, begun: str
) -> None:
    """The user's answer waits for the agent's next call; that comes from another surface."""
    plan = activity("plan", step("prepare"), question("deploy", "Deploy?", yes={}, no={}), step("send"))
    write_activities(bench, plan)
    first = Attacker(bench, begun, AUTO)
    first.start()
    first.do("prepare")
    first.user_decides("deploy", "no")
    agent = taken_up(bench, surface, first, AUTO)
    agent.reach("deploy")
    agent.respond("deploy", "yes")
    agent.walk("send", ">__terminal__")
    options = [record.option for record in agent.decisions("deploy")]
    held("yes" not in options, "the agent has overridden what the user decided")


def ask_again(agent: Attacker, gate: str, **values: str) -> None:
    """Have a question asked again with other values of what it shows."""
    match agent.surface:
        case "execution":
            agent.ack(reask=values)
        case "navigation":
            agent.act("respond_to_checkpoint", checkpoint_id=gate, reask=values)
        case "session":
            agent.tell("yield_checkpoint", checkpoint_id=gate, reask=values)
        case _:
            agent.tell("get_checkpoint", activity_id="plan", checkpoint_id=gate, reask=values)


@on(*STEPWISE, target=["production", "staging"])
def test_people_an_agent_does_not_drop_what_the_user_decided_by_asking_again(
    bench: Bench, surface: str, target: str
) -> None:
    """The answer waits for the agent's next call, which has the question asked again instead."""
    deploy = question("deploy", "Deploy to {{target}}?", yes={}, no={})
    write_activities(bench, activity("plan", step("prepare", sets=["target"]), deploy), target="string")
    agent = Attacker(bench, surface, AUTO)
    agent.start()
    agent.do("prepare", target="production")
    agent.user_decides("deploy", "no")
    ask_again(agent, "deploy", target=target)
    assert "The user has answered checkpoint 'deploy'" in agent.text
    agent.respond("deploy", "yes")
    options = [record.option for record in agent.decisions("deploy")]
    held("yes" not in options, "the agent has overridden what the user decided")


def user_says_no(agent: Attacker, channel: str) -> None:
    """The user answers the question that the agent has come to, by this channel."""
    if channel == "form":
        agent.respond_with_forms("deploy", "no", accepts("no"))
    else:
        agent.user_decides("deploy", "no")
        agent.use_decision("deploy", "no")


@on(*EVERY, channel=["form", "inbox"], target=["production", "staging"])
def test_people_an_agent_does_not_replace_what_the_user_decided_by_asking_again(
    bench: Bench, surface: str, channel: str, target: str
) -> None:
    """A weaker channel replaces nothing that a stronger one has recorded, in other words neither."""
    deploy = question("deploy", "Deploy to {{target}}?", yes={}, no={})
    steps = step("prepare", sets=["target"]), deploy, step("send")
    write_activities(bench, activity("plan", *steps), target="string")
    agent = Attacker(bench, surface, AUTO)
    agent.start()
    agent.do("prepare", target="production")
    agent.reach("deploy")
    user_says_no(agent, channel)
    ask_again(agent, "deploy", target=target)
    agent.respond("deploy", "yes")
    agent.walk("send", ">__terminal__")
    options = [record.option for record in agent.decisions("deploy")]
    held(options == ["no"], "the agent has replaced what the user decided")
    if target == "staging":
        agent.user_decides("deploy", "yes")
