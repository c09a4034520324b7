"""The list of runs: every filter agrees with what is shown, and bulk actions follow the rules of `gc`."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from interlock.console.console import Console
from interlock.core.principals import LOCAL, Principal
from interlock.ledger.queries.run_lines import SHOWN_STATUSES
from interlock.surfaces.execution import ExecutionSurface
from support.console_desk import Desk, desk
from support.harness import Agent, Bench, steps, workflow
from support.log import logged_events

__all__ = ["desk"]

DAY = 86_400
EVE = Principal("eve", "user")


@pytest.fixture
def busy(desk: Desk) -> Desk:
    """Sessions of every status that an agent alone can bring about, the oldest first."""
    desk.agent.start("test.flow", goal="Old")
    desk.clock.pass_seconds(2 * DAY)
    desk.to_the_gate()
    desk.clock.pass_seconds(60)
    desk.agent.start("test.flow", goal="Done")
    desk.agent.ack("done")
    desk.agent.decide("yes")
    desk.agent.ack("done")
    desk.clock.pass_seconds(60)
    desk.agent.start("wr.small_task", goal="Stuck")
    desk.agent.ack("Agreed.")
    desk.agent.ack("Changed.")
    desk.agent.ack("No report.")
    desk.clock.pass_seconds(60)
    desk.agent.start("test.flow", goal="New")
    return desk


def listed(desk: Desk, **query: str) -> list[str]:
    return [line["title"] for line in desk.shows("runs", **query)["lines"]]


def test_a_filter_by_status_lists_exactly_the_sessions_that_show_it(busy: Desk) -> None:
    everything = {line["title"]: line["status"] for line in busy.shows("runs")["lines"]}
    assert everything == {
        "New": "in_progress",
        "Stuck": "blocked",
        "Done": "complete",
        "Ship it": "waiting",
        "Old": "stale",
    }
    for status in SHOWN_STATUSES:
        expected = [title for title, shown in everything.items() if shown == status]
        assert listed(busy, status=status) == expected
        for title in everything:
            found = listed(busy, status=status, q=title)
            assert (title in found) == (title in expected)
            assert {everything[each] for each in found} <= {status}


@pytest.mark.parametrize("words", ["wr.small_task", "small", "Small task"])
def test_a_search_finds_the_runs_of_a_workflow_by_its_name(busy: Desk, words: str) -> None:
    assert listed(busy, q=words) == ["Stuck"]


def test_the_page_offers_the_statuses_that_the_list_knows() -> None:
    page = (Path(__file__).parents[2] / "console" / "src" / "views" / "Runs.tsx").read_text(encoding="utf-8")
    offered = page.partition("const STATUSES = ")[2].partition(";")[0]
    assert tuple(msgspec.json.decode(offered)) == SHOWN_STATUSES


def test_runs_turn_stale_after_the_hours_that_the_settings_name(bench: Bench) -> None:
    patient = Desk(bench)
    patient.console = Console(bench.ledger(stale_hours=72), "1.0.0")
    patient.agent.start("test.flow", goal="Slow")
    patient.clock.pass_seconds(2 * DAY)
    assert listed(patient, status="stale") == []
    patient.clock.pass_seconds(2 * DAY)
    assert listed(patient, status="stale") == ["Slow"]
    assert patient.shows("runs")["staleHours"] == 72


def test_runs_are_filtered_by_activity_and_project(busy: Desk, bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / "shop" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    bench.agent(project=tmp_path / "shop").start("test.flow", goal="In the shop")
    root = str(tmp_path / "shop")
    assert busy.shows("runs")["projects"] == [root]
    assert listed(busy, project=root) == ["In the shop"]
    assert listed(busy, project=root, q="shop") == ["In the shop"]
    assert listed(busy, project="/elsewhere", q="shop") == []
    assert listed(busy, idle="1d") == ["Old"]
    assert "Old" not in listed(busy, active="1d")
    assert listed(busy, active="1d", q="Old") == []
    assert listed(busy, active="nonsense") == listed(busy)


def test_points_are_those_of_all_pages_that_match(busy: Desk) -> None:
    page = busy.shows("runs", limit="1")
    assert [point["title"] for point in page["points"]] == ["New", "Stuck", "Done", "Ship it", "Old"]
    assert [point["title"] for point in busy.shows("runs", status="stale")["points"]] == ["Old"]
    stuck = page["points"][1]
    assert (stuck["status"], stuck["milliseconds"] >= 0) == ("blocked", True)


def test_views_belong_to_their_owner_and_are_replaced_by_name(desk: Desk) -> None:
    assert desk.act("view", {"name": "Mine", "query": "status=stale"})[0] == 200
    assert desk.act("view", {"name": " Mine ", "query": "status=blocked"})[0] == 200
    assert desk.act("view", {"name": "another", "query": ""})[0] == 200
    assert desk.shows("runs")["views"] == [
        {"name": "another", "query": ""},
        {"name": "Mine", "query": "status=blocked"},
    ]
    assert desk.shows("runs", EVE)["views"] == []
    assert desk.act("view", {"name": "Mine"}, EVE)[0] == 200
    assert desk.act("view", {"name": "another"})[0] == 200
    assert [view["name"] for view in desk.shows("runs")["views"]] == ["Mine"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 61])
def test_a_view_needs_a_name(desk: Desk, name: str) -> None:
    assert desk.act("view", {"name": name, "query": "status=stale"})[0] == 400
    assert desk.shows("runs")["views"] == []


def ids(desk: Desk) -> dict[str, str]:
    return {line["title"]: line["sessionId"] for line in desk.shows("runs")["lines"]}


def test_deleting_shows_first_what_stays_and_why(busy: Desk) -> None:
    named = ids(busy)
    assert busy.act("keep", {"sessionIds": [named["Done"]], "keep": True})[0] == 200
    preview = busy.shows("runs/removal", ids=",".join(named.values()))
    assert {line["title"]: line["outcome"] for line in preview["lines"]} == {
        "New": "deleted",
        "Stuck": "deleted",
        "Done": "kept",
        "Ship it": "waiting",
        "Old": "deleted",
    }
    request = {"sessionIds": list(named.values()), "at": preview["at"]}
    assert busy.act("remove", request)[1]["message"] == "3 sessions deleted; 2 stayed."
    assert listed(busy) == ["Done", "Ship it"]
    assert busy.act("remove", {**request, "waiting": True})[1]["sessions"] == 1
    assert listed(busy) == ["Done"]


def test_a_session_that_moves_after_the_preview_is_not_deleted(busy: Desk) -> None:
    new = ids(busy)["New"]
    preview = busy.shows("runs/removal", ids=new)
    busy.clock.pass_seconds(1)
    busy.agent.ack("Still here.")
    assert busy.act("remove", {"sessionIds": [new], "at": preview["at"]})[1]["sessions"] == 0
    assert "New" in listed(busy)
    later = 1 << 60
    assert busy.act("remove", {"sessionIds": [new], "at": later, "waiting": True})[1]["sessions"] == 1


def test_nobody_keeps_deletes_or_exports_sessions_of_others(busy: Desk) -> None:
    named = ids(busy)
    everything = ",".join(named.values())
    assert busy.shows("runs/removal", EVE, ids=everything)["lines"] == []
    approver, request = Principal("eve", "approver"), {"sessionIds": list(named.values()), "at": 1 << 60}
    assert busy.act("remove", request, approver)[1]["sessions"] == 0
    assert busy.act("keep", {"sessionIds": list(named.values()), "keep": True}, EVE)[0] == 404
    assert busy.console.page(EVE, "runs/export", {"ids": everything}).status == 404
    assert ids(busy) == named


def test_several_sessions_are_exported_as_bundles_that_can_be_imported(busy: Desk) -> None:
    named = ids(busy)
    wanted = [named["Done"], named["Old"]]
    answer = busy.console.page(LOCAL, "runs/export", {"ids": ",".join(wanted)})
    assert (answer.media, answer.filename) == ("application/zip", "interlock-sessions.zip")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.namelist() == [f"{session}.json" for session in wanted]
        imported = busy.console.act(LOCAL, "import", archive.read(f"{wanted[0]}.json"))
    assert msgspec.json.decode(imported.body)["message"] == "Imported 'Done'."


def test_a_token_of_the_role_user_neither_imports_nor_deletes_not_even_its_own(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    ledger = bench.ledger(owner="eve")
    Agent(ExecutionSurface(ledger)).start("test.flow", goal="Mine")
    console = Console(ledger, "1.0.0")
    session_id = msgspec.json.decode(console.page(EVE, "runs", {}).body)["lines"][0]["sessionId"]
    bundle = console.page(EVE, f"sessions/{session_id}/export", {})
    removal = msgspec.json.encode({"sessionIds": [session_id], "at": 1 << 60})
    assert console.act(EVE, "import", bundle.body).status == 403
    assert console.act(EVE, "remove", removal).status == 403
    assert console.act(Principal("eve", "approver"), "remove", removal).status == 200


def test_a_run_that_a_token_of_the_role_user_gives_up_is_given_up_by_its_agent(bench: Bench) -> None:
    bench.write(workflow(*steps("one")))
    ledger = bench.ledger(owner="eve")
    started = Agent(ExecutionSurface(ledger)).start("test.flow")["session"]
    request = {"sessionId": started["sessionId"], "runId": started["runId"]}
    assert Console(ledger, "1.0.0").act(EVE, "abandon", msgspec.json.encode(request)).status == 200
    (event,) = logged_events(ledger.store, started["sessionId"], "run_abandoned")
    assert event.event.channel == "agent"  # type: ignore[union-attr]
