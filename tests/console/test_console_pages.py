"""What the pages of the console show, projected from a ledger that an agent has written to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlock.console.console import Console
from interlock.console.pages import inbox_pages
from interlock.console.pages.inbox_pages import PAGE
from interlock.core.principals import LOCAL, Principal
from interlock.core.run.commands import Terms
from interlock.ledger.decisions.user_pin import set_pin
from interlock.surfaces.execution import ExecutionSurface
from support.console_client import answer_to
from support.console_desk import RELEASE, Desk, desk
from support.harness import Agent, Bench

__all__ = ["desk"]


def test_an_empty_store_shows_empty_pages(desk: Desk) -> None:
    inbox = desk.shows("inbox")
    assert (inbox["questions"], inbox["total"], inbox["counting"]) == ([], 0, False)
    assert (inbox["needsPin"], inbox["canDecide"]) == (False, True)
    runs = desk.shows("runs")
    assert (runs["lines"], runs["points"], runs["projects"], runs["more"]) == ([], [], [], False)
    assert desk.shows("search", q="anything")["hits"] == []


def test_a_question_comes_with_what_was_handed_in_and_what_follows(desk: Desk) -> None:
    line = desk.to_the_gate()
    assert (line["name"], line["excerpt"], line["workflowId"]) == ("Ship", "ship?", "test.flow")
    asked = desk.opened(line)
    assert asked["question"]["message"] == "ship?"
    substance = asked["substance"]
    assert substance["handedIn"]["notes"] == ["Built it."]
    assert [(each["kind"], each["rest"]) for each in substance["handedIn"]["artifacts"]] == [
        ("build", {"files": 3})
    ]
    assert asked["question"]["options"][0]["effect"] == "out = true"
    assert [(each["option"], each["pending"]["id"]) for each in substance["follows"]] == [
        ("yes", "last"),
        ("no", "last"),
    ]


def test_what_follows_is_known_as_soon_as_a_question_is_asked(bench: Bench) -> None:
    """The least time to answer in (rule 24) is about answering, not about what an answer leads to."""
    bench.write(RELEASE)
    console = Console(bench.ledger(terms=Terms(min_response_ms=60_000)), "1.0.0")
    worker = bench.agent()
    worker.start("test.flow", goal="Ship it")
    worker.ack("Built it.")
    (line,) = msgspec.json.decode(console.page(LOCAL, "inbox", {}).body)["questions"]
    page = console.page(LOCAL, f"inbox/{line['question']['sessionId']}", {"place": line["place"]})
    follows = msgspec.json.decode(page.body)["substance"]["follows"]
    assert [each["pending"]["id"] for each in follows] == ["last", "last"]


def ask_many(desk: Desk, count: int) -> None:
    """Let so many sessions wait; every third one hands in another report."""
    for number in range(count):
        desk.clock.pass_seconds(1)
        desk.agent.start("test.flow", goal=f"Task {number}")
        desk.agent.ack("Built it." if number % 3 else "Built it another way.")


def titles(page: Any) -> list[str]:
    return [line["title"] for line in page["questions"]]


def test_the_inbox_shows_the_oldest_first_and_every_question_can_be_reached(desk: Desk) -> None:
    ask_many(desk, PAGE + 5)
    first, second = desk.shows("inbox"), desk.shows("inbox", offset=str(PAGE))
    assert titles(first) + titles(second) == [f"Task {number}" for number in range(PAGE + 5)]
    assert (first["total"], first["rows"], first["counting"]) == (PAGE + 5, PAGE + 5, False)
    assert titles(desk.shows("inbox", order="newest"))[0] == f"Task {PAGE + 4}"
    desk.agent.decide("yes")
    assert desk.shows("inbox")["total"] == PAGE + 4


def test_the_inbox_can_be_narrowed_and_equal_questions_are_grouped(desk: Desk) -> None:
    ask_many(desk, 6)
    page = desk.shows("inbox")
    assert page["workflows"] == [{"value": "test.flow", "count": 6}]
    assert [line["equals"] for line in page["questions"]] == [2, 4, 4, 2, 4, 4]
    grouped = desk.shows("inbox", grouped="1")
    assert (titles(grouped), grouped["rows"], grouped["matching"]) == (["Task 0", "Task 1"], 2, 6)
    equal = desk.shows("inbox", equal=grouped["questions"][0]["equal"])
    assert titles(equal) == ["Task 0", "Task 3"]
    assert titles(desk.shows("inbox", workflow="another")) == []
    assert titles(desk.shows("inbox", due="day")) == []


def test_lines_that_are_on_the_screen_are_asked_for_again_without_what_has_come(desk: Desk) -> None:
    ask_many(desk, 2)
    before = desk.shows("inbox")
    known = ",".join(line["place"] for line in before["questions"])
    desk.agent.decide("yes")
    desk.clock.pass_seconds(1)
    desk.agent.start("test.flow", goal="It has come since")
    desk.agent.ack("Built it.")
    again = desk.shows("inbox", known=known, seen=str(before["newest"]))
    assert (titles(again), again["fresh"], again["total"]) == (["Task 0"], 1, 2)


def test_a_question_of_an_address_is_found_by_its_digest_and_a_missing_one_said(desk: Desk) -> None:
    line = desk.to_the_gate()
    session, shown = line["question"]["sessionId"], line["question"]["shown"]
    assert desk.shows(f"inbox/{session}", shown=shown)["line"]["place"] == line["place"]
    assert desk.act("decide", answer_to(line, "yes"))[0] == 200
    assert "no longer waits" in desk.shows(f"inbox/{session}", shown=shown)["error"]["message"]


def test_what_was_read_already_is_not_read_again_and_the_page_says_while_it_counts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_many(desk, 3)
    monkeypatch.setattr(inbox_pages, "EXAMINE_SECONDS", 0)
    page = desk.shows("inbox")
    assert (page["total"], page["counting"]) == (1, True)
    monkeypatch.setattr(inbox_pages, "EXAMINE_SECONDS", 60)
    assert (desk.shows("inbox")["total"], desk.shows("inbox")["counting"]) == (3, False)
    monkeypatch.setattr(inbox_pages, "EXAMINE_SECONDS", 0)
    assert (desk.shows("inbox")["total"], desk.shows("inbox")["counting"]) == (3, False)


def test_a_decision_is_recorded_with_its_channel_and_used_by_the_agent(desk: Desk) -> None:
    asked = desk.to_the_gate()
    status, done = desk.act("decide", {**answer_to(asked, "yes"), "note": "seen on staging"})
    assert status == 200, done
    assert desk.shows("inbox")["questions"] == []
    assert desk.agent.ack()["pending"]["stepId"] == "last"
    made = desk.shows(f"sessions/{desk.ref}")["story"]["steps"][1]["decisions"][-1]
    assert (made["option"], made["channel"], made["client"], made["note"]) == (
        "yes",
        "console",
        "",
        "seen on staging",
    )


def test_an_answer_counts_once(desk: Desk) -> None:
    asked = desk.to_the_gate()
    assert desk.act("decide", answer_to(asked, "yes"))[0] == 200
    status, refused = desk.act("decide", answer_to(asked, "no"))
    assert (status, refused["error"]["code"]) == (409, "ALREADY_DECIDED")
    assert desk.agent.ack()["pending"]["stepId"] == "last"


def test_a_nul_character_is_refused(desk: Desk) -> None:
    asked = desk.to_the_gate()
    assert desk.act("decide", {**answer_to(asked, "yes"), "note": "a\0b"})[0] == 400
    assert desk.act("note", {"sessionId": asked["question"]["sessionId"], "notes": "a\0b"})[0] == 400
    assert len(desk.shows("inbox")["questions"]) == 1


def test_a_question_that_changed_is_not_answered(desk: Desk) -> None:
    asked = desk.to_the_gate()
    status, refused = desk.act("decide", {**answer_to(asked, "yes"), "shown": "another digest"})
    assert (status, refused["error"]["code"]) == (409, "QUESTION_CHANGED")
    assert len(desk.shows("inbox")["questions"]) == 1


def test_deciding_asks_for_the_pin_and_pauses_after_wrong_ones(desk: Desk, bench: Bench) -> None:
    asked = desk.to_the_gate()
    set_pin(bench.ledger().store, "local", "4711")
    assert desk.shows("inbox")["needsPin"]
    assert desk.act("decide", answer_to(asked, "yes"))[1]["error"]["code"] == "PIN_REQUIRED"
    codes = [
        desk.act("decide", {**answer_to(asked, "yes"), "pin": "1"})[1]["error"]["code"] for _ in range(6)
    ]
    assert codes == ["PIN_WRONG"] * 5 + ["PIN_PAUSED"]
    assert desk.act("decide", {**answer_to(asked, "yes"), "pin": "4711"})[1]["error"]["code"] == "PIN_PAUSED"
    desk.clock.pass_seconds(61)
    assert desk.act("decide", {**answer_to(asked, "yes"), "pin": "4711"})[0] == 200


def test_an_owner_sees_only_its_own_and_an_approver_decides(desk: Desk) -> None:
    asked = desk.to_the_gate()
    stranger, approver = Principal("eve"), Principal("ada", "approver")
    assert desk.shows("inbox", stranger)["questions"] == []
    assert desk.shows("runs", stranger)["lines"] == []
    assert desk.shows(f"sessions/{desk.ref}", stranger)["error"]["code"] == "NOT_FOUND"
    assert desk.act("decide", answer_to(asked, "yes"), stranger)[0] == 403
    for action in ("note", "mode"):
        request = {"sessionId": asked["question"]["sessionId"]}
        more = {"note": {"notes": "x"}, "mode": {"mode": "stop"}}[action]
        assert desk.act(action, {**request, **more}, stranger)[0] in (403, 404)
    seen = desk.shows("inbox", approver)["questions"][0]
    assert seen["owner"] == "local"
    assert desk.act("decide", answer_to(seen, "yes"), approver)[0] == 200
    assert desk.agent.ack()["pending"]["stepId"] == "last"


def test_a_token_of_the_role_user_decides_nothing_because_an_agent_may_hold_it(bench: Bench) -> None:
    """What is left of rule 27 if an agent signs in to the console with its own token."""
    bench.write(RELEASE)
    eve, ledger = Principal("eve"), bench.ledger(owner="eve")
    worker = Agent(ExecutionSurface(ledger))
    worker.start("test.flow", goal="Ship it")
    worker.ack("Built it.")
    console = Console(ledger, "1.0.0")
    page = msgspec.json.decode(console.page(eve, "inbox", {}).body)
    assert (len(page["questions"]), page["canDecide"]) == (1, False)
    answer = answer_to(page["questions"][0], "yes")
    session = {"sessionId": page["questions"][0]["question"]["sessionId"]}
    for name, request in (("decide", answer), ("mode", {**session, "mode": "never-stop"})):
        assert console.act(eve, name, msgspec.json.encode(request)).status == 403
    set_pin(ledger.store, "eve", "4711")
    assert not msgspec.json.decode(console.page(eve, "inbox", {}).body)["canDecide"]
    assert console.act(eve, "decide", msgspec.json.encode({**answer, "pin": "4711"})).status == 403


def test_the_story_tells_prompts_notes_blockers_and_the_open_step(desk: Desk) -> None:
    desk.agent.start("wr.small_task", goal="Fix it")
    desk.agent.ack("Agreed.", acceptance=["it works"])
    desk.agent.ack("Changed.")
    desk.agent.ack("No report.")
    page = desk.shows(f"sessions/{desk.ref}")
    steps_ = page["story"]["steps"]
    assert [step["item"] for step in steps_] == ["agree", "make-change", "check-result"]
    assert steps_[0]["handedIn"]["notes"] == ["Agreed."]
    assert all(step["prompt"] for step in steps_)
    blocked = steps_[2]["blocked"][0]
    assert blocked["notes"] == ["No report."]
    assert blocked["blockers"][0]["code"] == "MISSING_REQUIRED_OUTPUT"
    assert steps_[2]["doneAt"] is None


def test_a_rewound_chat_is_a_branch_that_can_be_compared(desk: Desk) -> None:
    desk.to_the_gate()
    at_gate = desk.agent.last
    desk.agent.decide("yes")
    desk.agent.ack("The first end.")
    first_tip = desk.shows(f"sessions/{desk.ref}")["story"]["tip"]
    desk.agent.call("continue_workflow", stateToken=at_gate["stateToken"])
    desk.agent.decide("no")
    desk.agent.ack("The other end.")
    page = desk.shows(f"sessions/{desk.ref}")
    assert page["trees"][0]["forks"] == 1
    assert page["trees"][0]["lanes"] == 2
    other = desk.shows(f"sessions/{desk.ref}", node=str(first_tip))
    assert other["story"]["steps"][-1]["handedIn"]["notes"] == ["The first end."]
    ref = desk.ref
    compared = desk.shows("compare", left=ref, right=ref, leftNode=str(first_tip))
    assert [step["differences"] for step in compared["steps"]] == [
        [],
        ["artifacts", "decisions"],
        ["notes"],
    ]
    assert [step["shared"] for step in compared["steps"]] == [True, False, False]


def test_artifacts_are_brought_together_along_the_branch_that_is_shown(desk: Desk) -> None:
    def changed(*paths: str) -> dict[str, Any]:
        return {"kind": "mr_review.changed_files", "changedFiles": [{"path": path} for path in paths]}

    desk.agent.start("test.flow", goal="Ship it")
    before = desk.agent.last
    desk.agent.ack("One way.", artifacts=[changed("b.py", "a.py")])
    first_tip = desk.shows(f"sessions/{desk.ref}")["story"]["tip"]
    desk.agent.call("continue_workflow", stateToken=before["stateToken"])
    desk.agent.ack("Another way.", artifacts=[changed("c.py")])
    tables = [desk.shows(f"sessions/{desk.ref}/artifacts", **at) for at in ({"node": str(first_tip)}, {})]
    assert [[file["path"] for file in table["files"]] for table in tables] == [["a.py", "b.py"], ["c.py"]]
    assert tables[1]["files"][0]["revision"]["step"] == "first"


def test_runs_are_filtered_and_paged_by_the_server(desk: Desk) -> None:
    for number in range(5):
        desk.clock.pass_seconds(1)
        desk.agent.start("test.flow", goal=f"Goal {number}")
    first = desk.shows("runs", limit="2")
    assert [line["title"] for line in first["lines"]] == ["Goal 4", "Goal 3"]
    assert first["more"]
    last = desk.shows("runs", limit="2", offset="4")
    assert ([line["title"] for line in last["lines"]], last["more"]) == (["Goal 0"], False)
    assert desk.shows("runs", q="Goal 3")["lines"][0]["title"] == "Goal 3"
    assert desk.shows("runs", status="complete")["lines"] == []
    assert len(desk.shows("runs", workflow="test.flow")["lines"]) == 5
    desk.agent.ack()
    waiting = desk.shows("runs", status="waiting")["lines"]
    assert [(line["title"], line["awaiting"]) for line in waiting] == [("Goal 4", "ship")]


def test_events_come_newest_first_and_can_be_paged(desk: Desk) -> None:
    desk.to_the_gate()
    page = desk.shows(f"sessions/{desk.ref}/events")
    indexes = [row["index"] for row in page["events"]]
    assert indexes == list(range(page["total"]))[::-1]
    older = desk.shows(f"sessions/{desk.ref}/events", before="3")
    assert [row["index"] for row in older["events"]] == [2, 1, 0]


def test_the_graph_shows_the_path_that_was_taken(desk: Desk) -> None:
    desk.to_the_gate()
    graph = desk.shows(f"sessions/{desk.ref}/graph")
    assert (graph["visits"], graph["current"]) == ({"first": 1}, "ship")
    assert graph["taken"] == [["(start)", "first"], ["first", "ship"]]
    drawn = {line["item"] for box in graph["graph"]["boxes"] for line in box["lines"] if line["item"]}
    assert drawn == {"first", "ship", "last"}


def test_a_session_can_be_noted_kept_exported_and_imported(desk: Desk) -> None:
    session = desk.to_the_gate()["question"]["sessionId"]
    assert desk.act("note", {"sessionId": session, "notes": "Ask Bob first."})[0] == 200
    assert desk.act("keep", {"sessionIds": [session], "keep": True})[0] == 200
    page = desk.shows(f"sessions/{desk.ref}")
    assert (page["notes"], page["status"]["keep"]) == (["Ask Bob first."], True)
    bundle = desk.console.page(LOCAL, f"sessions/{session}/export", {"form": "json"})
    imported = desk.console.act(LOCAL, "import", bundle.body)
    assert msgspec.json.decode(imported.body)["sessionId"] != session
    for form in ("md", "html"):
        assert b"Built it." in desk.console.page(LOCAL, f"sessions/{session}/export", {"form": form}).body
    assert desk.console.page(LOCAL, f"sessions/{session}/export", {"form": "exe"}).status == 400


def test_a_mode_is_attached_to_the_unfinished_branches(desk: Desk) -> None:
    session = desk.to_the_gate()["question"]["sessionId"]
    assert desk.act("mode", {"sessionId": session, "mode": "never-stop"})[0] == 200
    assert desk.shows(f"sessions/{session}")["modes"][0]["mode"] == "never-stop"


def test_workflows_come_with_their_graph_size_and_last_runs(desk: Desk) -> None:
    desk.to_the_gate()
    listed = {line["id"]: line for line in desk.shows("workflows")["workflows"]}
    assert listed["test.flow"]["errors"] == 0
    page = desk.shows("workflows/test.flow")
    assert [item["id"] for item in page["items"]] == ["first", "ship", "last"]
    assert page["runs"][0]["title"] == "Ship it"
    assert page["tokens"] > 0
    assert (listed["test.flow"]["size"], listed["test.flow"]["hash"]) == (page["size"], page["hash"])
    assert page["items"][1]["options"][0]["effect"] == "out = true"


def test_a_workflow_shows_its_contracts_who_uses_it_and_shadowed_copies(desk: Desk, bench: Bench) -> None:
    page = desk.shows("workflows/wr.small_task")
    assert [(each["ref"], each["steps"]) for each in page["contracts"]] == [
        ("wr.contracts.verification_report", ["check-result"])
    ]
    routine = desk.shows("workflows/wr.routine-context-gathering")
    assert routine["usedBy"] == [
        line["id"]
        for line in desk.shows("workflows")["workflows"]
        if "wr.templates.routine.context-gathering" in desk.shows(f"workflows/{line['id']}")["uses"]
    ]


def test_a_workflow_is_tried_out_by_answers_in_the_address(desk: Desk) -> None:
    first = desk.shows("workflows/test.flow/simulate")
    assert [item["id"] for item in first["items"]] == ["first"]
    asked = desk.shows("workflows/test.flow/simulate", answers="1")
    assert asked["items"][-1]["pending"]["kind"] == "decision"
    assert [(each["label"], each["effect"], each["follows"]["id"]) for each in asked["choices"]] == [
        ("Yes", "out = true", "last"),
        ("No", "", "last"),
    ]
    done = desk.shows("workflows/test.flow/simulate", answers="1.1.1")
    assert (done["ended"], done["choices"], done["variables"]) == ("complete", [], {"out": True})
    assert desk.shows("runs")["lines"] == []


@pytest.mark.parametrize("answers", ["0", "9", "-1", "x", "1.99", "1..1", "٣", "9" * 5000, "1." + "." * 9000])
def test_answers_that_are_no_choice_are_left_out(desk: Desk, answers: str) -> None:
    assert desk.shows("workflows/test.flow/simulate", answers=answers)["answers"] in ("", "1")


def test_what_is_built_in_comes_with_text_to_insert(desk: Desk) -> None:
    builtins = desk.shows("builtins")["builtins"]
    assert {each["kind"] for each in builtins} == {"contract", "template", "feature", "capability", "ref"}
    assert all(each["insert"] and each["details"] for each in builtins)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("nothing", {}),
        ("sessions/zzzzzzzz", {}),
        ("sessions/../../etc", {}),
        ("workflows/no.such", {}),
        ("compare", {"left": "zzzzzzzz", "right": "zzzzzzzz"}),
    ],
)
def test_what_is_not_there_is_an_error_with_a_code(desk: Desk, path: str, query: dict[str, str]) -> None:
    answer = desk.console.page(LOCAL, path, query)
    assert answer.status in (400, 404)
    assert msgspec.json.decode(answer.body)["error"]["code"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"sessionId": 1}', b'{"sessionId": "x", "y": 1}'])
@pytest.mark.parametrize(
    "name", ["decide", "note", "mode", "keep", "remove", "view", "fork", "abandon", "import", "nothing"]
)
def test_a_request_that_cannot_be_read_changes_nothing(desk: Desk, name: str, body: bytes) -> None:
    assert desk.console.act(LOCAL, name, body).status in (400, 404)


def test_a_search_finds_sessions_workflows_their_steps_and_what_is_built_in(desk: Desk) -> None:
    desk.to_the_gate()
    page = desk.shows("search", q="ship")
    assert [(hit["title"], hit["status"]) for hit in page["hits"]] == [("Ship it", "waiting")]
    assert [(hit["id"], [item["id"] for item in hit["items"]]) for hit in page["workflows"]] == [
        ("test.flow", ["ship"])
    ]
    built_in = desk.shows("search", q="verification report")
    assert "wr.contracts.verification_report" in [hit["ref"] for hit in built_in["builtins"]]
    small = desk.shows("search", q="SMALL task")
    assert "wr.small_task" in [hit["id"] for hit in small["workflows"]]
    assert desk.shows("search", q="ship", principal=Principal("eve"))["hits"] == []
    assert desk.shows("search", q=" ") == {
        "query": " ",
        "hits": [],
        "more": False,
        "leftOut": False,
        "workflows": [],
        "builtins": [],
    }
