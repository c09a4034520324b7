"""Attacks on the people who decide, and on what they are shown."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from interlock.console.console import Console
from interlock.core.principals import Principal
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.store.protocol import SessionFilter
from interlock.surfaces.call import Call, Elicit
from support.attacker import (
    ASKING,
    AUTO,
    CLAIMING,
    EVERY,
    STEPWISE,
    USER,
    Attacker,
    activity,
    held,
    on,
    question,
    step,
    write_activities,
)
from support.browser_desk import BrowserDesk, desk
from support.chromium import browser
from support.cli_process import Terminal, interlock, to_the_gate
from support.harness import Bench, decision, gate, rotate, steps, workflow
from support.http_server import bearer, inbox_answer, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Locator, Page

__all__ = ["browser", "desk"]

SHIP = activity("ship", step("send"))
DEPLOY = question("deploy", "Deploy to {{target}}?", yes={}, no={})
ASKS_FIRST = activity("plan", DEPLOY, step("prepare"), to="ship")


def decided(data: Path, session: str) -> list[str]:
    """Return what people have decided in a session."""
    ran = interlock(data, "log", session, "--kind", "decision_recorded", "--json")
    return [event["event"]["option"] for event in ran.json["events"]]


def resting(page: Page, button: Locator) -> FloatRect:
    """Return where a button is once it takes clicks and all that belongs to its question has loaded."""
    button.click(trial=True)
    before = None
    for _ in range(60):
        now = button.bounding_box()
        if now is not None and now == before:
            return now
        before = now
        page.wait_for_timeout(300)
    raise AssertionError("the page does not come to rest")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["keys", "half typed", "mouse"])
def test_people_an_answer_is_for_the_question_on_screen(
    desk: BrowserDesk, browser: Browser, tmp_path: Path, by: str
) -> None:
    first = to_the_gate(desk.worker, "The first")
    page = desk.open(browser, "inbox")
    page.get_by_role("article").first.wait_for()
    accept = page.get_by_role("button", name="Accept").first
    button = resting(page, accept)
    if by == "half typed":
        page.keyboard.press("1")
        page.get_by_text("press Enter to answer").wait_for()
    second = to_the_gate(desk.worker, "The second")
    page.get_by_text("1 new question").first.wait_for()
    if by == "mouse":
        assert accept.bounding_box() == button, "the options moved when a question arrived"
        page.mouse.click(button["x"] + button["width"] / 2, button["y"] + button["height"] / 2)
    else:
        if by == "keys":
            page.keyboard.press("1")
        page.wait_for_timeout(500)
        page.keyboard.press("Enter")
    page.get_by_text("Recorded: accept").wait_for()
    held(not decided(tmp_path, second), "the answer to the first question was recorded for the second")
    assert decided(tmp_path, first) == ["accept"]


def two_runs_at_one_gate(bench: Bench) -> tuple[Attacker, str, list[str]]:
    """Begin two runs of one session that wait at the same gate; return the session and the runs."""
    bench.write(workflow(gate("deploy", "yes", "no"), *steps("last")))
    agent = Attacker(bench, "execution", USER)
    token = agent.call("start_session")["sessionToken"]
    for _ in range(2):
        agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    waiting = agent.waiting("deploy")
    assert len(waiting) == 2
    return agent, waiting[0].session_id, [question.run_id for question in waiting]


@pytest.mark.slow
def test_people_one_of_two_runs_at_a_gate_is_decided_at_the_terminal(here: Bench) -> None:
    agent, session, runs = two_runs_at_one_gate(here)
    code, listed = Terminal(here.folder, "decide", session, "yes").end()
    held(code == 2 and "--run" in listed and all(run in listed for run in runs), listed)
    terminal = Terminal(here.folder, "decide", session, "yes", "--gate", "deploy", "--run", runs[0])
    terminal.type("\n")
    code, text = terminal.end()
    held(code == 0, text)
    held([question.run_id for question in agent.waiting("deploy")] == [runs[1]], "another run was decided")


@pytest.mark.slow
def test_people_one_of_two_runs_at_a_gate_is_decided_over_http(here: Bench) -> None:
    """The question is answered as it is listed: with its node and its digest."""
    agent, _, runs = two_runs_at_one_gate(here)
    token = AccessTokens(here.folder).add("eve", "approver", 1)
    with serving(here.folder, "--workflows", str(here.workflows), "--quiet") as server:
        listed = server.request("GET", "/inbox", headers=bearer(token)).json["questions"]
        (chosen,) = [asked for asked in listed if asked["runId"] == runs[1]]
        other = msgspec.json.encode({**inbox_answer(chosen, "yes"), "run": runs[0]})
        assert server.request("POST", "/inbox", other, bearer(token)).status == 409
        sent = msgspec.json.encode(inbox_answer(chosen, "yes"))
        answer = server.request("POST", "/inbox", sent, bearer(token))
    left = [asked.run_id for asked in agent.waiting("deploy")]
    held(left == [runs[0]], f"{answer.status}: {answer.body!r}; {left} still wait of {runs}")


@on(*EVERY)
def test_people_the_inbox_asks_only_what_is_asked(bench: Bench, surface: str) -> None:
    choose = step("choose", actions=[{"action": "set", "target": "target"}])
    write_activities(bench, activity("plan", choose, DEPLOY, to="ship"), SHIP, target="string")
    agent = Attacker(bench, surface, USER)
    agent.start()
    if surface == "gated":
        agent.reach("deploy")
    held(not agent.waiting("deploy"), f"asked before its step: {agent.waiting('deploy')}")


@on("navigation")
def test_people_an_answer_in_the_inbox_is_asked_for_once(bench: Bench, surface: str) -> None:
    each = {"type": "forEach", "items": "envs", "itemVar": "env", "maxIterations": 5}
    body = [gate("deploy", "yes", "no", message="Deploy to {{env}}?"), *steps("launch")]
    bench.write(workflow({"type": "loop", "id": "each", "title": "Each", "loop": each, "body": body}))
    agent = Attacker(bench, surface, USER)
    agent.start("test.flow", "main", envs=["staging"])
    held(not agent.waiting("deploy"), "asked for a round that has not begun")
    agent.act("advance_loop", loop_id="each")
    agent.user_decides("deploy", "yes")
    held(not agent.waiting("deploy"), "the user answered, and is asked again")


HOSTILE = "staging\x1b[2J\x1b]0;owned\x07 \u202egnigats\u2066 \u200b"
FAKE = "staging?\n\nyes  Yes (nothing happens)\nno   No (DEPLOYS)\n\nReally"


def unclean(text: str) -> list[str]:
    """Name the characters that a screen must not be sent."""
    return [
        f"U+{ord(sign):04X}" for sign in text if unicodedata.category(sign) in ("Cc", "Cf") and sign != "\n"
    ]


def shown_in_form(agent: Attacker) -> str:
    tool, arguments = agent.responding("deploy", "yes")
    ask = agent.try_call(tool, Call(ASKING), **arguments)
    assert isinstance(ask, Elicit)
    (form,) = ask.questions.values()
    return form.message


def asked_about(bench: Bench, surface: str, target: str) -> Attacker:
    write_activities(bench, ASKS_FIRST, SHIP, target="string")
    agent = Attacker(bench, surface, AUTO)
    agent.start(target=target)
    agent.reach("deploy")
    return agent


@on(*EVERY)
def test_people_a_form_has_no_control_characters(bench: Bench, surface: str) -> None:
    shown = shown_in_form(asked_about(bench, surface, HOSTILE))
    held(not unclean(shown), f"{unclean(shown)} in {shown!r}")


@on(*EVERY)
def test_people_a_variable_adds_no_lines_to_a_form(bench: Bench, surface: str) -> None:
    shown = shown_in_form(asked_about(bench, surface, FAKE))
    held("\nno   No" not in shown, shown)


@on(*EVERY)
def test_people_a_form_is_bounded(bench: Bench, surface: str) -> None:
    shown = shown_in_form(asked_about(bench, surface, "x" * 160_000))
    held(len(shown) < 20_000, f"{len(shown)} characters")


BROUGHT = {"controls": HOSTILE, "lines": FAKE, "length": "x" * 160_000}


@pytest.mark.slow
@pytest.mark.parametrize("brought", list(BROUGHT))
def test_people_a_terminal_is_safe_from_variables(here: Bench, brought: str) -> None:
    asked_about(here, "execution", BROUGHT[brought])
    _, shown = Terminal(here.folder, "inbox", "--workflows", str(here.workflows)).end()
    assert "Deploy to" in shown
    held(not [sign for sign in ("\x1b[2J", "\x1b]0;", "\u202e", "\u2066") if sign in shown], repr(shown))
    held("\n          no   No (DEPLOYS)" not in shown, shown)
    held(len(shown) < 30_000, f"{len(shown)} characters")


def altered(token: str) -> str:
    """Change one character of a token's tag."""
    return token[:-3] + ("A" if token[-3] != "A" else "B") + token[-2:]


@on(*CLAIMING, rotations=["0", "1", "2"])
def test_tokens_an_altered_token_does_not_open_a_session(here: Bench, surface: str, rotations: str) -> None:
    write_activities(here, ASKS_FIRST, SHIP, target="string")
    agent = Attacker(here, surface, USER)
    agent.start(target="staging")
    for _ in range(int(rotations)):
        rotate(agent.ledger.keys)
    stranger = Attacker(here, surface, USER)
    token = altered(agent.tokens["session_token"])
    answer = stranger.call("start_session", workflow_id="deploy", agent_id="agent", session_token=token)
    with stranger.ledger.store.reading() as reader:
        sessions = reader.sessions(SessionFilter())
    is_refused = "TOKEN_BAD_SIGNATURE" in str(answer) and len(sessions) == 1
    starts_afresh = answer.get("recovered") and len(sessions) == 2
    held(is_refused if surface == "gated" else starts_afresh, "the altered token leads into the session")


APPROVAL = {"reason": "needs_user_approval", "key": "signed", "question": "Delete it for good?"}


@on(*EVERY, how=["context", "artifact"], word=["reject", "rejected"])
def test_records_a_rejection_is_recorded_or_the_agent_is_told_that_it_is_none(
    bench: Bench, surface: str, how: str, word: str
) -> None:
    write_activities(bench, activity("plan", step("delete", userInput=[APPROVAL]), to="ship"), SHIP)
    agent = Attacker(bench, surface)
    agent.start()
    if how == "artifact":
        agent.do("delete", {"artifacts": [decision("signed", word)]})
    else:
        agent.do("delete", signed=word)
    if surface in CLAIMING:
        agent.walk(">ship")
    recorded = [record.option for record in agent.decisions("signed")]
    held(recorded == (["reject"] if word == "reject" else []), f"recorded: {recorded}")
    held(recorded or "neither approve nor reject" in agent.text, f"'{word}' was taken silently: {agent.text}")
    agent.walk(">ship")
    held(not agent.has_entered("ship"), "the step was done without the approval")


def test_roles_a_token_of_role_user_deletes_no_session(here: Bench) -> None:
    write_activities(here, ASKS_FIRST, SHIP, target="string")
    agent = Attacker(here, "execution", USER)
    agent.ledger = agent.ledger.of("ada")
    agent.start(target="staging")
    console = Console(here.ledger(), "1.0.0")
    request = {"sessionIds": [agent.session_id], "at": here.clock() + 1000, "waiting": True}
    here.clock.pass_seconds(60)
    answer = console.act(Principal("ada", "user"), "remove", msgspec.json.encode(request))
    held(answer.status == 403 and agent.session_id, f"{answer.status}: {answer.body!r}")
    assert console.act(Principal("eve", "admin"), "remove", msgspec.json.encode(request)).status == 200


SECRET = {"reason": "needs_user_choice", "key": "where", "question": "Where to, from {{target}}?"}
SPEND = {"reason": "needs_user_approval", "key": "spend", "question": "Spend it at {{target}}?"}


@on(*EVERY, asked=["choice", "approval"])
def test_what_a_step_asks_the_user_is_shown_by_an_event_before_it_is_answered(
    bench: Bench, surface: str, asked: str
) -> None:
    need, answer = (SPEND, "approve") if asked == "approval" else (SECRET, "home")
    write_activities(
        bench,
        activity("plan", step("prepare"), step("pay", userInput=[need]), step("last")),
        target="string",
    )
    agent = Attacker(bench, surface, USER)
    agent.start(target="staging")
    agent.walk("prepare", "pay", ">__terminal__")
    for option in ("reject", answer) if asked == "approval" else (answer,):
        (waiting,) = agent.waiting(need["key"])
        showings = [event.shown for event in agent.events("question_shown")]
        used = [record.shown for record in agent.decisions(need["key"])]
        shown = showings.count(waiting.shown) - used.count(waiting.shown)
        held(shown > 0, f"{waiting.message} waits in the inbox, and no event shows it")
        agent.user_decides(need["key"], option)
        agent.walk("pay", "last", ">__terminal__", target="PRODUCTION")
    assert agent.has_done("pay")
    held(agent.variables["target"] == "staging", "the user was shown another target")


@on(*STEPWISE)
def test_a_question_of_another_surfaces_run_is_put_before_it_waits(bench: Bench, surface: str) -> None:
    deploy = question("deploy", "Deploy?", yes={}, no={})
    write_activities(bench, activity("plan", deploy, step("prepare")))
    begun = Attacker(bench, "session", USER)
    begun.start()
    agent = Attacker(bench, surface, USER)
    token = begun.tokens["session_token"]
    if surface == "execution":
        agent.call("continue_workflow", stateToken=token)
        agent.respond("deploy", "yes")
    else:
        agent.call("nav_situation", state=token)
        agent.act("complete_step", step_id="prepare")
    held(agent.waiting("deploy"), "the run waits for the user, and the inbox has no question")
    assert agent.user_decides("deploy", "yes") == "Deploy?"
