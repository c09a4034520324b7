"""Words find work on every surface, with what to call to go on with it (rule 47)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from interlock.ledger.queries.status import find_session
from interlock.ledger.transfer.bundle import Bundle
from interlock.ledger.transfer.export_import import export_session
from interlock.ledger.transfer.text_export import as_html, as_markdown
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.tool import Surface, call_tool
from support.harness import STATEFUL, Agent, Bench, steps, workflow

FINDING = ("session", "gated", "navigation")
every_surface = pytest.mark.parametrize("surface", FINDING)


class Newcomer:
    """An agent in a new chat: it has no token, and reads nothing but text."""

    def __init__(self, bench: Bench, surface: str) -> None:
        self.name = surface
        self.surface: Surface = STATEFUL[surface](bench.ledger())
        self.is_error = False

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        reply = call_tool(self.surface, tool, arguments, Call(Client("test-client")))
        assert isinstance(reply, Reply)
        self.is_error = reply.is_error
        body: dict[str, Any] = json.loads(reply.text) if reply.text.startswith("{") else {"text": reply.text}
        return body

    def find(self, words: str) -> dict[str, Any]:
        if self.name == "navigation":
            return self.call("nav_start", find=words)
        agent = {"agent_id": "newcomer"} if self.name == "session" else {}
        return self.call("start_session", find=words, **agent)

    def take_up(self, candidate: dict[str, Any]) -> dict[str, Any]:
        """Do what `next_action` says."""
        if self.name == "navigation":
            return self.call("nav_situation", state=candidate["state"])
        known = {"session_token": candidate["session_token"], "agent_id": "newcomer"}
        if self.name == "gated":
            known["workflow_id"] = candidate["workflow_id"]
        return self.call("start_session", **known)


@pytest.fixture
def work(bench: Bench) -> Agent:
    """A run that began in another chat, at its second step."""
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    agent.start("test.flow", goal="mend the boiler")
    agent.ack("new gasket fitted")
    return agent


def sessions(bench: Bench) -> int:
    answer = bench.agent().call("resume_session")
    return len({candidate["sessionId"] for candidate in answer["candidates"]})


@every_surface
def test_words_find_work_and_the_answer_says_what_to_call(bench: Bench, work: Agent, surface: str) -> None:
    newcomer = Newcomer(bench, surface)
    found = newcomer.find("please continue with the boiler")
    assert found["matched"]
    (candidate,) = found["candidates"]
    assert candidate["title"] == "mend the boiler"
    assert candidate["workflow_id"] == "test.flow"
    assert candidate["status"] == "in_progress"
    assert candidate["why_matched"] == "matched_title"
    assert candidate["snippet"] == "new gasket fitted"
    assert ("nav_situation" if surface == "navigation" else "start_session") in found["next_action"]
    taken = json.dumps(newcomer.take_up(candidate))
    assert not newcomer.is_error
    assert "mend the boiler" in taken
    assert "new gasket fitted" in taken
    assert sessions(bench) == 1, "finding starts nothing"


@every_surface
def test_an_id_finds_exactly_that_work(bench: Bench, work: Agent, surface: str) -> None:
    session_id = work.last["session"]["sessionId"]
    bench.agent().start("test.flow", goal=f"mentions {session_id}")
    for reference in (session_id, session_id.removeprefix("sess_")[:8], work.last["session"]["runId"]):
        found = Newcomer(bench, surface).find(reference)
        assert [candidate["title"] for candidate in found["candidates"]] == ["mend the boiler"]


@every_surface
def test_words_that_match_nothing_say_so(bench: Bench, work: Agent, surface: str) -> None:
    found = Newcomer(bench, surface).find("zeppelin")
    assert not found["matched"]
    assert "Nothing matches 'zeppelin'" in found["message"]
    assert "other words" in found["next_action"]
    assert len(found["candidates"]) == 1, "the newest work is shown"


@every_surface
def test_an_empty_store_says_so(bench: Bench, surface: str) -> None:
    found = Newcomer(bench, surface).find("boiler")
    assert "Nothing is stored yet" in found["message"]
    assert found["candidates"] == []


@every_surface
def test_the_ranking_is_that_of_resume_session(bench: Bench, work: Agent, surface: str) -> None:
    for goal in ("the boiler room", "a fence", "boiler pipes"):
        bench.clock.pass_seconds(60)
        agent = bench.agent()
        agent.start("test.flow", goal=goal)
        if goal == "boiler pipes":
            agent.ack("done")
            agent.ack("done")
    listed = bench.agent().call("resume_session", query="boiler")["candidates"]
    titles = [candidate["title"] for candidate in Newcomer(bench, surface).find("boiler")["candidates"]]
    assert titles == [candidate["title"] for candidate in listed] == [*titles[:2], "boiler pipes"]


@every_surface
def test_a_session_without_a_run_is_listed_without_a_token(bench: Bench, surface: str) -> None:
    agent = bench.agent()
    token = agent.call("start_session", title="Boiler ideas")["sessionToken"]
    agent.call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": "ask the plumber"})
    (candidate,) = Newcomer(bench, surface).find("boiler")["candidates"]
    assert (candidate["status"], candidate["snippet"]) == ("notes only, no run", "ask the plumber")
    assert not {"state", "session_token"} & set(candidate)


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_an_id_sent_as_a_token_finds_the_work_instead_of_starting_afresh(
    bench: Bench, work: Agent, surface: str
) -> None:
    newcomer, session_id = Newcomer(bench, surface), work.last["session"]["sessionId"]
    known = {"session_token": session_id, "agent_id": "newcomer", "workflow_id": "test.flow"}
    found = newcomer.call("start_session", **known)
    assert [candidate["title"] for candidate in found["candidates"]] == ["mend the boiler"]
    assert sessions(bench) == 1


@pytest.mark.parametrize(("surface", "tool"), [("gated", "start_session"), ("navigation", "nav_start")])
def test_a_start_still_needs_its_workflow(bench: Bench, surface: str, tool: str) -> None:
    newcomer = Newcomer(bench, surface)
    assert "'workflow_id' is missing" in msgspec.json.encode(newcomer.call(tool)).decode()
    assert newcomer.is_error


class TestTitles:
    """A session is called after its work, not only after its workflow (rule 42)."""

    @pytest.mark.parametrize(
        ("variables", "title"),
        [
            ({"goal": "mend the boiler", "issue": "HOUSE-7"}, "mend the boiler"),
            ({"issue_ref": "HOUSE-7"}, "HOUSE-7"),
            ({"ticket": "HOUSE-7"}, "HOUSE-7"),
            ({"issue_number": 7}, "#7"),
            ({"size": "large"}, "Work package"),
        ],
    )
    def test_a_session_is_named_by_the_first_call_that_names_its_work(
        self, bench: Bench, variables: dict[str, Any], title: str
    ) -> None:
        newcomer = Newcomer(bench, "session")
        started = newcomer.call("start_session", agent_id="a", workflow_id="work-package")
        assert Newcomer(bench, "gated").find("")["candidates"][0]["title"] == "Work package"
        newcomer.call(
            "next_activity",
            session_token=started["session_token"],
            activity_id="understand-issue",
            variables=variables,
        )
        (found,) = Newcomer(bench, "navigation").find(title)["candidates"]
        assert found["title"] == title

    def test_variables_that_a_refused_call_brought_name_the_work_too(self, bench: Bench) -> None:
        newcomer = Newcomer(bench, "navigation")
        bench.write(workflow(*steps("one"), name="Flow"))
        state = newcomer.call("nav_start", workflow_id="test.flow")["state"]
        sent = {"step_id": "unknown", "variables": {"goal": "mend the boiler"}}
        assert not newcomer.call("nav_action", state=state, action="complete_step", **sent)["success"]
        assert newcomer.find("boiler")["candidates"][0]["title"] == "mend the boiler"

    def test_a_title_stays(self, bench: Bench, work: Agent) -> None:
        work.ack(goal="something else")
        assert Newcomer(bench, "gated").find("boiler")["candidates"][0]["title"] == "mend the boiler"


class TestTheResumePrompt:
    """What a client puts into the chat when the user picks `resume`."""

    def text(self, bench: Bench, surface: str, query: str) -> str:
        text = STATEFUL[surface](bench.ledger()).prompts().text("resume", {"query": query})
        assert text is not None
        return text

    @pytest.mark.parametrize("surface", STATEFUL)
    def test_it_continues_what_matches(self, bench: Bench, work: Agent, surface: str) -> None:
        text = self.text(bench, surface, "boiler")
        assert text.startswith("Continue 'mend the boiler' (test.flow). Call ")
        assert "st.v1." in text

    @pytest.mark.parametrize("surface", STATEFUL)
    def test_it_says_when_nothing_matches_and_continues_nothing(
        self, bench: Bench, work: Agent, surface: str
    ) -> None:
        text = self.text(bench, surface, "zeppelin")
        assert text.startswith("Nothing stored matches 'zeppelin'. Tell the user so")
        assert "- mend the boiler (test.flow, in_progress)" in text
        assert "st.v1." not in text

    @pytest.mark.parametrize("surface", STATEFUL)
    def test_it_does_not_continue_finished_work(self, bench: Bench, work: Agent, surface: str) -> None:
        work.ack("done")
        assert work.last["isComplete"]
        text = self.text(bench, surface, "boiler")
        assert text.startswith("'mend the boiler' (test.flow) is not running any more (complete)")

    def test_without_words_it_continues_the_newest_running_work(self, bench: Bench, work: Agent) -> None:
        done = bench.agent()
        bench.clock.pass_seconds(60)
        done.start("test.flow", goal="finished since")
        done.ack("done")
        done.ack("done")
        assert self.text(bench, "execution", "").startswith("Continue 'mend the boiler'")

    def test_with_nothing_stored_it_says_so(self, bench: Bench) -> None:
        text = "No work is stored yet. Tell the user so. Continue nothing."
        assert self.text(bench, "navigation", "") == text
        assert self.text(bench, "navigation", "boiler").startswith("Nothing stored matches 'boiler'.")


@pytest.mark.parametrize(
    ("kind", "written", "sent"),
    [
        ("boolean", " Yes ", "true"), ("boolean", "no", "false"), ("boolean", "maybe", '"maybe"'),
        ("number", "2.5", "2.5"), ("number", "nan", '"nan"'), ("number", "-inf", '"-inf"'),
        ("number", "1e999", '"1e999"'), ("number", "five", '"five"'),
    ],
)  # fmt: skip
def test_an_argument_of_a_prompt_is_sent_as_its_type_or_as_it_was_written(
    bench: Bench, kind: str, written: str, sent: str
) -> None:
    """The server then says what fits; a guess would be taken."""
    declared = {"name": "wish", "type": kind, "description": "A wish."}
    bench.write(workflow(*steps("one"), variables=[declared]))
    text = STATEFUL["execution"](bench.ledger()).prompts().text("test.flow", {"wish": written})
    assert text is not None
    assert f'context {{"wish":{sent}}}' in text


class TestNotesOfTheSession:
    """Notes that were kept before any run, or beside the runs, are there for the next agent."""

    @pytest.fixture
    def token(self, bench: Bench) -> str:
        bench.write(workflow(*steps("one", "two")))
        agent = bench.agent()
        token: str = agent.call("start_session", title="Boiler ideas")["sessionToken"]
        for note in ("ask the plumber", "## not a step\nthe gasket is red"):
            agent.call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": note})
        return token

    def test_resume_session_shows_them_where_there_is_no_run(self, bench: Bench, token: str) -> None:
        agent = bench.agent()
        best = agent.call("resume_session", query="boiler")["best"]
        assert best["notes"] == ["ask the plumber", "## not a step\nthe gasket is red"]
        assert "- ask the plumber" in agent.text
        assert "\n## not a step" not in agent.text, "what others wrote is quoted"
        assert "start_workflow with its sessionToken" in agent.text

    def test_only_the_newest_are_shown_where_there_are_many(self, bench: Bench, token: str) -> None:
        agent = bench.agent()
        for number in range(4):
            output = {"notesMarkdown": f"{number} " + "x" * 3000}
            agent.call("checkpoint_workflow", sessionToken=token, output=output)
        best = agent.call("resume_session", query="boiler")["best"]
        assert (len(best["notes"]), best["omitted"]) == (1, 5)
        assert "[5 earlier notes omitted]" in agent.text

    @pytest.mark.parametrize("surface", STATEFUL)
    def test_a_run_of_the_session_is_taken_up_with_them(self, bench: Bench, token: str, surface: str) -> None:
        agent = bench.agent()
        goal = {"goal": "mend it"}
        started = agent.call("start_workflow", workflowId="test.flow", sessionToken=token, context=goal)
        if surface == "execution":
            assert agent.look(started)["sessionNotes"][0] == "ask the plumber"
            assert "Notes of the session:\n- ask the plumber" in agent.text
            return
        newcomer = Newcomer(bench, surface)
        (candidate,) = newcomer.find("mend")["candidates"]
        assert "ask the plumber" in json.dumps(newcomer.take_up(candidate))

    @pytest.mark.parametrize("write", [as_markdown, as_html])
    def test_every_export_has_them(self, bench: Bench, token: str, write: Callable[[Bundle], str]) -> None:
        agent = bench.agent()
        agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
        ledger = agent.ledger
        session = find_session(ledger, agent.last["session"]["sessionId"])
        text = write(export_session(ledger.store, session, ledger.pins, ledger.clock()))
        assert "Notes of the session" in text
        assert "ask the plumber" in text

    def test_the_transcript_has_them_without_a_run(self, bench: Bench, token: str) -> None:
        agent = bench.agent()
        session_id = agent.call("resume_session", query="boiler")["candidates"][0]["sessionId"]
        transcript = agent.surface.resources().read(f"interlock://runs/{session_id}/transcript")
        assert transcript is not None
        assert "the gasket is red" in str(transcript)


@every_surface
def test_notes_without_a_run_say_that_there_is_nothing_to_take_up(bench: Bench, surface: str) -> None:
    agent = bench.agent()
    agent.call("start_session", title="gryphon notes")
    found = Newcomer(bench, surface).find("gryphon")
    assert found["next_action"] == (
        "Only notes were found, and no run to take up. Call again without find to start a workflow."
    )


@every_surface
def test_a_running_run_comes_before_notes_without_a_run(bench: Bench, work: Agent, surface: str) -> None:
    """Rule 47: within a tier a running run comes first, however new the notes are."""
    bench.clock.pass_seconds(60)
    bench.agent().call("start_session", title="the boiler")
    found = Newcomer(bench, surface).find("boiler")
    titles = [candidate["title"] for candidate in found["candidates"]]
    assert titles == ["mend the boiler", "the boiler"]
    assert found["next_action"].endswith("A candidate with notes only has no run to take up.")
